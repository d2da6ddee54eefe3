#include "worker/known_network.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;
using Mode = ProbeChoice::Mode;

class KnownNetworkTest : public ::testing::Test {
 protected:
  KnownNetworkTest()
      : folder_(::testing::TempDir() + "known-network-" + std::to_string(getpid())),
        environment_([this](const std::string& name) -> std::optional<std::string> {
          if (name == "SYNCOPATE_CACHE") return folder_;
          if (name == "SYNCOPATE_PROBE") return probe_;
          return std::nullopt;
        }) {}
  ~KnownNetworkTest() override { std::filesystem::remove_all(folder_); }

  std::string OnlyFile() const {
    return std::filesystem::directory_iterator(folder_)->path().string();
  }

  const std::string folder_;
  std::optional<std::string> probe_;
  const Environment environment_;
  const std::vector<std::string> hosts_ = {"a", "b", "c"};
};

TEST_F(KnownNetworkTest, TheSettingIsOffStartOrAFile) {
  EXPECT_EQ(ResolveProbe(environment_).mode, Mode::kKept);
  EXPECT_EQ(ProbeTerms(ResolveProbe(environment_)), "");
  probe_ = "off";
  EXPECT_EQ(ResolveProbe(environment_).mode, Mode::kOff);
  probe_ = "start";
  EXPECT_EQ(ResolveProbe(environment_).mode, Mode::kStart);
  EXPECT_NE(ProbeTerms(ResolveProbe(environment_)), "");
  probe_ = "net.json";
  EXPECT_EQ(ResolveProbe(environment_).mode, Mode::kFile);
  EXPECT_EQ(ResolveProbe(environment_).file, "net.json");
}

TEST_F(KnownNetworkTest, WhatIsKeptIsForTheSameHostsAlone) {
  EXPECT_FALSE(LoadKnownNetwork(environment_, hosts_));
  const Topology topology = StarTopology(3, 1e9, 1e-5);
  ASSERT_TRUE(SaveKnownNetwork(environment_, hosts_, topology).ok());
  const std::optional<KnownNetwork> known = LoadKnownNetwork(environment_, hosts_);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->topology, topology);
  EXPECT_THAT(known->reason, HasSubstr(" ago: "));
  EXPECT_FALSE(LoadKnownNetwork(environment_, {"a", "c", "b"}));
  EXPECT_FALSE(LoadKnownNetwork(environment_, {"a", "b"}));
}

TEST_F(KnownNetworkTest, WhatCannotBeUsedIsLeftOut) {
  ASSERT_TRUE(SaveKnownNetwork(environment_, hosts_, StarTopology(2, 1e9, 1e-5)).ok());
  EXPECT_FALSE(LoadKnownNetwork(environment_, hosts_));  // of fewer workers
  ASSERT_TRUE(WriteFile(OnlyFile(), "{}").ok());
  EXPECT_FALSE(LoadKnownNetwork(environment_, hosts_));
}

}  // namespace
}  // namespace syncopate::worker
