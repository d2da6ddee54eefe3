// The worlds in which the conformance suite tests each transport: all workers of a job in this process.
#ifndef SYNCOPATE_TRANSPORT_TRANSPORT_TESTING_H_
#define SYNCOPATE_TRANSPORT_TRANSPORT_TESTING_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "transport/loop/loop_transport.h"
#include "transport/net/net_transport.h"
#include "transport/shm/shm_transport.h"
#include "transport/transport.h"

namespace syncopate::transport {

// All workers of a job in this process; one thread polls them all.
class World {
 public:
  virtual ~World() = default;
  virtual Transport& transport(int rank) = 0;
  virtual void Pass() {}  // lets time pass where the transport has none of its own
  // Ends a worker as if it had died.
  virtual void Lose(int rank) = 0;
};

class LoopTestWorld final : public World {
 public:
  explicit LoopTestWorld(int size) : network_(size, 42) {
    for (int rank = 0; rank < size; ++rank) transports_.push_back(network_.Attach(rank));
  }
  Transport& transport(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void Pass() override { network_.Tick(); }
  void Lose(int rank) override { network_.Kill(rank); }

 private:
  LoopNetwork network_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

class ShmTestWorld final : public World {
 public:
  explicit ShmTestWorld(int size) : transports_(static_cast<size_t>(size)) {
    static int jobs = 0;
    const std::string job =
        "transport-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        transports_[static_cast<size_t>(rank)] = *StartShmTransport(
            {.job = job, .rank = rank, .size = size, .arena_bytes = 1 << 20}, MonotonicClock());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Transport& transport(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void Lose(int rank) override { transports_[static_cast<size_t>(rank)].reset(); }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Workers that meet by TCP on the loopback; those of one `machine` share memory. `secure`: what is
// between machines goes in TLS.
class NetTestWorld final : public World {
 public:
  NetTestWorld(int size, int machines, const std::string& wire, int lanes, bool secure = false)
      : transports_(static_cast<size_t>(size)) {
    static int jobs = 0;
    const std::string job = "net-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    std::vector<std::unique_ptr<NetStart>> starts;
    std::vector<std::string> payloads;
    for (int rank = 0; rank < size; ++rank) {
      starts.push_back(*StartNetTransport({.job = job,
                                           .rank = rank,
                                           .size = size,
                                           .ip = "127.0.0.1",
                                           .wire = wire,
                                           .secure = secure,
                                           .lanes = lanes,
                                           .machine = "machine " + std::to_string(rank % machines),
                                           .arena_bytes = 1 << 20},
                                          MonotonicClock()));
      payloads.push_back(starts.back()->payload());
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        transports_[static_cast<size_t>(rank)] =
            *starts[static_cast<size_t>(rank)]->Connect(payloads, "the key of this job");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Transport& transport(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void Pass() override {
    bool moved = false;
    for (auto& transport : transports_) moved |= transport != nullptr && transport->Progress();
    if (!moved) std::this_thread::yield();
  }
  void Lose(int rank) override { transports_[static_cast<size_t>(rank)].reset(); }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

using MakeWorld = std::function<std::unique_ptr<World>(int size)>;

// transport_test.cc says on which transports its tests run.
class TransportTest : public ::testing::TestWithParam<std::pair<const char*, MakeWorld>> {
 protected:
  void Make(int size) {
    world_ = GetParam().second(size);
    std::vector<int> everyone(static_cast<size_t>(size));
    std::iota(everyone.begin(), everyone.end(), 0);
    for (int rank = 0; rank < size; ++rank) {
      ports_.push_back(*world_->transport(rank).OpenGroup(77, everyone));
      memory_.push_back(*world_->transport(rank).Allocate(4096));
    }
  }

  void Unmake() {
    ports_.clear();
    for (size_t rank = 0; rank < memory_.size(); ++rank) {
      world_->transport(static_cast<int>(rank)).Free(memory_[rank]);
    }
    memory_.clear();
  }
  void TearDown() override { Unmake(); }

  uint64_t DigestOf(int rank) const {
    return 1000 + (own_digests_ ? static_cast<uint64_t>(rank) : 0);
  }

  std::unique_ptr<Session> Open(int rank, uint64_t sequence, uint32_t steps = 8) {
    auto session =
        ports_[static_cast<size_t>(rank)]->Open({.sequence = sequence,
                                                 .digest = DigestOf(rank),
                                                 .weight = 0.5 + rank,
                                                 .data = memory_[static_cast<size_t>(rank)],
                                                 .data_bytes = 4096,
                                                 .steps = steps});
    return session.ok() ? *std::move(session) : nullptr;
  }

  std::vector<std::unique_ptr<Session>> OpenAll(uint64_t sequence, uint32_t steps = 8) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (size_t rank = 0; rank < ports_.size(); ++rank) {
      sessions.push_back(Open(static_cast<int>(rank), sequence, steps));
    }
    return sessions;
  }

  // Polls until `condition` holds; false after so many passes that it never will.
  // Many rounds for transports whose time are rounds, and 20 s for those with threads of their own.
  bool Eventually(const std::function<bool()>& condition) {
    const int64_t until_ns = MonotonicClock().NowNs() + 20'000'000'000;
    for (int i = 0; i < 100000 || MonotonicClock().NowNs() < until_ns; ++i) {
      if (condition()) return true;
      world_->Pass();
    }
    return false;
  }

  bool EnterAll(std::vector<std::unique_ptr<Session>>& sessions, Gate gate) {
    for (size_t m = 0; m < sessions.size(); ++m) {
      if (!sessions[m]->Enter(gate, static_cast<int>(m))) return false;
    }
    return Eventually([&] {
      return std::all_of(sessions.begin(), sessions.end(),
                         [&](auto& s) { return s->State(gate) == GateState::kPassed; });
    });
  }

  bool own_digests_ = false;  // every worker has its own
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<GroupPort>> ports_;
  std::vector<std::byte*> memory_;
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_TRANSPORT_TESTING_H_
