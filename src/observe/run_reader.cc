#include "observe/run_reader.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "observe/chrome_trace.h"
#include "observe/run_directory.h"
#include "observe/trace_parts.h"

namespace syncopate::observe {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{256} << 20;
constexpr uint64_t kConfigBytesMax = uint64_t{1} << 20;

// The files of a timeline hold the beginning and the end of a long run: what lies between is as if
// a recorder had dropped it. How many spans that were is not known; one at least.
void MarkGap(WorkerTrace* trace) {
  std::vector<int> iterations;
  for (const Span& span : trace->spans) iterations.push_back(span.iteration);
  std::sort(iterations.begin(), iterations.end());
  for (size_t i = 1; i < iterations.size(); ++i) {
    if (iterations[i] <= iterations[i - 1] + 1) continue;
    const int first = iterations[i - 1] + 1, last = iterations[i] - 1;
    trace->dropped_first = trace->dropped == 0 ? first : std::min(trace->dropped_first, first);
    trace->dropped_last = std::max(trace->dropped_last, last);
    trace->dropped = std::max<uint64_t>(trace->dropped, 1);
  }
}

class RunReader {
 public:
  RunReader(const std::string& path, RunRecord* run) : path_(path), run_(run) {}

  void ReadConfig() {
    const std::optional<std::string> text = Read("config.json", kConfigBytesMax);
    if (!text) return;
    if (nlohmann::json::accept(*text)) {
      run_->config = *text;
    } else {
      Note("config.json", "is not JSON");
    }
  }

  // Of all workers that wrote some, one after the other; each counts seconds from the run's start.
  void ReadMetricsFiles(const std::vector<std::string>& files) {
    bool several = false;
    for (const std::string& name : files) {
      if (!absl::StartsWith(name, "metrics") || !absl::EndsWith(name, ".jsonl")) continue;
      const std::optional<std::string> text = Read(name, kFileBytesMax);
      if (!text) continue;
      MetricsContents contents = ReadMetrics(*text);
      several = several || !run_->metrics.empty();
      for (Metric& metric : contents.metrics) run_->metrics.push_back(std::move(metric));
      for (const std::string& note : contents.notes) Note(name, note);
    }
    if (several) {
      std::stable_sort(run_->metrics.begin(), run_->metrics.end(),
                       [](const Metric& a, const Metric& b) { return a.seconds < b.seconds; });
    }
    DropSuperseded(run_->metrics);
  }

  // The traces of each part of the run, the present one last.
  std::vector<std::vector<WorkerTrace>> ReadParts(const std::vector<std::string>& files) {
    constexpr int kPresent = INT_MAX;
    std::map<int, std::vector<std::string>> names;
    for (const std::string& name : files) {
      absl::string_view rest = name;
      const int part = TakePart(rest);
      if (absl::StartsWith(rest, "timeline")) names[part == 0 ? kPresent : part].push_back(name);
    }
    std::vector<std::vector<WorkerTrace>> parts;
    for (const auto& [part, of_part] : names) parts.push_back(ReadTimelines(of_part));
    return parts;
  }

  void ReadSummary() {
    const std::optional<std::string> text = Read("summary.json", kConfigBytesMax);
    if (!text) return;
    const absl::StatusOr<Summary> summary = ParseSummary(*text);
    if (!summary.ok()) return Note("summary.json", summary.status().message());
    run_->summary = *summary;
    run_->ended = true;
  }

 private:
  // Of one part: timeline.json, and of ranks that are not in it their own files.
  std::vector<WorkerTrace> ReadTimelines(const std::vector<std::string>& files) {
    std::vector<WorkerTrace> traces, own;
    for (const std::string& name : files) {
      const std::optional<std::string> text = Read(name, kFileBytesMax);
      if (!text) continue;
      ChromeTraceContents contents = ReadChromeTrace(*text);
      for (const std::string& note : contents.notes) Note(name, note);
      std::vector<WorkerTrace>& target = absl::EndsWith(name, "timeline.json") ? traces : own;
      for (WorkerTrace& trace : contents.traces) MergeTrace(std::move(trace), &target);
    }
    for (WorkerTrace& trace : own) {
      MarkGap(&trace);
      const auto same = [&](const WorkerTrace& other) { return other.rank == trace.rank; };
      if (std::none_of(traces.begin(), traces.end(), same)) traces.push_back(std::move(trace));
    }
    std::sort(traces.begin(), traces.end(),
              [](const WorkerTrace& a, const WorkerTrace& b) { return a.rank < b.rank; });
    return traces;
  }

  void Note(absl::string_view file, absl::string_view what) {
    run_->notes.push_back(absl::StrCat(file, ": ", what));
  }

  // Nothing if there is no such file, which is no fault, or it cannot be read, which is noted.
  std::optional<std::string> Read(const std::string& name, uint64_t bytes_max) {
    absl::StatusOr<std::string> text = ReadFile(absl::StrCat(path_, "/", name), bytes_max);
    if (text.ok()) return *std::move(text);
    if (!absl::IsNotFound(text.status())) run_->notes.emplace_back(text.status().message());
    return std::nullopt;
  }

  const std::string& path_;
  RunRecord* const run_;
};

// What a run that did not end would have said so far.
void SummarizeUnfinished(RunRecord* run) {
  Summary& summary = run->summary;
  summary.workers = static_cast<int>(run->traces.size());
  for (const Metric& metric : run->metrics) {
    summary.iterations = std::max(summary.iterations, metric.iteration);
    summary.seconds = std::max(summary.seconds, metric.seconds);
    if (const auto loss = metric.Value("loss")) summary.loss = loss;
    if (const auto accuracy = metric.Value("accuracy")) summary.accuracy = accuracy;
  }
  SetParts(run->metrics, &summary);
  SetCosts(run->breakdown, &summary);
  const nlohmann::json config = nlohmann::json::parse(run->config, nullptr, false);
  if (!config.is_object()) return;
  const auto text = [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_string() ? found->get<std::string>() : "";
  };
  summary.strategy = text("strategy");
  summary.schedule = text("schedule");
}

}  // namespace

std::vector<std::vector<WorkerTrace>> ReadEarlierParts(const std::string& path) {
  std::vector<std::string> files = RunFiles(path);
  std::erase_if(files, [](absl::string_view name) { return TakePart(name) == 0; });
  RunRecord run;
  return RunReader(path, &run).ReadParts(files);
}

absl::StatusOr<RunRecord> ReadRun(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat(path, " is not a folder"));
  }
  const std::vector<std::string> files = RunFiles(path);
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " holds no run: neither metrics.jsonl nor a timeline nor summary.json is in it"));
  }
  RunRecord run;
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  run.name = folder.filename().string();
  RunReader reader(path, &run);
  reader.ReadConfig();
  reader.ReadMetricsFiles(files);
  run.traces = JoinParts(reader.ReadParts(files));
  reader.ReadSummary();
  SYNCOPATE_ASSIGN_OR_RETURN(run.breakdown, BreakDown(run.traces));
  if (!run.ended) {
    run.notes.push_back("there is no summary.json: the run goes on or was cut off");
    SummarizeUnfinished(&run);
  }
  run.notes.insert(run.notes.end(), run.breakdown.notes.begin(), run.breakdown.notes.end());
  return run;
}

}  // namespace syncopate::observe
