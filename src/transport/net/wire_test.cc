// What every wire promises, tested on each of them: between workers in this process, and with one
// in a process of its own that is ended.
#include "transport/net/wire.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "transport/net/wire_testing.h"

namespace syncopate::transport::net {
namespace {

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
    wire(0).Send(1, Header(FrameType::kOpen, kFrames, 0), nullptr, 0);
    ASSERT_TRUE(Until([&] {
      return wire(0).Flushed(1) && !collector(1).frames.empty() &&
             std::any_of(collector(1).frames.begin(), collector(1).frames.end(),
                         [](const auto& frame) { return frame.header.type == FrameType::kOpen; });
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

TEST_P(WireTest, AbandonedMemoryIsNotWrittenAnyMore) {
  Make(2);
  ConnectAll();
  constexpr uint64_t kFrames = 20;
  const std::string data = Noise(6, kPayloadBytesMax);
  for (uint64_t i = 0; i < kFrames; ++i) {
    wire(0).Send(1, Header(FrameType::kData, i, data.size()), Bytes(data), i + 1);
  }
  // Only the first half of the frames: the others show that nothing else suffers.
  ASSERT_TRUE(Until([&] {
    if (collector(1).abandoned.size() < kFrames / 2) collector(1).AbandonAll(wire(1));
    return collector(1).frames.size() + collector(1).abandoned.size() == kFrames;
  }));
  wire(0).Close(1, /*politely=*/true);
  ASSERT_TRUE(Until([&] { return collector(1).closed.size() == 1; }));
  EXPECT_TRUE(collector(1).closed.at(0).ok()) << collector(1).closed.at(0);
  // UCX never stops in the middle of a frame.
  EXPECT_EQ(collector(1).abandoned.empty(), IsUcx());
  for (const std::string& memory : collector(1).abandoned) {
    EXPECT_TRUE(memory == std::string(memory.size(), 'x'));
  }
  EXPECT_FALSE(collector(1).frames.empty());
  for (const Collector::Frame& frame : collector(1).frames) EXPECT_TRUE(frame.payload == data);
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
  EXPECT_LT(MonotonicClock().NowNs() - begin_ns, kWireSecond);
  EXPECT_FALSE(collector(0).closed.at(1).ok());
  EXPECT_TRUE(Until([&] { return collector(0).sent.size() == count; }));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  for (const int fd : {ready[0], ready[1], to_child[0], to_child[1]}) close(fd);
}

INSTANTIATE_TEST_SUITE_P(All, WireTest, ::testing::Values("tcp", "tls", "ucx"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace syncopate::transport::net
