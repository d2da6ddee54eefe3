#include "base/parse.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseIntTest, TakesAllOfTheTextWithinItsBounds) {
  EXPECT_EQ(*ParseInt("17", 0, 17), 17);
  for (const char* bad : {"", "18", "-1", "1.5", "3x", "99999999999999999999", "0x1"}) {
    EXPECT_FALSE(ParseInt(bad, 0, 17).ok()) << bad;
  }
}

TEST(ParseIntTest, TakesNoSignButTheMinusOfANegativeNumber) {
  EXPECT_EQ(*ParseInt("-3", -5, 5), -3);
  EXPECT_EQ(*ParseInt("-9223372036854775808", INT64_MIN, 0), INT64_MIN);
  for (const char* bad : {"+1", "-0", "- 1", "--1", "-", " 1", "1 ", "1\n"}) {
    EXPECT_FALSE(ParseInt(bad, 0, 17).ok()) << bad;
  }
  for (const char* bad : {"+1", "- 1", "--1", "-", " -1", "-1 "}) {
    EXPECT_FALSE(ParseInt(bad, -17, 17).ok()) << bad;
  }
}

TEST(ParseDoubleTest, RefusesWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(*ParseDouble("1.5", 0, 2), 1.5);
  for (const char* bad : {"nan", "inf", "-inf", "", "2.1", "x"})
    EXPECT_FALSE(ParseDouble(bad, 0, 2).ok()) << bad;
}

TEST(ParseBytesTest, KnowsTheSuffixes) {
  EXPECT_EQ(*ParseBytes("4096", 1 << 30), 4096u);
  EXPECT_EQ(*ParseBytes("4K", 1 << 30), 4096u);
  EXPECT_EQ(*ParseBytes("1.5MiB", 1 << 30), 1536u * 1024);
  EXPECT_EQ(*ParseBytes("1g", 1 << 30), uint64_t{1} << 30);
  for (const char* bad : {"", "K", "4Q", "-1", "2G", "1.0001K", "4 K"}) {
    EXPECT_FALSE(ParseBytes(bad, 1 << 30).ok()) << bad;
  }
}

TEST(ParseDurationTest, KnowsTheUnits) {
  EXPECT_EQ(*ParseDurationNs("500ms"), 500'000'000);
  EXPECT_EQ(*ParseDurationNs("5"), 5'000'000'000);
  EXPECT_EQ(*ParseDurationNs("2m"), 120'000'000'000);
  for (const char* bad : {"", "0", "5parsec", "-3s", "9999999h"})
    EXPECT_FALSE(ParseDurationNs(bad).ok()) << bad;
}

TEST(ParseRanksTest, RoundTrips) {
  EXPECT_THAT(*ParseRanks("6,0-2,1", 8), ElementsAre(0, 1, 2, 6));
  EXPECT_EQ(FormatRanks({0, 1, 2, 6}), "0-2,6");
  EXPECT_EQ(FormatRanks({}), "");
  for (const char* bad : {"", "8", "3-1", "a", "1,,2", "0-99999999999"})
    EXPECT_FALSE(ParseRanks(bad, 8).ok()) << bad;
}

// A mebibyte of text that names all ranks again and again once took 2.4 GB. The capacity of the
// result shows what was taken on the way.
TEST(ParseRanksTest, RepeatsTakeNoMemory) {
  std::string text = "0-4095";
  while (text.size() < 8192) text += ",0-4095,17";
  const absl::StatusOr<std::vector<int>> ranks = ParseRanks(text, 4096);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(FormatRanks(*ranks), "0-4095");
  EXPECT_LE(ranks->capacity(), 2u * 4096);
}

TEST(FormatBytesTest, ChoosesTheUnit) {
  EXPECT_EQ(FormatBytes(17), "17 B");
  EXPECT_EQ(FormatBytes(4096), "4 KiB");
  EXPECT_EQ(FormatBytes(3 << 19), "1.5 MiB");
}

TEST(FileTest, WritesReadsAndRefusesTheTooLarge) {
  const std::string path = ::testing::TempDir() + "/parse_test_" + std::to_string(getpid());
  ASSERT_TRUE(WriteFile(path, "abc").ok());
  EXPECT_EQ(*ReadFile(path, 3), "abc");
  EXPECT_GT(ReadFile("/proc/self/status", 1 << 20)->size(), 0u);  // its size is told as 0
  EXPECT_THAT(std::string(ReadFile(path, 2).status().message()), HasSubstr(path));
  unlink(path.c_str());
  EXPECT_THAT(std::string(ReadFile(path, 3).status().message()), HasSubstr("No such file"));
  EXPECT_FALSE(WriteFile("/nonexistent/file", "abc").ok());
}

}  // namespace
}  // namespace syncopate
