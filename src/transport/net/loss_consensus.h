// How the workers of a job agree on which of them are lost, without any server: a pure state
// machine. The caller tells it what it hears and that time passes, and sends what TakeMessages()
// returns.
//
// Verdicts come in rounds. In a round every worker *proposes* a set of lost workers; it adds to its
// set what it finds out and what the others propose, tells them, and takes nothing back. The round
// ends for a worker when all that are not in its set have told it that same set: then the set
// stands as the next verdicts, by rank, and no survivor can have ended the round with another set:
// each has told the others its last set of the round. A worker that missed the end takes the
// verdicts over from one that did not, unless it proposes that one as lost. docs/losses.md has
// the reasons.
//
// What is certain (a process ended) is proposed at once. A worker that is only not heard is first
// *accused*. Accusations make a graph of pairs that cannot talk; once all have said what they think
// of the accused, the worker with the most such pairs is proposed, of several the one with the
// highest rank, until no pair is left. A worker that does not reach the majority declares itself
// lost and gives no verdicts.
//
// Not thread-safe. Times never go back.
#ifndef SYNCOPATE_TRANSPORT_NET_LOSS_CONSENSUS_H_
#define SYNCOPATE_TRANSPORT_NET_LOSS_CONSENSUS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "transport/net/loss_message.h"

namespace syncopate::transport::net {

struct LossConsensusOptions {
  int rank = 0;
  int size = 1;
  int64_t silence_ns = 3'000'000'000;  // a worker without a sign for this long is accused
  int64_t collect_ns = 300'000'000;    // the least time from an accusation to the verdict
  int64_t beat_ns = 200'000'000;       // the time between heartbeats, which go to everybody
};

struct Verdict {
  int rank = -1;
  uint64_t order = 0;  // from 1
  Cause cause = Cause::kSilent;
  int by = -1;  // the rank that found out

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

class LossConsensus {
 public:
  struct Outgoing {
    int to = -1;
    LossMessage message;
  };

  LossConsensus(const LossConsensusOptions& options, int64_t now_ns);

  // Bytes of any kind came from `peer`.
  void Heard(int peer, int64_t now_ns);
  // The connection to `peer` ended: it left (kLeft) or died (anything else).
  void Closed(int peer, Cause cause, int64_t now_ns);
  // Evidence from elsewhere. What is not certain is an accusation.
  void Suspect(int peer, Cause cause, int64_t now_ns);
  // The caller wants it out: it did not finish what it began. If two want each other out, one goes.
  void Expel(int peer, int64_t now_ns);
  // Messages of one peer come in the order in which they were sent, and before its Closed().
  void Received(int peer, const LossMessage& message, int64_t now_ns);

  void Tick(int64_t now_ns);
  // When Tick() should be called, at the latest. A call that is late by more than a quarter of
  // silence_ns tells that this worker itself was held up: it then gives everybody their full time
  // again.
  int64_t NextTickNs() const;

  // What to send now; call it after each of the calls above. Send messages to a worker before its
  // connection is ended because of a verdict: one of them tells it.
  std::vector<Outgoing> TakeMessages();

  // The same sequence on all workers that are not lost; some may know more of it than others. Grows
  // only.
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  bool IsLost(int rank) const { return peers_[Index(rank)].lost; }

  // This worker is out: the others expelled it or it is cut off from them. It says nothing more.
  bool self_lost() const { return self_lost_; }
  // "the others hold it for lost: ...", empty while it is not.
  const std::string& self_lost_reason() const { return self_lost_reason_; }

 private:
  using Proposal = std::map<int, Mark>;  // by rank

  struct Peer {
    bool lost = false;     // there is a verdict
    bool closed = false;   // nothing comes from it any more
    bool stuck = false;    // we want it out
    bool accused = false;  // we do not hear it
    int64_t heard_ns = 0;
    int known = 0;      // verdicts that it knows
    Proposal proposal;  // of it for what comes after those
    std::map<int, Opinion> opinions;
    bool reply = false;  // it should get a message now
  };

  static size_t Index(int rank) { return static_cast<size_t>(rank); }
  Peer& peer(int rank) { return peers_[Index(rank)]; }
  const Peer& peer(int rank) const { return peers_[Index(rank)]; }
  bool IsPeer(int rank) const;  // a worker other than this one and not lost
  bool IsMember(int rank) const { return !peer(rank).lost && !proposal_.contains(rank); }

  void Enter(int64_t now_ns);  // first in every call: notices that this worker was held up
  static bool Join(Proposal& into, const Mark& mark);  // the stronger evidence stays; true: changed
  void Add(const Mark& mark);                          // to our proposal
  void Propose(int rank, Cause cause, int by);
  void JoinProposalOf(const Peer& sender);
  void TakeOver(const LossMessage& message);
  void EndRounds();
  bool EndRound();
  void Pronounce(const Mark& mark);
  bool IsElector(int rank) const;  // it may still do something
  // More than half of the electors, or half of them with the lowest. `members` are sorted.
  bool IsMajority(const std::vector<int>& members) const;

  void Reconsider();  // accusations, what follows from them, and the next tick
  void Accuse();
  std::set<int> Accused() const;  // by anybody
  std::map<int, Opinion> Opinions() const;
  bool AllHaveOpinions(const std::set<int>& accused) const;
  std::vector<Mark> WorstConnected() const;
  void Judge();
  void CheckReach();
  enum class Goodbye { kNone, kTell };
  void LoseSelf(Cause cause, Goodbye goodbye);

  void AppendMessages(int to, std::vector<Outgoing>& out) const;

  const LossConsensusOptions options_;
  std::vector<Peer> peers_;
  std::vector<Verdict> verdicts_;
  Proposal proposal_;
  std::map<int, Opinion> opinions_;  // as last told
  int64_t now_ns_;
  int64_t next_beat_ns_;
  int64_t woke_ns_ = -1;      // after such a long delay that the others may hold it for lost
  int64_t dispute_ns_ = -1;   // since when pairs are known that cannot talk
  int64_t proposed_ns_ = -1;  // when our proposal changed
  int64_t next_tick_ns_;
  bool told_ = true;  // everybody knows what we think
  std::vector<Outgoing> last_words_;
  bool self_lost_ = false;
  std::string self_lost_reason_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_LOSS_CONSENSUS_H_
