#include "observe/run_directory.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace syncopate::observe {
namespace {

constexpr absl::string_view kConfig = "config.json";
constexpr absl::string_view kMetrics = "metrics.jsonl";
constexpr absl::string_view kPrometheus = "metrics.prom";
constexpr absl::string_view kSummary = "summary.json";
constexpr absl::string_view kTimeline = "timeline.json";
constexpr uint64_t kSummaryBytesMax = uint64_t{1} << 20;
constexpr uint64_t kMetricsBytesMax = uint64_t{256} << 20;
constexpr int kPartsMax = 1 << 20;

bool BeginsWithDigit(absl::string_view text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

// "metrics.jsonl", "metrics-3.jsonl".
bool IsMetricsFile(absl::string_view name) {
  if (name == kMetrics) return true;
  return absl::ConsumePrefix(&name, "metrics-") && absl::ConsumeSuffix(&name, ".jsonl") &&
         BeginsWithDigit(name);
}

// The files that a run makes. Only these are ever deleted or renamed: whatever else lies in the
// folder is the user's.
bool IsRunFile(absl::string_view name) {
  TakePart(name);
  for (const absl::string_view known :
       {kConfig, kMetrics, kPrometheus, kSummary, kTimeline, absl::string_view("checkpoint.json"),
        absl::string_view("model.pt"), absl::string_view("model.json")}) {
    if (name == known) return true;
  }
  for (const absl::string_view numbered : {"checkpoint-", "snapshot-"}) {
    if (absl::ConsumePrefix(&name, numbered)) return BeginsWithDigit(name);
  }
  if (IsMetricsFile(name)) return true;
  return absl::ConsumePrefix(&name, "timeline-") && absl::ConsumeSuffix(&name, ".json") &&
         BeginsWithDigit(name);
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_directory(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot make the run directory ", path, ": ", error.message()));
}

}  // namespace

std::string RunPath(absl::string_view name_or_path) {
  if (absl::StrContains(name_or_path, '/') || name_or_path == "." || name_or_path == "..") {
    return std::string(name_or_path);
  }
  return absl::StrCat(kRunsFolder, "/", name_or_path);
}

std::vector<std::string> RunNames(const std::string& runs_path) {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator each(runs_path, error), end; !error && each != end;
       each.increment(error)) {
    const std::vector<std::string> files = RunFiles(each->path().string());
    if (files.empty()) continue;
    std::error_code gone;  // it may be deleted meanwhile
    std::filesystem::file_time_type last = std::filesystem::file_time_type::min();
    for (const std::string& file : files) {
      last = std::max(last, std::filesystem::last_write_time(each->path() / file, gone));
    }
    found.emplace_back(last, each->path().filename().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (auto& [time, name] : found) names.push_back(std::move(name));
  return names;
}

std::string TimelineStem(const std::string& run_path, int rank) {
  return absl::StrCat(run_path, "/timeline-", rank);
}

std::vector<std::string> RunFiles(const std::string& run_path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator each(run_path, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (IsRunFile(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CheckHoldsNoRun(const std::string& run_path) {
  const std::vector<std::string> files = RunFiles(run_path);
  if (files.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(run_path, " holds another run (", files[0],
                   "); choose another name, or --overwrite to delete that run"));
}

int TakePart(absl::string_view& name) {
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "part")) return 0;
  const size_t dash = rest.find('-');
  if (dash == absl::string_view::npos) return 0;
  const absl::StatusOr<int64_t> part = ParseInt(rest.substr(0, dash), 1, kPartsMax);
  if (!part.ok()) return 0;
  name = rest.substr(dash + 1);
  return static_cast<int>(*part);
}

absl::StatusOr<RunDirectory> RunDirectory::Create(const std::string& path, ExistingRun existing) {
  if (path.empty()) return absl::InvalidArgumentError("the run directory has no name");
  SYNCOPATE_RETURN_IF_ERROR(MakeFolder(path));
  if (existing == ExistingRun::kRefuse) SYNCOPATE_RETURN_IF_ERROR(CheckHoldsNoRun(path));
  const std::vector<std::string> files = RunFiles(path);
  RunDirectory run(path);
  if (existing == ExistingRun::kReplace) {
    for (const std::string& name : files) {
      std::error_code ignored;
      std::filesystem::remove_all(run.File(name), ignored);
    }
  }
  if (existing == ExistingRun::kContinue) SYNCOPATE_RETURN_IF_ERROR(run.SetEarlierAside(files));
  SYNCOPATE_ASSIGN_OR_RETURN(run.metrics_, AppendFile::Open(run.File(kMetrics), /*empty=*/false));
  return run;
}

absl::StatusOr<RunDirectory> RunDirectory::TakeOver(const std::string& path, int rank) {
  SYNCOPATE_RETURN_IF_ERROR(MakeFolder(path));
  RunDirectory run(path);
  SYNCOPATE_ASSIGN_OR_RETURN(
      run.metrics_,
      AppendFile::Open(run.File(absl::StrCat("metrics-", rank, ".jsonl")), /*empty=*/false));
  return run;
}

// The timelines and the summary so far become those of an earlier part; of the metrics, to which
// the next part is appended, a line that was cut off is ended, and the lines of later writers are
// moved there: appended, then removed. Where that was interrupted in between they are there already, and
// nothing came after them.
absl::Status RunDirectory::SetEarlierAside(const std::vector<std::string>& files) {
  const absl::StatusOr<std::string> ended = ReadFile(File(kSummary), kSummaryBytesMax);
  if (ended.ok()) earlier_.seconds = ParseSummary(*ended).value_or(Summary()).seconds;
  int part = 1;
  for (absl::string_view name : files) part = std::max(part, TakePart(name) + 1);
  for (const std::string& name : files) {
    if (name != kSummary && !absl::StartsWith(name, "timeline")) continue;
    std::error_code error;
    std::filesystem::rename(File(name), File(absl::StrCat("part", part, "-", name)), error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat("cannot rename ", File(name), ": ", error.message()));
    }
  }
  std::vector<std::string> names = files;
  std::erase_if(names, [](absl::string_view name) { return !IsMetricsFile(name); });
  std::stable_partition(names.begin(), names.end(),
                        [](absl::string_view name) { return name == kMetrics; });
  std::string own, later;
  size_t on_disk = 0;  // of its own
  for (const std::string& name : names) {
    std::string& all = name == kMetrics ? own : later;
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, ReadFile(File(name), kMetricsBytesMax));
    if (name == kMetrics) on_disk = text.size();
    absl::StrAppend(&all, text, text.empty() || text.back() == '\n' ? "" : "\n");
  }
  if (!absl::EndsWith(own, later)) own += later;
  const std::vector<Metric> metrics = ReadMetrics(own).metrics;
  for (const Metric& metric : metrics) {
    earlier_.seconds = std::max(earlier_.seconds, metric.seconds);
  }
  earlier_.resumed_at = ResumedAt(metrics);
  if (own.size() > on_disk) {
    SYNCOPATE_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(File(kMetrics), /*empty=*/false));
    SYNCOPATE_RETURN_IF_ERROR(file.Append(absl::string_view(own).substr(on_disk)));
  }
  for (const std::string& name : names) {
    if (name != kMetrics) std::remove(File(name).c_str());
  }
  return absl::OkStatus();
}

absl::StatusOr<TimelineFile> RunDirectory::CreateTimeline(const std::string& path,
                                                          const WorkerTrace& worker,
                                                          int64_t origin_ns, uint64_t bytes_max) {
  SYNCOPATE_RETURN_IF_ERROR(MakeFolder(path));
  return TimelineFile::Create(TimelineStem(path, worker.rank), worker, origin_ns, bytes_max);
}

std::string RunDirectory::File(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::Status RunDirectory::WriteConfig(absl::string_view json) {
  if (!nlohmann::json::accept(json.begin(), json.end())) {
    return absl::InvalidArgumentError("the configuration of the run is not JSON");
  }
  return WriteFile(File(kConfig), absl::StrCat(absl::StripSuffix(json, "\n"), "\n"));
}

absl::Status RunDirectory::Append(const Metric& metric) {
  return metrics_.Append(absl::StrCat(ToJson(metric), "\n"));
}

absl::Status RunDirectory::WritePrometheus(const RunState& state) {
  return WriteFile(File(kPrometheus), ToPrometheus(state));
}

absl::Status RunDirectory::WriteSummary(const Summary& summary) {
  return WriteFile(File(kSummary), absl::StrCat(ToJson(summary), "\n"));
}

// The timelines that each worker wrote while it ran are not needed once the whole one is on disk.
absl::Status RunDirectory::WriteTimeline(const std::vector<WorkerTrace>& traces,
                                         uint64_t bytes_max) {
  for (const WorkerTrace& trace : traces) SYNCOPATE_RETURN_IF_ERROR(Validate(trace));
  SYNCOPATE_RETURN_IF_ERROR(WriteFile(File(kTimeline), ToChromeTrace(traces, bytes_max)));
  for (const WorkerTrace& trace : traces) {
    for (const std::string& each : TimelineFile::PathsOf(TimelineStem(path_, trace.rank))) {
      std::remove(each.c_str());
    }
  }
  return absl::OkStatus();
}

}  // namespace syncopate::observe
