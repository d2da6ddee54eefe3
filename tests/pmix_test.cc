// Workers whose launcher offers PMIx and does not answer.
#include <dlfcn.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "control/pmix_exchange.h"
#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

// PMIx_Init() waited for the launcher's server for ever.
TEST(PmixTest, AServerThatDoesNotAnswerIsWaitedForUntilTheDeadline) {
  // By its name libpmix.so.2 is found again when it is asked for.
  void* library = dlopen(SILENT_PMIX_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  // Left to itself if it does not end.
  auto done = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> status = done->get_future();
  std::thread([done] {
    const int64_t deadline_ns = MonotonicClock().NowNs() + 500'000'000;
    done->set_value(ShareByPmix("name", 0, "text", MonotonicClock(), deadline_ns).status());
  }).detach();
  ASSERT_EQ(status.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(*static_cast<int*>(dlsym(library, "silent_pmix_calls")), 1);
  EXPECT_EQ(status.get().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace syncopate::control
