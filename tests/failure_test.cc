// The failure contract on one machine: killed and stopped workers, at every moment of a job, with
// several sizes. Every case first proves that its fault happened.
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/host_workers.h"
#include "tests/worker_processes.h"

namespace syncopate {
namespace {

constexpr int kWorkersMax = 8;

enum class Moment {
  kFreshGroup,  // before the first collective of a new group
  kReduce,      // inside a large all-reduce, early
  kBroadcast,   // inside a large broadcast
  kLate,        // inside a large all-reduce, later
  kIdle,        // while nothing is under way
};
const char* Name(Moment moment) {
  switch (moment) {
    case Moment::kFreshGroup:
      return "fresh_group";
    case Moment::kReduce:
      return "reduce";
    case Moment::kBroadcast:
      return "broadcast";
    case Moment::kLate:
      return "late";
    case Moment::kIdle:
      return "idle";
  }
  return "?";
}

// What workers tell the test.
struct Report {
  std::atomic<int> ready{0};          // survivors and victim are at the moment
  std::atomic<int64_t> struck_ns{0};  // when the fault happened; by the test
  std::array<std::atomic<int64_t>, kWorkersMax> noticed_ns{};
  std::array<std::atomic<int>, kWorkersMax> suspect{};
  std::array<std::atomic<int>, kWorkersMax> outcome{};  // 1 old, 2 new, 3 neither
  std::array<std::atomic<int>, kWorkersMax> went_on{};
};

int64_t NowNs() { return absl::GetCurrentTimeNanos(); }

// A job with the victim in it: runs the moment's collective again and again until it fails, checks
// the data, then goes on with a group of the survivors.
int Body(Worker& worker, Moment moment, int victim, Report& report) {
  const int rank = worker.rank();
  const size_t elements =
      moment == Moment::kFreshGroup || moment == Moment::kIdle ? 1000 : 2'000'000;
  absl::StatusOr<Buffer> buffer = worker.Allocate(elements * sizeof(float));
  if (!buffer.ok()) return 10;
  float* data = buffer->as<float>();
  const Array array = Array::Of(data, elements);
  std::vector<int> everyone(static_cast<size_t>(worker.size()));
  for (int i = 0; i < worker.size(); ++i) everyone[static_cast<size_t>(i)] = i;
  absl::StatusOr<Group> group = worker.NewGroup(everyone);
  if (!group.ok()) return 11;
  if (moment != Moment::kFreshGroup && !group->Barrier().ok()) return 12;

  absl::Status status;
  float old = 0;
  int rounds = 0;
  if (moment == Moment::kFreshGroup || moment == Moment::kIdle) {
    ++report.ready;
    if (rank == victim) pause();  // until it is killed
    while (report.struck_ns == 0) usleep(200);
    old = static_cast<float>(rank);
    std::fill(data, data + elements, old);
    status = group->AllReduce(array, ReduceOp::kSum);
  } else {
    ++report.ready;
    do {
      old = static_cast<float>(rank + 100 * (rounds % 7));
      std::fill(data, data + elements, old);
      status = moment == Moment::kBroadcast ? group->Broadcast(array, 0)
                                            : group->AllReduce(array, ReduceOp::kSum);
      ++rounds;
    } while (status.ok());
  }
  const size_t index = static_cast<size_t>(rank);
  report.noticed_ns[index] = NowNs();
  report.suspect[index] = GetSuspect(status).value_or(-2);
  // All of the data must be old: a failed all-reduce changes nothing.
  int outcome = 1;
  for (size_t i = 0; i < elements && moment != Moment::kBroadcast; ++i) {
    if (data[i] != old) outcome = 3;
  }
  report.outcome[index] = outcome;
  if (GetBlast(status) != BlastRadius::kGroup) {
    std::fprintf(stderr, "rank %d: %s\n", rank, status.ToString().c_str());
    return 13;
  }
  if (group->AllReduce(array, ReduceOp::kSum).ok()) return 14;  // the group is lost

  std::vector<int> survivors;
  for (int other : everyone) {
    if (other != victim) survivors.push_back(other);
  }
  absl::StatusOr<Group> next = worker.NewGroup(survivors);
  if (!next.ok()) return 15;
  for (int round = 0; round < 20; ++round) {
    std::fill(data, data + elements, 1.0f);
    status = next->AllReduce(array, ReduceOp::kSum);
    if (!status.ok()) {
      std::fprintf(stderr, "rank %d goes on: %s\n", rank, status.ToString().c_str());
      return 16;
    }
    for (size_t i = 0; i < elements; ++i) {
      if (data[i] != static_cast<float>(survivors.size())) return 17;
    }
  }
  report.went_on[index] = 1;
  return 0;
}

// The abstract sockets of a job that are still there.
int SocketsOf(const std::string& job) {
  std::ifstream table("/proc/net/unix");
  const std::string name = DigestOf(absl::string_view(job)).ToString();
  int found = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.find(name) != std::string::npos) ++found;
  }
  return found;
}

struct Case {
  int size;
  Moment moment;
  int signal;
};

class FailureTest : public ::testing::TestWithParam<Case> {};

TEST_P(FailureTest, SurvivorsNoticeAgreeAndGoOn) {
  const Case& c = GetParam();
  const int victim = c.size / 2;
  Shared<Report> report;
  WorkerProcesses workers(c.size,
                          [&](Worker& worker) { return Body(worker, c.moment, victim, *report); });
  const int64_t give_up_ns = NowNs() + 30'000'000'000;
  while (report->ready < c.size && NowNs() < give_up_ns) usleep(100);
  ASSERT_EQ(report->ready, c.size) << "the workers did not get to the moment";
  // Somewhere inside the collectives; idle workers sit still already.
  usleep(c.moment == Moment::kLate ? 37'000 : 3'000);
  workers.Signal(victim, c.signal);
  const int64_t struck_ns = NowNs();
  report->struck_ns = struck_ns;
  const std::vector<int> codes = workers.Join(absl::Seconds(40));

  ASSERT_TRUE(WIFSIGNALED(codes[static_cast<size_t>(victim)])) << "the victim lived on";
  const double limit_s = c.signal == SIGKILL ? 1.0 : 5.0;
  for (int rank = 0; rank < c.size; ++rank) {
    if (rank == victim) continue;
    SCOPED_TRACE(::testing::Message() << "rank " << rank);
    const size_t index = static_cast<size_t>(rank);
    EXPECT_TRUE(WIFEXITED(codes[index]) && WEXITSTATUS(codes[index]) == 0)
        << "wait status " << codes[index];
    EXPECT_EQ(report->suspect[index], victim);
    EXPECT_EQ(report->outcome[index], 1) << "a failed all-reduce changed the data";
    EXPECT_EQ(report->went_on[index], 1);
    const double seconds = static_cast<double>(report->noticed_ns[index] - struck_ns) * 1e-9;
    EXPECT_LE(seconds, limit_s);
  }
  EXPECT_EQ(SocketsOf(workers.job()), 0);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (int size : {2, 3, 4, 8}) {
    for (Moment moment :
         {Moment::kFreshGroup, Moment::kReduce, Moment::kBroadcast, Moment::kLate, Moment::kIdle}) {
      cases.push_back({size, moment, SIGKILL});
      cases.push_back({size, moment, SIGSTOP});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, FailureTest, ::testing::ValuesIn(Cases()), [](const auto& param) {
  return std::string(param.param.signal == SIGKILL ? "killed_" : "stopped_") +
         Name(param.param.moment) + "_of_" + std::to_string(param.param.size);
});

// A worker is killed at a random moment of a large all-reduce, many times: every survivor ends that
// operation with the old data or with the new, and all agree. Also when a second one is killed
// while the first one's share is being rescued.
TEST(AtomicityTest, KilledInsideALargeAllReduce) {
  struct Outcomes {
    std::atomic<int> running{0};
    std::array<std::atomic<int>, 4> completed{};  // operations that ended with new data
    std::array<std::atomic<int>, 4> bad{};
  };
  int struck_inside = 0;
  for (int round = 0; round < 40; ++round) {
    const bool heap = round % 4 == 3;
    const bool two = round % 2 == 1;
    SCOPED_TRACE(::testing::Message() << "round " << round);
    Shared<Outcomes> outcomes;
    WorkerProcesses workers(4, [&](Worker& worker) {
      const size_t elements = 1'500'000;
      absl::StatusOr<Buffer> buffer = worker.Allocate(elements * sizeof(float));
      std::vector<float> plain(heap ? elements : 0);
      float* data = heap ? plain.data() : buffer->as<float>();
      const size_t index = static_cast<size_t>(worker.rank());
      // After round k every element is (k+1)-fold the one before: 4^k.
      float before = 1;
      std::fill(data, data + elements, before);
      if (!worker.world().Barrier().ok()) return 1;
      ++outcomes->running;
      for (;;) {
        const absl::Status status =
            worker.world().AllReduce(Array::Of(data, elements), ReduceOp::kSum);
        const float expected = status.ok() ? 4 * before : before;
        for (size_t i = 0; i < elements; ++i) {
          if (data[i] != expected) {
            outcomes->bad[index] = 1 + (status.ok() ? 1 : 0);
            break;
          }
        }
        if (!status.ok()) return 0;
        ++outcomes->completed[index];
        before = expected;
        if (before > 1e30f) {
          before = 1;
          std::fill(data, data + elements, before);
        }
      }
    });
    const int64_t give_up_ns = NowNs() + 30'000'000'000;
    while (outcomes->running < 4 && NowNs() < give_up_ns) usleep(50);
    ASSERT_EQ(outcomes->running, 4);
    usleep(static_cast<useconds_t>(2000 + 1711 * round));
    workers.Signal(1, SIGKILL);
    if (two) workers.Signal(2, SIGKILL);
    const std::vector<int> codes = workers.Join();
    for (int rank : {0, 2, 3}) {
      if (two && rank == 2) continue;
      const size_t index = static_cast<size_t>(rank);
      EXPECT_TRUE(WIFEXITED(codes[index]) && WEXITSTATUS(codes[index]) == 0) << codes[index];
      EXPECT_EQ(outcomes->bad[index], 0) << "rank " << rank << " holds neither old nor new data";
      EXPECT_EQ(outcomes->completed[index], outcomes->completed[0]) << "the survivors disagree";
    }
    struck_inside += outcomes->completed[0] != outcomes->completed[1];
  }
  EXPECT_GT(struck_inside, 0) << "no kill hit an operation that the others then finished";
}

// Stops the second worker of a job of two for a moment; returns what the workers say of it.
template <typename Start>
std::string SaidAboutAPause(const Start& start, int64_t& stopped_ms) {
  Shared<std::atomic<int>> ready;
  Shared<std::atomic<bool>> over;
  ::testing::internal::CaptureStderr();
  setenv("SYNCOPATE_DEBUG", "INFO", 1);
  const auto workers = start([&](Worker& worker) {
    if (!worker.world().Barrier().ok()) return 1;
    ++*ready;
    while (!*over) usleep(1000);
    // The sentry tells when it acts the next time, which it does five times a second.
    const int64_t until_ns = NowNs() + 1'000'000'000;
    while (NowNs() < until_ns) usleep(10'000);
    return worker.world().Barrier().ok() ? 0 : 2;
  });
  unsetenv("SYNCOPATE_DEBUG");
  const int64_t until_ns = NowNs() + 60'000'000'000;
  while (*ready < 2 && NowNs() < until_ns) usleep(1000);
  EXPECT_EQ(*ready, 2);
  // Shorter than what makes the other one give it up, longer than its sentry sleeps (0.2 s).
  workers->Signal(1, SIGSTOP);
  const int64_t stopped_ns = NowNs();
  usleep(1'500'000);
  workers->Signal(1, SIGCONT);
  stopped_ms = (NowNs() - stopped_ns) / 1'000'000;
  *over = true;
  EXPECT_THAT(workers->Join(), ::testing::Each(0));
  return ::testing::internal::GetCapturedStderr();
}

void ExpectPauseOf(const std::string& said, int64_t at_least_ms) {
  const std::string line = "[rank 1] info: this worker's sentry was held up for ";
  const size_t place = said.find(line);
  ASSERT_NE(place, std::string::npos) << said;
  EXPECT_GE(std::atoll(said.c_str() + place + line.size()), at_least_ms) << said;
}

TEST(PauseTest, StoppedWorkerTellsForHowLong) {
  int64_t stopped_ms = 0;
  const std::string said = SaidAboutAPause(
      [](const std::function<int(Worker&)>& body) {
        return std::make_unique<WorkerProcesses>(2, body);
      },
      stopped_ms);
  ExpectPauseOf(said, stopped_ms - 250);
}

TEST(PauseTest, StoppedWorkerOnAnotherHostToo) {
  int64_t stopped_ms = 0;
  const std::string said = SaidAboutAPause(
      [](const HostWorkers::Body& body) { return HostWorkers::OnLoopback(2, 1, body); },
      stopped_ms);
  ExpectPauseOf(said, stopped_ms - 250);
}

// Runs barriers until only `left` of the workers are there, going on without those that are lost.
int OutliveTheOthers(Worker& worker, size_t left, std::atomic<int>& ready) {
  Group group = worker.world();
  std::vector<int> members = group.members();
  if (!group.Barrier().ok()) return 1;
  ++ready;
  while (members.size() > left) {
    absl::Status status = group.Barrier();
    while (!status.ok()) {
      const std::optional<int> suspect = GetSuspect(status);
      if (!suspect || std::erase(members, *suspect) == 0) return 2;
      absl::StatusOr<Group> survivors = worker.NewGroup(members);
      if (survivors.ok()) group = *survivors;
      status = survivors.ok() ? group.Barrier() : survivors.status();
    }
  }
  return group.Barrier().ok() ? 0 : 3;
}

// UCX took the end of several connections in one go for a mistake of its own, and ended the process:
// one death took live workers along.
TEST(UcxTest, DeathsThatAreSeenTogetherEndNobodyElse) {
  for (int round = 0; round < 8; ++round) {  // one of two rounds showed it
    setenv("SYNCOPATE_TRANSPORT", "ucx", 1);
    Shared<std::atomic<int>> ready;
    const auto workers = HostWorkers::OnLoopback(
        6, 1, [&](Worker& worker) { return OutliveTheOthers(worker, 3, *ready); });
    unsetenv("SYNCOPATE_TRANSPORT");
    const int64_t until_ns = NowNs() + 60'000'000'000;
    while (*ready < 6 && NowNs() < until_ns) usleep(1000);
    ASSERT_EQ(*ready, 6);
    for (const int rank : {0, 1, 2}) workers->Signal(rank, SIGSTOP);
    for (const int rank : {3, 4, 5}) workers->Signal(rank, SIGKILL);
    usleep(100'000);  // all ends are there before anyone looks
    for (const int rank : {0, 1, 2}) workers->Signal(rank, SIGCONT);
    ASSERT_THAT(workers->Join(), ::testing::ElementsAre(0, 0, 0, SIGKILL, SIGKILL, SIGKILL));
  }
}

TEST(CleanupTest, NothingIsLeftWhenEverybodyIsKilled) {
  Shared<std::atomic<int>> running;
  WorkerProcesses workers(4, [&](Worker& worker) {
    std::vector<float> data(100'000, 1);
    ++*running;
    while (worker.world().AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kMax).ok()) {
    }
    pause();  // it sees others killed, and is about to be
    return 0;
  });
  while (*running < 4) usleep(100);
  EXPECT_GE(SocketsOf(workers.job()), 0);
  for (int rank = 0; rank < 4; ++rank) workers.Signal(rank, SIGKILL);
  for (int code : workers.Join()) EXPECT_TRUE(WIFSIGNALED(code));
  EXPECT_EQ(SocketsOf(workers.job()), 0);
  // Shared memory has no name in any file system; a job of the same name starts afresh.
}

TEST(TimeoutTest, MemberThatDoesNotCallIsNamedInTimeAndNotTooEarly) {
  Shared<std::array<std::atomic<int>, 3>> results;
  WorkerProcesses workers(3, [&](Worker& worker) {
    if (!worker.world().Barrier().ok()) return 1;
    if (worker.rank() == 2) {
      // Alive, with a beating heart, but it does not take part until the others have given up.
      while ((*results)[0] == 0 || (*results)[1] == 0) usleep(1000);
      std::vector<float> data(10, 3);
      const absl::Status status =
          worker.world().AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum);
      (*results)[2] = 1;
      return status.code() == absl::StatusCode::kDeadlineExceeded && data[0] == 3 ? 0 : 2;
    }
    std::vector<float> data(10, 1);
    const absl::Time start = absl::Now();
    const absl::Status status = worker.world().Run({.collective = Collective::kAllReduce,
                                                    .data = Array::Of(data.data(), data.size()),
                                                    .op = ReduceOp::kSum,
                                                    .timeout = absl::Milliseconds(300)});
    const absl::Duration took = absl::Now() - start;
    (*results)[static_cast<size_t>(worker.rank())] = 1;
    while ((*results)[2] == 0) usleep(1000);  // whoever leaves the job would be blamed first
    if (status.code() != absl::StatusCode::kDeadlineExceeded) return 3;
    if (GetSuspect(status) != 2) return 4;
    if (data[0] != 1) return 5;
    // Both may not be exactly at the deadline: the first to give up tells the other.
    if (took < absl::Milliseconds(200) || took > absl::Seconds(5)) return 6;
    return 0;
  });
  for (int code : workers.Join()) EXPECT_EQ(code, 0) << "exit code " << WEXITSTATUS(code);
}

}  // namespace
}  // namespace syncopate
