// The agreement service: "from this point on, all use v", without a barrier.
//
// A worker proposes a value of some kind. In a *round* the service asks every live worker for its
// position; a worker that answers holds the value, and goes at most the kind's margin further without
// an outcome: 64 units, or fewer if the kind says so. When all have answered, the value comes into
// force at
//
//   from = max(positions) + margin + 1,
//
// which nobody has reached. All live workers get that outcome, or none does: it is part of the state
// that the standby has before anybody is told, and of the reports from which the service is rebuilt.
// A worker that computes another digest for the value ends the round without it, with both digests.
//
// A kind whose user has ended is let go of: each worker says so for itself. From the first on nobody can propose
// values of it, and when all have said so it is forgotten, so that there may be any number of kinds one after
// the other.
//
// There is one round at a time; other proposals wait. The worker's side is agreement_member.h.
#ifndef SYNCOPATE_SERVICES_AGREEMENT_H_
#define SYNCOPATE_SERVICES_AGREEMENT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/agreement_message.h"
#include "services/service.h"

namespace syncopate::services {

class Agreement : public Service {
 public:
  // `members` take part in every round: all live workers of the job.
  explicit Agreement(const std::vector<int>& members) : members_(members.begin(), members.end()) {}

  absl::string_view name() const override { return "agreement"; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override;
  std::string State() const override;
  absl::Status Load(absl::string_view state) override;
  bool CanRebuild() const override { return true; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override;

  // Kinds of which a value is in force, or which some workers have let go of.
  std::set<std::string> kinds() const;

 private:
  struct Proposal {
    ValueTitle title;
    std::string value;
    std::vector<std::pair<int, uint64_t>> askers;  // rank, ticket
  };
  struct Round {
    ServiceId id;
    Proposal proposal;
    std::map<int, int64_t> positions;  // by rank
  };
  struct InForce {
    ValueTitle title;
    std::string value;
    int64_t from = 0;
  };

  void On(const ServiceContext& context, int from, uint64_t ticket, Propose request,
          ServiceStep& step);
  void On(const ServiceContext& context, int from, uint64_t ticket, Listen request,
          ServiceStep& step);
  void On(const ServiceContext& context, int from, uint64_t ticket, Position request,
          ServiceStep& step);
  void On(const ServiceContext& context, int from, uint64_t ticket, Fetch request,
          ServiceStep& step);

  void On(const ServiceContext& context, int from, uint64_t ticket, Release request,
          ServiceStep& step);
  // Forgets the kinds that all members have let go of.
  void ForgetReleased();

  // Why the value cannot be proposed; OK if it can.
  absl::Status MayPropose(const ValueTitle& title) const;
  Proposal* FindAlike(const ValueTitle& title);  // under way or waiting, of that kind and version
  void BeginRound(const ServiceContext& context, ServiceStep& step);
  void EndRoundIfAllAnswered(const ServiceContext& context, ServiceStep& step);
  // `why`: of an outcome that is not accepted.
  void Conclude(const ServiceContext& context, Outcome outcome, ServiceStep& step,
                absl::StatusCode why = absl::StatusCode::kFailedPrecondition);
  // For a worker that has heard of all rounds up to `seen`.
  AgreementAnswer WhatFollows(const ServiceId& seen) const;
  Welcome InForceNow() const;
  Answer AskAbout(int rank, uint64_t ticket) const;
  const ServiceId& last() const { return last_.has_value() ? last_->round : first_; }
  uint64_t ValueBytes() const;

  std::set<int> members_;
  std::map<std::string, InForce> in_force_;  // by kind
  std::map<std::string, std::set<int>>
      released_;  // by kind: who has let go of it, some and not all
  std::optional<Round> round_;
  std::deque<Proposal> waiting_;
  std::map<int, uint64_t>
      listeners_;  // rank, ticket: they know all outcomes, and wait for the next
  std::optional<Outcome> last_;
  ServiceId before_last_;
  ServiceId first_;  // what all have seen before the first round; new when rebuilt
  uint64_t rounds_ = 0;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_AGREEMENT_H_
