#include "train/ledger/ledger_seat.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

// Reports that wait; a report is made once an iteration at most.
constexpr size_t kWaitingMax = 4096;
// How long they may be on their way before the training thread gives up.
constexpr int64_t kSentNsMax = 300'000'000'000;

}  // namespace

// What both threads know. Locked for moments only: the control thread must be quick.
struct LedgerSeat::Shared : std::enable_shared_from_this<Shared> {
  Shared(Worker& w, std::string n) : worker(w), name(std::move(n)) {}

  using Kind = LedgerReport::Kind;
  using Answered = std::function<void(const absl::StatusOr<std::string>&)>;

  absl::Status Start(const LedgerReport& report, Answered answered) {
    return worker.StartAsking(name, Encode(report), std::move(answered));
  }
  // Reports go one at a time, in order; while one is under way the others wait here.
  absl::Status Send(LedgerReport report, bool newest) {
    {
      MutexLock lock(&mutex);
      if (!failure.ok()) return failure;
      if (newest && !waiting.empty() && waiting.back().newest) waiting.pop_back();
      if (waiting.size() >= kWaitingMax) {
        return absl::ResourceExhaustedError("the ledger of the job does not answer");
      }
      waiting.push_back({std::move(report), newest});
      if (under_way) return absl::OkStatus();
      under_way = true;
    }
    return SendNext();
  }
  absl::Status SendNext() {
    std::string report;
    {
      MutexLock lock(&mutex);
      under_way = !waiting.empty() && !closed;
      changed.SignalAll();
      if (!under_way) return absl::OkStatus();
      report = Encode(waiting.front().report);
      waiting.pop_front();
    }
    return worker.StartAsking(
        name, std::move(report),
        [self = shared_from_this()](const absl::StatusOr<std::string>& answer) {
          self->Take(answer);
          if (answer.ok()) self->Keep(self->SendNext());
        });
  }
  // Until all reports before are on their way and answered.
  absl::Status AwaitSent(int64_t deadline_ns) {
    MutexLock lock(&mutex);
    while (under_way && failure.ok()) {
      const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
      if (left_ns <= 0) return absl::DeadlineExceededError("the ledger does not answer in time");
      changed.WaitFor(&mutex, std::chrono::nanoseconds(left_ns));
    }
    return failure;
  }
  // One request is always open by which the ledger can tell this worker something at any moment.
  absl::Status Listen() {
    LedgerReport report;
    {
      MutexLock lock(&mutex);
      if (closed) return absl::OkStatus();
      report = last;
      report.heard = standing.news;
    }
    report.kind = Kind::kListen;
    report.batch = 0;
    return Start(report, [self = shared_from_this()](const absl::StatusOr<std::string>& answer) {
      self->Take(answer);
      if (answer.ok()) self->Keep(self->Listen());
    });
  }
  // An answer has come. The first that says that the job ends has this worker promise where it will
  // wait.
  void Take(const absl::StatusOr<std::string>& answer) {
    if (!answer.ok()) return Keep(answer.status());
    absl::StatusOr<Standing> now = DecodeStanding(*answer);
    if (!now.ok()) return Keep(now.status());
    std::optional<LedgerReport> promise;
    {
      MutexLock lock(&mutex);
      if (std::pair(now->incarnation, now->step) >=
          std::pair(standing.incarnation, standing.step)) {
        standing = *std::move(now);
      }
      if (standing.stopping && last.promise < 0 && !closed) {
        last.promise = begun + kIterationsFurther;
        promise = last;
        promise->kind = Kind::kProgress;
        promise->batch = 0;
      }
      changed.SignalAll();
    }
    if (promise) {
      Keep(Start(*promise, [self = shared_from_this()](const absl::StatusOr<std::string>& heard) {
        self->Take(heard);
      }));
    }
  }
  void Keep(const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(&mutex);
    if (failure.ok() && !closed) failure = status;
    changed.SignalAll();
  }
  // Remembers what is known of this worker, for reports that others than the training thread make.
  LedgerReport Remember(LedgerReport report) {
    MutexLock lock(&mutex);
    report.promise = last.promise;
    report.written = std::max(report.written, last.written);
    report.finished = report.finished || last.finished;  // nobody begins anew
    last = report;
    last.event.clear();
    last.evaluation = {};
    last.failed_order = last.failed_attempt = 0;
    return report;
  }

  Worker& worker;
  const std::string name;  // of the service
  Mutex mutex;
  CondVar changed;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  absl::Status failure ABSL_GUARDED_BY(mutex);
  Standing standing ABSL_GUARDED_BY(mutex);
  LedgerReport last ABSL_GUARDED_BY(mutex);
  int64_t begun ABSL_GUARDED_BY(mutex) = 0;  // iterations
  struct Waiting {
    LedgerReport report;
    bool newest = false;
  };
  bool under_way ABSL_GUARDED_BY(mutex) = false;
  std::deque<Waiting> waiting ABSL_GUARDED_BY(mutex);
};

LedgerSeat::LedgerSeat(Worker& worker, const std::string& name)
    : worker_(worker), shared_(std::make_shared<Shared>(worker, name)) {}

absl::StatusOr<std::unique_ptr<LedgerSeat>> LedgerSeat::Make(Worker& worker,
                                                             LedgerOptions options) {
  // A worker that trains several times, as all others do, has a ledger for each time.
  const std::string name = options.name;
  for (int number = 1;; ++number) {
    if (number > 1) options.name = absl::StrCat(name, "-", number);
    std::unique_ptr<LedgerSeat> seat(new LedgerSeat(worker, options.name));
    const absl::Status added =
        worker.AddService(std::make_unique<Ledger>(options), [shared = seat->shared_] {
          MutexLock lock(&shared->mutex);
          LedgerReport report = shared->last;
          report.heard = shared->standing.news;
          report.job = HeardFrom(shared->standing);
          return Encode(report);
        });
    if (absl::IsAlreadyExists(added)) continue;
    SYNCOPATE_RETURN_IF_ERROR(added);
    SYNCOPATE_RETURN_IF_ERROR(seat->shared_->Listen());
    return seat;
  }
}

LedgerSeat::~LedgerSeat() {
  MutexLock lock(&shared_->mutex);
  shared_->closed = true;
}

absl::Status LedgerSeat::Post(LedgerReport report) {
  return shared_->Send(shared_->Remember(std::move(report)), /*newest=*/false);
}

absl::Status LedgerSeat::PostNewest(LedgerReport report) {
  return shared_->Send(shared_->Remember(std::move(report)), /*newest=*/true);
}

absl::StatusOr<Standing> LedgerSeat::Ask(LedgerReport report) {
  SYNCOPATE_RETURN_IF_ERROR(shared_->AwaitSent(MonotonicClock().NowNs() + kSentNsMax));
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::string answer,
      worker_.Ask(shared_->name, Encode(shared_->Remember(std::move(report)))));
  shared_->Take(answer);
  return DecodeStanding(answer);
}

absl::StatusOr<Standing> LedgerSeat::Await(LedgerReport report, absl::Duration timeout) {
  const int64_t deadline_ns = MonotonicClock().NowNs() + absl::ToInt64Nanoseconds(timeout);
  SYNCOPATE_RETURN_IF_ERROR(shared_->AwaitSent(MonotonicClock().NowNs() + kSentNsMax));
  const auto answer = std::make_shared<std::optional<absl::StatusOr<std::string>>>();
  SYNCOPATE_RETURN_IF_ERROR(
      shared_->Start(shared_->Remember(std::move(report)),
                     [shared = shared_, answer](const absl::StatusOr<std::string>& came) {
                       MutexLock lock(&shared->mutex);
                       *answer = came;
                       shared->changed.SignalAll();
                     }));
  std::string standing;
  {
    MutexLock lock(&shared_->mutex);
    while (!answer->has_value()) {
      const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
      if (left_ns <= 0) {
        return absl::DeadlineExceededError(absl::StrCat(
            "the other workers did not come to their end within ", absl::FormatDuration(timeout)));
      }
      shared_->changed.WaitFor(&shared_->mutex, std::chrono::nanoseconds(left_ns));
    }
    if (!(*answer)->ok()) return (*answer)->status();
    standing = ***answer;
  }
  shared_->Take(standing);
  return DecodeStanding(standing);
}

Standing LedgerSeat::standing() const {
  MutexLock lock(&shared_->mutex);
  return shared_->standing;
}

absl::StatusOr<bool> LedgerSeat::MayBegin(int64_t iterations, int64_t deadline_ns) {
  Shared& shared = *shared_;
  MutexLock lock(&shared.mutex);
  for (;;) {
    if (!shared.failure.ok()) return shared.failure;
    if (shared.standing.stop_at >= 0 && iterations >= shared.standing.stop_at) return false;
    const bool held = shared.standing.stopping && shared.standing.stop_at < 0 &&
                      shared.last.promise >= 0 && iterations >= shared.last.promise;
    if (!held) {
      shared.begun = iterations + 1;
      return true;
    }
    const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
    if (left_ns <= 0) {
      return absl::DeadlineExceededError("the workers did not agree in time on where they end");
    }
    shared.changed.WaitFor(&shared.mutex, std::chrono::nanoseconds(left_ns));
  }
}

}  // namespace syncopate::train
