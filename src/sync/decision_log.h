// Writes what a worker's strategy decides and what becomes of it to a file, one JSON object a line, so
// that anybody can check it from outside. docs/observe.md describes the lines.
//
// Several workers of a host may write to the same file: every line is appended by one system call.
#ifndef SYNCOPATE_SYNC_DECISION_LOG_H_
#define SYNCOPATE_SYNC_DECISION_LOG_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "strategy/witness.h"

namespace syncopate::sync {

// Thread-safe.
class DecisionLog : public strategy::Witness {
 public:
  // Appends to the file, which is made if there is none; `anew` drops what is in it.
  static absl::StatusOr<std::unique_ptr<DecisionLog>> Open(const std::string& path, int rank,
                                                           bool anew);
  DecisionLog(const DecisionLog&) = delete;

  // Another worker's, in the same file.
  std::unique_ptr<DecisionLog> OfRank(int rank) const;

  void Began(const Job& job) override;
  void Decided(const strategy::Decision& decision) override;
  void Transferred(const Transfer& transfer) override;
  void Applied(const Update& update) override;

  // The first error of a write. Nothing is written after it.
  absl::Status status() const;

 private:
  DecisionLog(std::string path, int rank, std::shared_ptr<const UniqueFd> file)
      : path_(std::move(path)), rank_(rank), file_(std::move(file)) {}
  // `object` is JSON; the line has its fields after the kind and the rank.
  void Write(absl::string_view kind, absl::string_view object);

  const std::string path_;
  const int rank_;
  const std::shared_ptr<const UniqueFd> file_;
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_DECISION_LOG_H_
