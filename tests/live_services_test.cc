// Services of a job whose workers are processes, while the host or the standby is killed, stopped or
// leaves: every worker asks a counter, takes sample ranges and agrees on values all the time. Every request of
// a survivor is answered once and soon, survivors hold the same decisions, and every sample is counted
// once. Each strike first proves that it met the rank that it was meant for.
//
// More by hand, half of them in shared memory, half over TCP on the loopback and as many over UCX, with a
// table:
//
//   SYNCOPATE_TEST_KILLS=50 SYNCOPATE_TEST_STOPS=10 build/release/tests/live_services_test
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/counter.h"
#include "tests/host_workers.h"
#include "tests/worker_processes.h"
#include "worker/job_services.h"

namespace syncopate {
namespace {

constexpr int kSize = 6;
constexpr uint64_t kSamples = 240, kEpochsMax = 1 << 14;
constexpr uint64_t kSumsMax = 1 << 20;
constexpr uint64_t kVersionsMax = 1 << 14;
constexpr uint64_t kBatch = 4;
// So few that workers come to the end of them all the time.
constexpr uint8_t kFurther = 4;
constexpr int64_t kSecondNs = 1'000'000'000;

int64_t NowNs() { return MonotonicClock().NowNs(); }
int64_t In(int64_t seconds) { return NowNs() + seconds * kSecondNs; }

// What workers tell the test and each other. It is zero at the beginning.
struct Board {
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::atomic<int> leaver{-1};  // the rank that is to leave in good order
  std::atomic<int> survivors{0};
  std::atomic<int> quiet{0};
  std::atomic<int> faults{0};
  // When the last strike fell, and when each worker got its first answer to a question after it.
  std::atomic<int64_t> struck_ns{0};
  std::array<std::atomic<int64_t>, kSize> answered_ns{};
  std::array<std::atomic<uint64_t>, kSize> answers{};
  std::array<std::atomic<uint8_t>, kSumsMax> sums{};  // how often each was given
  std::array<std::array<std::atomic<uint8_t>, kSamples>, kEpochsMax> counted{};
  std::array<std::atomic<int64_t>, kVersionsMax> from{};   // from where each version counts
  std::array<std::atomic<uint64_t>, kSize> version{};      // the last that a worker has adopted
  std::array<std::atomic<uint64_t>, kSize> settled{};      // the last of its own proposals
  std::array<std::atomic<uint64_t>, kSize> incarnation{};  // of the host that answered it last
  std::atomic<int> done{0};
};

void Complain(Board& board, const std::string& what) {
  ++board.faults;
  std::fprintf(stderr, "process %d: %s\n", static_cast<int>(getpid()), what.c_str());
}

std::string ValueOf(uint64_t version) {
  // Every fourth one is too long for a message.
  return absl::StrCat("value ", version, std::string(version % 4 == 0 ? 5000 : 10, 'v'));
}

// A worker's part.
class Asker {
 public:
  Asker(Worker& worker, Board& board) : worker_(worker), board_(board) {}

  int Run() {
    if (!worker_.AddService(std::make_unique<services::Counter>(false)).ok()) return 11;
    const auto agreement = worker::ServicesOf(worker_).Agreement();
    const auto samples = worker::ServicesOf(worker_).StartSamples(
        {.samples = kSamples, .epochs = kEpochsMax, .ahead = 1});
    if (!agreement.ok() || !samples.ok()) return 12;
    agreement_ = *agreement;
    samples_ = *samples;
    if (!Register()) return 13;
    if (!worker_.world().Barrier().ok()) return 14;
    ++board_.ready;
    for (int64_t position = 1; !board_.stop; ++position) {
      if (board_.leaver == worker_.rank()) return 0;
      if (!Count() || !TakeSamples() || !Agree(position)) return 15;
      usleep(1000);
    }
    return WindUp();
  }

 private:
  size_t self() const { return static_cast<size_t>(worker_.rank()); }

  bool Fault(const std::string& what, const absl::Status& status) {
    Complain(board_, absl::StrCat("rank ", worker_.rank(), ": ", what, ": ", status.ToString()));
    return false;
  }

  bool Count() {
    const int64_t asked_ns = NowNs();
    const absl::StatusOr<std::string> answer = worker_.Ask("counter", services::Counter::Add(1));
    if (!answer.ok()) return Fault("the counter", answer.status());
    const absl::StatusOr<services::Counter::Sum> sum = services::Counter::Read(*answer);
    if (!sum.ok() || sum->total >= kSumsMax) return Fault("a sum", sum.status());
    if (board_.sums[sum->total].fetch_add(1) != 0) {
      return Fault(absl::StrCat("sum ", sum->total, " is given twice"), {});
    }
    board_.incarnation[self()] = sum->id.incarnation;
    ++board_.answers[self()];
    int64_t none = 0;
    const int64_t struck_ns = board_.struck_ns;
    if (struck_ns != 0 && asked_ns >= struck_ns) {
      board_.answered_ns[self()].compare_exchange_strong(none, NowNs());
    }
    return true;
  }

  bool TakeSamples() {
    const absl::StatusOr<services::GrantAnswer> grant = samples_->NextAndWait(kBatch, In(30));
    if (!grant.ok()) return Fault("the samples", grant.status());
    // The answer says that what was used before is counted.
    for (const services::SampleRange& range : computed_) {
      for (uint64_t i = range.samples.first; i < range.samples.end(); ++i) {
        if (board_.counted[range.epoch][i].fetch_add(1) != 0) {
          return Fault(absl::StrCat("sample ", i, " of epoch ", range.epoch, " counts twice"), {});
        }
      }
    }
    computed_ = grant->ranges;
    std::vector<ServiceId> ids;
    for (const services::SampleRange& range : computed_) ids.push_back(range.id);
    samples_->Use(ids);
    return !grant->over || Fault("there are no more samples", {});
  }

  bool Register() {
    const auto check = [](uint64_t, const std::string& value,
                          const worker::LiveAgreement::Checked& checked) {
      checked(DigestOf(value));
    };
    const auto adopt = [this](uint64_t version, const std::string& value, int64_t from) {
      int64_t none = 0;
      if (version >= kVersionsMax || value != ValueOf(version)) {
        Fault(absl::StrCat("a wrong value of version ", version), {});
      } else if (!board_.from[version].compare_exchange_strong(none, from) && none != from) {
        Fault(absl::StrCat("version ", version, " counts from ", from, ", elsewhere from ", none),
              {});
      } else if (from <= position_) {
        Fault(absl::StrCat("version ", version, " comes too late"), {});
      }
      board_.version[self()] = version;
    };
    return agreement_
        ->Register({.name = "value",
                    .scale = worker::LiveAgreement::Scale::kIteration,
                    .further = kFurther,
                    .check = check,
                    .adopt = adopt},
                   0)
        .ok();
  }

  bool Agree(int64_t position) {
    const absl::Status reached = agreement_->Reach("value", position, In(30));
    if (!reached.ok()) return Fault("the agreement", reached);
    position_ = position;
    if (position % 8 != 0 || proposals_ > 0) return true;
    // What another worker has proposed in the meantime is refused here, or is the same.
    const uint64_t version = board_.version[self()] + 1;
    const std::string value = ValueOf(version);
    ++proposals_;
    const absl::Status proposed =
        agreement_->Propose("value", version, DigestOf(value), value,
                            [this, version](const absl::StatusOr<int64_t>& from) {
                              if (from.ok()) board_.settled[self()] = version;
                              --proposals_;
                            });
    return proposed.ok() || Fault("a proposal", proposed);
  }

  // When all have ended their proposals, all have the same values.
  int WindUp() {
    const int64_t until_ns = In(30);
    while (proposals_ > 0 && NowNs() < until_ns) usleep(1000);
    if (proposals_ > 0) return 16;
    ++board_.quiet;
    while (board_.quiet < board_.survivors && NowNs() < until_ns) usleep(1000);
    if (board_.quiet < board_.survivors) return 17;
    while (!HasAll() && NowNs() < until_ns) usleep(1000);
    if (!HasAll()) return 18;
    ++board_.done;
    while (board_.done < board_.survivors && NowNs() < until_ns) usleep(1000);
    return board_.done < board_.survivors ? 20 : board_.faults == 0 ? 0 : 19;
  }
  bool HasAll() const {
    uint64_t last = 1;
    for (const auto* of : {&board_.version, &board_.settled}) {
      for (const auto& version : *of) last = std::max<uint64_t>(last, version);
    }
    return board_.version[self()] == last;
  }

  Worker& worker_;
  Board& board_;
  worker::LiveAgreement* agreement_ = nullptr;
  worker::LiveSamples* samples_ = nullptr;
  std::vector<services::SampleRange> computed_;
  std::atomic<int64_t> position_{0};
  std::atomic<int> proposals_{0};
};

struct Strike {
  enum class Whom { kHost, kStandby };
  Whom whom = Whom::kHost;
  int signal = SIGKILL;  // 0: it leaves in good order

  std::string Name() const {
    return absl::StrCat(signal == SIGKILL   ? "kill"
                        : signal == SIGSTOP ? "stop"
                                            : "leave",
                        " of the ", whom == Whom::kHost ? "host" : "standby");
  }
};

// By name of a strike: how long the slowest survivor waited for its first answer after it, in seconds.
using Waits = std::map<std::string, std::vector<double>>;

class LiveServicesTest : public ::testing::TestWithParam<const char*> {
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

  // A job in which these strikes fall one after the other.
  void Play(const std::vector<Strike>& strikes, Waits& waits) {
    Shared<Board> board;
    // Answers may come until the worker has ended, so it stays until the process does.
    const auto workers = Start([&](Worker& worker) { return (new Asker(worker, *board))->Run(); });
    std::vector<int> live(kSize);
    std::iota(live.begin(), live.end(), 0);
    WaitUntil([&] { return board->ready == kSize; });
    ASSERT_EQ(board->ready, kSize);
    std::vector<int> stopped, leavers;
    for (const Strike& strike : strikes) {
      AwaitAnswers(*board, live, 20);
      const auto victim = live.begin() + (strike.whom == Strike::Whom::kHost ? 0 : 1);
      const int rank = *victim;
      const uint64_t host = board->incarnation[static_cast<size_t>(live.back())];
      for (auto& answered_ns : board->answered_ns) answered_ns = 0;
      if (strike.signal == 0) {
        board->leaver = rank;
        leavers.push_back(rank);
        WaitUntil([&] { return !Runs(*workers, rank); });
      } else {
        workers->Signal(rank, strike.signal);
      }
      board->struck_ns = NowNs();
      live.erase(victim);
      if (strike.signal == SIGSTOP) stopped.push_back(rank);
      waits[strike.Name()].push_back(SlowestAnswer(*board, live));
      board->struck_ns = 0;
      for (const int other : live) {
        const uint64_t now = board->incarnation[static_cast<size_t>(other)];
        EXPECT_EQ(now > host, strike.whom == Strike::Whom::kHost)
            << strike.Name() << ": rank " << rank << " was something else";
      }
    }
    AwaitAnswers(*board, live, 20);
    board->survivors = static_cast<int>(live.size());
    board->stop = true;
    for (const int rank : live) WaitUntil([&] { return !Runs(*workers, rank); });
    for (const int rank : stopped) workers->Signal(rank, SIGKILL);  // where nobody has ended it
    const std::vector<int> codes = workers->Join(absl::Seconds(30));
    for (const int rank : live) {
      const int code = codes[static_cast<size_t>(rank)];
      EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0)
          << "rank " << rank << " ended with " << code;
    }
    for (int rank = 0; rank < kSize; ++rank) {
      const int code = codes[static_cast<size_t>(rank)];
      if (std::find(leavers.begin(), leavers.end(), rank) != leavers.end()) {
        EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0) << "rank " << rank << ": " << code;
      } else if (std::find(live.begin(), live.end(), rank) == live.end()) {
        EXPECT_TRUE(WIFSIGNALED(code)) << "rank " << rank << " lived on";
      }
    }
    EXPECT_EQ(board->faults, 0);
    CheckCounts(*board, kSize - static_cast<int>(live.size()));
  }

  static void WaitUntil(const std::function<bool()>& condition) {
    const int64_t until_ns = In(60);
    while (!condition() && NowNs() < until_ns) usleep(1000);
  }

  static bool Runs(const Forked& workers, int rank) {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(workers.pids()[static_cast<size_t>(rank)]), &info,
           WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == 0;
  }

  // The services have a host that answers everybody: the strike that follows meets it at work.
  static void AwaitAnswers(Board& board, const std::vector<int>& live, uint64_t answers) {
    for (const int rank : live) {
      std::atomic<uint64_t>& count = board.answers[static_cast<size_t>(rank)];
      const uint64_t before = count;
      WaitUntil([&] { return count >= before + answers; });
      EXPECT_GE(count, before + answers) << "rank " << rank << " gets no answers";
    }
  }

  static double SlowestAnswer(Board& board, const std::vector<int>& live) {
    double slowest = 0;
    for (const int rank : live) {
      std::atomic<int64_t>& answered_ns = board.answered_ns[static_cast<size_t>(rank)];
      WaitUntil([&] { return answered_ns != 0; });
      EXPECT_NE(answered_ns, 0) << "rank " << rank << " gets no answer";
      slowest = std::max(slowest, static_cast<double>(answered_ns - board.struck_ns) * 1e-9);
    }
    return slowest;
  }

  // Of those that are gone nobody knows whether the last that they said was heard, nor which sums they
  // did not live to see.
  static void CheckCounts(Board& board, int gone) {
    uint64_t epochs = 0, missing = 0;
    for (uint64_t epoch = 0; epoch < kEpochsMax; ++epoch) {
      for (const auto& count : board.counted[epoch]) epochs = count != 0 ? epoch : epochs;
    }
    EXPECT_GE(epochs, 2u) << "there was hardly anything to count";
    for (uint64_t epoch = 0; epoch + 1 < epochs; ++epoch) {
      for (const auto& count : board.counted[epoch]) missing += count == 0 ? 1 : 0;
    }
    EXPECT_LE(missing, static_cast<uint64_t>(gone) * kBatch);
    uint64_t largest = 0, given = 0;
    for (uint64_t sum = 1; sum < kSumsMax; ++sum) {
      if (board.sums[sum] == 0) continue;
      largest = sum;
      ++given;
    }
    EXPECT_LE(largest - given, static_cast<uint64_t>(gone));
  }
};

// The contract: a kill is noticed within 1 s, a stop within 5 s; a second more for what follows.
double Limit(const std::string& strike) { return strike.substr(0, 4) == "stop" ? 6.0 : 2.0; }

void Print(const std::string& way, Waits waits) {
  for (auto& [name, seconds] : waits) {
    std::sort(seconds.begin(), seconds.end());
    std::printf("%-12s %-20s %4zu   first answer after: median %.3f s, slowest %.3f s\n",
                way.c_str(), name.c_str(), seconds.size(), seconds[seconds.size() / 2],
                seconds.back());
    for (const double wait : seconds) EXPECT_LE(wait, Limit(name)) << name;
  }
}

int FromEnvironment(const char* name, int otherwise) {
  int value = 0;
  const char* const text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

TEST_P(LiveServicesTest, AnswersComeOnceAndSoonWhileHostsAndStandbysGo) {
  constexpr Strike kKillHost = {}, kKillStandby = {.whom = Strike::Whom::kStandby},
                   kStopHost = {.signal = SIGSTOP}, kLeaveHost = {.signal = 0};
  const std::string way = GetParam();
  Waits waits;
  if (way == "tcp_and_shm") {
    Play({kLeaveHost, kKillHost, kKillStandby}, waits);
    return Print(way, waits);
  }
  // Each way has half of them; in every job a standby goes besides, or a host leaves.
  int kills = (FromEnvironment("SYNCOPATE_TEST_KILLS", 4) + 1) / 2;
  int stops = (FromEnvironment("SYNCOPATE_TEST_STOPS", 2) + 1) / 2;
  for (int job = 0; (kills > 0 || stops > 0) && !HasFailure(); ++job) {
    std::vector<Strike> strikes = {job % 2 == 0 ? kKillStandby : kLeaveHost};
    for (int i = 0; i < 2 && kills > 0; ++i, --kills) strikes.push_back(kKillHost);
    // Before the others: the more are left, the clearer it is who does not answer.
    if (stops > 0) strikes.insert(strikes.begin() + (stops % 2), kStopHost);
    --stops;
    Play(strikes, waits);
  }
  Print(way, waits);
}

INSTANTIATE_TEST_SUITE_P(All, LiveServicesTest,
                         ::testing::Values("shm", "tcp", "ucx", "tcp_and_shm"),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace syncopate
