// Reads timelines back, whole or cut off.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/figures.h"
#include "base/limits.h"
#include "nlohmann/json.hpp"
#include "observe/chrome_trace.h"

namespace syncopate::observe {
namespace {

using Json = nlohmann::json;

constexpr size_t kLineBytesMax = 4096;  // ours have less than 500
constexpr double kMicrosecondsMax = 1e15;
constexpr int64_t kTimeNsMax = int64_t{1} << 60;

std::optional<int64_t> Whole(const Json& json, const char* key, int64_t lo, int64_t hi) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  const int64_t value = found->get<int64_t>();
  if (value < lo || value > hi) return std::nullopt;
  return value;
}

std::optional<int64_t> Nanoseconds(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double microseconds = found->get<double>();
  if (!(std::abs(microseconds) < kMicrosecondsMax)) return std::nullopt;
  return std::llround(microseconds * 1e3);
}

// One worker of the file while it is read. Event times are of rank 0's clock until the end.
struct Reading {
  WorkerTrace trace;
  int64_t origin_ns = 0;
};

class Reader {
 public:
  void ReadLine(absl::string_view line, bool last) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty() && line.back() == ',') line.remove_suffix(1);
    if (line.empty() || line == "[" || line == "]" || line == "[]") return;
    const Json event = line.size() > kLineBytesMax
                           ? Json(Json::value_t::discarded)
                           : Json::parse(line.begin(), line.end(), nullptr, false);
    if (!event.is_object()) {
      if (last) {
        cut_ = true;
      } else {
        ++malformed_;
      }
      return;
    }
    if (!ReadEvent(event)) ++foreign_;
  }

  ChromeTraceContents Finish() {
    ChromeTraceContents contents;
    if (cut_) contents.notes.push_back("the last line is cut off and was left out");
    if (malformed_ > 0) {
      contents.notes.push_back(absl::StrCat(CountOf(malformed_, "line"), " could not be read"));
    }
    if (foreign_ > 0) {
      contents.notes.push_back(
          absl::StrCat("left out ", CountOf(foreign_, "event"), " of other programs"));
    }
    for (auto& [rank, reading] : workers_) {
      WorkerTrace& trace = reading.trace;
      const int64_t shift = reading.origin_ns - trace.clock_offset_ns;
      const size_t count = trace.spans.size();
      for (Span& span : trace.spans) {
        span.begin_ns += shift;
        span.end_ns += shift;
      }
      std::erase_if(trace.spans,
                    [](const Span& span) { return span.begin_ns < 0 || span.end_ns > kTimeNsMax; });
      if (trace.spans.size() < count) {
        contents.notes.push_back(absl::StrCat("left out ",
                                              CountOf(count - trace.spans.size(), "event"),
                                              " of rank ", rank, " outside of all time"));
      }
      const absl::Status status = Validate(trace);
      if (!status.ok()) {
        contents.notes.push_back(absl::StrCat("rank ", rank, " was left out: ", status.message()));
        continue;
      }
      contents.traces.push_back(std::move(trace));
    }
    return contents;
  }

 private:
  // False: it is not one of ours.
  bool ReadEvent(const Json& event) {
    const auto rank = Whole(event, "pid", 0, limits::kWorkersMax - 1);
    const auto phase = event.find("ph");
    const auto args = event.find("args");
    if (!rank || phase == event.end() || args == event.end() || !args->is_object()) return false;
    Reading& reading = workers_[static_cast<int>(*rank)];
    reading.trace.rank = static_cast<int>(*rank);
    if (reading.trace.host.empty()) reading.trace.host = "unknown";
    if (*phase == "M") return ReadHead(event, *args, &reading);
    if (*phase != "X") return false;
    return ReadSpan(event, *args, &reading.trace);
  }

  static bool ReadHead(const Json& event, const Json& args, Reading* reading) {
    const auto name = event.find("name");
    if (name == event.end() || !name->is_string()) return false;
    if (*name != "syncopate_worker") return true;
    WorkerTrace& trace = reading->trace;
    const auto host = args.find("host");
    if (host != args.end() && host->is_string() && !host->get_ref<const std::string&>().empty() &&
        host->get_ref<const std::string&>().size() <= limits::kHostNameBytesMax) {
      trace.host = host->get<std::string>();
    }
    const auto whole = [&](const char* key, int64_t lo, int64_t hi) {
      return Whole(args, key, lo, hi).value_or(0);
    };
    trace.clock_offset_ns = whole("clock_offset_ns", -kTimeNsMax, kTimeNsMax);
    trace.clock_error_ns = whole("clock_error_ns", 0, kTimeNsMax);
    reading->origin_ns = whole("origin_ns", -kTimeNsMax, kTimeNsMax);
    trace.dropped = static_cast<uint64_t>(whole("dropped", 0, INT64_MAX));
    if (trace.dropped == 0) return true;
    trace.dropped_bytes = static_cast<uint64_t>(whole("dropped_bytes", 0, INT64_MAX));
    trace.dropped_first = static_cast<int>(whole("dropped_first", 0, INT32_MAX));
    trace.dropped_last = static_cast<int>(whole("dropped_last", trace.dropped_first, INT32_MAX));
    trace.dropped_last = std::max(trace.dropped_last, trace.dropped_first);
    return true;
  }

  static bool ReadSpan(const Json& event, const Json& args, WorkerTrace* trace) {
    const auto category = event.find("cat");
    const auto begin = Nanoseconds(event, "ts");
    const auto length = Nanoseconds(event, "dur");
    const auto iteration = Whole(args, "iteration", 0, INT32_MAX);
    const auto id = Whole(args, "id", -1, INT32_MAX);
    if (category == event.end() || !category->is_string() || !begin || !length || *length < 0 ||
        !iteration || !id || trace->spans.size() >= limits::kTraceSpansMax) {
      return false;
    }
    const auto kind = ParseSpanKind(category->get_ref<const std::string&>());
    if (!kind.ok()) return false;
    const int64_t bytes = Whole(args, "bytes", 0, INT64_MAX).value_or(0);
    trace->spans.push_back({*kind, static_cast<int>(*iteration), static_cast<int>(*id), *begin,
                            *begin + *length, static_cast<uint64_t>(bytes)});
    return true;
  }

  std::map<int, Reading> workers_;
  bool cut_ = false;
  uint64_t malformed_ = 0;
  uint64_t foreign_ = 0;
};

}  // namespace

ChromeTraceContents ReadChromeTrace(absl::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.ReadLine(text.substr(0, end), end == text.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.Finish();
}

void MergeTrace(WorkerTrace more, std::vector<WorkerTrace>* traces) {
  const auto found = std::find_if(traces->begin(), traces->end(), [&](const WorkerTrace& trace) {
    return trace.rank == more.rank;
  });
  if (found == traces->end()) {
    traces->push_back(std::move(more));
    return;
  }
  const size_t room = limits::kTraceSpansMax - found->spans.size();
  if (more.spans.size() > room) more.spans.resize(room);
  found->spans.insert(found->spans.end(), more.spans.begin(), more.spans.end());
}

}  // namespace syncopate::observe
