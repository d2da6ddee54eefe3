#include "transport/net/loss_consensus.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace syncopate::transport::net {

LossConsensus::LossConsensus(const LossConsensusOptions& options, int64_t now_ns)
    : options_(options),
      peers_(Index(options.size)),
      now_ns_(now_ns),
      next_beat_ns_(now_ns),
      next_tick_ns_(now_ns) {
  for (Peer& peer : peers_) peer.heard_ns = now_ns;
}

bool LossConsensus::IsPeer(int rank) const {
  return rank >= 0 && rank < options_.size && rank != options_.rank && !peer(rank).lost;
}

void LossConsensus::Enter(int64_t now_ns) {
  const int64_t idle_ns = now_ns - now_ns_;
  const bool held_up = now_ns - std::max(next_tick_ns_, now_ns_) > options_.silence_ns / 4;
  now_ns_ = std::max(now_ns_, now_ns);
  if (!held_up) return;
  for (Peer& peer : peers_) {
    peer.heard_ns = now_ns_;
    peer.accused = false;
  }
  dispute_ns_ = -1;
  proposed_ns_ = now_ns_;
  if (idle_ns > options_.silence_ns / 2) woke_ns_ = now_ns_;
}

void LossConsensus::Heard(int rank, int64_t now_ns) {
  Enter(now_ns);
  if (self_lost_ || !IsPeer(rank)) return;
  peer(rank).heard_ns = now_ns_;
  if (!peer(rank).accused) return;
  peer(rank).accused = false;
  Reconsider();
}

void LossConsensus::Closed(int rank, Cause cause, int64_t now_ns) {
  Enter(now_ns);
  if (rank < 0 || rank >= options_.size) return;
  peer(rank).closed = true;
  if (self_lost_ || !IsPeer(rank)) return;
  Propose(rank, IsCertain(cause) ? cause : Cause::kDied, options_.rank);
  EndRounds();
  Reconsider();
}

void LossConsensus::Suspect(int rank, Cause cause, int64_t now_ns) {
  Enter(now_ns);
  if (self_lost_ || !IsPeer(rank)) return;
  if (IsCertain(cause)) {
    Propose(rank, cause, options_.rank);
    EndRounds();
  } else {
    peer(rank).stuck = true;
  }
  Reconsider();
}

void LossConsensus::Expel(int rank, int64_t now_ns) { Suspect(rank, Cause::kStuck, now_ns); }

void LossConsensus::Received(int rank, const LossMessage& message, int64_t now_ns) {
  Enter(now_ns);
  if (self_lost_ || rank < 0 || rank >= options_.size || rank == options_.rank) return;
  if (peer(rank).lost) {
    peer(rank).reply = true;
    return;
  }
  Heard(rank, now_ns);
  if (message.kind == LossMessage::Kind::kGoing) {
    Mark mark{.rank = rank, .cause = Cause::kCutOff, .by = rank, .certain = true};
    if (!message.proposals.empty()) mark.cause = message.proposals.front().cause;
    Add(mark);
    EndRounds();
    return;
  }
  if (message.kind == LossMessage::Kind::kExpelled) {
    LoseSelf(message.verdicts.empty() ? Cause::kSilent : message.verdicts.front().cause,
             Goodbye::kNone);
    return;
  }
  // This worker is proposed as lost. Nobody takes a proposal back, so there is no use in waiting for
  // the verdict. Of two workers that propose each other, the one with the higher rank goes.
  for (const Mark& mark : message.proposals) {
    if (mark.rank != options_.rank) continue;
    if (proposal_.contains(rank) && options_.rank < rank) return;
    LoseSelf(mark.cause, Goodbye::kTell);
    return;
  }
  // A worker that we propose as lost may have ended this round without us. To follow it now would
  // break the word that we gave to the others.
  if (proposal_.contains(rank)) return;
  TakeOver(message);
  if (self_lost_) return;
  Peer& sender = peer(rank);
  if (message.known > sender.known) {
    sender.known = message.known;
    sender.proposal.clear();
  }
  if (message.known == sender.known) {
    for (const Mark& mark : message.proposals) Join(sender.proposal, mark);
  }
  if (message.known != static_cast<int>(verdicts_.size())) sender.reply = true;
  const bool disputed = !message.opinions.empty() || !sender.opinions.empty();
  sender.opinions.clear();
  for (const RankOpinion& opinion : message.opinions) {
    sender.opinions[opinion.rank] = opinion.opinion;
  }
  JoinProposalOf(sender);
  EndRounds();
  if (disputed) Reconsider();
}

void LossConsensus::Tick(int64_t now_ns) {
  Enter(now_ns);
  if (self_lost_) return;
  if (now_ns_ >= next_beat_ns_) {
    told_ = false;
    next_beat_ns_ = now_ns_ + options_.beat_ns;
  }
  EndRounds();
  Reconsider();
}

int64_t LossConsensus::NextTickNs() const { return next_tick_ns_; }

// Rounds ----------------------------------------------------------------------------------------

// Takes the stronger cause, and of equal ones the lower reporter. The order in which marks come then
// makes no difference, so that all workers end with the same proposal.
bool LossConsensus::Join(Proposal& into, const Mark& mark) {
  const auto [it, added] = into.try_emplace(mark.rank, mark);
  if (added) return true;
  Mark& ours = it->second;
  const Mark before = ours;
  if (mark.cause > ours.cause || (mark.cause == ours.cause && mark.by < ours.by)) {
    ours.cause = mark.cause;
    ours.by = mark.by;
  }
  ours.certain = ours.certain || mark.certain;
  return !(ours == before);
}

void LossConsensus::Add(const Mark& mark) {
  if (mark.rank == options_.rank || peer(mark.rank).lost || !Join(proposal_, mark)) return;
  told_ = false;
  proposed_ns_ = now_ns_;
}

void LossConsensus::Propose(int rank, Cause cause, int by) {
  // A weaker or equal cause adds nothing. Without this check, each worker would propose the same loss
  // again in its own name.
  const auto it = proposal_.find(rank);
  if (it != proposal_.end() && it->second.cause >= cause) return;
  Add({.rank = rank, .cause = cause, .by = by, .certain = IsCertain(cause)});
}

void LossConsensus::JoinProposalOf(const Peer& sender) {
  if (sender.known != static_cast<int>(verdicts_.size())) return;
  for (const auto& [rank, mark] : sender.proposal) Add(mark);
}

void LossConsensus::TakeOver(const LossMessage& message) {
  for (size_t i = 0; i < message.verdicts.size(); ++i) {
    if (Index(message.first) + i != verdicts_.size()) continue;
    const Mark& mark = message.verdicts[i];
    if (mark.rank == options_.rank) {
      LoseSelf(mark.cause, Goodbye::kNone);
      return;
    }
    if (peer(mark.rank).lost) return;  // no worker is lost twice, so no worker of ours said this
    Pronounce(mark);
  }
}

void LossConsensus::EndRounds() {
  while (!self_lost_ && EndRound()) {
    for (int rank = 0; rank < options_.size; ++rank) {
      if (IsPeer(rank) && IsMember(rank)) JoinProposalOf(peer(rank));
    }
  }
}

// Ends the round if every other worker that is not in our proposal has told us exactly that proposal
// for exactly this round, and these workers are a majority.
bool LossConsensus::EndRound() {
  if (proposal_.empty()) return false;
  std::vector<int> members;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsMember(rank)) continue;
    members.push_back(rank);
    if (rank == options_.rank) continue;
    const Peer& other = peer(rank);
    if (other.known != static_cast<int>(verdicts_.size()) || other.proposal != proposal_) {
      return false;
    }
  }
  if (!IsMajority(members)) return false;
  // All others seem to be lost, but this worker had been held up for long: it is more likely that
  // they have gone on without it.
  if (members.size() == 1 && proposal_.size() > 1 && woke_ns_ >= 0 &&
      now_ns_ - woke_ns_ < options_.silence_ns) {
    LoseSelf(Cause::kSilent, Goodbye::kNone);
    return false;
  }
  for (const auto& [rank, mark] : Proposal(proposal_)) Pronounce(mark);
  return true;
}

void LossConsensus::Pronounce(const Mark& mark) {
  verdicts_.push_back(
      {.rank = mark.rank, .order = verdicts_.size() + 1, .cause = mark.cause, .by = mark.by});
  proposal_.erase(mark.rank);
  peer(mark.rank).lost = true;
  peer(mark.rank).reply = true;
  told_ = false;
}

bool LossConsensus::IsElector(int rank) const {
  const auto it = proposal_.find(rank);
  return !peer(rank).lost && (it == proposal_.end() || !it->second.certain);
}

// Two disjoint sets can never both be a majority, so that a job that is cut into two parts goes on in
// one of them at most. Of two halves the one with the lowest rank goes on. Workers that are certainly
// lost cannot be in another part, so they do not count.
bool LossConsensus::IsMajority(const std::vector<int>& members) const {
  size_t electors = 0;
  int lowest = -1;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsElector(rank)) continue;
    if (electors++ == 0) lowest = rank;
  }
  return 2 * members.size() > electors ||
         (2 * members.size() == electors && members.front() == lowest);
}

// Accusations -----------------------------------------------------------------------------------

void LossConsensus::Reconsider() {
  if (self_lost_) return;
  Accuse();
  std::map<int, Opinion> opinions = Opinions();
  if (opinions != opinions_) {
    opinions_ = std::move(opinions);
    told_ = false;
  }
  Judge();
  CheckReach();
  next_tick_ns_ = next_beat_ns_;
  for (const int64_t after :
       {options_.collect_ns, 2 * options_.collect_ns, 3 * options_.collect_ns}) {
    const int64_t then = dispute_ns_ + after;
    if (dispute_ns_ >= 0 && then > now_ns_) next_tick_ns_ = std::min(next_tick_ns_, then);
  }
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsPeer(rank) || !IsMember(rank) || peer(rank).accused) continue;
    next_tick_ns_ = std::min(next_tick_ns_, peer(rank).heard_ns + options_.silence_ns);
  }
}

std::set<int> LossConsensus::Accused() const {
  std::set<int> accused;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsPeer(rank) || !IsMember(rank)) continue;
    if (peer(rank).accused || peer(rank).stuck) accused.insert(rank);
    for (const auto& [target, opinion] : peer(rank).opinions) {
      if (opinion != Opinion::kHeard && IsMember(target)) accused.insert(target);
    }
  }
  return accused;
}

void LossConsensus::Accuse() {
  const auto accuse = [this](int64_t limit_ns) {
    for (int rank = 0; rank < options_.size; ++rank) {
      if (!IsPeer(rank) || !IsMember(rank)) continue;
      if (now_ns_ - peer(rank).heard_ns >= limit_ns) peer(rank).accused = true;
    }
  };
  accuse(options_.silence_ns);
  // Once a worker is accused, all say which ones they have not heard for a while: a worker that is
  // silent for all must not look as if it had trouble with one of them only.
  if (!Accused().empty()) accuse(options_.silence_ns / 2);
}

std::map<int, Opinion> LossConsensus::Opinions() const {
  std::map<int, Opinion> opinions;
  for (const int rank : Accused()) {
    if (rank == options_.rank) continue;
    opinions[rank] = peer(rank).stuck     ? Opinion::kStuck
                     : peer(rank).accused ? Opinion::kSilent
                                          : Opinion::kHeard;
  }
  return opinions;
}

bool LossConsensus::AllHaveOpinions(const std::set<int>& accused) const {
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsPeer(rank) || !IsMember(rank) || peer(rank).accused) continue;
    for (const int target : accused) {
      if (target != rank && !peer(rank).opinions.contains(target)) return false;
    }
  }
  return true;
}

// A greedy vertex cover of the graph of pairs that cannot talk: takes out the worker with the most
// such pairs until no pair is left. One broken NIC is in all broken pairs, so that it goes alone.
std::vector<Mark> LossConsensus::WorstConnected() const {
  std::set<std::pair<int, int>> broken;  // pairs that cannot talk, the lower rank first
  std::set<std::pair<int, int>> stuck;   // the accuser, and the worker that it wants out
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsMember(rank)) continue;
    for (const auto& [target, opinion] : rank == options_.rank ? opinions_ : peer(rank).opinions) {
      if (target == rank || !IsMember(target)) continue;
      if (opinion == Opinion::kSilent) broken.insert(std::minmax(rank, target));
      if (opinion == Opinion::kStuck) stuck.insert({rank, target});
    }
  }
  int lowest = 0;
  while (!IsMember(lowest)) ++lowest;
  std::vector<Mark> worst;
  while (!broken.empty() || !stuck.empty()) {
    std::map<int, int> troubles;
    for (const auto& [a, b] : broken) ++troubles[a], ++troubles[b];
    for (const auto& [by, target] : stuck) ++troubles[target];
    Mark mark{.by = options_.rank};
    // Of several, first those that the lowest rank cannot talk to: if the job is cut in halves, the
    // half with the lowest rank goes on.
    std::pair<int, bool> most;
    for (const auto& [rank, count] : troubles) {
      const std::pair<int, bool> bad = {count, broken.contains({lowest, rank})};
      if (bad < most) continue;
      most = bad;
      mark.rank = rank;
    }
    for (const auto& [by, target] : stuck) {
      if (target == mark.rank) mark.cause = Cause::kStuck;
    }
    worst.push_back(mark);
    const auto concerned = [&mark](const std::pair<int, int>& pair) {
      return pair.first == mark.rank || pair.second == mark.rank;
    };
    std::erase_if(broken, concerned);
    std::erase_if(stuck, concerned);
  }
  return worst;
}

// Proposes the accused once their case is clear. Opinions are collected for collect_ns, and for as
// long again if some are missing. After that one worker speaks, and if it stays silent for another
// collect_ns, all do.
void LossConsensus::Judge() {
  const std::set<int> accused = Accused();
  if (accused.empty()) {
    dispute_ns_ = -1;
    return;
  }
  if (dispute_ns_ < 0) dispute_ns_ = now_ns_;
  const int64_t passed_ns = now_ns_ - dispute_ns_;
  if (passed_ns < options_.collect_ns) return;
  if (passed_ns < 2 * options_.collect_ns && !AllHaveOpinions(accused)) return;
  const std::vector<Mark> worst = WorstConnected();
  const auto is_worst = [&worst](int rank) {
    return std::any_of(worst.begin(), worst.end(),
                       [rank](const Mark& mark) { return mark.rank == rank; });
  };
  if (is_worst(options_.rank)) return;  // the others will say so
  // One worker speaks first, so that workers that see different troubles do not throw out both of a
  // pair.
  int speaker = 0;
  while (!IsMember(speaker) || is_worst(speaker)) ++speaker;
  if (speaker != options_.rank && passed_ns < 3 * options_.collect_ns) return;
  for (const Mark& mark : worst) Propose(mark.rank, mark.cause, mark.by);
  dispute_ns_ = -1;
  EndRounds();
}

// A worker that does not reach the majority gives itself up, since the others go on without it.
void LossConsensus::CheckReach() {
  if (self_lost_) return;
  std::vector<int> reached;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!IsElector(rank)) continue;
    if (rank == options_.rank || now_ns_ - peer(rank).heard_ns < options_.silence_ns) {
      reached.push_back(rank);
    }
  }
  // A worker that does not answer a proposal is soon accused, which changes the proposal. If nothing
  // changes for this long, the workers that could end the round do not hear us.
  const bool unanswered = !proposal_.empty() && now_ns_ - proposed_ns_ > 2 * options_.silence_ns;
  if (unanswered || !IsMajority(reached)) LoseSelf(Cause::kCutOff, Goodbye::kTell);
}

void LossConsensus::LoseSelf(Cause cause, Goodbye goodbye) {
  self_lost_ = true;
  self_lost_reason_ = cause == Cause::kCutOff
                          ? "is cut off: it does not hear the majority of the others"
                          : absl::StrCat("is held for lost by the others: it ", Describe(cause));
  if (goodbye == Goodbye::kNone) return;
  LossMessage message;
  message.kind = LossMessage::Kind::kGoing;
  message.proposals.push_back(
      {.rank = options_.rank, .cause = cause, .by = options_.rank, .certain = true});
  for (int rank = 0; rank < options_.size; ++rank) {
    if (IsPeer(rank) && !peer(rank).closed) last_words_.push_back({rank, message});
  }
}

// Messages --------------------------------------------------------------------------------------

std::vector<LossConsensus::Outgoing> LossConsensus::TakeMessages() {
  if (self_lost_) return std::exchange(last_words_, {});
  std::vector<Outgoing> out;
  for (int rank = 0; rank < options_.size; ++rank) {
    Peer& other = peer(rank);
    const bool reply = std::exchange(other.reply, false);
    if (rank == options_.rank || other.closed) continue;
    if (other.lost ? reply : reply || !told_) AppendMessages(rank, out);
  }
  told_ = true;
  return out;
}

void LossConsensus::AppendMessages(int to, std::vector<Outgoing>& out) const {
  LossMessage message;
  message.known = static_cast<int>(verdicts_.size());
  const auto mark_of = [](const Verdict& verdict) {
    return Mark{.rank = verdict.rank, .cause = verdict.cause, .by = verdict.by, .certain = true};
  };
  if (peer(to).lost) {
    message.kind = LossMessage::Kind::kExpelled;
    const auto it = std::find_if(verdicts_.begin(), verdicts_.end(),
                                 [to](const Verdict& verdict) { return verdict.rank == to; });
    message.first = static_cast<int>(it - verdicts_.begin());
    message.verdicts.push_back(mark_of(*it));
    out.push_back({to, std::move(message)});
    return;
  }
  for (const auto& [rank, opinion] : opinions_) {
    if (message.opinions.size() == LossMessage::kOpinionsMax) break;
    message.opinions.push_back({.rank = rank, .opinion = opinion});
  }
  // What one message cannot hold goes into several; the receiver adds them up.
  size_t next = Index(peer(to).known);
  auto proposed = proposal_.begin();
  do {
    message.first = static_cast<int>(std::min(next, verdicts_.size()));
    message.verdicts.clear();
    message.proposals.clear();
    while (next < verdicts_.size() && message.verdicts.size() < LossMessage::kVerdictsMax) {
      message.verdicts.push_back(mark_of(verdicts_[next++]));
    }
    while (proposed != proposal_.end() && message.proposals.size() < LossMessage::kProposalsMax) {
      message.proposals.push_back((proposed++)->second);
    }
    out.push_back({to, message});
  } while (next < verdicts_.size() || proposed != proposal_.end());
}

}  // namespace syncopate::transport::net
