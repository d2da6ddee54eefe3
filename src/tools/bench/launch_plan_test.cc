#include "tools/bench/launch_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A folder of empty programs.
class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    options_.workers = 3;
    options_.sizes = {4096, 65536};
    options_.memory = "heap";
    options_.timeout = absl::Seconds(7);
    place_.drivers = folder_;
    place_.directory = "/private";
    place_.environment = MapEnvironment({{"PATH", "/nonexistent:" + folder_}});
  }

  void MakeProgram(const std::string& name) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "";
    chmod(path.c_str(), 0700);
  }

  // Whether `words` stand in the plan one after the other.
  static bool HasRun(const LaunchPlan& plan, const std::vector<std::string>& words) {
    return std::search(plan.arguments.begin(), plan.arguments.end(), words.begin(), words.end()) !=
           plan.arguments.end();
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  BenchOptions options_;
  LaunchPlace place_;
};

TEST_F(LaunchTest, OursGetsItsOwnOptions) {
  MakeProgram("bench_syncopate");
  options_.algorithm = "ring";
  const auto plan = PlanLaunch("syncopate", options_, place_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arguments[0], folder_ + "/bench_syncopate");
  EXPECT_TRUE(HasRun(*plan, {"--dir", "/private"}));
  EXPECT_TRUE(HasRun(*plan, {"--workers", "3"}));
  EXPECT_TRUE(HasRun(*plan, {"--bytes-max", "65536"}));
  EXPECT_TRUE(HasRun(*plan, {"--timeout", "7000ms"}));
  EXPECT_TRUE(HasRun(*plan, {"--memory", "heap"}));
  EXPECT_TRUE(HasRun(*plan, {"--algorithm", "ring"}));
}

TEST_F(LaunchTest, OpenMpiRunsWithTheSettingsThatAreFairToIt) {
  MakeProgram("bench_openmpi");
  MakeProgram("mpirun.openmpi");
  place_.root = true;
  options_.algorithm = "ring";  // ours, not its
  for (const std::string name : {"openmpi", "openmpi-ucx"}) {
    const auto plan = PlanLaunch(name, options_, place_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->arguments[0], folder_ + "/mpirun.openmpi");
    EXPECT_TRUE(HasRun(*plan, {"--allow-run-as-root"}));
    EXPECT_TRUE(HasRun(*plan, {"--oversubscribe", "--bind-to", "none"}));
    EXPECT_TRUE(HasRun(*plan, {"--mca", "mpi_yield_when_idle", "1"}));
    EXPECT_TRUE(HasRun(*plan, {"-n", "3", folder_ + "/bench_openmpi"}));
    EXPECT_TRUE(HasRun(*plan, {"--mca", "pml", name == "openmpi" ? "ob1" : "ucx"}));
    EXPECT_GT(std::stoull(plan->environment.at("MALLOC_MMAP_THRESHOLD_")), 100u << 20);
    EXPECT_GT(std::stoull(plan->environment.at("MALLOC_TRIM_THRESHOLD_")), 100u << 20);
    EXPECT_THAT(plan->arguments, Not(Contains("--algorithm")));
  }
  place_.cores = 3;  // a core for each rank: polling is the quicker way for it to wait
  EXPECT_TRUE(
      HasRun(*PlanLaunch("openmpi", options_, place_), {"--mca", "mpi_yield_when_idle", "0"}));
  place_.root = false;
  EXPECT_THAT(PlanLaunch("openmpi", options_, place_)->arguments,
              Not(Contains("--allow-run-as-root")));
}

// Three workers on two hosts.
LabPlace Lab() {
  LabPlace place;
  place.exec = {"/bin/syncopate", "lab", "exec", "--lab", "l", "h0", "--"};
  place.launch = {"/bin/syncopate", "launch", "-H", "h0:2,h1:1"};
  place.hosts = "h0:2,h1:1";
  place.agent = "/private/agent";
  place.topology = "/private/topology.json";
  return place;
}

TEST_F(LaunchTest, InALabOursAndGlooAreLaunchedOnItsHosts) {
  MakeProgram("bench_syncopate");
  MakeProgram("bench_gloo");
  place_.lab = Lab();
  for (const std::string name : {"syncopate", "gloo"}) {
    const auto plan = PlanLaunch(name, options_, place_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->arguments[0], "/bin/syncopate");
    EXPECT_TRUE(HasRun(*plan, {"lab", "exec", "--lab", "l", "h0", "--", "/bin/syncopate", "launch",
                               "-H", "h0:2,h1:1"}));
    EXPECT_TRUE(HasRun(*plan, {"--", folder_ + "/bench_" + name}));
    EXPECT_TRUE(HasRun(*plan, {"--rank-from", "SYNCOPATE_RANK"}));
    // Peers plan for themselves.
    EXPECT_EQ(plan->environment.count("SYNCOPATE_TOPO_FILE"), name == "syncopate" ? 1u : 0u);
    EXPECT_EQ(plan->environment.count("SYNCOPATE_TUNE"), name == "syncopate" ? 1u : 0u);
  }
  EXPECT_EQ(PlanLaunch("syncopate", options_, place_)->environment.at("SYNCOPATE_TOPO_FILE"),
            "/private/topology.json");
  place_.lab->topology.clear();
  EXPECT_EQ(PlanLaunch("syncopate", options_, place_)->environment.count("SYNCOPATE_TOPO_FILE"),
            0u);
}

TEST_F(LaunchTest, InALabGlooUsesItsRingUnlessToldOtherwise) {
  MakeProgram("bench_gloo");
  EXPECT_THAT(PlanLaunch("gloo", options_, place_)->arguments, Not(Contains("--algorithm")));
  place_.lab = Lab();
  EXPECT_TRUE(HasRun(*PlanLaunch("gloo", options_, place_), {"--algorithm", "ring"}));
  options_.gloo_algorithm = "bcube";
  EXPECT_TRUE(HasRun(*PlanLaunch("gloo", options_, place_), {"--algorithm", "bcube"}));
  options_.gloo_algorithm = "quickest";
  EXPECT_THAT(PlanLaunch("gloo", options_, place_)->arguments, Not(Contains("--algorithm")));
}

TEST_F(LaunchTest, InALabOpenMpiReachesTheHostsByTheAgentAndUsesTcp) {
  MakeProgram("bench_openmpi");
  MakeProgram("mpirun.openmpi");
  place_.lab = Lab();
  for (const std::string name : {"openmpi", "openmpi-ring"}) {
    const auto plan = PlanLaunch(name, options_, place_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(HasRun(*plan, {"h0", "--", folder_ + "/mpirun.openmpi"}));
    EXPECT_TRUE(HasRun(*plan, {"-H", "h0:2,h1:1"}));
    EXPECT_TRUE(HasRun(*plan, {"--mca", "plm_rsh_agent", "/bin/sh /private/agent"}));
    EXPECT_TRUE(HasRun(*plan, {"--mca", "btl", "tcp,self,vader"}));
    EXPECT_TRUE(HasRun(*plan, {"--mca", "mpi_yield_when_idle", "1"}));
    EXPECT_EQ(HasRun(*plan, {"--mca", "coll_tuned_allreduce_algorithm", "4"}),
              name == "openmpi-ring");
    EXPECT_THAT(plan->arguments, Not(Contains("--rank-from")));
  }
}

TEST_F(LaunchTest, TheAgentRunsTheWordsAfterTheHostByAShell) {
  const std::string folder = folder_ + "/it's here";
  std::filesystem::create_directory(folder);
  const std::string program = folder + "/syncopate";
  std::ofstream(program) << "#!/bin/sh\nfor word in \"$@\"; do echo \"[$word]\"; done\n";
  chmod(program.c_str(), 0700);
  const std::string script = folder_ + "/agent";
  std::ofstream(script) << AgentScript("l", program);
  FILE* output = popen(absl::StrCat("/bin/sh ", script, " h1 'A=1; export A;' orted").c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text(1000, '\0');
  text.resize(fread(text.data(), 1, text.size(), output));
  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(text,
            "[lab]\n[exec]\n[--lab]\n[l]\n[h1]\n[--]\n[/bin/sh]\n[-c]\n[A=1; export A; orted]\n");
}

TEST_F(LaunchTest, SaysWhatToInstall) {
  const auto no_driver = PlanLaunch("gloo", options_, place_).status();
  EXPECT_TRUE(absl::IsNotFound(no_driver));
  EXPECT_THAT(std::string(no_driver.message()),
              AllOf(HasSubstr("bench_gloo"), HasSubstr("install libgloo-dev")));
  MakeProgram("bench_mpich");
  const auto no_launcher = PlanLaunch("mpich", options_, place_).status();
  EXPECT_THAT(std::string(no_launcher.message()),
              AllOf(HasSubstr("mpirun.mpich"), HasSubstr("libmpich-dev mpich")));
}

TEST_F(LaunchTest, AnotherBuildOfOursIsStartedAsOursFromItsFolder) {
  std::filesystem::create_directories(folder_ + "/old");
  MakeProgram("old/bench_syncopate");
  options_.builds["before"] = folder_ + "/old";
  options_.algorithm = "ring";
  const auto plan = PlanLaunch("before", options_, place_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arguments.front(), folder_ + "/old/bench_syncopate");
  EXPECT_THAT(plan->arguments, Contains("--memory"));
  EXPECT_THAT(plan->arguments, Contains("--algorithm"));
  options_.builds["gone"] = folder_ + "/nowhere";
  EXPECT_TRUE(absl::IsNotFound(PlanLaunch("gone", options_, place_).status()));
}

TEST_F(LaunchTest, DriversAreFoundInABuildAndInAnInstallation) {
  const std::string bin = folder_ + "/bin";
  EXPECT_TRUE(absl::IsNotFound(FindDrivers("", bin).status()));
  std::filesystem::create_directories(bin);
  std::filesystem::create_directories(folder_ + "/libexec/syncopate");
  std::filesystem::create_directories(folder_ + "/peers");
  MakeProgram("libexec/syncopate/bench_memory_limit");
  EXPECT_EQ(*FindDrivers("", bin), bin + "/../libexec/syncopate");
  MakeProgram("peers/bench_memory_limit");
  EXPECT_EQ(*FindDrivers("", bin), bin + "/../peers");
  EXPECT_EQ(*FindDrivers(folder_ + "/peers", "/elsewhere"), folder_ + "/peers");
  EXPECT_THAT(std::string(FindDrivers("/elsewhere", bin).status().message()),
              HasSubstr("--drivers"));
}

}  // namespace
}  // namespace syncopate::tools::bench
