// Keeps the schedule of a training job right while it runs: profiles the first iterations, plans,
// looks again from time to time, and plans anew when the model's times or the network's costs have
// changed.
//
// After which iterations it looks is fixed, so all workers look after the same ones; between looks
// nothing is sent. At a look the workers take the slowest one's times for each tensor, and rank 0
// plans. From which iteration on all use what it planned is for them to agree on, which is no business
// of the keeper's: it is told which schedule an iteration had. Whether transfers take as long as the
// plan says is looked at too: if not, the costs are measured again.
//
// A new schedule is tried, not trusted: rank 0 lets it take turns with the one in use (plan_trial.h), by
// its own times of iterations, which are those of all where all wait for each other. One that lost is
// tried again only after twice as many iterations as the time before.
//
// Training stands still while costs are measured. All measurements together, the first one
// included, take at most a small part of the time since the keeper was made (KeeperPolicy): a
// measurement that does not fit yet is put off to a later look. Until costs are known nothing is
// planned by them, and the job keeps its buckets. All workers agree at each look on the time that
// has passed and on the time that was spent, so all of them measure or none does.
#ifndef SYNCOPATE_ADAPT_SCHEDULE_KEEPER_H_
#define SYNCOPATE_ADAPT_SCHEDULE_KEEPER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapt/job_exchange.h"
#include "adapt/plan_trial.h"
#include "base/clock.h"
#include "cost/communication_costs.h"
#include "model/iteration_times.h"
#include "model/schedule.h"
#include "model/tensor_table.h"
#include "schedule/planners.h"

namespace syncopate::adapt {

struct KeeperPolicy {
  int64_t first_look = 5;   // iterations that are profiled before the first plan
  int64_t look_every = 50;  // iterations from one look to the next
  double threshold = 0.15;  // a change of times or costs by more than this part makes a new plan
  schedule::ScheduleOptions planning;  // passed to the planner
  // All measurements together take at most this part of the time since Make(). One that took longer
  // than it was given counts with what it took, and the next one is put off accordingly.
  double measuring_part_max = 0.03;
  // A measurement is given what is left of that, but at most this long, the first one longer. Less
  // than the least is not worth it: it is put off until that fits.
  double first_measure_seconds_max = 2;
  double measure_seconds_max = 1;
  double measure_seconds_min = 0.25;
  // Measure in Make(), with first_measure_seconds_max, whatever part of the time that is.
  bool measure_first = false;
  // Let new schedules take turns with the one in use. The first one after measure_first is trusted.
  bool trials = true;
  // false: nothing is measured, planned or tried while the job runs, but for measure_first and the plan
  // that follows it.
  bool upkeep = true;
  // How long this worker has done what is no part of an iteration so far, such as evaluation; null: it
  // does nothing like that.
  std::function<int64_t()> outside_ns = nullptr;
  // Measures the costs within `budget_seconds`, on all workers at once, after iteration `iteration`
  // (-1: before the first). Not set: costs that are given stay, and others cannot be known.
  std::function<absl::StatusOr<cost::CommunicationCosts>(double budget_seconds, int64_t iteration)>
      measure = nullptr;
  // Must outlive the keeper.
  const Clock* clock = &MonotonicClock();
};

// All workers make one with the same arguments, and call the same functions in the same order.
// Not thread-safe.
class ScheduleKeeper {
 public:
  // `table` has the sizes; its times, if it has any, are a profile from before. `costs` as they are
  // at the start; nothing: they are not known and will be measured if the planner needs them.
  // `exchange` must outlive the keeper.
  static absl::StatusOr<std::unique_ptr<ScheduleKeeper>> Make(
      JobExchange& exchange, TensorTable table, std::string planner,
      std::optional<cost::CommunicationCosts> costs, KeeperPolicy policy = {});

  // The schedule in use. To begin with it is the planner's, if that needs neither times nor costs or
  // both are known, else buckets.
  const Schedule& schedule() const { return schedule_; }

  // Whether AfterIteration(iteration) looks. If so, nothing of this worker may be under way when it
  // is called: the training loop waits for its transfers first.
  bool LooksAfter(int64_t iteration) const;

  // What there is to be done and to be told on rank 0 after an iteration.
  struct News {
    std::optional<Schedule> next =
        {};                  // the schedule that is to come next, if there is another one
    std::string event = {};  // for people; empty: nothing
  };
  // After every iteration, from 0: its times, the transfers that ended since the last call, and the
  // schedule that it had (null: schedule()), the same on all workers. The time from the end of one call to
  // the begin of the next one is that of the iteration.
  absl::StatusOr<News> AfterIteration(int64_t iteration, const IterationTimes& times,
                                      absl::Span<const EndedTransfer> transfers,
                                      const std::shared_ptr<const Schedule>& used);
  // Whether it may ever plan another schedule than the first.
  bool PlansAgain() const;

  // As at the last plan: with the profile, and the costs.
  const TensorTable& table() const { return table_; }
  const cost::CommunicationCosts& costs() const { return costs_; }
  // What the last look found, for people: "times changed by 23 %". It says so if costs were to be
  // measured and that was put off.
  const std::string& reason() const { return reason_; }
  // Whether the planner waits for costs that are not known yet.
  bool waits_for_costs() const { return !costs_known_; }
  // What all measurements took; the workers agree on those before the last look.
  double measuring_seconds() const { return measuring_seconds_; }

 private:
  struct Profile {
    std::vector<double> forward;    // by tensor: when its forward is over
    std::vector<double> ready;      // by tensor: when its gradient is ready
    std::vector<double> transfers;  // by transfer of the schedule: how long; kUnknown
    double elapsed = 0;             // since Make()
  };

  ScheduleKeeper(JobExchange& exchange, TensorTable table, std::string planner,
                 std::optional<cost::CommunicationCosts> costs, KeeperPolicy policy);

  double Elapsed() const;
  // What a measurement may take now; nothing: less than is worth it. From agreed numbers.
  std::optional<double> MeasuringBudget(double elapsed, double most) const;
  std::string PutOff(double elapsed) const;  // for people
  absl::StatusOr<cost::CommunicationCosts> Measure(double budget_seconds, int64_t iteration);

  // Rank 0's plan to begin with, on all workers.
  absl::StatusOr<Schedule> PlanFirst(absl::string_view planner);
  // A schedule against the one in use, on rank 0.
  struct Trial {
    PlanTrial turns = {};
    Schedule before, fresh;
    PlanTrial::Plan asked = PlanTrial::Plan::kOld;  // last, of the job
  };

  // What the iteration took, by the time since the last call; nothing: something else had a part of that.
  std::optional<double> SecondsOf(int64_t iteration);
  absl::Status Look(int64_t iteration, News& news);
  // On rank 0: what is to come next, if it is another one.
  void PlanNext(int64_t iteration, News& news);
  // On rank 0, in a trial: takes the turns, and what comes of them.
  void GoOnTrying(int64_t iteration, std::optional<double> seconds, News& news);
  // The iteration had this schedule.
  void Used(const Schedule& schedule);
  void Keep(const IterationTimes& times, absl::Span<const EndedTransfer> transfers);
  // The medians of what was kept, agreed on by all workers.
  absl::StatusOr<Profile> Exchange();
  TensorTable TableOf(const Profile& profile) const;
  // How much the times of `table` differ from those planned for, as a part of the whole.
  double ChangeOf(const TensorTable& table) const;
  // Measured over predicted time of the transfers; nothing: no transfer was seen.
  absl::StatusOr<std::optional<double>> TransferRatio(const TensorTable& table,
                                                      const cost::CommunicationCosts& costs,
                                                      const Profile& profile) const;
  // Measures the costs for the first time, if that fits. Whether they are known now.
  absl::StatusOr<bool> KnowCosts(const Profile& profile, int64_t iteration);
  // Whether the costs have changed; then costs_ has the new ones. `put_off` says so if that was to
  // be measured and did not fit.
  absl::StatusOr<bool> CostsChanged(const TensorTable& table, const Profile& profile,
                                    int64_t iteration, std::string& put_off);
  double ChangeOf(const cost::CommunicationCosts& costs) const;

  JobExchange& exchange_;
  TensorTable table_;
  const std::string planner_;
  cost::CommunicationCosts costs_;
  bool costs_known_;
  const KeeperPolicy policy_;
  const int64_t begin_ns_;
  double measuring_seconds_ = 0;  // the workers agree on it at each look
  Schedule schedule_;
  Schedule planned_;  // on rank 0: the last one, unless a trial was lost
  bool profiled_ = false;
  // On rank 0.
  std::optional<Trial> trial_;
  bool trusts_ = policy_.measure_first;  // the next plan
  bool plans_later_ = false;             // there is a reason to plan, but it cannot be tried now
  int refused_ = 0;                      // trials in a row that were lost
  int64_t next_trial_ = 0;               // the iteration from which on another one may begin
  // When AfterIteration() ended last, what outside_ns said then, and whether that iteration was disturbed,
  // so that the next one is as well.
  std::optional<int64_t> ended_ns_;
  int64_t outside_ns_ = 0;
  bool disturbed_ = true;
  double usual_ratio_ = 1;  // of measured to predicted transfer times
  std::string reason_;
  // Since the last look: times by iteration, and the seconds of transfers by their first tensor.
  std::deque<std::vector<double>> forwards_, readies_;
  std::map<int, std::vector<double>> transfers_;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_SCHEDULE_KEEPER_H_
