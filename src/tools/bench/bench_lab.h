// The lab of one benchmark: up before the contestants start, gone after them however the command
// ends.
#ifndef SYNCOPATE_TOOLS_BENCH_BENCH_LAB_H_
#define SYNCOPATE_TOOLS_BENCH_BENCH_LAB_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "lab/lab.h"
#include "lab/spec.h"
#include "model/topology.h"

namespace syncopate::bench {

// A child process waits for the end of this one and then takes the lab down, so that not even
// SIGKILL leaves it behind. Make it while there is only one thread.
class BenchLab {
 public:
  // `name` must be unique on this machine.
  static absl::StatusOr<std::unique_ptr<BenchLab>> Up(const lab::Spec& spec,
                                                      const std::string& name, const Clock& clock);
  ~BenchLab();  // takes it down and says so if that fails
  BenchLab(const BenchLab&) = delete;
  BenchLab& operator=(const BenchLab&) = delete;

  const lab::Lab& lab() const { return *lab_; }

 private:
  BenchLab(std::string name, const Clock& clock) : name_(std::move(name)), clock_(clock) {}
  absl::Status StartGuard();

  const std::string name_;
  const Clock& clock_;
  UniqueFd lifeline_;  // the guard's other end closes with the last process that has this one
  pid_t guard_ = -1;
  std::unique_ptr<lab::Lab> lab_;
};

// The network that the file declares as ours will find it: each background flow leaves half of a
// link that it crosses, as TCP shares it with one other flow, or what its own rate leaves; and each
// message costs time of the `cores` that all hosts share.
Topology LoadedTopology(const lab::Spec& spec, int cores);

}  // namespace syncopate::bench

#endif  // SYNCOPATE_TOOLS_BENCH_BENCH_LAB_H_
