// What the workers of a training job tell its ledger, and what it tells them (ledger.h). As JSON, a
// few hundred bytes each: a worker says something once an iteration at most.
#ifndef SYNCOPATE_TRAIN_LEDGER_LEDGER_MESSAGE_H_
#define SYNCOPATE_TRAIN_LEDGER_LEDGER_MESSAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "syncopate/group_key.h"

namespace syncopate::train {

// How an evaluation ended that was made beside training.
struct EvaluationNote {
  uint64_t number = 0;     // of the order that it answers; 0: there was none
  int64_t iteration = -1;  // that it is of; -1: this is no evaluation
  double seconds = 0;      // of the run, when its copy was taken
  double loss = 0;
  double accuracy = 0;
  bool reached = false;  // the target, if there is one
  bool last = false;  // of what the run ends with: there is one line of it, whoever makes it again

  friend bool operator==(const EvaluationNote&, const EvaluationNote&) = default;
};

// What a worker has heard of the job: a ledger that is made anew goes on from that.
struct HeardOfJob {
  uint64_t total_samples = 0;
  uint64_t total_bytes = 0;
  bool stopping = false;
  int64_t stop_at = -1;
  bool reached = false;
  bool written = false;
  uint64_t orders = 0;
  std::vector<int> gone = {};

  friend bool operator==(const HeardOfJob&, const HeardOfJob&) = default;
};

struct LedgerReport {
  enum class Kind : uint8_t {
    kProgress,  // how far this worker is; answered at once
    kListen,    // answered when there is news that it has not heard
    kMeet,      // answered when all live workers meet
    kFarewell,  // answered when the run is written, or when its writer is another one
    kWritten,   // by the writer: the run is written
  };
  Kind kind = Kind::kProgress;
  int64_t iteration = 0;    // that this worker has done
  uint64_t samples = 0;     // that it has had since the job began or went on
  uint64_t bytes_sent = 0;  // by it in all
  // Of its last iteration. Without samples nothing is reported for a line.
  uint64_t batch = 0;
  double loss = 0;
  double rate = 0;
  // It begins no iteration after so many before it knows after which one all end; -1: no promise.
  int64_t promise = -1;
  bool finished = false;   // it begins no iteration any more
  bool ok = true;          // kMeet: how that went which it did before
  std::string event = {};  // a line for the metrics; empty: none
  EvaluationNote evaluation = {};
  // By the writer: it got no model for this attempt of an order, though it knows of nobody who is lost.
  uint64_t failed_order = 0;  // 0: none has failed
  uint64_t failed_attempt = 0;
  uint64_t written = 0;  // by the writer: lines up to this number are in its file
  uint64_t heard = 0;    // kListen: news up to this number are known
  int writer = -1;       // kFarewell: whom it takes for the writer
  HeardOfJob job = {};   // for Ledger::Rebuild() alone

  friend bool operator==(const LedgerReport&, const LedgerReport&) = default;
};

// An evaluation that is wanted.
struct EvaluationOrder {
  uint64_t number = 0;   // from 1; 0: none is wanted
  uint64_t attempt = 0;  // a new one each time that it fails, or a member is lost before the end
  int64_t iteration = 0;
  GroupKey key = {};              // of a group of all members
  std::vector<int> members = {};  // those who live

  friend bool operator==(const EvaluationOrder&, const EvaluationOrder&) = default;
};

// A line of the run's metrics, as far as the workers' reports tell.
struct LedgerLine {
  enum class Kind : uint8_t { kTrain, kEvaluate, kEvent };
  uint64_t number = 0;  // from 1
  Kind kind = Kind::kTrain;
  int64_t iteration = 0;
  int64_t at_ns = 0;   // when the ledger made it, by the clock of the job's services
  double seconds = 0;  // 0: when it is written
  double loss = 0;
  double accuracy = 0;    // kEvaluate
  double rate = 0;        // kTrain
  uint64_t bytes = 0;     // kTrain: sent by all workers so far
  std::string text = {};  // kEvent

  friend bool operator==(const LedgerLine&, const LedgerLine&) = default;
};

// How the job stands.
struct Standing {
  // Later ones have larger numbers, compared in this order.
  uint64_t incarnation = 0;
  uint64_t step = 0;
  uint64_t news = 0;  // grows when all workers should hear something: an order, the end, its place

  int writer = -1;             // the rank that writes the run's folder
  uint64_t total_samples = 0;  // that all workers have had, those that are gone included
  uint64_t total_bytes = 0;    // that they have sent
  bool stopping = false;
  int64_t stop_at = -1;  // all workers end after this iteration of theirs; -1: not known
  bool reached = false;  // an evaluation reached the target
  bool written = false;  // the run is written
  EvaluationOrder order = {};
  uint64_t orders = 0;         // how many there have been
  std::vector<int> gone = {};  // ranks of which the metrics say that they are lost or have left
  std::vector<LedgerLine> lines = {};  // for the writer: those to write next

  // Of kMeet.
  std::vector<int> members = {};  // who met: all that live
  GroupKey key = {};              // of a group of them
  int failed = -1;                // the lowest rank whose `ok` was false; -1: none

  friend bool operator==(const Standing&, const Standing&) = default;
};

// What a worker that has heard this knows of the job.
HeardOfJob HeardFrom(const Standing& standing);

std::string Encode(const LedgerReport& report);
std::string Encode(const Standing& standing);
// InvalidArgument if it cannot be read.
absl::StatusOr<LedgerReport> DecodeLedgerReport(absl::string_view text);
absl::StatusOr<Standing> DecodeStanding(absl::string_view text);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_LEDGER_LEDGER_MESSAGE_H_
