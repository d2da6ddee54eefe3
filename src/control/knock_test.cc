// Workers at the door of a rendezvous whose name has several addresses.
#include "control/knock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/proof.h"
#include "base/unique_fd.h"
#include "control/door.h"
#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
const std::string kKnockKey(kKeyBytes, 'k');

int64_t In(int64_t ns) { return MonotonicClock().NowNs() + ns; }

// An address whose packets are dropped, as a firewall does it: the queue of its listener is full.
class FilteredAddress {
 public:
  FilteredAddress() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(own);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&own), length), 0);
    EXPECT_EQ(listen(listener_.get(), 0), 0);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length);
    address_ = *NumericAddress("127.0.0.1", ntohs(own.sin_port));
    // The first that is not let in proves that the queue is full.
    do {
      EXPECT_LT(queue_.size(), 16u);
      queue_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      connect(queue_.back().get(), address_.get(), address_.size);
    } while (IsConnected(queue_.back().get(), 200));
  }

  const SocketAddress& address() const { return address_; }

 private:
  static bool IsConnected(int fd, int wait_ms) {
    pollfd ready = {.fd = fd, .events = POLLOUT, .revents = 0};
    return poll(&ready, 1, wait_ms) == 1;
  }

  const UniqueFd listener_;
  SocketAddress address_;
  std::vector<UniqueFd> queue_;
};

class OpenedDoor {
 public:
  explicit OpenedDoor(const std::string& key) {
    auto listener = ListenAt("127.0.0.1", 0);
    EXPECT_TRUE(listener.ok()) << listener.status();
    address_ = *NumericAddress("127.0.0.1", listener->port);
    door_ = Door::Open(
        *std::move(listener),
        {.key = key, .meeting_nonce = std::string(kNonceBytes, 'm'), .welcome = [](UniqueFd) {}},
        MonotonicClock());
  }
  const SocketAddress& address() const { return address_; }

 private:
  SocketAddress address_;
  std::unique_ptr<Door> door_;
};

// Where a firewall swallowed what went to the first address of a name, the others were never tried.
TEST(KnockTest, AnAddressThatIsFilteredDoesNotHideTheNextOne) {
  const FilteredAddress filtered;
  const OpenedDoor door(kKnockKey);
  const auto welcome = KnockAtAny({filtered.address(), door.address()}, kKnockKey, MonotonicClock(),
                                  In(3 * kSecond));
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(welcome->meeting_nonce, std::string(kNonceBytes, 'm'));
}

// More than could each have a quarter of a second.
TEST(KnockTest, ManyFilteredAddressesDoNotHideTheLastOne) {
  const FilteredAddress filtered;
  const OpenedDoor door(kKnockKey);
  std::vector<SocketAddress> addresses(30, filtered.address());
  addresses.push_back(door.address());
  EXPECT_TRUE(KnockAtAny(addresses, kKnockKey, MonotonicClock(), In(3 * kSecond)).ok());
}

TEST(KnockTest, AStrangerThatListensAndSaysNothingDoesNotHideTheNextOne) {
  auto stranger = ListenAt("127.0.0.1", 0);
  ASSERT_TRUE(stranger.ok());
  const OpenedDoor door(kKnockKey);
  EXPECT_TRUE(KnockAtAny({*NumericAddress("127.0.0.1", stranger->port), door.address()}, kKnockKey,
                         MonotonicClock(), In(3 * kSecond))
                  .ok());
}

TEST(KnockTest, ADoorWithAnotherKeyDoesNotHideTheNextOne) {
  const OpenedDoor other(std::string(kKeyBytes, 'o'));
  const OpenedDoor door(kKnockKey);
  EXPECT_TRUE(
      KnockAtAny({other.address(), door.address()}, kKnockKey, MonotonicClock(), In(30 * kSecond))
          .ok());
  EXPECT_TRUE(absl::IsPermissionDenied(
      KnockAtAny({other.address()}, kKnockKey, MonotonicClock(), In(30 * kSecond)).status()));
}

TEST(KnockTest, NobodyIsWaitedForBeyondTheDeadline) {
  const FilteredAddress filtered;
  const int64_t begin_ns = MonotonicClock().NowNs();
  const auto welcome =
      KnockAtAny({filtered.address()}, kKnockKey, MonotonicClock(), begin_ns + kSecond / 2);
  EXPECT_TRUE(absl::IsDeadlineExceeded(welcome.status())) << welcome.status();
  EXPECT_GE(MonotonicClock().NowNs(), begin_ns + kSecond / 2);
}

}  // namespace
}  // namespace syncopate::control
