#include "transport/net/gate_protocol.h"

#include <algorithm>
#include <utility>

namespace syncopate::transport::net {
namespace {

using Item = GateMessage::Item;
using Kind = GateMessage::Kind;

// Entries and passings of small operations are told when this many have come together.
constexpr size_t kToldTogether = 8;

GateState ToState(uint8_t value) { return static_cast<GateState>(value); }

}  // namespace

GateProtocol::GateProtocol(std::vector<int32_t> ranks, int self, uint64_t settled_below)
    : ranks_(std::move(ranks)),
      members_(static_cast<int>(ranks_.size())),
      self_(self),
      lost_(ranks_.size(), false),
      heard_(ranks_.size(), false),
      forgotten_below_(settled_below) {}

std::optional<uint64_t> GateProtocol::Settled() const {
  if (!records_.empty() || !forgotten_.empty() || round_runs_ || !outbox_.empty()) {
    return std::nullopt;
  }
  return forgotten_below_;
}

GateProtocol::Record& GateProtocol::RecordOf(uint64_t sequence) {
  Record& record = records_[sequence];
  if (record.present[0].empty()) {
    for (auto& present : record.present) present.resize(static_cast<size_t>(members_));
  }
  return record;
}

const GateProtocol::Record* GateProtocol::Find(uint64_t sequence) const {
  const auto found = records_.find(sequence);
  return found == records_.end() ? nullptr : &found->second;
}

void GateProtocol::Say(int to, GateMessage message) { outbox_.push_back({to, std::move(message)}); }

void GateProtocol::SayToSurvivors(const GateMessage& message) {
  for (int member = 0; member < members_; ++member) {
    if (member != self_ && !lost_[static_cast<size_t>(member)]) Say(member, message);
  }
}

std::vector<GateProtocol::Outgoing> GateProtocol::TakeMessages() {
  return std::exchange(outbox_, {});
}
std::vector<GateProtocol::Provision> GateProtocol::TakeProvisions() {
  return std::exchange(provisions_, {});
}

void GateProtocol::Open(uint64_t sequence, Mode mode, const Hello& hello, bool awaits_start) {
  Record& record = RecordOf(sequence);
  record.opened = true;
  record.mode = mode;
  record.hello = hello;
  if (record.decided) return;
  if (given_up_ || record.giving) {  // what others are given cannot have come without our part
    record.decided = true;
    record.held = record.giving = false;
    record.states[0] = record.states[1] = GateState::kBroken;
    return;
  }
  // With a member lost nobody can finish, and survivors have been told that we will not begin. The
  // arbiter says why it broke: it may have decided so before it knew of the loss.
  if ((lost_count_ > 0 || promised_all_) && !record.held) AskForLoss(sequence);
  if (!awaits_start && record.states[0] == GateState::kOpen && !record.held && !record.decided) {
    // Nobody waits at this gate; messages of the operation show that their sender has begun.
    record.states[0] = GateState::kPassed;
  }
}

bool GateProtocol::Enter(uint64_t sequence, Gate gate, bool prompt) {
  prompt = prompt || hurries_;
  Record& record = RecordOf(sequence);
  if (record.held || record.fetches()) return false;
  const size_t g = static_cast<size_t>(gate);
  if (record.entered[g] || record.decided) return true;
  record.entered[g] = true;
  if (gate == Gate::kStart && record.states[0] != GateState::kOpen) return true;
  const Item item = {.sequence = sequence,
                     .digest = record.hello.digest,
                     .weight = record.hello.weight,
                     .staged = record.hello.staged};
  if (arbiter_ == self_) {
    NoteEntry(self_, gate, item, prompt);
  } else if (gate == Gate::kStart || prompt) {
    GateMessage message{.kind = Kind::kEnter, .gate = gate, .items = {item}};
    if (gate == Gate::kFinish) {
      for (const uint64_t untold : std::exchange(untold_entries_, {})) {
        message.items.push_back({.sequence = untold});
      }
    }
    Say(arbiter_, std::move(message));
  } else {
    untold_entries_.push_back(sequence);
    if (untold_entries_.size() >= kToldTogether) Flush();
  }
  return true;
}

void GateProtocol::Flush() {
  if (!untold_entries_.empty() && arbiter_ != self_) {
    GateMessage message{.kind = Kind::kEnter, .gate = Gate::kFinish};
    for (const uint64_t sequence : untold_entries_) {
      message.items.push_back({.sequence = sequence});
    }
    Say(arbiter_, std::move(message));
  }
  untold_entries_.clear();
  if (!untold_passings_.empty()) {
    GateMessage message{.kind = Kind::kPassed, .gate = Gate::kFinish};
    for (const uint64_t sequence : std::exchange(untold_passings_, {})) {
      message.items.push_back({.sequence = sequence});
    }
    SayToSurvivors(message);
  }
}

void GateProtocol::Hurry() {
  hurries_ = true;
  Flush();
}

// At the arbiter: counts the members that have entered. The last one makes the gate pass.
void GateProtocol::NoteEntry(int from, Gate gate, const Item& item, bool prompt) {
  if (forgotten_below_ > item.sequence || forgotten_.count(item.sequence) > 0) return;
  Record& record = RecordOf(item.sequence);
  const size_t g = static_cast<size_t>(gate);
  if (record.decided || record.present[g][static_cast<size_t>(from)]) return;
  record.present[g][static_cast<size_t>(from)] = true;
  if (gate == Gate::kStart) {
    record.hellos.resize(static_cast<size_t>(members_));
    record.hellos[static_cast<size_t>(from)] = {
        .digest = item.digest, .weight = item.weight, .staged = item.staged};
  }
  ++record.count[g];
  // What is given to members passes when all survivors have it.
  const bool given = record.giving && gate == Gate::kFinish;
  bool all = record.count[g] == members_;
  if (given) {
    all = true;
    for (size_t member = 0; member < lost_.size(); ++member) {
      all = all && (lost_[member] || record.present[g][member]);
    }
  }
  if (all) Pass(item.sequence, gate, prompt || given);
}

void GateProtocol::TellFinish(uint64_t sequence) {
  const Item item = {.sequence = sequence};
  if (arbiter_ == self_) {
    NoteEntry(self_, Gate::kFinish, item, /*prompt=*/true);
  } else {
    Say(arbiter_, {.kind = Kind::kEnter, .gate = Gate::kFinish, .items = {item}});
  }
}

void GateProtocol::Pass(uint64_t sequence, Gate gate, bool prompt) {
  Record& record = RecordOf(sequence);
  if (record.held) return;  // the round that runs will decide it
  record.states[static_cast<size_t>(gate)] = GateState::kPassed;
  if (gate == Gate::kStart) {
    SayToSurvivors({.kind = Kind::kPassed,
                    .gate = gate,
                    .items = {{.sequence = sequence}},
                    .hellos = record.hellos});
    return;
  }
  record.giving = false;
  untold_passings_.push_back(sequence);
  if (prompt || untold_passings_.size() >= kToldTogether) Flush();
  Forget(sequence);
}

GateState GateProtocol::State(uint64_t sequence, Gate gate) const {
  const Record* record = Find(sequence);
  return record == nullptr ? GateState::kOpen : record->states[static_cast<size_t>(gate)];
}

bool GateProtocol::Entered(uint64_t sequence, Gate gate, int member) const {
  const Record* record = Find(sequence);
  if (record == nullptr) return false;
  const size_t g = static_cast<size_t>(gate);
  if (record->decided) {
    const auto& missing = gate == Gate::kStart ? record->not_opened : record->not_finished;
    return std::find(missing.begin(), missing.end(), member) == missing.end();
  }
  if (record->states[g] == GateState::kPassed) return true;
  return member == self_ ? record->entered[g] : record->present[g][static_cast<size_t>(member)];
}

Hello GateProtocol::HelloOf(uint64_t sequence, int member) const {
  const Record* record = Find(sequence);
  if (record == nullptr || record->hellos.size() <= static_cast<size_t>(member)) {
    return record == nullptr ? Hello{} : record->hello;
  }
  return record->hellos[static_cast<size_t>(member)];
}

bool GateProtocol::Held(uint64_t sequence) const {
  const Record* record = Find(sequence);
  return record != nullptr && (record->held || record->fetches());
}

// A member that did not even join is to blame before those that could not finish without it.
Session::Failure GateProtocol::FailureOf(uint64_t sequence) const {
  const Record* record = Find(sequence);
  if (record == nullptr) return {};
  const bool joined = record->not_opened.empty();
  const std::vector<int32_t>& missing = joined ? record->not_finished : record->not_opened;
  return {.for_loss = record->for_loss,
          .gate = joined ? Gate::kFinish : Gate::kStart,
          .missing = {missing.begin(), missing.end()}};
}

std::optional<GateProtocol::Oddity> GateProtocol::OddityOf(uint64_t sequence) const {
  const Record* record = Find(sequence);
  return record == nullptr ? std::nullopt : record->oddity;
}

void GateProtocol::Ask(uint64_t sequence, int odd_member, uint64_t odd_digest) {
  Record& record = RecordOf(sequence);
  if (record.asked || record.decided || record.giving) return;
  record.asked = true;
  if (odd_member >= 0) record.oddity = Oddity{odd_member, odd_digest};
  if (arbiter_ == self_) {
    BeginRound({sequence}, /*all=*/false);
    return;
  }
  Say(arbiter_,
      {.kind = Kind::kAsk,
       .items = {{.sequence = sequence, .digest_odd = odd_digest, .member_odd = odd_member}},
       .ranks = ranks_});
}

void GateProtocol::AskForLoss(uint64_t sequence) {
  Record& record = RecordOf(sequence);
  record.held = record.asked = true;
  if (arbiter_ == self_) {
    record.asked_for_loss = true;
    BeginRound({sequence}, /*all=*/false);
    return;
  }
  Say(arbiter_,
      {.kind = Kind::kAsk, .items = {{.sequence = sequence, .for_loss = true}}, .ranks = ranks_});
}

void GateProtocol::ResultArrived(uint64_t sequence) {
  Record& record = RecordOf(sequence);
  record.result_here = record.result_here || record.held || record.fetches();
}

// While a round runs that this member has answered, it does not take what came: it said that it has
// no result, and the arbiter may decide by that.
bool GateProtocol::TakeResult(uint64_t sequence) {
  const auto found = records_.find(sequence);
  if (found == records_.end()) return false;
  Record& record = found->second;
  if (record.held || !record.fetches() || !record.result_here) return false;
  record.entered[1] = true;
  TellFinish(sequence);
  return true;
}

void GateProtocol::Close(uint64_t sequence) {
  Record& record = RecordOf(sequence);
  record.closed = true;
  if (record.fetches()) {  // nobody need wait until it has the result
    record.entered[1] = true;
    TellFinish(sequence);
  }
  Forget(sequence);
}

// Drops the record if nobody can ask for more of it than that it passed.
void GateProtocol::Forget(uint64_t sequence) {
  const auto found = records_.find(sequence);
  if (found == records_.end() || !found->second.closed || found->second.held ||
      found->second.states[1] != GateState::kPassed) {
    return;
  }
  records_.erase(found);
  forgotten_.insert(sequence);
  while (!forgotten_.empty() && *forgotten_.begin() == forgotten_below_) {
    forgotten_.erase(forgotten_.begin());
    ++forgotten_below_;
  }
}

void GateProtocol::Lose(int member) {
  if (lost_[static_cast<size_t>(member)]) return;
  lost_[static_cast<size_t>(member)] = true;
  ++lost_count_;
  // With a member lost no gate passes any more by being entered. The arbiter, the old one or the
  // next, settles everything that is open by a round.
  untold_entries_.clear();
  Flush();
  while (arbiter_ < members_ - 1 && lost_[static_cast<size_t>(arbiter_)]) ++arbiter_;
  for (auto& [sequence, record] : records_) record.asked = false;
  if (arbiter_ == self_) {
    BeginRound({}, /*all=*/true);
  } else if (!heard_[static_cast<size_t>(arbiter_)]) {
    AskStranger();
  }
}

// An arbiter that has said nothing may never have made this group, because it knew of a loss before:
// then it does not know that there is something to settle.
void GateProtocol::AskStranger() {
  GateMessage message{.kind = Kind::kAsk, .ranks = ranks_};
  for (auto& [sequence, record] : records_) {
    if (!record.opened || record.closed || record.decided) continue;
    record.asked = true;
    message.items.push_back({.sequence = sequence, .for_loss = true});
  }
  if (!message.items.empty()) Say(arbiter_, std::move(message));
}

void GateProtocol::GiveUp() {
  given_up_ = true;
  for (auto& [sequence, record] : records_) {
    record.held = record.giving = false;
    for (GateState& state : record.states) {
      if (state == GateState::kOpen) state = GateState::kBroken;
    }
    record.decided = true;
  }
}

// A round has a number that is larger than that of any round before it, also of earlier arbiters:
// an arbiter begins when a loss makes it the first survivor, so the losses that it knows of stand in
// the upper half. A round about everything replaces one that runs about some operations.
void GateProtocol::BeginRound(std::vector<uint64_t> sequences, bool all) {
  if (round_runs_ && !all) {
    for (const uint64_t sequence : sequences) {
      if (round_sequences_.count(sequence) == 0) waiting_asks_.insert(sequence);
    }
    return;
  }
  const uint64_t base = static_cast<uint64_t>(lost_count_) << 32;
  round_ = std::max({round_, promised_round_, base}) + 1;
  round_runs_ = true;
  round_all_ = all;
  round_sequences_ = {sequences.begin(), sequences.end()};
  if (all) round_sequences_.merge(std::exchange(waiting_asks_, {}));
  reports_.clear();
  GateMessage query{.kind = Kind::kQuery, .all = all, .round = round_, .ranks = ranks_};
  for (const uint64_t sequence : round_sequences_) query.items.push_back({.sequence = sequence});
  SayToSurvivors(query);
  TakeReport(self_, MakeReport(query));
}

// A report is a promise: what is not decided is held still until a decision of this round or a later
// one, so that the report stays true while the arbiter decides by it. After a query about
// everything, nothing new begins here either.
GateMessage GateProtocol::MakeReport(const GateMessage& query) {
  promised_round_ = query.round;
  promised_all_ = promised_all_ || query.all;
  GateMessage report{.kind = Kind::kReport, .all = query.all, .round = query.round};
  bool lists_told = false;
  std::set<uint64_t> sequences;
  for (const Item& item : query.items) sequences.insert(item.sequence);
  if (query.all) {
    for (const auto& [sequence, record] : records_) sequences.insert(sequence);
  }
  for (const uint64_t sequence : sequences) {
    Item item = {.sequence = sequence};
    if (sequence < forgotten_below_ || forgotten_.count(sequence) > 0) {
      item.start = item.finish = static_cast<uint8_t>(GateState::kPassed);
      item.entered_start = item.entered_finish = true;
      report.items.push_back(item);
      continue;
    }
    Record& record = RecordOf(sequence);
    if (!record.decided) {
      record.held = true;
      record.giving = false;  // it is decided again, by those who have the result now
    }
    item.start = static_cast<uint8_t>(record.states[0]);
    item.finish = static_cast<uint8_t>(record.states[1]);
    item.opened = record.opened && !record.closed;
    item.entered_start = record.opened;
    item.entered_finish = record.entered[1];
    item.mode = static_cast<uint8_t>(record.mode);
    item.digest = record.hello.digest;
    if (record.oddity) {
      item.member_odd = record.oddity->member;
      item.digest_odd = record.oddity->digest;
    }
    if (record.states[1] == GateState::kBroken) {
      item.for_loss = record.for_loss;
      if (std::exchange(lists_told, true) == false) {  // they are the same for all
        item.not_opened = record.not_opened;
        item.not_finished = record.not_finished;
      }
    }
    report.items.push_back(item);
  }
  // The oldest are known to all: whatever is not decided yet is among the newest.
  if (report.items.size() > kGateItemsMax) {
    report.items.erase(report.items.begin(), report.items.end() - kGateItemsMax);
  }
  return report;
}

void GateProtocol::AnswerQuery(int from, const GateMessage& query) {
  if (query.round < promised_round_) return;  // of an arbiter that is not one any more
  Say(from, MakeReport(query));
}

void GateProtocol::TakeReport(int from, const GateMessage& report) {
  if (!round_runs_ || report.round != round_) return;
  reports_[from] = report;
  for (int member = 0; member < members_; ++member) {
    if (!lost_[static_cast<size_t>(member)] && reports_.count(member) == 0) return;
  }
  Decide();
}

// Decides from the reports of all survivors.
void GateProtocol::Decide() {
  round_runs_ = false;
  std::set<uint64_t> sequences = round_sequences_;
  for (const auto& [member, report] : reports_) {
    for (const Item& item : report.items) sequences.insert(item.sequence);
  }
  // A member that has seen an operation pass may have forgotten it, and tells that it has passed only
  // when asked for it.
  if (round_all_ && sequences != round_sequences_) {
    BeginRound({sequences.begin(), sequences.end()}, /*all=*/true);
    return;
  }
  // What a member has heard of an earlier arbiter's reason to end the group stays the reason.
  for (const auto& [member, report] : reports_) {
    for (const Item& item : report.items) {
      if (ToState(item.finish) == GateState::kBroken) NoteFailure(item);
    }
  }
  GateMessage decision{.kind = Kind::kDecision, .all = round_all_, .round = round_};
  for (const uint64_t sequence : sequences) decision.items.push_back(DecideOne(sequence));
  // Each operation is decided for itself, so a part that nobody has heard is decided again.
  for (const GateMessage& part : Split(decision)) SayToSurvivors(part);
  for (const Item& item : decision.items) Apply(item);
  std::erase_if(waiting_asks_, [&](uint64_t sequence) { return sequences.contains(sequence); });
  if (!waiting_asks_.empty()) {
    const std::set<uint64_t> next = std::exchange(waiting_asks_, {});
    BeginRound({next.begin(), next.end()}, /*all=*/false);
  }
}

// What one of the survivors saw passed or broken stays so. An open finish gate passes if all have
// entered it, or if the result is the same for all and lies complete at one of them, which then
// provides it. Everything else breaks.
GateMessage::Item GateProtocol::DecideOne(uint64_t sequence) {
  Item decided = {.sequence = sequence};
  GateState start = GateState::kOpen, finish = GateState::kOpen;
  bool shared = false;
  int holder = -1;  // has the result at hand
  std::vector<bool> opened(static_cast<size_t>(members_)), finished(opened), needy(opened);
  for (const auto& [member, report] : reports_) {
    const size_t m = static_cast<size_t>(member);
    const auto item = std::find_if(report.items.begin(), report.items.end(),
                                   [&](const Item& i) { return i.sequence == sequence; });
    if (item == report.items.end()) continue;
    if (ToState(item->start) != GateState::kOpen) start = ToState(item->start);
    if (ToState(item->finish) == GateState::kPassed) finish = GateState::kPassed;
    if (ToState(item->finish) == GateState::kBroken && finish == GateState::kOpen) {
      finish = GateState::kBroken;
    }
    opened[m] = item->entered_start;
    finished[m] = item->entered_finish;
    needy[m] = item->opened && !item->entered_finish;
    shared = shared || (item->opened && static_cast<Mode>(item->mode) == Mode::kShared);
    if (item->opened && item->entered_finish && holder < 0) holder = member;
    if (item->member_odd >= 0 && decided.member_odd < 0) {
      decided.member_odd = item->member_odd;
      decided.digest_odd = item->digest_odd;
    }
  }
  const auto list = [&](const std::vector<bool>& flags, bool listed) {
    std::vector<int32_t> members;
    for (int member = 0; member < members_; ++member) {
      if (flags[static_cast<size_t>(member)] == listed) members.push_back(member);
    }
    return members;
  };
  if (finish == GateState::kOpen) {
    const bool all_finished = std::find(finished.begin(), finished.end(), false) == finished.end();
    finish = all_finished || (shared && holder >= 0) ? GateState::kPassed : GateState::kBroken;
  }
  if (start == GateState::kOpen) start = finish;
  decided.start = static_cast<uint8_t>(start);
  decided.finish = static_cast<uint8_t>(finish);
  if (finish == GateState::kPassed) {
    decided.not_finished = list(needy, true);
    if (!shared || decided.not_finished.empty()) return decided;
    decided.provider = holder;
    Record& record = RecordOf(sequence);
    record.count[1] = 0;
    for (size_t m = 0; m < needy.size(); ++m) {
      record.present[1][m] = !needy[m];
      record.count[1] += needy[m] ? 0 : 1;
    }
    return decided;
  }
  decided.for_loss = lost_count_ > 0 || RecordOf(sequence).asked_for_loss;
  decided.not_opened = list(opened, false);
  decided.not_finished = list(finished, false);
  NoteFailure(decided);
  if (decided.member_odd < 0) {
    decided.for_loss = failure_->for_loss;
    decided.not_opened = failure_->not_opened;
    decided.not_finished = failure_->not_finished;
  }
  return decided;
}

// Members that run different things end an operation, not the group.
void GateProtocol::NoteFailure(const Item& item) {
  if (failure_ || item.member_odd >= 0) return;
  failure_ = {
      .for_loss = item.for_loss, .not_opened = item.not_opened, .not_finished = item.not_finished};
}

void GateProtocol::Apply(const Item& item) {
  if (item.sequence < forgotten_below_ || forgotten_.count(item.sequence) > 0) return;
  Record& record = RecordOf(item.sequence);
  if (record.decided) return;
  record.held = false;
  record.giving = item.provider >= 0;
  record.states[0] = ToState(item.start);
  if (record.giving) {
    if (item.provider == self_) {
      Provision provision{.sequence = item.sequence, .needy = {}};
      for (const int32_t member : item.not_finished) {
        if (!lost_[static_cast<size_t>(member)]) provision.needy.push_back(member);
      }
      if (!provision.needy.empty()) provisions_.push_back(std::move(provision));
    }
    if (record.closed && record.fetches()) Close(item.sequence);  // it has given up meanwhile
    return;
  }
  record.decided = true;
  record.for_loss = item.for_loss;
  record.not_opened = item.not_opened;
  record.not_finished = item.not_finished;
  if (item.member_odd >= 0) record.oddity = Oddity{item.member_odd, item.digest_odd};
  record.states[1] = ToState(item.finish);
  if (record.states[1] == GateState::kBroken) NoteFailure(item);
  if (record.states[1] == GateState::kPassed && record.opened && record.mode == Mode::kShared &&
      !record.entered[1]) {
    record.states[1] = GateState::kBroken;  // nobody can give the result any more
  }
  if (record.states[1] == GateState::kPassed) Forget(item.sequence);
}

bool GateProtocol::Fits(const GateMessage& message) const {
  const auto fits = [&](int32_t member) { return member < members_; };
  const auto all_fit = [&](const std::vector<int32_t>& list) {
    return std::all_of(list.begin(), list.end(), fits);
  };
  return std::all_of(message.items.begin(), message.items.end(), [&](const Item& item) {
    return fits(item.provider) && fits(item.member_odd) && all_fit(item.not_opened) &&
           all_fit(item.not_finished);
  });
}

bool GateProtocol::Receive(int from, const GateMessage& message) {
  if (!Fits(message)) return false;
  heard_[static_cast<size_t>(from)] = true;
  Hear(from, message);
  return true;
}

void GateProtocol::Hear(int from, const GateMessage& message) {
  switch (message.kind) {
    case Kind::kEnter:
      if (arbiter_ != self_) return;  // the sender asks again when it learns of the next arbiter
      for (const Item& item : message.items) {
        NoteEntry(from, message.gate, item, /*prompt=*/false);
      }
      Flush();
      return;
    case Kind::kPassed:
      for (const Item& item : message.items) {
        if (item.sequence < forgotten_below_ || forgotten_.count(item.sequence) > 0) continue;
        Record& record = RecordOf(item.sequence);
        // While it is held, this comes from an arbiter that is not one any more.
        if (record.decided || record.held || record.fetches()) continue;
        record.states[static_cast<size_t>(message.gate)] = GateState::kPassed;
        if (message.gate == Gate::kStart &&
            message.hellos.size() == static_cast<size_t>(members_)) {
          record.hellos = message.hellos;
        }
        if (message.gate != Gate::kFinish) continue;
        record.giving = false;
        Forget(item.sequence);
      }
      return;
    case Kind::kAsk:
      if (arbiter_ != self_) return;
      for (const Item& item : message.items) {
        Record& record = RecordOf(item.sequence);
        if (item.member_odd >= 0 && !record.oddity) {
          record.oddity = Oddity{item.member_odd, item.digest_odd};
        }
        if (record.decided || record.giving) continue;  // the decision is in flight
        record.asked_for_loss = record.asked_for_loss || item.for_loss;
        BeginRound({item.sequence}, /*all=*/false);
      }
      return;
    case Kind::kQuery:
      AnswerQuery(from, message);
      return;
    case Kind::kReport:
      TakeReport(from, message);
      return;
    case Kind::kDecision:
      if (message.round < promised_round_) return;
      for (const Item& item : message.items) Apply(item);
      return;
  }
}

}  // namespace syncopate::transport::net
