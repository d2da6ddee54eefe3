// Workers of one host that cannot end each other's processes, and workers that somebody holds on
// purpose: whoever shares memory must be able to make sure that a lost worker writes no more.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker_processes.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWorkers = 3;
constexpr int kVictim = 2;
// Longer than any worker may be without a heartbeat (3.5 s), with room for a loaded machine.
constexpr absl::Duration kHold = absl::Milliseconds(5500);

int64_t NowNs() { return absl::GetCurrentTimeNanos(); }

struct Report {
  std::array<std::atomic<pid_t>, kWorkers> pids{};  // as the test sees them
  std::atomic<int> ready{0};
  std::atomic<int> over{0};  // by the test: the workers may end
  std::array<std::atomic<int64_t>, kWorkers> noticed_ns{};
  std::array<std::atomic<int>, kWorkers> suspect{};
  std::array<std::array<char, 400>, kWorkers> status{};
  std::atomic<int64_t> longest_ns{0};  // of one all-reduce, as rank 0 saw it
  std::atomic<int64_t> rounds{0};      // of rank 0
};

// What the workers of a job say on standard error goes to a file.
class Transcript {
 public:
  Transcript() : path_(::testing::TempDir() + "fence-XXXXXX") { close(mkstemp(path_.data())); }
  ~Transcript() { unlink(path_.c_str()); }
  void Write() const {  // in a worker
    dup2(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), STDERR_FILENO);
  }
  std::string Read() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  int Lines(const std::string& with) const {
    std::istringstream text(Read());
    int lines = 0;
    for (std::string line; std::getline(text, line);) {
      lines += line.find(with) != std::string::npos ? 1 : 0;
    }
    return lines;
  }

 private:
  std::string path_;
};

// Sums until it fails or the test says so, and tells what it saw.
int SumUntilLost(Worker& worker, Report& report) {
  const size_t rank = static_cast<size_t>(worker.rank());
  const auto all_over = [&](int64_t& over) {
    over = report.over;
    return worker.world().AllReduce(Array::Of(&over, 1), ReduceOp::kMin);
  };
  std::vector<float> data(1000);
  ++report.ready;
  absl::Status status;
  int64_t over = 0;
  while (status.ok() && over == 0) {
    std::fill(data.begin(), data.end(), 1.0f);
    const int64_t begin_ns = NowNs();
    status = worker.world().AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum);
    if (status.ok() && data[999] != kWorkers) return 2;
    if (status.ok()) status = all_over(over);
    if (rank != 0) continue;
    ++report.rounds;
    report.longest_ns = std::max<int64_t>(report.longest_ns, NowNs() - begin_ns);
  }
  if (status.ok()) return 0;
  const int64_t noticed_ns = NowNs();
  report.suspect[rank] = GetSuspect(status).value_or(-2);
  std::snprintf(report.status[rank].data(), report.status[rank].size(), "%s",
                status.ToString().c_str());
  report.noticed_ns[rank] = noticed_ns;                 // last: whoever sees it reads the others
  if (GetBlast(status) == BlastRadius::kJob) return 9;  // it is the lost one
  std::vector<int> survivors;
  for (int other = 0; other < kWorkers; ++other) {
    if (other != kVictim) survivors.push_back(other);
  }
  absl::StatusOr<Group> group = worker.NewGroup(survivors);
  if (!group.ok()) return 4;
  // They work on until the test has seen what it wants to see of the lost one.
  for (over = 0; over == 0;) {
    over = report.over;
    if (!group->AllReduce(Array::Of(&over, 1), ReduceOp::kMin).ok()) return 5;
    std::fill(data.begin(), data.end(), 1.0f);
    if (!group->AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum).ok()) return 6;
    for (const float value : data) {
      if (value != kWorkers - 1) return 7;
    }
  }
  return 0;
}

class FenceTest : public ::testing::Test {
 protected:
  // Starts the job. Ranks from `first_apart` on get a PID namespace of their own, as by
  // `unshare --pid --fork`. With `two_hosts` the last rank is on another host than the first two.
  void Start(int first_apart = kWorkers, bool two_hosts = false) {
    static int jobs = 0;
    const std::string id = "fence-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    const std::string port = std::to_string(20000 + (getpid() * 7 + jobs * 31) % 20000);
    for (int rank = 0; rank < kWorkers; ++rank) {
      job_.Fork([&, rank] {
        transcript_.Write();
        const auto run = [&] {
          Options options;
          if (two_hosts) {
            BeOnOneOfTwoHosts(rank, id, port);
          } else {
            options.job = Job{id, rank, kWorkers, rank, kWorkers};
          }
          options.timeout = absl::Seconds(60);
          return RunAsWorker(options,
                             [&](Worker& worker) { return SumUntilLost(worker, *report_); });
        };
        const size_t place = static_cast<size_t>(rank);
        if (rank < first_apart) {
          report_->pids[place] = getpid();
          return run();
        }
        if (unshare(CLONE_NEWPID) != 0) return 97;
        const pid_t child = fork();  // process 1 of the new namespace
        if (child == 0) {
          prctl(PR_SET_PDEATHSIG, SIGKILL);
          const int code = run();
          std::fflush(nullptr);
          _exit(code);
        }
        report_->pids[place] = child;
        int status = 0;
        while (waitpid(child, &status, 0) != child) {
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      });
    }
    WaitUntil([&] { return report_->ready == kWorkers; });
    ASSERT_EQ(report_->ready, kWorkers) << transcript_.Read();
    WaitForRounds();
  }
  // As torchrun would tell it.
  static void BeOnOneOfTwoHosts(int rank, const std::string& id, const std::string& port) {
    const bool last = rank == kWorkers - 1;
    const std::pair<const char*, std::string> variables[] = {
        {"RANK", std::to_string(rank)},
        {"WORLD_SIZE", std::to_string(kWorkers)},
        {"LOCAL_RANK", std::to_string(last ? 0 : rank)},
        {"LOCAL_WORLD_SIZE", std::to_string(last ? 1 : kWorkers - 1)},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", port},
        {"TORCHELASTIC_RUN_ID", id},
        {"SYNCOPATE_SOCKET_IFNAME", "lo"},
        {"SYNCOPATE_MACHINE", last ? "two" : "one"},
        {"SYNCOPATE_HOST", last ? "two" : "one"}};
    for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  }
  // The workers are at work.
  void WaitForRounds() {
    const int64_t rounds = report_->rounds;
    WaitUntil([&] { return report_->rounds > rounds + 3 || job_.AnyHasEnded(); });
  }
  void WaitUntil(const std::function<bool()>& done) {
    const absl::Time until = absl::Now() + absl::Seconds(60);
    while (!done() && absl::Now() < until) {
      if (meanwhile_) meanwhile_();
      usleep(1000);
    }
  }

  pid_t victim() { return report_->pids[kVictim]; }
  void Strike(int signal) {
    struck_ns_ = NowNs();
    ASSERT_EQ(kill(victim(), signal), 0);
  }
  bool AllSurvivorsNoticed() {
    for (size_t rank = 0; rank < kWorkers; ++rank) {
      if (rank != kVictim && report_->noticed_ns[rank] == 0) return false;
    }
    return true;
  }
  void ExpectNoticedWithin(absl::Duration limit) {
    WaitUntil([&] { return AllSurvivorsNoticed(); });
    for (size_t rank = 0; rank < kWorkers; ++rank) {
      if (rank == kVictim) continue;
      EXPECT_EQ(report_->suspect[rank], kVictim) << transcript_.Read();
      EXPECT_GT(report_->noticed_ns[rank], struck_ns_);
      EXPECT_LE(report_->noticed_ns[rank] - struck_ns_, absl::ToInt64Nanoseconds(limit));
    }
  }
  // The exit codes, by rank, once the test lets the workers end.
  std::vector<int> End() {
    report_->over = 1;
    return job_.Join();
  }
  void ExpectSurvivorsEndWell() {
    const std::vector<int> codes = End();
    for (size_t rank = 0; rank < kWorkers; ++rank) {
      if (rank == kVictim) continue;
      EXPECT_EQ(codes[rank], 0) << rank << ": " << transcript_.Read();
    }
  }
  // Nobody was lost, and the others really waited for one that was held for kHold.
  void ExpectAllWaited() {
    const std::vector<int> codes = End();
    for (const int code : codes) EXPECT_EQ(code, 0) << transcript_.Read();
    EXPECT_GE(report_->longest_ns, absl::ToInt64Nanoseconds(kHold) * 9 / 10);
  }

  Shared<Report> report_;
  Transcript transcript_;
  int64_t struck_ns_ = 0;
  std::function<void()> meanwhile_;  // done while the test waits
  Forked job_;
};

// A worker in a PID namespace of its own had no pidfd that the others could open: its death took as
// long as a stop, and was called one.
class NamespaceTest : public FenceTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "only root can make PID namespaces";
    ASSERT_NO_FATAL_FAILURE(Start(GetParam()));
  }
};

TEST_P(NamespaceTest, AKilledWorkerIsNoticedWithinASecondAndSaidToHaveDied) {
  Strike(SIGKILL);
  ExpectNoticedWithin(absl::Seconds(1));
  EXPECT_THAT(report_->status[0].data(), HasSubstr("died"));
  EXPECT_THAT(report_->status[0].data(), Not(HasSubstr("it was ended")));
  ExpectSurvivorsEndWell();
}

TEST_P(NamespaceTest, WorkersThatCannotEndEachOtherUseTheLoopbackAndOneLineSaysSo) {
  EXPECT_EQ(transcript_.Lines("loopback"), 1) << transcript_.Read();
  for (const int code : End()) EXPECT_EQ(code, 0) << transcript_.Read();
}

// Nobody could end it, so it would have woken and written into memory that the others went on with.
TEST_P(NamespaceTest, AStoppedWorkerThatWakesIsOutsideAndLearnsIt) {
  Strike(SIGSTOP);
  ExpectNoticedWithin(absl::Seconds(5));
  EXPECT_EQ(kill(victim(), SIGCONT), 0) << "it was killed";
  WaitUntil([&] { return report_->noticed_ns[kVictim] != 0; });
  EXPECT_THAT(report_->status[kVictim].data(), HasSubstr("ABORTED")) << transcript_.Read();
  ExpectSurvivorsEndWell();
}

TEST_F(FenceTest, WorkersOfOneOfTwoHostsThatCannotEndEachOtherUseTheNetwork) {
  if (getuid() != 0) GTEST_SKIP() << "only root can make PID namespaces";
  ASSERT_NO_FATAL_FAILURE(Start(0, true));
  EXPECT_EQ(transcript_.Lines("loopback"), 1) << transcript_.Read();
  Strike(SIGKILL);
  ExpectNoticedWithin(absl::Seconds(1));
  ExpectSurvivorsEndWell();
}

INSTANTIATE_TEST_SUITE_P(Apart, NamespaceTest, ::testing::Values(0, 1),
                         [](const auto& test) { return test.param == 0 ? "all" : "all_but_one"; });

// Holds all threads of a process, as a debugger does.
class Debugger {
 public:
  explicit Debugger(pid_t pid) : pid_(pid) {
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      const pid_t thread = static_cast<pid_t>(std::stol(task.path().filename().string()));
      if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) continue;
      ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
      EXPECT_EQ(waitpid(thread, nullptr, __WALL), thread);
      threads_.push_back(thread);
    }
  }
  ~Debugger() {
    for (const pid_t thread : threads_) ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
    const absl::Time until = absl::Now() + absl::Seconds(1);
    while (!threads_.empty() && absl::Now() < until) Bury();
  }
  // Threads that were killed stay until their debugger has seen it. The process itself is seen by
  // whoever waits for it.
  void Bury() {
    std::erase_if(threads_, [&](pid_t thread) {
      if (thread == pid_) return false;
      const pid_t ended = waitpid(thread, nullptr, __WALL | WNOHANG);
      return ended == thread || (ended < 0 && errno == ECHILD);
    });
    if (threads_.size() == 1 && threads_[0] == pid_) threads_.clear();
  }
  size_t threads() const { return threads_.size(); }

 private:
  const pid_t pid_;
  std::vector<pid_t> threads_;
};

TEST_F(FenceTest, AWorkerInADebuggerIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(Start());
  {
    const Debugger debugger(victim());
    if (debugger.threads() == 0) GTEST_SKIP() << "no other process may be debugged here";
    absl::SleepFor(kHold);
  }
  WaitForRounds();
  ExpectAllWaited();
  EXPECT_EQ(transcript_.Lines("debugged"), 1) << transcript_.Read();
}

TEST_F(FenceTest, AWorkerInADebuggerIsEndedIfTheUserWantsIt) {
  setenv("SYNCOPATE_STUCK", "kill", 1);
  Start();
  unsetenv("SYNCOPATE_STUCK");
  ASSERT_FALSE(HasFatalFailure());
  const int64_t begin_ns = NowNs();
  Debugger debugger(victim());
  if (debugger.threads() == 0) GTEST_SKIP() << "no other process may be debugged here";
  struck_ns_ = begin_ns;
  meanwhile_ = [&] { debugger.Bury(); };
  ExpectNoticedWithin(absl::Seconds(5));
  meanwhile_ = nullptr;
  EXPECT_THAT(report_->status[0].data(), HasSubstr("debugged"));
  ExpectSurvivorsEndWell();
}

TEST_F(FenceTest, AStoppedWorkerIsWaitedForIfTheUserWantsIt) {
  setenv("SYNCOPATE_STUCK", "wait", 1);
  Start();
  unsetenv("SYNCOPATE_STUCK");
  ASSERT_FALSE(HasFatalFailure());
  Strike(SIGSTOP);
  absl::SleepFor(kHold);
  EXPECT_EQ(kill(victim(), SIGCONT), 0);
  WaitForRounds();
  ExpectAllWaited();
  EXPECT_EQ(transcript_.Lines("no heartbeat"), 1) << transcript_.Read();
}

// A cgroup of the freezer, of either version, or none if this user may not make one.
class Freezer {
 public:
  Freezer() {
    const std::string name = "/syncopate-test-" + std::to_string(getpid());
    for (const char* root :
         {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      folder_ = root + name;
      if (mkdir(folder_.c_str(), 0755) != 0) continue;
      if (access((folder_ + "/freezer.state").c_str(), W_OK) == 0) {
        file_ = "/freezer.state", freeze_ = "FROZEN", thaw_ = "THAWED";
        return;
      }
      if (access((folder_ + "/cgroup.freeze").c_str(), W_OK) == 0) {
        file_ = "/cgroup.freeze", freeze_ = "1", thaw_ = "0";
        return;
      }
      rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~Freezer() {
    if (ok()) rmdir(folder_.c_str());
  }
  bool ok() const { return !folder_.empty(); }
  bool Freeze(pid_t pid) {
    if (!Say("/cgroup.procs", std::to_string(pid)) || !Say(file_, freeze_)) return false;
    const absl::Time until = absl::Now() + absl::Seconds(20);
    while (absl::Now() < until) {
      std::ifstream state(folder_ + (freeze_ == "1" ? "/cgroup.events" : file_));
      std::ostringstream text;
      text << state.rdbuf();
      if (text.str().find(freeze_ == "1" ? "frozen 1" : "FROZEN") != std::string::npos) return true;
      usleep(1000);
    }
    return false;
  }
  void Thaw() { EXPECT_TRUE(Say(file_, thaw_)); }

 private:
  bool Say(const std::string& file, const std::string& text) const {
    std::ofstream out(folder_ + file);
    out << text << std::flush;
    return out.good();
  }
  std::string folder_, file_, freeze_, thaw_;
};

TEST_F(FenceTest, AFrozenWorkerIsWaitedFor) {
  Freezer freezer;
  if (!freezer.ok()) GTEST_SKIP() << "this user may not freeze processes";
  ASSERT_NO_FATAL_FAILURE(Start());
  const bool frozen = freezer.Freeze(victim());
  if (frozen) absl::SleepFor(kHold);
  freezer.Thaw();
  ASSERT_TRUE(frozen);
  WaitForRounds();
  ExpectAllWaited();
  EXPECT_EQ(transcript_.Lines("frozen"), 1) << transcript_.Read();
}

}  // namespace
}  // namespace syncopate
