// Memory for values on their way that have no place in the packed layout: of the arena, so that
// workers of one host read it in place, or, where too little of that is left, of the process's own.
#ifndef SYNCOPATE_SYNC_STAGING_MEMORY_H_
#define SYNCOPATE_SYNC_STAGING_MEMORY_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "syncopate/syncopate.h"
#include "worker/memory_pieces.h"

namespace syncopate::sync {

class StagingMemory {
 public:
  // `worker` must outlive it.
  StagingMemory(Worker& worker, size_t bytes) {
    if (absl::StatusOr<Buffer> buffer = worker.Allocate(bytes); buffer.ok()) {
      shared_ = *std::move(buffer);
    } else {
      own_ = std::make_unique_for_overwrite<Line[]>(bytes / sizeof(Line) + 1);
    }
  }

  // Does a piece of what takes long in making memory of so many bytes; true: that was the last one.
  static bool Prepare(Worker& worker, size_t bytes) { return worker::TakePiece(worker, bytes); }

  std::byte* data() const { return shared_ ? shared_->as<std::byte>() : own_[0].bytes; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::optional<Buffer> shared_;
  std::unique_ptr<Line[]> own_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_STAGING_MEMORY_H_
