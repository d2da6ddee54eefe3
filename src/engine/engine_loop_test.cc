// Every planner's programs, with real numbers, on the loop transport against a plain reference:
// many worker counts, active sets, sizes, cuts and message orders, each from a seed that is printed
// when something fails.
#include <algorithm>
#include <string>
#include <vector>

#include "base/parse.h"
#include "base/random.h"
#include "base/status.h"
#include "engine/loop_world.h"
#include "engine/request_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "plan/collective/planners.h"

namespace syncopate::engine {
namespace {

using ::testing::HasSubstr;

plan::CollectiveRequest RandomRequest(Collective collective, Random& random) {
  plan::CollectiveRequest request;
  request.collective = collective;
  request.workers = static_cast<int>(random.Between(1, 9));
  for (int rank = 0; rank < request.workers; ++rank) {
    if (random.Below(4) > 0) request.active.push_back(rank);
  }
  if (request.active.empty()) request.active.push_back(0);
  request.root = request.active[random.Below(request.active.size())];
  request.target = request.active[random.Below(request.active.size())];
  request.elements =
      collective == Collective::kBarrier ? 0 : random.Below(random.Below(2) ? 600 : 12);
  if (HasBlocks(collective)) {
    request.elements = 0;
    for (size_t i = 0; i < request.active.size(); ++i) {
      request.block_elements.push_back(random.Below(60));
      request.elements += request.block_elements.back();
    }
  }
  return request;
}

int64_t Initial(int rank, uint64_t element) {
  return static_cast<int64_t>(element * 31 + static_cast<uint64_t>(rank) * 1000003 + 7) % 100000;
}

// What `rank` must hold after, by the words of collective.h; -1 where nothing is promised.
std::vector<int64_t> Expected(const plan::CollectiveRequest& request, int rank) {
  std::vector<int64_t> values(request.elements);
  for (uint64_t e = 0; e < request.elements; ++e) values[e] = Initial(rank, e);
  const auto& active = request.active;
  const auto place = std::find(active.begin(), active.end(), rank);
  if (place == active.end()) return values;
  const size_t index = static_cast<size_t>(place - active.begin());
  auto sum = [&](uint64_t e) {
    int64_t total = 0;
    for (int from : active) total += Initial(from, e);
    return total;
  };
  std::vector<uint64_t> begin = {0};
  for (uint64_t elements : request.block_elements) begin.push_back(begin.back() + elements);
  auto block_of = [&](uint64_t e) {
    return static_cast<size_t>(std::upper_bound(begin.begin(), begin.end(), e) - begin.begin()) - 1;
  };
  for (uint64_t e = 0; e < request.elements; ++e) {
    switch (request.collective) {
      case Collective::kAllReduce:
        values[e] = sum(e);
        break;
      case Collective::kReduce:
        values[e] = rank == request.root ? sum(e) : -1;
        break;
      case Collective::kBroadcast:
        values[e] = Initial(request.root, e);
        break;
      case Collective::kAllGather:
        values[e] = Initial(active[block_of(e)], e);
        break;
      case Collective::kReduceScatter:
        values[e] = block_of(e) == index ? sum(e) : -1;
        break;
      case Collective::kGather:
        values[e] = rank == request.root ? Initial(active[block_of(e)], e) : -1;
        break;
      case Collective::kScatter:
        values[e] = block_of(e) == index ? Initial(request.root, e) : -1;
        break;
      case Collective::kAllToAll: {
        const size_t from = block_of(e);
        values[e] = Initial(active[from], begin[index] + (e - begin[from]));
        break;
      }
      case Collective::kSendReceive:
        if (rank == request.target) values[e] = Initial(request.root, e);
        break;
      case Collective::kBarrier:
        break;
    }
  }
  return values;
}

class PlannerOnLoopTest : public ::testing::TestWithParam<size_t> {};

TEST_P(PlannerOnLoopTest, ComputesItsCollective) {
  const plan::PlannerInfo& planner = *plan::AllPlanners()[GetParam()];
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << planner.name << ", seed " << seed);
    Random random(seed * 7919 + GetParam());
    plan::CollectiveRequest request = RandomRequest(planner.collective, random);
    if (planner.collective == Collective::kAllToAll) {  // blocks travel both ways: equal sizes
      std::fill(request.block_elements.begin(), request.block_elements.end(), 17);
      request.elements = 17 * request.active.size();
    }
    plan::PlannerOptions options;
    options.pieces = static_cast<int>(random.Between(1, 4));
    for (int rank = 0; rank < request.workers; ++rank) {  // active or not
      if (random.Below(3) == 0) options.servers.push_back(rank);
    }
    absl::StatusOr<Program> program = planner.plan(request, options);
    ASSERT_TRUE(program.ok()) << program.status();
    LoopWorld world(request.workers, seed);
    std::vector<std::vector<int64_t>> data(static_cast<size_t>(request.workers));
    std::vector<std::shared_ptr<Operation>> operations;
    for (int rank = 0; rank < request.workers; ++rank) {
      auto& mine = data[static_cast<size_t>(rank)];
      for (uint64_t e = 0; e < request.elements; ++e) mine.push_back(Initial(rank, e));
      auto compiled = CompileProgram(*program, rank);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      operations.push_back(world.Start(
          rank,
          {.group = nullptr, .program = *compiled, .data = mine.data(), .type = DataType::kInt64}));
    }
    ASSERT_TRUE(world.Finish(operations)) << "it does not end";
    for (int rank = 0; rank < request.workers; ++rank) {
      ASSERT_TRUE(operations[static_cast<size_t>(rank)]->status().ok())
          << operations[static_cast<size_t>(rank)]->status();
      const std::vector<int64_t> expected = Expected(request, rank);
      for (uint64_t e = 0; e < request.elements; ++e) {
        if (expected[e] == -1) continue;
        ASSERT_EQ(data[static_cast<size_t>(rank)][e], expected[e])
            << "worker " << rank << ", element " << e;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlannerOnLoopTest,
                         ::testing::Range(size_t{0}, plan::AllPlanners().size()),
                         [](const auto& param) {
                           const plan::PlannerInfo& planner = *plan::AllPlanners()[param.param];
                           std::string name =
                               absl::StrCat(Name(planner.collective), "_", planner.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// ---- one program, closer looks

struct FloatJob {
  FloatJob(LoopWorld& world, const Program& program, ReduceOp op, std::vector<double> weights)
      : data(static_cast<size_t>(world.size())) {
    for (int rank = 0; rank < world.size(); ++rank) {
      auto& mine = data[static_cast<size_t>(rank)];
      for (uint64_t e = 0; e < program.elements(); ++e) {
        mine.push_back(static_cast<float>(rank) + 0.25f * static_cast<float>(e));
      }
      operations.push_back(world.Start(rank, {.group = nullptr,
                                              .program = *CompileProgram(program, rank),
                                              .data = mine.data(),
                                              .op = op,
                                              .weight = weights[static_cast<size_t>(rank)]}));
    }
  }
  std::vector<std::vector<float>> data;
  std::vector<std::shared_ptr<Operation>> operations;
};

TEST(EngineOnLoopTest, WeightsTheAverage) {
  LoopWorld world(4, 5);
  const Program program = *plan::PlanBy("ring", AllReduceOf(4, 100), {});
  FloatJob job(world, program, ReduceOp::kWeightedAverage, {1, 2, 3, 10});
  ASSERT_TRUE(world.Finish(job.operations));
  for (const auto& mine : job.data) {
    for (size_t e = 0; e < mine.size(); ++e) {
      const double mean = (0 * 1 + 1 * 2 + 2 * 3 + 3 * 10) / 16.0 + 0.25 * static_cast<double>(e);
      EXPECT_NEAR(mine[e], mean, 1e-4);
    }
  }
}

TEST(EngineOnLoopTest, RefusesWeightsThatAddUpToNothing) {
  LoopWorld world(2, 5);
  FloatJob job(world, *plan::PlanBy("ring", AllReduceOf(2, 10), {}), ReduceOp::kWeightedAverage,
               {0, 0});
  ASSERT_TRUE(world.Finish(job.operations));
  for (const auto& operation : job.operations) {
    EXPECT_EQ(operation->status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetBlast(operation->status()), BlastRadius::kOperation);
  }
}

TEST(EngineOnLoopTest, SameSeedSameBitsAndSameTime) {
  auto run = [](uint64_t seed) {
    LoopWorld world(5, seed);
    FloatJob job(world, *plan::PlanBy("ring", AllReduceOf(5, 300), {}), ReduceOp::kSum,
                 std::vector<double>(5, 1));
    EXPECT_TRUE(world.Finish(job.operations));
    return std::make_pair(world.now_ns(), job.data);
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3).first, run(4).first) << "the seed decides nothing";
  EXPECT_EQ(run(3).second, run(4).second) << "the program fixes the order of additions";
}

TEST(EngineOnLoopTest, MembersThatRunDifferentProgramsAllLearnIt) {
  LoopWorld world(3, 9);
  std::vector<float> data(100, 1);
  std::vector<std::shared_ptr<Operation>> operations;
  for (int rank = 0; rank < 3; ++rank) {
    operations.push_back(world.Start(
        rank, {.group = nullptr,
               .program = *CompileProgram(
                   *plan::PlanBy("ring", AllReduceOf(3, rank == 1 ? 99 : 100), {}), rank),
               .data = data.data()}));
  }
  ASSERT_TRUE(world.Finish(operations));
  for (const auto& operation : operations) {
    EXPECT_EQ(operation->status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(operation->status().message()), HasSubstr("same calls"));
  }
  EXPECT_EQ(data, std::vector<float>(100, 1)) << "nothing may be touched";
  // The group stays in step: the next operation works.
  FloatJob next(world, *plan::PlanBy("ring", AllReduceOf(3, 10), {}), ReduceOp::kSum, {1, 1, 1});
  ASSERT_TRUE(world.Finish(next.operations));
  for (const auto& operation : next.operations) EXPECT_TRUE(operation->status().ok());
}

// A worker is lost after every possible number of turns: the survivors all end, name it, and hold
// all old or all new values.
TEST(EngineOnLoopTest, LossAtAnyMomentLeavesOldOrNewAndAllAgree) {
  int kept_old = 0;
  int got_new = 0;
  for (int cut = 0; cut < 400; ++cut) {
    SCOPED_TRACE(::testing::Message() << "lost after " << cut << " turns");
    LoopWorld world(4, 17);
    FloatJob job(world, *plan::PlanBy("ring", AllReduceOf(4, 40), {}), ReduceOp::kSum,
                 {1, 1, 1, 1});
    const std::vector<std::vector<float>> old = job.data;
    const std::vector<int> everyone = {0, 1, 2, 3}, survivors = {0, 1, 3};
    for (int turn = 0; turn < cut; ++turn) world.Step(everyone);
    world.network().Kill(2);
    auto all_done = [&] {
      return std::all_of(survivors.begin(), survivors.end(), [&](int rank) {
        return job.operations[static_cast<size_t>(rank)]->done();
      });
    };
    for (int turn = 0; turn < 100000 && !all_done(); ++turn) world.Step(survivors);
    ASSERT_TRUE(all_done());
    const bool ok = job.operations[0]->status().ok();
    for (int rank : survivors) {
      const absl::Status& status = job.operations[static_cast<size_t>(rank)]->status();
      ASSERT_EQ(status.ok(), ok) << "survivors disagree: " << status;
      if (!ok) {
        EXPECT_EQ(GetSuspect(status), 2);
        EXPECT_EQ(GetBlast(status), BlastRadius::kGroup);
      }
      const auto& mine = job.data[static_cast<size_t>(rank)];
      for (size_t e = 0; e < mine.size(); ++e) {
        const float after = 6 + static_cast<float>(e);
        ASSERT_EQ(mine[e], ok ? after : old[static_cast<size_t>(rank)][e]);
      }
    }
    ++(ok ? got_new : kept_old);
  }
  EXPECT_GT(kept_old, 0);
  EXPECT_GT(got_new, 0);
}

TEST(EngineOnLoopTest, LateWorkerIsNamedNotBeforeTheDeadline) {
  LoopWorld world(3, 23);
  const Program program = *plan::PlanBy("ring", AllReduceOf(3, 10), {});
  std::vector<float> data(10, 1);
  std::vector<std::shared_ptr<Operation>> operations;
  const int64_t deadline_ns = 5'000'000;
  for (int rank : {0, 2}) {
    operations.push_back(world.Start(rank, {.group = nullptr,
                                            .program = *CompileProgram(program, rank),
                                            .data = data.data(),
                                            .deadline_ns = deadline_ns}));
  }
  while (world.now_ns() < deadline_ns - 1000) {
    world.Step({0, 1, 2});
    ASSERT_FALSE(operations[0]->done() || operations[1]->done());
  }
  ASSERT_TRUE(world.Finish(operations, 1000));
  for (const auto& operation : operations) {
    EXPECT_EQ(operation->status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(GetSuspect(operation->status()), 1);
    EXPECT_THAT(std::string(operation->status().message()), HasSubstr("workers 1 did not join"));
  }
  EXPECT_EQ(data, std::vector<float>(10, 1));
}

// A vote that was started with a long timeout is waited for by a call with a short one.
TEST(EngineOnLoopTest, AnOperationThatIsHastenedEndsForAllAtTheNewDeadline) {
  LoopWorld world(3, 23);
  const Program program = *plan::PlanBy("ring", AllReduceOf(3, 10), {});
  std::vector<float> data(10, 1);
  std::vector<std::shared_ptr<Operation>> operations;
  constexpr int64_t kLateNs = 50'000'000'000, kSoonNs = 5'000'000;
  for (int rank : {0, 2}) {
    operations.push_back(world.Start(rank, {.group = nullptr,
                                            .program = *CompileProgram(program, rank),
                                            .data = data.data(),
                                            .deadline_ns = kLateNs}));
  }
  operations[0]->Hasten(kSoonNs);
  operations[0]->Hasten(kLateNs);  // never later again
  while (world.now_ns() < kSoonNs - 1000) {
    world.Step({0, 1, 2});
    ASSERT_FALSE(operations[0]->done() || operations[1]->done());
  }
  ASSERT_TRUE(world.Finish(operations, 1000));
  EXPECT_LT(world.now_ns(), kLateNs);
  for (const auto& operation : operations) {
    EXPECT_FALSE(operation->status().ok()) << "all come to the same end";
    EXPECT_EQ(GetSuspect(operation->status()), 1) << operation->status();
  }
}

// A member that knew of a loss broke the gate. Another one, which had not heard of it yet, took it for
// a gate whose time was up, and blamed the first member that had not come: a live one.
TEST(EngineOnLoopTest, AGateThatBrokeForALossNamesTheLostOneWhereTheNewsComesLater) {
  LoopWorld world(4, 29);
  const Program program = *plan::PlanBy("ring", AllReduceOf(4, 10), {});
  std::vector<float> data(10, 1);
  std::vector<std::shared_ptr<Operation>> operations;
  for (int rank : {0, 3}) {  // worker 1 is on its way, worker 2 dies
    operations.push_back(world.Start(
        rank, {.group = nullptr, .program = *CompileProgram(program, rank), .data = data.data()}));
  }
  for (int turn = 0; turn < 100; ++turn) world.Step({0, 3});
  world.network().KillHeardBy(2, 0);
  for (int turn = 0; turn < 100; ++turn) world.Step({0, 3});
  ASSERT_TRUE(operations[0]->done()) << "it has not broken the gate";
  EXPECT_EQ(GetSuspect(operations[0]->status()), 2);
  EXPECT_FALSE(operations[1]->done()) << operations[1]->status();
  world.network().Kill(2);  // now all know
  ASSERT_TRUE(world.Finish(operations, 1000));
  EXPECT_EQ(operations[1]->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetSuspect(operations[1]->status()), 2);
}

// A lost member had joined the second call, so that nobody waited for it there. The member that had
// not joined will not do so any more, since the first call has failed: the call waited until its
// deadline.
TEST(EngineOnLoopTest, ACallThatNobodyWillJoinAnyMoreAfterALossEndsAtOnce) {
  LoopWorld world(3, 37);
  const Program program = *plan::PlanBy("ring", AllReduceOf(3, 10), {});
  std::vector<float> data(10, 1);
  const auto start = [&](int rank) {
    return world.Start(
        rank, {.group = nullptr, .program = *CompileProgram(program, rank), .data = data.data()});
  };
  const auto first = start(0), second = start(0);
  start(2);
  start(2);
  for (int turn = 0; turn < 50; ++turn) world.Step({0, 2});
  const auto other = start(1);
  world.network().Kill(2);
  ASSERT_TRUE(world.Finish({first, other}, 10000));
  EXPECT_EQ(GetSuspect(first->status()), 2);
  ASSERT_TRUE(world.Finish({second}, 10000)) << "it waits for a member that will not come";
  EXPECT_EQ(GetSuspect(second->status()), 2);
}

// The other way round: time was up for all when a member heard of a loss.
TEST(EngineOnLoopTest, AGateWhoseTimeWasUpNamesTheLateOneThoughALossIsKnownByThen) {
  LoopWorld world(4, 31);
  const Program program = *plan::PlanBy("ring", AllReduceOf(4, 10), {});
  std::vector<float> data(10, 1);
  std::vector<std::shared_ptr<Operation>> operations;
  for (int rank : {0, 2, 3}) {
    operations.push_back(world.Start(rank, {.group = nullptr,
                                            .program = *CompileProgram(program, rank),
                                            .data = data.data(),
                                            .deadline_ns = rank == 0 ? 100'000 : 0}));
  }
  for (int turn = 0; turn < 50; ++turn) world.Step({0, 2, 3});
  while (!operations[0]->done()) world.Step({0});
  EXPECT_EQ(GetSuspect(operations[0]->status()), 1);
  world.network().Kill(2);
  ASSERT_TRUE(world.Finish({operations[2]}, 1000));
  EXPECT_EQ(GetSuspect(operations[2]->status()), 1) << operations[2]->status();
}

// Two of three have long begun when the last one does.
TEST(EngineOnLoopTest, BytesMoveWhenTheLastMemberHasCome) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LoopWorld world(3, seed);
    const Program program = *plan::PlanBy("ring", AllReduceOf(3, 10), {});
    std::vector<float> data(10, 1);
    std::vector<std::shared_ptr<Operation>> operations;
    int told = 0;
    const auto start = [&](int rank) {
      operations.push_back(world.Start(rank, {.group = nullptr,
                                              .program = *CompileProgram(program, rank),
                                              .data = data.data(),
                                              .completed = [&](const absl::Status&) { ++told; }}));
    };
    start(0);
    start(1);
    for (int turn = 0; turn < 200; ++turn) world.Step({0, 1});
    const int64_t came_ns = world.now_ns();
    ASSERT_GT(came_ns, 0);
    start(2);
    ASSERT_TRUE(world.Finish(operations));
    EXPECT_EQ(told, 3);
    for (const auto& operation : operations) {
      ASSERT_TRUE(operation->status().ok()) << operation->status();
      EXPECT_GE(operation->times().first_ns, came_ns);
      EXPECT_GE(operation->times().last_ns, operation->times().first_ns);
      EXPECT_LE(operation->times().last_ns, world.now_ns());
    }
  }
}

}  // namespace
}  // namespace syncopate::engine
