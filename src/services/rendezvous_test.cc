#include "services/rendezvous.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::services {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Phase = RendezvousState::Phase;

RendezvousState NewMeeting(int size, std::vector<std::string> hosts = {}) {
  auto state = NewRendezvous("job", size, std::move(hosts));
  EXPECT_TRUE(state.ok()) << state.status();
  return *std::move(state);
}

// Call number 100 + rank.
JoinEvent Join(int rank, int size) {
  return {.call = static_cast<CallId>(100 + rank),
          .job = "job",
          .rank = rank,
          .size = size,
          .host = absl::StrCat("h", rank / 2),
          .payload = absl::StrCat("payload ", rank)};
}

std::string OnlyMessage(const RendezvousStep& step) {
  EXPECT_THAT(step.answers, SizeIs(1));
  return step.answers.empty() ? "" : std::string(step.answers[0].status.message());
}

TEST(RendezvousTest, AnswersNobodyBeforeTheLastAndThenEverybody) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int size = static_cast<int>(random.Between(1, 40));
    std::vector<int> order;
    for (int rank = 0; rank < size; ++rank) order.push_back(rank);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    RendezvousState state = NewMeeting(size);
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      EXPECT_THAT(Step(0, Join(order[i], size), state).answers, IsEmpty());
      EXPECT_EQ(state.phase, Phase::kGathering);
    }
    const RendezvousStep last = Step(0, Join(order.back(), size), state);
    EXPECT_EQ(state.phase, Phase::kComplete);
    std::set<CallId> calls;
    for (const RendezvousAnswer& answer : last.answers) {
      EXPECT_TRUE(answer.status.ok());
      calls.insert(answer.call);
    }
    EXPECT_THAT(calls, SizeIs(static_cast<size_t>(size)));
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(state.seats[static_cast<size_t>(rank)].payload, absl::StrCat("payload ", rank));
    }
  }
}

TEST(RendezvousTest, TurnsAwayWhoDoesNotBelongAndGoesOn) {
  RendezvousState state = NewMeeting(2);
  Step(0, Join(0, 2), state);
  JoinEvent stranger = Join(1, 2);
  stranger.job = "other";
  EXPECT_THAT(OnlyMessage(Step(0, stranger, state)),
              AllOf(HasSubstr("\"other\""), HasSubstr("\"job\"")));
  EXPECT_THAT(OnlyMessage(Step(0, Join(1, 3), state)),
              AllOf(HasSubstr("3 workers"), HasSubstr("SYNCOPATE_SIZE")));
  JoinEvent beyond = Join(1, 2);
  for (int rank : {-1, 2, INT32_MAX, INT32_MIN}) {
    beyond.rank = rank;
    EXPECT_THAT(OnlyMessage(Step(0, beyond, state)), HasSubstr("SYNCOPATE_RANK"));
  }
  JoinEvent heavy = Join(1, 2);
  heavy.payload.resize(limits::kMeetingPayloadBytesMax + 1);
  EXPECT_THAT(OnlyMessage(Step(0, heavy, state)), HasSubstr("8193 bytes"));
  EXPECT_THAT(Step(0, Join(1, 2), state).answers, SizeIs(2));
  EXPECT_EQ(state.phase, Phase::kComplete);
}

TEST(RendezvousTest, ARankComesOnce) {
  RendezvousState state = NewMeeting(2);
  Step(0, Join(0, 2), state);
  JoinEvent again = Join(0, 2);
  again.call = 7;
  again.host = "elsewhere";
  again.payload = "forged";
  const RendezvousStep step = Step(0, again, state);
  ASSERT_THAT(step.answers, SizeIs(1));
  EXPECT_EQ(step.answers[0].call, 7u);
  EXPECT_TRUE(absl::IsAlreadyExists(step.answers[0].status));
  EXPECT_THAT(step.reason, AllOf(HasSubstr("h0"), HasSubstr("elsewhere")));
  EXPECT_EQ(state.seats[0].payload, "payload 0");
}

TEST(RendezvousTest, TellsLatecomersWhatHappened) {
  RendezvousState met = NewMeeting(1);
  Step(0, Join(0, 1), met);
  JoinEvent late = Join(0, 1);
  late.call = 9;
  EXPECT_THAT(OnlyMessage(Step(0, late, met)), HasSubstr("have met already"));

  RendezvousState failed = NewMeeting(3);
  Step(0, Join(0, 3), failed);
  Step(0, LeaveEvent{100}, failed);
  EXPECT_THAT(OnlyMessage(Step(0, Join(1, 3), failed)),
              AllOf(HasSubstr("too late"), HasSubstr("rank 0 on h0 left")));
}

TEST(RendezvousTest, TheWorkersMayMeetAgain) {
  RendezvousState state = NewMeeting(2);
  JoinEvent again = Join(0, 2);
  again.round = 1;
  again.call = 200;
  again.payload = "new";
  Step(0, Join(0, 2), state);
  EXPECT_THAT(OnlyMessage(Step(0, again, state)), HasSubstr("is not over"));
  Step(0, Join(1, 2), state);
  EXPECT_THAT(Step(0, again, state).answers, IsEmpty());
  EXPECT_EQ(state.phase, Phase::kGathering);
  EXPECT_THAT(OnlyMessage(Step(0, Join(1, 2), state)), HasSubstr("too late"));
  JoinEvent last = Join(1, 2);
  last.round = 1;
  EXPECT_THAT(Step(0, last, state).answers, SizeIs(2));
  EXPECT_EQ(state.seats[0].payload, "new");
  last.round = 3;
  EXPECT_THAT(OnlyMessage(Step(0, last, state)), HasSubstr("too late"));
}

TEST(RendezvousTest, WhoLeavesEarlyIsNamedToTheOthers) {
  RendezvousState state = NewMeeting(4, {"a", "a", "b", "b"});
  Step(0, Join(0, 4), state);
  Step(0, Join(1, 4), state);
  const RendezvousStep step = Step(0, LeaveEvent{101}, state);
  ASSERT_THAT(step.answers, SizeIs(1));
  EXPECT_EQ(step.answers[0].call, 100u);
  EXPECT_TRUE(absl::IsUnavailable(step.answers[0].status));
  EXPECT_THAT(step.reason,
              AllOf(HasSubstr("rank 1 on h0 left"), HasSubstr("rank 2 on b, rank 3 on b had not")));
  EXPECT_EQ(state.phase, Phase::kFailed);
}

TEST(RendezvousTest, LeavingAfterwardsOrAsAStrangerChangesNothing) {
  RendezvousState state = NewMeeting(2);
  Step(0, Join(0, 2), state);
  EXPECT_THAT(Step(0, LeaveEvent{55}, state).answers, IsEmpty());
  EXPECT_EQ(state.phase, Phase::kGathering);
  Step(0, Join(1, 2), state);
  EXPECT_THAT(Step(0, LeaveEvent{100}, state).answers, IsEmpty());
  EXPECT_EQ(state.phase, Phase::kComplete);
}

TEST(RendezvousTest, TheFirstDeadlineEndsItAndNamesTheMissing) {
  RendezvousState state = NewMeeting(4, {"a", "a", "b", "b"});
  JoinEvent patient = Join(0, 4), hasty = Join(2, 4);
  patient.deadline_ns = 1000;
  hasty.deadline_ns = 500;
  EXPECT_EQ(NextDeadlineNs(state), INT64_MAX);
  Step(0, patient, state);
  Step(0, hasty, state);
  EXPECT_EQ(NextDeadlineNs(state), 500);
  EXPECT_THAT(Step(499, TimeEvent{}, state).answers, IsEmpty());
  const RendezvousStep step = Step(500, TimeEvent{}, state);
  ASSERT_THAT(step.answers, SizeIs(2));
  for (const RendezvousAnswer& answer : step.answers) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status));
  }
  EXPECT_THAT(step.reason,
              AllOf(HasSubstr("only 2 of 4"), HasSubstr("missing: rank 1 on a, rank 3 on b")));
  EXPECT_EQ(NextDeadlineNs(state), INT64_MAX);
}

TEST(RendezvousTest, ADeadlineTellsWhoWasTurnedAway) {
  RendezvousState state = NewMeeting(2);
  JoinEvent first = Join(0, 2);
  first.deadline_ns = 10;
  Step(0, first, state);
  Step(0, Join(1, 5), state);
  EXPECT_THAT(Step(10, TimeEvent{}, state).reason,
              HasSubstr("rank 1 on h0 says that the job has 5"));
}

TEST(RendezvousTest, NamesManyMissingBriefly) {
  EXPECT_EQ(DescribeMissing(NewMeeting(300)), "ranks 0-299");
  const std::string text = DescribeMissing(NewMeeting(300, std::vector<std::string>(300, "h")));
  EXPECT_THAT(text, HasSubstr("rank 7 on h and 292 more"));
}

TEST(RendezvousTest, RefusesImpossibleJobs) {
  EXPECT_FALSE(NewRendezvous("j", 0, {}).ok());
  EXPECT_FALSE(NewRendezvous("j", limits::kWorkersMax + 1, {}).ok());
  EXPECT_FALSE(NewRendezvous("j", 3, {"a", "b"}).ok());
}

// Any order of any events: every call is answered at most once, and a failed meeting has a reason.
TEST(RendezvousTest, RandomEventsAnswerEveryCallOnce) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int size = static_cast<int>(random.Between(1, 6));
    RendezvousState state = NewMeeting(size);
    std::set<CallId> waiting, answered;
    int64_t now_ns = 0;
    for (CallId call = 1; call < 40; ++call) {
      RendezvousEvent event = TimeEvent{};
      CallId left = 0;
      switch (random.Below(4)) {
        case 0:
        case 1: {
          JoinEvent join = Join(static_cast<int>(random.Between(-1, size)),
                                random.Below(8) == 0 ? size + 1 : size);
          join.call = call;
          join.deadline_ns = now_ns + random.Between(1, 2000);
          waiting.insert(call);
          event = join;
          break;
        }
        case 2:
          if (!waiting.empty() && random.Below(4) == 0) left = *waiting.begin();
          event = LeaveEvent{left};
          break;
        default:
          now_ns += random.Between(0, 100);
      }
      const RendezvousStep step = Step(now_ns, event, state);
      waiting.erase(left);
      for (const RendezvousAnswer& answer : step.answers) {
        EXPECT_EQ(waiting.erase(answer.call), 1u);
        EXPECT_TRUE(answered.insert(answer.call).second);
      }
      EXPECT_EQ(state.phase == Phase::kGathering, state.reason.empty());
      if (state.phase != Phase::kGathering) {
        EXPECT_THAT(waiting, IsEmpty());
      }
      EXPECT_EQ(state.taken, std::count_if(state.seats.begin(), state.seats.end(),
                                           [](const auto& seat) { return seat.taken; }));
    }
  }
}

}  // namespace
}  // namespace syncopate::services
