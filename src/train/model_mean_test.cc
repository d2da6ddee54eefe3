// Means of models beside training, live.
#include "train/model_mean.h"

#include <ATen/Functions.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "worker/worker_testing.h"

namespace syncopate::train {
namespace {

ModelMean::Purpose MeanOf(std::vector<int> members, uint64_t number) {
  return {.order = {.number = number,
                    .attempt = 0,
                    .iteration = 0,
                    .key = {.maker = 9, .number = number},
                    .members = std::move(members)}};
}

ModelCopy CopyOfNumber(double number) {
  return {.numbers = at::full({1000}, number, at::kFloat), .counts = {}};
}

TEST(ModelMeanTest, IsTheMeanOfTheCopiesOfAllMembers) {
  worker::RunWorkers(3, [](Worker& worker) {
    ModelMean mean(worker);
    ASSERT_TRUE(mean.Start(CopyOfNumber(worker.rank()), MeanOf({0, 1, 2}, 1)).ok());
    ASSERT_TRUE(mean.Wait().ok());
    const auto taken = mean.Take();
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->purpose.order.number, 1u);
    EXPECT_TRUE(taken->model.numbers.allclose(at::full({1000}, 1.0, at::kFloat)));
    EXPECT_FALSE(mean.Take().has_value());
    EXPECT_FALSE(mean.TakeFailed().has_value());
  });
}

// It was forgotten, and nobody tried again.
TEST(ModelMeanTest, OneThatFailsIsTold) {
  worker::RunWorkers(2, [](Worker& worker) {
    ModelMean mean(worker);
    if (worker.rank() == 0) {
      ASSERT_TRUE(mean.Start(CopyOfNumber(1), MeanOf({0, 1}, 7)).ok());
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 1) return;  // leaves
    std::optional<EvaluationOrder> failed;
    const int64_t until_ns = MonotonicClock().NowNs() + 60'000'000'000;
    while (!failed && MonotonicClock().NowNs() < until_ns) {
      EXPECT_FALSE(mean.Take().has_value());
      failed = mean.TakeFailed();
    }
    ASSERT_TRUE(failed.has_value());
    EXPECT_EQ(failed->number, 7u);
    EXPECT_FALSE(mean.TakeFailed().has_value());
  });
}

// A worker that failed waited for the others' part in it, up to the timeout, before it said so.
TEST(ModelMeanTest, NobodyWaitsForOneThatIsNotWantedAnyMore) {
  std::atomic<bool> waits{false};
  worker::RunWorkers(2, [&](Worker& worker) {
    if (worker.rank() == 1) {
      // Its deadline comes before that of the mean.
      Handle met = worker.world().Start({.collective = Collective::kBarrier});
      waits = true;
      EXPECT_TRUE(met.Wait().ok());
      return;
    }
    while (!waits) std::this_thread::yield();
    ModelCopy copy = CopyOfNumber(1);
    const at::Tensor memory = copy.numbers;
    {
      ModelMean mean(worker);
      ASSERT_TRUE(mean.Start(std::move(copy), MeanOf({0, 1}, 1)).ok());
    }
    EXPECT_GT(memory.use_count(), 1u);  // the operation has it
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

}  // namespace
}  // namespace syncopate::train
