// What every wire promises, tested on each of them: between workers in this process, and with one
// in a process of its own that is ended.
#include "transport/net/wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "transport/net/tcp_mesh.h"
#include "transport/net/tcp_wire.h"
#include "transport/net/ucx_library.h"
#include "transport/net/ucx_wire.h"

namespace syncopate::transport::net {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Keeps what comes.
class Collector final : public WireHandler {
 public:
  struct Frame {
    int peer = -1;
    FrameHeader header;
    std::string payload;
  };

  std::byte* Place(int peer, const FrameHeader& header) override {
    if (header.step == kUnwanted) return nullptr;
    std::string& memory = coming_[{peer, header.sequence}];
    memory.resize(header.payload_bytes);
    return reinterpret_cast<std::byte*>(memory.data());
  }
  void Arrived(int peer, const FrameHeader& header) override {
    EXPECT_FALSE(closed.contains(peer)) << "a frame after the end";
    frames.push_back({peer, header, std::move(coming_[{peer, header.sequence}])});
    coming_.erase({peer, header.sequence});
  }
  void Sent(uint64_t cookie) override { sent.push_back(cookie); }
  void Closed(int peer, const absl::Status& why) override {
    EXPECT_TRUE(closed.emplace(peer, why).second) << "closed twice";
  }

  static constexpr uint32_t kUnwanted = 99;
  std::vector<Frame> frames;
  std::vector<uint64_t> sent;
  std::map<int, absl::Status> closed;

 private:
  std::map<std::pair<int, uint64_t>, std::string> coming_;
};

class WireTest : public ::testing::TestWithParam<std::string> {
 protected:
  struct Worker {
    TcpListener listener;
    std::unique_ptr<UcxWorker> ucx;
    Collector collector;
    std::unique_ptr<Wire> wire;
  };

  void Make(int size) {
    for (int rank = 0; rank < size; ++rank) {
      auto worker = std::make_unique<Worker>();
      worker->listener = *ListenTcp("127.0.0.1");
      addresses_.push_back(worker->listener.address);
      if (IsUcx()) {
        worker->ucx = *UcxWorker::Make("127.0.0.1");
        ucx_addresses_.push_back(worker->ucx->address());
      } else {
        ucx_addresses_.emplace_back();
      }
      workers_.push_back(std::move(worker));
    }
  }
  void ConnectAll() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([this, rank] { Connect(rank); });
    for (std::thread& thread : threads) thread.join();
  }
  void Connect(int rank) {
    Worker& worker = *workers_[static_cast<size_t>(rank)];
    const int64_t deadline_ns = MonotonicClock().NowNs() + 20 * kSecond;
    auto sockets = *ConnectMesh(std::move(worker.listener),
                                {.rank = rank,
                                 .size = size(),
                                 .lanes = IsUcx() ? 1 : 2,
                                 .key = "the key",
                                 .addresses = addresses_},
                                MonotonicClock(), deadline_ns);
    if (!IsUcx()) {
      worker.wire = *TcpWire::Make(std::move(sockets), worker.collector);
      return;
    }
    UcxWire::Options options = {.rank = rank, .addresses = ucx_addresses_};
    for (auto& lanes : sockets) {
      options.sockets.push_back(lanes.empty() ? UniqueFd() : std::move(lanes.front()));
    }
    worker.wire = *UcxWire::Make(std::move(worker.ucx), std::move(options), worker.collector,
                                 MonotonicClock(), deadline_ns);
  }

  bool IsUcx() const { return GetParam() == "ucx"; }
  int size() const { return static_cast<int>(workers_.size()); }
  Wire& wire(int rank) { return *workers_[static_cast<size_t>(rank)]->wire; }
  Collector& collector(int rank) { return workers_[static_cast<size_t>(rank)]->collector; }

  // Sleeps where nothing is to be done, as a transport does: a wake-up that is missed shows as a
  // wait that is too long.
  template <typename Condition>
  bool Until(Condition condition, int64_t limit_ns = 20 * kSecond) {
    const int64_t deadline_ns = MonotonicClock().NowNs() + limit_ns;
    while (!condition()) {
      if (MonotonicClock().NowNs() > deadline_ns) return false;
      std::vector<pollfd> polls;
      bool idle = true;
      for (auto& worker : workers_) {
        if (worker->wire == nullptr) continue;
        if (worker->wire->Progress()) idle = false;
      }
      if (!idle) continue;
      for (auto& worker : workers_) {
        if (worker->wire == nullptr) continue;
        idle = idle && worker->wire->Arm();
        polls.push_back({.fd = worker->wire->fd(), .events = POLLIN, .revents = 0});
      }
      if (idle) poll(polls.data(), polls.size(), static_cast<int>(limit_ns / 1'000'000));
    }
    return true;
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::string> addresses_;
  std::vector<std::string> ucx_addresses_;
};

std::string Noise(uint64_t seed, size_t bytes) {
  Random random(seed);
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random.Next());
  return noise;
}
const std::byte* Bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}
FrameHeader Header(FrameType type, uint64_t sequence, size_t bytes) {
  return {.type = type,
          .payload_bytes = static_cast<uint32_t>(bytes),
          .sequence = sequence,
          .total = bytes};
}

TEST_P(WireTest, PayloadsOfAllSizesArriveWholeInAllDirections) {
  Make(3);
  ConnectAll();
  const std::vector<size_t> sizes = {
      0, 1, 64, 4096, 8192, 32767, 32768, kFragmentBytes, kPayloadBytesMax};
  std::vector<std::string> payloads;
  for (size_t i = 0; i < sizes.size(); ++i) payloads.push_back(Noise(i, sizes[i]));
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      for (size_t i = 0; i < sizes.size(); ++i) {
        wire(from).Send(to, Header(FrameType::kData, i, sizes[i]), Bytes(payloads[i]), i + 1);
      }
    }
  }
  ASSERT_TRUE(Until([&] {
    return std::all_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
      return worker->collector.frames.size() == 2 * sizes.size() &&
             worker->collector.sent.size() == 2 * sizes.size();
    });
  }));
  for (const auto& worker : workers_) {
    for (const Collector::Frame& frame : worker->collector.frames) {
      EXPECT_EQ(frame.payload, payloads[frame.header.sequence]);
    }
  }
}

TEST_P(WireTest, ControlFramesKeepTheirOrderBetweenData) {
  Make(2);
  ConnectAll();
  const std::string data = Noise(1, kFragmentBytes);
  constexpr uint64_t kFrames = 200;
  for (uint64_t i = 0; i < kFrames; ++i) {
    wire(0).Send(1, Header(FrameType::kData, kFrames + i, data.size()), Bytes(data), 1);
    const std::string text = std::to_string(i);
    wire(0).Send(1, Header(FrameType::kGate, i, text.size()), Bytes(text), 0);
  }
  ASSERT_TRUE(Until([&] { return collector(1).frames.size() == 2 * kFrames; }));
  uint64_t next = 0;
  for (const Collector::Frame& frame : collector(1).frames) {
    if (frame.header.type != FrameType::kGate) continue;
    EXPECT_EQ(frame.header.sequence, next);
    EXPECT_EQ(frame.payload, std::to_string(next));
    ++next;
  }
}

TEST_P(WireTest, UnwantedPayloadsAreDroppedAndOthersFollow) {
  Make(2);
  ConnectAll();
  const std::string data = Noise(1, kFragmentBytes);
  FrameHeader unwanted = Header(FrameType::kData, 0, data.size());
  unwanted.step = Collector::kUnwanted;
  wire(0).Send(1, unwanted, Bytes(data), 1);
  wire(0).Send(1, Header(FrameType::kData, 1, data.size()), Bytes(data), 2);
  ASSERT_TRUE(Until([&] { return collector(1).frames.size() == 1; }));
  EXPECT_EQ(collector(1).frames.front().payload, data);
}

TEST_P(WireTest, AGoodEndComesAfterAllThatWasSent) {
  Make(2);
  ConnectAll();
  const std::string data = Noise(2, kFragmentBytes);
  constexpr uint64_t kFrames = 100;
  for (uint64_t i = 0; i < kFrames; ++i) {
    wire(0).Send(1, Header(FrameType::kData, i, data.size()), Bytes(data), i + 1);
  }
  wire(0).Close(1, /*politely=*/true);
  ASSERT_TRUE(Until([&] { return collector(0).closed.size() + collector(1).closed.size() == 2; }));
  EXPECT_EQ(collector(1).frames.size(), kFrames);
  EXPECT_EQ(collector(0).sent.size(), kFrames);
  EXPECT_TRUE(collector(1).closed.at(0).ok()) << collector(1).closed.at(0);
  EXPECT_TRUE(collector(0).closed.at(1).ok()) << collector(0).closed.at(1);
}

TEST_P(WireTest, DetachedMemoryIsNotReadAnyMore) {
  Make(2);
  ConnectAll();
  constexpr uint64_t kFrames = 200;  // far more than the network takes at once
  const std::string expected = Noise(3, kFragmentBytes);
  {
    auto data = std::make_unique<std::string>(expected);
    for (uint64_t i = 0; i < kFrames; ++i) {
      wire(0).Send(1, Header(FrameType::kData, i, data->size()), Bytes(*data), 7);
    }
    const size_t sent = collector(0).sent.size();
    ASSERT_LT(sent, kFrames) << "nothing was left to detach";
    wire(0).Detach(7);
    std::fill(data->begin(), data->end(), 'x');
    data.reset();
    wire(0).Send(1, Header(FrameType::kGate, kFrames, 0), nullptr, 0);
    ASSERT_TRUE(Until([&] {
      return wire(0).Flushed(1) && !collector(1).frames.empty() &&
             std::any_of(collector(1).frames.begin(), collector(1).frames.end(),
                         [](const auto& frame) { return frame.header.type == FrameType::kGate; });
    }));
    EXPECT_EQ(collector(0).sent.size(), sent);
  }
  wire(0).Close(1, /*politely=*/true);
  ASSERT_TRUE(Until([&] { return collector(1).closed.size() == 1; }));
  EXPECT_LT(collector(1).frames.size(), kFrames);
  for (const Collector::Frame& frame : collector(1).frames) {
    if (frame.header.type != FrameType::kData) continue;
    EXPECT_EQ(frame.payload, expected);
  }
}

TEST_P(WireTest, AClosedPeerIsNotHeardOfAgain) {
  Make(3);
  ConnectAll();
  const std::string data = Noise(4, kFragmentBytes);
  for (uint64_t i = 0; i < 50; ++i) {
    wire(0).Send(1, Header(FrameType::kData, i, data.size()), Bytes(data), i + 1);
  }
  wire(0).Close(1, /*politely=*/false);
  ASSERT_TRUE(Until([&] { return collector(1).closed.contains(0); }));
  ASSERT_TRUE(Until([&] { return collector(0).sent.size() == 50; }));
  wire(0).Send(1, Header(FrameType::kData, 50, data.size()), Bytes(data), 51);
  EXPECT_EQ(collector(0).sent.size(), 51u) << "what goes nowhere is given back at once";
  EXPECT_FALSE(collector(0).closed.contains(1));
  // The others go on.
  wire(0).Send(2, Header(FrameType::kData, 0, data.size()), Bytes(data), 1);
  ASSERT_TRUE(Until([&] { return collector(2).frames.size() == 1; }));
}

// The other end is a process of its own, ended in the middle of a stream of large frames.
TEST_P(WireTest, AKilledPeerIsSeenAndGivesAllMemoryBack) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  int to_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  const auto tell = [](int fd, const std::string& text) {
    const uint32_t bytes = static_cast<uint32_t>(text.size());
    ASSERT_EQ(write(fd, &bytes, sizeof(bytes)), static_cast<ssize_t>(sizeof(bytes)));
    ASSERT_EQ(write(fd, text.data(), bytes), static_cast<ssize_t>(bytes));
  };
  const auto hear = [](int fd) {
    uint32_t bytes = 0;
    if (read(fd, &bytes, sizeof(bytes)) != sizeof(bytes) || bytes > 65536) return std::string();
    std::string text(bytes, '\0');
    for (size_t got = 0; got < bytes;) {
      const ssize_t more = read(fd, text.data() + got, bytes - got);
      if (more <= 0) return std::string();
      got += static_cast<size_t>(more);
    }
    return text;
  };
  const int mine = child == 0 ? 1 : 0;
  const int to = child == 0 ? ready[1] : to_child[1];
  const int from = child == 0 ? to_child[0] : ready[0];
  // Only the own worker is made in each process: nothing of UCX goes through the fork.
  addresses_.resize(2);
  ucx_addresses_.resize(2);
  for (int rank = 0; rank < 2; ++rank) workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_[static_cast<size_t>(mine)];
  worker.listener = *ListenTcp("127.0.0.1");
  if (IsUcx()) worker.ucx = *UcxWorker::Make("127.0.0.1");
  addresses_[static_cast<size_t>(mine)] = worker.listener.address;
  ucx_addresses_[static_cast<size_t>(mine)] = IsUcx() ? worker.ucx->address() : " ";
  tell(to, addresses_[static_cast<size_t>(mine)]);
  tell(to, ucx_addresses_[static_cast<size_t>(mine)]);
  addresses_[static_cast<size_t>(1 - mine)] = hear(from);
  ucx_addresses_[static_cast<size_t>(1 - mine)] = hear(from);
  Connect(mine);
  const std::string data = Noise(5, kFragmentBytes);
  uint64_t count = 0;
  const auto stream = [&] {
    while (count < collector(mine).sent.size() + 64) {
      wire(mine).Send(1 - mine, Header(FrameType::kData, count, data.size()), Bytes(data),
                      count + 1);
      ++count;
    }
  };
  if (child == 0) {
    Until([&] {
      stream();
      return false;
    });
    _exit(0);
  }
  ASSERT_TRUE(Until([&] {
    stream();
    return collector(0).frames.size() > 20;
  }));
  EXPECT_TRUE(collector(0).closed.empty());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  const int64_t begin_ns = MonotonicClock().NowNs();
  ASSERT_TRUE(Until([&] { return collector(0).closed.contains(1); }));
  EXPECT_LT(MonotonicClock().NowNs() - begin_ns, kSecond);
  EXPECT_FALSE(collector(0).closed.at(1).ok());
  EXPECT_TRUE(Until([&] { return collector(0).sent.size() == count; }));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  for (const int fd : {ready[0], ready[1], to_child[0], to_child[1]}) close(fd);
}

INSTANTIATE_TEST_SUITE_P(All, WireTest, ::testing::Values("tcp", "ucx"),
                         [](const auto& param) { return param.param; });

// ---- what only UCX needs

class Stranger {
 public:
  Stranger(const std::string& address) : worker_(*UcxWorker::Make("127.0.0.1")) {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    EXPECT_EQ(Ucx().ep_create(worker_->handle(), &params, &endpoint_), UCS_OK);
  }
  ~Stranger() {
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
  Stranger stranger(address);
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
  const int64_t until_ns = MonotonicClock().NowNs() + kSecond / 2;
  bool came = false;
  while (MonotonicClock().NowNs() < until_ns || !came) {
    stranger.Progress();
    wire(1).Progress();
    wire(0).Progress();
    came = static_cast<UcxWire&>(wire(1)).strangers() == 60;
    ASSERT_LT(MonotonicClock().NowNs(), until_ns + 20 * kSecond) << "the fault did not happen";
  }
  EXPECT_TRUE(collector(1).frames.empty());
  EXPECT_TRUE(collector(1).closed.empty());
  wire(0).Send(1, header, Bytes(data), 1);
  ASSERT_TRUE(Until([&] { return collector(1).frames.size() == 1; }));
  EXPECT_EQ(collector(1).frames.front().payload, data);
}

// Two ends of a TCP connection with segments as on Ethernet.
std::pair<UniqueFd, UniqueFd> ConnectWithSmallSegments() {
  const int segment = 1400;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  UniqueFd ours(socket(AF_INET, SOCK_STREAM, 0));
  setsockopt(ours.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
  EXPECT_EQ(connect(ours.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return {std::move(ours), UniqueFd(accept(listener.get(), nullptr, nullptr))};
}

TEST(TcpWireTest, WhatMayBeOnItsWayIsDividedAmongThePeers) {
  constexpr int kBuffer = 120 << 10;
  auto [ours, theirs] = ConnectWithSmallSegments();
  auto [others, third] = ConnectWithSmallSegments();
  const int fd = ours.get();
  // The kernel doubles what it is told.
  const auto buffer = [&] {
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    return bytes / 2;
  };
  std::vector<std::vector<UniqueFd>> sockets(3);
  sockets[1].push_back(std::move(ours));
  sockets[2].push_back(std::move(others));
  Collector collector;
  const auto wire = *TcpWire::Make(std::move(sockets), collector, kBuffer);
  EXPECT_EQ(buffer(), kBuffer / 2);
  wire->Expect(1, 1);
  EXPECT_EQ(buffer(), kBuffer);
  for (int i = 0; i < 20; ++i) {  // now less, now more
    wire->Expect(1, i % 2 == 0 ? 0.25 : 1);
    EXPECT_EQ(buffer(), kBuffer);
  }
  for (int i = 0; i < 20 && buffer() == kBuffer; ++i) wire->Expect(1, 0.25);
  EXPECT_EQ(buffer(), kBuffer / 4);
  for (int i = 0; i < 20; ++i) wire->Expect(1, 0.001);
  EXPECT_GT(buffer(), 4 * 1400);
  EXPECT_LT(buffer(), kBuffer / 4);
}

// Two workers over one connection with segments as on Ethernet.
struct Pair {
  explicit Pair(int buffer) {
    auto [ours, theirs] = ConnectWithSmallSegments();
    receiving = theirs.get();
    for (const int fd : {ours.get(), theirs.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
    std::vector<std::vector<UniqueFd>> to(2), from(2);
    to[1].push_back(std::move(ours));
    from[0].push_back(std::move(theirs));
    sender = *TcpWire::Make(std::move(to), sent, buffer);
    receiver = *TcpWire::Make(std::move(from), came, buffer);
  }
  // False: not all frames have come within 20 s.
  bool ReceiveAll(size_t frames) {
    const int64_t until_ns = MonotonicClock().NowNs() + 20 * kSecond;
    while (came.frames.size() < frames && MonotonicClock().NowNs() < until_ns) {
      sender->Progress();
      receiver->Progress();
    }
    return came.frames.size() == frames;
  }

  int receiving = -1;
  Collector sent, came;
  std::unique_ptr<TcpWire> sender, receiver;
};

// Kernels bound the window by the buffer that there is when large segments come for the first time.
TEST(TcpWireTest, TheWindowGrowsWithTheBuffer) {
  constexpr int kBuffer = 120 << 10;
  Pair pair(kBuffer);
  for (int i = 0; i < 20; ++i) pair.receiver->Expect(0, 0.01);
  const std::string data = Noise(7, kFragmentBytes);
  FrameHeader header{.type = FrameType::kData, .payload_bytes = kFragmentBytes};
  for (int i = 0; i < 20; ++i) pair.sender->Send(1, header, Bytes(data), 1);
  ASSERT_TRUE(pair.ReceiveAll(20));
  pair.receiver->Expect(0, 1);
  int window = 0;
  socklen_t size = sizeof(window);
  getsockopt(pair.receiving, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, &size);
  EXPECT_GE(window, kBuffer);
}

INSTANTIATE_TEST_SUITE_P(All, UcxWireTest, ::testing::Values("ucx"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace syncopate::transport::net
