// The rendezvous that the launcher runs for the workers of a job on many hosts, and what it knows
// from it: which ranks have come.
#ifndef SYNCOPATE_LAUNCH_JOB_RENDEZVOUS_H_
#define SYNCOPATE_LAUNCH_JOB_RENDEZVOUS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "control/rendezvous_server.h"
#include "launch/launcher.h"

namespace syncopate::launch {

// The machine's name, for messages and to know it among others.
std::string OwnHostName();

// The rendezvous' thread writes, the supervisor reads: thread-safe.
class JobRendezvous {
 public:
  // Binds loopback if all hosts are this one, else the address of the interface that the user or
  // the default names. Starts threads: the process must not fork after it.
  static absl::StatusOr<std::unique_ptr<JobRendezvous>> Start(const LaunchOptions& options,
                                                              const Clock& clock);

  // Variables for the workers.
  std::vector<std::string> Variables() const;
  int news_fd() const { return news_ready_.get(); }  // readable when something has changed
  void TakeNews();                                   // makes it unreadable again

  bool AnyCame() const;
  bool IsOver() const;  // all have met, or they never will
  std::vector<int> Missing() const;
  // "rank 2 on h2" if it is time to tell the user who is missing; else empty. Once each time.
  std::string TakeWaiting();

 private:
  JobRendezvous() = default;
  void TellNews();

  std::string key_;
  UniqueFd news_ready_;  // an eventfd
  mutable Mutex mutex_;
  std::vector<bool> came_ ABSL_GUARDED_BY(mutex_);
  bool any_came_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<control::RendezvousServer> server_;  // last: its thread uses the others
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_JOB_RENDEZVOUS_H_
