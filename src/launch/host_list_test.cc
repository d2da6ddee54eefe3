#include "launch/host_list.h"

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostListTest, ReadsACommandLine) {
  const auto hosts = ParseHostList("node1:4, user@node2,[fd00::1]:2,node1:1");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(*hosts, ElementsAre(HostSlots{"node1", 5}, HostSlots{"user@node2", 1},
                                  HostSlots{"fd00::1", 2}));
}

TEST(HostListTest, RefusesWhatIsNoHost) {
  for (const char* text : {"", ",", "a,", "a:0", "a:-1", "a:b", "a:", "-oProxyCommand=x", "a b",
                           "a;b", "$(a)", "a:49", "a:40,a:40", ":4"}) {
    EXPECT_FALSE(ParseHostList(text).ok()) << text;
  }
}

TEST(HostListTest, ReadsBothKindsOfFiles) {
  const auto hosts = ParseHostFile("f",
                                   "# cluster\n\nnode1 slots=4 max_slots=8\nnode2:2 # old\n"
                                   "  node3\t\r\n");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(*hosts,
              ElementsAre(HostSlots{"node1", 4}, HostSlots{"node2", 2}, HostSlots{"node3", 1}));
}

TEST(HostListTest, NamesTheLine) {
  const auto hosts = ParseHostFile("my.hosts", "node1\nnode2 slot=4\n");
  ASSERT_FALSE(hosts.ok());
  EXPECT_THAT(std::string(hosts.status().message()), HasSubstr("my.hosts:2: \"slot=4\""));
  EXPECT_THAT(std::string(ParseHostFile("e", "# none\n").status().message()),
              HasSubstr("names no host"));
}

TEST(HostListTest, PlacesHostByHost) {
  const std::vector<HostSlots> hosts = {{"a", 2}, {"b", 3}, {"c", 1}};
  EXPECT_THAT(*PlaceRanks(hosts, std::nullopt),
              ElementsAre(HostRanks{"a", 0, 2}, HostRanks{"b", 2, 3}, HostRanks{"c", 5, 1}));
  EXPECT_THAT(*PlaceRanks(hosts, 3), ElementsAre(HostRanks{"a", 0, 2}, HostRanks{"b", 2, 1}));
  EXPECT_THAT(std::string(PlaceRanks(hosts, 7).status().message()), HasSubstr("6 slots"));
}

TEST(HostListTest, BoundsTheJob) {
  const std::vector<HostSlots> hosts(100, HostSlots{"h", limits::kLocalWorkersMax});
  EXPECT_FALSE(PlaceRanks(hosts, std::nullopt).ok());
}

}  // namespace
}  // namespace syncopate::launch
