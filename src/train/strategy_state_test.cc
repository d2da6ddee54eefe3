// What a strategy and the service that it asks know goes through checkpoints of whole training jobs: a job
// that goes on has it, and does not begin to count anew.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/strategy_message.h"
#include "strategy/registry.h"
#include "syncopate/service.h"
#include "train/trainer_testing.h"

namespace syncopate::train {
namespace {

using strategy::Command;
using strategy::Event;
using testing::RunJob;
using testing::SmallJob;

constexpr char kCounts[] = "counts-for-tests";
constexpr uint64_t kTallyWorkers = 2;

// Numbers the turns that it gives.
class Tally : public Service {
 public:
  absl::string_view name() const override { return "tally"; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(TurnGiven{.turn = ++turns_}))}},
            .reason = ""};
  }
  std::string State() const override {
    std::string out;
    Append(out, turns_);
    return out;
  }
  absl::Status Load(absl::string_view state) override {
    ByteReader reader(state);
    turns_ = reader.Read<uint64_t>();
    return reader.AtEnd() ? absl::OkStatus() : absl::DataLossError("no turns");
  }
  bool CanResume() const override { return true; }
  absl::Status Resume(absl::string_view state, const std::vector<int>& ranks) override {
    if (ranks.size() != kTallyWorkers) return absl::InternalError("ranks of another job");
    return Load(state);
  }

 private:
  uint64_t turns_ = 0;
};

struct Counted {
  uint64_t iterations = 0;
  uint64_t last_turn = 0;
};
absl::StatusOr<Counted> ReadCounted(absl::string_view state) {
  ByteReader reader(state);
  Counted counted;
  counted.iterations = reader.Read<uint64_t>();
  counted.last_turn = reader.Read<uint64_t>();
  if (!reader.AtEnd()) return absl::DataLossError("no count of iterations");
  return counted;
}

// Steps alone and asks for a turn after every iteration, which it waits for.
class Counts : public strategy::Strategy {
 public:
  explicit Counts(const strategy::StrategyOptions& options) : tensors_(options.table.size()) {}
  std::string name() const override { return kCounts; }
  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) needed_.push_back(e->tensor);
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      commands.push_back(
          strategy::ApplyUpdate{.update = strategy::Update::kStepLocal, .last = tensors_ - 1});
      commands.push_back(strategy::AskService{"tally", iteration_, WantTurn{}});
      waits_ = true;
    }
    if (const auto* e = std::get_if<strategy::Answered>(&event)) {
      ++counted_.iterations;
      counted_.last_turn = std::get<TurnGiven>(e->message).turn;
      waits_ = false;
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (waits_) return;
    for (const int tensor : std::exchange(needed_, {})) {
      commands.push_back(strategy::Proceed{tensor});
    }
    if (std::exchange(draining_, false)) commands.push_back(strategy::Drained{});
  }
  std::string State() const override {
    std::string out;
    Append(out, counted_.iterations);
    Append(out, counted_.last_turn);
    return out;
  }
  absl::Status Resume(absl::string_view state, const std::vector<int>&) override {
    const absl::StatusOr<Counted> counted = ReadCounted(state);
    if (counted.ok()) counted_ = *counted;
    return counted.status();
  }

 private:
  const int tensors_;
  int64_t iteration_ = 0;
  std::vector<int> needed_;
  bool waits_ = false, draining_ = false;
  Counted counted_;
};

absl::Status AddCounts() {
  static const absl::Status added = strategy::AddStrategy(
      {.name = kCounts,
       .about = "for tests",
       .lockstep = true,
       .moves = strategy::Moves::kParameters,
       .service = "tally",
       .make_service = [](const strategy::StrategyOptions&) -> std::unique_ptr<Service> {
         return std::make_unique<Tally>();
       },
       .data = strategy::DataMode::kIndependent,
       .make = [](const strategy::StrategyOptions& options)
           -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
         return std::make_unique<Counts>(options);
       }});
  return added;
}

class StrategyStateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(AddCounts().ok());
    options_ = SmallJob("mlp");
    options_.strategy = kCounts;
    options_.checkpoint_every = 4;
    options_.run_folder = folder_.path();
    for (const absl::Status& end : RunJob(kTallyWorkers, options_)) ASSERT_TRUE(end.ok()) << end;
    options_.resume = true;
    options_.iterations = 8;
  }
  std::string RankFile(int64_t set, uint64_t rank) const {
    return absl::StrCat(folder_.path(), "/checkpoint-", set, "/rank-", rank);
  }

  const TemporaryFolder folder_;
  TrainOptions options_;
};

TEST_F(StrategyStateTest, GoesOnWhereStrategyAndServiceWere) {
  for (const absl::Status& end : RunJob(kTallyWorkers, options_)) ASSERT_TRUE(end.ok()) << end;
  for (const int64_t set : {4, 8}) {
    for (uint64_t rank = 0; rank < kTallyWorkers; ++rank) {
      const auto part = LoadCheckpoint(RankFile(set, rank));
      ASSERT_TRUE(part.ok()) << part.status();
      const auto counted = ReadCounted(part->strategy);
      ASSERT_TRUE(counted.ok()) << counted.status();
      const auto iterations = static_cast<uint64_t>(set);
      EXPECT_EQ(counted->iterations, iterations) << "rank " << rank;
      // One that is quicker has its turns earlier, but of the second part none has a number of the first.
      EXPECT_GT(counted->last_turn, (iterations - 4) * kTallyWorkers) << "rank " << rank;
      EXPECT_LE(counted->last_turn, iterations * kTallyWorkers) << "rank " << rank;
    }
  }
}

TEST_F(StrategyStateTest, AStateThatCannotBeReadIsRefusedWithItsPlace) {
  for (uint64_t rank = 0; rank < kTallyWorkers; ++rank) {
    auto part = LoadCheckpoint(RankFile(4, rank));
    ASSERT_TRUE(part.ok()) << part.status();
    part->strategy = "short";
    ASSERT_TRUE(SaveCheckpoint(RankFile(4, rank), *part).ok());
  }
  for (const absl::Status& end : RunJob(kTallyWorkers, options_)) {
    EXPECT_TRUE(absl::IsDataLoss(end)) << end;
    EXPECT_THAT(std::string(end.message()),
                ::testing::AllOf(::testing::HasSubstr("the state of strategy counts-for-tests"),
                                 ::testing::HasSubstr("no count of iterations")));
  }
}

}  // namespace
}  // namespace syncopate::train
