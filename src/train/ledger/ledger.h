// The ledger of a training job: a service (syncopate/service.h) to which workers report how far they
// are, and which says what all must know for training without lockstep: how many samples the job has
// had, which lines the run's metrics get, who writes them, which evaluation is wanted and among whom,
// and after which iteration all end.
//
// It is a machine without threads: one worker hosts it, another follows, so what it knows is not lost
// with a worker. Nothing in it waits for a worker that trains, except where workers ask to meet, at
// the start and at the end.
//
// Ending together. Workers that average in groups by a rule need each other: all must end after the
// same number of iterations. When the job has had its samples, or an evaluation has reached the
// target, the ledger says that it is stopping; every worker promises how many iterations it begins at
// most before it hears more; when all live ones have, the largest promise is where all end. Where
// workers do not need each other in this way (LedgerOptions::ends_together) each just ends.
#ifndef SYNCOPATE_TRAIN_LEDGER_LEDGER_H_
#define SYNCOPATE_TRAIN_LEDGER_LEDGER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "syncopate/service.h"
#include "train/ledger/ledger_message.h"

namespace syncopate::train {

struct LedgerOptions {
  std::string name = "training";
  int size = 1;                 // workers of the job when it began
  std::vector<int> order = {};  // who writes: the first of these that lives
  // Workers are in the same iteration: a line is of one iteration of all. Else it is of what each
  // reported last.
  bool lockstep = true;
  int64_t batch = 1;           // samples of all workers in an iteration of the job
  int64_t report_every = 1;    // iterations of the job between lines; without lockstep
  int64_t evaluate_every = 0;  // iterations of the job between orders; 0: none are made
  // As the strategy's entry says (strategy/registry.h): all end after the same iteration, or each after
  // the one in which it hears of it.
  bool ends_together = true;
  uint64_t samples_max = 0;     // after which the job stops; 0: it is not stopped by samples
  int64_t first_iteration = 0;  // that the job goes on after
  uint64_t first_samples = 0;   // that it had had until then, which are no worker's own
};

// What the ledger knows of a worker.
struct WorkerTally {
  struct Report {
    int64_t iteration = 0;
    double loss = 0;
    uint64_t batch = 0;
    double rate = 0;
    uint64_t bytes = 0;  // sent until then
  };
  bool gone = false;
  uint64_t gone_line = 0;  // the number of the line that says so; 0: none is to be written
  int64_t iteration = 0;
  uint64_t samples = 0;
  uint64_t bytes = 0;
  int64_t promise = -1;
  bool finished = false;
  Report last;
  std::vector<Report> reports;  // in lockstep: those that are in no line yet
  // Tickets that are answered later.
  bool meets = false, parts = false, listens = false;
  uint64_t ticket = 0;  // of a meeting or a farewell
  uint64_t listen_ticket = 0;
  uint64_t heard = 0;
  bool ok = true;
  int writer = -1;  // whom it takes for the writer, in a farewell
};

struct LedgerState {
  std::vector<WorkerTally> workers;  // by rank
  // Of the job before it went on, and of workers that were lost together with what the ledger knew of
  // each of them.
  uint64_t unowned_samples = 0, unowned_bytes = 0;
  uint64_t step = 0, news = 0;
  uint64_t groups = 0;  // that have got a key
  uint64_t last_line = 0;
  std::vector<LedgerLine> lines;  // that are not known to be written
  int64_t reported = 0;           // the iteration of the job of the last line
  uint64_t orders = 0;
  int64_t ordered = 0;  // the iteration of the job of the last order
  EvaluationOrder order;
  int failures = 0;           // of the order, without anybody lost
  bool order_failed = false;  // this attempt of it
  bool stopping = false, reached = false, written = false;
  bool ended = false;  // what the run ends with has been evaluated
  int64_t stop_at = -1;
};

class Ledger : public Service {
 public:
  // Group keys of the ledger have this in the first byte of their maker, and the incarnation in the
  // others: strategies and other services have small numbers.
  static constexpr uint64_t kKeyMaker = uint64_t{'t'} << 56;
  static constexpr size_t kLinesMax = 4096;  // that wait to be written; then the oldest are dropped
  static constexpr size_t kLinesAnswered = 16;  // in one answer
  static constexpr size_t kReportsMax = 1024;   // of a worker that wait for those of others
  // So often an evaluation may fail with nobody lost; then it is given up, and the next mark orders another.
  static constexpr int kFailuresMax = 3;

  explicit Ledger(LedgerOptions options);

  absl::string_view name() const override { return options_.name; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override;
  std::string State() const override;
  absl::Status Load(absl::string_view state) override;
  // From the last reports of all live workers, and from what they had heard of the job: of those that are
  // gone what had been heard counts, which may be an iteration or two short.
  bool CanRebuild() const override { return true; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override;

 private:
  bool Lives(int rank) const { return !state_.workers[static_cast<size_t>(rank)].gone; }
  std::vector<int> LiveRanks() const;
  int Writer() const;
  uint64_t TotalSamples() const;
  uint64_t TotalBytes() const;
  int64_t Position() const;  // in iterations of the job

  void Note(int from, const LedgerReport& report);
  void Depart(int rank, bool in_good_order);
  void AddLineOfGone(int rank, bool in_good_order);
  void Advance(const ServiceContext& context);
  void AddLine(LedgerLine line);
  void AddLinesInStep();
  void AddLineOfAll();
  void Order(const ServiceContext& context);
  // Whether there is still one to make another attempt of.
  bool OrderGoesOn(bool anyone_finished);
  GroupKey NextKey(const ServiceContext& context);
  Standing StandingFor(const ServiceContext& context, int rank) const;
  // Answers those who wait, if what they wait for has come.
  void Settle(const ServiceContext& context, ServiceStep& step);

  const LedgerOptions options_;
  LedgerState state_;
  int64_t now_ns_ = 0;  // of the step
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_LEDGER_LEDGER_H_
