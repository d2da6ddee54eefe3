#include "tools/doctor/measured_host.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;

MeasuredHost Example() {
  MeasuredHost host;
  host.machine = "AMD EPYC, 2 cores, 8 GiB";
  host.date = "2026-03-14";
  host.costs.memory_bandwidth = 33.25e9;
  host.costs.cached_bandwidth = 287.5e9;
  host.costs.cache_bytes = 16 << 20;
  host.costs.handover = 0.27e-6;
  host.costs.handover_oversubscribed = 1.9e-6;
  return host;
}

class MeasuredHostTest : public ::testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  const Environment environment_ = MapEnvironment({{"SYNCOPATE_CACHE", folder_ + "/new"}});
};

TEST_F(MeasuredHostTest, IsKeptForItsMachine) {
  const MeasuredHost host = Example();
  EXPECT_FALSE(LoadMeasuredHost(environment_, host.machine).has_value());
  ASSERT_TRUE(SaveMeasuredHost(environment_, host).ok());
  const std::optional<MeasuredHost> loaded = LoadMeasuredHost(environment_, host.machine);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->date, host.date);
  EXPECT_EQ(loaded->costs.cores, host.costs.cores);
  EXPECT_EQ(loaded->costs.memory_bandwidth, host.costs.memory_bandwidth);
  EXPECT_EQ(loaded->costs.cached_bandwidth, host.costs.cached_bandwidth);
  EXPECT_EQ(loaded->costs.cache_bytes, host.costs.cache_bytes);
  EXPECT_EQ(loaded->costs.handover, host.costs.handover);
  EXPECT_EQ(loaded->costs.handover_oversubscribed, host.costs.handover_oversubscribed);
}

TEST_F(MeasuredHostTest, ABusyMachineDoesNotReplaceAQuietOne) {
  MeasuredHost busy = Example();
  busy.busy = true;
  busy.date = "2026-03-15";
  EXPECT_EQ(*SaveMeasuredHost(environment_, busy), true);  // better than nothing
  EXPECT_EQ(LoadMeasuredHost(environment_, busy.machine)->busy, true);
  EXPECT_EQ(*SaveMeasuredHost(environment_, Example()), true);
  EXPECT_EQ(*SaveMeasuredHost(environment_, busy), false);
  EXPECT_EQ(LoadMeasuredHost(environment_, busy.machine)->date, Example().date);
}

TEST_F(MeasuredHostTest, AnotherMachineHasItsOwn) {
  ASSERT_TRUE(SaveMeasuredHost(environment_, Example()).ok());
  EXPECT_FALSE(LoadMeasuredHost(environment_, "AMD EPYC, 64 cores, 8 GiB").has_value());
  // Nor does a file help that was copied to the other one's name.
  const std::string other = *MeasuredHostFile(environment_, "AMD EPYC, 64 cores, 8 GiB");
  std::filesystem::copy(*MeasuredHostFile(environment_, Example().machine), other);
  EXPECT_FALSE(LoadMeasuredHost(environment_, "AMD EPYC, 64 cores, 8 GiB").has_value());
}

TEST_F(MeasuredHostTest, AFileThatMakesNoSenseCountsAsNone) {
  ASSERT_TRUE(SaveMeasuredHost(environment_, Example()).ok());
  const std::string path = *MeasuredHostFile(environment_, Example().machine);
  for (const std::string& text : {std::string("{"), std::string(), ToJson(Example()).substr(0, 100),
                                  std::string(1 << 20, ' ')}) {
    ASSERT_TRUE(WriteFile(path, text).ok());
    EXPECT_FALSE(LoadMeasuredHost(environment_, Example().machine).has_value());
  }
}

TEST_F(MeasuredHostTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ + "/file") << "x";
  const absl::StatusOr<bool> saved =
      SaveMeasuredHost(MapEnvironment({{"SYNCOPATE_CACHE", folder_ + "/file/below"}}), Example());
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr(folder_ + "/file/below"));
}

TEST(ParseMeasuredHostTest, EveryFaultIsNamed) {
  const std::string good = ToJson(Example());
  ASSERT_TRUE(ParseMeasuredHost(good).ok()) << good;
  const auto fault = [&](const std::string& from, const std::string& to) {
    const std::string text = absl::StrReplaceAll(good, {{from, to}});
    EXPECT_NE(text, good) << from;
    return std::string(ParseMeasuredHost(text).status().message());
  };
  EXPECT_THAT(fault("\"version\": 1", "\"version\": 2"), HasSubstr("version 2"));
  EXPECT_THAT(fault("\"cores\": 2", "\"cores\": 0"), HasSubstr("cores"));
  EXPECT_THAT(fault("\"cores\": 2", "\"cores\": -2"), HasSubstr("cores"));
  EXPECT_THAT(fault("\"cores\": 2", "\"cores\": 99999999999"), HasSubstr("cores"));
  EXPECT_THAT(fault("\"date\": \"2026-03-14\"", "\"date\": 5"), HasSubstr("date"));
  EXPECT_THAT(fault("\"busy\": false", "\"busy\": 0"), HasSubstr("busy"));
  EXPECT_THAT(fault("\"memory_bandwidth\": ", "\"memory_bandwidth\": -"),
              HasSubstr("memory_bandwidth"));
  EXPECT_THAT(fault("\"handover\": ", "\"handed\": "), HasSubstr("handover is missing"));
  EXPECT_THAT(fault("\"cache_bytes\": ", "\"cache_bytes\": 0."), HasSubstr("cache_bytes"));
}

}  // namespace
}  // namespace syncopate::tools
