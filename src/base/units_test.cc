#include "base/units.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

TEST(ParseRateTest, TellsBitsFromBytesAndPowersOf1000From1024) {
  EXPECT_DOUBLE_EQ(*ParseRate("10Gbit/s"), 1.25e9);
  EXPECT_DOUBLE_EQ(*ParseRate("200 Mbit/s"), 25e6);
  EXPECT_DOUBLE_EQ(*ParseRate("1.25GB/s"), 1.25e9);
  EXPECT_DOUBLE_EQ(*ParseRate("1KiB/s"), 1024);
  EXPECT_DOUBLE_EQ(*ParseRate("1kB/s"), 1000);
  EXPECT_DOUBLE_EQ(*ParseRate("9600bit/s"), 1200);
}

TEST(ParseRateTest, RefusesWhatIsNotAPositiveRate) {
  for (const char* bad : {"", "10", "10G", "10Gb/s", "-1GB/s", "0bit/s", "GB/s", "1XB/s",
                          "1GB/s and more", "1e400GB/s", "nanB/s"}) {
    const auto rate = ParseRate(bad);
    ASSERT_FALSE(rate.ok()) << bad;
    EXPECT_THAT(std::string(rate.status().message()), HasSubstr(bad));
  }
}

TEST(ParseSecondsTest, KnowsTheUnits) {
  EXPECT_DOUBLE_EQ(*ParseSeconds("50us"), 50e-6);
  EXPECT_DOUBLE_EQ(*ParseSeconds("1.5 ms"), 1.5e-3);
  EXPECT_DOUBLE_EQ(*ParseSeconds("200ns"), 200e-9);
  EXPECT_DOUBLE_EQ(*ParseSeconds("0s"), 0);
  for (const char* bad : {"", "5", "us", "-1us", "5min", "1us "}) {
    EXPECT_FALSE(ParseSeconds(bad).ok()) << bad;
  }
}

TEST(FormatTest, ChoosesTheUnit) {
  EXPECT_EQ(FormatRate(1.25e9), "1.25 GB/s");
  EXPECT_EQ(FormatRate(17), "17 B/s");
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(1.23e-5), "12.3 us");
  EXPECT_EQ(FormatSeconds(3e-7), "300 ns");
  EXPECT_EQ(FormatSeconds(0.25), "250 ms");
  EXPECT_EQ(FormatSeconds(61), "61 s");
}

}  // namespace
}  // namespace syncopate
