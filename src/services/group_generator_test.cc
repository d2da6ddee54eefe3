#include "services/group_generator.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::services {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Asker {
 public:
  explicit Asker(const GroupRules& rules, int workers)
      : rules_(rules), job_{.workers = workers, .seed = 1} {
    service_ = std::make_unique<GroupGenerator>(rules_, job_);
  }
  // The service goes through its bytes before each step.
  ServiceStep Ask(int from, uint64_t ticket, const StrategyMessage& message) {
    return Step(Asked{from, ticket, Encode(message)});
  }
  ServiceStep Step(const ServiceEvent& event) {
    auto copy = std::make_unique<GroupGenerator>(rules_, job_);
    EXPECT_TRUE(copy->Load(service_->State()).ok());
    EXPECT_EQ(copy->State(), service_->State());
    service_ = std::move(copy);
    return service_->Step({.now_ns = 5, .incarnation = 3}, event);
  }
  GroupGenerator& service() { return *service_; }

 private:
  const GroupRules rules_;
  const GroupJob job_;
  std::unique_ptr<GroupGenerator> service_;
};

GroupGiven Given(const ServiceAnswer& answer) {
  const auto message = DecodeStrategyMessage(answer.bytes, 100);
  EXPECT_TRUE(message.ok()) << message.status();
  return std::get<GroupGiven>(*message);
}

TEST(GroupGeneratorTest, MembersAreAnsweredWhenAllHaveAsked) {
  Asker asker(GroupRules{}, 3);
  EXPECT_THAT(asker.Ask(0, 1, WantGroup{.samples = 8, .version = 4}).answers, IsEmpty());
  EXPECT_THAT(asker.Ask(2, 1, WantGroup{.samples = 8, .version = 2}).answers, IsEmpty());
  const ServiceStep step = asker.Ask(1, 7, WantGroup{.samples = 16, .version = 3});
  ASSERT_THAT(step.answers, SizeIs(3));
  for (const ServiceAnswer& answer : step.answers) {
    const GroupGiven given = Given(answer);
    EXPECT_THAT(given.members, ElementsAre(0, 1, 2));
    EXPECT_EQ(given.key, (GroupKey{3, 1}));
    EXPECT_EQ(given.total_samples, 32u);
    EXPECT_EQ(given.version, 2u);  // none of them lacks it
    EXPECT_FALSE(given.stop);
    EXPECT_EQ(answer.ticket, answer.to == 1 ? 7u : 1u);
  }
  EXPECT_THAT(step.reason, HasSubstr("group 3.1 of 0, 1, 2 (divided) begins"));
  for (const int rank : {0, 1, 2}) {
    const ServiceStep done = asker.Ask(rank, 9, GroupDone{{3, 1}});
    ASSERT_THAT(done.answers, SizeIs(1));
    EXPECT_EQ(*DecodeStrategyMessage(done.answers[0].bytes, 3), StrategyMessage(Noted{}));
  }
}

TEST(GroupGeneratorTest, WithoutABufferTheEndOfAGroupIsAnsweredByTheNext) {
  Asker asker(*GroupRules::ByName("prague-random"), 2);
  EXPECT_THAT(asker.Ask(0, 1, WantGroup{}).answers, IsEmpty());
  // The second request makes a group of its own, the first one begins.
  const ServiceStep first = asker.Ask(1, 1, WantGroup{});
  ASSERT_THAT(first.answers, SizeIs(2));
  EXPECT_EQ(Given(first.answers[0]).key, (GroupKey{3, 1}));
  EXPECT_THAT(asker.Ask(0, 2, GroupDone{{3, 1}}).answers, IsEmpty());
  const ServiceStep second = asker.Ask(1, 2, GroupDone{{3, 1}});
  ASSERT_THAT(second.answers, SizeIs(2));
  EXPECT_EQ(Given(second.answers[0]).key, (GroupKey{3, 2}));
  for (const int rank : {0, 1})
    EXPECT_THAT(asker.Ask(rank, 3, GroupDone{{3, 2}}).answers, SizeIs(1));
}

TEST(GroupGeneratorTest, WhatIsNoRequestIsRefused) {
  Asker asker(GroupRules{}, 3);
  for (const std::string& bytes : {std::string("x"), Encode(WantTurn{}), Encode(Noted{})}) {
    const ServiceStep step = asker.Step(Asked{0, 1, bytes});
    ASSERT_THAT(step.answers, SizeIs(1));
    EXPECT_EQ(step.answers[0].code, absl::StatusCode::kInvalidArgument);
  }
  asker.Ask(0, 2, WantGroup{});
  const ServiceStep twice = asker.Ask(0, 3, WantGroup{});
  ASSERT_THAT(twice.answers, SizeIs(1));
  EXPECT_EQ(twice.answers[0].code, absl::StatusCode::kFailedPrecondition);
}

TEST(GroupGeneratorTest, ADeathAnswersThoseThatWaitedForIt) {
  Asker asker(GroupRules{}, 3);
  asker.Ask(0, 1, WantGroup{});
  asker.Ask(1, 1, WantGroup{});
  const ServiceStep step = asker.Step(Departed{2, false});
  ASSERT_THAT(step.answers, SizeIs(2));
  EXPECT_THAT(Given(step.answers[0]).members, ElementsAre(0, 1));
}

TEST(GroupGeneratorTest, ReportsOfWorkersAreReadWithLimits) {
  GroupGenerator service(GroupRules{}, {.workers = 3});
  const std::string report = GroupGenerator::Report({.rank = 0,
                                                     .requests = 3,
                                                     .total_samples = 24,
                                                     .key = {1, 2},
                                                     .members = {0, 1},
                                                     .started = true});
  EXPECT_TRUE(service.Rebuild({.incarnation = 4}, {{0, report}}).ok());
  for (const size_t length : {size_t{0}, size_t{8}, report.size() - 1}) {
    EXPECT_FALSE(GroupGenerator(GroupRules{}, {.workers = 3})
                     .Rebuild({.incarnation = 4}, {{0, report.substr(0, length)}})
                     .ok());
  }
}

}  // namespace
}  // namespace syncopate::services
