#include "tools/bench/rounds.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What happened, in order: "name iterations".
using Diary = std::vector<std::string>;

class FakeEntrant final : public Entrant {
 public:
  FakeEntrant(std::string name, int64_t call_ns, Diary& diary)
      : name_(std::move(name)), call_ns_(call_ns), diary_(diary) {}
  ~FakeEntrant() override { diary_.push_back(absl::StrCat(name_, " leaves")); }
  const std::string& name() const override { return name_; }
  absl::StatusOr<std::vector<RankResult>> Run(const RunRequest& request) override {
    diary_.push_back(absl::StrCat(name_, " ", request.iterations));
    if (--runs_until_failure == 0) return failure;
    RankResult rank{1, std::vector<int64_t>(static_cast<size_t>(request.iterations), call_ns_)};
    return std::vector<RankResult>{rank, rank};
  }

  int runs_until_failure = -1;
  absl::Status failure = absl::UnavailableError("rank 1 ended");

 private:
  const std::string name_;
  const int64_t call_ns_;
  Diary& diary_;
};

class RoundsTest : public ::testing::Test {
 protected:
  RoundsTest() {
    options_.sizes = {64};
    options_.rounds = 2;
    observer_.on_rows = [this](const std::vector<Row>& rows) {
      rows_.insert(rows_.end(), rows.begin(), rows.end());
    };
    observer_.on_drop = [this](const std::string& name, const absl::Status& why) {
      drops_.push_back(absl::StrCat(name, "|", why.message()));
    };
    observer_.on_progress = [this](uint64_t, int, const std::string&, double part) {
      parts_.push_back(part);
    };
  }

  FakeEntrant* Add(const std::string& name, int64_t call_ns) {
    auto entrant = std::make_unique<FakeEntrant>(name, call_ns, diary_);
    FakeEntrant* raw = entrant.get();
    entrants_.push_back(std::move(entrant));
    return raw;
  }
  absl::Status Run() {
    return RunRounds(options_, std::move(entrants_), GuessOnHost(2), observer_);
  }

  BenchOptions options_;
  RoundsObserver observer_;
  Diary diary_;
  std::vector<std::unique_ptr<Entrant>> entrants_;
  std::vector<Row> rows_;
  std::vector<std::string> drops_;
  std::vector<double> parts_;
};

TEST_F(RoundsTest, AlternateWithAnotherOneFirstInEveryRound) {
  Add("syncopate", 100'000);     // 1000 calls in a tenth of a second
  Add("openmpi", 1'000'000);     // 100
  Add("gloo", 100'000'000'000);  // the least that is allowed
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(diary_, ElementsAre("syncopate 5", "openmpi 5", "gloo 5",       // trials
                                  "syncopate 1000", "openmpi 100", "gloo 5",  // round 1
                                  "openmpi 100", "gloo 5", "syncopate 1000",  // round 2
                                  "syncopate leaves", "openmpi leaves", "gloo leaves"));
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_EQ(rows_[1].contestant, "openmpi");
  EXPECT_DOUBLE_EQ(rows_[1].ratio->p50, 10);
  EXPECT_EQ(rows_[1].rounds, 2);
  EXPECT_EQ(rows_[1].wrong, 6u);  // one of each of 2 ranks in 3 runs
  EXPECT_THAT(drops_, IsEmpty());
  EXPECT_TRUE(std::is_sorted(parts_.begin(), parts_.end()));
  EXPECT_LT(parts_.back(), 1);
}

TEST_F(RoundsTest, IterationsCanBeFixed) {
  options_.iterations = 7;
  options_.rounds = 1;
  Add("syncopate", 100);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(diary_[1], "syncopate 7");
}

TEST_F(RoundsTest, AFailedPeerLeavesAndTheOthersGoOn) {
  options_.sizes = {64, 128};
  Add("syncopate", 1'000'000'000);
  Add("openmpi", 1'000'000'000)->runs_until_failure = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(drops_, ElementsAre("openmpi|openmpi at 64 B: rank 1 ended"));
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_EQ(rows_[0].contestant, "syncopate");
  EXPECT_EQ(rows_[1].contestant, "syncopate");
  EXPECT_EQ(rows_[1].bytes, 128u);
}

TEST_F(RoundsTest, OurFailureEndsEverything) {
  Add("openmpi", 1'000'000'000);
  Add("syncopate", 1'000'000'000)->runs_until_failure = 2;
  const absl::Status status = Run();
  EXPECT_THAT(std::string(status.message()), HasSubstr("syncopate at 64 B: rank 1 ended"));
  EXPECT_THAT(rows_, IsEmpty());
}

TEST_F(RoundsTest, NobodyLeftIsAFailure) {
  FakeEntrant* only = Add("gloo", 1'000'000'000);
  only->runs_until_failure = 1;
  only->failure = absl::UnimplementedError("no bfloat16");
  EXPECT_THAT(std::string(Run().message()), HasSubstr("no bfloat16"));
}

TEST_F(RoundsTest, AnInterruptEndsEverythingWithoutBlame) {
  Add("syncopate", 1'000'000'000);
  FakeEntrant* peer = Add("gloo", 1'000'000'000);
  peer->runs_until_failure = 1;
  peer->failure = absl::CancelledError("interrupted");
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_THAT(drops_, IsEmpty());
}

}  // namespace
}  // namespace syncopate::tools::bench
