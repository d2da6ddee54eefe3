#include "observe/chrome_trace.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncopate::observe {
namespace {

constexpr int kComputeTrack = 0;
constexpr int kWaitTrack = 1;
constexpr int kFirstLane = 2;
constexpr uint64_t kEventBytes = 135;  // of a line, about

// Microseconds with all nanoseconds, as a JSON number.
std::string Microseconds(int64_t ns) {
  const uint64_t size = ns < 0 ? ~static_cast<uint64_t>(ns) + 1 : static_cast<uint64_t>(ns);
  return absl::StrFormat("%s%d.%03d", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string TrackName(int rank, int track, absl::string_view name) {
  return absl::StrCat("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":", rank, ",\"tid\":", track,
                      ",\"args\":{\"name\":\"", name, "\"}},\n");
}

// Sorted so that what encloses comes first, and cut where the rules of nesting were broken.
void Nest(std::vector<Span>* spans) {
  std::stable_sort(spans->begin(), spans->end(), [](const Span& a, const Span& b) {
    return std::pair(a.begin_ns, -a.end_ns) < std::pair(b.begin_ns, -b.end_ns);
  });
  std::vector<int64_t> open;  // ends of what encloses
  for (Span& span : *spans) {
    while (!open.empty() && open.back() <= span.begin_ns) open.pop_back();
    if (!open.empty()) span.end_ns = std::min(span.end_ns, open.back());
    open.push_back(span.end_ns);
  }
}

// The iterations to keep so that no more than `spans_max` spans stay: as many of the beginning as
// of the end, by their spans. Returns the range that is left out; empty (first > last) if nothing.
std::pair<int, int> ChooseLeftOut(const std::vector<WorkerTrace>& traces, uint64_t spans_max) {
  std::map<int, uint64_t> sizes;
  uint64_t total = 0;
  for (const WorkerTrace& trace : traces) {
    total += trace.spans.size();
    for (const Span& span : trace.spans) ++sizes[span.iteration];
  }
  if (total <= spans_max || sizes.empty()) return {0, -1};
  auto first = sizes.begin();
  for (uint64_t kept = 0; first != sizes.end() && kept + first->second <= spans_max / 2; ++first) {
    kept += first->second;
  }
  auto last = std::prev(sizes.end());
  for (uint64_t kept = 0; last != first && kept + last->second <= spans_max / 2; --last) {
    kept += last->second;
  }
  if (first == sizes.end()) return {0, -1};
  return {first->first, last->first};
}

void LeaveOut(const std::pair<int, int>& range, WorkerTrace* trace) {
  const size_t before = trace->spans.size();
  std::erase_if(trace->spans, [&](const Span& span) {
    const bool out = range.first <= span.iteration && span.iteration <= range.second;
    if (out && span.kind == SpanKind::kTransfer) trace->dropped_bytes += span.bytes;
    return out;
  });
  if (trace->spans.size() == before) return;
  trace->dropped += before - trace->spans.size();
  trace->dropped_first =
      trace->dropped_first < 0 ? range.first : std::min(trace->dropped_first, range.first);
  trace->dropped_last = std::max(trace->dropped_last, range.second);
}

}  // namespace

ChromeTraceWriter::ChromeTraceWriter(const WorkerTrace& worker, int64_t origin_ns)
    : origin_ns_(origin_ns) {
  worker_.rank = worker.rank;
  worker_.host = worker.host;
  worker_.clock_offset_ns = worker.clock_offset_ns;
  worker_.clock_error_ns = worker.clock_error_ns;
  worker_.dropped = worker.dropped;
  worker_.dropped_bytes = worker.dropped_bytes;
  worker_.dropped_first = worker.dropped_first;
  worker_.dropped_last = worker.dropped_last;
}

std::string ChromeTraceWriter::Head() {
  std::string host;  // any printable character is allowed in it
  for (const char c : worker_.host)
    absl::StrAppend(&host, c == '"' || c == '\\' ? "\\" : "", std::string(1, c));
  const int rank = worker_.rank;
  std::string text = absl::StrCat("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", rank,
                                  ",\"args\":{\"name\":\"rank ", rank, " on ", host, "\"}},\n");
  absl::StrAppend(&text, "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":", rank,
                  ",\"args\":{\"sort_index\":", rank, "}},\n");
  absl::StrAppend(&text, "{\"name\":\"syncopate_worker\",\"ph\":\"M\",\"pid\":", rank,
                  ",\"args\":{\"host\":\"", host,
                  "\",\"clock_offset_ns\":", worker_.clock_offset_ns,
                  ",\"clock_error_ns\":", worker_.clock_error_ns, ",\"origin_ns\":", origin_ns_,
                  ",\"dropped\":", worker_.dropped, ",\"dropped_bytes\":", worker_.dropped_bytes,
                  ",\"dropped_first\":", worker_.dropped_first,
                  ",\"dropped_last\":", worker_.dropped_last, "}},\n");
  absl::StrAppend(&text, TrackName(rank, kComputeTrack, "compute"),
                  TrackName(rank, kWaitTrack, "waiting"));
  for (size_t lane = 0; lane < lane_ends_.size(); ++lane) {
    absl::StrAppend(&text, TrackName(rank, kFirstLane + static_cast<int>(lane),
                                     absl::StrCat("transfers ", lane)));
  }
  return text;
}

int ChromeTraceWriter::TrackOf(const Span& span) {
  if (span.kind == SpanKind::kWait) return kWaitTrack;
  if (span.kind != SpanKind::kTransfer) return kComputeTrack;
  size_t lane = 0;
  while (lane < lane_ends_.size() && lane_ends_[lane] > span.begin_ns) ++lane;
  if (lane == lane_ends_.size()) lane_ends_.push_back(0);
  lane_ends_[lane] = span.end_ns;
  return kFirstLane + static_cast<int>(lane);
}

std::string ChromeTraceWriter::Events(std::vector<Span> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  std::string text;
  std::map<int, std::vector<Span>> tracks;
  for (const Span& span : spans) {
    const size_t lanes = lane_ends_.size();
    const int track = TrackOf(span);
    tracks[track].push_back(span);
    if (lane_ends_.size() == lanes) continue;
    absl::StrAppend(&text, TrackName(worker_.rank, track, absl::StrCat("transfers ", lanes)));
  }
  for (auto& [track, events] : tracks) {
    Nest(&events);
    for (const Span& span : events) {
      absl::StrAppend(&text, "{\"name\":\"", Name(span.kind));
      if (span.id >= 0) absl::StrAppend(&text, " ", span.id);
      absl::StrAppend(&text, "\",\"cat\":\"", Name(span.kind), "\",\"ph\":\"X\",\"ts\":",
                      Microseconds(span.begin_ns + worker_.clock_offset_ns - origin_ns_),
                      ",\"dur\":", Microseconds(span.end_ns - span.begin_ns),
                      ",\"pid\":", worker_.rank, ",\"tid\":", track,
                      ",\"args\":{\"iteration\":", span.iteration, ",\"id\":", span.id);
      if (span.bytes > 0) absl::StrAppend(&text, ",\"bytes\":", span.bytes);
      absl::StrAppend(&text, "}},\n");
    }
  }
  return text;
}

std::string ToChromeTrace(std::vector<WorkerTrace> traces, uint64_t bytes_max) {
  const std::pair<int, int> left_out = ChooseLeftOut(traces, bytes_max / kEventBytes);
  int64_t origin_ns = INT64_MAX;
  for (WorkerTrace& trace : traces) {
    LeaveOut(left_out, &trace);
    for (const Span& span : trace.spans) {
      origin_ns = std::min(origin_ns, span.begin_ns + trace.clock_offset_ns);
    }
  }
  if (origin_ns == INT64_MAX) origin_ns = 0;
  std::string text(kChromeTraceBegin);
  for (WorkerTrace& trace : traces) {
    ChromeTraceWriter writer(trace, origin_ns);
    absl::StrAppend(&text, writer.Head());
    absl::StrAppend(&text, writer.Events(std::move(trace.spans)));
  }
  if (traces.empty()) return "[]\n";
  text.resize(text.size() - 2);  // the last comma and end of line
  return absl::StrCat(text, kChromeTraceEnd);
}

}  // namespace syncopate::observe
