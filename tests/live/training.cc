#include "live/training.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "live/lab_job.h"
#include "live/said.h"
#include "train/options/train_options.h"

namespace syncopate::live {
namespace {

constexpr int64_t kTrainingStartNs = 180'000'000'000;
constexpr int64_t kTrainingNoticeNs = 40'000'000'000;
constexpr int64_t kEndNs = 30'000'000'000;
constexpr int kIterations = 3;  // that are behind all workers before the fault

constexpr absl::string_view kComplaint = "syncopate train: rank ";

// The line by which a rank of a training job complains; empty if there is none.
std::string Complaint(const std::string& said) {
  for (const absl::string_view line : absl::StrSplit(said, '\n')) {
    if (absl::StartsWith(line, kComplaint)) return std::string(line);
  }
  return "";
}

class Training {
 public:
  Training(lab::Lab& lab, const JobPlan& plan)
      : plan_(plan),
        each_(plan.cases[0]),
        victims_(each_.Victims()),
        outcome_(BeginOutcome(plan, 0)),
        workers_(lab, plan) {
    outcome_.workers = plan.workers();
    for (int rank = 0; rank < plan.workers(); ++rank) {
      if (std::find(victims_.begin(), victims_.end(), rank) == victims_.end()) {
        survivors_.push_back(rank);
      }
    }
  }

  Outcome Run() {
    workers_.Start([this](int) { return Become(); });
    if (!WaitUntilUnderWay()) {
      Fail("hang: no training before the fault: ", workers_.SaidByNow(0));
      return outcome_;
    }
    usleep(static_cast<useconds_t>(each_.wait_ms) * 1000);
    workers_.MarkSaid();
    const absl::StatusOr<int64_t> blow_ns = workers_.Strike(each_);
    if (!blow_ns.ok()) {
      Fail("other: no fault: ", blow_ns.status().ToString());
      return outcome_;
    }
    if (WaitForComplaints(*blow_ns)) Compare();
    const absl::Status healed = workers_.Heal(each_);
    if (!healed.ok()) Fail("other: ", healed.ToString());
    if (!workers_.WaitForEnds(victims_, kEndNs)) {
      for (const int victim : victims_) {
        if (workers_.Status(victim) == -1) Fail("hang: victim ", victim, " does not end");
      }
    }
    return outcome_;
  }

  void WriteLog(const std::string& path) const { workers_.WriteLog(path); }

 private:
  template <typename... Words>
  void Fail(const Words&... words) {
    outcome_.failures.push_back(absl::StrCat(words...));
  }

  // In the worker's process.
  int Become() const {
    train::TrainOptions options;
    options.model = "mlp";
    options.data = "synthetic";
    options.batch = 16 * plan_.workers();
    options.iterations = 1'000'000;
    options.report_every = 1;
    options.threads = 1;
    setenv(train::kTrainOptionsVariable, train::ToJson(options).c_str(), 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
    dup2(nothing.get(), STDOUT_FILENO);
    execl(TrainingProgram().c_str(), "syncopate-train", "campaign", "--progress", nullptr);
    return 96;
  }

  bool WaitUntilUnderWay() {
    const int64_t until_ns = MonotonicClock().NowNs() + kTrainingStartNs;
    const std::string line = absl::StrCat("iteration ", kIterations, " of ");
    while (!absl::StrContains(workers_.SaidByNow(0), line)) {
      if (workers_.Status(0) != -1 || MonotonicClock().NowNs() > until_ns) return false;
      usleep(5000);
    }
    return true;
  }

  // Until every survivor has said whom it blames, and has ended.
  bool WaitForComplaints(int64_t blow_ns) {
    std::map<int, int64_t> noticed_ns;
    while (noticed_ns.size() < survivors_.size()) {
      const int64_t now_ns = MonotonicClock().NowNs();
      for (const int rank : survivors_) {
        if (noticed_ns.count(rank) > 0) continue;
        const bool complains = !Complaint(workers_.SaidSinceMark(rank)).empty();
        if (complains || workers_.Status(rank) != -1) noticed_ns[rank] = now_ns;
      }
      if (now_ns - blow_ns > kTrainingNoticeNs) break;
      usleep(2000);
    }
    for (const int rank : survivors_) {
      if (noticed_ns.count(rank) == 0) Fail("hang: rank ", rank, " does not notice the loss");
    }
    for (const auto& [rank, ns] : noticed_ns) {
      outcome_.noticed_ms = std::max(outcome_.noticed_ms, (ns - blow_ns) / 1'000'000);
    }
    if (outcome_.failures.empty() && !workers_.WaitForEnds(survivors_, kEndNs)) {
      Fail("hang: not all survivors end");
    }
    return outcome_.failures.empty();
  }

  void Compare() {
    std::set<int> suspects;
    std::string all;
    for (const int rank : survivors_) {
      const std::string said = workers_.SaidSinceMark(rank);
      outcome_.pause_ms = std::max(outcome_.pause_ms, PauseMsIn(said));
      const std::string complaint = Complaint(said);
      absl::StrAppend(&all, all.empty() ? "" : "; ", complaint);
      const std::optional<int> suspect = SuspectIn(complaint);
      const int status = workers_.Status(rank);
      if (!suspect || !WIFEXITED(status) || WEXITSTATUS(status) != 1) {
        Fail("other: rank ", rank, " ended with wait status ", status, " and said: ", complaint);
        continue;
      }
      suspects.insert(*suspect);
      if (std::find(victims_.begin(), victims_.end(), *suspect) == victims_.end()) {
        Fail("live worker suspected: ", complaint);
      }
    }
    if (suspects.size() > 1) Fail("differing suspects: ", all);
    JudgeTime(each_, outcome_);
  }

  const JobPlan& plan_;
  const Case& each_;
  const std::vector<int> victims_;
  std::vector<int> survivors_;
  Outcome outcome_;
  LabJob workers_;
};

}  // namespace

std::string TrainingProgram() {
#ifdef SYNCOPATE_TRAIN_WORKER
  if (access(SYNCOPATE_TRAIN_WORKER, X_OK) == 0) return SYNCOPATE_TRAIN_WORKER;
#endif
  return "";
}

std::optional<int> SuspectIn(absl::string_view said) {
  const std::vector<absl::string_view> parts = absl::StrSplit(said, ": worker ");
  int rank = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[1].substr(0, parts[1].find(' ')), &rank)) {
    return std::nullopt;
  }
  return rank;
}

Outcome RunTraining(lab::Lab& lab, const JobPlan& plan, const std::string& log) {
  Training training(lab, plan);
  Outcome outcome = training.Run();
  if (!log.empty()) training.WriteLog(log);
  return outcome;
}

}  // namespace syncopate::live
