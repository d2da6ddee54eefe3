// Measures a live network: the workers of a job run flows over their transport, rank 0 says which.
//
// Every experiment is one operation of a group of all workers (probe/experiment.h). Rank 0 sends an
// instruction to each worker, all do their part, and those that received flows send rank 0 what they
// saw. docs/probe.md says what a flow is and how its rate is counted.
#ifndef SYNCOPATE_PROBE_LIVE_ORACLE_H_
#define SYNCOPATE_PROBE_LIVE_ORACLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "probe/measure_protocol.h"
#include "probe/member.h"
#include "probe/oracle.h"

namespace syncopate::probe {

// The oracle at rank 0: asks all workers. End() (also by destruction) lets the others go.
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

#endif  // SYNCOPATE_PROBE_LIVE_ORACLE_H_
