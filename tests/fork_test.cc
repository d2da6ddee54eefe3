// Workers that fork without exec, as PyTorch's data loaders do: their children neither hide their
// death nor take part in the job.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/host_workers.h"
#include "tests/worker_processes.h"

namespace syncopate {
namespace {

constexpr int kWorkers = 3;
constexpr int kVictim = 1;
constexpr int kChildren = 2;
constexpr int kChildSecondsMax = 60;  // a forked child ends itself after this

int64_t NowNs() { return absl::GetCurrentTimeNanos(); }

// How the workers of a job are connected.
enum class Way { kSharedMemory, kTcp, kUcx };

std::string Name(const ::testing::TestParamInfo<Way>& way) {
  switch (way.param) {
    case Way::kSharedMemory:
      return "shared_memory";
    case Way::kTcp:
      return "tcp";
    case Way::kUcx:
      return "ucx";
  }
  return "?";
}

std::unique_ptr<Forked> StartJob(Way way, const std::function<int(Worker&)>& body) {
  if (way == Way::kSharedMemory) return std::make_unique<WorkerProcesses>(kWorkers, body);
  setenv("SYNCOPATE_TRANSPORT", way == Way::kUcx ? "ucx" : "tcp", 1);
  auto job = HostWorkers::OnLoopback(kWorkers, 1, body);
  unsetenv("SYNCOPATE_TRANSPORT");
  return job;
}

class ForkTest : public ::testing::TestWithParam<Way> {};

struct Report {
  std::atomic<int> ready{0};
  std::array<std::atomic<pid_t>, kChildren> children{};
  std::array<std::atomic<int64_t>, kWorkers> noticed_ns{};
  std::array<std::atomic<int>, kWorkers> suspect{};
};

// A forked child kept the sockets of its parent open: connections did not end with the parent, and
// its death showed only as silence, after 3 s.
TEST_P(ForkTest, AKilledWorkerWithForkedChildrenIsNoticedWithinASecond) {
  Shared<Report> report;
  const auto job = StartJob(GetParam(), [&](Worker& worker) {
    const size_t rank = static_cast<size_t>(worker.rank());
    if (!worker.world().Barrier().ok()) return 1;
    if (worker.rank() == kVictim) {
      for (std::atomic<pid_t>& place : report->children) {
        const pid_t child = fork();
        if (child == 0) {
          alarm(kChildSecondsMax);
          for (;;) pause();
        }
        place = child;
      }
    }
    ++report->ready;
    absl::Status status;
    int64_t value = 0;
    while (status.ok()) status = worker.world().AllReduce(Array::Of(&value, 1), ReduceOp::kSum);
    report->noticed_ns[rank] = NowNs();
    report->suspect[rank] = GetSuspect(status).value_or(-2);
    if (!absl::IsUnavailable(status)) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 0;
  });
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while (report->ready < kWorkers && absl::Now() < until) usleep(1000);
  ASSERT_EQ(report->ready, kWorkers);
  const int64_t struck_ns = NowNs();
  job->Signal(kVictim, SIGKILL);
  const std::vector<int> codes = job->Join();
  EXPECT_TRUE(WIFSIGNALED(codes[kVictim]));
  for (const std::atomic<pid_t>& child : report->children) {
    EXPECT_EQ(kill(child, 0), 0) << "the child did not outlive its parent";
    kill(child, SIGKILL);
  }
  for (size_t rank = 0; rank < kWorkers; ++rank) {
    if (rank == kVictim) continue;
    EXPECT_EQ(codes[rank], 0) << rank;
    EXPECT_EQ(report->suspect[rank], kVictim) << rank;
    EXPECT_LE(report->noticed_ns[rank] - struck_ns, 1'000'000'000) << rank;
    EXPECT_GT(report->noticed_ns[rank], struck_ns) << rank;
  }
}

// What a forked child is told, as a number: 0 if every call fails with a message that says why.
int CallInChild(Worker& worker, Handle& handle) {
  int64_t value = 1;
  const auto refused = [](const absl::Status& status) {
    const bool said = absl::IsFailedPrecondition(status) &&
                      status.message().find("forked") != absl::string_view::npos;
    if (!said) std::fprintf(stderr, "in the child: %s\n", status.ToString().c_str());
    return said;
  };
  if (!refused(worker.world().AllReduce(Array::Of(&value, 1), ReduceOp::kSum))) return 21;
  if (!refused(worker.world().Barrier())) return 22;
  if (!refused(worker.NewGroup({worker.rank()}).status())) return 23;
  if (!refused(worker.Allocate(64).status())) return 24;
  if (!refused(worker.Send(0, "topic", "mail"))) return 30;
  if (!refused(worker.SendParcel(0, "topic", "mail"))) return 31;
  if (!refused(worker.Receive("topic", [](Mail) {}))) return 32;
  Call call;
  call.collective = Collective::kAllReduce;
  call.data = Array::Of(&value, 1);
  Handle other = worker.world().Start(call);
  if (!other.Done() || !refused(other.Wait())) return 25;
  if (!handle.Done() || !refused(handle.Wait())) return 26;
  if (!worker.Lost().empty()) return 27;
  worker.Network();
  return 0;
}

// The child's copy of the worker said goodbye for its parent when it was destroyed, or waited for
// threads that it does not have.
TEST_P(ForkTest, AForkedChildIsRefusedAndItsEndLeavesTheJobAlone) {
  Shared<Report> report;
  const auto job = StartJob(GetParam(), [&](Worker& worker) {
    const pid_t self = getpid();
    pid_t child = 0;
    {
      absl::StatusOr<Buffer> buffer = worker.Allocate(1 << 16);
      if (!buffer.ok()) return 1;
      std::vector<int> everyone;
      for (int rank = 0; rank < worker.size(); ++rank) everyone.push_back(rank);
      absl::StatusOr<Group> group = worker.NewGroup(everyone);
      if (!group.ok() || !group->Barrier().ok()) return 2;
      int64_t value = 1;
      Call call;
      call.collective = Collective::kAllReduce;
      call.data = Array::Of(&value, 1);
      // It is under way, with the group's state, while the process forks.
      std::optional<Handle> handle;
      if (worker.rank() == kVictim) handle = group->Start(call);
      if (worker.rank() == kVictim && (child = fork()) == 0) {
        alarm(kChildSecondsMax / 2);
        const int code = CallInChild(worker, *handle);
        if (code != 0) return code;
      }
      // The child destroys the handle, the group and the buffer here, and the worker after this.
      if (getpid() == self) {
        if (worker.rank() != kVictim) handle = group->Start(call);
        if (!handle->Wait().ok() || value != worker.size()) return 3;
      }
    }
    if (getpid() != self) return 0;
    if (child > 0) {
      int status = 0;
      if (waitpid(child, &status, 0) != child) return 4;
      if (!WIFEXITED(status)) return 5;
      if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
    }
    for (int round = 0; round < 20; ++round) {
      int64_t value = 1;
      const absl::Status status = worker.world().AllReduce(Array::Of(&value, 1), ReduceOp::kSum);
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
      if (!status.ok() || value != worker.size()) return 6;
    }
    return 0;
  });
  for (const int code : job->Join(absl::Seconds(90))) {
    EXPECT_TRUE(WIFEXITED(code));
    EXPECT_EQ(WEXITSTATUS(code), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ForkTest,
                         ::testing::Values(Way::kSharedMemory, Way::kTcp, Way::kUcx), Name);

}  // namespace
}  // namespace syncopate
