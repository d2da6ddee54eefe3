// The processes of one job on the hosts of a lab, and what can be done to them.
#ifndef SYNCOPATE_TESTS_LIVE_LAB_JOB_H_
#define SYNCOPATE_TESTS_LIVE_LAB_JOB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/lab.h"
#include "live/plan.h"
#include "live/said.h"
#include "tests/forked.h"

namespace syncopate::live {

// The calling process must have one thread: the workers are forked from it. They end with this
// object, and cuts that stand are undone.
class LabJob {
 public:
  // The lab must outlive it.
  LabJob(lab::Lab& lab, const JobPlan& plan)
      : lab_(lab), plan_(plan), said_(static_cast<size_t>(plan.workers())) {}
  ~LabJob();

  // Starts all workers; each runs `body` with its rank on its host, with the environment of its job,
  // and ends with the exit code that `body` returns.
  void Start(const std::function<int(int rank)>& body);

  // What a worker has said on its standard error: all of it, or since MarkSaid().
  std::string SaidByNow(int rank) const { return said_[static_cast<size_t>(rank)].All(); }
  void MarkSaid();
  std::string SaidSinceMark(int rank) const;
  // Adds all of it to a file.
  void WriteLog(const std::string& path) const;

  // The wait status of a worker that has ended, -1 of one that runs.
  int Status(int rank);
  // Whether all of them have ended by then.
  bool WaitForEnds(const std::vector<int>& ranks, int64_t limit_ns);

  // Lets the blows fall; returns when the last one had.
  absl::StatusOr<int64_t> Strike(const Case& each);
  // Undoes cuts and lets go on who was stopped.
  absl::Status Heal(const Case& each);

 private:
  std::string HostName(int host) const { return lab_.hosts()[static_cast<size_t>(host)].name; }
  void SetEnvironment(int rank) const;
  absl::Status Cut(const Blow& blow);

  lab::Lab& lab_;
  const JobPlan& plan_;
  std::vector<Said> said_;            // by rank
  std::vector<uint64_t> said_marks_;  // how much of it there was
  Forked processes_;
  std::vector<std::string> cuts_;  // that stand
};

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_LAB_JOB_H_
