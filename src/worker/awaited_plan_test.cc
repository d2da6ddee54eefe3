// Calls that cannot begin without a plan which is not made yet, in shared memory: they wait for it without
// holding up what does not need it, until their deadline at most, and notice who is lost meanwhile.
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/held_planner_testing.h"
#include "worker/own_programs.h"
#include "worker/program_cache.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;

// All workers of a test are in its process.
HeldPlanner& Planner() {
  static HeldPlanner* const planner = [] {
    auto* made = new HeldPlanner;
    EXPECT_TRUE(made->Register().ok());
    return made;
  }();
  return *planner;
}

// The workers of a job in which the planner is held until the test lets it go.
void RunHeld(int size, const std::function<void(Worker&)>& body) {
  HeldPlanner& planner = Planner();
  planner.entered = 0;
  planner.gave_up = false;
  planner.held = true;
  RunWorkers(size, body);
  EXPECT_GT(planner.entered, 0) << "nobody has planned";
  EXPECT_FALSE(planner.gave_up) << "somebody waited for the plan, whatever happened";
}

Call HeldCall(std::vector<float>& data) {
  return {.collective = Collective::kAllReduce,
          .data = Array::Of(data.data(), data.size()),
          .op = ReduceOp::kSum,
          .algorithm = HeldPlanner::kName};
}

std::vector<float> Ones() { return std::vector<float>(HeldPlanner::kElements, 1); }

TEST(AwaitedPlanTest, AMemberThatIsLostMeanwhileIsNamedAtOnce) {
  std::atomic<int> told{0};
  RunHeld(3, [&](Worker& worker) {
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 1) return Planner().AwaitEntry(2);
    std::vector<float> data = Ones();
    const absl::Status status = worker.world().Run(HeldCall(data));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(GetSuspect(status), 1);
    EXPECT_EQ(GetBlast(status), BlastRadius::kGroup);
    EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1 left the job"));
    EXPECT_EQ(data, Ones()) << "nothing has begun";
    EXPECT_EQ(GetSuspect(worker.world().Barrier()), 1) << "the group is lost";
    EXPECT_TRUE(worker.NewGroup({0, 2})->Barrier().ok());
    if (++told == 2) Planner().held = false;
  });
}

// All members fail before anything has begun, so they are where they were.
TEST(AwaitedPlanTest, ACallIsLateAndTheGroupGoesOn) {
  std::atomic<int> late{0};
  RunHeld(3, [&](Worker& worker) {
    std::vector<float> data = Ones();
    Call call = HeldCall(data);
    call.timeout = absl::Milliseconds(200);
    const int64_t begin_ns = MonotonicClock().NowNs();
    const absl::Status status = worker.world().Run(call);
    EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 200'000'000);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(GetBlast(status), BlastRadius::kOperation);
    EXPECT_THAT(std::string(status.message()), HasSubstr(HeldPlanner::kName));
    EXPECT_EQ(data, Ones());
    float value = 1;
    ASSERT_TRUE(worker.world().AllReduce(Array::Of(&value, 1), ReduceOp::kSum).ok());
    EXPECT_EQ(value, 3);
    if (++late == 3) Planner().held = false;
    call.timeout = absl::Seconds(60);
    const absl::Status again = worker.world().Run(call);
    ASSERT_TRUE(again.ok()) << again;
    EXPECT_EQ(data, std::vector<float>(HeldPlanner::kElements, 3));
  });
}

// Calls of several threads keep the order in which they came, each until its own deadline.
TEST(AwaitedPlanTest, CallsOfOtherThreadsKeepTheirPlaceBehindIt) {
  std::atomic<int> behind{0};
  RunHeld(2, [&](Worker& worker) {
    std::vector<float> data = Ones();
    absl::Status first;
    std::thread other([&] { first = worker.world().Run(HeldCall(data)); });
    Planner().AwaitEntry(2);  // a call has its place before its plan is begun
    ASSERT_TRUE(worker.NewGroup({0, 1})->Barrier().ok()) << "other groups have places of their own";
    float value = 1;
    const absl::Status second = worker.world().Run(
        {.data = Array::Of(&value, 1), .op = ReduceOp::kSum, .timeout = absl::Milliseconds(100)});
    EXPECT_EQ(second.code(), absl::StatusCode::kDeadlineExceeded) << second;
    EXPECT_EQ(GetBlast(second), BlastRadius::kOperation);
    EXPECT_THAT(std::string(second.message()), HasSubstr("earlier calls"));
    if (++behind == 2) Planner().held = false;
    other.join();
    EXPECT_TRUE(first.ok()) << first;
    EXPECT_EQ(data, std::vector<float>(HeldPlanner::kElements, 2));
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(AwaitedPlanTest, AGroupThatIsClosedMeanwhileEndsTheWait) {
  std::atomic<int> ended{0};
  RunHeld(2, [&](Worker& worker) {
    Group group = *worker.NewGroup({0, 1});
    std::vector<float> data = Ones();
    absl::Status status;
    std::thread other([&] { status = group.Run(HeldCall(data)); });
    Planner().AwaitEntry(2);
    group.Close();
    other.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("closed the group"));
    if (++ended == 2) Planner().held = false;
  });
}

// A plan that a call waits for comes before those that calls run without meanwhile.
TEST(AwaitedPlanTest, IsNotMadeBehindPlansForLater) {
  constexpr int64_t kLong = 60'000'000'000;
  HeldPlanner& planner = Planner();
  planner.entered = 0;
  planner.gave_up = false;
  planner.held = true;
  ProgramCache cache(2);
  plan::ProgramKey key;
  key.request.workers = 2;
  key.request.active = {0, 1};
  key.request.elements = HeldPlanner::kElements;
  key.algorithm = HeldPlanner::kName;
  const auto later = cache.Order(key);
  planner.AwaitEntry();
  key.algorithm = "ring";
  const auto queued = cache.Order(key);
  key.request.elements = 99;
  const auto awaited = cache.Order(key, ProgramCache::For::kWaiting);
  EXPECT_TRUE(awaited->WaitUntil(MonotonicClock().NowNs() + kLong));
  EXPECT_FALSE(queued->done());
  key.request.elements = HeldPlanner::kElements;
  EXPECT_EQ(cache.Order(key, ProgramCache::For::kWaiting), queued);
  EXPECT_TRUE(queued->WaitUntil(MonotonicClock().NowNs() + kLong));
  EXPECT_FALSE(later->done());
  EXPECT_FALSE(planner.gave_up);
  planner.held = false;
  EXPECT_TRUE(later->WaitUntil(MonotonicClock().NowNs() + kLong));
}

// A program that takes long to read and prove: much longer than the deadline of the call.
std::string LongProgram(uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = 2;
  request.active = {0, 1};
  request.elements = elements;
  plan::PlannerOptions options;
  options.pieces = 8192;
  const absl::StatusOr<Program> ring = plan::PlanBy("ring", request, options);
  EXPECT_TRUE(ring.ok()) << ring.status();
  return ToText(*ring);
}

TEST(AwaitedPlanTest, AProgramThatIsBroughtIsReadBeside) {
  constexpr uint64_t kMany = 1 << 20;
  const std::string text = LongProgram(kMany);
  RunWorkers(2, [&](Worker& worker) {
    std::vector<float> data(kMany, 1);
    Call call = {.collective = Collective::kAllReduce,
                 .data = Array::Of(data.data(), data.size()),
                 .op = ReduceOp::kSum,
                 .timeout = absl::Milliseconds(1),
                 .program = text};
    const absl::Status status = worker.world().Run(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(GetBlast(status), BlastRadius::kOperation);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the program that it brings"));
    ASSERT_TRUE(worker.world().Barrier().ok()) << "the group is as good as before";
    call.timeout = absl::Seconds(60);
    for (int round = 0; round < 2; ++round) {
      std::fill(data.begin(), data.end(), 1.0f);
      const absl::Status again = worker.world().Run(call);
      ASSERT_TRUE(again.ok()) << again;
      EXPECT_EQ(data, std::vector<float>(kMany, 2));
    }
  });
}

}  // namespace
}  // namespace syncopate::worker
