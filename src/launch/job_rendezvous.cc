#include "launch/job_rendezvous.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/proof.h"
#include "base/status.h"
#include "control/interfaces.h"
#include "launch/agent_command.h"

namespace syncopate::launch {
namespace {

absl::StatusOr<std::string> AddressToBind(const LaunchOptions& options) {
  const std::string own_name = OwnHostName();
  const bool all_here =
      options.agent.empty() && options.interfaces.empty() &&
      std::all_of(options.hosts.begin(), options.hosts.end(),
                  [&](const HostRanks& place) { return IsThisHost(place.host, own_name); });
  if (all_here) return "127.0.0.1";
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<control::InterfaceAddress> list,
                             control::ListInterfaces());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<control::InterfaceAddress> chosen,
                             control::ChooseInterfaces(options.interfaces, list));
  return chosen.front().address;
}

}  // namespace

std::string OwnHostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

absl::StatusOr<std::unique_ptr<JobRendezvous>> JobRendezvous::Start(const LaunchOptions& options,
                                                                    const Clock& clock) {
  std::unique_ptr<JobRendezvous> job(new JobRendezvous);
  job->news_ready_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!job->news_ready_.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot make an eventfd: ", std::strerror(errno)));
  }
  {
    MutexLock lock(&job->mutex_);
    job->came_.resize(static_cast<size_t>(options.ranks));
  }
  control::RendezvousServerOptions server;
  SYNCOPATE_ASSIGN_OR_RETURN(server.address, AddressToBind(options));
  SYNCOPATE_ASSIGN_OR_RETURN(job->key_, RandomBytes(kKeyBytes));
  server.job = options.job;
  server.size = options.ranks;
  server.key = job->key_;
  for (const HostRanks& place : options.hosts) {
    server.hosts.insert(server.hosts.end(), static_cast<size_t>(place.ranks), place.host);
  }
  server.on_step = [job = job.get()](const services::RendezvousState& state) {
    MutexLock lock(&job->mutex_);
    for (size_t rank = 0; rank < state.seats.size(); ++rank) {
      if (state.seats[rank].taken) job->came_[rank] = job->any_came_ = true;
    }
    if (state.phase != services::RendezvousState::Phase::kGathering) job->over_ = true;
    job->TellNews();
  };
  server.on_waiting = [job = job.get()](const std::string& missing) {
    MutexLock lock(&job->mutex_);
    job->waiting_ = missing;
    job->TellNews();
  };
  SYNCOPATE_ASSIGN_OR_RETURN(job->server_,
                             control::RendezvousServer::Start(std::move(server), clock));
  return job;
}

std::vector<std::string> JobRendezvous::Variables() const {
  return {absl::StrCat("SYNCOPATE_RENDEZVOUS=", server_->address()),
          absl::StrCat("SYNCOPATE_KEY=", FormatKey(key_))};
}

void JobRendezvous::TakeNews() {
  uint64_t count = 0;
  (void)!read(news_ready_.get(), &count, sizeof(count));
}

void JobRendezvous::TellNews() {
  const uint64_t one = 1;
  (void)!write(news_ready_.get(), &one, sizeof(one));
}

std::string JobRendezvous::TakeWaiting() {
  MutexLock lock(&mutex_);
  return std::exchange(waiting_, "");
}

bool JobRendezvous::AnyCame() const {
  MutexLock lock(&mutex_);
  return any_came_;
}

bool JobRendezvous::IsOver() const {
  MutexLock lock(&mutex_);
  return over_;
}

std::vector<int> JobRendezvous::Missing() const {
  MutexLock lock(&mutex_);
  std::vector<int> missing;
  for (size_t rank = 0; rank < came_.size(); ++rank) {
    if (!came_[rank]) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

}  // namespace syncopate::launch
