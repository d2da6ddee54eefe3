#include "services/agreement.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agreement_member.h"

namespace syncopate::services {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ValueTitle Title(const std::string& kind, uint64_t version, const std::string& value) {
  return {.kind = kind,
          .version = version,
          .scale = Scale::kIteration,
          .unit = 1,
          .digest = DigestOf(value),
          .bytes = value.size()};
}

// Members that talk to one service without delay, unless a worker is held. The service is loaded from
// its own bytes before every step.
class Members {
 public:
  explicit Members(int count) : service_({}) {
    std::vector<int> ranks;
    for (int rank = 0; rank < count; ++rank) {
      ranks.push_back(rank);
      members_[rank];
    }
    service_ = Agreement(ranks);
    Settle();
  }

  AgreementMember& operator[](int rank) { return members_[rank]; }

  ServiceStep Step(const ServiceEvent& event) {
    Agreement copy({});
    EXPECT_TRUE(copy.Load(service_.State()).ok());
    EXPECT_EQ(copy.State(), service_.State());
    service_ = copy;
    ServiceStep step = service_.Step({.now_ns = 0, .incarnation = incarnation_}, event);
    Send(step);
    return step;
  }

  void Settle() {
    for (bool more = true; more;) {
      more = false;
      for (auto& [rank, member] : members_) {
        for (auto& command : member.TakeCommands()) {
          more = true;
          if (auto* ask = std::get_if<AgreementMember::Ask>(&command)) {
            tags_[{rank, ++tickets_}] = ask->tag;
            if (ask->tag == 0) conversation_[rank] = {tickets_, ask->bytes};
            Step(Asked{rank, tickets_, ask->bytes});
          } else if (auto* check = std::get_if<AgreementMember::Check>(&command)) {
            checks_[rank] = *check;
            if (!held_.contains(rank)) Answer(rank);
          } else if (auto* adopt = std::get_if<AgreementMember::Adopt>(&command)) {
            adopted_[rank].push_back(*adopt);
          } else if (auto* decided = std::get_if<AgreementMember::Decided>(&command)) {
            decided_[rank].push_back(*decided);
          }
        }
      }
    }
  }

  void Answer(int rank) {
    const auto& check = checks_.at(rank);
    members_[rank].Checked(check.round, DigestOf(check.value));
  }

  void Lose(int rank) {
    members_.erase(rank);
    std::erase_if(tags_, [&](const auto& item) { return item.first.first == rank; });
    Step(Departed{rank, false});
    Settle();
  }

  // The service and its host are lost with all that was under way; open requests come again.
  void Rebuild() {
    std::vector<ServiceReport> reports;
    for (auto& [rank, member] : members_) reports.push_back({rank, member.Report()});
    ++incarnation_;
    const auto rebuilt = service_.Rebuild({.now_ns = 0, .incarnation = incarnation_}, reports);
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.status();
    EXPECT_EQ(*rebuilt, "");
  }

  // The members' requests come again, at a service that knows nothing of their conversations.
  void Relisten() {
    tags_.clear();
    for (const auto& [rank, member] : members_) {
      tags_[{rank, ++tickets_}] = 0;
      Step(Asked{rank, tickets_, EncodeRequest(Listen{.seen = {0, 1000}})});
    }
    Settle();
  }

  // The answers that this worker did not get were lost with the host: it asks the next one again.
  void AskAgain(int rank) {
    deaf_.erase(rank);
    const auto [ticket, bytes] = conversation_.at(rank);
    Step(Asked{rank, ticket, bytes});
    Settle();
  }

  void Send(const ServiceStep& step) {
    for (const services::Answer& answer : step.answers) {
      if (deaf_.contains(answer.to)) continue;
      const auto tag = tags_.find({answer.to, answer.ticket});
      if (tag == tags_.end()) continue;
      const uint64_t number = tag->second;
      tags_.erase(tag);
      members_[answer.to].Answered(number, answer.code, answer.bytes);
    }
  }

  uint64_t Propose(int rank, const std::string& kind, uint64_t version, const std::string& value) {
    const auto number = members_[rank].Propose(Title(kind, version, value), value);
    EXPECT_TRUE(number.ok()) << number.status();
    Settle();
    return number.value_or(0);
  }

  Agreement service_;
  std::map<int, AgreementMember> members_;
  std::map<int, std::vector<AgreementMember::Adopt>> adopted_;
  std::map<int, std::vector<AgreementMember::Decided>> decided_;
  std::map<int, AgreementMember::Check> checks_;
  std::set<int> held_;                                            // they do not answer the question
  std::set<int> deaf_;                                            // answers to them are lost
  std::map<int, std::pair<uint64_t, std::string>> conversation_;  // ticket and request, the last
  std::map<std::pair<int, uint64_t>, uint64_t> tags_;
  uint64_t tickets_ = 0;
  uint64_t incarnation_ = 0;
};

// There were 64 at most as long as the job ran.
TEST(AgreementTest, AnyNumberOfKindsMayBeUsedOneAfterTheOther) {
  Members members(3);
  for (int i = 0; i < 1000; ++i) {
    const std::string kind = absl::StrCat("schedule of synchronizer ", i);
    members.Propose(i % 3, kind, 1, "value");
    ASSERT_TRUE(members.decided_[i % 3].back().status.ok())
        << members.decided_[i % 3].back().status;
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_THAT(members.adopted_[rank], SizeIs(static_cast<size_t>(i + 1)));
      members[rank].Release(kind);
      members.Settle();
    }
  }
  EXPECT_LT(members.service_.State().size(), 1000u)
      << "nothing is left of them but the last outcome";
}

TEST(AgreementTest, AKindIsForgottenWhenAllHaveLetGoOfIt) {
  Members members(3);
  members.Propose(0, "schedule", 1, "value");
  members[0].Release("schedule");
  members[0].Release("schedule");  // twice is once
  members[1].Release("schedule");
  members.Settle();
  // The last one may not change it, and it is no fault of its own.
  members.Propose(2, "schedule", 2, "another");
  EXPECT_EQ(members.decided_[2].back().status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(members.decided_[2].back().status.message(), HasSubstr("rank 0 uses no schedule"));
  EXPECT_THAT(members.service_.State(), HasSubstr("schedule"));
  // A lost worker has let go of everything.
  members.Lose(2);
  members.Propose(0, "topology", 1, "value");  // the last outcome is another one
  EXPECT_THAT(members.service_.State(), ::testing::Not(HasSubstr("schedule")));
  EXPECT_TRUE(members.decided_[0].back().status.ok());
}

TEST(AgreementTest, ARoundAboutAKindThatAWorkerLetsGoOfEnds) {
  Members members(3);
  members.held_ = {1};
  members.Propose(0, "schedule", 1, std::string(3000, 'x'));
  ASSERT_THAT(members.decided_[0], IsEmpty());
  members[1].Release("schedule");
  members[1].CheckedTooLate(members.checks_.at(1).round);
  members.Settle();
  ASSERT_THAT(members.decided_[0], SizeIs(1));
  EXPECT_EQ(members.decided_[0][0].status.code(), absl::StatusCode::kCancelled);
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(members.adopted_[rank], IsEmpty());
  // All go on with other kinds.
  members.held_ = {};
  members.Propose(1, "topology", 1, "value");
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(members.adopted_[rank], SizeIs(1));
}

TEST(AgreementTest, WhatAWorkerHasProposedIsDecidedBeforeItLetsGo) {
  Members members(2);
  members.held_ = {1};
  members.Propose(0, "schedule", 1, "value");
  members[0].Release("schedule");
  members.Settle();
  EXPECT_THAT(members.decided_[0], IsEmpty());
  members.Answer(1);
  members.Settle();
  ASSERT_THAT(members.decided_[0], SizeIs(1));
  EXPECT_TRUE(members.decided_[0][0].status.ok());
  EXPECT_THAT(members.adopted_[0], IsEmpty()) << "it uses none any more";
  EXPECT_THAT(members.adopted_[1], SizeIs(1));
  members.Propose(1, "schedule", 2, "another");
  EXPECT_EQ(members.decided_[1].back().status.code(), absl::StatusCode::kCancelled);
}

TEST(AgreementTest, ARebuiltServiceIsToldAgainWhoHasLetGo) {
  Members members(3);
  members.Propose(0, "schedule", 1, "value");
  members[0].Release("schedule");
  members.Settle();
  members.Rebuild();
  members.Relisten();
  members.Propose(1, "schedule", 2, "another");
  EXPECT_EQ(members.decided_[1].back().status.code(), absl::StatusCode::kCancelled);
  members[1].Release("schedule");
  members[2].Release("schedule");
  members.Propose(1, "topology", 1, "value");
  EXPECT_THAT(members.service_.State(), ::testing::Not(HasSubstr("schedule")));
}

TEST(AgreementTest, AllUseAValueFromAPointThatNobodyHasReached) {
  Members members(3);
  members[0].Reached("schedule", 10);
  members[1].Reached("schedule", 30);
  members[2].Reached("topology", 1000);  // another kind
  members.Propose(2, "schedule", 1, "value");
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_THAT(members.adopted_[rank], SizeIs(1));
    EXPECT_EQ(members.adopted_[rank][0].from, 30 + 64 + 1);
    EXPECT_EQ(members.adopted_[rank][0].value, "value");
    EXPECT_EQ(members[rank].Limit("schedule"), INT64_MAX);
  }
  ASSERT_THAT(members.decided_[2], SizeIs(1));
  EXPECT_TRUE(members.decided_[2][0].status.ok());
  EXPECT_EQ(members.decided_[2][0].from, 95);
}

TEST(AgreementTest, AWorkerGoesSixtyFourFurtherWithoutAnOutcome) {
  Members members(2);
  members.held_ = {1};
  members[0].Reached("schedule", 10);
  members.Propose(0, "schedule", 1, "value");
  EXPECT_EQ(members[0].Limit("schedule"), 74);
  EXPECT_EQ(members[0].Limit("topology"), INT64_MAX);
  EXPECT_EQ(members[1].Limit("schedule"), INT64_MAX);  // it has promised nothing yet
  members[0].Reached("schedule", 74);
  members[1].Reached("schedule", 200);
  members.Answer(1);
  members.Settle();
  EXPECT_EQ(members.adopted_[0][0].from, 265);
  EXPECT_EQ(members[0].Limit("schedule"), INT64_MAX);
}

// The service may have told others the outcome before it was lost for ever.
TEST(AgreementTest, APromiseStaysWhenThereIsNoServiceAnyMore) {
  constexpr uint64_t kConversation = 0;
  Members members(2);
  members.held_ = {1};
  members[0].Reached("schedule", 10);
  members.Propose(0, "schedule", 1, "value");
  for (const int rank : {0, 1}) {
    members[rank].Answered(kConversation, absl::StatusCode::kUnavailable, "nobody may host it");
    EXPECT_FALSE(members[rank].status().ok());
  }
  EXPECT_EQ(members[0].Limit("schedule"), 74);
  EXPECT_EQ(members[0].Limit("topology"), INT64_MAX);
  EXPECT_EQ(members[1].Limit("schedule"), INT64_MAX) << "it has promised nothing";
}

TEST(AgreementTest, AKindThatGoesLessFarComesSooner) {
  Members members(2);
  members.held_ = {1};
  members[0].Reached("schedule", 10);
  ValueTitle title = Title("schedule", 1, "value");
  title.further = 2;
  ASSERT_TRUE(members[0].Propose(title, "value").ok());
  members.Settle();
  EXPECT_EQ(members[0].Limit("schedule"), 12);
  members[0].Reached("schedule", 12);
  members.Answer(1);
  members.Settle();
  EXPECT_EQ(members.adopted_[0][0].from, 13);
  EXPECT_EQ(members.adopted_[1][0].from, 13);
}

TEST(AgreementTest, ALongValueIsFetchedByThoseThatDoNotHaveIt) {
  Members members(3);
  const std::string value(100'000, 'v');
  members.Propose(1, "topology", 7, value);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_THAT(members.adopted_[rank], SizeIs(1));
    EXPECT_EQ(members.adopted_[rank][0].value, value);
  }
}

TEST(AgreementTest, OneThatIsLostIsNotWaitedFor) {
  Members members(3);
  members.held_ = {2};
  members.Propose(0, "schedule", 1, "value");
  EXPECT_THAT(members.adopted_[0], IsEmpty());
  members.Lose(2);
  EXPECT_THAT(members.adopted_[0], SizeIs(1));
  EXPECT_THAT(members.adopted_[1], SizeIs(1));
}

TEST(AgreementTest, AProposalOutlivesItsProposer) {
  Members members(3);
  members.held_ = {1};
  members.Propose(2, "schedule", 1, "value");
  members.Lose(2);
  members.Answer(1);
  members.Settle();
  EXPECT_THAT(members.adopted_[0], SizeIs(1));
  EXPECT_THAT(members.adopted_[1], SizeIs(1));
}

TEST(AgreementTest, AnotherDigestEndsTheRoundForAllAndShowsBoth) {
  Members members(3);
  members.held_ = {1};
  members.Propose(0, "schedule", 1, "value");
  members[1].Checked(members.checks_.at(1).round, DigestOf("other"));
  members.Settle();
  ASSERT_THAT(members.decided_[0], SizeIs(1));
  EXPECT_EQ(members.decided_[0][0].status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(members.decided_[0][0].status.message(),
              AllOf(HasSubstr("rank 1"), HasSubstr(DigestOf("value").ToString()),
                    HasSubstr(DigestOf("other").ToString())));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(members.adopted_[rank], IsEmpty());
    EXPECT_EQ(members[rank].Limit("schedule"), INT64_MAX);
  }
  members.held_.clear();
  members.Propose(2, "schedule", 1, "better");
  EXPECT_EQ(members.adopted_[1][0].value, "better");
}

TEST(AgreementTest, AValueThatCannotBeUsedIsRefusedWithTheReason) {
  Members members(2);
  members.held_ = {1};
  members.Propose(0, "schedule", 1, "value");
  members[1].Checked(members.checks_.at(1).round, absl::InvalidArgumentError("line 3 is odd"));
  members.Settle();
  EXPECT_THAT(members.decided_[0][0].status.message(), HasSubstr("line 3 is odd"));
}

// It took the outcome of the second round, in which the value was refused before its own answer was there, for
// that of the first, and never used the value of the first.
TEST(AgreementTest, AnOutcomeThatWasLostWithTheHostIsNotHiddenByALaterRound) {
  Members members(3);
  for (int rank = 0; rank < 3; ++rank) members[rank].Reached("schedule", 10 * rank);
  members.held_ = {2};
  members.Propose(0, "schedule", 1, "first");
  members.deaf_ = {2};
  members.Answer(2);
  members.Settle();
  ASSERT_THAT(members.adopted_[0], SizeIs(1));
  ASSERT_THAT(members.adopted_[2], IsEmpty());
  members.held_ = {1, 2};
  members.Propose(0, "topology", 1, "second");
  members[1].Checked(members.checks_.at(1).round, absl::InvalidArgumentError("no"));
  members.Settle();
  ASSERT_THAT(members.decided_[0], SizeIs(2));
  ASSERT_FALSE(members.decided_[0][1].status.ok());
  members.AskAgain(2);
  ASSERT_THAT(members.adopted_[2], SizeIs(1));
  EXPECT_EQ(members.adopted_[2][0].title, members.adopted_[0][0].title);
  EXPECT_EQ(members.adopted_[2][0].from, members.adopted_[0][0].from);
  EXPECT_EQ(members.adopted_[2][0].value, "first");
  EXPECT_EQ(members[2].Limit("schedule"), INT64_MAX);
}

TEST(AgreementTest, OfOneVersionThereIsOneValue) {
  Members members(3);
  members.held_ = {0, 1, 2};
  members.Propose(0, "schedule", 1, "value");
  members.Propose(1, "schedule", 1, "value");  // the same: one round for both
  members.Propose(2, "schedule", 1, "other");
  ASSERT_THAT(members.decided_[2], SizeIs(1));
  EXPECT_THAT(
      members.decided_[2][0].status.message(),
      AllOf(HasSubstr(DigestOf("value").ToString()), HasSubstr(DigestOf("other").ToString())));
  for (int rank = 0; rank < 3; ++rank) members.Answer(rank);
  members.held_.clear();
  members.Settle();
  EXPECT_THAT(members.adopted_[2], SizeIs(1));
  EXPECT_TRUE(members.decided_[0][0].status.ok());
  EXPECT_TRUE(members.decided_[1][0].status.ok());
  members.Propose(0, "schedule", 1, "value");  // in force already
  EXPECT_TRUE(members.decided_[0][1].status.ok());
  EXPECT_EQ(members.decided_[0][1].from, members.decided_[0][0].from);
  members.Propose(0, "schedule", 1, "late");
  EXPECT_EQ(members.decided_[0][2].status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(AgreementTest, ProposalsWaitForEachOther) {
  Members members(2);
  members.held_ = {1};
  members.Propose(0, "schedule", 1, "one");
  members.Propose(0, "schedule", 3, "three");
  members.Propose(0, "schedule", 2, "two");
  members.Propose(1, "topology", 1, "net");
  members.held_.clear();
  members.Answer(1);
  members.Settle();
  ASSERT_THAT(members.adopted_[1], SizeIs(3));
  EXPECT_EQ(members.adopted_[1][0].value, "one");
  EXPECT_EQ(members.adopted_[1][1].value, "three");
  EXPECT_EQ(members.adopted_[1][2].value, "net");
  EXPECT_EQ(members.decided_[0].size(), 3u);  // version 2 came too late
}

TEST(AgreementTest, AJoinerIsWelcomedWithAllValuesInForce) {
  Members members(2);
  members[0].Reached("schedule", 5);
  members.Propose(0, "schedule", 1, "old");
  members.Propose(0, "schedule", 2, "new");
  members.Propose(1, "topology", 1, std::string(5000, 't'));
  members.Step(Joined{2});
  members.members_[2];
  members.Settle();
  ASSERT_THAT(members.adopted_[2], SizeIs(2));
  EXPECT_EQ(members.adopted_[2][0].value, "new");
  EXPECT_EQ(members.adopted_[2][0].from, 70);
  EXPECT_EQ(members.adopted_[2][1].value, std::string(5000, 't'));
  members.Propose(2, "schedule", 3, "newer");
  EXPECT_THAT(members.adopted_[2], SizeIs(3));
  EXPECT_EQ(members.adopted_[0].back().value, "newer");
}

TEST(AgreementTest, AnOutcomeThatOneHasHeardStaysWhenHostAndStandbyAreLost) {
  Members members(3);
  members.held_ = {2};
  members[1].Reached("schedule", 40);
  const std::string value(5000, 'v');
  members.Propose(0, "schedule", 1, value);
  // Of the last step only rank 1 hears.
  members[2].Checked(members.checks_.at(2).round, DigestOf(value));
  auto commands = members[2].TakeCommands();
  ASSERT_THAT(commands, SizeIs(1));
  const auto& told = std::get<AgreementMember::Ask>(commands[0]);
  auto step = members.service_.Step({}, Asked{2, 1000, told.bytes});
  std::erase_if(step.answers, [](const services::Answer& answer) { return answer.to != 1; });
  members.Send(step);
  ASSERT_THAT(step.answers, SizeIs(1));
  members.Settle();  // rank 1 adopts
  members.Rebuild();
  // What the others wait for is sent again.
  members.tags_.clear();
  members[0].Answered(0, absl::StatusCode::kOk,
                      EncodeAnswer(Welcome{{1, 1}, {{Title("schedule", 1, value), 105}}}));
  members.tags_[{2, 1001}] = told.tag;
  members.Step(Asked{2, 1001, told.bytes});
  members.Settle();
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_THAT(members.adopted_[rank], SizeIs(1)) << rank;
    EXPECT_EQ(members.adopted_[rank][0].from, 105);
    EXPECT_EQ(members.adopted_[rank][0].value, value);
    EXPECT_EQ(members[rank].Limit("schedule"), INT64_MAX);
  }
}

TEST(AgreementTest, ReportsThatContradictEachOtherAreNotBelieved) {
  Agreement service({});
  AgreementReport one = {{{Title("schedule", 1, "a"), true, 10, "a"}}};
  AgreementReport two = {{{Title("schedule", 1, "b"), true, 10, "b"}}};
  const auto rebuilt = service.Rebuild({}, {{0, EncodeReport(one)}, {1, EncodeReport(two)}});
  EXPECT_THAT(rebuilt.status().message(),
              AllOf(HasSubstr(DigestOf("a").ToString()), HasSubstr(DigestOf("b").ToString())));
}

// It was a fault that ended the job.
TEST(AgreementTest, AValueThatNobodyHasTheBytesOfIsInForceNoMore) {
  Agreement service({});
  AgreementReport fetches = {{{Title("schedule", 2, "bb"), true, 30, ""}}};
  AgreementReport late = {{{Title("schedule", 1, "a"), true, 10, "a"}}};
  const auto rebuilt = service.Rebuild({}, {{0, EncodeReport(fetches)}, {1, EncodeReport(late)}});
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.status();
  ServiceStep step = service.Step({}, Asked{0, 1, EncodeRequest(Fetch{"schedule", 2})});
  ASSERT_THAT(step.answers, SizeIs(1));
  EXPECT_EQ(step.answers[0].code, absl::StatusCode::kNotFound);
  step = service.Step({}, Asked{0, 2, EncodeRequest(Fetch{"schedule", 1})});
  ASSERT_THAT(step.answers, SizeIs(1));
  EXPECT_EQ(step.answers[0].code, absl::StatusCode::kOk);
}

// Others brought only short ones, and the job ended.
TEST(AgreementTest, ALongValueStaysThoughTheNextHostHasLetGoOfIt) {
  Members members(3);
  const std::string value(5000, 'v');
  members.Propose(2, "schedule", 1, value);
  members[0].Release("schedule");
  members.Settle();
  members.Rebuild();
  members.Step(Joined{3});
  members.members_[3];
  members.Settle();
  ASSERT_THAT(members.adopted_[3], SizeIs(1));
  EXPECT_EQ(members.adopted_[3][0].value, value);
}

// The proposer is told by two answers, of which either may be lost with the host.
TEST(AgreementTest, WhatOnlyItsProposerWasToldStaysWhenHostAndStandbyAreLost) {
  Members members(3);
  members.held_ = {2};
  members[1].Reached("schedule", 40);
  members.Propose(0, "schedule", 1, "value");
  members[2].Checked(members.checks_.at(2).round, DigestOf("value"));
  auto commands = members[2].TakeCommands();
  ASSERT_THAT(commands, SizeIs(1));
  auto step =
      members.service_.Step({}, Asked{2, 1000, std::get<AgreementMember::Ask>(commands[0]).bytes});
  std::erase_if(step.answers, [&](const services::Answer& answer) {
    return answer.to != 0 || members.tags_.at({0, answer.ticket}) == 0;
  });
  ASSERT_THAT(step.answers, SizeIs(1));
  members.Send(step);
  members.Settle();
  ASSERT_THAT(members.decided_[0], SizeIs(1));
  EXPECT_EQ(members.decided_[0][0].from, 105);
  members.Rebuild();
  members.Relisten();
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_THAT(members.adopted_[rank], SizeIs(1)) << rank;
    EXPECT_EQ(members.adopted_[rank][0].from, 105);
    EXPECT_EQ(members.adopted_[rank][0].value, "value");
    EXPECT_EQ(members[rank].Limit("schedule"), INT64_MAX);
  }
}

TEST(AgreementTest, TooMuchIsRefused) {
  Members members(2);
  members.held_ = {1};
  const std::string value(limits::kAgreementValueBytesMax, 'v');
  for (uint64_t version = 1; version <= 3; ++version) members.Propose(0, "big", version, value);
  EXPECT_THAT(members.decided_[0], IsEmpty());
  members.Propose(0, "big", 4, "v");
  ASSERT_THAT(members.decided_[0], SizeIs(1));
  EXPECT_EQ(members.decided_[0][0].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(members[0].Propose(Title("big", 5, ""), value + "v").ok());
}

TEST(AgreementTest, NonsenseAndStrangersAreRefused) {
  Members members(2);
  const auto code = [&](const std::string& bytes, int from) {
    const ServiceStep step = members.service_.Step({}, Asked{from, 77, bytes});
    EXPECT_THAT(step.answers, SizeIs(1));
    return step.answers.empty() ? absl::StatusCode::kOk : step.answers[0].code;
  };
  EXPECT_EQ(code("nonsense", 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(EncodeRequest(Listen{}), 0), absl::StatusCode::kFailedPrecondition);  // it does
  EXPECT_EQ(code(EncodeRequest(Listen{}), 9), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(EncodeRequest(Fetch{"schedule", 1}), 0), absl::StatusCode::kNotFound);
  const std::string state = members.service_.State();
  for (size_t length = 0; length < state.size(); ++length) {
    EXPECT_FALSE(Agreement({}).Load(absl::string_view(state).substr(0, length)).ok());
  }
}

}  // namespace
}  // namespace syncopate::services
