#include "control/interfaces.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<InterfaceAddress> kList = {
    {.name = "lo", .address = "127.0.0.1", .loopback = true},
    {.name = "docker0", .address = "172.17.0.1"},
    {.name = "eth0", .address = "10.0.0.1"},
    {.name = "eth1", .address = "10.0.1.1"},
    {.name = "eth10", .address = "10.0.10.1"},
    {.name = "ib0", .address = "10.1.0.1", .up = false},
    {.name = "lo", .address = "::1", .loopback = true, .ipv6 = true},
    {.name = "eth0", .address = "fd00::1", .ipv6 = true},
    {.name = "eth2", .address = "fd00::2", .ipv6 = true}};

std::vector<std::string> Chosen(absl::string_view text,
                                const std::vector<InterfaceAddress>& list = kList) {
  const auto chosen = ChooseInterfaces(text, list);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  std::vector<std::string> addresses;
  if (chosen.ok()) {
    for (const InterfaceAddress& each : *chosen) addresses.push_back(each.address);
  }
  return addresses;
}

TEST(InterfacesTest, ByDefaultTheFirstThatOthersReach) {
  EXPECT_THAT(Chosen(""), ElementsAre("10.0.0.1"));
}

TEST(InterfacesTest, ByDefaultTakesWhatThereIs) {
  EXPECT_THAT(Chosen("", {kList[0], kList[1]}), ElementsAre("172.17.0.1"));
  EXPECT_THAT(Chosen("", {kList[0], kList[5], kList[6]}), ElementsAre("127.0.0.1"));
  EXPECT_THAT(Chosen("", {kList[0], kList[8]}), ElementsAre("fd00::2"));
}

TEST(InterfacesTest, NamesArePrefixesInTheUsersOrder) {
  EXPECT_THAT(Chosen("eth1,eth0"), ElementsAre("10.0.1.1", "10.0.10.1", "10.0.0.1"));
  EXPECT_THAT(Chosen("eth"), ElementsAre("10.0.0.1", "10.0.1.1", "10.0.10.1", "fd00::2"));
  EXPECT_THAT(Chosen("lo"), ElementsAre("127.0.0.1"));
}

TEST(InterfacesTest, EqualsMeansExactly) {
  EXPECT_THAT(Chosen("=eth1"), ElementsAre("10.0.1.1"));
  EXPECT_THAT(Chosen("=eth1,lo"), ElementsAre("10.0.1.1", "127.0.0.1"));
}

TEST(InterfacesTest, ACaretExcludes) {
  EXPECT_THAT(Chosen("^lo,docker,eth1"), ElementsAre("10.0.0.1", "fd00::2"));
  EXPECT_THAT(Chosen("^=lo,docker0,eth1"), ElementsAre("10.0.0.1", "10.0.10.1", "fd00::2"));
}

TEST(InterfacesTest, SaysWhatThereIsIfNothingFits) {
  for (const char* text : {"ib", "wlan", "=eth", "^lo,docker,eth"}) {
    const auto chosen = ChooseInterfaces(text, kList);
    ASSERT_FALSE(chosen.ok()) << text;
    EXPECT_THAT(std::string(chosen.status().message()),
                AllOf(HasSubstr(text), HasSubstr("ib0 (10.1.0.1, down)"),
                      HasSubstr("SYNCOPATE_SOCKET_IFNAME")));
  }
  for (const char* text : {"^", "=", "^=", "^,"}) EXPECT_FALSE(ChooseInterfaces(text, kList).ok());
  EXPECT_FALSE(ChooseInterfaces("", {}).ok());
}

TEST(InterfacesTest, ThisMachineHasSome) {
  const auto list = ListInterfaces();
  ASSERT_TRUE(list.ok());
  EXPECT_FALSE(list->empty());
  EXPECT_TRUE(ChooseInterfaces("", *list).ok());
}

TEST(InterfacesTest, AddressesWithColonsGetBrackets) {
  EXPECT_EQ(JoinAddress("10.0.0.1", 80), "10.0.0.1:80");
  EXPECT_EQ(JoinAddress("fd00::1", 80), "[fd00::1]:80");
}

TEST(InterfacesTest, FastLinksGetSeveralConnections) {
  EXPECT_EQ(ConnectionsFor(0), 1);
  EXPECT_EQ(ConnectionsFor(1e9), 1);
  EXPECT_EQ(ConnectionsFor(10e9), 1);
  EXPECT_EQ(ConnectionsFor(25e9), 3);
  EXPECT_EQ(ConnectionsFor(100e9), 8);
  EXPECT_EQ(LinkBitsPerSecond("no-such-interface"), 0);
}

}  // namespace
}  // namespace syncopate::control
