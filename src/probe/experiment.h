// One experiment of the probe at one worker, from the first gate to the last.
//
// An experiment is an operation of a group of all workers, so it has a session of the transport. It
// passes through these phases: all enter the start gate; rank 0 sends the instruction; all do what
// it says; the others send rank 0 their answers; flows drain; all enter the finish gate. An error
// breaks the gates, so that every worker leaves the experiment.
#ifndef SYNCOPATE_PROBE_EXPERIMENT_H_
#define SYNCOPATE_PROBE_EXPERIMENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/processor_time.h"
#include "probe/experiment_flows.h"
#include "probe/measure_protocol.h"
#include "probe/outbox.h"
#include "probe/ping_end.h"
#include "transport/transport.h"

namespace syncopate::probe {

struct MemberOptions {
  std::string host;
  std::string machine;     // hosts of the same name are told apart by it
  uint64_t group_key = 0;  // the same on all workers, used by no other group
  // How long an experiment may take in addition to its length, and how long workers wait for the
  // next one. After that, the error names the workers that are missing.
  int64_t patience_ns = 30'000'000'000;
  // Tells the processor time of this worker's host. If it is null or fails, nothing is known of
  // stolen time, and none is reported.
  std::function<absl::StatusOr<ProcessorTime>()> processor_time = nullptr;
};

// What the experiments of one worker share.
struct ExperimentContext {
  transport::Transport& transport;
  const Clock& clock;
  const MemberOptions options;
  std::byte* memory = nullptr;  // kMemoryBytes of the transport
  // All know that the probe is over: a worker that leaves now is no loss.
  bool ending = false;
};

// Nothing in it waits: Poll() does what can be done now. Not thread-safe.
class Experiment {
 public:
  // `context` must outlive the experiment. Rank 0 gives the instruction, the others pass null and
  // receive it.
  Experiment(ExperimentContext& context, std::unique_ptr<transport::Session> session,
             uint64_t sequence, const Instruction* instruction);

  // True if anything moved.
  bool Poll();
  // All answers are there, or this worker's is on its way; flows may still be draining.
  bool answered() const { return phase_ == Phase::kFinishing || done(); }
  bool done() const { return phase_ == Phase::kDone; }
  const absl::Status& status() const { return status_; }
  const Instruction& instruction() const { return instruction_; }
  // At rank 0, what each worker answered, by rank.
  const std::vector<std::string>& answers() const { return answers_; }
  // When something must be done even if nothing comes.
  int64_t NextWakeNs() const;

 private:
  enum class Phase { kStarting, kInstruction, kRunning, kAnswer, kFinishing, kBreaking, kDone };

  int rank() const { return context_.transport.rank(); }
  int size() const { return context_.transport.size(); }

  // Enters the gate and goes on to `next` once all have entered it.
  bool PollGate(transport::Gate gate, Phase next);
  bool PollInstruction(int64_t now_ns);
  void SendInstruction();
  // True once all of it has come.
  absl::StatusOr<bool> ReceiveInstruction();
  bool PollRunning(int64_t now_ns);
  void MakeAnswer();
  bool PollAnswer();
  // Breaks the gates; the experiment is done when all know, or after a while.
  bool Fail(absl::Status status);
  bool PollBreaking(int64_t now_ns);
  std::optional<ProcessorTime> ProcessorTimeNow() const;
  FlowsAnswer WhatWasSeen() const;
  absl::Status LossStatus() const;
  absl::Status BrokenStatus() const;
  // The deadline has passed: says for whom this worker waited.
  absl::Status Overdue();

  ExperimentContext& context_;
  std::unique_ptr<transport::Session> session_;
  const uint64_t base_;  // where this experiment's memory begins
  Phase phase_ = Phase::kStarting;
  bool entered_ = false;
  bool has_head_ = false;
  absl::Status status_;
  Instruction instruction_;
  std::vector<std::string> answers_;
  Outbox outbox_;
  int64_t end_ns_ = 0, deadline_ns_ = 0;
  ExperimentFlows flows_;
  std::optional<ProcessorTime> processor_time_;  // when the flows began
  PingEnd pings_;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_EXPERIMENT_H_
