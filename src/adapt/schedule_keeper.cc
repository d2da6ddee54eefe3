#include "adapt/schedule_keeper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/figures.h"
#include "base/median.h"
#include "base/status.h"
#include "schedule/timeline.h"

namespace syncopate::adapt {
namespace {

constexpr size_t kIterationsKept = 32;    // the newest count
constexpr double kUnknown = 1e30;         // of a transfer that this worker has not seen
constexpr char kRefused[] = "refused: ";  // rank 0 could not plan; a schedule begins otherwise
constexpr char kUntilProfiled[] = "bucket";
constexpr int kRefusedMost = 10;  // trials in a row that each double the time until the next

// The smallest table that a planner takes, to try one with before there is a profile.
TensorTable OneTensor() {
  return {.model = "any",
          .tensors = {{.name = "any",
                       .elements = 1,
                       .type = DataType::kFloat32,
                       .forward_seconds = 0,
                       .backward_seconds = 0}}};
}

// The median of the vectors' values, at each place.
std::vector<double> MediansOf(const std::deque<std::vector<double>>& vectors, size_t size) {
  std::vector<double> medians(size, 0);
  if (vectors.empty()) return medians;
  std::vector<double> values;
  for (size_t i = 0; i < size; ++i) {
    values.clear();
    for (const std::vector<double>& vector : vectors) values.push_back(vector[i]);
    medians[i] = MedianOf(values);
  }
  return medians;
}

// The relative change; from nothing to something is a change by the whole.
double Change(double now, double before) {
  if (before <= 0) return now <= 0 ? 0 : 1;
  return std::abs(now / before - 1);
}

}  // namespace

ScheduleKeeper::ScheduleKeeper(JobExchange& exchange, TensorTable table, std::string planner,
                               std::optional<cost::CommunicationCosts> costs, KeeperPolicy policy)
    : exchange_(exchange),
      table_(std::move(table)),
      planner_(std::move(planner)),
      costs_(costs.value_or(cost::CommunicationCosts())),
      // One worker alone communicates for nothing.
      costs_known_(costs.has_value() || !schedule::PlansByMeasurements(planner_) ||
                   exchange_.size() == 1),
      policy_(std::move(policy)),
      begin_ns_(policy_.clock->NowNs()) {}

absl::StatusOr<std::unique_ptr<ScheduleKeeper>> ScheduleKeeper::Make(
    JobExchange& exchange, TensorTable table, std::string planner,
    std::optional<cost::CommunicationCosts> costs, KeeperPolicy policy) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  SYNCOPATE_RETURN_IF_ERROR(Validate(costs.value_or(cost::CommunicationCosts())));
  if (policy.first_look < 1 || policy.look_every < 1 || !(policy.threshold > 0)) {
    return absl::InvalidArgumentError(
        "schedule keeper: first_look and look_every must be at least 1, the threshold above 0");
  }
  if (!(policy.measuring_part_max >= 0) || !(policy.measure_seconds_min > 0) ||
      !(policy.measure_seconds_max >= policy.measure_seconds_min) ||
      !(policy.first_measure_seconds_max >= policy.measure_seconds_min)) {
    return absl::InvalidArgumentError(
        "schedule keeper: measuring_part_max must not be negative, measure_seconds_min be above 0 "
        "and the longest measurements not be shorter than that");
  }
  // A planner that does not exist or options that it refuses are an error now, not only when the
  // first plan is made in the middle of a job.
  SYNCOPATE_RETURN_IF_ERROR(schedule::MakeSchedule(planner, OneTensor(),
                                                   costs.value_or(cost::CommunicationCosts()),
                                                   policy.planning)
                                .status());
  std::unique_ptr<ScheduleKeeper> keeper(new ScheduleKeeper(
      exchange, std::move(table), std::move(planner), std::move(costs), std::move(policy)));
  if (!keeper->costs_known_ && !keeper->policy_.measure && keeper->policy_.upkeep) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule keeper: ", keeper->planner_,
        " plans by costs, which are neither given nor is there a way to measure them"));
  }
  if (keeper->policy_.measure_first && !keeper->costs_known_) {
    SYNCOPATE_ASSIGN_OR_RETURN(keeper->costs_,
                               keeper->Measure(keeper->policy_.first_measure_seconds_max, -1));
    keeper->costs_known_ = true;
  }
  const bool can_plan = !schedule::PlansByMeasurements(keeper->planner_) ||
                        (keeper->table_.backward_seconds() > 0 && keeper->costs_known_);
  SYNCOPATE_ASSIGN_OR_RETURN(keeper->schedule_,
                             keeper->PlanFirst(can_plan ? keeper->planner_ : kUntilProfiled));
  keeper->planned_ = keeper->schedule_;
  keeper->reason_ = can_plan               ? "planned before the first iteration"
                    : keeper->costs_known_ ? "buckets until profiled"
                                           : "buckets until profiled and costs are measured";
  return keeper;
}

double ScheduleKeeper::Elapsed() const {
  return static_cast<double>(policy_.clock->NowNs() - begin_ns_) * 1e-9;
}

// `elapsed` and measuring_seconds_ are the agreed ones at a look, so all workers get the same
// budget.
std::optional<double> ScheduleKeeper::MeasuringBudget(double elapsed, double most) const {
  const double left = policy_.measuring_part_max * elapsed - measuring_seconds_;
  if (left < policy_.measure_seconds_min) return std::nullopt;
  return std::min(left, most);
}

std::string ScheduleKeeper::PutOff(double elapsed) const {
  return absl::StrFormat(
      "measuring costs is put off: %.2f s beside the %.2f s that it has taken would be more than "
      "%.3g %% of the %.1f s so far",
      policy_.measure_seconds_min, measuring_seconds_, 100 * policy_.measuring_part_max, elapsed);
}

absl::StatusOr<cost::CommunicationCosts> ScheduleKeeper::Measure(double budget_seconds,
                                                                 int64_t iteration) {
  const double begin = Elapsed();
  absl::StatusOr<cost::CommunicationCosts> costs = policy_.measure(budget_seconds, iteration);
  // What a measurement really took counts, not what it was given; the workers agree on it at the
  // next look.
  measuring_seconds_ += Elapsed() - begin;
  return costs;
}

// It depends on the iteration alone, so all workers look after the same ones without a message.
bool ScheduleKeeper::LooksAfter(int64_t iteration) const {
  const int64_t after = iteration + 1 - policy_.first_look;
  if (after == 0) return policy_.upkeep || policy_.measure_first;
  return after > 0 && after % policy_.look_every == 0 && policy_.upkeep &&
         schedule::PlansByMeasurements(planner_);
}

// Rank 0 plans alone, since another processor may round differently. A refusal is sent as text in
// place of the schedule, so that no worker waits for one.
absl::StatusOr<Schedule> ScheduleKeeper::PlanFirst(absl::string_view planner) {
  std::string text;
  if (exchange_.rank() == 0) {
    const absl::StatusOr<Schedule> made =
        schedule::MakeSchedule(planner, table_, costs_, policy_.planning);
    text = made.ok() ? ToText(*made) : absl::StrCat(kRefused, made.status().message());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(text, TextOfRoot(exchange_, "schedule", std::move(text), 0));
  if (absl::string_view why = text; absl::ConsumePrefix(&why, kRefused)) {
    return absl::InvalidArgumentError(why);
  }
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  if (schedule.ok()) {
    if (absl::Status valid = Validate(*schedule, table_.size()); !valid.ok()) schedule = valid;
  }
  // A worker that cannot use the schedule takes part as well: the others must not wait for it.
  SYNCOPATE_RETURN_IF_ERROR(CompareDigests(
      exchange_, "schedule",
      schedule.ok() ? DigestOf(*schedule).ToString() : schedule.status().ToString()));
  return schedule;
}

// Moments since the begin of a pass are kept, not the time of each tensor: what decides when a
// transfer may start is the moment, and its median is not the sum of the medians.
void ScheduleKeeper::Keep(const IterationTimes& times, absl::Span<const EndedTransfer> transfers) {
  std::vector<double> forward(times.forward.size()), ready(times.backward.size());
  double now = 0;
  for (size_t i = 0; i < forward.size(); ++i) forward[i] = now += times.forward[i];
  now = 0;
  for (size_t i = ready.size(); i-- > 0;) ready[i] = now += times.backward[i];
  forwards_.push_back(std::move(forward));
  readies_.push_back(std::move(ready));
  if (forwards_.size() > kIterationsKept) {
    forwards_.pop_front();
    readies_.pop_front();
  }
  for (const EndedTransfer& transfer : transfers) {
    std::vector<double>& seconds = transfers_[transfer.first];
    if (seconds.size() >= kIterationsKept) seconds.erase(seconds.begin());
    seconds.push_back(transfer.seconds);
  }
}

absl::StatusOr<ScheduleKeeper::News> ScheduleKeeper::AfterIteration(
    int64_t iteration, const IterationTimes& times, absl::Span<const EndedTransfer> transfers,
    const std::shared_ptr<const Schedule>& used) {
  const size_t tensors = static_cast<size_t>(table_.size());
  if (times.forward.size() != tensors || times.backward.size() != tensors) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule keeper: times of ", times.backward.size(), " tensors for a table of ", tensors));
  }
  const std::optional<double> seconds = SecondsOf(iteration);
  if (used != nullptr && *used != schedule_) Used(*used);
  // The first iteration sets things up; its times say nothing about the others.
  if (iteration > 0 || policy_.first_look == 1) Keep(times, transfers);
  News news;
  if (trial_) GoOnTrying(iteration, seconds, news);
  if (LooksAfter(iteration)) {
    SYNCOPATE_RETURN_IF_ERROR(Look(iteration, news));
  } else if (plans_later_) {
    PlanNext(iteration, news);
  }
  ended_ns_ = policy_.clock->NowNs();
  return news;
}

// An iteration in which all transfers were waited for was longer, and the one after it is shorter.
std::optional<double> ScheduleKeeper::SecondsOf(int64_t iteration) {
  const int64_t outside_ns = policy_.outside_ns ? policy_.outside_ns() : 0;
  const bool disturbed =
      std::exchange(outside_ns_, outside_ns) != outside_ns || LooksAfter(iteration);
  if (std::exchange(disturbed_, disturbed) || disturbed || !ended_ns_) return std::nullopt;
  return static_cast<double>(policy_.clock->NowNs() - *ended_ns_) * 1e-9;
}

absl::Status ScheduleKeeper::Look(int64_t iteration, News& news) {
  // From here on every decision rests on `profile`, which all workers have agreed on: all of them
  // measure and return early together, or the exchanges below would not match.
  SYNCOPATE_ASSIGN_OR_RETURN(const Profile profile, Exchange());
  forwards_.clear();
  readies_.clear();
  transfers_.clear();
  const TensorTable table = TableOf(profile);
  SYNCOPATE_ASSIGN_OR_RETURN(const bool known, KnowCosts(profile, iteration));
  if (!known) {
    reason_ = PutOff(profile.elapsed);
    return absl::OkStatus();
  }
  const double change = profiled_ ? ChangeOf(table) : 1;
  std::string put_off;
  SYNCOPATE_ASSIGN_OR_RETURN(const bool costs_changed,
                             CostsChanged(table, profile, iteration, put_off));
  if (change <= policy_.threshold && !costs_changed) {
    reason_ = absl::StrFormat(
        "times changed by %.0f %%, %s", 100 * change,
        put_off.empty() ? "costs did not" : absl::StrCat("costs may have; ", put_off));
    return absl::OkStatus();
  }
  reason_ = !profiled_      ? "first profile"
            : costs_changed ? "costs changed"
                            : absl::StrFormat("times changed by %.0f %%", 100 * change);
  if (!put_off.empty()) absl::StrAppend(&reason_, "; ", put_off);
  profiled_ = true;
  table_ = table;
  // Another schedule has other errors of prediction: the ratio must be learned anew.
  usual_ratio_ = 1;
  PlanNext(iteration, news);
  return absl::OkStatus();
}

bool ScheduleKeeper::PlansAgain() const {
  return schedule::PlansByMeasurements(planner_) && (policy_.upkeep || policy_.measure_first);
}

// Rank 0 plans alone, since another processor may round differently. A plan that cannot be made leaves
// everything as it is.
void ScheduleKeeper::PlanNext(int64_t iteration, News& news) {
  if (exchange_.rank() != 0) return;
  // What stayed after the last trial may still be on its way.
  plans_later_ = trial_ || iteration < next_trial_ || (policy_.trials && schedule_ != planned_);
  if (plans_later_) return;
  absl::StatusOr<Schedule> schedule =
      schedule::MakeSchedule(planner_, table_, costs_, policy_.planning);
  if (!schedule.ok()) {
    absl::StrAppend(&reason_, "; it cannot be planned: ", schedule.status().message());
    return;
  }
  if (DigestOf(*schedule) == DigestOf(planned_)) {
    absl::StrAppend(&reason_, "; the plan is the same");
    return;
  }
  news.event = absl::StrCat("planned ", planner_, ": ",
                            CountOf(schedule->transfers.size(), "transfer"), "; ", reason_);
  if (policy_.trials && !std::exchange(trusts_, false)) {
    trial_ = Trial{.before = planned_, .fresh = *std::move(schedule)};
    trial_->asked = trial_->turns.wanted();
    news.next = trial_->fresh;
    absl::StrAppend(&news.event, "; it is tried");
    return;
  }
  planned_ = *std::move(schedule);
  news.next = planned_;
}

void ScheduleKeeper::GoOnTrying(int64_t iteration, std::optional<double> seconds, News& news) {
  PlanTrial& turns = trial_->turns;
  turns.Iteration(schedule_ == trial_->fresh ? PlanTrial::Plan::kNew : PlanTrial::Plan::kOld,
                  seconds);
  const bool fresh = turns.wanted() == PlanTrial::Plan::kNew;
  if (std::exchange(trial_->asked, turns.wanted()) != turns.wanted()) {
    news.next = fresh ? trial_->fresh : trial_->before;
  }
  if (!turns.over()) return;
  news.event =
      absl::StrCat("tried ", planner_, ": ", CountOf(trial_->fresh.transfers.size(), "transfer"),
                   "; ", turns.outcome().why);
  planned_ = fresh ? trial_->fresh : trial_->before;
  refused_ = fresh ? 0 : std::min(refused_ + 1, kRefusedMost);
  next_trial_ = iteration + (policy_.look_every << refused_);
  trial_.reset();
}

// How long the transfers of another schedule took says nothing.
void ScheduleKeeper::Used(const Schedule& schedule) {
  schedule_ = schedule;
  transfers_.clear();
}

absl::StatusOr<ScheduleKeeper::Profile> ScheduleKeeper::Exchange() {
  const size_t tensors = static_cast<size_t>(table_.size());
  // A transfer begins when the slowest worker is ready for it, so the latest moments count.
  std::vector<double> most = MediansOf(forwards_, tensors);
  const std::vector<double> ready = MediansOf(readies_, tensors);
  most.insert(most.end(), ready.begin(), ready.end());
  most.insert(most.end(), {Elapsed(), measuring_seconds_});
  // That worker waits for nobody and sees the transfer take the least time, so the least counts:
  // the largest of what is below 0.
  for (const Transfer& transfer : schedule_.transfers) {
    const auto seen = transfers_.find(transfer.first);
    most.push_back(seen == transfers_.end() ? -kUnknown : -MedianOf(seen->second));
  }
  SYNCOPATE_RETURN_IF_ERROR(Largest(exchange_, "times", most));
  const auto middle = most.begin() + static_cast<ptrdiff_t>(tensors);
  const auto end = middle + static_cast<ptrdiff_t>(tensors);
  measuring_seconds_ = end[1];
  Profile profile{.forward = {most.begin(), middle},
                  .ready = {middle, end},
                  .transfers = {},
                  .elapsed = end[0]};
  for (auto seconds = end + 2; seconds != most.end(); ++seconds) {
    profile.transfers.push_back(-*seconds);
  }
  return profile;
}

// Back from moments to the time of each tensor. Medians of different tensors may be a little out of
// order, which the maximum so far smooths.
TensorTable ScheduleKeeper::TableOf(const Profile& profile) const {
  TensorTable table = table_;
  double before = 0;
  for (size_t i = 0; i < table.tensors.size(); ++i) {
    table.tensors[i].forward_seconds = std::max(0.0, profile.forward[i] - before);
    before = std::max(before, profile.forward[i]);
  }
  before = 0;
  for (size_t i = table.tensors.size(); i-- > 0;) {
    table.tensors[i].backward_seconds = std::max(0.0, profile.ready[i] - before);
    before = std::max(before, profile.ready[i]);
  }
  return table;
}

// Moments are compared, not the times of single tensors: they decide when transfers may start.
double ScheduleKeeper::ChangeOf(const TensorTable& table) const {
  const double whole = table_.forward_seconds() + table_.backward_seconds();
  if (whole <= 0) return table.backward_seconds() > 0 ? 1 : 0;
  double largest = std::abs(table.forward_seconds() - table_.forward_seconds());
  const std::vector<double> now = ReadyTimes(table), before = ReadyTimes(table_);
  for (size_t i = 0; i < now.size(); ++i) {
    largest = std::max(largest, std::abs(now[i] - before[i]));
  }
  return largest / whole;
}

absl::StatusOr<std::optional<double>> ScheduleKeeper::TransferRatio(
    const TensorTable& table, const cost::CommunicationCosts& costs, const Profile& profile) const {
  SYNCOPATE_ASSIGN_OR_RETURN(const schedule::IterationTimeline timeline,
                             schedule::PredictTimeline(table, costs, schedule_));
  // Sums, since the noise of single transfers is large and mostly evens out.
  double measured = 0, predicted = 0;
  for (size_t i = 0; i < profile.transfers.size(); ++i) {
    if (profile.transfers[i] >= kUnknown) continue;
    measured += profile.transfers[i];
    predicted += timeline.transfers[i].end - timeline.transfers[i].start;
  }
  if (predicted <= 0) return std::nullopt;
  return measured / predicted;
}

absl::StatusOr<bool> ScheduleKeeper::KnowCosts(const Profile& profile, int64_t iteration) {
  if (costs_known_) return true;
  const std::optional<double> budget =
      MeasuringBudget(profile.elapsed, policy_.first_measure_seconds_max);
  if (!budget) return false;
  SYNCOPATE_ASSIGN_OR_RETURN(costs_, Measure(*budget, iteration));
  costs_known_ = true;
  return true;
}

absl::StatusOr<bool> ScheduleKeeper::CostsChanged(const TensorTable& table, const Profile& profile,
                                                  int64_t iteration, std::string& put_off) {
  // At the first plan the costs are those that were just measured, or that the keeper was given.
  if (!profiled_ || !policy_.measure || exchange_.size() == 1 ||
      !schedule::PlansByMeasurements(planner_))
    return false;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<double> ratio,
                             TransferRatio(table, costs_, profile));
  if (!ratio) return false;
  // Transfers that became slower or quicker by the same factor count alike.
  const double off = *ratio / usual_ratio_;
  if (std::max(off, 1 / off) <= 1 + policy_.threshold) return false;
  const std::optional<double> budget =
      MeasuringBudget(profile.elapsed, policy_.measure_seconds_max);
  if (!budget) {
    put_off = PutOff(profile.elapsed);
    return false;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(cost::CommunicationCosts measured, Measure(*budget, iteration));
  if (ChangeOf(measured) <= policy_.threshold) {
    // The costs are as before, so the prediction is off by this ratio. It is the usual one from now
    // on and triggers no further measurement.
    usual_ratio_ = *ratio;
    return false;
  }
  costs_ = std::move(measured);
  return true;
}

// Costs are compared at two sizes, a typical transfer and everything at once: the first shows a
// change of the start-up time, the second one of the bandwidth.
double ScheduleKeeper::ChangeOf(const cost::CommunicationCosts& costs) const {
  const double all = static_cast<double>(table_.bytes());
  const double one = all / static_cast<double>(schedule_.transfers.size());
  double largest = std::max(Change(costs.Seconds(all), costs_.Seconds(all)),
                            Change(costs.Seconds(one), costs_.Seconds(one)));
  for (int k = 2; k <= static_cast<int>(costs_.gamma.size()); ++k) {
    largest = std::max(largest, Change(costs.Gamma(k), costs_.Gamma(k)));
  }
  return largest;
}

}  // namespace syncopate::adapt
