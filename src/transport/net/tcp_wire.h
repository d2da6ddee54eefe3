// Frames over TCP: non-blocking sockets, one epoll, scatter-gather, several connections (lanes) for
// each peer. Frames of operations take the lane with room, highest priority first; all others take
// the first lane, before any data.
//
// With TLS the frames of a lane are the plaintext of its session (tls_session.h); tcp_wire_tls.cc has
// what differs then.
#ifndef SYNCOPATE_TRANSPORT_NET_TCP_WIRE_H_
#define SYNCOPATE_TRANSPORT_NET_TCP_WIRE_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/forked_child.h"
#include "base/unique_fd.h"
#include "transport/net/peer_wire.h"
#include "transport/net/send_queue.h"
#include "transport/net/tls_mesh.h"
#include "transport/net/wire.h"

namespace syncopate::transport::net {

class TcpWire final : public PeerWire {
 public:
  // `sockets` by rank and lane, as ConnectMesh() made them. The handler must outlive the wire.
  // `buffer_bytes`: what the kernel holds of a connection's data at the receiver, and twice of it
  // at the sender; 0: as much as it likes. docs/wire.md, "Socket buffers", says why to bound it.
  // `sessions`: by rank and lane, as SecureMesh() made them; empty: without TLS.
  static absl::StatusOr<std::unique_ptr<TcpWire>> Make(std::vector<std::vector<UniqueFd>> sockets,
                                                       WireHandler& handler, int buffer_bytes = 0,
                                                       TlsMesh sessions = {});
  ~TcpWire() override;

  void Send(int peer, const FrameHeader& header, const std::byte* payload,
            uint64_t cookie) override;
  bool Progress() override;
  bool Arm() override { return ready_.empty() && !HasEnded(); }
  int fd() const override { return epoll_.get(); }
  void Detach(uint64_t cookie) override;
  void Abandon(const std::byte* memory, size_t bytes) override;
  void Expect(int peer, double share) override;
  bool Flushed(int peer) const override;
  int64_t ArrivalNs(int64_t /*now_ns*/) const override { return read_ns_; }

 private:
  struct Lane {
    PrivateFd fd;
    int peer = -1;
    bool first = false;
    bool readable = false;
    bool writable = true;
    bool listed = false;              // in ready_
    bool hung_up = false;             // the end of the stream or an error is to be read
    bool ended = false;               // it has been read
    std::unique_ptr<TlsSession> tls;  // null: frames travel as they are
    bool drained = false;   // with TLS: the socket has nothing more, though the session may
    bool farewell = false;  // with TLS: the stream ends after what the session has to send
    // Writing.
    std::deque<OutgoingFrame> active;  // taken from the peer's queues
    size_t written = 0;                // bytes of active.front() that are gone
    // Reading.
    std::vector<std::byte> staging;
    size_t begin = 0, end = 0;  // what of it is not parsed yet
    FrameHeader header;         // of the payload that is being read
    std::byte* place = nullptr;
    size_t missing = 0;     // bytes of that payload
    bool dropping = false;  // nobody wants it
    // What the peer may have in flight; the most that it ever was, which the kernel may hold; the least
    // that is sensible; and how often in a row less was wanted.
    int buffer = 0;
    int largest_buffer = 0;
    int least_buffer = 0;
    int wanted_less = 0;
  };
  struct Peer : Connection {
    std::vector<std::unique_ptr<Lane>> lanes;
  };

  TcpWire(PrivateFd epoll, WireHandler& handler, int buffer_bytes)
      : PeerWire(handler), epoll_(std::move(epoll)), buffer_bytes_(buffer_bytes) {}
  void List(Lane& lane);
  // Takes frames of the peer's queues to write next. False: there are none.
  bool Take(Lane& lane);
  bool Write(Lane& lane);
  bool Read(Lane& lane);
  // The frame at the front has been handed over up to here: gives back those that are complete.
  void Wrote(Lane& lane, size_t bytes);
  // What was read was put where it belongs. False: the connection has ended.
  bool Took(Lane& lane, size_t bytes);
  // The end of the stream was read.
  void EndOfStream(Lane& lane);
  // The same with TLS.
  bool WriteTls(Lane& lane);
  bool ReadTls(Lane& lane);
  // Encrypts frames. False: there are none, or the connection has ended.
  bool Seal(Lane& lane);
  // Sends ciphertext; true if any went.
  bool SendSealed(Lane& lane);
  // Sends what can be sent of it before the connection is closed, and tells of no errors.
  static void SendLast(Lane& lane);
  // More ciphertext into the session. False: nothing came.
  bool ReceiveSealed(Lane& lane);
  static void SetBuffer(Lane& lane, int bytes);
  // Parses what was read. False: it makes no sense.
  bool Parse(Lane& lane);
  void PayloadRead(Lane& lane);
  Connection& connection(int rank) override { return peers_[static_cast<size_t>(rank)]; }
  void End(int rank, absl::Status why) override;
  void SayFarewell(int rank) override;
  void PrepareReset(int rank) override;
  void DropQueue(Peer& peer);

  const PrivateFd epoll_;
  const int buffer_bytes_;  // 0: not bounded
  std::vector<Peer> peers_;
  std::vector<Lane*> ready_;  // may have something to do
  int64_t read_ns_ = 0;       // when the last bytes that were read came to this host; 0: not known
  std::vector<std::byte> sink_;    // where unwanted bytes go
  std::vector<std::byte> record_;  // with TLS: what fills one record from several places
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_TCP_WIRE_H_
