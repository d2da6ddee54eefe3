#include "live/lab_job.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "lab/change.h"

namespace syncopate::live {

LabJob::~LabJob() {
  for (const std::string& cut : cuts_) lab_.Undo(cut).IgnoreError();
}

void LabJob::SetEnvironment(int rank) const {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  // The workers meet as under torchrun.
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(plan_.workers()));
  set("LOCAL_RANK", std::to_string(rank % plan_.slots));
  set("LOCAL_WORLD_SIZE", std::to_string(plan_.slots));
  set("MASTER_ADDR", lab_.hosts()[0].address);
  set("MASTER_PORT", std::to_string(20000 + plan_.number * 97 % 9000));
  set("TORCHELASTIC_RUN_ID", absl::StrCat(lab_.name(), "-", plan_.number));
  set("SYNCOPATE_KEY", absl::StrFormat("%064x", plan_.number + 1));
  set("SYNCOPATE_HOST", HostName(rank / plan_.slots));
  set("SYNCOPATE_TIMEOUT", "80s");
  set("SYNCOPATE_TRANSPORT", plan_.wire);
  set("SYNCOPATE_DEBUG", "INFO");
}

void LabJob::Start(const std::function<int(int rank)>& body) {
  for (int rank = 0; rank < plan_.workers(); ++rank) {
    processes_.Fork([&] {
      said_[static_cast<size_t>(rank)].Capture();
      const absl::Status placed = lab::BecomeHost(lab_.name(), HostName(rank / plan_.slots));
      if (!placed.ok()) {
        std::fprintf(stderr, "rank %d: %s\n", rank, placed.ToString().c_str());
        return 97;
      }
      SetEnvironment(rank);
      return body(rank);
    });
  }
}

void LabJob::MarkSaid() {
  said_marks_.clear();
  for (const Said& said : said_) said_marks_.push_back(said.bytes());
}

std::string LabJob::SaidSinceMark(int rank) const {
  return said_[static_cast<size_t>(rank)].From(said_marks_[static_cast<size_t>(rank)]);
}

void LabJob::WriteLog(const std::string& path) const {
  std::ofstream log(path, std::ios::app);
  for (size_t rank = 0; rank < said_.size(); ++rank) {
    log << "rank " << rank << ":\n" << said_[rank].All();
  }
}

int LabJob::Status(int rank) {
  // It stays a zombie until this object ends, so that its number is not given to another process.
  siginfo_t info = {};
  waitid(P_PID, static_cast<id_t>(processes_.pids()[static_cast<size_t>(rank)]), &info,
         WEXITED | WNOHANG | WNOWAIT);
  if (info.si_pid == 0) return -1;
  return info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
}

bool LabJob::WaitForEnds(const std::vector<int>& ranks, int64_t limit_ns) {
  const int64_t until_ns = MonotonicClock().NowNs() + limit_ns;
  const auto ended = [&](int rank) { return Status(rank) != -1; };
  while (!std::all_of(ranks.begin(), ranks.end(), ended)) {
    if (MonotonicClock().NowNs() > until_ns) return false;
    usleep(1000);
  }
  return true;
}

absl::Status LabJob::Cut(const Blow& blow) {
  std::vector<std::string> words = {"cut", HostName(blow.host)};
  if (blow.from_host >= 0) words.push_back(HostName(blow.from_host));
  if (blow.fault != Fault::kCut) {
    words.insert(words.end(), {"--one-way", blow.fault == Fault::kCutIn ? "in" : "out"});
  }
  absl::StatusOr<lab::Change> change = lab::ParseChange(lab_.plan().spec, words);
  if (!change.ok()) return change.status();
  absl::StatusOr<std::string> name = lab_.Apply(*change, "");
  if (!name.ok()) return name.status();
  cuts_.push_back(*name);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LabJob::Strike(const Case& each) {
  int64_t blow_ns = 0;
  for (const Blow& blow : each.blows) {
    usleep(static_cast<useconds_t>(blow.delay_ms) * 1000);
    blow_ns = MonotonicClock().NowNs();
    if (blow.fault == Fault::kKill || blow.fault == Fault::kStop) {
      processes_.Signal(blow.victims[0], blow.fault == Fault::kKill ? SIGKILL : SIGSTOP);
      continue;
    }
    if (const absl::Status cut = Cut(blow); !cut.ok()) return cut;
    // Labs are changed one at a time on a machine, so this may have waited for others.
    blow_ns = MonotonicClock().NowNs();
  }
  return blow_ns;
}

absl::Status LabJob::Heal(const Case& each) {
  absl::Status healed;
  for (const std::string& cut : cuts_) healed.Update(lab_.Undo(cut));
  cuts_.clear();
  for (const Blow& blow : each.blows) {
    if (blow.fault == Fault::kStop) processes_.Signal(blow.victims[0], SIGCONT);
  }
  return healed;
}

}  // namespace syncopate::live
