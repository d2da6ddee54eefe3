// Live services over the transport of one thread: each delay, the moment of each death and who hears
// of it first come from a seed.
#include "worker/live_service.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/counter.h"
#include "transport/loop/loop_transport.h"
#include "worker/live_agreement.h"
#include "worker/mailbox.h"

namespace syncopate::worker {
namespace {

using services::Counter;
using ::testing::HasSubstr;

constexpr int kSize = 5;

class PlayedJob {
 public:
  struct Worker {
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<Mailbox> mailbox;
    std::unique_ptr<LiveService> counter;
    std::unique_ptr<LiveAgreement> agreement;
    bool dead = false;
    int asked = 0, answered = 0;
    absl::Status error;
    std::set<uint64_t> sums;
    int64_t position = 0;
    std::map<uint64_t, int64_t> adopted;  // by version: from where
  };

  PlayedJob(uint64_t seed, bool rebuilds) : network_(kSize, seed), workers_(kSize) {
    for (int rank = 0; rank < kSize; ++rank) {
      Worker& worker = workers_[static_cast<size_t>(rank)];
      const LiveService::Options options = {
          .rank = rank, .size = kSize, .candidates = {0, 1, 2, 3, 4}};
      worker.transport = network_.Attach(rank);
      worker.mailbox = std::make_unique<Mailbox>(*worker.transport, network_.clock());
      worker.counter = *LiveService::Start(
          *worker.mailbox, network_.clock(), options, std::make_unique<Counter>(rebuilds),
          [&worker] { return Counter::Report(worker.sums.empty() ? 0 : *worker.sums.rbegin()); });
      worker.agreement = *LiveAgreement::Start(*worker.mailbox, network_.clock(), options);
      EXPECT_TRUE(
          worker.agreement
              ->Register({.name = "value",
                          .scale = LiveAgreement::Scale::kIteration,
                          .check = [](uint64_t, const std::string& value,
                                      const auto& checked) { checked(DigestOf(value)); },
                          .adopt =
                              [&worker](uint64_t version, const std::string&, int64_t from) {
                                EXPECT_GT(from, worker.position);
                                worker.adopted[version] = from;
                              }},
                         0)
              .ok());
    }
  }

  // A tick of the network, and what each live worker does in it.
  void Step(bool asks = true) {
    network_.Tick();
    for (Worker& worker : workers_) {
      if (worker.dead) continue;
      worker.mailbox->Work();
      if (!asks) continue;
      if (worker.asked == worker.answered && worker.error.ok()) Ask(worker);
      Proceed(worker);
    }
  }

  void Ask(Worker& worker) {
    ++worker.asked;
    const absl::Status asked =
        worker.counter->Ask(Counter::Add(1), [&worker](const absl::StatusOr<std::string>& answer) {
          ++worker.answered;
          if (!answer.ok()) {
            worker.error = answer.status();
            return;
          }
          EXPECT_TRUE(worker.sums.insert(Counter::Read(*answer)->total).second);
        });
    if (!asked.ok()) worker.error = asked;
  }

  void Proceed(Worker& worker) {
    // The deadline has passed, so it does not wait.
    if (worker.agreement->Reach("value", worker.position + 1, 0).ok()) {
      ++worker.position;
    }
    if (random().Below(100) != 0) return;
    const uint64_t version = worker.adopted.empty() ? 1 : worker.adopted.rbegin()->first + 1;
    const std::string value = std::to_string(version);
    (void)worker.agreement->Propose("value", version, DigestOf(value), value, [](const auto&) {});
  }

  // It dies now; the others hear of it one after the other.
  void Kill(int rank) {
    worker(rank).dead = true;
    for (int i = 0; i < kSize; ++i) {
      const int by = static_cast<int>((static_cast<uint64_t>(rank) + 1 + random().Below(kSize))) %
                     kSize;  // some more than once
      network_.KillHeardBy(rank, by);
      for (uint64_t ticks = random().Below(10); ticks > 0; --ticks) Step();
    }
    network_.Kill(rank);
  }

  Worker& worker(int rank) { return workers_[static_cast<size_t>(rank)]; }
  std::vector<Worker>& workers() { return workers_; }
  Random& random() { return network_.random(); }

 private:
  transport::LoopNetwork network_;
  std::vector<Worker> workers_;
};

TEST(LiveServiceTest, EveryRequestOfASurvivorIsAnsweredOnceWhoeverHearsOfADeathFirst) {
  for (uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    PlayedJob job(seed, /*rebuilds=*/false);
    // The host, then the next one, and one that stands by.
    std::vector<int> order = {0, 1, 2, 3, 4};
    for (int deaths = 0; deaths < 3; ++deaths) {
      for (uint64_t ticks = 300 + job.random().Below(300); ticks > 0; --ticks) job.Step();
      const auto victim = order.begin() + static_cast<int>(job.random().Below(2));
      job.Kill(*victim);
      order.erase(victim);
    }
    for (int ticks = 0; ticks < 300; ++ticks) job.Step();
    for (int ticks = 0; ticks < 300; ++ticks) job.Step(/*asks=*/false);
    std::set<uint64_t> sums;
    std::map<uint64_t, int64_t> adopted;
    for (PlayedJob::Worker& worker : job.workers()) {
      for (const uint64_t sum : worker.sums) EXPECT_TRUE(sums.insert(sum).second) << sum;
      if (worker.dead) continue;
      EXPECT_TRUE(worker.error.ok()) << worker.error;
      EXPECT_EQ(worker.asked, worker.answered);
      EXPECT_GE(worker.answered, 20);
      if (adopted.empty()) adopted = worker.adopted;
      EXPECT_EQ(worker.adopted, adopted);
    }
    EXPECT_GE(adopted.size(), 1u);
  }
}

TEST(LiveServiceTest, ADoubleLossThatAServiceCannotBeRebuiltFromIsWhatEveryLaterRequestGets) {
  PlayedJob job(7, /*rebuilds=*/false);
  for (int ticks = 0; ticks < 300; ++ticks) job.Step();
  for (const int rank : {0, 1}) job.worker(rank).dead = true;
  for (const int rank : {0, 1}) job.Kill(rank);
  for (int ticks = 0; ticks < 300; ++ticks) job.Step();
  for (int rank = 2; rank < kSize; ++rank) {
    for (const absl::Status& status :
         {job.worker(rank).error, job.worker(rank).counter->status(),
          job.worker(rank).counter->Ask(Counter::Add(1), [](const auto&) {})}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(status.message(), HasSubstr("lost together"));
      EXPECT_EQ(GetBlast(status), BlastRadius::kJob);
    }
    // The agreement was rebuilt meanwhile.
    EXPECT_TRUE(job.worker(rank).agreement->service().status().ok());
  }
}

TEST(LiveServiceTest, AServiceOfWhichTheReportsTellEnoughIsRebuilt) {
  PlayedJob job(8, /*rebuilds=*/true);
  for (int ticks = 0; ticks < 300; ++ticks) job.Step();
  for (const int rank : {0, 1}) job.worker(rank).dead = true;
  for (const int rank : {0, 1}) job.Kill(rank);
  const int before = job.worker(3).answered;
  for (int ticks = 0; ticks < 300; ++ticks) job.Step();
  EXPECT_GT(job.worker(3).answered, before + 5);
  EXPECT_TRUE(job.worker(3).error.ok()) << job.worker(3).error;
}

}  // namespace
}  // namespace syncopate::worker
