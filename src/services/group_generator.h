// Prague's group generator as a service: workers ask it for the group with which they average next
// (strategy_message.h: WantGroup, GroupDone), and are told when that group begins. Only ranks travel, never
// weights. group_maker.h has the rules.
//
//   WantGroup  is answered by GroupGiven, at once or when all members have asked; a group of the asker alone: it
//              goes on by itself, and has nothing to say of it later
//   GroupDone  is answered by Noted: the worker goes on; or, without a buffer of groups, by the GroupGiven of the
//              next one that it is in
#ifndef SYNCOPATE_SERVICES_GROUP_GENERATOR_H_
#define SYNCOPATE_SERVICES_GROUP_GENERATOR_H_

#include <map>
#include <string>
#include <vector>

#include "services/group_maker.h"
#include "services/service.h"

namespace syncopate::services {

class GroupGenerator : public Service {
 public:
  static constexpr char kName[] = "groups";

  // Both must be valid.
  GroupGenerator(const GroupRules& rules, const GroupJob& job)
      : workers_(job.workers), maker_(rules, job) {}

  absl::string_view name() const override { return kName; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override;
  std::string State() const override;
  absl::Status Load(absl::string_view state) override;
  bool CanRebuild() const override { return true; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override;
  bool CanResume() const override { return true; }
  absl::Status Resume(absl::string_view state, const std::vector<int>& ranks) override;

  // What a worker reports when host and standby are lost together.
  static std::string Report(const GroupMaker::Known& known);

  const GroupCounts& counts() const { return maker_.counts(); }

 private:
  void OnAsked(const GroupMaker::Moment& moment, const Asked& asked, ServiceStep& step);
  // Answers those that are told of a group.
  void Answers(const std::vector<GivenGroup>& given, ServiceStep& step);

  int workers_;  // ranks that requests may come from
  GroupMaker maker_;
  std::map<int, uint64_t> tickets_;  // of workers that wait
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_GROUP_GENERATOR_H_
