#include "services/sample_ranges.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/sample_holder.h"

namespace syncopate::services {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(IntervalsTest, SetsOfSamples) {
  Intervals set;
  AddInterval(set, {4, 2});
  AddInterval(set, {10, 5});
  AddInterval(set, {6, 1});  // touches
  EXPECT_THAT(set, ElementsAre(Interval{4, 3}, Interval{10, 5}));
  AddInterval(set, {5, 6});
  EXPECT_THAT(set, ElementsAre(Interval{4, 11}));
  AddInterval(set, {0, 0});
  EXPECT_EQ(CountOf(set), 11u);
  EXPECT_THAT(Complement(set, 20), ElementsAre(Interval{0, 4}, Interval{15, 5}));
  EXPECT_THAT(Complement(set, 10), ElementsAre(Interval{0, 4}));
  EXPECT_THAT(Complement({}, 0), IsEmpty());
}

TEST(IntervalsTest, AgreeWithSetsOfNumbers) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Intervals set;
    std::vector<bool> in(40);
    for (int i = 0; i < 12; ++i) {
      const Interval interval = {random.Below(30), random.Below(8)};
      AddInterval(set, interval);
      for (uint64_t k = interval.first; k < interval.end(); ++k) in[k] = true;
      uint64_t count = 0;
      for (const Interval& each : set) {
        for (uint64_t k = each.first; k < each.end(); ++k, ++count) ASSERT_TRUE(in[k]) << seed;
      }
      ASSERT_EQ(count, static_cast<uint64_t>(std::count(in.begin(), in.end(), true))) << seed;
      ASSERT_EQ(CountOf(Complement(set, 40)), 40 - count);
    }
  }
}

// Holders that talk to one service; it is loaded from its own bytes before every step.
class Holders {
 public:
  explicit Holders(const SampleRangesOptions& options) : options_(options), service_(options) {}

  // The grant; nothing if the request waits.
  void Take(int rank, uint64_t want) {
    const SampleHolder::Ask ask = holders_[rank].Take(want);
    tags_[++tickets_] = ask.tag;
    Step(Asked{rank, tickets_, ask.bytes});
  }
  void UseAll(int rank) {
    std::vector<ServiceId> ids;
    for (const auto& [id, range] : holders_[rank].held()) ids.push_back(id);
    holders_[rank].Use(ids);
  }
  void Step(const ServiceEvent& event) {
    SampleRanges copy(options_);
    ASSERT_TRUE(copy.Load(service_.State()).ok());
    ASSERT_EQ(copy.State(), service_.State());
    service_ = copy;
    for (const Answer& answer :
         service_.Step({.now_ns = 0, .incarnation = incarnation_}, event).answers) {
      auto grant = holders_[answer.to].Answered(tags_.at(answer.ticket), answer.code, answer.bytes);
      ASSERT_TRUE(grant.ok()) << grant.status();
      grants_[answer.to].push_back(*grant);
    }
  }
  SummaryAnswer Summary() {
    const auto step = service_.Step({}, Asked{0, 9999, EncodeSampleRequest(SummaryRequest{})});
    return std::get<SummaryAnswer>(*DecodeSampleAnswer(step.answers.at(0).bytes));
  }
  const GrantAnswer& Last(int rank) { return grants_[rank].back(); }

  SampleRangesOptions options_;
  SampleRanges service_;
  std::map<int, SampleHolder> holders_;
  std::map<int, std::vector<GrantAnswer>> grants_;
  std::map<uint64_t, uint64_t> tags_;
  uint64_t tickets_ = 0;
  uint64_t incarnation_ = 0;
};

TEST(SampleRangesTest, RangesAreHandedOutInOrderAndCountWhenSaid) {
  Holders holders({.samples = 10, .epochs = 1, .ahead = 0});
  holders.Take(0, 4);
  holders.Take(1, 4);
  EXPECT_THAT(holders.Last(0).ranges, ElementsAre(SampleRange{{0, 1}, 0, {0, 4}}));
  EXPECT_THAT(holders.Last(1).ranges, ElementsAre(SampleRange{{0, 2}, 0, {4, 4}}));
  EXPECT_EQ(CountOf(holders.Summary().progress, 10), 0u);
  holders.UseAll(0);
  holders.Take(0, 4);
  EXPECT_EQ(CountOf(holders.Summary().progress, 10), 4u);
  EXPECT_THAT(holders.Last(0).ranges, ElementsAre(SampleRange{{0, 3}, 0, {8, 2}}));
  holders.UseAll(0);
  holders.Take(0, 4);  // waits: rank 1 may be lost
  EXPECT_THAT(holders.grants_[0], SizeIs(2));
  holders.UseAll(1);
  holders.Take(1, 0);  // only says so
  EXPECT_TRUE(holders.Last(1).over);
  EXPECT_TRUE(holders.Last(0).over);
  EXPECT_THAT(holders.holders_[0].held(), IsEmpty());
  EXPECT_EQ(holders.Summary().progress.done, 1u);
  EXPECT_EQ(holders.Summary().repeated, 0u);
}

TEST(SampleRangesTest, UnsaidRangesOfTheDeadAreHandedOutAgainFirst) {
  Holders holders({.samples = 12, .epochs = 1, .ahead = 0});
  holders.Take(0, 4);
  holders.Take(1, 4);
  holders.UseAll(0);
  holders.Take(0, 1);
  holders.Step(Departed{0, false});  // 0 to 3 counted, 8 comes back
  holders.Take(1, 3);
  EXPECT_THAT(holders.Last(1).ranges,
              ElementsAre(SampleRange{{0, 4}, 0, {8, 1}}, SampleRange{{0, 5}, 0, {9, 2}}));
  EXPECT_EQ(holders.Summary().repeated, 1u);
  holders.UseAll(1);
  holders.Take(1, 9);
  holders.UseAll(1);
  holders.Take(1, 9);
  EXPECT_TRUE(holders.Last(1).over);
}

TEST(SampleRangesTest, OneThatWaitsGetsWhatTheDeadHeld) {
  Holders holders({.samples = 4, .epochs = 1, .ahead = 3});
  holders.Take(0, 4);
  holders.Take(1, 4);
  EXPECT_THAT(holders.grants_[1], IsEmpty());
  holders.Step(Departed{0, true});
  EXPECT_THAT(holders.Last(1).ranges, ElementsAre(SampleRange{{0, 2}, 0, {0, 4}}));
}

TEST(SampleRangesTest, NobodyWaitsAtTheEndOfAnEpochThatIsNotTheLast) {
  Holders holders({.samples = 4, .epochs = 3, .ahead = 1});
  holders.Take(0, 4);
  holders.Take(1, 4);
  EXPECT_EQ(holders.Last(1).ranges[0].epoch, 1u);
  holders.UseAll(1);
  holders.Take(1, 4);  // two epochs ahead is too far
  EXPECT_THAT(holders.grants_[1], SizeIs(1));
  holders.UseAll(0);
  holders.Take(0, 1);
  EXPECT_EQ(holders.Last(1).ranges[0].epoch, 2u);
  EXPECT_EQ(holders.Last(1).done, 2u);  // epoch 1 was complete before epoch 0
}

// It waited for itself, and others for what it held, until the end of the job.
TEST(SampleRangesTest, OneThatHoldsWhatOthersWaitForIsToldToSayItFirst) {
  Holders holders({.samples = 8, .epochs = 1, .ahead = 0});
  holders.Take(0, 4);
  holders.Take(1, 4);
  holders.UseAll(1);
  holders.Take(1, 4);  // waits: rank 0 may be lost
  EXPECT_THAT(holders.grants_[1], SizeIs(1));
  holders.Take(0, 4);  // behind it in the queue
  ASSERT_THAT(holders.grants_[0], SizeIs(2));
  EXPECT_THAT(holders.Last(0).ranges, IsEmpty());
  EXPECT_FALSE(holders.Last(0).over);
  holders.UseAll(0);
  holders.Take(0, 4);
  EXPECT_TRUE(holders.Last(0).over);
  EXPECT_TRUE(holders.Last(1).over);
}

TEST(SampleRangesTest, AJobThatGoesOnHandsOutWhatDoesNotCountYet) {
  SampleProgress before = {.done = 1, .open = {{{2, 3}, {6, 1}}, {{0, 2}}}};
  SampleRangesOptions options = {.samples = 8, .epochs = 4, .ahead = 1, .before = before};
  ASSERT_TRUE(SampleRanges::Validate(options).ok());
  Holders holders(options);
  EXPECT_EQ(holders.Summary().progress, before);
  EXPECT_EQ(CountOf(before, 8), 14u);
  holders.Take(0, 8);
  EXPECT_THAT(holders.Last(0).ranges,
              ElementsAre(SampleRange{{0, 1}, 1, {0, 2}}, SampleRange{{0, 2}, 1, {5, 1}},
                          SampleRange{{0, 3}, 1, {7, 1}}));
  holders.Take(1, 4);
  EXPECT_THAT(holders.Last(1).ranges, ElementsAre(SampleRange{{0, 4}, 2, {2, 4}}));
  holders.UseAll(0);
  holders.Take(0, 0);
  EXPECT_EQ(holders.Last(0).done, 2u);
  // Rebuilt it knows what counted before, too.
  ASSERT_TRUE(holders.service_
                  .Rebuild({.now_ns = 0, .incarnation = 3},
                           {{0, holders.holders_[0].Report()}, {1, holders.holders_[1].Report()}})
                  .ok());
  EXPECT_EQ(holders.Summary().progress, (SampleProgress{.done = 2, .open = {{{0, 2}}}}));
  holders.Take(0, 8);
  EXPECT_THAT(holders.Last(0).ranges, ElementsAre(SampleRange{{0, 1}, 2, {6, 2}}));

  options.before.open.push_back({{7, 2}});  // more than an epoch has
  EXPECT_FALSE(SampleRanges::Validate(options).ok());
  options.before = {.done = 5, .open = {}};
  EXPECT_FALSE(SampleRanges::Validate(options).ok());
  options.before = {.done = 4, .open = {}};
  EXPECT_TRUE(SampleRanges::Validate(options).ok());
}

TEST(SampleRangesTest, OnlyItsHolderMaySayARange) {
  SampleRanges service({.samples = 4, .epochs = 1, .ahead = 0});
  service.Step({}, Asked{0, 1, EncodeSampleRequest(NextRequest{4, {}})});
  for (const auto& said : {NextRequest{0, {{0, 1}}}, NextRequest{0, {{5, 5}}}}) {
    const auto step = service.Step({}, Asked{1, 2, EncodeSampleRequest(said)});
    ASSERT_THAT(step.answers, SizeIs(1));
    EXPECT_EQ(step.answers[0].code, absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(step.answers[0].bytes, HasSubstr("does not hold"));
  }
  // Twice in one request counts once.
  const auto step =
      service.Step({}, Asked{0, 3, EncodeSampleRequest(NextRequest{0, {{0, 1}, {0, 1}}})});
  EXPECT_TRUE(std::get<GrantAnswer>(*DecodeSampleAnswer(step.answers.at(0).bytes)).over);
  EXPECT_EQ(service.Step({}, Asked{0, 4, "nonsense"}).answers.at(0).code,
            absl::StatusCode::kInvalidArgument);
}

TEST(SampleRangesTest, RebuiltItMissesNothingAndSaysWhatMayCountTwice) {
  Holders holders({.samples = 16, .epochs = 2, .ahead = 0});
  for (int rank = 0; rank < 3; ++rank) holders.Take(rank, 4);  // 0-3, 4-7, 8-11
  holders.UseAll(0);
  holders.Take(0, 2);  // 0-3 counted, holds 12, 13
  holders.UseAll(1);
  holders.Take(1, 2);  // 4-7 counted, holds 14, 15; it is lost with host and standby
  holders.incarnation_ = 9;
  const auto repeats = holders.service_.Rebuild(
      {.now_ns = 0, .incarnation = 9},
      {{0, holders.holders_[0].Report()}, {2, holders.holders_[2].Report()}});
  ASSERT_TRUE(repeats.ok()) << repeats.status();
  // Nobody knows of 14 and 15.
  EXPECT_THAT(*repeats, HasSubstr("up to 4 samples of epoch 0"));
  EXPECT_EQ(CountOf(holders.Summary().progress, 16), 4u);
  holders.UseAll(2);
  holders.Take(2, 8);
  EXPECT_THAT(holders.Last(2).ranges,
              ElementsAre(SampleRange{{9, 1}, 0, {4, 4}}, SampleRange{{9, 2}, 0, {14, 2}}));
  holders.UseAll(0);
  holders.Take(0, 0);  // ids from before count
  holders.UseAll(2);
  holders.Take(2, 1);
  EXPECT_EQ(holders.Last(2).done, 1u);
}

TEST(SampleRangesTest, ImpossibleReportsAndStatesAreRefused) {
  SampleRanges service({.samples = 8, .epochs = 1, .ahead = 0});
  const SampleReport beyond = {0, {}, {{{0, 1}, 0, {6, 4}}}};
  EXPECT_FALSE(service.Rebuild({}, {{0, EncodeSampleReport(beyond)}}).ok());
  const SampleReport later = {0, {{3, {{0, 1}}}}, {}};
  EXPECT_FALSE(service.Rebuild({}, {{0, EncodeSampleReport(later)}}).ok());
  SampleRanges some({.samples = 8, .epochs = 1, .ahead = 0});
  some.Step({}, Asked{0, 1, EncodeSampleRequest(NextRequest{4, {}})});
  some.Step({}, Asked{1, 1, EncodeSampleRequest(NextRequest{8, {}})});
  some.Step({}, Asked{2, 1, EncodeSampleRequest(NextRequest{8, {}})});
  const std::string state = some.State();
  for (size_t length = 0; length < state.size(); ++length) {
    EXPECT_FALSE(service.Load(absl::string_view(state).substr(0, length)).ok()) << length;
  }
  EXPECT_TRUE(service.Load(state).ok());
  EXPECT_FALSE(SampleRanges::Validate({.samples = 0}).ok());
  EXPECT_FALSE(SampleRanges::Validate({.samples = limits::kSamplesMax + 1}).ok());
  EXPECT_TRUE(SampleRanges::Validate({}).ok());
}

// Workers at random speed that are lost at random: every sample counts once in every epoch.
TEST(SampleRangesTest, EpochsAreExactAtEverySpeed) {
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    Random random(seed);
    const uint64_t samples = 1 + random.Below(50), epochs = 1 + random.Below(3);
    Holders holders({.samples = samples, .epochs = epochs, .ahead = random.Below(3)});
    std::map<std::pair<uint64_t, uint64_t>, int> counted;  // epoch, sample
    std::vector<int> live = {0, 1, 2, 3, 4};
    std::map<int, size_t> waits_after;  // how many grants it had when it asked
    for (int i = 0; i < 5000 && holders.Summary().progress.done < epochs; ++i) {
      const size_t index = random.Below(live.size());
      const int rank = live[index];
      if (random.Below(30) == 0 && live.size() > 1) {
        live.erase(live.begin() + static_cast<ptrdiff_t>(index));
        holders.Step(Departed{rank, false});
        continue;
      }
      if (waits_after.contains(rank) && holders.grants_[rank].size() <= waits_after[rank]) continue;
      for (const auto& [id, range] : holders.holders_[rank].held()) {
        for (uint64_t k = 0; k < range.samples.count; ++k) {
          ++counted[{range.epoch, range.samples.first + k}];
        }
      }
      holders.UseAll(rank);
      waits_after[rank] = holders.grants_[rank].size();
      holders.Take(rank, 1 + random.Below(8));
    }
    ASSERT_EQ(holders.Summary().progress.done, epochs) << seed;
    ASSERT_EQ(counted.size(), samples * epochs) << seed;
    for (const auto& [key, times] : counted) ASSERT_EQ(times, 1) << seed;
  }
}

}  // namespace
}  // namespace syncopate::services
