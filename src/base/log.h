// The log: one line per event on standard error, `SYNCOPATE_DEBUG=WARN|INFO|TRACE` chooses how much
// (default WARN). An error that is returned is not logged as well: the caller says what it means.
#ifndef SYNCOPATE_BASE_LOG_H_
#define SYNCOPATE_BASE_LOG_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace syncopate {

enum class LogLevel { kTrace, kInfo, kWarn, kOff };

// `name` as in SYNCOPATE_DEBUG; empty means WARN. `who` (say "rank 3") stands in every line.
absl::Status SetUpLog(absl::string_view name, absl::string_view who);

bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, absl::string_view line);

template <typename... Args>
void Log(LogLevel level, const Args&... args) {
  if (LogEnabled(level)) LogLine(level, absl::StrCat(args...));
}

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_LOG_H_
