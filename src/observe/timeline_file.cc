#include "observe/timeline_file.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::observe {

std::vector<std::string> TimelineFile::PathsOf(const std::string& stem) {
  return {absl::StrCat(stem, ".json"), absl::StrCat(stem, "-end1.json"),
          absl::StrCat(stem, "-end2.json")};
}

absl::StatusOr<TimelineFile> TimelineFile::Create(const std::string& stem,
                                                  const WorkerTrace& worker, int64_t origin_ns,
                                                  uint64_t bytes_max) {
  for (const std::string& path : PathsOf(stem)) std::remove(path.c_str());
  TimelineFile file(stem, worker, origin_ns, bytes_max);
  SYNCOPATE_RETURN_IF_ERROR(file.Begin(0));
  return file;
}

absl::Status TimelineFile::Begin(int part) {
  part_ = part;
  SYNCOPATE_ASSIGN_OR_RETURN(
      file_, AppendFile::Open(PathsOf(stem_)[static_cast<size_t>(part)], /*empty=*/true));
  return file_.Append(absl::StrCat(kChromeTraceBegin, writer_.Head()));
}

absl::Status TimelineFile::Append(const std::vector<Span>& spans) {
  if (!file_.is_open()) return absl::FailedPreconditionError("the timeline was closed");
  if (spans.empty()) return absl::OkStatus();
  const std::string events = writer_.Events(spans);
  const uint64_t share = part_ == 0 ? bytes_max_ / 2 : bytes_max_ / 4;
  if (file_.size() + events.size() > share) {
    const int next = part_ == 1 ? 2 : 1;
    SYNCOPATE_RETURN_IF_ERROR(Close());
    SYNCOPATE_RETURN_IF_ERROR(Begin(next));
  }
  return file_.Append(events);
}

absl::Status TimelineFile::Close() {
  if (!file_.is_open()) return absl::OkStatus();
  // The last comma and end of line go.
  const absl::Status status = file_.ReplaceEnd(2, kChromeTraceEnd);
  file_ = AppendFile();
  return status;
}

}  // namespace syncopate::observe
