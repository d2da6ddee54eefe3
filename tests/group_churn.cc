#include "tests/group_churn.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "syncopate/syncopate.h"
#include "tests/host_workers.h"
#include "tests/worker_processes.h"

namespace syncopate {
namespace {

constexpr uint64_t kChurn = 1, kTimed = 2, kEnd = 3;  // makers of keys
constexpr int kTimedMembers = 4;
constexpr size_t kTimedElements = 1 << 18;

// What this process takes of the machine's memory, with all of the memory files that it has.
int64_t MemoryBytes() {
  int64_t bytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    status >> bytes;
    bytes *= 1024;
    break;
  }
  std::set<ino_t> seen;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  while (const dirent* entry = readdir(folder)) {
    const std::string path = absl::StrCat("/proc/self/fd/", entry->d_name);
    char target[256] = {};
    if (readlink(path.c_str(), target, sizeof(target) - 1) <= 0) continue;
    struct stat info = {};
    if (!absl::StartsWith(target, "/memfd:") || stat(path.c_str(), &info) != 0) continue;
    if (seen.insert(info.st_ino).second) bytes += int64_t{info.st_blocks} * 512;
  }
  closedir(folder);
  return bytes;
}

int64_t MedianNs(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

int64_t NowNs() { return absl::GetCurrentTimeNanos(); }

// One worker's way through the groups.
class Churner {
 public:
  Churner(const ChurnOptions& options, Worker& worker, const std::vector<std::vector<int>>& groups,
          const std::vector<uint64_t>& deaths, ChurnOfWorker& told)
      : options_(options),
        worker_(worker),
        groups_(groups),
        deaths_(deaths),
        told_(told),
        data_(options.elements) {}

  // The exit code.
  int Run() {
    MemoryBytes();  // so that what it needs itself is there before the first mark
    if (!worker_.world().Barrier().ok()) return 11;
    for (uint64_t number = 0; number < groups_.size(); ++number) {
      if (number == options_.first_mark) told_.bytes_first = MemoryBytes();
      const std::vector<int>& members = groups_[number];
      if (!std::binary_search(members.begin(), members.end(), worker_.rank())) continue;
      if (Failed(Meet(number, members),
                 absl::StrCat("group ", number, " {", absl::StrJoin(members, ","), "}"))) {
        return 12;
      }
    }
    told_.bytes_last = MemoryBytes();
    // Nobody begins to take more memory, or leaves, before all that live have come so far.
    if (Failed(AwaitLiving(1), "all that live")) return 13;
    if (Failed(Time(), "new groups beside an old one")) return 14;
    return Failed(AwaitLiving(2), "all that live, at the end") ? 15 : 0;
  }

 private:
  bool Failed(const absl::Status& status, const std::string& what) const {
    if (status.ok()) return false;
    std::fprintf(stderr, "rank %d, %s: %s\n", worker_.rank(), what.c_str(),
                 status.ToString().c_str());
    return true;
  }

  // Averages in one group; OK also if it failed for a member that dies.
  absl::Status Meet(uint64_t number, const std::vector<int>& members) {
    float sum = 0;
    bool intact = true, dying = false;
    for (const int member : members) {
      sum += static_cast<float>(member + 1);
      const uint64_t death = deaths_[static_cast<size_t>(member)];
      intact = intact && number < death;
      dying = dying || number == death;
    }
    absl::StatusOr<Group> group = worker_.NewGroup(members, {.maker = kChurn, .number = number});
    absl::Status status = group.status();
    if (status.ok()) {
      std::fill(data_.begin(), data_.end(), static_cast<float>(worker_.rank() + 1));
      const Call call = {.collective = Collective::kAllReduce,
                         .data = Array::Of(data_.data(), data_.size()),
                         .op = ReduceOp::kSum};
      if (deaths_[static_cast<size_t>(worker_.rank())] == number) {
        Handle handle = group->Start(call);
        std::raise(SIGKILL);
      }
      status = group->Run(call);
    }
    if (status.ok() && (intact || dying)) {
      ++told_.met;
      if (data_.front() == sum && data_.back() == sum) return status;
      return absl::DataLossError(absl::StrCat(data_.front(), " instead of ", sum));
    }
    if (intact || status.ok()) {
      return intact ? status : absl::InternalError("there was a result without a dead member");
    }
    const std::optional<int> suspect = GetSuspect(status);
    if (!suspect || deaths_[static_cast<size_t>(*suspect)] > number) return status;
    ++told_.lost;
    return absl::OkStatus();
  }

  // 1 MiB on new groups and on one that stays, in turns, by the first workers alone.
  absl::Status Time() {
    std::vector<int> members;
    for (int rank = 0; rank < std::min(kTimedMembers, worker_.size()); ++rank)
      members.push_back(rank);
    if (options_.timed_rounds == 0 || worker_.rank() >= static_cast<int>(members.size()))
      return absl::OkStatus();
    absl::StatusOr<Buffer> buffer = worker_.Allocate(kTimedElements * sizeof(float));
    if (!buffer.ok()) return buffer.status();
    absl::StatusOr<Group> cached = worker_.NewGroup(members, {.maker = kTimed, .number = 0});
    if (!cached.ok()) return cached.status();
    const Array array = Array::Of(buffer->as<float>(), kTimedElements);
    std::fill_n(buffer->as<float>(), kTimedElements, 0.0f);
    std::vector<int64_t> cached_ns, fresh_ns;
    for (int round = 1; round <= options_.timed_rounds; ++round) {
      SYNCOPATE_RETURN_IF_ERROR(cached->Barrier());
      int64_t begin_ns = NowNs();
      SYNCOPATE_RETURN_IF_ERROR(cached->AllReduce(array, ReduceOp::kSum));
      cached_ns.push_back(NowNs() - begin_ns);
      SYNCOPATE_RETURN_IF_ERROR(cached->Barrier());
      begin_ns = NowNs();
      absl::StatusOr<Group> fresh =
          worker_.NewGroup(members, {.maker = kTimed, .number = static_cast<uint64_t>(round)});
      if (!fresh.ok()) return fresh.status();
      SYNCOPATE_RETURN_IF_ERROR(fresh->AllReduce(array, ReduceOp::kSum));
      fresh_ns.push_back(NowNs() - begin_ns);
    }
    told_.cached_ns = MedianNs(std::move(cached_ns));
    told_.fresh_ns = MedianNs(std::move(fresh_ns));
    return absl::OkStatus();
  }

  absl::Status AwaitLiving(uint64_t number) {
    std::vector<int> living;
    for (int rank = 0; rank < worker_.size(); ++rank) {
      if (deaths_[static_cast<size_t>(rank)] == UINT64_MAX) living.push_back(rank);
    }
    absl::StatusOr<Group> group = worker_.NewGroup(living, {.maker = kEnd, .number = number});
    if (!group.ok()) return group.status();
    // Some come late: those that time groups, on a machine that may be busy or stand still meanwhile.
    return group->Run({.collective = Collective::kBarrier, .timeout = options_.limit});
  }

  const ChurnOptions& options_;
  Worker& worker_;
  const std::vector<std::vector<int>>& groups_;
  const std::vector<uint64_t>& deaths_;
  ChurnOfWorker& told_;
  std::vector<float> data_;
};

}  // namespace

std::vector<std::vector<int>> DrawGroups(const ChurnOptions& options) {
  std::vector<uint32_t> sets;
  for (uint32_t set = 0; set < 1u << options.workers; ++set) {
    const int size = std::popcount(set);
    if (size >= options.size_min && size <= options.size_max) sets.push_back(set);
  }
  Random random(options.seed);
  std::vector<std::vector<int>> groups;
  for (size_t i = 0; groups.size() < options.groups && i < sets.size(); ++i) {
    std::swap(sets[i], sets[i + random.Below(sets.size() - i)]);
    std::vector<int>& members = groups.emplace_back();
    for (int rank = 0; rank < options.workers; ++rank) {
      if ((sets[i] >> rank & 1) != 0) members.push_back(rank);
    }
  }
  return groups;
}

std::vector<uint64_t> DrawDeaths(const ChurnOptions& options,
                                 const std::vector<std::vector<int>>& groups) {
  std::vector<uint64_t> deaths(static_cast<size_t>(options.workers), UINT64_MAX);
  uint64_t due = options.death_every;
  for (int rank = options.workers - 1; due > 0 && rank >= options.size_max; --rank) {
    // In the first group from then on that it is a member of, with nobody who died before.
    for (uint64_t number = due; number < groups.size(); ++number) {
      const std::vector<int>& members = groups[number];
      if (members.back() != rank) continue;  // the last ranks die first
      deaths[static_cast<size_t>(rank)] = number;
      break;
    }
    due += options.death_every;
  }
  return deaths;
}

absl::Status RunChurn(const ChurnOptions& options, ChurnReport& report) {
  const std::vector<std::vector<int>> groups = DrawGroups(options);
  const std::vector<uint64_t> deaths = DrawDeaths(options, groups);
  const auto body = [&](Worker& worker) {
    ChurnOfWorker& told = report.workers[static_cast<size_t>(worker.rank())];
    return Churner(options, worker, groups, deaths, told).Run();
  };
  std::unique_ptr<Forked> workers;
  if (options.tcp) {
    workers = HostWorkers::OnLoopback(options.workers, 1, body);
  } else {
    workers = std::make_unique<WorkerProcesses>(options.workers, body);
  }
  const std::vector<int> codes = workers->Join(options.limit);
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    const int code = codes[rank];
    const bool dies = deaths[rank] != UINT64_MAX;
    const bool right = dies ? WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL : code == 0;
    if (right) continue;
    return absl::InternalError(absl::StrCat(
        "worker ", rank, code == -1 ? " did not end in time" : " ended with ",
        code == -1 ? "" : absl::StrCat(WIFEXITED(code) ? WEXITSTATUS(code) : -WTERMSIG(code))));
  }
  return absl::OkStatus();
}

}  // namespace syncopate
