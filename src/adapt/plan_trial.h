// Tries a new plan against the one in use before it is trusted: both take turns under the same conditions,
// and the one with the better median iteration stays.
//
//   new (none counts), old (the next ones say what is usual), new, old, old, new: 3 iterations each
//
// In the first turn the collectives of the new plan are planned, which is no cost of later iterations. A
// turn of the new plan ends at once when an iteration takes twice the old plan's median. The iteration in
// which plans change counts for neither.
//
// A state machine without a clock. It says which plan is wanted, and is told which one each iteration had:
// when a change is in force is for others to agree on, and until then iterations count for nothing.
#ifndef SYNCOPATE_ADAPT_PLAN_TRIAL_H_
#define SYNCOPATE_ADAPT_PLAN_TRIAL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::adapt {

class PlanTrial {
 public:
  enum class Plan { kOld, kNew };

  static constexpr int kTurn = 3;       // iterations of a turn that count
  static constexpr int kUsual = 5;      // of the old plan before the first one that counts
  static constexpr double kFarOff = 2;  // times the old plan's median ends a turn of the new one
  // Iterations of a turn that do not count, among them those until a change is in force.
  static constexpr int kChangeMost = 50;
  // A new plan that is better by less than this part is not: there is as much noise.
  static constexpr double kBetterBy = 0.02;

  // The plan that is wanted now. To be put in force where it differs from the last one that was wanted;
  // before the trial that is the old one.
  Plan wanted() const { return wanted_; }
  // It is decided: the wanted plan stays.
  bool over() const { return over_; }

  // An iteration has ended that had this plan. `seconds` from its begin to the begin of the next; nothing:
  // something else took a part of that, so that it counts for neither plan.
  void Iteration(Plan had, std::optional<double> seconds);
  // Iterations are no longer what they were, such as when a worker is lost: the old plan stays.
  void Stop(std::string why);

  // What came out, for people and for metrics; once it is over.
  struct Outcome {
    double old_seconds = 0;  // medians; 0: there was none
    double new_seconds = 0;
    int old_iterations = 0;  // that counted
    int new_iterations = 0;
    std::string why = {};  // "3.1 ms an iteration instead of 4.0 ms: it stays"
  };
  const Outcome& outcome() const { return outcome_; }

 private:
  struct Turn {
    Plan plan;
    int iterations;
    bool counts;
  };
  static const std::vector<Turn>& Turns();
  // The median of what is known of the old plan so far; 0: nothing.
  double Usual() const;
  void NextTurn();
  void Decide();

  Plan wanted_ = Plan::kNew;
  bool over_ = false;
  size_t turn_ = 0;
  int seen_ = 0;          // iterations of this turn
  int waited_ = 0;        // iterations of this turn that do not count
  bool changing_ = true;  // the first iteration of this turn is one in which plans change
  std::vector<double> usual_, old_, new_;
  Outcome outcome_;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_PLAN_TRIAL_H_
