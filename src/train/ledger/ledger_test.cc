#include "train/ledger/ledger.h"

#include <future>
#include <map>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/ledger/ledger_seat.h"
#include "worker/worker_testing.h"

namespace syncopate::train {
namespace {

using Kind = LedgerReport::Kind;
using ::testing::ElementsAre;

// Steps a ledger, and a second one that loads the first one's state before every step: both must
// answer the same.
class Book {
 public:
  explicit Book(const LedgerOptions& options) : options_(options), ledger_(options) {}

  // What it answered to anybody, by rank; the newest of each.
  std::map<int, Standing> Step(const ServiceEvent& event) {
    Ledger second(options_);
    EXPECT_TRUE(second.Load(ledger_.State()).ok());
    const ServiceStep step = ledger_.Step({.incarnation = 3}, event);
    const ServiceStep again = second.Step({.incarnation = 3}, event);
    EXPECT_EQ(step.answers.size(), again.answers.size());
    std::map<int, Standing> standings;
    for (size_t i = 0; i < step.answers.size(); ++i) {
      EXPECT_EQ(step.answers[i].bytes, again.answers[i].bytes);
      const absl::StatusOr<Standing> standing = DecodeStanding(step.answers[i].bytes);
      EXPECT_TRUE(standing.ok()) << step.answers[i].bytes;
      if (standing.ok()) standings[step.answers[i].to] = *standing;
    }
    EXPECT_EQ(ledger_.State(), second.State());
    return standings;
  }
  std::map<int, Standing> Report(int from, const LedgerReport& report) {
    return Step(ServiceAsked{.from = from, .ticket = ++tickets_, .request = Encode(report)});
  }
  std::map<int, Standing> Lose(int rank) { return Step(ServiceDeparted{.rank = rank}); }

 private:
  const LedgerOptions options_;
  Ledger ledger_;
  uint64_t tickets_ = 0;
};

LedgerReport After(int64_t iteration, uint64_t samples, double loss = 1) {
  return {.iteration = iteration, .samples = samples, .batch = 4, .loss = loss, .rate = 0.5};
}

// What a worker reports of itself and of the job, as LedgerSeat does, for a ledger that is made anew.
LedgerReport ReportOf(LedgerReport own, const Standing& heard) {
  own.heard = heard.news;
  own.job = HeardFrom(heard);
  return own;
}

TEST(LedgerTest, ALineOfAJobInStepIsOfOneIterationOfAllWorkers) {
  Book book({.size = 2, .order = {0, 1}, .lockstep = true, .batch = 8, .report_every = 1});
  EXPECT_TRUE(book.Report(0, After(1, 4, 1))[0].lines.empty());
  EXPECT_TRUE(book.Report(0, After(2, 8, 5))[0].lines.empty());
  EXPECT_TRUE(book.Report(1, After(1, 4, 2))[1].lines.empty());  // rank 0 writes
  const Standing standing = book.Report(0, {.iteration = 2})[0];
  EXPECT_EQ(standing.writer, 0);
  ASSERT_EQ(standing.lines.size(), 1u);
  EXPECT_EQ(standing.lines[0].iteration, 1);
  EXPECT_EQ(standing.lines[0].loss, 1.5);
  EXPECT_EQ(standing.lines[0].rate, 0.5);
  // What is written is told no more.
  EXPECT_TRUE(book.Report(0, {.iteration = 2, .written = 1})[0].lines.empty());
}

TEST(LedgerTest, WithoutLockstepALineComesWithTheSamplesOfAll) {
  Book book({.size = 2, .order = {0, 1}, .lockstep = false, .batch = 8, .report_every = 2});
  book.Report(1, After(1, 4, 3));
  book.Report(1, After(2, 8, 3));
  EXPECT_TRUE(book.Report(0, After(1, 4, 1))[0].lines.empty());  // 12 samples
  book.Report(1, After(3, 12, 3));
  const Standing standing = book.Report(0, {.iteration = 1, .samples = 4})[0];
  EXPECT_EQ(standing.total_samples, 16u);
  ASSERT_EQ(standing.lines.size(), 1u);
  EXPECT_EQ(standing.lines[0].iteration, 2);
  EXPECT_EQ(standing.lines[0].loss, 2);
}

// They were divided among the workers, and went with one that was lost before it had said anything.
TEST(LedgerTest, WhatAJobHadBeforeItWentOnIsLostWithNobody) {
  const LedgerOptions options = {.size = 3,
                                 .order = {0, 1, 2},
                                 .lockstep = false,
                                 .batch = 12,
                                 .samples_max = 1300,
                                 .first_iteration = 100,
                                 .first_samples = 1200};
  Book book(options);
  EXPECT_EQ(book.Report(1, {.iteration = 100})[1].total_samples, 1200u);
  book.Lose(0);
  book.Lose(2);
  const Standing standing = book.Report(1, After(101, 4))[1];
  EXPECT_EQ(standing.total_samples, 1204u);
  EXPECT_FALSE(standing.stopping);
  // Nor with the ledger, and what was heard of them does not count twice.
  Ledger ledger(options);
  ASSERT_TRUE(
      ledger.Rebuild({.incarnation = 4}, {{1, Encode(ReportOf(After(101, 4), standing))}}).ok());
  const auto step = ledger.Step(
      {.incarnation = 4}, ServiceAsked{.from = 1, .ticket = 1, .request = Encode(After(102, 8))});
  EXPECT_EQ(DecodeStanding(step.answers.at(0).bytes)->total_samples, 1208u);
}

TEST(LedgerTest, TheNextOfTheOrderWritesWhatTheLostWriterHadNot) {
  Book book({.size = 3, .order = {2, 0, 1}, .lockstep = false, .batch = 4, .report_every = 1});
  EXPECT_EQ(book.Report(0, After(1, 4))[0].writer, 2);
  book.Report(2, {.written = 1});
  book.Report(1, After(1, 4));
  book.Lose(2);
  const Standing standing = book.Report(0, After(2, 8))[0];
  EXPECT_EQ(standing.writer, 0);
  ASSERT_EQ(standing.lines.size(), 3u);
  EXPECT_EQ(standing.lines[0].number, 2u);
  EXPECT_EQ(standing.lines[1].text, "rank 2 is lost");
  EXPECT_EQ(standing.lines[2].iteration, 3);
}

TEST(LedgerTest, AllEndAfterTheLargestPromise) {
  Book book({.size = 3, .order = {0}, .lockstep = false, .batch = 4, .samples_max = 12});
  for (const int rank : {0, 1, 2}) book.Report(rank, {.kind = Kind::kListen, .heard = 0});
  EXPECT_FALSE(book.Report(0, After(1, 4))[0].stopping);
  EXPECT_FALSE(book.Report(1, After(1, 4))[1].stopping);
  // The last of the samples: all hear of it, also those that have asked nothing since.
  auto told = book.Report(0, After(2, 8));
  ASSERT_EQ(told.size(), 3u);
  for (const auto& [rank, standing] : told) EXPECT_TRUE(standing.stopping && standing.stop_at < 0);
  LedgerReport promise = After(2, 8);
  promise.promise = 4;
  EXPECT_EQ(book.Report(0, promise)[0].stop_at, -1);
  promise.promise = 7;
  EXPECT_EQ(book.Report(1, promise)[1].stop_at, -1);
  book.Report(0, {.kind = Kind::kListen, .heard = told[0].news});
  // The third is lost before it has promised anything.
  EXPECT_EQ(book.Lose(2)[0].stop_at, 7);
}

TEST(LedgerTest, WorkersThatDoNotNeedEachOtherJustEnd) {
  Book book({.size = 2,
             .order = {0},
             .lockstep = false,
             .batch = 4,
             .ends_together = false,
             .samples_max = 8});
  EXPECT_EQ(book.Report(0, After(1, 4))[0].stop_at, -1);
  EXPECT_EQ(book.Report(1, After(1, 4))[1].stop_at, 0);
}

TEST(LedgerTest, AnEvaluationIsOrderedAgainAmongSurvivors) {
  Book book({.size = 3, .order = {0}, .lockstep = false, .batch = 4, .evaluate_every = 2});
  EXPECT_EQ(book.Report(0, After(1, 4))[0].order.number, 0u);
  const EvaluationOrder first = book.Report(1, After(1, 4))[1].order;
  EXPECT_EQ(first.number, 1u);
  EXPECT_THAT(first.members, ElementsAre(0, 1, 2));
  book.Lose(1);
  const EvaluationOrder second = book.Report(0, After(2, 8))[0].order;
  EXPECT_EQ(second.number, 1u);
  EXPECT_EQ(second.attempt, 1u);
  EXPECT_THAT(second.members, ElementsAre(0, 2));
  EXPECT_NE(second.key, first.key);
  EXPECT_EQ(second.key.maker, Ledger::kKeyMaker | 3);
  LedgerReport done = After(2, 8);
  done.written = 1000;
  done.evaluation = {.number = 1, .iteration = 2, .seconds = 4, .loss = 0.1, .accuracy = 0.9};
  Standing standing = book.Report(0, done)[0];
  EXPECT_EQ(standing.order.number, 0u);
  standing = book.Report(0, done)[0];  // told twice
  ASSERT_EQ(standing.lines.size(), 0u);
  EXPECT_FALSE(standing.stopping);
}

// It was never closed, so there was none any more.
TEST(LedgerTest, AnEvaluationThatFailsIsTriedAgainAndGivenUpInTheEnd) {
  Book book({.size = 3, .order = {0}, .lockstep = false, .batch = 4, .evaluate_every = 2});
  book.Report(0, After(1, 4));
  EvaluationOrder order = book.Report(1, After(1, 4))[1].order;
  EXPECT_EQ(order.number, 1u);
  LedgerReport failure = After(1, 4);
  failure.failed_order = 1;
  EXPECT_EQ(book.Report(1, failure)[1].order, order);  // only the writer's word counts
  book.Report(2, {.kind = Kind::kListen, .heard = 1});
  for (uint64_t attempt = 1; attempt < Ledger::kFailuresMax; ++attempt) {
    failure.failed_attempt = attempt - 1;
    const auto told = book.Report(0, failure);
    EXPECT_EQ(told.contains(2), attempt == 1);  // who listens
    const EvaluationOrder again = told.at(0).order;
    EXPECT_EQ(again.number, 1u);
    EXPECT_EQ(again.attempt, attempt);
    EXPECT_THAT(again.members, ElementsAre(0, 1, 2));
    EXPECT_NE(again.key, order.key);
    order = again;
    EXPECT_EQ(book.Report(0, failure)[0].order, order) << "told twice";
  }
  failure.failed_attempt = order.attempt;
  const Standing given_up = book.Report(0, failure)[0];
  EXPECT_EQ(given_up.order.number, 0u);
  ASSERT_FALSE(given_up.lines.empty());
  EXPECT_THAT(given_up.lines.back().text, ::testing::HasSubstr("is given up"));
  // The next mark orders another, which may fail as often.
  const Standing next = book.Report(0, After(3, 12))[0];
  EXPECT_EQ(next.order.number, 2u);
  failure.failed_order = 2;
  failure.failed_attempt = 0;
  EXPECT_EQ(book.Report(0, failure)[0].order.attempt, 1u);
}

TEST(LedgerTest, AnEvaluationThatReachesTheTargetEndsTheJob) {
  Book book({.size = 1, .order = {0}, .lockstep = false, .batch = 4, .evaluate_every = 1});
  EXPECT_EQ(book.Report(0, After(1, 4))[0].order.number, 1u);
  LedgerReport done = After(1, 4);
  done.evaluation = {.number = 1, .iteration = 1, .reached = true};
  const Standing standing = book.Report(0, done)[0];
  EXPECT_TRUE(standing.reached);
  EXPECT_TRUE(standing.stopping);
  EXPECT_EQ(standing.order.number, 0u);
}

// The next writer evaluates it for the summary, and there were two lines.
TEST(LedgerTest, TheLastEvaluationHasOneLineThoughItsWriterIsLost) {
  Book book({.size = 2, .order = {0, 1}, .lockstep = false, .batch = 4});
  LedgerReport done = After(3, 12);
  done.evaluation = {.iteration = 6, .loss = 0.5, .last = true};
  book.Report(1, After(3, 12));
  book.Report(0, done);
  book.Lose(0);
  int evaluations = 0;
  for (const LedgerLine& line : book.Report(1, done)[1].lines) {
    evaluations += line.kind == LedgerLine::Kind::kEvaluate;
  }
  EXPECT_EQ(evaluations, 1);
}

TEST(LedgerTest, AMeetingIsOfAllWhoLiveAndNamesTheFirstThatFailed) {
  Book book({.size = 4, .order = {0}});
  EXPECT_TRUE(book.Report(1, {.kind = Kind::kMeet, .ok = false}).empty());
  EXPECT_TRUE(book.Report(0, {.kind = Kind::kMeet}).empty());
  EXPECT_EQ(book.Report(0, {}).size(), 1u);  // what else it says does not end its waiting
  EXPECT_TRUE(book.Report(3, {.kind = Kind::kMeet, .ok = false}).empty());
  const auto met = book.Lose(2);
  ASSERT_EQ(met.size(), 3u);
  for (const auto& [rank, standing] : met) {
    EXPECT_THAT(standing.members, ElementsAre(0, 1, 3));
    EXPECT_EQ(standing.failed, 1);
    EXPECT_EQ(standing.key, met.at(0).key);
  }
}

TEST(LedgerTest, AFarewellWaitsForTheWriterOrTheNextOne) {
  Book book({.size = 3, .order = {0, 1, 2}});
  EXPECT_TRUE(book.Report(1, {.kind = Kind::kFarewell, .writer = 0}).empty());
  EXPECT_TRUE(book.Report(2, {.kind = Kind::kFarewell, .writer = 0}).empty());
  const auto told = book.Lose(0);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told.at(2).writer, 1);
  EXPECT_FALSE(told.at(2).written);
  EXPECT_TRUE(book.Report(2, {.kind = Kind::kFarewell, .writer = 1}).empty());
  const auto written = book.Report(1, {.kind = Kind::kWritten});
  ASSERT_EQ(written.size(), 2u);
  EXPECT_TRUE(written.at(2).written);
}

TEST(LedgerTest, WhatCannotBeReadIsRefused) {
  Ledger ledger({.size = 1, .order = {0}});
  for (const char* request :
       {"", "{", "[]", R"({"kind":9})", R"({"iteration":-1})", R"({"samples":"many"})"}) {
    const ServiceStep step = ledger.Step({}, ServiceAsked{.from = 0, .request = request});
    ASSERT_EQ(step.answers.size(), 1u) << request;
    EXPECT_EQ(step.answers[0].code, absl::StatusCode::kInvalidArgument) << request;
  }
  EXPECT_FALSE(ledger.Load(R"({"workers":[{},{}]})").ok());
}

TEST(LedgerTest, GoesOnFromWhatLiveWorkersReport) {
  Ledger ledger({.size = 3, .order = {0, 1, 2}, .lockstep = false, .batch = 4});
  LedgerReport one = After(5, 20), two = After(6, 24);
  one.heard = 7;
  two.written = 9;
  two.job.gone = {0};  // of which there is a line
  ASSERT_TRUE(ledger.Rebuild({.incarnation = 4}, {{1, Encode(one)}, {2, Encode(two)}}).ok());
  const ServiceStep step = ledger.Step(
      {.incarnation = 4}, ServiceAsked{.from = 1, .ticket = 1, .request = Encode(After(6, 24))});
  ASSERT_EQ(step.answers.size(), 1u);
  const Standing standing = *DecodeStanding(step.answers[0].bytes);
  EXPECT_EQ(standing.writer, 1);
  EXPECT_EQ(standing.total_samples, 48u);
  EXPECT_GT(standing.news, 7u);
  ASSERT_EQ(standing.lines.size(), 1u);
  EXPECT_EQ(standing.lines[0].number, 10u);
}

TEST(LedgerTest, WhatLostWorkersHadCountsAlthoughTheirLedgerIsLostWithThem) {
  const LedgerOptions options = {
      .size = 4, .order = {0, 1, 2, 3}, .lockstep = false, .batch = 16, .samples_max = 200};
  Book book(options);
  for (const int rank : {0, 1, 2}) {
    LedgerReport report = After(5, 20);
    report.bytes_sent = 100;
    book.Report(rank, report);
  }
  const Standing before = book.Report(3, After(5, 20))[3];
  EXPECT_EQ(before.total_samples, 80u);
  EXPECT_EQ(before.total_bytes, 300u);
  // The host and the standby are lost together. The one that heard less does not count.
  Standing earlier = before;
  earlier.total_samples = 60;
  LedgerReport two = After(6, 24), three = After(5, 20);
  two.bytes_sent = 120;
  Ledger ledger(options);
  ASSERT_TRUE(ledger
                  .Rebuild({.incarnation = 4}, {{2, Encode(ReportOf(two, earlier))},
                                                {3, Encode(ReportOf(three, before))}})
                  .ok());
  const auto step = ledger.Step(
      {.incarnation = 4}, ServiceAsked{.from = 2, .ticket = 1, .request = Encode(After(7, 28))});
  const Standing standing = *DecodeStanding(step.answers.at(0).bytes);
  EXPECT_EQ(standing.total_samples, 84u);  // one iteration since the last that anybody heard
  EXPECT_EQ(standing.total_bytes, 300u);
  EXPECT_FALSE(standing.stopping);
  // The next writer says in its own file who is lost.
  EXPECT_EQ(standing.writer, 2);
  EXPECT_THAT(standing.gone, ::testing::IsEmpty());
  ASSERT_GE(standing.lines.size(), 2u);
  EXPECT_EQ(standing.lines[0].text, "rank 0 is lost");
  EXPECT_EQ(standing.lines[1].text, "rank 1 is lost");
}

TEST(LedgerTest, OneThatIsMadeAnewSaysOnlyOfThoseThatTheyAreLostOfWhomNoLineIs) {
  const LedgerOptions options = {.size = 4, .order = {0, 1, 2, 3}, .lockstep = false, .batch = 16};
  Book book(options);
  book.Lose(3);
  Standing standing = book.Report(0, {})[0];
  EXPECT_THAT(standing.gone, ::testing::IsEmpty());  // it is not written yet
  ASSERT_EQ(standing.lines.size(), 1u);
  standing = book.Report(0, {.written = standing.lines[0].number})[0];
  EXPECT_THAT(standing.gone, ElementsAre(3));
  Ledger ledger(options);
  ASSERT_TRUE(ledger.Rebuild({.incarnation = 4}, {{1, Encode(ReportOf({}, standing))}}).ok());
  const auto step = ledger.Step(
      {.incarnation = 4}, ServiceAsked{.from = 1, .ticket = 1, .request = Encode(LedgerReport())});
  const Standing after = *DecodeStanding(step.answers.at(0).bytes);
  ASSERT_EQ(after.lines.size(), 2u);
  EXPECT_EQ(after.lines[0].text, "rank 0 is lost");
  EXPECT_EQ(after.lines[1].text, "rank 2 is lost");
  EXPECT_THAT(after.gone, ElementsAre(3));
}

// Workers went on past what they had promised, and some after others had ended.
TEST(LedgerTest, AJobThatStopsGoesOnStoppingWhenItsLedgerIsMadeAnew) {
  const LedgerOptions options = {.size = 3,
                                 .order = {0, 1, 2},
                                 .lockstep = false,
                                 .batch = 4,
                                 .evaluate_every = 1,
                                 .samples_max = 1000};
  Book book(options);
  LedgerReport reached = After(5, 20);
  const uint64_t order = book.Report(1, After(5, 20))[1].order.number;
  reached.evaluation = {.number = order, .iteration = 5, .reached = true};
  LedgerReport promise = After(5, 20);
  promise.promise = 7;
  const Standing heard = book.Report(1, reached)[1];
  ASSERT_TRUE(heard.stopping && heard.reached && heard.stop_at < 0);
  const auto ask = [](Ledger& ledger, int rank, const LedgerReport& report) {
    const auto step = ledger.Step(
        {.incarnation = 4}, ServiceAsked{.from = rank, .ticket = 1, .request = Encode(report)});
    return *DecodeStanding(step.answers.at(0).bytes);
  };
  // Rank 2 has not heard of it: it does now, and promises.
  Ledger ledger(options);
  ASSERT_TRUE(ledger
                  .Rebuild({.incarnation = 4},
                           {{1, Encode(ReportOf(promise, heard))}, {2, Encode(After(6, 24))}})
                  .ok());
  Standing standing = ask(ledger, 1, {});
  EXPECT_TRUE(standing.stopping);
  EXPECT_TRUE(standing.reached);
  EXPECT_EQ(standing.stop_at, -1);
  EXPECT_EQ(standing.order.number, 0u);
  promise.promise = 9;
  EXPECT_EQ(ask(ledger, 2, promise).stop_at, 9);
  // Where one knows after which iteration all end, it is that one.
  standing.stop_at = 8;
  Ledger later(options);
  ASSERT_TRUE(later
                  .Rebuild({.incarnation = 5},
                           {{1, Encode(ReportOf(promise, standing))}, {2, Encode(promise)}})
                  .ok());
  EXPECT_EQ(ask(later, 2, {}).stop_at, 8);
}

// Workers take part in an order only if its number is new to them.
TEST(LedgerTest, OrdersOfALedgerThatIsMadeAnewAreNew) {
  const LedgerOptions options = {
      .size = 2, .order = {0, 1}, .lockstep = false, .batch = 4, .evaluate_every = 2};
  Book book(options);
  book.Report(0, After(1, 4));
  const Standing heard = book.Report(1, After(1, 4))[1];
  EXPECT_EQ(heard.order.number, 1u);
  Ledger ledger(options);
  ASSERT_TRUE(ledger.Rebuild({.incarnation = 4}, {{1, Encode(ReportOf(After(1, 4), heard))}}).ok());
  const auto step = ledger.Step(
      {.incarnation = 4}, ServiceAsked{.from = 1, .ticket = 1, .request = Encode(After(4, 16))});
  const Standing standing = *DecodeStanding(step.answers.at(0).bytes);
  EXPECT_EQ(standing.total_samples, 20u);
  EXPECT_EQ(standing.order.number, 2u);
}

// Workers of different speed, live: they end after the same iteration, with the samples of all.
TEST(LedgerSeatTest, WorkersOfDifferentSpeedEndAfterTheSameIteration) {
  constexpr int kWorkers = 3;
  constexpr uint64_t kSamples = 600;
  std::vector<int64_t> iterations(kWorkers);
  std::vector<uint64_t> totals(kWorkers);
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    const size_t rank = static_cast<size_t>(worker.rank());
    auto seat = LedgerSeat::Make(worker, {.size = kWorkers,
                                          .order = {0, 1, 2},
                                          .lockstep = false,
                                          .batch = 12,
                                          .samples_max = kSamples});
    ASSERT_TRUE(seat.ok()) << seat.status();
    const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
    int64_t done = 0;
    for (;;) {
      const absl::StatusOr<bool> may = (*seat)->MayBegin(done, deadline_ns);
      ASSERT_TRUE(may.ok()) << may.status();
      if (!*may) break;
      // Rank 2 hears nothing of what it asks while it computes.
      for (volatile int work = 0; work < 20'000 * (rank == 2 ? 9 : 1);) work = work + 1;
      ++done;
      ASSERT_TRUE((*seat)->PostNewest(After(done, static_cast<uint64_t>(done) * 4)).ok());
    }
    iterations[rank] = done;
    LedgerReport last = After(done, static_cast<uint64_t>(done) * 4);
    last.finished = true;
    last.kind = Kind::kMeet;
    const absl::StatusOr<Standing> met = (*seat)->Ask(last);
    ASSERT_TRUE(met.ok()) << met.status();
    totals[rank] = met->total_samples;
  });
  EXPECT_EQ(iterations[0], iterations[1]);
  EXPECT_EQ(iterations[0], iterations[2]);
  for (const uint64_t total : totals) {
    EXPECT_EQ(total, static_cast<uint64_t>(iterations[0]) * 4 * kWorkers);
    EXPECT_GE(total, kSamples);
  }
}

// Answers nothing.
class MuteService : public Service {
 public:
  absl::string_view name() const override { return "mute"; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent&) override { return {}; }
  std::string State() const override { return ""; }
  absl::Status Load(absl::string_view) override { return absl::OkStatus(); }
};

// Others gave up after their timeout while the one that writes evaluated what the run ended with.
TEST(LedgerSeatTest, AFarewellMayTakeLongerThanARequest) {
  Options options;
  options.timeout = absl::Seconds(5);
  std::promise<void> timeout_passed;
  worker::RunWorkers(
      2,
      [&](Worker& worker) {
        ASSERT_TRUE(worker.AddService(std::make_unique<MuteService>()).ok());
        auto seat = LedgerSeat::Make(worker, {.size = 2, .order = {0, 1}});
        ASSERT_TRUE(seat.ok()) << seat.status();
        if (worker.rank() == 0) {
          ASSERT_EQ(timeout_passed.get_future().wait_for(std::chrono::seconds(60)),
                    std::future_status::ready);
          EXPECT_TRUE((*seat)->Ask({.kind = Kind::kWritten}).ok());
          return;
        }
        absl::StatusOr<Standing> told;
        std::thread waiting(
            [&] { told = (*seat)->Await({.kind = Kind::kFarewell, .writer = 0}, absl::Hours(1)); });
        // What is asked after it has waited for as long as a request may.
        EXPECT_TRUE(absl::IsDeadlineExceeded(worker.Ask("mute", "").status()));
        timeout_passed.set_value();
        waiting.join();
        ASSERT_TRUE(told.ok()) << told.status();
        EXPECT_TRUE(told->written);
      },
      options);
}

}  // namespace
}  // namespace syncopate::train
