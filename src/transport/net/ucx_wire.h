// Frames over UCX: RDMA, or whatever UCX finds. A frame is one active message: our own header in
// front, then the payload; large ones by rendezvous, so that memory is taken for them only after
// the header was looked at.
//
// Beside UCX each pair of workers keeps the TCP connection on which they proved that they know the
// job's key. Over it they tell each other a secret that every message then carries: UCX itself
// accepts messages from anyone. It also shows at once when a peer's process ends, and how many
// frames came before a good end.
//
// Payloads are copied on both sides, into memory of the wire's own. UCX cannot be told to let go of
// a buffer that a stopped peer still holds up, while the callers of Wire must get theirs back.
#ifndef SYNCOPATE_TRANSPORT_NET_UCX_WIRE_H_
#define SYNCOPATE_TRANSPORT_NET_UCX_WIRE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "base/unique_fd.h"
#include "transport/net/buffer_pool.h"
#include "transport/net/peer_wire.h"
#include "transport/net/send_queue.h"
#include "transport/net/ucx_worker.h"
#include "transport/net/wire.h"

namespace syncopate::transport::net {

class UcxWire final : public PeerWire {
 public:
  struct Options {
    int rank = 0;
    std::vector<std::string> addresses = {};  // of all workers, by rank
    // Proved and non-blocking, by rank; this worker's own place is empty.
    std::vector<UniqueFd> sockets = {};
  };

  // The handler must outlive the wire. By `deadline_ns` all peers have told their secrets and are
  // connected, on both sides.
  static absl::StatusOr<std::unique_ptr<UcxWire>> Make(std::unique_ptr<UcxWorker> worker,
                                                       Options options, WireHandler& handler,
                                                       const Clock& clock, int64_t deadline_ns);
  ~UcxWire() override;

  void Send(int peer, const FrameHeader& header, const std::byte* payload,
            uint64_t cookie) override;
  bool Progress() override;
  bool Arm() override;
  int fd() const override { return epoll_.get(); }
  void Detach(uint64_t cookie) override;
  // Payloads come into memory of the wire's own, and are copied to their place all at once.
  void Abandon(const std::byte* /*memory*/, size_t /*bytes*/) override {}
  bool Flushed(int peer) const override;

  // Messages that did not show their secret, and were dropped.
  uint64_t strangers() const { return strangers_; }

 private:
  static constexpr size_t kSecretBytes = 16;
  // What is in front of each payload: {u32 rank, u32 0, secret, frame header}.
  static constexpr size_t kPrefixBytes = 8 + kSecretBytes + kFrameHeaderBytes;

  struct Peer : Connection {
    ucp_ep_h endpoint = nullptr;
    PrivateFd socket;
    std::string secret;  // that it must show us
    std::string prefix;  // of what we send to it, without the frame's header
    size_t in_flight_bytes = 0;
    uint64_t frames_sent = 0;
    uint64_t frames_got = 0;
    std::string farewell;  // read from its socket
    bool hung_up = false;  // its socket ended
    ucs_status_t failure = UCS_OK;
    bool pumping = false;
  };
  // A message that UCX reads or writes.
  struct Transfer {
    UcxWire* wire = nullptr;
    int peer = -1;
    Buffer buffer;
    size_t bytes = 0;
    FrameHeader header;  // of what comes in
    std::list<std::unique_ptr<Transfer>>::iterator place;
  };

  UcxWire(std::unique_ptr<UcxWorker> worker, int rank, PrivateFd epoll, WireHandler& handler)
      : PeerWire(handler), rank_(rank), worker_(std::move(worker)), epoll_(std::move(epoll)) {}
  absl::Status Connect(Options options, const Clock& clock, int64_t deadline_ns);
  absl::Status ExchangeSecrets(const Clock& clock, int64_t deadline_ns);
  absl::Status MakeEndpoints(const std::vector<std::string>& addresses);
  absl::Status CompleteEndpoints(const Clock& clock, int64_t deadline_ns);
  absl::Status FlushEndpoints(const Clock& clock, int64_t deadline_ns);
  // Lets UCX work until it has nothing to do; how many milliseconds to sleep on its events then.
  int Drive(int64_t left_ns);
  // Waits until each peer's message has come over its socket: as many bytes as it was told here.
  // UCX works meanwhile if `drive` says so.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::vector<std::string>& messages,
                                                    bool drive, const Clock& clock,
                                                    int64_t deadline_ns);

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  Transfer& NewTransfer(int rank, size_t bytes);
  void EndTransfer(Transfer& transfer);
  // Hands queued frames to UCX while it has not too much of them.
  void Pump(int rank);
  bool Post(int rank, OutgoingFrame frame);
  void ReadSocket(int rank);
  // Ends connections that failed or ended and have nothing left to come.
  void Settle();
  Connection& connection(int rank) override { return peer(rank); }
  void End(int rank, absl::Status why) override;
  void SayFarewell(int rank) override;
  void PrepareReset(int rank) override;
  void DropQueue(Peer& peer);

  ucs_status_t Message(const void* prefix, size_t prefix_bytes, void* data, size_t bytes,
                       const ucp_am_recv_param_t& param);
  void CountFrame(Peer& peer);
  void Deliver(int rank, const FrameHeader& header, const std::byte* payload);
  static ucs_status_t OnMessage(void* wire, const void* prefix, size_t prefix_bytes, void* data,
                                size_t bytes, const ucp_am_recv_param_t* param);
  static void OnSent(void* request, ucs_status_t status, void* transfer);
  static void OnReceived(void* request, ucs_status_t status, size_t bytes, void* transfer);
  static void OnFailure(void* wire, ucp_ep_h endpoint, ucs_status_t status);

  const int rank_;
  const std::unique_ptr<UcxWorker> worker_;
  const PrivateFd epoll_;  // of the sockets and UCX's own events
  std::vector<Peer> peers_;
  BufferPool buffers_;
  std::list<std::unique_ptr<Transfer>> transfers_;
  std::vector<int> to_pump_;  // ranks whose transfers have ended
  std::vector<ucp_ep_h> to_close_;
  bool unsettled_ = false;
  uint64_t strangers_ = 0;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_UCX_WIRE_H_
