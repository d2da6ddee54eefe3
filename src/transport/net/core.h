// What a worker knows of its job's traffic with other hosts: groups, operations under way, messages
// that have come early, lost workers. It turns frames into that and back.
//
// Not thread-safe: CoreTransport guards it.
#ifndef SYNCOPATE_TRANSPORT_NET_CORE_H_
#define SYNCOPATE_TRANSPORT_NET_CORE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "transport/net/buffer_pool.h"
#include "transport/net/closed_groups.h"
#include "transport/net/flight_times.h"
#include "transport/net/gate_protocol.h"
#include "transport/net/loss_consensus.h"
#include "transport/net/post_office.h"
#include "transport/net/wire.h"
#include "transport/transport.h"

namespace syncopate::transport::net {

// Numbers that only grow, most of them in order.
class SequenceSet {
 public:
  bool Contains(uint64_t n) const { return n < below_ || above_.count(n) > 0; }
  void Add(uint64_t n) {
    if (n < below_) return;
    above_.insert(n);
    while (!above_.empty() && *above_.begin() == below_) {
      above_.erase(above_.begin());
      ++below_;
    }
  }

 private:
  uint64_t below_ = 0;
  std::set<uint64_t> above_;
};

// One operation of a group at this worker. It may exist before the worker has begun it, when peers
// were quicker.
struct NetOperation {
  struct Incoming {
    Buffer buffer;
    uint64_t total = 0;
    uint64_t got = 0;
    uint64_t digest = 0;
    int fragments = 0;
    int under_way = 0;  // frames that are being read into the buffer
  };
  struct Waiting {  // a message to a peer that has not begun the operation
    int rank = -1;
    FrameHeader header;
    const std::byte* bytes = nullptr;
    uint64_t cookie = 0;
  };
  using Key = std::pair<int, uint32_t>;  // rank, step of the sender

  uint64_t group = 0;
  uint64_t sequence = 0;
  bool opened = false;
  SessionSpec spec;
  absl::flat_hash_map<Key, Incoming> incoming;
  absl::flat_hash_set<int> begun_by;         // ranks that have shown that they have begun it
  int64_t last_begun_ns = 0;                 // when the last of them did, or those of this host
  absl::flat_hash_map<int, uint64_t> early;  // bytes sent to a rank that has not
  absl::flat_hash_map<int, uint64_t> came;   // bytes of all messages from a rank
  std::vector<Waiting> waiting;
  absl::flat_hash_map<Key, uint64_t> cookies;  // of messages sent: rank, own step
  absl::flat_hash_map<int, Incoming> results;  // that others give us, by rank
  absl::flat_hash_set<int> results_for;        // ranks to which ours has been sent
  uint64_t results_left = 0;                   // messages of the result that are not sent yet
};

struct NetGroup {
  uint64_t key = 0;
  std::vector<int> members;  // empty: not known yet
  std::unique_ptr<GateProtocol> gates;
  std::map<uint64_t, std::unique_ptr<NetOperation>> operations;
  SequenceSet closed;
  bool open = false;        // this worker has a port to it
  bool let_go = false;      // it had one
  bool at_work = false;     // it is among Core::at_work_
  uint64_t lost_order = 0;  // of the first loss among its members, which ended it; 0: none
  // Messages that came before the members were known.
  std::vector<std::pair<int, GateMessage>> early_messages;

  int MemberOf(int rank) const;
};

// How much is cut, sent ahead and kept. Tests take little ones, to which little data comes.
struct CoreLimits {
  uint32_t fragment_bytes = kFragmentBytes;
  // What is sent to a member that may not have begun the operation yet. Enough for small operations
  // to need no word before; more waits until the member has shown that it is there.
  uint64_t early_bytes = 256 << 10;
  // What one peer may make us keep for operations that we have not begun. It keeps to early_bytes
  // for each; one that does not is no worker of ours.
  uint64_t unopened_bytes_max = uint64_t{256} << 20;
  // Receive buffers that are kept for use again.
  uint64_t kept_bytes_max = BufferPool::kKeptBytesMax;
  // For operations with this much data, a member says at once that its result is complete, so that
  // the others can drop their copies.
  uint64_t prompt_bytes = 256 << 10;
  // What may wait of messages from one worker to another.
  uint64_t mail_queued_bytes = MailQueueBytesMax(MailKind::kMessage);
};

// Frames that were read and thrown away, by the reason.
struct DroppedFrames {
  uint64_t lost_workers = 0;   // their sender is lost
  uint64_t other_jobs = 0;     // of another job, or of another incarnation of this one
  uint64_t closed_groups = 0;  // this worker has let go of their group, or their operation is over
  uint64_t before_losses = 0;  // their sender did not know yet of the loss that ended their group
  uint64_t unexpected = 0;     // they do not fit what this worker runs

  uint64_t total() const {
    return lost_workers + other_jobs + closed_groups + before_losses + unexpected;
  }
};
// "3 of closed groups, 2 of lost workers"; empty if there are none.
std::string Describe(const DroppedFrames& dropped);

class Core final : public WireHandler, private PostOffice::Carrier {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    uint32_t job = 0;
    std::vector<std::string> hosts;  // by rank, for messages
    LossConsensusOptions consensus;
    CoreLimits limits = {};
  };

  Core(const Options& options, const Clock& clock);

  // Must be called before anything else.
  void Attach(std::unique_ptr<Wire> wire) { wire_ = std::move(wire); }
  Wire& wire() { return *wire_; }
  const CoreLimits& limits() const { return options_.limits; }

  // Reads, writes, and draws conclusions. True if anything moved.
  bool Progress();
  // Sends heartbeats and what was put off, if that is due at `now_ns`.
  void Tick(int64_t now_ns);
  int64_t NextTickNs() const { return consensus_.NextTickNs(); }

  absl::Status OpenGroup(uint64_t key, const std::vector<int>& members);
  void CloseGroup(uint64_t key);
  // See GroupPort::Hurry(). The group is open.
  void Hurry(uint64_t key);
  // This worker will not open the group.
  void Renounce(uint64_t key);
  // Groups of which more than the key is kept.
  size_t groups() const { return groups_.size(); }
  NetGroup& group(uint64_t key) { return *groups_.at(key); }

  NetOperation& Begin(NetGroup& group, const SessionSpec& spec, int self);
  void End(NetGroup& group, uint64_t sequence);
  void Offer(NetGroup& group, NetOperation& operation, uint32_t step, int to,
             const std::byte* bytes, uint64_t size);
  bool Sent(const NetOperation& operation, uint32_t step, int to) const;
  const std::byte* Arrived(NetGroup& group, NetOperation& operation, int from, uint32_t step,
                           uint64_t size);
  void Consume(NetOperation& operation, int from, uint32_t step);
  // The members on this host have begun the operation.
  void NoteBegun(NetOperation& operation) const { operation.last_begun_ns = clock_.NowNs(); }
  // Puts the result that another member gave into the operation's data, and enters its finish gate;
  // false if there is none to take. The data is touched here only, by the thread that works on it.
  bool TakeResult(NetGroup& group, NetOperation& operation);
  // Sends what the gate protocols of the groups want to say.
  void Pump(NetGroup& group) {
    NoteWork(group);
    Say(group);
  }
  void FlushAll();

  // See Transport.
  absl::Status Post(int to, MailKind kind, std::string bytes);
  void TakeMail(std::vector<Mail>& mail) { mail_.Take(mail); }
  bool HasMail() const { return !mail_.empty(); }

  void Expel(int rank);
  const std::vector<Loss>& losses() const { return losses_; }
  // Ranks of other hosts' workers pronounced lost without certainty since the last call.
  std::vector<int> TakeUncertain() { return std::exchange(uncertain_, {}); }
  std::vector<Traffic> TakeTraffic();
  const DroppedFrames& dropped() const { return dropped_; }

  // Says goodbye to all. Left() when all have answered.
  void Leave();
  bool Left() const { return open_peers_ == 0; }

  // WireHandler
  std::byte* Place(int peer, const FrameHeader& header) override;
  void Arrived(int peer, const FrameHeader& header) override;
  void Sent(uint64_t cookie) override;
  void Closed(int peer, const absl::Status& why) override;

 private:
  struct Peer {
    bool open = true;
    bool bye = false;
    std::string tampering;        // what this worker saw of it when the connection ended
    std::string control;          // payload of the control frame that is coming
    uint64_t unopened_bytes = 0;  // held for operations that this worker has not begun
    FlightTimes times;
  };
  struct Sending {
    NetOperation* operation = nullptr;
    uint32_t fragments = 0;
    bool result = false;
  };

  // Null, and what is `dropped` counted, if the group is closed or there are too many.
  NetGroup* FindOrMake(uint64_t key);
  // A group that was closed is asked for by one that still needs to know what became of it: it is there
  // again, for that only.
  void Revive(uint64_t key, const std::vector<int>& members);
  // Keeps only the key of a group that is let go, once nobody can ask for more.
  void Compact(uint64_t key);
  // Makes room for a group by forgetting one that nobody here uses any more. False: there is none.
  bool ForgetGroup();
  NetOperation* FindOrMake(NetGroup& group, uint64_t sequence);
  // What this frame belongs to; both null, and the frame counted, if that is over.
  std::pair<NetGroup*, NetOperation*> OperationFor(const FrameHeader& header);
  // The operations below `settled_below` have passed for all.
  void SetMembers(NetGroup& group, const std::vector<int>& members, uint64_t settled_below = 0);
  std::byte* PlaceData(int peer, const FrameHeader& header);
  std::byte* PlaceResult(int peer, const FrameHeader& header);
  // Whether a new message may take memory; why not is dealt with here.
  bool Expects(NetGroup& group, NetOperation& operation, int rank, const FrameHeader& header);
  // The operation that waits for this part of its result, or null.
  NetOperation* ResultTarget(int rank, const FrameHeader& header);
  void ResultArrived(int rank, const FrameHeader& header);
  void DataArrived(int peer, const FrameHeader& header);
  // The operations of the group that this worker has not begun will not be begun any more.
  void DropUnopened(NetGroup& group);
  // Messages that a lost worker sent for operations that may never begin are not kept.
  void DropUnopenedFrom(NetGroup& group, int rank);
  // No longer counts a message as kept for an operation that is not begun.
  void CountOpened(int rank, const NetOperation::Incoming& incoming);
  // Takes the buffer of a message back, whatever is still to come for it.
  void GiveBack(NetOperation::Incoming& incoming);
  void GateMessageArrived(int peer, const FrameHeader& header);
  // Whether a frame is of a lost worker or another job; it is counted then.
  bool IsForeign(int rank, const FrameHeader& header);
  bool AreMembers(const std::vector<int>& ranks) const;
  void TakeEarlyMessages(NetGroup& group, NetOperation& operation);
  // A member runs something else in this operation, which the members now settle.
  void TellOddity(NetGroup& group, NetOperation& operation, int member, uint64_t digest);
  // Tells the wire how the data that is to come divides among the peers.
  void ExpectShares();
  // The group has something that FlushAll() or ExpectShares() must see.
  void NoteWork(NetGroup& group);
  void Say(NetGroup& group);  // what its gate protocol wants to say now
  void PeerHasBegun(NetOperation& operation, int peer);
  FrameHeader HeaderFor(FrameType type, uint64_t group, uint64_t sequence) const;
  uint32_t FragmentsOf(uint64_t size) const;  // of a message
  void SendMessage(int rank, FrameHeader header, const std::byte* bytes, uint64_t cookie);
  void Provide(NetGroup& group, const GateProtocol::Provision& provision);
  // Ends all connections at once.
  void HangUp();
  // Called after anything that may have changed which workers are lost.
  void Conclude();
  // Whether a verdict does not count yet, since what its worker sent before it left is still to be read.
  bool MustHearOut(size_t verdict) const;

  // PostOffice::Carrier
  void SendMail(int to, FrameType type, uint64_t sequence, absl::string_view bytes) override;
  void SendParcel(int to, uint64_t sequence, const std::string& bytes, uint64_t cookie) override;
  void Detach(uint64_t cookie) override { wire_->Detach(cookie); }
  void Abandon(const std::string& memory) override {
    wire_->Abandon(reinterpret_cast<const std::byte*>(memory.data()), memory.size());
  }

  const Options options_;
  const Clock& clock_;
  PostOffice mail_;  // the wire reads from its memory
  std::unique_ptr<Wire> wire_;
  LossConsensus consensus_;
  std::vector<Peer> peers_;
  int open_peers_ = 0;
  bool leaving_ = false;
  size_t known_verdicts_ = 0;
  // By verdict: when it counts at the latest, though its worker, which left, could still be heard out.
  std::vector<int64_t> hear_out_until_ns_;
  bool gave_up_ = false;
  int64_t hang_up_ns_ = 0;  // then it ends its connections, if it has given up
  std::vector<Loss> losses_;
  std::vector<int> uncertain_;
  std::map<uint64_t, std::unique_ptr<NetGroup>> groups_;
  // Keys of groups that have operations or something to say; others need no attention.
  std::vector<uint64_t> at_work_;
  // Keys of groups that were let go while others may still ask for them, in that order.
  std::deque<uint64_t> let_go_;
  ClosedGroups closed_groups_;  // the others that were let go
  BufferPool buffers_;
  absl::flat_hash_map<uint64_t, Sending> sendings_;  // by cookie
  uint64_t next_cookie_ = 1;
  DroppedFrames dropped_;
  int64_t now_ns_ = 0;  // of the Progress() that runs
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_CORE_H_
