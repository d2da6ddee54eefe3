// Rounds of texts by mail, between workers that are threads of this process, in shared memory.
#include "worker/mail_exchange.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapt/job_exchange.h"
#include "base/clock.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/syncopate.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;

TEST(MailExchangeTest, TextsOfAnyLengthAreExchanged) {
  RunWorkers(3, [](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    // At both sides of what fits a message, and one of several parts.
    for (const size_t length : {0, 1, 3000, 4096 - 17, 4096 - 16, 4096, 100'000, 3 << 20}) {
      const auto text_of = [&](int rank) {
        return std::string(length / static_cast<size_t>(rank + 1), static_cast<char>('a' + rank));
      };
      const std::string mine = text_of(worker.rank());
      const auto all = adapt::TextsOfAll(exchange, "texts", mine);
      ASSERT_TRUE(all.ok()) << all.status();
      const auto roots = adapt::TextOfRoot(exchange, "plan", mine, 2);
      ASSERT_TRUE(roots.ok()) << roots.status();
      EXPECT_TRUE(*roots == text_of(2));
      const auto gathered = adapt::TextsAtRoot(exchange, "traces", mine, 1);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
      EXPECT_EQ(gathered->size(), worker.rank() == 1 ? 3u : 0u);
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE((*all)[static_cast<size_t>(rank)] == text_of(rank)) << length;
        if (worker.rank() == 1) {
          EXPECT_TRUE((*gathered)[static_cast<size_t>(rank)] == text_of(rank)) << length;
        }
      }
    }
  });
}

// The last round of a job: nobody waits for the others before it leaves.
TEST(MailExchangeTest, AWorkerThatLeavesHasBroughtWhatItBrings) {
  for (int i = 0; i < 10; ++i) {
    RunWorkers(3, [](Worker& worker) {
      const auto gathered =
          adapt::TextsAtRoot(ExchangeOf(worker), "traces", std::string(2 << 20, 'x'), 0);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
    });
  }
}

// As the chunk tuner does: rounds are started one after the other, and looked at later.
TEST(MailExchangeTest, RoundsMayBeUnderWayWhileAWorkerIsAhead) {
  constexpr int kRounds = 200;
  std::atomic<int> started = 0;
  RunWorkers(2, [&](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    // Rank 1 begins when rank 0 has started all of its rounds.
    if (worker.rank() == 1) {
      while (started < kRounds) std::this_thread::yield();
    }
    std::vector<std::unique_ptr<adapt::JobExchange::Round>> rounds;
    for (int i = 0; i < kRounds; ++i) {
      rounds.push_back(exchange.Start({.what = "records", .text = std::to_string(i)}));
      if (worker.rank() == 0) ++started;
    }
    for (int i = 0; i < kRounds; ++i) {
      const auto texts = rounds[static_cast<size_t>(i)]->Wait();
      ASSERT_TRUE(texts.ok()) << texts.status();
      EXPECT_EQ((*texts)[static_cast<size_t>(1 - worker.rank())], std::to_string(i));
    }
    ASSERT_TRUE(adapt::TextsOfAll(exchange, "end", "").ok());
  });
}

// A round that nobody waits for is done by itself, on the control thread.
TEST(MailExchangeTest, ARoundIsDoneWithoutWaiting) {
  RunWorkers(2, [](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    const auto round = exchange.Start({.what = "records", .text = "mine"});
    const int64_t until_ns = MonotonicClock().NowNs() + 60'000'000'000;
    while (!round->Done() && MonotonicClock().NowNs() < until_ns) std::this_thread::yield();
    EXPECT_TRUE(round->Done());
    EXPECT_TRUE(round->Wait().ok());
  });
}

// As a part ends that cannot go on: whoever needs its text learns it at once, and the rounds before it are
// whole. Rank 2 needs the root's text alone, so it ends well if that comes before the news.
TEST(MailExchangeTest, AWorkerThatStopsFailsTheNextRoundOfTheOthers) {
  RunWorkers(3, [](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    const auto first = exchange.Start({.what = "records", .text = "mine", .root = 0});
    if (worker.rank() == 1) {
      exchange.Stop("it has seen enough");
    } else {
      const auto second = exchange.Start({.what = "records", .text = "mine", .root = 0});
      EXPECT_TRUE(second->WaitUntil(MonotonicClock().NowNs() + 30'000'000'000));
      const absl::Status status = second->Wait().status();
      if (worker.rank() == 0 || !status.ok()) {
        EXPECT_TRUE(absl::IsAborted(status)) << status;
        EXPECT_THAT(status.message(), HasSubstr("worker 1: it has seen enough"));
      }
    }
    EXPECT_TRUE(first->Wait().ok());
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(MailExchangeTest, ARoundIsWaitedForUntilADeadline) {
  std::atomic<bool> over = false;
  RunWorkers(2, [&](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    if (worker.rank() == 1) {
      while (!over) std::this_thread::yield();
    }
    const auto round = exchange.Start({.what = "records", .text = "mine"});
    if (worker.rank() == 0) {
      const int64_t deadline_ns = MonotonicClock().NowNs() + 50'000'000;
      EXPECT_FALSE(round->WaitUntil(deadline_ns));
      EXPECT_GE(MonotonicClock().NowNs(), deadline_ns);
      over = true;
    }
    // It goes on all the same.
    EXPECT_TRUE(round->WaitUntil(MonotonicClock().NowNs() + 30'000'000'000));
    EXPECT_TRUE(round->Wait().ok());
    EXPECT_TRUE(round->WaitUntil(0)) << "its end was taken";
  });
}

TEST(MailExchangeTest, AWorkerThatLeftIsNamed) {
  RunWorkers(3, [](Worker& worker) {
    ASSERT_TRUE(worker.world().Barrier().ok());  // all have come before it leaves
    if (worker.rank() == 2) return;
    const absl::Status status = adapt::TextsOfAll(ExchangeOf(worker), "texts", "mine").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(GetSuspect(status), std::optional<int>(2)) << status;
  });
}

TEST(MailExchangeTest, AWorkerThatDoesNotComeIsNamedWhenTimeIsUp) {
  Options options;
  options.timeout = absl::Milliseconds(300);
  std::atomic<bool> over = false;
  RunWorkers(
      2,
      [&](Worker& worker) {
        if (worker.rank() == 1) {
          while (!over) std::this_thread::yield();
          return;
        }
        const int64_t begin_ns = MonotonicClock().NowNs();
        const absl::Status status = adapt::TextsOfAll(ExchangeOf(worker), "texts", "mine").status();
        EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 300'000'000);
        over = true;
        EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
        EXPECT_EQ(GetSuspect(status), std::optional<int>(1));
      },
      options);
}

TEST(MailExchangeTest, ATextThatIsTooLongIsAnErrorOfAll) {
  RunWorkers(2, [](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    std::string text = "short";
    if (worker.rank() == 1) text.assign(kRoundTextBytesMax + 1, 'x');
    const absl::Status status = adapt::TextsOfAll(exchange, "texts", std::move(text)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("67108737 bytes"));
    // The next round is none the worse for it.
    EXPECT_TRUE(adapt::TextsOfAll(exchange, "texts", "short").ok());
  });
}

TEST(MailExchangeTest, MalformedMailNamesItsSender) {
  RunWorkers(3, [](Worker& worker) {
    if (worker.rank() == 1) {
      // Rank 0 has it before this worker's text of the round.
      const std::string bytes = Encode({.what = "texts", .text = "mine"}).substr(0, 9);
      ASSERT_TRUE(MailboxOf(worker).Send(0, MailExchange::kTopic, bytes).ok());
    }
    const absl::Status status = adapt::TextsOfAll(ExchangeOf(worker), "texts", "mine").status();
    if (worker.rank() == 0) {
      EXPECT_TRUE(absl::IsInternal(status)) << status;
      EXPECT_EQ(GetSuspect(status), std::optional<int>(1));
      EXPECT_THAT(status.message(), HasSubstr("malformed: it is too short"));
    } else {
      EXPECT_TRUE(status.ok()) << status;
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

// Users that send more than a worker takes must not break the library's own mail: it waits.
TEST(MailExchangeTest, RoundsGoOnBesideAFullQueue) {
  RunWorkers(2, [](Worker& worker) {
    adapt::JobExchange& exchange = ExchangeOf(worker);
    for (int i = 0; i < 200; ++i) {
      if (worker.rank() == 0) {
        absl::Status status;
        while (status.ok()) status = worker.Send(1, "flood", std::string(4096, 'x'));
        ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
      }
      const auto all = adapt::TextsOfAll(exchange, "texts", std::to_string(i));
      ASSERT_TRUE(all.ok()) << all.status();
      EXPECT_EQ((*all)[0], std::to_string(i));
    }
    ASSERT_TRUE(worker.world().Barrier().ok());  // who leaves takes along what waits for a place
  });
}

}  // namespace
}  // namespace syncopate::worker
