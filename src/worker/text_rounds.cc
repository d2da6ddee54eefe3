#include "worker/text_rounds.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

absl::Status Blame(int rank, const std::string& why) {
  return WithBlast(absl::InternalError(why), BlastRadius::kGroup, rank);
}

// The error of the loss, which also says what came of it.
absl::Status AfterLoss(const absl::Status& loss, const absl::Status& why) {
  absl::Status both(loss.code(), absl::StrCat(loss.message(), "; after that ", why.message()));
  loss.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { both.SetPayload(type, payload); });
  return both;
}

std::string Describe(absl::string_view what, int root) {
  return absl::StrCat("\"", what, "\"", root < 0 ? "" : absl::StrCat(" with root ", root));
}

}  // namespace

uint64_t TextRounds::Begin(adapt::JobExchange::Contribution mine) {
  const uint64_t number = next_++;
  Round& round = rounds_[number];
  round.begun = true;
  for (const auto& [rank, text] : round.texts) {
    uint64_t& ahead = ahead_bytes_[rank];
    ahead -= text.size();
    if (ahead == 0) ahead_bytes_.erase(rank);
  }
  // A failure may be here before the round: a worker that brings no text says so.
  if (!round.texts.empty() && (round.what != mine.what || round.root != mine.root)) {
    const int other = round.texts.begin()->first;
    round.failure = WithBlast(
        absl::FailedPreconditionError(absl::StrCat("round ", number, ": worker ", rank_, " brings ",
                                                   Describe(mine.what, mine.root), ", worker ",
                                                   other, " ", Describe(round.what, round.root))),
        BlastRadius::kOperation, other);
  }
  round.what = std::move(mine.what);
  round.root = mine.root;
  if (round.root >= size_) {
    round.failure = WithBlast(absl::InvalidArgumentError(absl::StrCat(
                                  Describe(round.what, round.root), " in a job of ", size_)),
                              BlastRadius::kOperation);
  }
  for (const auto& [rank, why] : gone_) {
    if (Needs(round, rank) && !round.texts.contains(rank)) Fail(number, why);
  }
  round.texts[rank_] = std::move(mine.text);
  return number;
}

std::vector<int> TextRounds::Receivers(uint64_t round) const {
  const Round& begun = rounds_.at(round);
  std::vector<int> all;
  for (int rank = 0; rank < size_; ++rank) {
    // Whoever this worker needs a text from needs this worker's: also one that is held for gone here
    // since something that it sent could not be read.
    if (Needs(begun, rank)) all.push_back(rank);
  }
  return all;
}

void TextRounds::AwaitTaken(uint64_t round, int to) {
  if (!gone_.contains(to)) rounds_.at(round).untaken.insert(to);
}

void TextRounds::Fail(uint64_t round, const absl::Status& why) {
  const auto found = rounds_.find(round);
  if (found != rounds_.end() && found->second.failure.ok()) found->second.failure = why;
}

void TextRounds::Arrived(int from, RoundMail mail) {
  if (from < 0 || from >= size_ || from == rank_ || gone_.contains(from)) return;
  const auto found = rounds_.find(mail.round);
  const bool known = found != rounds_.end();
  if (mail.round < next_ && !known) return;  // this worker has given it up
  switch (mail.kind) {
    case RoundMail::Kind::kText:
      return TakeText(from, std::move(mail));
    case RoundMail::Kind::kTaken:
      if (known) found->second.untaken.erase(from);
      return;
    case RoundMail::Kind::kFault:
      if (mail.round >= next_ + kRoundsAheadMax) return;
      rounds_[mail.round];  // it may have to be made
      return Fail(mail.round,
                  WithBlast(absl::AbortedError(absl::StrCat("worker ", from, ": ", mail.text)),
                            BlastRadius::kOperation, from));
  }
}

void TextRounds::TakeText(int from, RoundMail mail) {
  if (mail.round >= next_ + kRoundsAheadMax) {
    return Gone(from, Blame(from, absl::StrCat("worker ", from, " is at round ", mail.round,
                                               ", this worker at ", next_, "; the limit is ",
                                               kRoundsAheadMax, " ahead")));
  }
  Round& round = rounds_[mail.round];
  const bool first = !round.begun && round.texts.empty();
  if (first) {
    round.what = std::move(mail.what);
    round.root = mail.root;
  } else if (round.what != mail.what || round.root != mail.root) {
    return Fail(mail.round, WithBlast(absl::FailedPreconditionError(absl::StrCat(
                                          "round ", mail.round, ": worker ",
                                          round.begun ? rank_ : round.texts.begin()->first,
                                          " brings ", Describe(round.what, round.root), ", worker ",
                                          from, " ", Describe(mail.what, mail.root))),
                                      BlastRadius::kOperation, from));
  }
  if (!Needs(round, from) || round.texts.contains(from)) {
    return Gone(from, Blame(from, absl::StrCat("worker ", from, " brought a text to round ",
                                               mail.round, " that nobody expects")));
  }
  if (round.bytes + mail.text.size() > kRoundBytesMax) {
    return Fail(mail.round, WithBlast(absl::OutOfRangeError(absl::StrCat(
                                          Describe(round.what, round.root),
                                          ": the texts have more than ", kRoundBytesMax, " bytes")),
                                      BlastRadius::kOperation));
  }
  if (!round.begun) {
    uint64_t& ahead = ahead_bytes_[from];
    if (ahead + mail.text.size() > kRoundsAheadBytesMax) {
      return Gone(
          from, Blame(from, absl::StrCat("worker ", from, " sent more than ", kRoundsAheadBytesMax,
                                         " bytes of rounds that others have not begun")));
    }
    ahead += mail.text.size();
  }
  round.bytes += mail.text.size();
  round.texts[from] = std::move(mail.text);
}

void TextRounds::Gone(int rank, absl::Status why, bool left) {
  if (left && !first_loss_.ok()) why = AfterLoss(first_loss_, why);
  if (!left && first_loss_.ok()) first_loss_ = why;
  if (!gone_.emplace(rank, why).second) return;
  for (auto& [number, round] : rounds_) {
    if (!round.begun) continue;
    round.untaken.erase(rank);
    if (Needs(round, rank) && !round.texts.contains(rank)) Fail(number, why);
  }
}

bool TextRounds::Done(uint64_t round) const {
  const Round& begun = rounds_.at(round);
  if (!begun.failure.ok()) return true;
  // Its own text and those of others that it needs.
  const size_t needed = begun.root < 0 || begun.root == rank_ ? static_cast<size_t>(size_) : 2;
  return begun.texts.size() >= needed && begun.untaken.empty();
}

bool TextRounds::AnyDone() const {
  for (const auto& [number, round] : rounds_) {
    if (round.begun && Done(number)) return true;
  }
  return false;
}

std::vector<int> TextRounds::Missing(uint64_t round) const {
  const Round& begun = rounds_.at(round);
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    const bool lacks = Needs(begun, rank) && !begun.texts.contains(rank);
    if (lacks || begun.untaken.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

absl::StatusOr<std::vector<std::string>> TextRounds::Take(uint64_t round) {
  auto taken = rounds_.extract(round);
  if (!taken.mapped().failure.ok()) return taken.mapped().failure;
  std::vector<std::string> texts(static_cast<size_t>(size_));
  for (auto& [rank, text] : taken.mapped().texts)
    texts[static_cast<size_t>(rank)] = std::move(text);
  return texts;
}

void TextRounds::Forget(uint64_t round) { rounds_.erase(round); }

}  // namespace syncopate::worker
