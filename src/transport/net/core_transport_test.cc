#include "transport/net/core_transport.h"

#include <sys/socket.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "transport/net/tcp_wire.h"

namespace syncopate::transport::net {
namespace {

constexpr int64_t kMs = 1'000'000;

// Two workers with one clock, whose sentries act only when the test says so.
class CoreTransportTest : public ::testing::Test {
 protected:
  CoreTransportTest() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    for (int rank = 0; rank < 2; ++rank) {
      const Core::Options options = {
          .rank = rank, .size = 2, .job = 7, .hosts = {}, .consensus = {.rank = rank, .size = 2}};
      workers_.push_back(
          std::make_unique<CoreTransport>(options, clock_, std::vector<int>{rank}, nullptr));
      std::vector<std::vector<UniqueFd>> sockets(2);
      sockets[static_cast<size_t>(1 - rank)].emplace_back(pair[rank]);
      workers_.back()->Run(*TcpWire::Make(std::move(sockets), workers_.back()->handler()),
                           CoreTransport::Sentry::kNone);
    }
  }

  CoreTransport& worker(int rank) { return *workers_[static_cast<size_t>(rank)]; }

  ManualClock clock_;
  std::vector<std::unique_ptr<CoreTransport>> workers_;
};

TEST_F(CoreTransportTest, AWorkerWhoseSentryIsHeldUpIsHeardWhileItDrives) {
  for (int64_t at_ns = 0; at_ns < 10'000 * kMs; at_ns += 20 * kMs) {
    clock_.AdvanceNs(20 * kMs);
    worker(0).StepSentry();
    worker(1).Progress();  // its sentry is held up
  }
  EXPECT_EQ(worker(0).losses(), 0u);
  EXPECT_EQ(worker(1).losses(), 0u);
}

// The fault of the test above is one: without a thread that drives, nobody hears the worker.
TEST_F(CoreTransportTest, AWorkerOfWhichNoThreadActsIsLost) {
  for (int64_t at_ns = 0; at_ns < 10'000 * kMs; at_ns += 20 * kMs) {
    clock_.AdvanceNs(20 * kMs);
    worker(0).StepSentry();
  }
  ASSERT_EQ(worker(0).losses(), 1u);
  EXPECT_EQ(worker(0).Lost().front().rank, 1);
}

}  // namespace
}  // namespace syncopate::transport::net
