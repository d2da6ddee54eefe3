// How the members of a group agree about the gates of its operations by messages. A pure state
// machine: no I/O, no clock.
//
// The first member that is not lost is the *arbiter*: members tell it when they enter a gate, and
// it tells all when the gate has passed. When a member is lost, or somebody's time is up, the
// arbiter settles what is open: it asks every survivor (which from then on holds still), and decides
// from all answers:
//   - a gate that somebody saw passed has passed; one that somebody saw broken is broken;
//   - an operation whose result lies complete at a survivor (Mode::kShared) is being given: that
//     member provides the result to those that lack it, and the gate passes when all survivors have
//     it. Until then nobody lets it go, so that another one can provide it if the first is lost;
//   - everything else is broken, and nobody's data has changed.
// A decision that breaks a gate says why: for a lost member, or because time was up. The first one
// that does so has ended the group, and later ones repeat what it said: all members name the same
// one, whichever of its operations they look at.
//
// An arbiter that is lost meanwhile is followed by the next one, which asks again; decisions that
// somebody has heard are among the answers, so they stay. docs/failure.md gives the argument.
#ifndef SYNCOPATE_TRANSPORT_NET_GATE_PROTOCOL_H_
#define SYNCOPATE_TRANSPORT_NET_GATE_PROTOCOL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "transport/net/gate_message.h"
#include "transport/transport.h"

namespace syncopate::transport::net {

class GateProtocol {
 public:
  using Mode = GateMessage::Mode;
  struct Outgoing {
    int to = 0;  // member
    GateMessage message;
  };

  // `ranks` in the job of the members; `self` is an index into it. The operations below
  // `settled_below` have passed for all.
  GateProtocol(std::vector<int32_t> ranks, int self, uint64_t settled_below = 0);

  // This member begins `sequence`.
  void Open(uint64_t sequence, Mode mode, const Hello& hello, bool awaits_start);
  // False: not now, the operation is held still. `prompt`: tell the others at once.
  bool Enter(uint64_t sequence, Gate gate, bool prompt);
  GateState State(uint64_t sequence, Gate gate) const;
  bool Entered(uint64_t sequence, Gate gate, int member) const;
  Hello HelloOf(uint64_t sequence, int member) const;
  // Nothing of it may be moved: it is being settled.
  bool Held(uint64_t sequence) const;
  // Why the operation broke, which is why the group is at its end.
  Session::Failure FailureOf(uint64_t sequence) const;
  // Asks for a decision, because time is up or (`odd_member` >= 0) somebody runs something else.
  void Ask(uint64_t sequence, int odd_member = -1, uint64_t odd_digest = 0);
  struct Oddity {
    int member = -1;
    uint64_t digest = 0;
  };
  std::optional<Oddity> OddityOf(uint64_t sequence) const;
  // A member that has the result sends it to these; they call ResultArrived() when all of it has come,
  // and TakeResult() once they may use it.
  struct Provision {
    uint64_t sequence = 0;
    std::vector<int> needy;
  };
  std::vector<Provision> TakeProvisions();
  void ResultArrived(uint64_t sequence);
  // True, and this member has entered the finish gate: the operation has passed, and the result that
  // came is to be taken.
  bool TakeResult(uint64_t sequence);
  // This member is done with it. Once its finish gate has passed or it is broken.
  void Close(uint64_t sequence);

  // A member is lost. In the order of the losses, which is the same for all.
  void Lose(int member);
  // This worker itself is out of the job: everything that is open is broken.
  void GiveUp();
  // False: it speaks of members that there are not, and is not heard.
  bool Receive(int from, const GateMessage& message);
  // Tells what has been put off.
  void Flush();
  // From now on nothing is put off.
  void Hurry();
  std::vector<Outgoing> TakeMessages();

  int arbiter() const { return arbiter_; }
  // All that this member has ever heard of has passed, and it has closed it: the number of operations,
  // which is then all that others may ask it for. Else nothing.
  std::optional<uint64_t> Settled() const;

 private:
  struct Record {
    bool opened = false;
    bool closed = false;
    bool held = false;  // answered a query that is not decided yet
    // Decided: members that lack the result are given it, and then the finish gate passes.
    bool giving = false;
    bool result_here = false;  // all of the result has come, this member may not know yet what for
    bool asked = false;
    Mode mode = Mode::kLoose;
    Hello hello;  // own
    GateState states[2] = {GateState::kOpen, GateState::kOpen};
    bool entered[2] = {false, false};
    std::vector<Hello> hellos;  // start gate: by member
    std::optional<Oddity> oddity;
    bool decided = false;  // for good
    bool for_loss = false;
    std::vector<int32_t> not_opened, not_finished;
    // At the arbiter.
    std::vector<bool> present[2];  // by member
    int count[2] = {0, 0};
    bool asked_for_loss = false;  // by a member that knew of a loss

    bool fetches() const { return giving && !entered[1]; }
  };
  // Why the group is at its end.
  struct Failure {
    bool for_loss = false;
    std::vector<int32_t> not_opened, not_finished;
  };

  Record& RecordOf(uint64_t sequence);
  const Record* Find(uint64_t sequence) const;
  void Say(int to, GateMessage message);
  void SayToSurvivors(const GateMessage& message);
  void NoteEntry(int from, Gate gate, const GateMessage::Item& item, bool prompt);
  // Tells the arbiter that this member has entered the finish gate, or will not need to.
  void TellFinish(uint64_t sequence);
  void Pass(uint64_t sequence, Gate gate, bool prompt);
  void AskStranger();
  void BeginRound(std::vector<uint64_t> sequences, bool all);
  void AnswerQuery(int from, const GateMessage& query);
  GateMessage MakeReport(const GateMessage& query);
  void TakeReport(int from, const GateMessage& report);
  void Decide();
  // From the reports of all survivors.
  GateMessage::Item DecideOne(uint64_t sequence);
  void NoteFailure(const GateMessage::Item& item);
  // This member begins it although a member is lost.
  void AskForLoss(uint64_t sequence);
  void Apply(const GateMessage::Item& item);
  // Whether all members that it speaks of are members of the group.
  bool Fits(const GateMessage& message) const;
  void Hear(int from, const GateMessage& message);
  void Forget(uint64_t sequence);

  const std::vector<int32_t> ranks_;
  const int members_;
  const int self_;
  int arbiter_ = 0;
  std::vector<bool> lost_;
  std::vector<bool> heard_;  // by member: something has come from it
  int lost_count_ = 0;
  std::map<uint64_t, Record> records_;
  // Records are forgotten when they are done everywhere: all below the first, and these above it.
  uint64_t forgotten_below_ = 0;
  std::set<uint64_t> forgotten_;

  // Entries and passings that are told later, together.
  std::vector<uint64_t> untold_entries_, untold_passings_;
  bool hurries_ = false;  // there are none

  // At the arbiter: the round that runs.
  uint64_t round_ = 0;
  bool round_runs_ = false;
  bool round_all_ = false;
  std::set<uint64_t> round_sequences_;
  std::map<int, GateMessage> reports_;  // by member
  std::set<uint64_t> waiting_asks_;     // for the next round
  std::optional<Failure> failure_;      // of the first decision that broke an operation

  uint64_t promised_round_ = 0;  // decisions of earlier rounds are not heard
  bool promised_all_ = false;    // a query about everything was answered: nothing new begins here
  bool given_up_ = false;
  std::vector<Provision> provisions_;
  std::vector<Outgoing> outbox_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_GATE_PROTOCOL_H_
