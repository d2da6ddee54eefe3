#include "worker/mail_exchange.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

// How often mail is tried again that a worker's full queue has refused.
constexpr int64_t kTryAgainNs = 5'000'000;

bool IsParcel(absl::string_view bytes) { return bytes.size() > limits::kMailBytesMax; }

absl::Status CheckContribution(const adapt::JobExchange::Contribution& mine, size_t receivers) {
  if (mine.what.size() > kRoundNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the name of a round has ", mine.what.size(),
                                                   " bytes, the limit is ", kRoundNameBytesMax));
  }
  const uint64_t most =
      std::min(kRoundTextBytesMax, kRoundBytesMax / std::max<uint64_t>(1, receivers));
  if (mine.text.size() <= most) return absl::OkStatus();
  return WithBlast(
      absl::OutOfRangeError(absl::StrCat(mine.what, ": a text of ", mine.text.size(), " bytes for ",
                                         receivers, " workers; it may have ", most)),
      BlastRadius::kOperation);
}

absl::Status GoneError(const Mail& mail, int self) {
  if (mail.from == self) {
    return WithBlast(absl::AbortedError(absl::StrCat("worker ", self, ", this one, ", mail.bytes)),
                     BlastRadius::kJob, self);
  }
  return WithBlast(absl::UnavailableError(absl::StrCat("worker ", mail.from, " ", mail.bytes)),
                   BlastRadius::kGroup, mail.from);
}

}  // namespace

class MailExchange::LaneRound final : public adapt::JobExchange::Round {
 public:
  LaneRound(MailExchange& exchange, RoundLane lane, uint64_t round)
      : exchange_(exchange), lane_(lane), round_(round) {}
  ~LaneRound() override {
    if (!taken_) exchange_.Forget(lane_, round_);
  }
  bool Done() override { return taken_ || exchange_.Done(lane_, round_); }
  bool WaitUntil(int64_t deadline_ns) override {
    return exchange_.WaitUntil(lane_, round_, deadline_ns);
  }
  absl::StatusOr<std::vector<std::string>> Wait() override {
    if (std::exchange(taken_, true)) {
      return absl::FailedPreconditionError("the end of this round was waited for already");
    }
    return exchange_.Wait(lane_, round_);
  }

 private:
  MailExchange& exchange_;
  const RoundLane lane_;
  const uint64_t round_;
  bool taken_ = false;
};

// A round that was not even begun.
class MailExchange::RefusedRound final : public adapt::JobExchange::Round {
 public:
  explicit RefusedRound(absl::Status why) : why_(std::move(why)) {}
  bool Done() override { return true; }
  bool WaitUntil(int64_t /*deadline_ns*/) override { return true; }
  absl::StatusOr<std::vector<std::string>> Wait() override { return why_; }

 private:
  const absl::Status why_;
};

class MailExchange::Lane final : public adapt::JobExchange {
 public:
  Lane(MailExchange& exchange, RoundLane lane) : exchange_(exchange), lane_(lane) {}
  int rank() const override { return exchange_.rank_; }
  int size() const override { return exchange_.size_; }
  std::unique_ptr<Round> Start(Contribution mine) override {
    // Before any lock: a thread of the parent may have held it while the process forked.
    if (exchange_.made_here_.InChild()) {
      return std::make_unique<RefusedRound>(WithBlast(
          absl::FailedPreconditionError(absl::StrCat("this process was forked from rank ", rank(),
                                                     " and is no worker of the job")),
          BlastRadius::kOperation));
    }
    return std::make_unique<LaneRound>(exchange_, lane_, exchange_.Start(lane_, std::move(mine)));
  }
  void Stop(absl::string_view why) override {
    if (!exchange_.made_here_.InChild()) exchange_.Stop(lane_, why);
  }

 private:
  MailExchange& exchange_;
  const RoundLane lane_;
};

MailExchange::MailExchange(Mailbox& mailbox, int rank, int size, int64_t timeout_ns,
                           const Clock& clock)
    : mailbox_(mailbox),
      rank_(rank),
      size_(size),
      timeout_ns_(timeout_ns),
      clock_(clock),
      rounds_(kRoundLanes, TextRounds(rank, size)) {
  for (size_t lane = 0; lane < kRoundLanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>(*this, static_cast<RoundLane>(lane)));
  }
}

MailExchange::~MailExchange() {
  MutexLock lock(&listen_mutex_);
  if (listening_) mailbox_.Receive(kTopic, nullptr).IgnoreError();
}

adapt::JobExchange& MailExchange::lane(RoundLane lane) {
  return *lanes_[static_cast<size_t>(lane)];
}

absl::Status MailExchange::Listen() {
  MutexLock lock(&listen_mutex_);
  if (listening_) return absl::OkStatus();
  const absl::Status status =
      mailbox_.Receive(kTopic, [this](Mail mail) { Receive(std::move(mail)); });
  listening_ = status.ok();
  return status;
}

void MailExchange::Close() {
  const absl::Status why = absl::CancelledError("this worker leaves the job");
  MutexLock lock(&mutex_);
  if (closed_) return;
  closed_ = true;
  for (const RoundLane lane : {RoundLane::kChunkTuner, RoundLane::kJob}) {
    // Groups of a worker that has gone otherwise may still be in use, and with them these lanes.
    if (lane != RoundLane::kJob && rounds(lane).next() > 0) SendFault(lane, "it leaves the job");
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) rounds(lane).Gone(rank, why);
    }
  }
  changed_.SignalAll();
}

void MailExchange::Stop(RoundLane lane, absl::string_view why) {
  MutexLock lock(&mutex_);
  if (!closed_) SendFault(lane, why);
}

void MailExchange::SendFault(RoundLane lane, absl::string_view why) {
  const RoundMail fault = {.lane = lane,
                           .kind = RoundMail::Kind::kFault,
                           .round = rounds(lane).next(),
                           .text = std::string(why.substr(0, kRoundFaultBytesMax))};
  const auto bytes = std::make_shared<const std::string>(Encode(fault));
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Send({.to = rank, .lane = lane, .round = fault.round, .bytes = bytes});
  }
}

uint64_t MailExchange::Start(RoundLane lane, adapt::JobExchange::Contribution mine) {
  absl::Status wrong = size_ == 1 ? absl::OkStatus() : Listen();
  MutexLock lock(&mutex_);
  RoundMail mail = {.lane = lane, .root = mine.root, .what = mine.what, .text = mine.text};
  const uint64_t number = rounds(lane).Begin(std::move(mine));
  const std::vector<int> receivers = rounds(lane).Receivers(number);
  mail.round = number;
  if (wrong.ok()) {
    wrong = CheckContribution({.what = mail.what, .text = mail.text}, receivers.size());
  }
  if (wrong.ok() && closed_) wrong = absl::CancelledError("this worker leaves the job");
  if (!wrong.ok()) {
    // The others must not wait for it.
    mail.kind = RoundMail::Kind::kFault;
    mail.text = std::string(wrong.message().substr(0, kRoundFaultBytesMax));
    rounds(lane).Fail(number, wrong);
  }
  const auto bytes = std::make_shared<const std::string>(Encode(mail));
  for (const int to : receivers) {
    if (IsParcel(*bytes)) rounds(lane).AwaitTaken(number, to);
    Send({.to = to, .lane = lane, .round = number, .bytes = bytes});
  }
  return number;
}

bool MailExchange::Done(RoundLane lane, uint64_t round) {
  MutexLock lock(&mutex_);
  SendUnsent();
  return Over(lane, round);
}

bool MailExchange::WaitUntil(RoundLane lane, uint64_t round, int64_t deadline_ns) {
  MutexLock lock(&mutex_);
  return AwaitOver(lane, round, deadline_ns);
}

// A worker that left the job would take along what it has not sent.
bool MailExchange::Over(RoundLane lane, uint64_t round) {
  return !rounds(lane).Knows(round) || rounds(lane).Failed(round) ||
         (rounds(lane).Done(round) && AllSent(lane, round));
}

bool MailExchange::AwaitOver(RoundLane lane, uint64_t round, int64_t deadline_ns) {
  while (!Over(lane, round)) {
    SendUnsent();
    int64_t left_ns = deadline_ns - clock_.NowNs();
    if (left_ns <= 0) return false;
    if (!unsent_.empty()) left_ns = std::min(left_ns, kTryAgainNs);
    changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  return true;
}

absl::StatusOr<std::vector<std::string>> MailExchange::Wait(RoundLane lane, uint64_t round) {
  const int64_t deadline_ns = clock_.NowNs() + timeout_ns_;
  MutexLock lock(&mutex_);
  if (AwaitOver(lane, round, deadline_ns)) return rounds(lane).Take(round);
  const std::vector<int> missing = rounds(lane).Missing(round);
  rounds(lane).Forget(round);
  return WithBlast(absl::DeadlineExceededError(
                       absl::StrCat("time is up and worker ", absl::StrJoin(missing, ", "),
                                    " did not exchange what all workers exchange here")),
                   BlastRadius::kGroup, missing.empty() ? -1 : missing.front());
}

void MailExchange::Forget(RoundLane lane, uint64_t round) {
  MutexLock lock(&mutex_);
  rounds(lane).Forget(round);
}

void MailExchange::Receive(Mail mail) {
  MutexLock lock(&mutex_);
  if (mail.kind == Mail::Kind::kLost || mail.kind == Mail::Kind::kLeft) {
    const absl::Status why = GoneError(mail, rank_);
    for (TextRounds& lane : rounds_) {
      // A worker that the others have given up hears of nobody any more.
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_ || (rank != mail.from && mail.from != rank_)) continue;
        lane.Gone(rank, why, mail.kind == Mail::Kind::kLeft);
      }
    }
  } else {
    absl::StatusOr<RoundMail> read = DecodeRoundMail(mail.bytes);
    if (!read.ok()) {
      const absl::Status why = WithBlast(
          absl::InternalError(absl::StrCat("worker ", mail.from, ": ", read.status().message())),
          BlastRadius::kGroup, mail.from);
      for (TextRounds& lane : rounds_) lane.Gone(mail.from, why);
    } else {
      const RoundLane lane = read->lane;
      const uint64_t number = read->round;
      rounds(lane).Arrived(mail.from, *std::move(read));
      if (mail.kind == Mail::Kind::kParcel) {
        const RoundMail taken = {.lane = lane, .kind = RoundMail::Kind::kTaken, .round = number};
        Send({.to = mail.from,
              .lane = lane,
              .round = number,
              .bytes = std::make_shared<const std::string>(Encode(taken))});
      }
    }
  }
  SendUnsent();
  if (std::any_of(rounds_.begin(), rounds_.end(),
                  [](const TextRounds& lane) { return lane.AnyDone(); })) {
    changed_.SignalAll();
  }
}

bool MailExchange::TrySend(const Unsent& mail) {
  const absl::Status sent = mailbox_.Send(
      mail.to, IsParcel(*mail.bytes) ? transport::MailKind::kParcel : transport::MailKind::kMessage,
      kTopic, *mail.bytes);
  if (absl::IsResourceExhausted(sent)) return false;
  // That the receiver is gone shows when its last mail is heard; it may have brought its text.
  if (!sent.ok() && !absl::IsUnavailable(sent)) rounds(mail.lane).Fail(mail.round, sent);
  return true;
}

bool MailExchange::AllSent(RoundLane lane, uint64_t round) const {
  return std::none_of(unsent_.begin(), unsent_.end(),
                      [&](const Unsent& mail) { return mail.lane == lane && mail.round == round; });
}

void MailExchange::Send(Unsent mail) {
  const bool behind = std::any_of(unsent_.begin(), unsent_.end(),
                                  [&](const Unsent& other) { return other.to == mail.to; });
  if (behind || !TrySend(mail)) unsent_.push_back(std::move(mail));
}

void MailExchange::SendUnsent() {
  if (unsent_.empty()) return;
  std::set<int> full;
  std::deque<Unsent> left;
  for (Unsent& mail : unsent_) {
    if (!full.contains(mail.to) && TrySend(mail)) continue;
    full.insert(mail.to);
    left.push_back(std::move(mail));
  }
  unsent_ = std::move(left);
}

}  // namespace syncopate::worker
