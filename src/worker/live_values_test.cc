// Values that workers agree on while some of them are lost, over the transport of one thread: each
// delay, the moment of each death and who hears of it first come from a seed.
#include "worker/live_values.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/loop/loop_transport.h"
#include "worker/job_services.h"
#include "worker/mailbox.h"

namespace syncopate::worker {
namespace {

constexpr int kValuesSize = 5;
constexpr int64_t kBeginCall = 7;  // at which each takes part
constexpr uint8_t kFurther = 4;

class ValuesJob {
 public:
  struct Worker {
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<Mailbox> mailbox;
    std::unique_ptr<JobServices> services;
    std::unique_ptr<LiveValues> values;
    bool dead = false;
    int64_t call = 0;
    bool waits = false;  // at the end of its margin
    std::vector<LiveValues::Value> agreed;
    std::map<int64_t, uint64_t> used;  // by call: the version
  };

  // `hosts`: the ranks that may host services.
  explicit ValuesJob(uint64_t seed, const std::vector<int>& hosts = {0, 1, 2, 3, 4})
      : network_(kValuesSize, seed), workers_(kValuesSize), one_host_(hosts.size() == 1) {
    for (int rank = 0; rank < kValuesSize; ++rank) {
      Worker& worker = workers_[static_cast<size_t>(rank)];
      worker.transport = network_.Attach(rank);
      worker.mailbox = std::make_unique<Mailbox>(*worker.transport, network_.clock());
      worker.services = std::make_unique<JobServices>(
          *worker.mailbox, network_.clock(),
          LiveService::Options{.rank = rank, .size = kValuesSize, .candidates = hosts});
      LiveValues::Kind kind = {.name = "value", .further = kFurther};
      kind.check = [this, rank](absl::string_view bytes) { return CheckOf(rank, bytes); };
      worker.values = std::make_unique<LiveValues>(*worker.services, std::move(kind));
    }
  }
  ~ValuesJob() {
    for (Worker& worker : workers_) worker.mailbox->Stop();
  }

  // A tick of the network, and what each live worker does in it.
  void Step(bool proposes = true) {
    network_.Tick();
    for (Worker& worker : workers_) {
      if (worker.dead) continue;
      worker.mailbox->Work();
      Call(worker);
      if (proposes && worker.call > kBeginCall && random().Below(60) == 0) Propose(worker);
    }
  }

  void Call(Worker& worker) {
    if (random().Below(3) != 0) return;
    const int64_t next = worker.call + 1;
    // The deadline has passed, so it does not wait.
    const bool may = worker.values->MayReach(next);
    worker.waits = !worker.values->Reach(next, 0).ok();
    if (!one_host_) {
      EXPECT_EQ(may, !worker.waits) << "at " << next;
    }
    if (worker.waits) {
      ++waited_;
      return;
    }
    worker.call = next;
    if (next == kBeginCall) worker.values->Begin(next);
    uint64_t version = 0;
    for (LiveValues::Value& value : worker.values->TakeNew()) {
      EXPECT_GE(value.from, next) << "it came too late";
      worker.agreed.push_back(std::move(value));
    }
    for (const LiveValues::Value& value : worker.agreed) {
      if (value.from <= next) version = value.version;
    }
    worker.used[next] = version;
  }

  void Propose(Worker& worker) {
    const uint64_t version = worker.agreed.empty() ? 1 : worker.agreed.back().version + 1;
    worker.values->Propose(version, "value " + std::to_string(version));
  }

  // It dies now; the others hear of it one after the other.
  void Kill(int rank) {
    worker(rank).dead = true;
    for (int i = 0; i < kValuesSize; ++i) {
      const int by =
          static_cast<int>((static_cast<uint64_t>(rank) + 1 + random().Below(kValuesSize))) %
          kValuesSize;
      network_.KillHeardBy(rank, by);
      for (uint64_t ticks = random().Below(10); ticks > 0; --ticks) Step();
    }
    network_.Kill(rank);
  }

  absl::StatusOr<Digest> CheckOf(int rank, absl::string_view bytes) const {
    if (rank == 3 && bytes == refused) return absl::InvalidArgumentError("not this one");
    return DigestOf(bytes);
  }

  Worker& worker(int rank) { return workers_[static_cast<size_t>(rank)]; }
  std::vector<Worker>& workers() { return workers_; }
  Random& random() { return network_.random(); }
  int waited() const { return waited_; }

  std::string refused;  // by rank 3

 private:
  transport::LoopNetwork network_;
  std::vector<Worker> workers_;
  const bool one_host_;
  int waited_ = 0;
};

TEST(LiveValuesTest, AllUseAValueFromTheSameCallOnOrNoneDoesWhoeverIsLost) {
  int open_at_a_death = 0;
  for (uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ValuesJob job(seed);
    // The host or its standby; whoever has proposed may be among them.
    std::vector<int> order = {0, 1, 2, 3, 4};
    for (int deaths = 0; deaths < 3; ++deaths) {
      for (uint64_t ticks = 150 + job.random().Below(150); ticks > 0; --ticks) job.Step();
      for (const ValuesJob::Worker& worker : job.workers()) open_at_a_death += worker.waits;
      const auto victim = order.begin() + static_cast<int>(job.random().Below(2));
      job.Kill(*victim);
      order.erase(victim);
    }
    for (int ticks = 0; ticks < 200; ++ticks) job.Step();
    for (int ticks = 0; ticks < 300; ++ticks) job.Step(/*proposes=*/false);
    std::map<int64_t, uint64_t> used;
    for (const ValuesJob::Worker& worker : job.workers()) {
      if (worker.dead) continue;
      EXPECT_FALSE(worker.waits) << "nothing is open any more";
      ASSERT_GE(worker.agreed.size(), 2u);
      for (const auto& [call, version] : worker.used) {
        EXPECT_EQ(used.try_emplace(call, version).first->second, version) << "call " << call;
      }
    }
    EXPECT_GT(job.waited(), 0) << "nobody came to the end of its margin";
  }
  EXPECT_GT(open_at_a_death, 10) << "no worker was lost in the middle of an agreement";
}

// One that had heard the outcome used the value, and one that had not went on without it, beyond the point up
// to which it had promised to go.
TEST(LiveValuesTest, WhoeverMissesAnOutcomeForEverGoesNoFurtherThanItPromised) {
  int stopped = 0;
  for (uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ValuesJob job(seed, {0});
    for (uint64_t ticks = 100 + job.random().Below(100); ticks > 0; --ticks) job.Step();
    job.Kill(0);
    for (int ticks = 0; ticks < 200; ++ticks) job.Step();
    std::map<int64_t, uint64_t> used;
    for (const ValuesJob::Worker& worker : job.workers()) {
      if (worker.dead) continue;
      stopped += worker.waits;
      for (const auto& [call, version] : worker.used) {
        EXPECT_EQ(used.try_emplace(call, version).first->second, version) << "call " << call;
      }
    }
  }
  EXPECT_GT(stopped, 10) << "the host was not lost in the middle of an agreement";
}

TEST(LiveValuesTest, AValueCountsSoonAfterAllHaveAnswered) {
  ValuesJob job(3);
  while (std::any_of(job.workers().begin(), job.workers().end(),
                     [](const ValuesJob::Worker& worker) { return worker.call < 20; })) {
    job.Step(/*proposes=*/false);
  }
  int64_t furthest = 0;
  job.Propose(job.worker(2));
  while (job.worker(2).agreed.empty()) {
    for (const ValuesJob::Worker& worker : job.workers())
      furthest = std::max(furthest, worker.call);
    job.Step(/*proposes=*/false);
  }
  EXPECT_LE(job.worker(2).agreed[0].from, furthest + kFurther + 2);
}

TEST(LiveValuesTest, AValueThatOneWorkerCannotUseIsUsedByNobody) {
  ValuesJob job(5);
  job.refused = "value 1";
  for (int ticks = 0; ticks < 200; ++ticks) job.Step();
  for (const ValuesJob::Worker& worker : job.workers()) EXPECT_TRUE(worker.agreed.empty());
}

// As the cost probe does with its synchronizers, while the host and its successor are lost. There could be 64
// kinds in a job.
TEST(LiveValuesTest, AThousandKindsAreUsedOneAfterTheOther) {
  constexpr int kKinds = 1000;
  ValuesJob job(7);
  std::map<int, std::unique_ptr<LiveValues>> values;  // by live rank
  for (int rank = 0; rank < kValuesSize; ++rank) values[rank];
  for (int i = 0; i < kKinds; ++i) {
    for (auto& [rank, mine] : values) {
      mine = std::make_unique<LiveValues>(
          *job.worker(rank).services,
          LiveValues::Kind{.name = "schedule of synchronizer " + std::to_string(i),
                           .further = kFurther,
                           .check = [](absl::string_view bytes) { return DigestOf(bytes); }});
      mine->Begin(1);
    }
    // Some of it is still under way then.
    if (i == 300 || i == 600) {
      const int host = values.begin()->first;
      values.erase(host);
      job.Kill(host);
    }
    std::next(values.begin(), i % 3)->second->Propose(1, "value");
    for (auto& [rank, mine] : values) {
      std::vector<LiveValues::Value> agreed;
      for (int ticks = 0; agreed.empty() && ticks < 1000; ++ticks) {
        job.Step(/*proposes=*/false);
        agreed = mine->TakeNew();
      }
      ASSERT_EQ(agreed.size(), 1u) << "kind " << i << " at worker " << rank;
      mine->End();  // each at a time of its own
    }
  }
}

// The topology of a large network takes some milliseconds to read: heartbeats and mail must not wait for that.
TEST(LiveValuesTest, ALongCheckHoldsUpNothingElse) {
  std::atomic<bool> held{true};
  std::atomic<int> checks{0};  // by this test's thread, which is the control thread of all workers
  ValuesJob job(11);
  const std::thread::id control = std::this_thread::get_id();
  std::vector<std::unique_ptr<LiveValues>> values;
  for (ValuesJob::Worker& worker : job.workers()) {
    values.push_back(std::make_unique<LiveValues>(
        *worker.services,
        LiveValues::Kind{.name = "long",
                         .further = kFurther,
                         .check = [&, control](absl::string_view bytes) -> absl::StatusOr<Digest> {
                           if (std::this_thread::get_id() == control) {
                             ++checks;
                             return DigestOf(bytes);
                           }
                           while (held) std::this_thread::yield();
                           return DigestOf(bytes);
                         },
                         .long_check = true}));
    values.back()->Begin(1);
  }
  values[2]->Propose(1, "value");
  EXPECT_EQ(checks, 1) << "of whoever proposes";
  for (int ticks = 0; ticks < 1000; ++ticks) job.Step(/*proposes=*/false);
  EXPECT_EQ(checks, 1);
  for (const auto& mine : values) EXPECT_TRUE(mine->TakeNew().empty());
  EXPECT_TRUE(values[2]->Undecided());
  held = false;
  for (const auto& mine : values) {
    std::vector<LiveValues::Value> agreed;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (agreed.empty() && std::chrono::steady_clock::now() < limit) {
      job.Step(/*proposes=*/false);
      agreed = mine->TakeNew();
      std::this_thread::yield();
    }
    ASSERT_EQ(agreed.size(), 1u);
    EXPECT_EQ(agreed[0].bytes, "value");
    mine->End();
  }
}

TEST(LiveValuesTest, BeforeItHasBegunNothingIsWaitedFor) {
  ValuesJob job(1);
  EXPECT_TRUE(job.worker(0).values->Reach(1000, 0).ok());
  EXPECT_TRUE(job.worker(0).values->TakeNew().empty());
  job.worker(0).values->Propose(1, "value 1");  // it is not used, and says so in the log
}

}  // namespace
}  // namespace syncopate::worker
