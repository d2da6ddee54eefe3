#include "tools/bench/lab_plan.h"

#include "absl/strings/str_cat.h"
#include "launch/agent_command.h"

namespace syncopate::tools::bench {
namespace {

constexpr const char* kSubnet = "10.250.0.0/16";  // lab/plan.h: every lab has these addresses

}  // namespace

LabPlace PlaceInLab(const lab::Lab& lab, const std::string& syncopate,
                    const std::vector<int>& slots) {
  LabPlace place;
  const std::vector<lab::HostAddress> hosts = lab.hosts();
  place.exec = lab.ExecWords(syncopate, hosts.front().name);
  place.hosts = lab.HostsWithSlots(slots);
  place.launch = {syncopate, "launch", "-H", place.hosts, "--agent", lab.Agent(syncopate)};
  for (size_t i = 0; i < hosts.size() && i < slots.size(); ++i) {
    place.host_of.insert(place.host_of.end(), static_cast<size_t>(slots[i]), hosts[i].name);
  }
  return place;
}

std::string AgentScript(const std::string& lab, const std::string& syncopate) {
  // As ssh does, the words of the command become one text for a shell.
  return absl::StrCat("host=$1\nshift\nexec ", launch::ShellQuote(syncopate), " lab exec --lab ",
                      lab, " \"$host\" -- /bin/sh -c \"$*\"\n");
}

std::vector<std::string> LaunchInLab(const LabPlace& place) {
  std::vector<std::string> words = place.exec;
  words.insert(words.end(), place.launch.begin(), place.launch.end());
  words.insert(words.end(), {"--no-tag", "--"});
  return words;
}

std::vector<std::string> MpirunWords(const LabPlace& place) {
  std::vector<std::string> words = {"-H", place.hosts};
  const std::pair<const char*, std::string> settings[] = {
      {"plm", "rsh"},
      {"plm_rsh_agent", absl::StrCat("/bin/sh ", place.agent)},
      {"plm_rsh_no_tree_spawn", "1"},  // the first host starts all others
      {"oob_tcp_if_include", kSubnet},
  };
  for (const auto& [name, value] : settings) words.insert(words.end(), {"--mca", name, value});
  return words;
}

}  // namespace syncopate::tools::bench
