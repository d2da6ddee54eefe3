#include "tools/simulate_events.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;

sim::VirtualOptions EightWorkers() {
  sim::VirtualOptions options;
  options.workers = 8;
  options.slowness.assign(8, 1);
  options.slowness[2] = 1.5;
  return options;
}

TEST(SimulateEventsTest, EventsBecomeOptionsOfTheRun) {
  sim::VirtualOptions options = EightWorkers();
  options.message_delay = 1e-4;
  const absl::Status status =
      AddEvents({"2.5s:kill:3,4", "300ms:leave:5", "1s:join:6-7", "1s:slow:2:3x", "2s:slow:2:1x"},
                0.7, options);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(options.departures.size(), 3u);
  EXPECT_EQ(options.departures[1].rank, 4);
  EXPECT_DOUBLE_EQ(options.departures[1].at, 2.5);
  EXPECT_DOUBLE_EQ(options.departures[1].detection, 0.7);
  EXPECT_FALSE(options.departures[1].in_good_order);
  EXPECT_TRUE(options.departures[2].in_good_order);
  EXPECT_DOUBLE_EQ(options.departures[2].detection, 1e-4);
  ASSERT_EQ(options.joins.size(), 2u);
  EXPECT_EQ(options.joins[1].rank, 7);
  ASSERT_EQ(options.slowdowns.size(), 2u);
  EXPECT_DOUBLE_EQ(options.slowdowns[0].factor, 4.5);  // of what its pace says
  EXPECT_DOUBLE_EQ(options.slowdowns[1].factor, 1.5);
}

TEST(SimulateEventsTest, RefusesWhatMakesNoSense) {
  const auto refuses = [](const std::vector<std::string>& events, const std::string& text) {
    sim::VirtualOptions options = EightWorkers();
    const absl::Status status = AddEvents(events, 1, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  refuses({"3s"}, "--event 3s: expected TIME:kill:RANKS");
  refuses({"3s:stop:1"}, "expected TIME:kill:RANKS");
  refuses({"3s:kill:1:2x"}, "expected TIME:kill:RANKS");
  refuses({"3s:slow:1"}, "expected TIME:kill:RANKS");
  refuses({"3:kill:1"}, "--event 3:kill:1");
  refuses({"-1s:kill:1"}, "--event -1s:kill:1");
  refuses({"3s:kill:8"}, "--event 3s:kill:8");
  refuses({"3s:kill:"}, "--event 3s:kill:");
  refuses({"3s:slow:1:2"}, "is no factor");
  refuses({"3s:slow:1:0x"}, "--event 3s:slow:1:0x");
  refuses({"3s:slow:1:nanx"}, "--event 3s:slow:1:nanx");
  refuses({"3s:kill:1", "4s:leave:1"}, "goes twice");
  refuses({"3s:join:1", "4s:join:1"}, "joins twice");
  refuses({"3s:kill:1", "4s:join:1"}, "before it joins");
  refuses({"3s:join:0-7"}, "nobody is there");
  refuses(std::vector<std::string>(kSimulatedEventsMax + 1, "1s:slow:1:2x"), "at most");
}

}  // namespace
}  // namespace syncopate::tools
