#include "driver.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::peers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A rank of a job of three whose calls take 10 ns, 20 ns, 30 ns, ... and do nothing.
class FakeContestant final : public Contestant {
 public:
  FakeContestant(ManualClock& clock, int rank) : clock_(clock), rank_(rank), data_(4096) {}
  int rank() const override { return rank_; }
  int size() const override { return 3; }
  std::byte* data() override { return data_.data(); }
  absl::Status Prepare(const tools::bench::RunRequest&) override { return prepare; }
  bool TakesPart(const tools::bench::RunRequest& request) const override {
    return relays || Contestant::TakesPart(request);
  }
  absl::Status Call() override {
    clock_.AdvanceNs(10 * ++calls);
    return calls == failing_call ? absl::InternalError("broken") : absl::OkStatus();
  }
  absl::Status Barrier() override {
    clock_.AdvanceNs(1'000'000);  // never part of a sample
    ++barriers;
    return absl::OkStatus();
  }

  absl::Status prepare;
  int calls = 0;
  int barriers = 0;
  int failing_call = -1;
  bool relays = false;

 private:
  ManualClock& clock_;
  const int rank_;
  std::vector<std::byte> data_;
};

tools::bench::RunRequest SmallRun() {
  tools::bench::RunRequest request;
  request.bytes = 4096;
  request.warmup = 2;
  request.iterations = 3;
  return request;
}

TEST(MeasureTest, TimesTheCallsAfterWarmUpOnly) {
  ManualClock clock;
  FakeContestant contestant(clock, 0);
  const auto result = Measure(contestant, SmallRun(), clock);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->samples_ns, ElementsAre(30, 40, 50));
  EXPECT_EQ(result->wrong, 0u);
  EXPECT_EQ(contestant.barriers, 2);
}

TEST(MeasureTest, TimesRootedCallsOneByOne) {
  ManualClock clock;
  FakeContestant contestant(clock, 0);
  tools::bench::RunRequest request = SmallRun();
  request.collective = Collective::kBroadcast;
  const auto result = Measure(contestant, request, clock);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->samples_ns, ElementsAre(30, 40, 50));
  EXPECT_EQ(contestant.barriers, 2 + 3);
}

TEST(MeasureTest, CountsWrongElementsOfEveryCheckedCall) {
  ManualClock clock;
  FakeContestant contestant(clock, 0);
  tools::bench::RunRequest request = SmallRun();
  request.check = 1;
  const auto once = Measure(contestant, request, clock);
  request.check = 2;
  const auto twice = Measure(contestant, request, clock);
  ASSERT_TRUE(once.ok() && twice.ok());
  EXPECT_GT(once->wrong, 0u);
  EXPECT_LE(once->wrong, 1024u);
  EXPECT_GT(twice->wrong, once->wrong);
  EXPECT_EQ(contestant.calls, (1 + 5) + (2 + 5));
}

TEST(MeasureTest, ReportsNoTimesOfARankWithoutPart) {
  ManualClock clock;
  tools::bench::RunRequest request = SmallRun();
  request.collective = Collective::kSendReceive;
  FakeContestant between(clock, 1);
  EXPECT_THAT(Measure(between, request, clock)->samples_ns, IsEmpty());
  FakeContestant receiver(clock, 2);
  EXPECT_EQ(Measure(receiver, request, clock)->samples_ns.size(), 3u);
}

TEST(MeasureTest, WhoIsNotActiveIsCheckedButNotTimedIfItTakesPart) {
  ManualClock clock;
  tools::bench::RunRequest request = SmallRun();
  request.check = 1;
  request.active = {0, 2};
  FakeContestant peer(clock, 1);
  ASSERT_TRUE(Measure(peer, request, clock).ok());
  EXPECT_EQ(peer.calls + peer.barriers, 0) << "nothing to do for it";
  FakeContestant relay(clock, 1);
  relay.relays = true;
  const auto result = Measure(relay, request, clock);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(relay.calls, 1 + 5);
  EXPECT_THAT(result->samples_ns, IsEmpty());
  EXPECT_EQ(result->wrong, 0u) << "its data is as it was";
  FakeContestant active(clock, 2);
  EXPECT_GT(Measure(active, request, clock)->wrong, 0u);
}

TEST(MeasureTest, PassesErrorsOn) {
  ManualClock clock;
  FakeContestant cannot(clock, 0);
  cannot.prepare = absl::UnimplementedError("no such call");
  EXPECT_TRUE(absl::IsUnimplemented(Measure(cannot, SmallRun(), clock).status()));
  FakeContestant breaks(clock, 0);
  breaks.failing_call = 4;
  EXPECT_TRUE(absl::IsInternal(Measure(breaks, SmallRun(), clock).status()));
}

TEST(ParseDriverOptionsTest, ReadsWhatTheCommandPasses) {
  const char* const good[] = {"bench_x",     "--dir",     "/d",       "--workers", "3",
                              "--bytes-max", "64K",       "--memory", "heap",      "--algorithm",
                              "ring",        "--timeout", "2s"};
  const auto options = ParseDriverOptions(13, good);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->directory, "/d");
  EXPECT_EQ(options->workers, 3);
  EXPECT_EQ(options->bytes_max, 65536u);
  EXPECT_EQ(options->memory, "heap");
  EXPECT_EQ(options->algorithm, "ring");
  EXPECT_EQ(options->timeout, absl::Seconds(2));
}

TEST(ParseDriverOptionsTest, RefusesTheRest) {
  const std::vector<std::vector<const char*>> bad = {{"x"},
                                                     {"x", "--dir"},
                                                     {"x", "--dir", "/d", "--workers", "0"},
                                                     {"x", "--dir", "/d", "--bytes-max", "99999G"},
                                                     {"x", "--dir", "/d", "--speed", "high"}};
  for (const auto& arguments : bad) {
    EXPECT_FALSE(ParseDriverOptions(static_cast<int>(arguments.size()), arguments.data()).ok());
  }
  const char* const alone[] = {"x"};
  EXPECT_THAT(std::string(ParseDriverOptions(1, alone).status().message()),
              HasSubstr("syncopate bench"));
}

}  // namespace
}  // namespace syncopate::peers
