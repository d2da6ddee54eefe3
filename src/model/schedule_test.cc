#include "model/schedule.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

Schedule SampleSchedule() { return {"asc-wfbp", {{4, 6, 0}, {3, 3, 1}, {0, 2, 2}}}; }

TEST(ScheduleTest, TextRoundTrips) {
  const absl::StatusOr<Schedule> back = ParseSchedule(ToText(SampleSchedule()));
  ASSERT_EQ(std::string(back.status().message()), "");
  EXPECT_EQ(*back, SampleSchedule());
  EXPECT_EQ(ToText(SampleSchedule()),
            "syncopate schedule 1\nplanner asc-wfbp\ntransfer 4-6\ntransfer 3 beside 1\n"
            "transfer 0-2 beside 2\nend\n");
}

TEST(ScheduleTest, TheDigestIsOfWhatIsSentAndNotOfWhoPlannedIt) {
  Schedule other = SampleSchedule();
  other.planner = "search";
  EXPECT_EQ(DigestOf(other), DigestOf(SampleSchedule()));
  other.transfers[2].beside = 1;
  EXPECT_FALSE(DigestOf(other) == DigestOf(SampleSchedule()));
}

TEST(ScheduleTest, RefusesTensorsThatAreSentTwiceOrNotAtAll) {
  const auto fault = [](const Schedule& schedule, int tensors) {
    return std::string(Validate(schedule, tensors).message());
  };
  EXPECT_EQ(fault(SampleSchedule(), 7), "");
  EXPECT_THAT(fault(SampleSchedule(), 8),
              HasSubstr("transfers[0]: tensors 4-6 where a run that ends with "
                        "tensor 7 comes next"));
  EXPECT_THAT(fault({"p", {{1, 2, 0}}}, 3), HasSubstr("no transfer holds the tensors 0-0"));
  EXPECT_THAT(fault({"p", {{0, 2, 0}, {0, 0, 0}}}, 3), HasSubstr("after tensor 0 was sent"));
  EXPECT_THAT(fault({"p", {{2, 2, 0}, {0, 2, 0}}}, 3), HasSubstr("transfers[1]"));
  EXPECT_THAT(fault({"p", {{0, 2, 1}}}, 3), HasSubstr("beside 1 is not a number from 0 to 0"));
  EXPECT_THAT(fault({"p", {{1, 2, 0}, {0, 0, 64}}}, 3), HasSubstr("beside 64"));
  EXPECT_THAT(fault({"", {{0, 2, 0}}}, 3), HasSubstr("planner"));
  EXPECT_THAT(fault({"p", {}}, 0), HasSubstr("cannot be for 0 tensors"));
}

TEST(ScheduleTest, NamesTheLineAtFault) {
  const auto fault = [](absl::string_view body) {
    return std::string(ParseSchedule(absl::StrCat("syncopate schedule 1\nplanner p # ours\n", body))
                           .status()
                           .message());
  };
  EXPECT_EQ(fault("transfer 0-3\nend\n"), "");
  EXPECT_THAT(fault("transfer 3-0\nend\n"), HasSubstr("line 3: "));
  EXPECT_THAT(fault("transfer 0 besides 1\nend\n"), HasSubstr("line 3: write \"transfer"));
  EXPECT_THAT(fault("\nsend 0\nend\n"), HasSubstr("line 4: unknown line"));
  EXPECT_THAT(fault("transfer 0-3\n"), HasSubstr("stops before its \"end\""));
  EXPECT_THAT(fault("transfer 0-3\nend\ntransfer 0\n"), HasSubstr("nothing may follow"));
  EXPECT_THAT(fault("transfer 0-99999999\nend\n"), HasSubstr("line 3: "));
  EXPECT_THAT(fault("planner q\ntransfer 0\nend\n"), HasSubstr("two planners"));
  EXPECT_THAT(std::string(ParseSchedule("").status().message()), HasSubstr("stops before"));
  EXPECT_THAT(std::string(ParseSchedule("hello\n").status().message()),
              HasSubstr("line 1: a schedule starts with"));
}

}  // namespace
}  // namespace syncopate
