// One operation of a group that spans several hosts, at this worker.
//
// Messages between members of one host go through shared memory, the others over the wire. Gates
// are agreed by messages among all members. The gates of shared memory are entered as well, since
// members of one host must not read each other's memory before all of them have begun.
#ifndef SYNCOPATE_TRANSPORT_NET_NET_SESSION_H_
#define SYNCOPATE_TRANSPORT_NET_NET_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "transport/net/core.h"
#include "transport/net/core_transport.h"
#include "transport/net/net_port.h"
#include "transport/transport.h"

namespace syncopate::transport::net {

class NetSession final : public Session {
 public:
  // `local` is the session of the members on this host, or null if there are no others here. All
  // must outlive the session.
  NetSession(const NetPort& port, NetGroup& group, NetOperation& operation,
             std::unique_ptr<Session> local, uint64_t prompt_bytes);
  ~NetSession() override;
  bool Enter(Gate gate, int member) override;
  GateState State(Gate gate) override;
  GateState Break(Gate gate, BreakReason why) override;
  Failure WhyBroken(Gate gate) override;
  bool Held() override;
  bool TakeResult() override;
  int64_t LastBegunNs() override;
  std::optional<Oddity> FindOddity() override;
  bool Entered(Gate gate, int member) override;
  Hello HelloOf(int member) override;
  void Offer(uint32_t step, int to, const std::byte* bytes, Extent where) override;
  const std::byte* Arrived(int from, uint32_t their_step, Extent where) override;
  void Consume(uint32_t step, int from, uint32_t their_step) override;
  bool Consumed(int to, uint32_t step, uint32_t their_step) override;

  std::byte* Memory(int, Space) override { return nullptr; }
  std::byte* Notes(int) override { return nullptr; }
  void Nudge() override {}

 private:
  // The index of a member in local_, or -1 if the way to it is the wire.
  int LocalIndex(int member) const;

  // Enters the gates of this host that were wanted and could not be entered yet: its first member
  // may make the group later than we begin. A worker that has no message from or for this host must
  // try again too, since the others wait for it.
  void EnterLocal();

  // Members on this host can read each other's memory once all of them have begun.
  bool LocalReady();

  const NetPort& port_;
  CoreTransport& transport_;
  NetGroup& group_;
  NetOperation& operation_;
  const uint64_t sequence_;
  const bool prompt_;  // the others are told at once that the result is complete
  std::unique_ptr<Session> local_;
  std::array<bool, 2> local_wanted_ = {};  // by gate: is to be entered
  bool local_ready_ = false;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_NET_SESSION_H_
