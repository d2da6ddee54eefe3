#include "launch/agent_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMinute = 60'000'000'000;

TEST(AgentCommandTest, QuotesForTheShell) {
  EXPECT_EQ(ShellQuote("a b"), "'a b'");
  EXPECT_EQ(ShellQuote("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(ShellQuote(""), "''");
}

TEST(AgentCommandTest, SplitsWords) {
  EXPECT_THAT(*SplitWords("  ssh -o 'a b' \"c d\" e\\ f '' "),
              ElementsAre("ssh", "-o", "a b", "c d", "e f", ""));
  EXPECT_THAT(*SplitWords(""), ElementsAre());
  for (const char* text : {"'a", "a \"b", "a\\"}) EXPECT_FALSE(SplitWords(text).ok()) << text;
}

TEST(AgentCommandTest, BySshTheCommandIsQuoted) {
  EXPECT_THAT(
      *AgentCommand("", "h1", false, {"/opt/my tools/syncopate", "launch"}, kMinute),
      ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o",
                  "ServerAliveCountMax=3", "-T", "h1", "'/opt/my tools/syncopate' 'launch'"));
}

TEST(AgentCommandTest, AnAgentGetsTheWords) {
  EXPECT_THAT(*AgentCommand("lab exec {host} --", "h1", true, {"s", "a b"}, kMinute),
              ElementsAre("lab", "exec", "h1", "--", "s", "a b"));
  EXPECT_FALSE(AgentCommand("lab exec h1", "h1", false, {"s"}, kMinute).ok());
}

TEST(AgentCommandTest, HereItIsTheCommandItself) {
  EXPECT_THAT(*AgentCommand("", "localhost", true, {"s", "x"}, kMinute), ElementsAre("s", "x"));
}

TEST(AgentCommandTest, KnowsThisHost) {
  for (const char* host : {"localhost", "127.0.0.1", "node1", "node1.cluster"}) {
    EXPECT_TRUE(IsThisHost(host, "node1.cluster")) << host;
  }
  EXPECT_TRUE(IsThisHost("node1.cluster", "node1"));
  for (const char* host : {"node10", "node1.other", "", "user@node1"}) {
    EXPECT_FALSE(IsThisHost(host, "node1.cluster")) << host;
  }
}

}  // namespace
}  // namespace syncopate::launch
