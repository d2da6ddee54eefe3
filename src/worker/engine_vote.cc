#include "worker/engine_vote.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

// Above those that jobs use: a vote is small, and calls wait for it.
constexpr int kPriority = 1 << 20;

class EngineVote final : public PlanVote {
 public:
  EngineVote(engine::Engine& engine, std::shared_ptr<int32_t> yes,
             std::shared_ptr<engine::Operation> operation)
      : engine_(engine), yes_(std::move(yes)), operation_(std::move(operation)) {}

  absl::StatusOr<bool> Outcome(int64_t deadline_ns) override {
    engine_.Hasten(*operation_, deadline_ns);
    SYNCOPATE_RETURN_IF_ERROR(engine_.Wait(operation_));
    return *yes_ == 1;
  }
  bool Done() const override { return operation_->done(); }

 private:
  engine::Engine& engine_;
  const std::shared_ptr<int32_t> yes_;
  const std::shared_ptr<engine::Operation> operation_;
};

}  // namespace

// A reduction, so that all survivors get the outcome or none does.
absl::StatusOr<std::unique_ptr<PlanVote>> EngineVotes::Start(const engine::EngineGroup& group,
                                                             bool yes, int64_t deadline_ns) {
  if (votes_ == nullptr) {
    const uint64_t key = DigestOf(absl::StrCat("votes of ", group.key)).low | 1;
    SYNCOPATE_ASSIGN_OR_RETURN(votes_, engine_.MakeGroup(key, group.members));
  }
  plan::ProgramKey key;
  key.request.collective = Collective::kAllReduce;
  key.request.workers = static_cast<int>(group.members.size());
  key.request.active.resize(group.members.size());
  std::iota(key.request.active.begin(), key.request.active.end(), 0);
  key.request.elements = 1;
  key.element_bytes = sizeof(int32_t);
  key.self = group.self;
  key.ranks = group.members;
  SYNCOPATE_ASSIGN_OR_RETURN(PlannedProgram planned, programs_.GetQuick(key));
  auto value = std::make_shared<int32_t>(yes ? 1 : 0);
  // The operation keeps the memory that it writes to.
  std::shared_ptr<engine::Operation> operation =
      engine_.Start({.group = votes_,
                     .program = std::move(planned.program),
                     .data = value.get(),
                     .type = DataType::kInt32,
                     .op = ReduceOp::kMin,
                     .weight = 1,
                     .priority = kPriority,
                     .deadline_ns = deadline_ns,
                     .completed = [value](const absl::Status&) {}});
  return std::make_unique<EngineVote>(engine_, std::move(value), std::move(operation));
}

}  // namespace syncopate::worker
