// For tests of the laboratory on the real machine: the command, labs that are gone when a test ends,
// and what of labs is on the machine.
#ifndef SYNCOPATE_TESTS_LAB_COMMAND_TESTING_H_
#define SYNCOPATE_TESTS_LAB_COMMAND_TESTING_H_

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "lab/child_process.h"
#include "lab/flow.h"
#include "lab/lab.h"
#include "lab/lab_testing.h"
#include "lab/netns.h"
#include "lab/requirements.h"
#include "lab/state.h"
#include "subprocess.h"

namespace syncopate::lab {

inline constexpr char kNamePrefix[] = "test-";

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

inline Outcome Syncopate(std::vector<std::string> words) {
  words.insert(words.begin(), {SYNCOPATE_BINARY, "lab"});
  syncopate::testing::Subprocess process(words);
  Outcome outcome;
  outcome.code = process.Wait();
  outcome.out = process.out();
  outcome.err = process.err();
  return outcome;
}

// What of labs is on this machine: of this test's own, since others may come and go meanwhile.
inline std::vector<std::string> OnlyOwn(std::vector<std::string> names) {
  const std::string own = absl::StrCat(kNamePrefix, getpid(), "-");
  std::erase_if(names,
                [&](const std::string& name) { return name.find(own) == std::string::npos; });
  return names;
}

struct Machine {
  std::vector<std::string> namespaces = OnlyOwn(ListNamespaces());
  std::string links = Run({"ip", "-o", "link", "show", "type", "veth"}, "").value_or("?");
  std::vector<std::string> labs = OnlyOwn(LabNames());

  friend bool operator==(const Machine&, const Machine&) = default;
};

// Labs of tests that were killed.
inline void RemoveLeftovers() {
  for (const std::string& name : LabNames()) {
    const std::vector<std::string> parts = absl::StrSplit(name, '-');
    int pid = 0;
    if (parts.size() < 2 || parts[0] != "test" || !absl::SimpleAtoi(parts[1], &pid)) continue;
    if (kill(pid, 0) != 0) Lab::Down(name, MonotonicClock()).IgnoreError();
  }
}

class LabTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Spec any;
    const absl::Status can = CheckRequirements(any);
    if (!can.ok()) GTEST_SKIP() << can.message();
    const absl::Status iperf = CheckIperf();
    if (!iperf.ok()) GTEST_SKIP() << iperf.message();
    RemoveLeftovers();
    folder_ = absl::StrCat("/tmp/syncopate-lab-test-", getpid());
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override {
    for (const std::string& name : LabNames()) {
      if (absl::StartsWith(name, Name(""))) Lab::Down(name, MonotonicClock()).IgnoreError();
    }
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  static std::string Name(const std::string& which) {
    return absl::StrCat(kNamePrefix, getpid(), "-", which);
  }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path) << text;
    return path;
  }

  // Two racks of two hosts.
  std::string SmallLab() const {
    return Write("small.toml", TwoRacksToml("small", 2, "100mbit", "50mbit"));
  }

  Outcome Up(const std::string& which) const {
    return Syncopate({"up", SmallLab(), "--name", Name(which)});
  }

  // Payload of a flow in Mbit/s, as iperf3 sees it: the nearest of up to four measurements. A busy
  // machine may make one too low, or too high if the receiver begins late to read.
  static double Measure(const Lab& lab, const std::string& from, const std::string& to,
                        double expected) {
    const Spec& spec = lab.plan().spec;
    double nearest = 0;
    for (int attempt = 0; attempt < 4 && std::abs(nearest - expected) > 0.05 * expected;
         ++attempt) {
      const absl::StatusOr<std::vector<double>> got =
          MeasureFlows(lab.plan(), {{FindHost(spec, from).value(), FindHost(spec, to).value()}}, 2,
                       1, "", MonotonicClock());
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok()) return 0;
      const double rate = got->front() / 1e6;
      if (std::abs(rate - expected) < std::abs(nearest - expected)) nearest = rate;
    }
    return nearest;
  }

  // Whether a connection from one host to another can be made and carries bytes.
  static bool CanTalk(const std::string& lab, const std::string& from, const std::string& to) {
    syncopate::testing::Subprocess server({SYNCOPATE_BINARY, "lab", "exec", "--lab", lab, to, "--",
                                           "iperf3", "-s", "-1", "--forceflush"});
    if (!server.ReadUntil([&] { return server.Count("listening") > 0; })) return false;
    const Outcome client = Syncopate({"exec", "--lab", lab, from, "--", "iperf3", "-c", to,
                                      "--connect-timeout", "1000", "-n", "64K"});
    kill(server.pid(), SIGKILL);
    server.Wait();
    return client.code == 0;
  }

  std::string folder_;
};

}  // namespace syncopate::lab

#endif  // SYNCOPATE_TESTS_LAB_COMMAND_TESTING_H_
