// What only the wire over TCP does: it bounds what peers may have in flight by its receive buffers.
#include "transport/net/tcp_wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "transport/net/wire_testing.h"

namespace syncopate::transport::net {
namespace {

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
  const auto number = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof(value);
    getsockopt(fd, level, name, &value, &size);
    return value;
  };
  // The kernel doubles what it is told. A window may be bounded below it.
  const auto buffer = [&] {
    const int window = number(IPPROTO_TCP, TCP_WINDOW_CLAMP);
    return std::min(number(SOL_SOCKET, SO_RCVBUF) / 2, window > 0 ? window : INT_MAX);
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
  // What was promised is kept: data that two workers had in flight to each other was dropped, with what it
  // acknowledged, and neither got on.
  EXPECT_EQ(number(SOL_SOCKET, SO_RCVBUF), 2 * kBuffer);
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
    const int64_t until_ns = MonotonicClock().NowNs() + 20 * kWireSecond;
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
  const FrameHeader header = Header(FrameType::kData, 0, kFragmentBytes);
  for (int i = 0; i < 20; ++i) pair.sender->Send(1, header, Bytes(data), 1);
  ASSERT_TRUE(pair.ReceiveAll(20));
  pair.receiver->Expect(0, 1);
  int window = 0;
  socklen_t size = sizeof(window);
  getsockopt(pair.receiving, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, &size);
  EXPECT_GE(window, kBuffer);
}

}  // namespace
}  // namespace syncopate::transport::net
