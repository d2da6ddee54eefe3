// Mail between the processes of a job, in shared memory, over both wires, and where hosts have several
// workers, while a worker is killed or hangs. Every case first proves that its fault happened.
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/host_workers.h"
#include "tests/worker_processes.h"

namespace syncopate {
namespace {

constexpr int kSize = 4;
constexpr int kVictim = 2;

int64_t NowNs() { return absl::GetCurrentTimeNanos(); }

class MailTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Forked> Start(const HostWorkers::Body& body) {
    const std::string way = GetParam();
    if (way == "shm") return std::make_unique<WorkerProcesses>(kSize, body);
    setenv("SYNCOPATE_TRANSPORT", way == "ucx" ? "ucx" : "tcp", 1);
    std::unique_ptr<Forked> workers = way == "tcp_and_shm"
                                          ? HostWorkers::OnLoopback(kSize / 2, 2, body)
                                          : HostWorkers::OnLoopback(kSize, 1, body);
    unsetenv("SYNCOPATE_TRANSPORT");
    return workers;
  }
};

// What workers tell the test.
struct Report {
  std::atomic<int> ready{0};
  std::atomic<bool> struck{false};
  std::atomic<int64_t> struck_ns{0};
  std::array<std::atomic<int64_t>, kSize> noticed_ns{};
  std::atomic<int> from_victim{0};
};

// Checks the mail of one topic as it comes: numbers from 0 on from each worker, and at most one last
// word of each.
class Checker {
 public:
  Checker(Worker& worker, Report& report) : worker_(worker), report_(report) {
    ok_ = worker.Receive("chat", [this](Mail mail) { Check(mail); }).ok();
  }
  ~Checker() { (void)worker_.Receive("chat", nullptr); }
  bool ok() const { return ok_; }
  bool gone(int rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    return gone_[static_cast<size_t>(rank)];
  }
  // How many messages and parcels have come from a worker.
  int came(int rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    return next_[0][static_cast<size_t>(rank)] + next_[1][static_cast<size_t>(rank)];
  }

 private:
  void Check(const Mail& mail) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto from = static_cast<size_t>(mail.from);
    if (gone_[from]) Complain("mail of a worker that is gone", mail);
    if (mail.kind == Mail::Kind::kLost || mail.kind == Mail::Kind::kLeft) {
      gone_[from] = true;
      if (mail.from != kVictim) return;
      if (mail.kind != Mail::Kind::kLost) Complain("it has not left", mail);
      report_.noticed_ns[static_cast<size_t>(worker_.rank())] = NowNs();
      return;
    }
    const bool parcel = mail.kind == Mail::Kind::kParcel;
    if (mail.bytes.substr(0, mail.bytes.find(' ')) != std::to_string(next_[parcel][from]++)) {
      Complain("out of order", mail);
    }
    if (mail.from == kVictim) ++report_.from_victim;
  }
  void Complain(const char* what, const Mail& mail) {
    ok_ = false;
    std::fprintf(stderr, "%s: from %d, kind %d, %.40s\n", what, mail.from,
                 static_cast<int>(mail.kind), mail.bytes.c_str());
  }

  Worker& worker_;
  Report& report_;
  std::mutex mutex_;
  std::array<bool, kSize> gone_{};
  std::array<int, kSize> next_[2]{};  // messages, parcels
  std::atomic<bool> ok_{true};
};

// Sends to all until the victim is lost, then on for a while; in the end all that a survivor has sent
// to another has come.
int Chat(Worker& worker, Report& report) {
  Checker checker(worker, report);
  std::array<int, kSize> messages{}, parcels{};
  const auto send = [&](int to) {
    const auto index = static_cast<size_t>(to);
    absl::Status status = worker.Send(to, "chat", std::to_string(messages[index]) + " message");
    if (status.ok()) ++messages[index];
    if (status.ok() && messages[index] % 50 == 0) {
      status = worker.SendParcel(to, "chat",
                                 std::to_string(parcels[index]) + " " + std::string(100'000, 'p'));
      if (status.ok()) ++parcels[index];
    }
    return status.ok() || absl::IsResourceExhausted(status) ||
           (to == kVictim && absl::IsUnavailable(status));
  };
  if (!worker.world().Barrier().ok()) return 11;
  ++report.ready;
  const int64_t until_ns = NowNs() + 60'000'000'000;
  for (int after = 0; after < 50; after += checker.gone(kVictim) ? 1 : 0) {
    if (NowNs() > until_ns) return 12;
    for (int to = 0; to < kSize; ++to) {
      if (!send(to)) return 13;
    }
    usleep(200);
  }
  if (worker.Send(kVictim, "chat", "hello").code() != absl::StatusCode::kUnavailable) return 14;
  // Each tells the others how much there was; by then all of it has come, or it never does.
  for (int to = 0; to < kSize; ++to) {
    if (to == kVictim) continue;
    const auto index = static_cast<size_t>(to);
    absl::StatusOr<Group> pair =
        worker.NewGroup(to == worker.rank() ? std::vector<int>{to}
                                            : std::vector<int>{std::min(to, worker.rank()),
                                                               std::max(to, worker.rank())});
    if (!pair.ok()) return 15;
    const int mine = messages[index] + parcels[index];
    int32_t both[2] = {mine, mine};
    if (pair->size() == 2 && !pair->AllGather(Array::Of(both, 2)).ok()) return 16;
    const int theirs = both[pair->size() == 2 ? 1 - pair->rank() : 0];
    while (checker.came(to) < theirs && NowNs() < until_ns) usleep(1000);
    if (checker.came(to) != theirs) {
      std::fprintf(stderr, "rank %d: %d of %d came from %d\n", worker.rank(), checker.came(to),
                   theirs, to);
      return 17;
    }
  }
  absl::StatusOr<Group> survivors = worker.NewGroup({0, 1, 3});
  if (!survivors.ok() || !survivors->Barrier().ok()) return 18;
  return checker.ok() ? 0 : 19;
}

void WaitForAll(const std::atomic<int>& ready) {
  const int64_t until_ns = NowNs() + 60'000'000'000;
  while (ready < kSize && NowNs() < until_ns) usleep(1000);
  ASSERT_EQ(ready, kSize);
}

void ExpectSurvivors(const std::vector<int>& codes, const Report& report, double limit_s) {
  for (int rank = 0; rank < kSize; ++rank) {
    if (rank == kVictim) continue;
    const auto index = static_cast<size_t>(rank);
    EXPECT_TRUE(WIFEXITED(codes[index])) << rank;
    EXPECT_EQ(WEXITSTATUS(codes[index]), 0) << rank;
    const double seconds = static_cast<double>(report.noticed_ns[index] - report.struck_ns) * 1e-9;
    EXPECT_GT(seconds, 0) << rank;
    EXPECT_LE(seconds, limit_s) << rank;
  }
}

TEST_P(MailTest, ComesOnceAndInOrderWhileAWorkerIsKilled) {
  Shared<Report> report;
  const auto workers = Start([&](Worker& worker) { return Chat(worker, *report); });
  WaitForAll(report->ready);
  const int64_t until_ns = NowNs() + 30'000'000'000;
  while (report->from_victim < 1000 && NowNs() < until_ns) usleep(1000);
  EXPECT_GE(report->from_victim, 1000) << "the victim was not heard";
  report->struck_ns = NowNs();
  workers->Signal(kVictim, SIGKILL);
  const std::vector<int> codes = workers->Join(absl::Seconds(90));
  EXPECT_TRUE(WIFSIGNALED(codes[kVictim])) << "the victim lived on";
  ExpectSurvivors(codes, *report, 1.0);
}

// The control thread sends the heartbeats: one that does not come back from a handler is stuck, though
// its worker waits in a call as all others do.
TEST_P(MailTest, AWorkerWhoseHandlerHangsIsLost) {
  Shared<Report> report;
  const auto workers = Start([&](Worker& worker) {
    Checker checker(worker, *report);
    const auto hang = [&](Mail mail) {
      if (mail.kind != Mail::Kind::kMessage) return;
      report->struck_ns = NowNs();
      report->struck = true;
      for (;;) pause();
    };
    if (worker.rank() == kVictim && !worker.Receive("hang", hang).ok()) return 11;
    if (!worker.world().Barrier().ok()) return 12;
    ++report->ready;
    if (worker.rank() == 0 && !worker.Send(kVictim, "hang", "now").ok()) return 13;
    absl::Status status;
    while (status.ok()) status = worker.world().Barrier();
    if (worker.rank() == kVictim) pause();
    if (GetSuspect(status) != kVictim) return 14;
    const int64_t until_ns = NowNs() + 30'000'000'000;
    while (!checker.gone(kVictim) && NowNs() < until_ns) usleep(1000);
    absl::StatusOr<Group> survivors = worker.NewGroup({0, 1, 3});
    if (!survivors.ok() || !survivors->Barrier().ok()) return 15;
    return checker.ok() ? 0 : 16;
  });
  const int64_t until_ns = NowNs() + 60'000'000'000;
  while (!report->struck && NowNs() < until_ns) usleep(1000);
  ASSERT_TRUE(report->struck) << "the handler was never called";
  for (const auto& noticed_ns : report->noticed_ns) {
    if (&noticed_ns == &report->noticed_ns[kVictim]) continue;
    while (noticed_ns == 0 && NowNs() < until_ns) usleep(1000);
  }
  workers->Signal(kVictim, SIGKILL);  // where nobody has ended it
  ExpectSurvivors(workers->Join(absl::Seconds(60)), *report, 5.0);
}

INSTANTIATE_TEST_SUITE_P(All, MailTest, ::testing::Values("shm", "tcp", "ucx", "tcp_and_shm"),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace syncopate
