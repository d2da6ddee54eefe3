// A contestant as the command sees it: processes that it started and the control sockets to their
// ranks.
#ifndef SYNCOPATE_TOOLS_BENCH_CONTESTANT_PROCESS_H_
#define SYNCOPATE_TOOLS_BENCH_CONTESTANT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "tools/bench/launch_plan.h"
#include "tools/bench/protocol.h"
#include "tools/bench/rounds.h"

namespace syncopate::tools::bench {

struct ContestantSettings {
  std::string name;
  std::string directory;  // private; the control socket and the log are made in it
  int workers = 1;
  absl::Duration timeout;  // of the start, and of every run
  int interrupt_fd = -1;   // readable when the user wants to stop
};

// Every wait ends at its deadline, when a rank or the launcher ends, or when the user wants to
// stop. When the object goes, its processes are told to end, and killed if they do not.
class ContestantProcess final : public Entrant {
 public:
  // Returns when all ranks have said hello.
  static absl::StatusOr<std::unique_ptr<ContestantProcess>> Start(ContestantSettings settings,
                                                                  const LaunchPlan& plan,
                                                                  const Clock& clock);
  ~ContestantProcess() override;

  const std::string& name() const override { return settings_.name; }
  absl::StatusOr<std::vector<RankResult>> Run(const RunRequest& request) override;

  // The ranks' processes, by rank.
  std::vector<pid_t> pids() const;

 private:
  struct Rank {
    UniqueFd fd;  // closed: it has ended
    pid_t pid = 0;
    std::string received;  // the beginning of a line
  };

  ContestantProcess(ContestantSettings settings, const Clock& clock)
      : settings_(std::move(settings)), log_(settings_.directory + "/log"), clock_(clock) {}

  absl::Status Launch(const LaunchPlan& plan);
  absl::Status Accept();
  // Reads one line from every connected rank. Fails at the first that is an error.
  absl::Status ReadLines(std::vector<std::string>* lines);
  absl::Status ReadSome(Rank& rank);
  // Sleeps until one of `fds` is readable.
  absl::Status Await(const std::vector<int>& fds, int64_t deadline_ns, std::vector<bool>* readable);
  // `what`, with how the launcher ended and the last words of its log.
  absl::Status Ended(const std::string& what);
  bool LauncherEnded();
  void WaitForEnd(int64_t patience_ns);

  const ContestantSettings settings_;
  const std::string log_;  // path
  const Clock& clock_;
  UniqueFd listener_;
  pid_t launcher_ = -1;  // leads its own process group; -1: reaped
  int launcher_status_ = 0;
  bool broken_ = false;  // ranks are in the middle of a run and will not hear "quit"
  std::vector<Rank> ranks_;
};

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_CONTESTANT_PROCESS_H_
