// What experiments do when a hypervisor takes processor time from hosts that are being measured.
#include "probe/experiments.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::probe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kUnitSeconds = 0.25;

// Every run gives the number of the run as rate, and has stolen what the script says for it; after
// its end the last entry holds. Time passes only by runs and waits.
class ScriptedOracle final : public Oracle {
 public:
  using Losses = std::map<int, double>;  // by worker

  explicit ScriptedOracle(std::vector<Losses> script) : script_(std::move(script)) {}

  int size() const override { return 4; }
  std::string HostOf(int worker) const override { return "h" + std::to_string(worker); }
  absl::StatusOr<double> Latency(int, int) override { return 1e-4; }
  absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow> flows, double seconds) override {
    ++runs_;
    elapsed_ += seconds;
    return std::vector<double>(flows.size(), runs_);
  }
  double Stolen(int worker) const override {
    const Losses& now = script_[std::min(static_cast<size_t>(runs_), script_.size()) - 1];
    const auto found = now.find(worker);
    return found == now.end() ? 0 : found->second;
  }
  void Wait(double seconds) override {
    ++waits_;
    elapsed_ += seconds;
  }
  double Elapsed() const override { return elapsed_; }

  int runs() const { return runs_; }
  int waits() const { return waits_; }

 private:
  const std::vector<Losses> script_;
  int runs_ = 0, waits_ = 0;
  double elapsed_ = 0;
};

struct Outcome {
  std::vector<double> rates;
  int runs = 0;
  int waits = 0;
  Disturbance disturbance;
};

// One experiment with flows between hosts 0, 1 and 2.
Outcome Measure(const std::vector<ScriptedOracle::Losses>& script, double budget_seconds = 25) {
  ScriptedOracle oracle(script);
  Experiments experiments(oracle, budget_seconds, nullptr);
  experiments.SetUnit(kUnitSeconds);
  const std::vector<Oracle::Flow> flows = {{0, 1}, {1, 2}};
  const absl::StatusOr<std::vector<double>> rates = experiments.Rates(flows, 1);
  EXPECT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(experiments.experiments(), oracle.runs());
  return {*rates, oracle.runs(), oracle.waits(), experiments.disturbance()};
}

TEST(ExperimentsTest, QuietMeasurementCountsAtOnce) {
  const Outcome outcome = Measure({{{0, 0.05}, {1, 0.08}}});
  EXPECT_EQ(outcome.runs, 1);
  EXPECT_EQ(outcome.waits, 0);
  EXPECT_EQ(outcome.disturbance.experiments, 0);
}

TEST(ExperimentsTest, DisturbedMeasurementIsRepeatedUntilItIsQuiet) {
  const Outcome outcome = Measure({{{0, 0.3}}, {{2, 0.2}}, {}, {{0, 0.5}}});
  EXPECT_EQ(outcome.runs, 3);
  EXPECT_EQ(outcome.waits, 2);
  EXPECT_THAT(outcome.rates, ElementsAre(3, 3));
  EXPECT_EQ(outcome.disturbance.experiments, 0) << "the one that counts was not disturbed";
}

TEST(ExperimentsTest, LeastDisturbedMeasurementCountsIfNoneIsQuiet) {
  const Outcome outcome =
      Measure({{{0, 0.3}}, {{0, 0.1}, {2, 0.15}}, {{1, 0.4}}, {{0, 0.2}}, {{0, 0}}});
  EXPECT_EQ(outcome.runs, 4) << "three repeats and no more";
  EXPECT_THAT(outcome.rates, ElementsAre(2, 2));
  EXPECT_EQ(outcome.disturbance.experiments, 1);
  EXPECT_EQ(outcome.disturbance.host, "h2");
  EXPECT_EQ(outcome.disturbance.stolen, 0.15);
}

TEST(ExperimentsTest, HostsWithoutAFlowDoNotMatter) { EXPECT_EQ(Measure({{{3, 0.9}}}).runs, 1); }

TEST(ExperimentsTest, NothingIsRepeatedBeyondTheBudget) {
  const Outcome outcome = Measure({{{1, 0.3}}}, 1.5 * kUnitSeconds);
  EXPECT_EQ(outcome.runs, 1);
  EXPECT_EQ(outcome.disturbance.experiments, 1);
}

TEST(ExperimentsTest, EndlessDisturbanceTakesAPartOfTheBudgetAndIsTold) {
  constexpr double kBudgetSeconds = 25;
  constexpr int kExperiments = 60;
  ScriptedOracle oracle({{{1, 0.2}}, {{2, 0.45}}, {{2, 0.3}}});
  Experiments experiments(oracle, kBudgetSeconds, nullptr);
  experiments.SetUnit(kUnitSeconds);
  for (int i = 0; i < kExperiments; ++i) {
    ASSERT_TRUE(experiments.Rates(std::vector<Oracle::Flow>{{1, 2}}, 1).ok());
  }
  EXPECT_GT(oracle.waits(), 3) << "more than the first were repeated";
  EXPECT_EQ(oracle.runs(), kExperiments + oracle.waits());
  EXPECT_LE(oracle.Elapsed(), kExperiments * kUnitSeconds + 0.25 * kBudgetSeconds + 1e-9);
  const Disturbance& disturbance = experiments.disturbance();
  EXPECT_EQ(disturbance.experiments, kExperiments);
  EXPECT_EQ(disturbance.host, "h2");
  EXPECT_EQ(disturbance.stolen, 0.3) << "what was measured at 0.45 did not count";
  EXPECT_THAT(Describe(disturbance),
              AllOf(HasSubstr("60 measurements"), HasSubstr("30 %"), HasSubstr("host h2"),
                    HasSubstr("probe again when the machine is quiet")));
  EXPECT_EQ(Describe({}), "");
}

TEST(ExperimentsTest, WaitsDoNotCountAsTheCostOfAnExperiment) {
  ScriptedOracle oracle({{{0, 0.3}}, {}});
  Experiments experiments(oracle, 25, nullptr);
  experiments.SetUnit(kUnitSeconds);
  ASSERT_TRUE(experiments.Rates(std::vector<Oracle::Flow>{{0, 1}}, 1).ok());
  ASSERT_EQ(oracle.waits(), 1);
  const int left = static_cast<int>((25 - oracle.Elapsed()) / kUnitSeconds);
  EXPECT_TRUE(experiments.TimeFor(left));
  EXPECT_FALSE(experiments.TimeFor(left + 1));
}

}  // namespace
}  // namespace syncopate::probe
