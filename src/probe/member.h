// One worker of a probe: takes part in one experiment after another, as rank 0 says.
//
// Experiments overlap: the next one begins while what is left of the flows of the last ones drains,
// up to kUnderWayMax at a time.
#ifndef SYNCOPATE_PROBE_MEMBER_H_
#define SYNCOPATE_PROBE_MEMBER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "probe/experiment.h"
#include "probe/measure_protocol.h"
#include "transport/transport.h"

namespace syncopate::probe {

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
  // What was to be done. Only once done() and OK.
  const Instruction& instruction() const;
  // At rank 0, what each worker answered, by rank. Only once done() and OK.
  const std::vector<std::string>& answers() const;
  // When something must be done even if nothing comes.
  int64_t NextWakeNs() const;

  // Sleeps until something may have moved, at the latest until then.
  void Park(int64_t until_ns = INT64_MAX);

 private:
  Member(transport::Transport& transport, const Clock& clock, const MemberOptions& options);

  ExperimentContext context_;
  std::unique_ptr<transport::GroupPort> port_;
  uint64_t sequence_ = 0;
  std::unique_ptr<Experiment> experiment_;
  std::vector<std::unique_ptr<Experiment>> draining_;  // earlier ones
  absl::Status status_;                                // the first error of any of them
};

// At ranks other than 0: does what rank 0 says until it says that the probe is over.
absl::Status ServeProbe(Member& member);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_MEMBER_H_
