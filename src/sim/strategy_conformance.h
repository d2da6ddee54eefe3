// What every strategy must pass in virtual time, whatever it does: the same decisions for the same
// events, no order of events that stops it, and a clean end when a worker is lost. For tests.
//
//   INSTANTIATE_TEST_SUITE_P(Bsp, StrategyConformance, testing::Values(StrategyCase{...}),
//                            CaseName);
#ifndef SYNCOPATE_SIM_STRATEGY_CONFORMANCE_H_
#define SYNCOPATE_SIM_STRATEGY_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "gtest/gtest.h"
#include "sim/random_jobs_testing.h"
#include "sim/virtual_cluster.h"
#include "syncopate/status.h"

namespace syncopate::sim {

struct StrategyCase {
  std::string name;
  // A strategy for workers with this table and these costs.
  std::function<StrategyFactory(const TensorTable&, const cost::CommunicationCosts&)> make;
  // What answers it, or nothing.
  std::function<std::unique_ptr<Service>(int workers)> service = nullptr;
  // All parameters are those of one worker that has the batches of all.
  bool equals_one_worker = false;
  // Whom the strategy goes on without.
  enum class Loss { kNobody, kSome, kAnybody };
  Loss can_lose = Loss::kNobody;
};

inline std::string CaseName(const testing::TestParamInfo<StrategyCase>& info) {
  std::string name;
  for (const char c : info.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  }
  return name;
}

class StrategyConformance : public testing::TestWithParam<StrategyCase> {
 protected:
  static constexpr int kSeeds = 60;

  // A random job of this strategy; `change` may change it before it runs.
  absl::StatusOr<VirtualResult> Run(uint64_t seed,
                                    const std::function<void(VirtualOptions&)>& change = {}) {
    Random random(seed);
    options_ = {};
    options_.workers = static_cast<int>(random.Between(1, 8));
    options_.iterations = static_cast<int>(random.Between(1, 6));
    options_.seed = random.Next();
    options_.table = RandomTable(random, static_cast<int>(random.Between(1, 12)));
    options_.costs = RandomCosts(random);
    options_.jitter = 3 * random.Unit();
    for (int rank = 0; rank < options_.workers; ++rank) {
      options_.slowness.push_back(random.Below(4) == 0 ? 5 : 1);
      options_.samples.push_back(1 + random.Below(64));
    }
    options_.samples_growth = random.Below(20);
    if (GetParam().service) {
      options_.make_service = [workers = options_.workers](int) {
        return GetParam().service(workers);
      };
    }
    if (change) change(options_);
    return RunVirtually(options_, GetParam().make(options_.table, options_.costs));
  }

  VirtualOptions options_;
};

TEST_P(StrategyConformance, EndsInEveryOrderOfEvents) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const absl::StatusOr<VirtualResult> result = Run(seed);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    for (const absl::Status& status : result->status) EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(StrategyConformance, DecidesTheSameForTheSameEvents) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const absl::StatusOr<VirtualResult> once = Run(seed);
    const absl::StatusOr<VirtualResult> again = Run(seed);
    ASSERT_TRUE(once.ok() && again.ok()) << once.status() << again.status();
    EXPECT_EQ(once->log, again->log) << "seed " << seed;
    // A fresh machine that is told the same, without any cluster around it.
    for (int rank = 0; rank < options_.workers; ++rank) {
      const auto machine = GetParam().make(options_.table, options_.costs)(
          {.rank = rank, .size = options_.workers, .tensors = options_.table.size()});
      for (const strategy::Decision& told : once->told[static_cast<size_t>(rank)]) {
        std::vector<strategy::Command> commands;
        machine->Step(told.now, told.event, commands);
        ASSERT_TRUE(commands == told.commands) << ToText(told.event);
      }
    }
  }
}

// A worker that the strategy cannot do without is named; one that it can do without costs nobody the
// run.
TEST_P(StrategyConformance, EndsOrShrinksWhenAWorkerGoes) {
  for (const bool in_good_order : {false, true}) {
    int failed = 0, gone = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const absl::StatusOr<VirtualResult> whole = Run(seed);
      ASSERT_TRUE(whole.ok()) << whole.status();
      if (options_.workers == 1) continue;
      Random random(seed + 1000);
      const int lost = static_cast<int>(random.Below(static_cast<uint64_t>(options_.workers)));
      const double at = random.Unit() * whole->seconds;
      const absl::StatusOr<VirtualResult> result = Run(seed, [&](VirtualOptions& options) {
        options.departures = {{.rank = lost,
                               .at = at,
                               .detection = random.Unit() * whole->seconds,
                               .in_good_order = in_good_order}};
      });
      ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
      gone += !result->status[static_cast<size_t>(lost)].ok() || in_good_order;
      for (int rank = 0; rank < options_.workers; ++rank) {
        const absl::Status& status = result->status[static_cast<size_t>(rank)];
        if (rank == lost || status.ok()) continue;  // it was done before, or went on without it
        ++failed;
        EXPECT_TRUE(GetParam().can_lose != StrategyCase::Loss::kAnybody) << status;
        EXPECT_EQ(GetSuspect(status), lost) << status;
      }
    }
    EXPECT_GT(gone, 0);
    if (GetParam().can_lose == StrategyCase::Loss::kNobody) {
      EXPECT_GT(failed, 0);
    }
  }
}

TEST_P(StrategyConformance, GivesTheParametersOfOneWorkerWithAllBatches) {
  if (!GetParam().equals_one_worker) GTEST_SKIP() << GetParam().name << " does not promise that";
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const absl::StatusOr<VirtualResult> result = Run(seed);
    ASSERT_TRUE(result.ok()) << result.status();
    for (int tensor = 0; tensor < options_.table.size(); ++tensor) {
      double expected = FirstParameter(options_.seed, tensor);
      for (int64_t iteration = 0; iteration < options_.iterations; ++iteration) {
        double sum = 0, weights = 0;
        for (int rank = 0; rank < options_.workers; ++rank) {
          const double weight =
              static_cast<double>(options_.samples[static_cast<size_t>(rank)] +
                                  static_cast<uint64_t>(iteration) * options_.samples_growth);
          sum += weight * GradientOf(options_.seed, rank, iteration, tensor);
          weights += weight;
        }
        expected -= options_.learning_rate * sum / weights;
      }
      for (int rank = 0; rank < options_.workers; ++rank) {
        EXPECT_NEAR(result->parameters[static_cast<size_t>(rank)][static_cast<size_t>(tensor)],
                    expected, 1e-12)
            << "seed " << seed << ", worker " << rank << ", tensor " << tensor;
      }
    }
  }
}

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_STRATEGY_CONFORMANCE_H_
