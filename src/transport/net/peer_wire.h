// What wires share that hold a connection to each peer: how connections end.
//
// A connection ends politely, after what is queued and by a farewell (FinishClosing()), or at once.
// The handler is told of ended connections by the next Progress(), since it must not be called from
// within its own calls.
#ifndef SYNCOPATE_TRANSPORT_NET_PEER_WIRE_H_
#define SYNCOPATE_TRANSPORT_NET_PEER_WIRE_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "transport/net/send_queue.h"
#include "transport/net/wire.h"

namespace syncopate::transport::net {

class PeerWire : public Wire {
 public:
  void Close(int rank, bool politely) final;

 protected:
  struct Connection {
    SendQueue queue;
    bool open = false;
    bool closing = false;  // politely: after what is queued
    bool shut = false;     // we have said that nothing more comes
  };

  explicit PeerWire(WireHandler& handler) : handler_(handler) {}

  virtual Connection& connection(int rank) = 0;
  // Ends the connection if it is open. Says so by NoteEnd(), and gives back all that is queued.
  virtual void End(int rank, absl::Status why) = 0;
  // The connection is about to be ended at once: the peer must learn it whatever is on its way.
  virtual void PrepareReset(int /*rank*/) {}
  // Says goodbye to a peer to which everything has been sent.
  virtual void SayFarewell(int rank) = 0;

  // For a connection that is closing: says goodbye once everything is sent.
  void FinishClosing(int rank);
  void NoteEnd(int rank, absl::Status why) { ended_.emplace_back(rank, std::move(why)); }
  bool HasEnded() const { return !ended_.empty(); }
  // Tells the handler of connections that have ended. True if there were any.
  bool TellEnded();
  // Closing this socket ends its connection at once, and tells the peer so.
  static void ResetOnClose(int socket);

  WireHandler& handler_;

 private:
  std::vector<std::pair<int, absl::Status>> ended_;  // rank, why
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_PEER_WIRE_H_
