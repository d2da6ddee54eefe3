// The two ends of a flow in an experiment of the probe.
//
// The sender offers pieces as the transport takes them; the receiver acknowledges every second one.
// The acknowledgements bound what is in flight: to what the flow achieves in a round trip and a few
// hundredths of a second. So nothing waits in long queues, whatever those and the buffers of sockets
// could hold, and little is lost.
#ifndef SYNCOPATE_PROBE_FLOW_ENDS_H_
#define SYNCOPATE_PROBE_FLOW_ENDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/measure_protocol.h"
#include "transport/transport.h"

namespace syncopate::probe {

// Numbers of a flow's steps at its two ends.
struct FlowSteps {
  uint32_t own = 0;    // first one at this end
  uint32_t their = 0;  // first one at the other
  uint32_t pieces = 0;

  static constexpr uint32_t kPiecesPerAck = 2;
  // How many steps a flow of `pieces` takes at each end.
  static constexpr uint32_t Count(uint32_t pieces) { return pieces + pieces / kPiecesPerAck + 2; }
  uint32_t Ack(uint32_t i) const { return pieces + i; }
  uint32_t End() const { return pieces + pieces / kPiecesPerAck + 1; }
};

// Where flows find memory to send from.
struct FlowMemory {
  std::byte* base = nullptr;
  uint64_t pieces_offset = 0;  // kPieceBytesMax that all flows send
  uint64_t small_offset = 0;   // 8 bytes for each step, at both ends
};

class FlowSender {
 public:
  FlowSender(int to, uint32_t piece_bytes, FlowSteps steps, FlowMemory memory)
      : to_(to), piece_bytes_(piece_bytes), steps_(steps), memory_(memory) {}

  // True if anything moved.
  bool Poll(transport::Session& session, int64_t now_ns, bool time_is_up);
  bool done() const { return done_; }
  int to() const { return to_; }

 private:
  static constexpr uint64_t kWindowBytesMin = 24 << 10;

  void SetWindow(int64_t now_ns);

  const int to_;
  const uint32_t piece_bytes_;
  const FlowSteps steps_;
  const FlowMemory memory_;
  uint32_t sent_ = 0;                        // pieces
  std::vector<int64_t> sent_ns_;             // by piece
  uint32_t acks_ = 0;                        // that have come
  int64_t fastest_answer_ns_ = INT64_MAX;    // from sending a piece to its answer
  uint32_t confirmed_ = 0;                   // pieces whose memory is free again
  uint64_t window_bytes_ = kWindowBytesMin;  // may be in flight
  int64_t mark_ns_ = 0;                      // the rate is taken since then
  uint32_t acks_at_mark_ = 0;
  bool end_sent_ = false;
  bool done_ = false;
};

class FlowReceiver {
 public:
  FlowReceiver(int from, uint32_t piece_bytes, FlowSteps steps, FlowMemory memory)
      : from_(from), piece_bytes_(piece_bytes), steps_(steps), memory_(memory) {}

  bool Poll(transport::Session& session, double seconds);
  bool done() const { return done_; }
  int from() const { return from_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  // All pieces that it was allowed to have come.
  bool exhausted() const { return arrivals_.size() == steps_.pieces; }

 private:
  const int from_;
  const uint32_t piece_bytes_;
  const FlowSteps steps_;
  const FlowMemory memory_;
  std::vector<Arrival> arrivals_;
  bool end_seen_ = false;
  uint64_t total_ = 0;           // pieces, once the end was seen
  uint32_t acks_confirmed_ = 0;  // whose memory is free again
  bool done_ = false;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_FLOW_ENDS_H_
