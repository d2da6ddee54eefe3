// Programs in which workers without data relay, on the loop transport: what counts is that they are
// not counted, need no data, and are members like all others when something goes wrong.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/loop_world.h"
#include "gtest/gtest.h"
#include "plan/collective/planners.h"

namespace syncopate::engine {
namespace {

constexpr int kWorkers = 5;
const std::vector<int> kActive = {0, 2, 3};
const std::vector<int> kEverybody = {0, 1, 2, 3, 4};

bool IsActive(int rank) { return std::binary_search(kActive.begin(), kActive.end(), rank); }

// Workers 1 and 4 have no data and add up that of the others.
Program RelayProgram(uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = kWorkers;
  request.active = kActive;
  request.elements = elements;
  plan::PlannerOptions options;
  options.servers = {1, 4};
  options.pieces = 3;
  return *plan::PlanBy("parameter-server", request, options);
}

template <typename T>
struct Job {
  Job(LoopWorld& world, const Program& program, DataType type, ReduceOp op) : data(kWorkers) {
    for (int rank = 0; rank < kWorkers; ++rank) {
      auto& mine = data[static_cast<size_t>(rank)];
      if (IsActive(rank)) mine.assign(program.elements(), static_cast<T>(10 * rank + 1));
      operations.push_back(world.Start(rank, {.group = nullptr,
                                              .program = *CompileProgram(program, rank),
                                              .data = IsActive(rank) ? mine.data() : nullptr,
                                              .type = type,
                                              .op = op,
                                              .weight = 1.0 + rank}));
    }
  }
  void ExpectEverywhere(T value) const {
    for (int rank = 0; rank < kWorkers; ++rank) {
      EXPECT_TRUE(operations[static_cast<size_t>(rank)]->status().ok());
      for (const T element : data[static_cast<size_t>(rank)]) ASSERT_EQ(element, value) << rank;
    }
  }
  std::vector<std::vector<T>> data;
  std::vector<std::shared_ptr<Operation>> operations;
};

TEST(RelayTest, RelaysAreNotCounted) {
  const Program program = RelayProgram(1000);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    LoopWorld world(kWorkers, seed);
    Job<double> sum(world, program, DataType::kFloat64, ReduceOp::kSum);
    Job<float> mean(world, program, DataType::kFloat32, ReduceOp::kAverage);
    Job<int64_t> whole(world, program, DataType::kInt64, ReduceOp::kAverage);
    Job<double> weighted(world, program, DataType::kFloat64, ReduceOp::kWeightedAverage);
    ASSERT_TRUE(world.Finish(sum.operations));
    ASSERT_TRUE(world.Finish(mean.operations));
    ASSERT_TRUE(world.Finish(whole.operations));
    ASSERT_TRUE(world.Finish(weighted.operations));
    sum.ExpectEverywhere(1 + 21 + 31);
    for (const int rank : kActive) {
      for (const float value : mean.data[static_cast<size_t>(rank)]) {
        ASSERT_NEAR(value, 53.0 / 3, 1e-5);
      }
    }
    whole.ExpectEverywhere(53 / 3);
    weighted.ExpectEverywhere((1 * 1.0 + 3 * 21 + 4 * 31) / 8);
  }
}

// A relay is lost after every possible number of turns.
TEST(RelayTest, ALostRelayIsNamedAndDataIsOldOrNew) {
  const Program program = RelayProgram(60);
  int kept_old = 0;
  int got_new = 0;
  for (int cut = 0; cut < 500; ++cut) {
    SCOPED_TRACE(::testing::Message() << "lost after " << cut << " turns");
    LoopWorld world(kWorkers, 17);
    Job<float> job(world, program, DataType::kFloat32, ReduceOp::kSum);
    const std::vector<int> survivors = {0, 2, 3, 4};
    for (int turn = 0; turn < cut; ++turn) world.Step(kEverybody);
    world.network().Kill(1);
    const auto all_done = [&] {
      return std::all_of(survivors.begin(), survivors.end(), [&](int rank) {
        return job.operations[static_cast<size_t>(rank)]->done();
      });
    };
    for (int turn = 0; turn < 100000 && !all_done(); ++turn) world.Step(survivors);
    ASSERT_TRUE(all_done());
    const bool ok = job.operations[0]->status().ok();
    for (const int rank : survivors) {
      const absl::Status& status = job.operations[static_cast<size_t>(rank)]->status();
      ASSERT_EQ(status.ok(), ok) << "survivors disagree: " << status;
      if (!ok) {
        EXPECT_EQ(GetSuspect(status), 1);
      }
      for (const float value : job.data[static_cast<size_t>(rank)]) {
        ASSERT_EQ(value, ok ? 53 : static_cast<float>(10 * rank + 1));
      }
    }
    ++(ok ? got_new : kept_old);
  }
  EXPECT_GT(kept_old, 0);
  EXPECT_GT(got_new, 0);
}

}  // namespace
}  // namespace syncopate::engine
