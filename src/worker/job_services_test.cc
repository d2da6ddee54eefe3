// Services of a running job through the public interface and through that of the rooms above: workers
// that are threads of this process, in shared memory, and leave one after the other.
#include "worker/job_services.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/counter.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"
#include "worker/awaited.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using services::Counter;
using ::testing::HasSubstr;

constexpr int64_t kSecondNs = 1'000'000'000;

int64_t In(int64_t seconds) { return MonotonicClock().NowNs() + seconds * kSecondNs; }

// Answers "now" at once, "later" after 20 ms of its time, and anything else never.
class Patient : public Service {
 public:
  absl::string_view name() const override { return "patient"; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override {
    ServiceStep step;
    if (const auto* asked = std::get_if<ServiceAsked>(&event)) {
      if (asked->request == "now")
        step.answers.push_back({.to = asked->from, .ticket = asked->ticket});
      if (asked->request == "later") waiting_.emplace_back(context.now_ns + 20'000'000, *asked);
    }
    while (!waiting_.empty() && waiting_.front().first <= context.now_ns) {
      const ServiceAsked& asked = waiting_.front().second;
      step.answers.push_back({.to = asked.from, .ticket = asked.ticket, .bytes = "later"});
      waiting_.erase(waiting_.begin());
    }
    return step;
  }
  int64_t NextDeadlineNs() const override {
    return waiting_.empty() ? INT64_MAX : waiting_.front().first;
  }
  std::string State() const override { return ""; }
  absl::Status Load(absl::string_view) override { return absl::OkStatus(); }

 private:
  std::vector<std::pair<int64_t, ServiceAsked>> waiting_;
};

TEST(JobServicesTest, EveryRequestIsAnsweredOnceWhileHostsLeaveOneAfterTheOther) {
  constexpr int kWorkers = 4, kRounds = 300;
  std::mutex mutex;
  std::set<uint64_t> sums;
  RunWorkers(kWorkers, [&](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Counter>(false)).ok());
    // The lower the rank, the sooner it leaves: each is the host when it does.
    for (int i = 0; i < kRounds * (worker.rank() + 1); ++i) {
      const absl::StatusOr<std::string> answer = worker.Ask("counter", Counter::Add(1));
      ASSERT_TRUE(answer.ok()) << answer.status();
      const absl::StatusOr<Counter::Sum> sum = Counter::Read(*answer);
      ASSERT_TRUE(sum.ok());
      std::lock_guard<std::mutex> lock(mutex);
      EXPECT_TRUE(sums.insert(sum->total).second) << sum->total << " was given twice";
    }
  });
  EXPECT_EQ(sums.size(), kRounds * (1u + 2 + 3 + 4));
  EXPECT_EQ(*sums.rbegin(), sums.size());
}

// The incarnation of the host that answers once rank 0 has left.
uint64_t IncarnationWithoutRank0(const Options& options = {}) {
  std::atomic<uint64_t> incarnation{0};
  const auto body = [&](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Counter>(false)).ok());
    ASSERT_TRUE(worker.Ask("counter", Counter::Add(1)).ok());
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 0) return;
    while (worker.Lost().empty()) std::this_thread::yield();
    if (worker.rank() == 2) return;
    const absl::StatusOr<std::string> answer = worker.Ask("counter", Counter::Add(1));
    ASSERT_TRUE(answer.ok()) << answer.status();
    incarnation = Counter::Read(*answer)->id.incarnation;
  };
  RunWorkers(3, body, options);
  return incarnation;
}

TEST(JobServicesTest, RanksHostInTheOrderThatTheUserSays) {
  EXPECT_GE(IncarnationWithoutRank0(), 1u) << "rank 0 was the first host";
  setenv("SYNCOPATE_SERVICE_RANKS", "1,0", 1);
  EXPECT_EQ(IncarnationWithoutRank0(), 0u) << "rank 1 was";
  unsetenv("SYNCOPATE_SERVICE_RANKS");
}

TEST(JobServicesTest, AServerHostsNothing) {
  Options options;
  options.server_ranks = {0};
  EXPECT_EQ(IncarnationWithoutRank0(options), 0u) << "rank 1 was the first host";
  RunWorkers(
      3,
      [](Worker& worker) {
        EXPECT_EQ(ServicesOf(worker).host_order(), (std::vector<int>{1, 2}));
        ASSERT_TRUE(worker.world().Barrier().ok());
      },
      options);
}

TEST(JobServicesTest, AServiceIsToldOfItsTimes) {
  RunWorkers(2, [](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Patient>()).ok());
    const int64_t begin_ns = MonotonicClock().NowNs();
    const absl::StatusOr<std::string> answer = worker.Ask("patient", "later");
    EXPECT_EQ(answer.value_or(""), "later");
    EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 20'000'000);
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(JobServicesTest, RequestsWaitForAHostThatAddsTheServiceLater) {
  std::atomic<bool> asked{false};
  RunWorkers(3, [&](Worker& worker) {
    if (worker.rank() == 0) {
      while (!asked) std::this_thread::yield();
    }
    ASSERT_TRUE(worker.AddService(std::make_unique<Counter>(false)).ok());
    if (worker.rank() == 2) {
      Awaited<absl::StatusOr<std::string>> answer;
      ASSERT_TRUE(worker
                      .StartAsking("counter", Counter::Add(7),
                                   [&](absl::StatusOr<std::string> came) { answer.Bring(came); })
                      .ok());
      asked = true;
      const auto came = answer.Wait(MonotonicClock(), In(60));
      ASSERT_TRUE(came.has_value());
      ASSERT_TRUE(came->ok()) << came->status();
      EXPECT_EQ(Counter::Read(**came)->total, 7u);
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(JobServicesTest, WhatIsWrongIsRefused) {
  RunWorkers(1, [](Worker& worker) {
    EXPECT_EQ(worker.Ask("counter", "").status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(worker.Ask("counter", "").status().message(), HasSubstr("\"counter\""));
    EXPECT_EQ(worker.AddService(nullptr).code(), absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(worker.AddService(std::make_unique<Counter>(false)).ok());
    EXPECT_EQ(worker.AddService(std::make_unique<Counter>(false)).code(),
              absl::StatusCode::kAlreadyExists);
    const absl::Status taken = worker.AddService(
        std::make_unique<services::SampleRanges>(services::SampleRangesOptions{}));
    EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists) << taken;
    // A service's own error, with its name.
    const absl::Status bad = worker.Ask("counter", "much too long a number").status();
    EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(bad.message(), HasSubstr("service counter: an addition is a number of 4 bytes"));
    EXPECT_EQ(GetBlast(bad), BlastRadius::kOperation);
  });
}

TEST(JobServicesTest, AServiceOfAnOwnerIsItsOwnAndDoesNotCountAmongTheOthers) {
  RunWorkers(2, [](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Counter>(false)).ok());
    // Owners are made in the same order on all workers; what they add may come in any.
    for (const int owner : worker.rank() == 0 ? std::vector<int>{5, 7} : std::vector<int>{7, 5}) {
      ASSERT_TRUE(AddServiceFor(worker, owner, std::make_unique<Counter>(false)).ok());
    }
    EXPECT_EQ(AddServiceFor(worker, 5, std::make_unique<Counter>(false)).code(),
              absl::StatusCode::kAlreadyExists);
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 1) {
      for (const auto& [name, adds] : {std::pair<std::string, uint32_t>{"counter", 1},
                                       {JobServices::NameFor("counter", 5), 20},
                                       {JobServices::NameFor("counter", 7), 300}}) {
        const absl::StatusOr<std::string> answer = worker.Ask(name, Counter::Add(adds));
        ASSERT_TRUE(answer.ok()) << answer.status();
        EXPECT_EQ(Counter::Read(*answer)->total, adds) << name << " began in a new state";
      }
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(JobServicesTest, ThereAreLimitsOnServices) {
  // It has a name of the longest kind.
  class Named : public Service {
   public:
    explicit Named(int number) : name_("n" + std::to_string(number)) { name_.resize(32, 'x'); }
    absl::string_view name() const override { return name_; }
    ServiceStep Step(const ServiceContext&, const ServiceEvent&) override { return {}; }
    std::string State() const override { return ""; }
    absl::Status Load(absl::string_view) override { return absl::OkStatus(); }

   private:
    std::string name_;
  };
  RunWorkers(1, [](Worker& worker) {
    for (int i = 0; i < static_cast<int>(kStrategyServicesMax); ++i) {
      const absl::Status added = AddServiceFor(worker, i, std::make_unique<Named>(0));
      ASSERT_TRUE(added.ok()) << added;
    }
    for (int i = 0; i < static_cast<int>(limits::kServicesMax); ++i) {
      const absl::Status added = worker.AddService(std::make_unique<Named>(i));
      ASSERT_TRUE(added.ok()) << added;
    }
    const absl::Status one_more = AddServiceFor(worker, 1000, std::make_unique<Named>(0));
    EXPECT_EQ(one_more.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(one_more.message(), HasSubstr("there are 256 services of strategies already"));
    const absl::Status another = worker.AddService(std::make_unique<Named>(1000));
    EXPECT_EQ(another.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(another.message(), HasSubstr("there are 64 services already"));
  });
}

TEST(JobServicesTest, WhatIsNotAnsweredWhenTheWorkerEndsIsCancelled) {
  std::atomic<int> cancelled{0};
  RunWorkers(1, [&](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Patient>()).ok());
    const auto count = [&](const absl::StatusOr<std::string>& answer) {
      cancelled += answer.status().code() == absl::StatusCode::kCancelled ? 1 : 0;
    };
    for (uint64_t i = 0; i < limits::kTicketsOpenMax; ++i) {
      ASSERT_TRUE(worker.StartAsking("patient", "never", count).ok());
    }
    EXPECT_EQ(worker.StartAsking("patient", "never", count).code(),
              absl::StatusCode::kResourceExhausted);
  });
  EXPECT_EQ(cancelled, static_cast<int>(limits::kTicketsOpenMax));
}

TEST(JobServicesTest, ARequestMayTakeAParcel) {
  RunWorkers(3, [](Worker& worker) {
    // It answers with what it is asked, up to the limit.
    class Echo : public Service {
      absl::string_view name() const override { return "echo"; }
      ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
        const auto* asked = std::get_if<ServiceAsked>(&event);
        if (asked == nullptr) return {};
        return {.answers = {{.to = asked->from, .ticket = asked->ticket, .bytes = asked->request}},
                .reason = ""};
      }
      std::string State() const override { return ""; }
      absl::Status Load(absl::string_view) override { return absl::OkStatus(); }
    };
    ASSERT_TRUE(worker.AddService(std::make_unique<Echo>()).ok());
    const std::string large(1 << 20, static_cast<char>('a' + worker.rank()));
    const absl::StatusOr<std::string> answer = worker.Ask("echo", large);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(*answer == large);
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

// What a worker has adopted, and waits for.
// Its kind holds it: the worker may adopt values until its end.
struct Adopted : std::enable_shared_from_this<Adopted> {
  std::mutex mutex;
  std::vector<std::tuple<uint64_t, std::string, int64_t>> values;

  size_t Count() {
    std::lock_guard<std::mutex> lock(mutex);
    return values.size();
  }

  LiveAgreement::Kind KindOf(uint64_t salt = 0) {
    return {.name = "pace",
            .scale = LiveAgreement::Scale::kIteration,
            .check =
                [salt](uint64_t, const std::string& value, const LiveAgreement::Checked& checked) {
                  Digest digest = DigestOf(value);
                  digest.low ^= salt;
                  checked(digest);
                },
            .adopt =
                [self = shared_from_this()](uint64_t version, std::string value, int64_t from) {
                  std::lock_guard<std::mutex> lock(self->mutex);
                  self->values.emplace_back(version, std::move(value), from);
                }};
  }
};

// Every worker goes its way at its own speed; values are proposed meanwhile. Each uses the same value
// at the same position.
TEST(JobServicesTest, AllUseAnAgreedValueFromTheSamePointOn) {
  constexpr int kWorkers = 4, kPositions = 2000;
  std::mutex mutex;
  std::map<int64_t, std::string> used;  // by position
  int values = 0;
  RunWorkers(kWorkers, [&](Worker& worker) {
    const auto adopted = std::make_shared<Adopted>();
    absl::StatusOr<LiveAgreement*> agreement = ServicesOf(worker).Agreement();
    ASSERT_TRUE(agreement.ok());
    ASSERT_TRUE((*agreement)->Register(adopted->KindOf(), 0).ok());
    EXPECT_EQ((*agreement)->Register(adopted->KindOf(), 0).code(),
              absl::StatusCode::kAlreadyExists);
    ASSERT_TRUE(worker.world().Barrier().ok());
    uint64_t version = 0;
    for (int64_t position = 1; position <= kPositions; ++position) {
      const absl::Status reached = (*agreement)->Reach("pace", position, In(60));
      ASSERT_TRUE(reached.ok()) << reached;
      std::string value;
      {
        std::lock_guard<std::mutex> lock(adopted->mutex);
        for (const auto& [number, bytes, from] : adopted->values) {
          if (from <= position) value = bytes;
          version = std::max(version, number);
        }
      }
      // Two of them propose the same.
      if (position % 100 == 50 && worker.rank() < 2) {
        const std::string next = "pace " + std::to_string(version + 1);
        ASSERT_TRUE((*agreement)
                        ->Propose("pace", version + 1, DigestOf(next), next,
                                  [](const absl::StatusOr<int64_t>&) {})
                        .ok());
      }
      {
        std::lock_guard<std::mutex> lock(mutex);
        const auto [found, fresh] = used.try_emplace(position, value);
        EXPECT_EQ(found->second, value) << "at " << position << ", rank " << worker.rank();
      }
      if (position % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(worker.rank()));
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    std::scoped_lock lock(mutex, adopted->mutex);
    values = std::max(values, static_cast<int>(adopted->values.size()));
  });
  EXPECT_GE(values, 3);
}

TEST(JobServicesTest, ADigestThatDiffersIsToldWithBoth) {
  RunWorkers(2, [](Worker& worker) {
    const auto adopted = std::make_shared<Adopted>();
    LiveAgreement& agreement = **ServicesOf(worker).Agreement();
    ASSERT_TRUE(agreement.Register(adopted->KindOf(static_cast<uint64_t>(worker.rank())), 0).ok());
    const std::string value = "v";
    if (worker.rank() == 0) {
      Awaited<absl::StatusOr<int64_t>> decided;
      ASSERT_TRUE(agreement
                      .Propose("pace", 1, DigestOf(value), value,
                               [&](absl::StatusOr<int64_t> from) { decided.Bring(from); })
                      .ok());
      const auto outcome = decided.Wait(MonotonicClock(), In(60));
      ASSERT_TRUE(outcome.has_value());
      Digest other = DigestOf(value);
      other.low ^= 1;
      EXPECT_THAT(outcome->status().message(), HasSubstr(DigestOf(value).ToString()));
      EXPECT_THAT(outcome->status().message(), HasSubstr(other.ToString()));
      EXPECT_EQ(agreement.Propose("speed", 1, {}, "", {}).code(), absl::StatusCode::kNotFound);
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    EXPECT_EQ(adopted->Count(), 0u);
  });
}

// A worker waits at the end of its 64, and no longer than it is told to.
TEST(JobServicesTest, AWorkerWaitsAtTheEndOfItsSixtyFour) {
  RunWorkers(2, [](Worker& worker) {
    const auto adopted = std::make_shared<Adopted>();
    LiveAgreement& agreement = **ServicesOf(worker).Agreement();
    LiveAgreement::Kind kind = adopted->KindOf();
    std::mutex mutex;
    LiveAgreement::Checked hold;  // of rank 1, which takes its time
    std::atomic<bool> asked{false};
    if (worker.rank() == 1) {
      kind.check = [&](uint64_t, const std::string&, const LiveAgreement::Checked& checked) {
        std::lock_guard<std::mutex> lock(mutex);
        hold = checked;
        asked = true;
      };
    }
    ASSERT_TRUE(agreement.Register(kind, 0).ok());
    const std::string value = "v";
    if (worker.rank() == 0) {
      ASSERT_TRUE(agreement.Reach(kind.name, 10, In(60)).ok());
      ASSERT_TRUE(agreement.Propose("pace", 1, DigestOf(value), value, [](const auto&) {}).ok());
    } else {
      while (!asked) std::this_thread::yield();
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 0) {
      // Its own answer may still be on its way to itself, but not for long.
      absl::Status status;
      int64_t position = 10;
      while (status.ok() && position < 10'000'000) {
        status = agreement.Reach(kind.name, ++position, MonotonicClock().NowNs() + kSecondNs / 10);
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(status.message(), HasSubstr("pace 1"));
      EXPECT_EQ(adopted->Count(), 0u);
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 1) {
      std::lock_guard<std::mutex> lock(mutex);
      hold(DigestOf(value));
    }
    EXPECT_TRUE(agreement.Reach(kind.name, 10'000'100, In(60)).ok());
    std::lock_guard<std::mutex> lock(adopted->mutex);
    EXPECT_EQ(adopted->values.size(), 1u);
  });
}

TEST(JobServicesTest, SampleRangesMakeExactEpochsAtUnequalSpeed) {
  constexpr uint64_t kSamples = 1000, kEpochs = 3;
  std::mutex mutex;
  std::vector<std::vector<int>> counted(kEpochs, std::vector<int>(kSamples));
  RunWorkers(3, [&](Worker& worker) {
    absl::StatusOr<LiveSamples*> samples =
        ServicesOf(worker).StartSamples({.samples = kSamples, .epochs = kEpochs});
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_FALSE(ServicesOf(worker).StartSamples({}).ok()) << "twice";
    for (;;) {
      const absl::StatusOr<services::GrantAnswer> grant =
          (*samples)->NextAndWait(10 * static_cast<uint64_t>(worker.rank() + 1), In(60));
      ASSERT_TRUE(grant.ok()) << grant.status();
      if (grant->over) break;
      std::vector<ServiceId> ids;
      std::lock_guard<std::mutex> lock(mutex);
      for (const services::SampleRange& range : grant->ranges) {
        ids.push_back(range.id);
        for (uint64_t i = range.samples.first; i < range.samples.end(); ++i) {
          ++counted[range.epoch][i];
        }
      }
      (*samples)->Use(ids);
    }
    const absl::StatusOr<services::SummaryAnswer> summary = (*samples)->Summary(In(60));
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary->progress.done, kEpochs);
    EXPECT_EQ(summary->repeated, 0u);
  });
  for (const std::vector<int>& epoch : counted) EXPECT_THAT(epoch, ::testing::Each(1));
}

}  // namespace
}  // namespace syncopate::worker
