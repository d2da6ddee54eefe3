#include "gtest/gtest.h"
#include "train/hooks_cost_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::train::testing {
namespace {

// Promised are 2 %, which hooks_cost_benchmark shows; here the bound has room for a busy machine.
// Processor time of the training thread, in turns with the plain loop: what others run does not
// count.
TEST(HooksCostTest, OneWorkerHardlyNoticesThem) {
  worker::RunWorkers(1, [](Worker& worker) {
    const auto cost = MeasureHooks(worker, "resnet20", 4, 40);
    ASSERT_TRUE(cost.ok()) << cost.status();
    EXPECT_LT(MedianOf(cost->hooked.thread_seconds), 1.05 * MedianOf(cost->plain.thread_seconds));
  });
}

}  // namespace
}  // namespace syncopate::train::testing
