#include "tools/schedule_picture.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "base/parse.h"
#include "picture/chart_parts.h"
#include "picture/svg.h"

namespace syncopate::tools {
namespace {

constexpr double kLeft = 110;
constexpr double kPlotWidth = 1060;
constexpr double kRight = 30;
constexpr double kScheduleTop = 64;
constexpr double kLane = 18;
constexpr double kLaneGap = 4;
constexpr double kPanelHead = 24;
constexpr double kPanelGap = 20;
constexpr double kNamedWidth = 44;  // the least width of a box that carries words

constexpr absl::string_view kForwardColour = "#9fb8ad";
// Neighbours differ, so that tensors and transfers can be told apart where there are hundreds.
constexpr absl::string_view kBackwardColours[] = {"#4f7cac", "#6f97c1"};
constexpr absl::string_view kMovingColours[] = {"#d1603d", "#e08a4f"};
constexpr absl::string_view kStartupColour = "#f3cdb8";
constexpr absl::string_view kWaitColour = "#f0f0f4";
constexpr absl::string_view kWords = "#223";
constexpr absl::string_view kGrid = "#ddd";

// Which lane each transfer is drawn in: the first that is free when it starts.
std::vector<size_t> Lanes(const schedule::IterationTimeline& timeline) {
  std::vector<double> free_at;
  std::vector<size_t> lanes;
  for (const schedule::TransferTimes& times : timeline.transfers) {
    size_t lane = 0;
    while (lane < free_at.size() && free_at[lane] > times.start + 1e-12) ++lane;
    if (lane == free_at.size()) free_at.push_back(0);
    free_at[lane] = times.end;
    lanes.push_back(lane);
  }
  return lanes;
}

class Picture {
 public:
  explicit Picture(const ScheduleReport& report) : report_(report) {
    for (const PlannedSchedule& planned : report.schedules) {
      seconds_ = std::max(seconds_, planned.timeline.iteration_seconds);
    }
    seconds_ = std::max(seconds_, 1e-9);
  }

  std::string Draw() {
    svg_.Words(kLeft, 24,
               absl::StrFormat("%s: %s, %s", report_.table.model,
                               CountOf(static_cast<uint64_t>(report_.table.size()), "tensor"),
                               FormatBytes(report_.table.bytes())),
               {.size = 16, .bold = true});
    DrawLegend();
    double y = kScheduleTop;
    for (const PlannedSchedule& planned : report_.schedules) y = DrawPanel(planned, y) + kPanelGap;
    return svg_.Finish(kLeft + kPlotWidth + kRight, y);
  }

 private:
  double X(double seconds) const { return kLeft + kPlotWidth * seconds / seconds_; }

  void DrawLegend() {
    const picture::Legend legend = {{"forward", kForwardColour},
                                    {"backward", kBackwardColours[0]},
                                    {"start-up", kStartupColour},
                                    {"bytes move", kMovingColours[0]},
                                    {"computing waits", kWaitColour}};
    picture::Draw(legend, kLeft, 36, {.edge = "#999"}, svg_);
  }

  // Returns the y below it.
  double DrawPanel(const PlannedSchedule& planned, double y) {
    const schedule::IterationTimeline& timeline = planned.timeline;
    const std::vector<size_t> lanes = Lanes(timeline);
    const size_t lane_count = 1 + *std::max_element(lanes.begin(), lanes.end());
    const double height = static_cast<double>(1 + lane_count) * (kLane + kLaneGap);
    svg_.Words(kLeft, y + 14,
               absl::StrFormat("%s   %.1f ms, %.1f ms exposed, %s", planned.schedule.planner,
                               timeline.iteration_seconds * 1e3, timeline.exposed_seconds * 1e3,
                               CountOf(timeline.transfers.size(), "transfer")),
               {.size = 13, .bold = true});
    y += kPanelHead;
    DrawTicks(y, height);
    svg_.Words(kLeft - 8, y + 13, "computing", {.size = 11, .anchor = "end"});
    DrawComputing(timeline, y);
    for (size_t lane = 0; lane < lane_count; ++lane) {
      svg_.Words(kLeft - 8, LaneY(y, lane) + 13, absl::StrCat("network ", lane + 1),
                 {.size = 11, .anchor = "end"});
    }
    for (size_t i = 0; i < timeline.transfers.size(); ++i) {
      DrawTransfer(planned, i, LaneY(y, lanes[i]));
    }
    const double end = X(timeline.iteration_seconds);
    svg_.Line(end, y - 2, end, y + height, kWords, 1.5, "the iteration ends");
    return y + height + 14;
  }

  static double LaneY(double y, size_t lane) {
    return y + static_cast<double>(1 + lane) * (kLane + kLaneGap);
  }

  void DrawTicks(double y, double height) {
    for (const double tick : picture::Ticks(0, seconds_, 8)) {
      if (tick > seconds_ * (1 + 1e-9)) break;
      svg_.Line(X(tick), y, X(tick), y + height, kGrid);
      svg_.Words(X(tick), y + height + 10, absl::StrFormat("%g ms", tick * 1e3),
                 {.size = 9, .anchor = "middle", .fill = "#777"});
    }
  }

  void DrawComputing(const schedule::IterationTimeline& timeline, double y) {
    svg_.Box(kLeft, y, X(timeline.iteration_seconds) - kLeft, kLane, kWaitColour, "", 0,
             "computing waits");
    DrawSpans(timeline.forward, "forward", {kForwardColour, kForwardColour}, y);
    DrawSpans(timeline.backward, "backward", {kBackwardColours[0], kBackwardColours[1]}, y);
  }

  // Spans that are less than half a pixel wide are not drawn one by one: a box stands for all of
  // them until there is something to see.
  void DrawSpans(const std::vector<schedule::TimeSpan>& spans, absl::string_view what,
                 const std::vector<absl::string_view>& colours, double y) {
    std::vector<size_t> order(spans.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return spans[a].begin < spans[b].begin; });
    size_t drawn = 0;
    for (size_t i = 0; i < order.size();) {
      const double begin = spans[order[i]].begin;
      double end = spans[order[i]].end;
      size_t last = i;
      while (X(end) - X(begin) < 0.5 && last + 1 < order.size() &&
             spans[order[last + 1]].begin <= end + 1e-12) {
        end = spans[order[++last]].end;
      }
      if (end > begin) {
        const std::string& first_name = report_.table.tensors[order[i]].name;
        const std::string title = last == i ? absl::StrCat(what, " of ", first_name)
                                            : absl::StrCat(what, " of ", first_name, " to ",
                                                           report_.table.tensors[order[last]].name);
        svg_.Box(X(begin), y, X(end) - X(begin), kLane, colours[drawn % colours.size()], "", 0,
                 title);
        ++drawn;
      }
      i = last + 1;
    }
  }

  void DrawTransfer(const PlannedSchedule& planned, size_t i, double y) {
    const Transfer& transfer = planned.schedule.transfers[i];
    const schedule::TransferTimes& times = planned.timeline.transfers[i];
    const std::string name = transfer.first == transfer.last
                                 ? absl::StrCat(transfer.first)
                                 : absl::StrCat(transfer.first, "-", transfer.last);
    const std::string title =
        absl::StrFormat("transfer %d: tensors %s, ready %.2f ms, %.2f to %.2f ms", i, name,
                        times.ready * 1e3, times.start * 1e3, times.end * 1e3);
    const double moving = std::min(times.moving, times.end);
    svg_.Box(X(times.start), y, X(moving) - X(times.start), kLane, kStartupColour, "", 0, title);
    svg_.Box(X(moving), y, X(times.end) - X(moving), kLane, kMovingColours[i % 2], "", 0, title);
    if (X(times.end) - X(moving) >= kNamedWidth) {
      svg_.Words((X(moving) + X(times.end)) / 2, y + 13, name,
                 {.size = 10, .anchor = "middle", .fill = "white"});
    }
  }

  const ScheduleReport& report_;
  double seconds_ = 0;  // of the longest iteration
  picture::SvgPicture svg_;
};

}  // namespace

std::string SchedulesToSvg(const ScheduleReport& report) { return Picture(report).Draw(); }

}  // namespace syncopate::tools
