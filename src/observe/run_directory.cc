#include "observe/run_directory.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

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

bool IsRunFile(absl::string_view name) {
  for (const absl::string_view known : {kConfig, kMetrics, kPrometheus, kSummary, kTimeline}) {
    if (name == known) return true;
  }
  return absl::ConsumePrefix(&name, "timeline-") && absl::ConsumeSuffix(&name, ".json") &&
         !name.empty() && name[0] >= '0' && name[0] <= '9';
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
  return absl::StrCat("runs/", name_or_path);
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

absl::StatusOr<RunDirectory> RunDirectory::Create(const std::string& path, ExistingRun existing) {
  if (path.empty()) return absl::InvalidArgumentError("the run directory has no name");
  SYNCOPATE_RETURN_IF_ERROR(MakeFolder(path));
  const std::vector<std::string> files = RunFiles(path);
  if (!files.empty() && existing == ExistingRun::kRefuse) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds another run (", files[0],
                     "); choose another name, or --overwrite to delete that run"));
  }
  RunDirectory run(path);
  if (existing == ExistingRun::kReplace) {
    for (const std::string& name : files) std::remove(run.File(name).c_str());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(run.metrics_, AppendFile::Open(run.File(kMetrics), /*empty=*/false));
  return run;
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
