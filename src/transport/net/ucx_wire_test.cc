// What only the wire over UCX needs: anybody can send messages to a UCX worker, so those of
// strangers are dropped.
#include "transport/net/ucx_wire.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "transport/net/ucx_library.h"
#include "transport/net/ucx_worker.h"
#include "transport/net/wire_testing.h"

namespace syncopate::transport::net {
namespace {

class UcxStranger {
 public:
  UcxStranger(const std::string& address) : worker_(*UcxWorker::Make("127.0.0.1")) {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    EXPECT_EQ(Ucx().ep_create(worker_->handle(), &params, &endpoint_), UCS_OK);
  }
  ~UcxStranger() {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = Ucx().ep_close_nbx(endpoint_, &param);
    if (UCS_PTR_IS_PTR(request)) Ucx().request_free(request);
    for (int i = 0; i < 100; ++i) Progress();
  }
  void Say(const std::string& prefix, const std::string& payload, uint32_t flags) {
    said_.push_back(prefix);
    const std::string& kept = said_.back();
    said_.push_back(payload);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    void* request = Ucx().am_send_nbx(endpoint_, 1, kept.data(), kept.size(), said_.back().data(),
                                      payload.size(), &param);
    if (UCS_PTR_IS_PTR(request)) Ucx().request_free(request);
  }
  void Progress() { Ucx().worker_progress(worker_->handle()); }

 private:
  const std::unique_ptr<UcxWorker> worker_;
  ucp_ep_h endpoint_ = nullptr;
  std::list<std::string> said_;  // UCX reads it until it is gone
};

class UcxWireTest : public WireTest {};

TEST_P(UcxWireTest, MessagesOfStrangersAreDroppedAndTheJobDoesNotNotice) {
  Make(2);
  const std::string address = workers_[1]->ucx->address();
  ConnectAll();
  UcxStranger stranger(address);
  const std::string data = Noise(6, kFragmentBytes);
  FrameHeader header = Header(FrameType::kData, 1, data.size());
  const EncodedHeader encoded = Encode(header);
  std::string forged;  // right in all but the secret
  Append(forged, uint32_t{0});
  Append(forged, uint32_t{0});
  forged.append(16, 'x');
  forged.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  for (int i = 0; i < 20; ++i) {
    stranger.Say(forged, data, UCP_AM_SEND_FLAG_RNDV);
    stranger.Say(forged, data, UCP_AM_SEND_FLAG_EAGER);
    stranger.Say(Noise(static_cast<uint64_t>(i), static_cast<size_t>(i)), "", 0);
  }
  const int64_t until_ns = MonotonicClock().NowNs() + kWireSecond / 2;
  bool came = false;
  while (MonotonicClock().NowNs() < until_ns || !came) {
    stranger.Progress();
    wire(1).Progress();
    wire(0).Progress();
    came = static_cast<UcxWire&>(wire(1)).strangers() == 60;
    ASSERT_LT(MonotonicClock().NowNs(), until_ns + 20 * kWireSecond) << "the fault did not happen";
  }
  EXPECT_TRUE(collector(1).frames.empty());
  EXPECT_TRUE(collector(1).closed.empty());
  wire(0).Send(1, header, Bytes(data), 1);
  ASSERT_TRUE(Until([&] { return collector(1).frames.size() == 1; }));
  EXPECT_EQ(collector(1).frames.front().payload, data);
}

// UCX connected with the first messages, and took it for a mistake of its own when a peer ended before
// that was done: one that ended early took others along.
TEST_P(UcxWireTest, AWorkerThatEndsAtItsFirstMessagesEndsNobodyElse) {
  for (int moment = 0; moment < 40; ++moment) {
    SCOPED_TRACE(moment);
    workers_.clear();
    addresses_.clear();
    ucx_addresses_.clear();
    Make(3);
    ConnectAll();
    const FrameHeader header = Header(FrameType::kOpen, 1, 0);
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) {
        if (from != to) wire(from).Send(to, header, nullptr, 0);
      }
    }
    for (int i = 0; i < moment; ++i) wire(i % 3).Progress();
    workers_[2]->wire.reset();
    ASSERT_TRUE(
        Until([&] { return collector(0).closed.count(2) + collector(1).closed.count(2) == 2; }));
    ASSERT_TRUE(Until([&] {
      const auto from_other = [&](int at, int other) {
        return std::any_of(collector(at).frames.begin(), collector(at).frames.end(),
                           [&](const auto& frame) { return frame.peer == other; });
      };
      return from_other(0, 1) && from_other(1, 0);
    }));
  }
}

// For a message of several parts UCX must know what its peer calls the connection, and it asked for that when the
// first such message was sent. A peer that took nothing more by then and ended took this process along.
TEST_P(UcxWireTest, AWorkerThatIsSilentBeforeTheFirstLargeMessageToItEndsNobodyElse) {
  constexpr size_t kOnePart = 4 << 10, kManyParts = 30 << 10;
  for (const size_t last : {kManyParts, size_t{kFragmentBytes}}) {
    SCOPED_TRACE(last);
    workers_.clear();
    addresses_.clear();
    ucx_addresses_.clear();
    Make(3);
    ConnectAll();
    const auto drive = [&](int rank) {
      for (int i = 0; i < 100; ++i) wire(rank).Progress();
    };
    drive(2);  // for a while it takes nothing now
    const std::string some = Noise(7, kOnePart), large = Noise(8, last);
    int frames = 0;
    while (wire(0).Flushed(2)) {
      ASSERT_LT(++frames, 20'000) << "the fault did not happen";
      wire(0).Send(2, Header(FrameType::kGate, 1, some.size()), Bytes(some), 0);
      drive(0);
    }
    wire(0).Send(2, Header(FrameType::kData, 1, large.size()), Bytes(large), 1);
    drive(0);
    while (wire(2).Progress()) {  // so that there is room again for what it will not take any more
    }
    workers_[2]->wire.reset();
    ASSERT_TRUE(
        Until([&] { return collector(0).closed.count(2) + collector(1).closed.count(2) == 2; }));
    wire(0).Send(1, Header(FrameType::kData, 2, large.size()), Bytes(large), 2);
    ASSERT_TRUE(Until([&] { return collector(1).frames.size() == 1; }));
    EXPECT_EQ(collector(1).frames.front().payload, large);
  }
}

// UCX asked each peer now and then whether it was there. One that had closed the connection connected anew to
// answer, which failed where the other had ended by then.
TEST_P(UcxWireTest, NobodyIsWokenWhereNothingIsSent) {
  setenv("UCX_KEEPALIVE_INTERVAL", "20ms", 1);
  Make(2);
  unsetenv("UCX_KEEPALIVE_INTERVAL");
  ConnectAll();
  for (int rank = 0; rank < 2; ++rank) {
    while (wire(rank).Progress() || !wire(rank).Arm()) {
    }
  }
  pollfd polls[2] = {{.fd = wire(0).fd(), .events = POLLIN, .revents = 0},
                     {.fd = wire(1).fd(), .events = POLLIN, .revents = 0}};
  EXPECT_EQ(poll(polls, 2, 500), 0);
}

// UCX's port was taken to be whatever had begun to listen while UCX started, so that ports of other
// threads, such as those of other workers in this process, let nobody in.
TEST_P(UcxWireTest, PortsThatOtherThreadsOpenMeanwhileStayOpen) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> begun = false, made = false;
    std::vector<TcpListener> listeners;
    std::thread other([&] {
      while (!made && listeners.size() < 300) {
        listeners.push_back(*ListenTcp("127.0.0.1"));
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    const auto worker = UcxWorker::Make("127.0.0.1");
    made = true;
    other.join();
    ASSERT_TRUE(worker.ok()) << worker.status();
    EXPECT_EQ((*worker)->listeners(), 1u);
    std::vector<UniqueFd> connecting;
    for (const TcpListener& listener : listeners) {
      sockaddr_in address = {};
      socklen_t bytes = sizeof(address);
      ASSERT_EQ(getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
      connecting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      connect(connecting.back().get(), reinterpret_cast<const sockaddr*>(&address), bytes);
    }
    for (const UniqueFd& socket : connecting) {
      pollfd poll_one = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
      ASSERT_EQ(poll(&poll_one, 1, 5000), 1);
      ASSERT_EQ(poll_one.revents, POLLOUT);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UcxWireTest, ::testing::Values("ucx"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace syncopate::transport::net
