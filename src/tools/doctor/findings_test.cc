// The findings that can be had on any machine that runs the tests.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/doctor/machine_findings.h"
#include "tools/doctor/peer_findings.h"
#include "tools/doctor/transport_findings.h"

namespace syncopate::tools {
namespace {

using Level = Finding::Level;
using ::testing::HasSubstr;

Finding Named(const Findings& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding;
  }
  ADD_FAILURE() << "nothing about " << name;
  return {};
}

TEST(FindingsTest, SharedMemoryWorksWhereTheTestsRun) {
  const Findings findings = TransportFindings();
  for (const char* name : {"memfd", "futex", "pidfd", "transports"}) {
    const Finding finding = Named(findings, name);
    EXPECT_EQ(finding.level, Level::kOk) << name << ": " << finding.value;
  }
}

TEST(FindingsTest, AdviceComesExactlyWithWhatIsNotWell) {
  Findings all = TransportFindings();
  for (const Finding& finding : NetworkFindings()) all.push_back(finding);
  std::optional<HostMeasurement> measured;
  for (const Finding& finding : MachineFindings(MonotonicClock(), &measured))
    all.push_back(finding);
  for (const Finding& finding : PeerFindings(MapEnvironment({}), "/nowhere"))
    all.push_back(finding);
  for (const Finding& finding : all) {
    EXPECT_FALSE(finding.value.empty()) << finding.name;
    EXPECT_EQ(finding.level == Level::kOk, finding.advice.empty()) << finding.name;
  }
}

TEST(FindingsTest, NothingOfTheNetworkIsNeededOnOneHost) {
  for (const Finding& finding : NetworkFindings()) EXPECT_NE(finding.level, Level::kBroken);
}

TEST(FindingsTest, MachineTellsCoresLayoutAndBandwidth) {
  std::optional<HostMeasurement> measured;
  const Findings findings = MachineFindings(MonotonicClock(), &measured);
  EXPECT_THAT(Named(findings, "cores").value, HasSubstr(" online"));
  EXPECT_THAT(Named(findings, "memory bandwidth").value, HasSubstr("GB/s"));
  EXPECT_THAT(Named(findings, "meetings").value, HasSubstr("more than there are cores"));
  ASSERT_TRUE(measured.has_value());
  EXPECT_EQ(measured->costs.cores, AllowedCpus());
  EXPECT_NE(Named(findings, "NUMA nodes").value, "0");
  Named(findings, "caches");
}

TEST(FindingsTest, PeersAreFoundByLauncherAndDriver) {
  const TemporaryFolder folder;
  const std::string& root = folder.path();
  const Environment environment = MapEnvironment({{"PATH", "/nowhere:" + root}});
  std::filesystem::create_directories(root + "/peers");
  std::filesystem::create_directories(root + "/src");
  const auto put = [&](const std::string& name, mode_t mode) {
    std::ofstream(root + "/" + name) << "#!/bin/sh\n";
    chmod((root + "/" + name).c_str(), mode);
  };

  put("mpirun.openmpi", 0600);  // not executable
  Finding finding = Named(PeerFindings(environment, root + "/src"), "peer Open MPI");
  EXPECT_EQ(finding.value, "no mpirun.openmpi");
  EXPECT_EQ(finding.advice, "apt-get install openmpi-bin libopenmpi-dev");

  put("mpirun.openmpi", 0700);
  finding = Named(PeerFindings(environment, root + "/src"), "peer Open MPI");
  EXPECT_EQ(finding.value, "no driver bench_openmpi");

  put("peers/bench_openmpi", 0700);
  finding = Named(PeerFindings(environment, root + "/src"), "peer Open MPI");
  EXPECT_EQ(finding.level, Level::kOk);
}

}  // namespace
}  // namespace syncopate::tools
