#include "tools/bench/lab_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/launch/agent_command.h"

namespace syncopate::bench {
namespace {

constexpr const char* kSubnet = "10.250.0.0/16";  // lab/plan.h: every lab has these addresses

void Append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::vector<std::string> OnFirstHost(const LabPlace& place) {
  return place.lab->ExecWords(place.syncopate, place.lab->hosts().front().name);
}

}  // namespace

std::string AgentScript(const lab::Lab& lab, const std::string& syncopate) {
  // As ssh does, the words of the command become one text for a shell.
  return absl::StrCat("host=$1\nshift\nexec ", ShellQuote(syncopate), " lab exec --lab ",
                      lab.name(), " \"$host\" -- /bin/sh -c \"$*\"\n");
}

std::vector<std::string> LaunchInLab(const LabPlace& place, const std::vector<int>& slots) {
  std::vector<std::string> words = OnFirstHost(place);
  Append(words, place.lab->LaunchWords(place.syncopate, slots));
  Append(words, {"--no-tag", "--"});
  return words;
}

std::vector<std::string> BeforeMpirun(const LabPlace& place) { return OnFirstHost(place); }

std::vector<std::string> MpirunWords(const LabPlace& place, const std::vector<int>& slots) {
  std::vector<std::string> hosts;
  const std::vector<lab::HostAddress> all = place.lab->hosts();
  for (size_t i = 0; i < all.size() && i < slots.size(); ++i) {
    if (slots[i] > 0) hosts.push_back(absl::StrCat(all[i].name, ":", slots[i]));
  }
  return {"-H",
          absl::StrJoin(hosts, ","),
          "--mca",
          "plm",
          "rsh",
          "--mca",
          "plm_rsh_agent",
          absl::StrCat("/bin/sh ", place.agent),
          "--mca",
          "plm_rsh_no_tree_spawn",
          "1",
          "--mca",
          "oob_tcp_if_include",
          kSubnet};
}

}  // namespace syncopate::bench
