// A service of one's own: a list of tasks that workers take one by one, at their own speed. Rank 0,
// which hosts it, kills itself at its third task; rank 1 goes on with the list, and the task that
// rank 0 had not done is given to another one.
//
//   syncopate launch -n 4 --on-failure continue -- ./own_service
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "absl/time/clock.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"

// Every request says that the task before is done and asks for another one. The answer is its number,
// or nothing once all tasks are done.
class Tasks : public syncopate::Service {
 public:
  absl::string_view name() const override { return "tasks"; }

  syncopate::ServiceStep Step(const syncopate::ServiceContext&,
                              const syncopate::ServiceEvent& event) override {
    if (const auto* asked = std::get_if<syncopate::ServiceAsked>(&event)) {
      held_.erase(asked->from);
      waiting_[asked->from] = asked->ticket;
    } else if (const auto* gone = std::get_if<syncopate::ServiceDeparted>(&event)) {
      const auto task = held_.find(gone->rank);
      if (task != held_.end()) open_.insert(task->second);
      held_.erase(gone->rank);
      waiting_.erase(gone->rank);
    }
    // A worker that finds no task waits: one that is under way may come back.
    syncopate::ServiceStep step;
    while (!waiting_.empty() && (!open_.empty() || held_.empty())) {
      const auto [rank, ticket] = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      step.answers.push_back({.to = rank, .ticket = ticket});
      if (open_.empty()) continue;
      step.answers.back().bytes = std::to_string(*open_.begin());
      held_[rank] = *open_.begin();
      open_.erase(open_.begin());
    }
    return step;
  }

  // All that Step() depends on: the standby, and whoever stands by after it, begin with this.
  std::string State() const override {
    std::ostringstream state;
    for (const int task : open_) state << "open 0 " << task << " ";
    for (const auto& [rank, task] : held_) state << "held " << rank << " " << task << " ";
    for (const auto& [rank, ticket] : waiting_) state << "waits " << rank << " " << ticket << " ";
    return state.str();
  }
  absl::Status Load(absl::string_view text) override {
    *this = Tasks(0);
    std::istringstream state{std::string(text)};
    std::string what;
    uint64_t number = 0;
    for (int rank = 0; state >> what >> rank >> number;) {
      if (what == "open") open_.insert(static_cast<int>(number));
      if (what == "held") held_[rank] = static_cast<int>(number);
      if (what == "waits") waiting_[rank] = number;
    }
    return state.eof() ? absl::OkStatus() : absl::DataLossError("the tasks cannot be read");
  }

  explicit Tasks(int tasks) {
    for (int task = 0; task < tasks; ++task) open_.insert(task);
  }

 private:
  std::set<int> open_;               // that nobody works on
  std::map<int, int> held_;          // by rank: the task that it works on
  std::map<int, uint64_t> waiting_;  // by rank: its ticket
};

absl::Status Run() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  const int rank = (*worker)->rank();
  absl::Status status = (*worker)->AddService(std::make_unique<Tasks>(40));
  if (!status.ok()) return status;

  for (int done = 0;; ++done) {
    const absl::StatusOr<std::string> task = (*worker)->Ask("tasks", "");
    if (!task.ok()) return task.status();
    if (task->empty()) break;
    if (rank == 0 && done == 2) std::raise(SIGKILL);
    absl::SleepFor(absl::Milliseconds(5 * (rank + 1)));  // the work
  }
  std::printf("rank %d: all tasks are done\n", rank);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
