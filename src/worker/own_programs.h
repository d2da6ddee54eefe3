// Takes programs from outside, as text: they are read, checked against what they are for, proved,
// compiled, and remembered by their text.
#ifndef SYNCOPATE_WORKER_OWN_PROGRAMS_H_
#define SYNCOPATE_WORKER_OWN_PROGRAMS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/compiled_program.h"
#include "model/program.h"
#include "plan/collective/request.h"
#include "worker/program_cache.h"

namespace syncopate::worker {

// The program of that text, if it is well-formed, does what the request asks for and is proved to
// do it. Else InvalidArgument with the first fault.
absl::StatusOr<Program> ReadOwnProgram(const std::string& text,
                                       const plan::CollectiveRequest& request);

// Thread-safe.
class OwnPrograms {
 public:
  // The program of `text` for the worker and the request of the key, compiled. The first time it is read and
  // proved, without a lock, which takes long for a long text.
  absl::StatusOr<PlannedProgram> Get(const plan::ProgramKey& key, const std::string& text);
  // The same, if that has been done before; else nothing.
  std::optional<absl::StatusOr<PlannedProgram>> Find(const plan::ProgramKey& key,
                                                     const std::string& text);

 private:
  // Programs that came before are dropped when there are more, or when their texts are longer.
  static constexpr size_t kProgramsMax = 256;
  static constexpr size_t kTextBytesMax = size_t{64} << 20;

  Mutex mutex_;
  // By text and by the worker that runs it.
  absl::flat_hash_map<std::pair<std::string, int>, std::shared_ptr<const engine::CompiledProgram>>
      programs_ ABSL_GUARDED_BY(mutex_);
  size_t text_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_OWN_PROGRAMS_H_
