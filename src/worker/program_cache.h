// Finds the compiled program that runs a call: it is planned at the first call and remembered.
// Equal keys give equal programs on all workers, which compare digests before they run one.
#ifndef SYNCOPATE_WORKER_PROGRAM_CACHE_H_
#define SYNCOPATE_WORKER_PROGRAM_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/compiled_program.h"
#include "plan/collective/select.h"
#include "plan/program_key.h"
#include "worker/network.h"

namespace syncopate::worker {

struct PlannedProgram {
  std::shared_ptr<const engine::CompiledProgram> program;
  uint64_t chunk_bytes = 0;  // size of the sub-chunks; 0: the planner does not cut data by size
};

// Thread-safe.
class ProgramCache {
 public:
  // `cores` is the number of the host's cores; a job on several hosts also has a network. Both are
  // the same on all workers, since the choice of an algorithm depends on them.
  explicit ProgramCache(int cores, std::optional<Network> network = std::nullopt)
      : cores_(cores), network_(std::move(network)) {}

  // OK if keys may name this version of the network.
  absl::Status CheckVersion(uint64_t version);
  absl::StatusOr<PlannedProgram> Get(const plan::ProgramKey& key);
  // From now on keys may name this version of the network. Of the versions before it only the first
  // is kept.
  void Publish(uint64_t version, const Topology& topology);

 private:
  // Jobs make few different calls. One that makes many must not fill the memory.
  static constexpr size_t kProgramsMax = 4096;

  absl::StatusOr<PlannedProgram> Plan(const plan::ProgramKey& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Program> PlanForHost(const plan::ProgramKey& key) const;
  // The choice for calls of about this size: gradients come in many sizes, and choosing takes long.
  absl::StatusOr<std::shared_ptr<const plan::Selection>> ChoiceFor(
      plan::ProgramKey key, const Topology& topology, const std::vector<int>& placement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The devices of the request's workers; nothing if all of them are on one host.
  std::optional<std::vector<int>> PlacementOf(const plan::ProgramKey& key) const;

  const int cores_;
  const std::optional<Network> network_;
  Mutex mutex_;
  std::optional<std::pair<uint64_t, Topology>> published_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<plan::ProgramKey, PlannedProgram, plan::ProgramKeyHash> programs_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<plan::ProgramKey, std::shared_ptr<const plan::Selection>,
                      plan::ProgramKeyHash>
      choices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_PROGRAM_CACHE_H_
