// What carries frames between this worker and all others of its job: `tcp_wire` for plain Ethernet,
// `ucx_wire` for what UCX finds. The connections are there and proved when a wire is made.
//
// Frames to one peer arrive once or, when it is lost, not at all. Control frames arrive in the order in
// which they were sent; those that carry data (CarriesData()) may overtake and be overtaken.
//
// Not thread-safe. Handler calls come out of Progress() only, except Sent(), which may also come
// out of Send().
#ifndef SYNCOPATE_TRANSPORT_NET_WIRE_H_
#define SYNCOPATE_TRANSPORT_NET_WIRE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "transport/net/frame.h"

namespace syncopate::transport::net {

class WireHandler {
 public:
  virtual ~WireHandler() = default;
  // Where the payload of this frame (header.payload_bytes > 0) goes. The memory stays valid until
  // Arrived(), Closed() or Wire::Abandon(). Null: nobody wants it; it is dropped and Arrived() is
  // not called.
  virtual std::byte* Place(int peer, const FrameHeader& header) = 0;
  // The payload is where Place() said.
  virtual void Arrived(int peer, const FrameHeader& header) = 0;
  // The payload of the frame that was sent with this cookie is not read any more.
  virtual void Sent(uint64_t cookie) = 0;
  // The connection to `peer` ended; nothing comes from it or goes to it any more. Everything that
  // it had sent before it ended in good order has arrived. Sent() still comes for all frames to it.
  virtual void Closed(int peer, const absl::Status& why) = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;

  // Queues a frame; `payload` (header.payload_bytes of it) must not change before Sent(cookie).
  // Cookie 0: Sent() is not called, and the payload is copied here.
  virtual void Send(int peer, const FrameHeader& header, const std::byte* payload,
                    uint64_t cookie) = 0;
  // Does what can be done without waiting; true if anything moved.
  virtual bool Progress() = 0;

  // Sleeping: true if nothing is there to be done now; then `fd` becomes readable when there is.
  virtual bool Arm() = 0;
  virtual int fd() const = 0;

  // The payload of frames with this cookie will not be read any more: those that have not begun to
  // travel are dropped, what is left of the others is copied. Sent() is not called for them.
  virtual void Detach(uint64_t cookie) = 0;
  // This memory, to which Place() has pointed, will not be written any more: what is still to come
  // of a frame that was being read into it is dropped, and Arrived() is not called for that frame.
  virtual void Abandon(const std::byte* memory, size_t bytes) = 0;

  // This part, up to 1, of the data that now comes to this worker comes from `peer`. A wire may
  // bound what is in flight from there accordingly.
  virtual void Expect(int /*peer*/, double /*share*/) {}

  // All that was sent to `peer` has been handed over to the network.
  virtual bool Flushed(int peer) const = 0;
  // Ends the connection: `politely`, after what is queued; the peer then reads an end of stream and
  // ends its side too, which Closed() tells; or at once and without Closed(). The peer then learns it
  // although it may not have taken all that was sent, and what it has not read may be lost.
  virtual void Close(int peer, bool politely) = 0;

  // Within WireHandler::Arrived(): when the end of the frame came to this host, by any clock; 0:
  // not known. `now_ns`: when it was looked for.
  virtual int64_t ArrivalNs(int64_t now_ns) const { return now_ns; }
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_WIRE_H_
