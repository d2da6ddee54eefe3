// For tests of the core: one worker over TCP's wire, the other ends of whose connections the test
// holds. It writes what peers send byte by byte, and reads what the worker sends to them.
#ifndef SYNCOPATE_TRANSPORT_NET_CORE_TESTING_H_
#define SYNCOPATE_TRANSPORT_NET_CORE_TESTING_H_

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "transport/net/core.h"
#include "transport/net/gate_message.h"
#include "transport/net/loss_message.h"
#include "transport/net/tcp_wire.h"

namespace syncopate::transport::net {

class CoreTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kJob = 7;
  static constexpr uint64_t kGroup = 5;
  static constexpr uint64_t kDigest = 99;
  static constexpr int kLanes = 2;

  // Worker 0 of a job; the test plays `peers`, the others stay silent.
  void Make(int size, const std::vector<int>& peers) {
    Core::Options options = {.rank = 0, .size = size, .job = kJob, .hosts = {}, .consensus = {}};
    options.consensus.size = size;
    core_ = std::make_unique<Core>(options, MonotonicClock());
    std::vector<std::vector<UniqueFd>> sockets(static_cast<size_t>(size));
    ends_.resize(static_cast<size_t>(size));
    for (const int peer : peers) {
      for (int lane = 0; lane < kLanes; ++lane) {
        int pair[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        sockets[static_cast<size_t>(peer)].emplace_back(pair[0]);
        ends_[static_cast<size_t>(peer)].emplace_back(pair[1]);
      }
    }
    core_->Attach(*TcpWire::Make(std::move(sockets), *core_));
  }

  NetGroup& Open(const std::vector<int>& members, uint64_t key = kGroup) {
    EXPECT_TRUE(core_->OpenGroup(key, members).ok());
    return core_->group(key);
  }

  NetOperation& Begin(NetGroup& group, SessionSpec spec) {
    if (spec.digest == 0) spec.digest = kDigest;
    spec.awaits_start = false;
    return core_->Begin(group, spec, group.MemberOf(0));
  }

  // What has come of a message, or nothing if it is not complete.
  std::string Came(NetGroup& group, NetOperation& operation, int rank, uint32_t step,
                   uint64_t bytes) {
    const std::byte* at = core_->Arrived(group, operation, group.MemberOf(rank), step, bytes);
    return at == nullptr ? "" : std::string(reinterpret_cast<const char*>(at), bytes);
  }

  static FrameHeader Header(FrameType type, uint64_t sequence = 0) {
    return {.type = type, .job = kJob, .group = kGroup, .sequence = sequence, .digest = kDigest};
  }
  // A frame with the whole of its message.
  static std::string Frame(FrameHeader header, absl::string_view payload) {
    header.total = payload.size();
    return Bytes(header, payload);
  }
  static std::string Frame(FrameHeader header, const GateMessage& message) {
    return Frame(header, Encode(message));
  }
  static std::string Frame(FrameHeader header, const LossMessage& message) {
    return Frame(header, Encode(message));
  }
  // A frame as the header says, with the length of its payload filled in.
  static std::string Bytes(FrameHeader header, absl::string_view payload) {
    header.payload_bytes = static_cast<uint32_t>(payload.size());
    const EncodedHeader encoded = Encode(header);
    return std::string(reinterpret_cast<const char*>(encoded.data()), encoded.size()) +
           std::string(payload);
  }

  // Writes what `peer` sends, and lets the worker take all of it.
  void Write(int peer, absl::string_view bytes, int lane = 0) {
    const UniqueFd& end = ends_[static_cast<size_t>(peer)][static_cast<size_t>(lane)];
    while (!bytes.empty()) {
      const ssize_t sent = send(end.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) break;  // the worker has hung up
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (!core_->Progress() && sent < 0) break;
    }
    Settle();
  }
  void Settle() {
    while (core_->Progress()) {
    }
  }
  // Ends all connections of `peer` as its death does.
  void Kill(int peer) {
    ends_[static_cast<size_t>(peer)].clear();
    Settle();
  }

  // The frames that the worker has sent to `peer` on its first lane since the last call.
  std::vector<std::pair<FrameHeader, std::string>> SentFrames(int peer) {
    Settle();
    std::string bytes;
    char buffer[4096];
    const int end = ends_[static_cast<size_t>(peer)].front().get();
    for (ssize_t got = 0; (got = recv(end, buffer, sizeof(buffer), 0)) > 0;) {
      bytes.append(buffer, static_cast<size_t>(got));
      Settle();
    }
    std::vector<std::pair<FrameHeader, std::string>> frames;
    absl::string_view rest = bytes;
    while (rest.size() >= kFrameHeaderBytes) {
      const auto header = DecodeFrameHeader(
          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(rest.data()), kFrameHeaderBytes));
      EXPECT_TRUE(header.ok()) << header.status();
      if (!header.ok()) break;
      rest.remove_prefix(kFrameHeaderBytes);
      const absl::string_view payload = rest.substr(0, header->payload_bytes);
      frames.emplace_back(*header, std::string(payload));
      rest.remove_prefix(payload.size());
    }
    return frames;
  }
  // Their headers.
  std::vector<FrameHeader> Sent(int peer) {
    std::vector<FrameHeader> headers;
    for (const auto& [header, payload] : SentFrames(peer)) headers.push_back(header);
    return headers;
  }

  std::unique_ptr<Core> core_;
  std::vector<std::vector<UniqueFd>> ends_;  // the test's, by rank and lane
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_CORE_TESTING_H_
