#include "live/job.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "live/lab_job.h"
#include "live/member.h"
#include "live/said.h"
#include "live/story.h"
#include "live/training.h"
#include "tests/forked.h"
#include "tests/worker_processes.h"

namespace syncopate::live {
namespace {

// What has not happened by then never will: a hang.
constexpr int64_t kStartNs = 90'000'000'000;
constexpr int64_t kNoticeNs = 25'000'000'000;
constexpr int64_t kGoOnNs = 40'000'000'000;
constexpr int64_t kVictimNs = 30'000'000'000;
constexpr int64_t kLeaveNs = 30'000'000'000;

class Job {
 public:
  Job(lab::Lab& lab, const JobPlan& plan, const JobOptions& options)
      : plan_(plan), options_(options), workers_(lab, plan) {
    for (int rank = 0; rank < plan.workers(); ++rank) alive_.push_back(rank);
  }

  std::vector<Outcome> Run() {
    workers_.Start([&](int) { return Body(); });
    std::vector<Outcome> outcomes = RunCases();
    if (!options_.log.empty()) workers_.WriteLog(options_.log);
    return outcomes;
  }

 private:
  std::vector<Outcome> RunCases() {
    std::vector<Outcome> outcomes;
    const int cases = std::min<int>(options_.cases, static_cast<int>(plan_.cases.size()));
    for (int number = 0; number < cases; ++number) {
      outcomes.push_back(RunCase(number));
      if (number + 1 == cases && outcomes.back().failures.empty()) Leave(outcomes.back());
      if (!outcomes.back().failures.empty()) break;
    }
    return outcomes;
  }

  // In the worker's process.
  int Body() {
    return RunAsWorker({}, [&](Worker& worker) {
      RunMember(worker, plan_, *story_);
      return 0;
    });
  }

  // Whether all who should be there have come so far by then; gives up early if one of them ends.
  bool WaitFor(int64_t limit_ns, const std::function<bool(const Account&)>& reached) {
    const int64_t until_ns = MonotonicClock().NowNs() + limit_ns;
    for (;;) {
      bool all = true, ended = false;
      for (const int rank : alive_) {
        all = all && reached(story_->accounts[rank]);
        ended = ended || workers_.Status(rank) != -1;
      }
      if (all || ended || MonotonicClock().NowNs() > until_ns) return all;
      usleep(1000);
    }
  }
  bool WaitForProgress(int64_t limit_ns, uint64_t progress) {
    return WaitFor(limit_ns,
                   [&](const Account& account) { return account.progress.load() >= progress; });
  }

  // How far the workers in `ranks` have come, as a failure.
  std::string Hang(const std::string& what, const std::vector<int>& ranks) {
    std::string text;
    for (const int rank : ranks) {
      const Account& account = story_->accounts[rank];
      const uint64_t progress = account.progress.load();
      absl::StrAppend(&text, text.empty() ? "" : "; ", "rank ", rank, ": ", progress >> 32,
                      " losses, then ", progress & 0xffffffff, " rounds");
      const int status = workers_.Status(rank);
      if (status != -1) absl::StrAppend(&text, ", ended with wait status ", status);
      if (account.why[0] != 0) absl::StrAppend(&text, " (", account.why, ")");
    }
    return absl::StrCat("hang: ", what, ": ", text);
  }

  Outcome RunCase(int number) {
    const Case& each = plan_.cases[static_cast<size_t>(number)];
    const std::vector<int> victims = each.Victims();
    const uint64_t before = static_cast<uint64_t>(plan_.workers()) - alive_.size();
    const bool works = WaitForProgress(number == 0 ? kStartNs : kGoOnNs,
                                       ProgressOf(before, static_cast<uint64_t>(each.rounds)));
    const std::string hang = works ? "" : Hang("no operations before the fault", alive_);
    for (const int victim : victims) std::erase(alive_, victim);
    const auto judge = [&](int64_t blow_ns) {
      return Judge(plan_, number, alive_, before, blow_ns, *story_);
    };
    if (!works) {
      Outcome outcome = judge(MonotonicClock().NowNs());
      if (outcome.failures.empty()) outcome.failures.push_back(hang);
      return outcome;
    }
    usleep(static_cast<useconds_t>(each.wait_ms) * 1000);
    workers_.MarkSaid();
    const absl::StatusOr<int64_t> blow_ns = workers_.Strike(each);
    if (!blow_ns.ok()) {
      Outcome outcome = judge(MonotonicClock().NowNs());
      outcome.failures.push_back(absl::StrCat("other: no fault: ", blow_ns.status().ToString()));
      return outcome;
    }
    const uint64_t after = before + victims.size();
    const bool noticed =
        WaitFor(kNoticeNs, [&](const Account& account) { return account.losses.load() >= after; });
    const bool goes_on = noticed && WaitForProgress(kGoOnNs, ProgressOf(after, 1));
    Outcome outcome = judge(*blow_ns);
    if (!goes_on && outcome.failures.empty()) {
      outcome.failures.push_back(
          Hang(noticed ? "the survivors do not go on" : "the loss is not noticed", alive_));
    }
    if (outcome.failures.empty()) EndVictims(each, outcome);
    for (const int rank : alive_) {
      outcome.pause_ms = std::max(outcome.pause_ms, PauseMsIn(workers_.SaidSinceMark(rank)));
    }
    JudgeTime(each, outcome);
    return outcome;
  }

  // Victims that were only silent must find out that they are out, and leave.
  void EndVictims(const Case& each, Outcome& outcome) {
    const auto is_cut = [](const Blow& blow) {
      return blow.fault != Fault::kKill && blow.fault != Fault::kStop;
    };
    if (!each.heals_first && std::all_of(each.blows.begin(), each.blows.end(), is_cut)) {
      workers_.WaitForEnds(each.Victims(), kVictimNs);
    }
    const absl::Status healed = workers_.Heal(each);
    if (!healed.ok()) outcome.failures.push_back(absl::StrCat("other: ", healed.ToString()));
    if (!workers_.WaitForEnds(each.Victims(), kVictimNs)) {
      outcome.failures.push_back(Hang("a victim does not end", each.Victims()));
      return;
    }
    for (const Blow& blow : each.blows) {
      for (const int victim : blow.victims) JudgeEnd(blow, victim, outcome);
    }
  }

  void JudgeEnd(const Blow& blow, int victim, Outcome& outcome) {
    const int status = workers_.Status(victim);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const bool out = status == 0 && story_->accounts[victim].end.load() == End::kOut;
    // A neighbour in shared memory ends it so that it writes no more.
    const bool fenced = killed && plan_.slots > 1;
    if (blow.fault == Fault::kKill ? killed : out || fenced) return;
    outcome.failures.push_back(absl::StrCat("other: victim ", victim, " ended with wait status ",
                                            status, ": ", story_->accounts[victim].why));
  }

  void Leave(Outcome& outcome) {
    story_->leave.store(true);
    if (!workers_.WaitForEnds(alive_, kLeaveNs)) {
      outcome.failures.push_back(Hang("the survivors do not leave", alive_));
      return;
    }
    for (const int rank : alive_) {
      if (workers_.Status(rank) == 0) continue;
      outcome.failures.push_back(
          absl::StrCat("other: rank ", rank, " left with wait status ", workers_.Status(rank)));
    }
  }

  const JobPlan& plan_;
  const JobOptions& options_;
  Shared<Story> story_;
  LabJob workers_;
  std::vector<int> alive_;
};

}  // namespace

std::vector<Outcome> RunJob(lab::Lab& lab, const JobPlan& plan, const JobOptions& options) {
  if (plan.operation == Operation::kTraining) return {RunTraining(lab, plan, options.log)};
  return Job(lab, plan, options).Run();
}

}  // namespace syncopate::live
