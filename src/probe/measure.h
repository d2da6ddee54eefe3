// Measures a live network: the workers of a job run flows over their transport, rank 0 says which.
//
// Every experiment is one operation of a group of all workers: a session. Rank 0 sends an
// instruction to each worker, all do their part, and those who received flows send rank 0 what they
// saw. docs/probe.md says what a flow is and how its rate is counted.
#ifndef SYNCOPATE_PROBE_MEASURE_H_
#define SYNCOPATE_PROBE_MEASURE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/processor_time.h"
#include "probe/measure_protocol.h"
#include "probe/oracle.h"
#include "transport/transport.h"

namespace syncopate::probe {

struct MemberOptions {
  std::string host;
  std::string machine;     // hosts of the same name are told apart by it
  uint64_t group_key = 0;  // the same on all workers, used by no other group
  // How long an experiment may take in addition to its length, and how long workers wait for the
  // next one. Then who is missing is named.
  int64_t patience_ns = 30'000'000'000;
  // Tells the processor time of this worker's host. Null, or if it fails: nothing is known of
  // stolen time, and none is reported.
  std::function<absl::StatusOr<ProcessorTime>()> processor_time = nullptr;
};

// One worker's part in the experiments. Nothing in it waits: Poll() does what can be done now. Not
// thread-safe. The transport and the clock must outlive it; nobody else drives the transport
// meanwhile.
class Member {
 public:
  static absl::StatusOr<std::unique_ptr<Member>> Make(transport::Transport& transport,
                                                      const Clock& clock,
                                                      const MemberOptions& options);
  ~Member();
  Member(const Member&) = delete;

  int rank() const;
  int size() const;
  // Begins the next experiment; rank 0 gives the instruction, the others wait for it.
  absl::Status Begin(const Instruction* instruction);
  // True if anything moved.
  bool Poll();
  // All answers are there (rank 0), or this worker's is on its way, or the probe has failed. The
  // next experiment may begin: what is left of the last ones' flows drains meanwhile.
  bool done() const;
  // Nothing is left of any experiment.
  bool drained() const;
  const absl::Status& status() const;
  // What was to be done. Once done() and OK.
  const Instruction& instruction() const;
  // Rank 0, likewise: what each worker answered, by rank.
  const std::vector<std::string>& answers() const;
  // When something must be done even if nothing comes.
  int64_t NextWakeNs() const;

  // Sleeps until something may have moved, at the latest until then.
  void Park(int64_t until_ns = INT64_MAX);

 private:
  class Experiment;
  Member(transport::Transport& transport, const Clock& clock, const MemberOptions& options);

  transport::Transport& transport_;
  const Clock& clock_;
  const MemberOptions options_;
  std::unique_ptr<transport::GroupPort> port_;
  std::byte* memory_ = nullptr;  // of the transport
  uint64_t sequence_ = 0;
  std::unique_ptr<Experiment> experiment_;
  std::vector<std::unique_ptr<Experiment>> draining_;  // earlier ones
  absl::Status status_;                                // the first error of any of them
  bool ending_ = false;  // all know that the probe is over: nobody needs anybody any more
};

// Ranks other than 0: does what rank 0 says until it says that the probe is over.
absl::Status ServeProbe(Member& member);

// Rank 0: asks all workers. End() (also by destruction) lets the others go.
class LiveOracle final : public Oracle {
 public:
  // Waits for something to move; tests that drive all workers from one thread do so here.
  using Idle = std::function<void()>;

  // Asks all workers for the names of their hosts. `member` must outlive the oracle.
  static absl::StatusOr<std::unique_ptr<LiveOracle>> Make(Member& member, const Clock& clock,
                                                          Idle idle = nullptr);
  ~LiveOracle() override;
  absl::Status End();

  int size() const override { return member_.size(); }
  std::string HostOf(int worker) const override { return hosts_[static_cast<size_t>(worker)]; }
  absl::StatusOr<double> Latency(int from, int to) override;
  absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow> flows, double seconds) override;
  double Stolen(int worker) const override { return stolen_[static_cast<size_t>(worker)]; }
  void Wait(double seconds) override;
  double Elapsed() const override;

 private:
  LiveOracle(Member& member, const Clock& clock, Idle idle);
  absl::Status Run(const Instruction& instruction);
  // Sleeps no longer than until `until_ns` at a time.
  void WaitUntil(const std::function<bool()>& condition, int64_t until_ns = INT64_MAX);
  void NameHosts(const std::vector<std::string>& answers);
  // Fills in how the flows send. InvalidArgument if there are too many.
  absl::StatusOr<Instruction> Plan(absl::Span<const Flow> flows, double seconds) const;

  Member& member_;
  const Clock& clock_;
  const Idle idle_;
  const int64_t began_ns_;
  std::vector<std::string> hosts_;
  std::vector<double> stolen_;    // from each worker's host in the last experiment
  std::map<Flow, double> rates_;  // last seen, bytes/s: from it follows the size of pieces
  bool ended_ = false;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_MEASURE_H_
