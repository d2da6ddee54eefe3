#include "schedule/timeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "schedule/flights.h"

namespace syncopate::schedule {
namespace {

absl::Status CheckAll(const TensorTable& table, const cost::CommunicationCosts& costs,
                      const Schedule& schedule, const TimelineOptions& options) {
  absl::Status status = Validate(table);
  if (!status.ok()) return At("the tensor table", status);
  status = Validate(costs);
  if (!status.ok()) return At("the costs", status);
  status = Validate(schedule, table.size());
  if (!status.ok()) return At("the schedule", status);
  if (!options.published_contention) return absl::OkStatus();
  for (const Transfer& transfer : schedule.transfers) {
    if (transfer.beside > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the published contention is that of two transfers at once, but one has ",
                       transfer.beside, " beside it"));
    }
  }
  return absl::OkStatus();
}

double BytesOf(const TensorTable& table, const Transfer& transfer) {
  double bytes = 0;
  for (int i = transfer.first; i <= transfer.last; ++i) {
    bytes += static_cast<double>(table.tensors[static_cast<size_t>(i)].bytes());
  }
  return bytes;
}

// The transfers' times after the backward pass began.
std::vector<TransferTimes> ExactTransfers(const TensorTable& table,
                                          const cost::CommunicationCosts& communication,
                                          const Schedule& schedule) {
  const FlightCosts costs(communication);
  const std::vector<double> ready = ReadyTimes(table);
  std::vector<TransferTimes> times(schedule.transfers.size());
  const auto ended = [&](int id, double time) { times[static_cast<size_t>(id)].end = time; };
  Flights flights;
  for (size_t i = 0; i < times.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    times[i].ready = ready[static_cast<size_t>(transfer.first)];
    flights.AdvanceTo(costs, times[i].ready, ended);
    flights.AdvanceUntilAtMost(costs, transfer.beside, ended);
    times[i].start = flights.now();
    times[i].moving = flights.now() + costs.startup;
    times[i].beside = flights.count();
    flights.Start(costs, static_cast<int>(i), BytesOf(table, transfer) * costs.seconds_per_byte);
  }
  flights.AdvanceUntilAtMost(costs, 0, ended);
  return times;
}

// The formulas of the ASC-WFBP paper: a transfer beside another takes as long as alone plus a
// penalty, and the other is not slowed. Times are after the backward pass began.
std::vector<TransferTimes> PublishedTransfers(const TensorTable& table,
                                              const cost::CommunicationCosts& costs,
                                              const Schedule& schedule) {
  const std::vector<double> ready = ReadyTimes(table);
  std::vector<TransferTimes> times(schedule.transfers.size());
  double ends = 0;         // of all before
  double ends_before = 0;  // of all before the previous one
  double bytes_before = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const double bytes = BytesOf(table, transfer);
    times[i].ready = ready[static_cast<size_t>(transfer.first)];
    double penalty = 0;
    if (transfer.beside == 0) {
      times[i].start = std::max(times[i].ready, ends);
    } else {
      times[i].start = std::max({times[i].ready, times[i - 1].start, ends_before});
      penalty = PublishedPenalty(costs, bytes_before, times[i].start - times[i - 1].start);
    }
    times[i].beside = i > 0 && times[i - 1].end > times[i].start ? 1 : 0;
    times[i].moving = times[i].start + costs.a;
    times[i].end = times[i].start + costs.Seconds(bytes) + penalty;
    ends_before = ends;
    ends = std::max(ends, times[i].end);
    bytes_before = bytes;
  }
  return times;
}

// Sets forward, backward and iteration_seconds, and moves the transfers to where the backward pass
// begins.
void PutTogether(const TensorTable& table, const Schedule& schedule, bool overlap_forward,
                 IterationTimeline& timeline) {
  const size_t count = table.tensors.size();
  timeline.forward.resize(count);
  timeline.backward.resize(count);
  double now = 0;
  const auto run_forward = [&](size_t i) {
    timeline.forward[i].begin = now;
    now += table.tensors[i].forward_seconds;
    timeline.forward[i].end = now;
  };
  if (!overlap_forward) {
    for (size_t i = 0; i < count; ++i) run_forward(i);
  }
  for (TransferTimes& times : timeline.transfers) {
    times.ready += now;
    times.start += now;
    times.moving += now;
    times.end += now;
  }
  for (size_t i = count; i-- > 0;) {
    timeline.backward[i].begin = now;
    now += table.tensors[i].backward_seconds;
    timeline.backward[i].end = now;
  }
  // The last transfer holds the first tensors, which the next forward pass needs first.
  for (size_t j = schedule.transfers.size(); j-- > 0;) {
    now = std::max(now, timeline.transfers[j].end);
    if (!overlap_forward) continue;
    for (int i = schedule.transfers[j].first; i <= schedule.transfers[j].last; ++i) {
      run_forward(static_cast<size_t>(i));
    }
  }
  timeline.iteration_seconds = now;
}

// How long at least one was in flight, and how many at most.
void CountAtOnce(IterationTimeline& timeline) {
  double covered = 0;  // up to here everything is counted
  for (size_t i = 0; i < timeline.transfers.size(); ++i) {
    const TransferTimes& times = timeline.transfers[i];
    timeline.sending_seconds += std::max(0.0, times.end - std::max(times.start, covered));
    covered = std::max(covered, times.end);
    timeline.at_once_max = std::max(timeline.at_once_max, times.beside + 1);
  }
}

}  // namespace

double PublishedPenalty(const cost::CommunicationCosts& costs, double bytes, double later_by) {
  const double alone = costs.Seconds(bytes);
  if (alone <= 0) return 0;
  const double overlapping = std::clamp(1 - later_by / alone, 0.0, 1.0);
  return (costs.Gamma(2) - 1) * costs.b * bytes * overlapping;
}

absl::StatusOr<IterationTimeline> PredictTimeline(const TensorTable& table,
                                                  const cost::CommunicationCosts& costs,
                                                  const Schedule& schedule,
                                                  const TimelineOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(CheckAll(table, costs, schedule, options));
  IterationTimeline timeline;
  timeline.transfers = options.published_contention ? PublishedTransfers(table, costs, schedule)
                                                    : ExactTransfers(table, costs, schedule);
  PutTogether(table, schedule, options.overlap_forward, timeline);
  CountAtOnce(timeline);
  timeline.compute_seconds = table.forward_seconds() + table.backward_seconds();
  timeline.exposed_seconds = std::max(0.0, timeline.iteration_seconds - timeline.compute_seconds);
  return timeline;
}

absl::StatusOr<double> PredictIteration(const TensorTable& table,
                                        const cost::CommunicationCosts& costs,
                                        const Schedule& schedule, const TimelineOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const IterationTimeline timeline,
                             PredictTimeline(table, costs, schedule, options));
  return timeline.iteration_seconds;
}

}  // namespace syncopate::schedule
