#include "observe/timeline_picture.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "base/parse.h"
#include "observe/real_begins.h"
#include "picture/chart_parts.h"
#include "picture/svg.h"

namespace syncopate::observe {
namespace {

using picture::Ink;
using picture::SvgPicture;
using picture::Ticks;

constexpr size_t kWorkersMax = 16;
constexpr size_t kLanesMax = 8;
constexpr double kWidth = 1080;
constexpr double kThreadHeight = 18;
constexpr double kLaneHeight = 9;
constexpr double kGap = 10;
constexpr double kShapeWidthMin = 0.08;  // thinner shapes cannot be seen

const char* ColourOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kLoad:
      return "c-load";
    case SpanKind::kForward:
      return "c-forward";
    case SpanKind::kBackward:
      return "c-compute";
    case SpanKind::kPack:
      return "c-pack";
    case SpanKind::kWait:
      return "c-waiting";
    case SpanKind::kUpdate:
      return "c-update";
    case SpanKind::kMeasure:
      return "c-measuring";
    default:
      return "c-other";
  }
}

// The first of two successive iterations that most workers have and that took a usual time.
// -1: there is none.
int ChooseIteration(const Breakdown& breakdown) {
  std::map<int, std::pair<size_t, double>> found;  // workers and their longest time, by iteration
  size_t most = 0;
  for (const IterationCost& cost : breakdown.iterations) {
    auto& [workers, seconds] = found[cost.iteration];
    most = std::max(most, ++workers);
    seconds = std::max(seconds, cost.seconds);
  }
  std::vector<double> times;
  for (const auto& [iteration, entry] : found) times.push_back(entry.second);
  const double usual = SpreadOf(times).p50;
  int best = -1;
  double best_distance = INFINITY;
  for (const auto& [iteration, entry] : found) {
    const auto next = found.find(iteration + 1);
    const bool pair = next != found.end();
    if (entry.first < most || (pair && next->second.first < most)) continue;
    double distance = std::abs(entry.second - usual);
    // One alone is better than none.
    distance += pair ? std::abs(next->second.second - usual) : 1e6;
    if (distance < best_distance) {
      best_distance = distance;
      best = iteration;
    }
  }
  return best;
}

// A part of time on rank 0's clock, and where it is drawn.
struct Window {
  int first = 0;
  int last = 0;
  int64_t begin = INT64_MAX;
  int64_t end = INT64_MIN;
  double left = 0;

  bool Holds(const Span& span) const { return first <= span.iteration && span.iteration <= last; }
  double X(int64_t ns) const {
    return left + (kWidth - 16 - left) * static_cast<double>(ns - begin) /
                      static_cast<double>(std::max<int64_t>(1, end - begin));
  }
};

void DrawSpan(SvgPicture& svg, const Window& window, int64_t begin, int64_t end, double y,
              double height, const char* colour, const std::string& title) {
  begin = std::max(begin, window.begin);
  end = std::min(end, window.end);
  const double width = window.X(end) - window.X(begin);
  if (width < kShapeWidthMin) return;
  svg.Box(window.X(begin), y, std::max(width, 0.6), height, Ink::Class(colour), "", 0, title);
}

std::string NameOf(const WorkerTrace& trace) {
  return absl::StrCat("rank ", trace.rank, " ", trace.host.substr(0, 14));
}

std::string TitleOf(const WorkerTrace& trace, const Span& span) {
  std::string title = absl::StrCat("rank ", trace.rank, ", ", Name(span.kind));
  if (span.id >= 0) absl::StrAppend(&title, " ", span.id);
  absl::StrAppendFormat(&title, ": %.3f ms, iteration %d",
                        static_cast<double>(span.end_ns - span.begin_ns) * 1e-6, span.iteration);
  if (span.bytes > 0) absl::StrAppend(&title, ", ", FormatBytes(span.bytes));
  return title;
}

// Returns the height that the worker takes.
double DrawWorker(SvgPicture& svg, const Window& window, const WorkerTrace& trace,
                  const RealBegins& begins, double y) {
  std::vector<Span> thread, transfers;
  for (const Span& span : trace.spans) {
    if (!window.Holds(span)) continue;
    (span.kind == SpanKind::kTransfer ? transfers : thread).push_back(span);
  }
  const auto outer_first = [](const Span& a, const Span& b) {
    return std::pair(a.begin_ns, -a.end_ns) < std::pair(b.begin_ns, -b.end_ns);
  };
  std::sort(thread.begin(), thread.end(), outer_first);
  std::sort(transfers.begin(), transfers.end(), outer_first);
  svg.Words(window.left - 8, y + 13, NameOf(trace), {.anchor = "end", .fill = Ink::Class("ink")});
  const int64_t offset = trace.clock_offset_ns;
  for (const Span& span : thread) {
    DrawSpan(svg, window, span.begin_ns + offset, span.end_ns + offset, y, kThreadHeight,
             ColourOf(span.kind), TitleOf(trace, span));
  }
  double lane_top = y + kThreadHeight + 2;
  std::vector<int64_t> lanes;  // when the last transfer of each ended
  for (const Span& span : transfers) {
    size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > span.begin_ns) ++lane;
    if (lane == lanes.size()) {
      if (lanes.size() == kLanesMax) continue;
      lanes.push_back(0);
    }
    lanes[lane] = span.end_ns;
    const double top = lane_top + kLaneHeight * static_cast<double>(lane);
    const RealBegin& real = begins.at({span.iteration, span.id});
    const int64_t begin = span.begin_ns + offset, end = span.end_ns + offset;
    const int64_t moving = std::clamp(real.at_ns, begin, end);
    DrawSpan(svg, window, begin, moving, top, kLaneHeight - 1, "c-blocked",
             absl::StrCat(TitleOf(trace, span), ", not yet started by rank ", real.rank));
    DrawSpan(svg, window, moving, end, top, kLaneHeight - 1, "c-network", TitleOf(trace, span));
  }
  return kThreadHeight + 2 + kLaneHeight * static_cast<double>(std::max<size_t>(1, lanes.size())) +
         kGap;
}

double DrawKey(SvgPicture& svg, double left) {
  picture::Legend legend;
  for (const auto& [name, colour] : std::initializer_list<std::pair<const char*, const char*>>{
           {"load", "c-load"},
           {"forward", "c-forward"},
           {"backward", "c-compute"},
           {"pack", "c-pack"},
           {"wait", "c-waiting"},
           {"update", "c-update"},
           {"measure", "c-measuring"},
           {"transfer, others have not started it", "c-blocked"},
           {"transfer, moving", "c-network"}}) {
    legend.emplace_back(name, Ink::Class(colour));
  }
  return 2 + Draw(legend, left, 2, {.width = kWidth - left, .words = Ink::Class("ink")}, svg);
}

}  // namespace

TimelinePicture DrawTimeline(const std::vector<WorkerTrace>& traces, const Breakdown& breakdown) {
  TimelinePicture picture;
  const int first = ChooseIteration(breakdown);
  if (first < 0) return picture;
  Window window;
  window.first = first;
  window.last = first + 1;
  picture.first_iteration = first;
  picture.workers_shown = std::min(traces.size(), kWorkersMax);
  double names_width = 0;
  for (size_t i = 0; i < picture.workers_shown; ++i) {
    const WorkerTrace& trace = traces[i];
    names_width = std::max(names_width, picture::TextWidth(NameOf(trace)));
    for (const Span& span : trace.spans) {
      if (!window.Holds(span) || span.kind == SpanKind::kTransfer ||
          IsOutsideOfIterations(span.kind)) {
        continue;
      }
      picture.iterations = std::max(picture.iterations, span.iteration - first + 1);
      window.begin = std::min(window.begin, span.begin_ns + trace.clock_offset_ns);
      window.end = std::max(window.end, span.end_ns + trace.clock_offset_ns);
    }
  }
  if (window.end <= window.begin) return picture;
  window.left = 16 + names_width;
  SvgPicture svg;
  double y = DrawKey(svg, 8);
  const double top = y;
  const RealBegins begins = FindRealBegins(traces);
  SvgPicture rows;
  for (size_t i = 0; i < picture.workers_shown; ++i) {
    y += DrawWorker(rows, window, traces[i], begins, y);
  }
  const double length_ms = static_cast<double>(window.end - window.begin) * 1e-6;
  for (const double tick : Ticks(0, length_ms, 10)) {
    if (tick > length_ms) break;
    const double x = window.X(window.begin + static_cast<int64_t>(tick * 1e6));
    svg.Line(x, top, x, y, Ink::Class("grid"));
    svg.Words(x, y + 14, absl::StrFormat("%.6g", tick),
              {.anchor = "middle", .fill = Ink::Class("soft")});
  }
  svg.Words((window.left + kWidth) / 2, y + 32, "ms",
            {.anchor = "middle", .fill = Ink::Class("ink")});
  svg.Add(rows);
  picture.svg = svg.FinishForPage(
      kWidth, y + 40,
      absl::StrCat("What ", CountOf(picture.workers_shown, "worker"), " did in ",
                   picture.iterations == 1 ? absl::StrCat("iteration ", first)
                                           : absl::StrCat("iterations ", first, " and ", first + 1),
                   ": a row for each training thread and rows for its transfers below it"));
  return picture;
}

}  // namespace syncopate::observe
