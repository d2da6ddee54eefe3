// One step at a time: who sends what to whom, and what follows when somebody is lost in between.
// service_world_test.cc plays thousands of whole jobs.
#include "services/service_host.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/counter.h"

namespace syncopate::services {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Answers every request with what it holds `delay` later.
class Echo : public Service {
 public:
  explicit Echo(int64_t delay_ns = 0) : delay_ns_(delay_ns) {}
  absl::string_view name() const override { return "echo"; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override {
    if (const auto* asked = std::get_if<Asked>(&event)) {
      due_.push_back({context.now_ns + delay_ns_, *asked});
    }
    ServiceStep step;
    while (!due_.empty() && due_.front().first <= context.now_ns) {
      const Asked& asked = due_.front().second;
      step.answers.push_back(
          {.to = asked.from,
           .ticket = asked.ticket,
           .bytes = asked.request == "much" ? std::string(10'000, 'm') : asked.request});
      due_.pop_front();
    }
    return step;
  }
  int64_t NextDeadlineNs() const override { return due_.empty() ? INT64_MAX : due_.front().first; }
  std::string State() const override {
    std::string out;
    for (const auto& [when, asked] : due_) {
      Append(out, when);
      AppendRank(out, asked.from);
      Append(out, asked.ticket);
      AppendSized(out, asked.request);
    }
    return out;
  }
  absl::Status Load(absl::string_view state) override {
    due_.clear();
    ByteReader reader(state);
    while (!reader.AtEnd()) {
      const auto when = reader.Read<int64_t>();
      Asked asked;
      asked.from = ReadRank(reader);
      asked.ticket = reader.Read<uint64_t>();
      asked.request = ReadSized(reader, limits::kServiceBytesMax);
      if (!reader.ok()) return absl::DataLossError("echo");
      due_.emplace_back(when, asked);
    }
    return absl::OkStatus();
  }

 private:
  int64_t delay_ns_;
  std::deque<std::pair<int64_t, Asked>> due_;
};

constexpr uint16_t kCounter = 0, kEcho = 1;

// Workers whose messages wait until the test delivers them.
class Job {
 public:
  explicit Job(int size, bool rebuilds = true, bool with_echo = true, int64_t delay_ns = 0)
      : rebuilds_(rebuilds), with_echo_(with_echo), delay_ns_(delay_ns) {
    std::vector<int> candidates;
    for (int rank = 0; rank < size; ++rank) candidates.push_back(rank);
    for (int rank = 0; rank < size; ++rank) {
      auto host = ServiceHost::Make(
          {.rank = rank, .size = size, .candidates = candidates, .history = {}}, New(), 0);
      EXPECT_TRUE(host.ok()) << host.status();
      hosts_.push_back(*std::move(host));
    }
  }

  ServiceHost& operator[](int rank) { return *hosts_[static_cast<size_t>(rank)]; }

  uint64_t Ask(int rank, uint16_t service, std::string request) {
    auto ticket = (*this)[rank].Ask(service, 5, std::move(request), now_);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    Take(rank);
    return *ticket;
  }
  uint64_t Add(int rank) { return Ask(rank, kCounter, Counter::Add(1)); }

  void Take(int rank) {
    for (ServiceCommand& command : (*this)[rank].TakeCommands()) {
      if (auto* send = std::get_if<Send>(&command)) {
        mail_[{rank, send->to}].push_back(std::move(send->bytes));
      } else if (auto* parcel = std::get_if<SendParcel>(&command)) {
        parcels_[{rank, parcel->to}].push_back(std::move(parcel->bytes));
      } else if (auto* answered = std::get_if<Answered>(&command)) {
        EXPECT_EQ(answered->tag, 5u);
        answers_[rank].push_back(*answered);
      } else if (auto* wanted = std::get_if<ReportWanted>(&command)) {
        (*this)[rank].GiveReports(wanted->incarnation, {Counter::Report(reported_[rank])}, now_);
        Take(rank);
      } else if (std::holds_alternative<MayLeave>(command)) {
        may_leave_.insert(rank);
      } else if (auto* end = std::get_if<EndJob>(&command)) {
        ended_[rank] = end->status;
      } else if (auto* remark = std::get_if<Remark>(&command)) {
        if (remark->important) remarks_.push_back(remark->text);
      }
    }
  }

  // The names of the messages that are on their way from one to the other.
  std::vector<std::string> Waiting(int from, int to) {
    std::vector<std::string> names;
    for (const auto* queue : {&mail_[{from, to}], &parcels_[{from, to}]}) {
      for (const std::string& bytes : *queue) {
        names.emplace_back(NameOf(*DecodeMessage(bytes)));
      }
    }
    return names;
  }

  void Deliver(int from, int to, bool parcel = false) {
    auto& queue = (parcel ? parcels_ : mail_)[{from, to}];
    ASSERT_FALSE(queue.empty()) << from << " has sent nothing to " << to;
    const std::string bytes = queue.front();
    queue.pop_front();
    (*this)[to].Arrived(from, bytes, now_);
    Take(to);
  }

  void DeliverAll() {
    bool more = true;
    while (more) {
      more = false;
      for (auto* queues : {&mail_, &parcels_}) {
        for (auto& [pair, queue] : *queues) {
          while (!queue.empty() && !gone_.contains(pair.second)) {
            more = true;
            Deliver(pair.first, pair.second, queues == &parcels_);
          }
        }
      }
    }
  }

  // Nothing more comes from it; `to` learns that.
  void Lose(int rank, const std::vector<int>& to, Change::Kind kind = Change::Kind::kLost) {
    if (gone_.insert(rank).second) changes_.push_back({kind, rank, changes_.size() + 1, false});
    for (const int other : to) {
      mail_[{rank, other}].clear();
      parcels_[{rank, other}].clear();
      for (const Change& change : changes_) {
        if (change.order != (*this)[other].order().changes().size() + 1) continue;
        (*this)[other].Changed(change, now_);
        Take(other);
      }
    }
  }

  void Tick(int rank, int64_t now_ns) {
    now_ = now_ns;
    (*this)[rank].Tick(now_);
    Take(rank);
  }

  void Leave(int rank) {
    (*this)[rank].Leave(now_);
    Take(rank);
  }

  // The sums that a worker has got.
  std::vector<uint64_t> Sums(int rank) {
    std::vector<uint64_t> sums;
    for (const Answered& answered : answers_[rank]) {
      if (answered.service == kCounter) sums.push_back(Counter::Read(answered.bytes)->total);
    }
    return sums;
  }

  Services New() const {
    Services services;
    services.push_back(std::make_unique<Counter>(rebuilds_));
    if (with_echo_) services.push_back(std::make_unique<Echo>(delay_ns_));
    return services;
  }

  std::map<int, std::vector<Answered>> answers_;
  std::map<int, absl::Status> ended_;
  std::map<int, uint64_t> reported_;
  std::set<int> may_leave_;
  std::vector<std::string> remarks_;
  std::set<int> gone_;
  std::vector<Change> changes_;
  std::map<std::pair<int, int>, std::deque<std::string>> mail_, parcels_;
  int64_t now_ = 0;

 private:
  bool rebuilds_, with_echo_;
  int64_t delay_ns_;
  std::vector<std::unique_ptr<ServiceHost>> hosts_;
};

TEST(ServiceHostTest, AnAnswerLeavesWhenTheStandbyHasTheEvent) {
  Job job(3);
  job.Add(2);
  EXPECT_THAT(job.Waiting(2, 0), ElementsAre("request"));
  job.Deliver(2, 0);
  EXPECT_THAT(job.Waiting(0, 1), ElementsAre("event"));
  EXPECT_THAT(job.Waiting(0, 2), IsEmpty());
  job.Deliver(0, 1);
  EXPECT_THAT(job.Waiting(1, 0), ElementsAre("ack"));
  EXPECT_THAT(job.Waiting(0, 2), IsEmpty());
  job.Deliver(1, 0);
  EXPECT_THAT(job.Waiting(0, 2), ElementsAre("answer"));
  job.Deliver(0, 2);
  EXPECT_THAT(job.Sums(2), ElementsAre(1));
  EXPECT_EQ(job[0].machine().State(), job[1].machine().State());
}

TEST(ServiceHostTest, TheHostAsksItselfAndTheLastOneWaitsForNobody) {
  Job job(2);
  job.Add(0);
  EXPECT_THAT(job.Sums(0), IsEmpty());  // its standby must have it too
  job.DeliverAll();
  EXPECT_THAT(job.Sums(0), ElementsAre(1));
  job.Lose(1, {0});
  job.Add(0);
  EXPECT_THAT(job.Sums(0), ElementsAre(1, 2));
}

// The host dies at each step of a request of rank 3.
TEST(ServiceHostTest, ARequestSurvivesTheHostAtEveryStep) {
  for (int steps = 0; steps <= 4; ++steps) {
    SCOPED_TRACE(steps);
    Job job(4);
    job.Add(2);
    job.DeliverAll();
    job.Add(3);
    if (steps > 0) job.Deliver(3, 0);  // asked
    if (steps > 1) job.Deliver(0, 1);  // stepped, replicated
    if (steps > 2) job.Deliver(1, 0);  // acknowledged
    if (steps > 3) job.Deliver(0, 3);  // answered
    job.Lose(0, {1, 2, 3});
    EXPECT_TRUE(job[1].hosts());
    job.DeliverAll();
    EXPECT_THAT(job.Sums(3), ElementsAre(2));
    job.Add(3);
    job.DeliverAll();
    EXPECT_THAT(job.Sums(3), ElementsAre(2, 3));
    EXPECT_EQ(job[1].machine().State(), job[2].machine().State());
  }
}

TEST(ServiceHostTest, ANewHostAnswersWhenTheNextStandbyHasItsState) {
  Job job(3);
  job.Lose(0, {1, 2});
  EXPECT_THAT(job.Waiting(1, 2), ElementsAre("state", "event"));  // the loss is an event too
  job.Add(1);
  EXPECT_THAT(job.Waiting(1, 2), ElementsAre("state", "event", "event"));
  // The state comes last, as a parcel may.
  std::deque<std::string>& mail = job.mail_[{1, 2}];
  const std::string state = mail.front();
  mail.pop_front();
  job.Deliver(1, 2);
  job.Deliver(1, 2);
  EXPECT_THAT(job.Waiting(2, 1), IsEmpty());  // it cannot step them yet
  job[2].Arrived(1, state, 0);
  job.Take(2);
  EXPECT_THAT(job.Waiting(2, 1), ElementsAre("ack"));
  EXPECT_THAT(job.Sums(1), IsEmpty());
  job.DeliverAll();
  EXPECT_THAT(job.Sums(1), ElementsAre(1));
}

TEST(ServiceHostTest, ARequestThatComesBeforeARankKnowsThatItHostsIsKept) {
  Job job(3);
  job.Add(2);
  job.Lose(0, {2});
  EXPECT_THAT(job.Waiting(2, 1), ElementsAre("request"));
  job.Deliver(2, 1);
  EXPECT_FALSE(job[1].hosts());
  job.Lose(0, {1});
  EXPECT_TRUE(job[1].hosts());
  job.DeliverAll();
  EXPECT_THAT(job.Sums(2), ElementsAre(1));
}

TEST(ServiceHostTest, IdsAreOfTheIncarnationThatMadeThem) {
  Job job(3);
  job.Add(2);
  job.DeliverAll();
  job.Lose(0, {1, 2});
  job.Add(2);
  job.DeliverAll();
  EXPECT_EQ(Counter::Read(job.answers_[2][0].bytes)->id, (ServiceId{0, 1}));
  EXPECT_EQ(Counter::Read(job.answers_[2][1].bytes)->id, (ServiceId{1, 2}));
}

TEST(ServiceHostTest, LongRequestsAndAnswersTravelAsParcels) {
  Job job(3);
  const std::string request(5000, 'x');
  job.Ask(2, kEcho, request);
  job.Ask(2, kEcho, "much");
  EXPECT_THAT(job.parcels_[std::make_pair(2, 0)], ::testing::SizeIs(1));
  // The second comes first; the events are stepped by the standby in the host's order.
  job.Deliver(2, 0);
  job.Deliver(2, 0, true);
  EXPECT_THAT(job.parcels_[std::make_pair(0, 1)], ::testing::SizeIs(1));
  job.DeliverAll();
  ASSERT_EQ(job.answers_[2].size(), 2u);
  EXPECT_EQ(job.answers_[2][0].bytes, std::string(10'000, 'm'));
  EXPECT_EQ(job.answers_[2][1].bytes, request);
}

TEST(ServiceHostTest, TimeGoesOnWhereTheLostHostWas) {
  Job job(3, true, true, /*delay_ns=*/1000);
  job.now_ = 500;
  job.Ask(2, kEcho, "later");
  job.DeliverAll();
  EXPECT_EQ(job[0].NextTickNs(), 1500);
  EXPECT_EQ(job[1].NextTickNs(), INT64_MAX);
  job.Lose(0, {1, 2});
  EXPECT_EQ(job[1].NextTickNs(), 1500);
  job.DeliverAll();
  job.Tick(1, 1499);
  job.DeliverAll();
  EXPECT_THAT(job.answers_[2], IsEmpty());
  job.Tick(1, 1500);
  job.DeliverAll();
  EXPECT_EQ(job.answers_[2].size(), 1u);
}

TEST(ServiceHostTest, AHostThatLeavesHandsOverFirst) {
  Job job(3);
  job.Add(2);
  job.Deliver(2, 0);
  job.Leave(0);
  EXPECT_THAT(job.may_leave_, IsEmpty());  // the standby has not acknowledged the event yet
  job.Add(2);
  job.DeliverAll();
  EXPECT_THAT(job.may_leave_, ElementsAre(0));
  EXPECT_THAT(job.Sums(2), ElementsAre(1));  // the second came when it was leaving
  job.Lose(0, {1, 2}, Change::Kind::kLeft);
  job.DeliverAll();
  EXPECT_THAT(job.Sums(2), ElementsAre(1, 2));
}

TEST(ServiceHostTest, AStandbyLeavesWhenTheNextOneHasTheState) {
  Job job(4);
  job.Add(3);
  job.DeliverAll();
  job.Leave(3);  // nothing depends on it
  job.Leave(1);
  job.Deliver(3, 0);
  job.Deliver(1, 0);
  EXPECT_THAT(job.Waiting(0, 2), ElementsAre("state"));
  EXPECT_THAT(job.Waiting(0, 1), IsEmpty());
  job.DeliverAll();
  EXPECT_THAT(job.may_leave_, ElementsAre(1, 3));
  job.Lose(1, {2}, Change::Kind::kLeft);
  job.Lose(0, {2});
  EXPECT_TRUE(job[2].hosts());
  job.Add(2);
  job.DeliverAll();
  EXPECT_THAT(job.Sums(2), ElementsAre(2));
}

TEST(ServiceHostTest, WhenAllLeaveNobodyHandsOver) {
  Job job(4);
  for (int rank = 0; rank < 4; ++rank) job.Leave(rank);
  job.DeliverAll();
  EXPECT_THAT(job.may_leave_, ElementsAre(0, 1, 2, 3));
}

TEST(ServiceHostTest, HostAndStandbyLostTogetherAreRebuiltAndItIsSaid) {
  Job job(4, /*rebuilds=*/true, /*with_echo=*/false);
  job.reported_[3] = 7;
  job.Add(3);
  job.Lose(0, {2, 3});
  job.Lose(1, {2, 3});
  EXPECT_FALSE(job[2].hosts());  // first it asks what the others know
  job.DeliverAll();
  EXPECT_TRUE(job[2].hosts());
  EXPECT_THAT(job.Sums(3), ElementsAre(8));
  EXPECT_THAT(job.remarks_, ElementsAre(AllOf(HasSubstr("lost together"), HasSubstr("after 7"))));
}

TEST(ServiceHostTest, AReportIsGivenWhenTheLossesAreKnown) {
  Job job(4, true, false);
  job.Lose(0, {2});
  job.Lose(1, {2});
  job.reported_[3] = 1;
  job.Deliver(2, 3);  // rank 3 still gets answers of rank 0
  EXPECT_THAT(job.Waiting(3, 2), IsEmpty());
  job.reported_[3] = 2;
  job.Lose(1, {3});  // both losses
  job.Lose(1, {3});
  job.DeliverAll();
  job.Add(3);
  job.DeliverAll();
  EXPECT_THAT(job.Sums(3), ElementsAre(3));
}

TEST(ServiceHostTest, WhatCannotBeRebuiltEndsTheJobForAll) {
  Job job(4);
  job.Lose(0, {2, 3});
  job.Lose(1, {2, 3});
  job.DeliverAll();
  for (const int rank : {2, 3}) {
    EXPECT_EQ(job.ended_[rank].code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(job.ended_[rank].message(), AllOf(HasSubstr("lost together"), HasSubstr("echo")));
  }
  EXPECT_FALSE(job[3].Ask(kCounter, 0, Counter::Add(1), 0).ok());
}

TEST(ServiceHostTest, TheEndIsPassedOnWhenTheOneThatSaysItIsLost) {
  Job job(5);
  job.Lose(0, {2});
  job.Lose(1, {2});
  job.Deliver(2, 3);
  job.Lose(2, {4});
  EXPECT_FALSE(job.ended_.contains(4));
  job.Deliver(3, 4);
  EXPECT_THAT(job.ended_[4].message(), HasSubstr("lost together"));
}

TEST(ServiceHostTest, AReplicaThatDecidesOtherwiseEndsTheJobWithBothDigests) {
  Job job(3);
  job.Add(2);
  job.Deliver(2, 0);
  const std::string ack = EncodeMessage({0, AckMessage{.sequence = 1, .digest = 0xabc}});
  job[0].Arrived(1, ack, 0);
  job.Take(0);
  EXPECT_THAT(job.ended_[0].message(),
              AllOf(HasSubstr("decide differently"), HasSubstr("0000000000000abc")));
  job.DeliverAll();
  EXPECT_EQ(job.ended_.size(), 3u);
}

TEST(ServiceHostTest, AStandbyThatDoesNotListenHoldsUpStepsNotMemory) {
  Job job(34);
  // 32 askers with 64 requests of 3 KiB each: 6 MiB.
  for (int rank = 2; rank < 34; ++rank) {
    for (uint64_t i = 0; i < limits::kTicketsOpenMax; ++i) {
      job.Ask(rank, kEcho, std::string(3000, 'x'));
      job.Deliver(rank, 0);
    }
  }
  uint64_t bytes = 0;
  for (const std::string& each : job.mail_[std::make_pair(0, 1)]) bytes += each.size();
  EXPECT_GE(bytes, limits::kReplicationBytesMax);
  EXPECT_LE(bytes, limits::kReplicationBytesMax + limits::kMailBytesMax);
  job.DeliverAll();
  for (int rank = 2; rank < 34; ++rank) {
    EXPECT_EQ(job.answers_[rank].size(), limits::kTicketsOpenMax);
  }
}

TEST(ServiceHostTest, WithoutAHostRequestsAreRefused) {
  auto made =
      ServiceHost::Make({.rank = 1, .size = 2, .candidates = {0}, .history = {}}, Job(1).New(), 0);
  ASSERT_TRUE(made.ok());
  ServiceHost& server = **made;
  ASSERT_TRUE(server.Ask(kEcho, 5, "", 0).ok());
  server.TakeCommands();
  server.Changed({.kind = Change::Kind::kLost, .rank = 0, .order = 1}, 0);
  const auto commands = server.TakeCommands();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(std::get<Answered>(commands[0]).code, absl::StatusCode::kUnavailable);
}

TEST(ServiceHostTest, NonsenseIsDroppedAndSaid) {
  Job job(3);
  job[0].Arrived(1, "nonsense", 0);
  job[0].Arrived(1, EncodeMessage({0, StateMessage{"x"}}), 0);              // to the host
  job[2].Arrived(1, EncodeMessage({0, RequestMessage{1, {1}, 0, ""}}), 0);  // not to the host
  job[2].Arrived(0, EncodeMessage({0, AnswerMessage{9, {}, ""}}), 0);       // to no ticket
  job.Take(0);
  EXPECT_THAT(job.remarks_, ElementsAre(HasSubstr("rank 1")));
  EXPECT_EQ(job[0].dropped(), 2u);
  EXPECT_EQ(job[2].dropped(), 2u);
  job.Add(2);
  job.DeliverAll();
  EXPECT_THAT(job.Sums(2), ElementsAre(1));
}

TEST(ServiceHostTest, AStateOfOtherServicesEndsTheJob) {
  Job job(3), other(3, true, /*with_echo=*/false);
  other.Lose(0, {1});
  job[2].Arrived(1, other.mail_[std::make_pair(1, 2)].front(), 0);
  job.Take(2);
  EXPECT_THAT(job.ended_[2].message(), AllOf(HasSubstr("rank 1"), HasSubstr("1 services")));
}

}  // namespace
}  // namespace syncopate::services
