#include "sync/decision_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "strategy/options_json.h"
#include "strategy/record.h"

namespace syncopate::sync {
namespace {

// Digits enough for a double to come back as it was.
std::string Number(double value) { return absl::StrFormat("%.17g", value); }

}  // namespace

absl::StatusOr<std::unique_ptr<DecisionLog>> DecisionLog::Open(const std::string& path, int rank,
                                                               bool anew) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (anew ? O_TRUNC : 0), 0666);
  if (file < 0) return absl::InvalidArgumentError(absl::StrCat(path, ": ", strerror(errno)));
  return std::unique_ptr<DecisionLog>(
      new DecisionLog(path, rank, std::make_shared<const UniqueFd>(file)));
}

std::unique_ptr<DecisionLog> DecisionLog::OfRank(int rank) const {
  return std::unique_ptr<DecisionLog>(new DecisionLog(path_, rank, file_));
}

void DecisionLog::Began(const Job& job) {
  const std::string state =
      job.state.empty() ? ""
                        : absl::StrCat(",\"state\":\"", absl::BytesToHexString(job.state), "\"");
  Write("job", absl::StrCat("{\"strategy\":\"", job.name, "\",\"first_iteration\":",
                            job.first_iteration, state, ",\"options\":", ToJson(job.values), "}"));
}

void DecisionLog::Decided(const strategy::Decision& decision) {
  Write("decision", ToJson(decision));
}

void DecisionLog::Transferred(const Transfer& transfer) {
  std::string line =
      absl::StrCat("{\"time\":", Number(transfer.end), ",\"begin\":", Number(transfer.begin),
                   ",\"iteration\":", transfer.iteration, ",\"bytes\":", transfer.bytes,
                   ",\"start\":", ToJson(strategy::Command(transfer.start)));
  if (!transfer.status.ok()) {
    absl::StrAppend(&line, ",\"error\":", strategy::ToJson(transfer.status));
  }
  Write("transfer", absl::StrCat(line, "}"));
}

void DecisionLog::Applied(const Update& update) {
  std::string line = absl::StrCat(
      "{\"time\":", Number(update.end), ",\"begin\":", Number(update.begin),
      ",\"iteration\":", update.iteration, ",\"apply\":", ToJson(strategy::Command(update.apply)));
  if (update.apply.measure) {
    absl::StrAppend(&line, ",\"squared_distance\":", Number(update.squared_distance));
  }
  Write("update", absl::StrCat(line, "}"));
}

absl::Status DecisionLog::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void DecisionLog::Write(absl::string_view kind, absl::string_view object) {
  const std::string line =
      absl::StrCat("{\"kind\":\"", kind, "\",\"rank\":", rank_, ",", object.substr(1), "\n");
  MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  // Lines of other workers must not come between, so what a call leaves over is an error.
  const ssize_t written = write(file_->get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  status_ = absl::UnavailableError(
      absl::StrCat(path_, ": ", written < 0 ? strerror(errno) : "the disk is full"));
}

}  // namespace syncopate::sync
