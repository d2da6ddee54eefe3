// For tests of wires: workers in this process that are connected by one, and what came to them.
#ifndef SYNCOPATE_TRANSPORT_NET_WIRE_TESTING_H_
#define SYNCOPATE_TRANSPORT_NET_WIRE_TESTING_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "transport/net/tcp_mesh.h"
#include "transport/net/tcp_wire.h"
#include "transport/net/tls_mesh.h"
#include "transport/net/ucx_wire.h"
#include "transport/net/ucx_worker.h"
#include "transport/net/wire.h"

namespace syncopate::transport::net {

inline constexpr int64_t kWireSecond = 1'000'000'000;

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

  // Abandons all memory that frames are being read into, and marks it with 'x'.
  void AbandonAll(Wire& wire) {
    for (auto& [key, memory] : coming_) {
      wire.Abandon(reinterpret_cast<std::byte*>(memory.data()), memory.size());
      memory.assign(memory.size(), 'x');
      abandoned.push_back(std::move(memory));
    }
    coming_.clear();
  }

  static constexpr uint32_t kUnwanted = 99;
  std::vector<Frame> frames;
  std::vector<uint64_t> sent;
  std::map<int, absl::Status> closed;
  std::vector<std::string> abandoned;

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
    const int64_t deadline_ns = MonotonicClock().NowNs() + 20 * kWireSecond;
    const MeshOptions mesh = {.rank = rank,
                              .size = size(),
                              .lanes = IsUcx() ? 1 : 2,
                              .key = "the key",
                              .addresses = addresses_};
    auto sockets = *ConnectMesh(std::move(worker.listener), mesh, MonotonicClock(), deadline_ns);
    if (!IsUcx()) {
      TlsMesh sessions;
      if (GetParam() == "tls") {
        sessions = *SecureMesh(sockets, mesh, MonotonicClock(), deadline_ns);
      }
      worker.wire = *TcpWire::Make(std::move(sockets), worker.collector, 0, std::move(sessions));
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
  bool Until(Condition condition, int64_t limit_ns = 20 * kWireSecond) {
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

inline std::string Noise(uint64_t seed, size_t bytes) {
  Random random(seed);
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random.Next());
  return noise;
}
inline const std::byte* Bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

inline FrameHeader Header(FrameType type, uint64_t sequence, size_t bytes) {
  return {.type = type,
          .payload_bytes = static_cast<uint32_t>(bytes),
          .sequence = sequence,
          .total = bytes};
}

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_WIRE_TESTING_H_
