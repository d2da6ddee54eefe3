#include "worker/engine_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

// The priority is above those that jobs use: a record is small, and a late one is worth less.
constexpr int kPriority = 1 << 20;

class EnginePending final : public adapt::RecordExchange::Pending {
 public:
  EnginePending(engine::Engine& engine, adapt::RecordExchange::Record all)
      : engine_(engine), all_(std::move(all)) {}

  void Start(engine::OperationSpec spec) {
    spec.data = all_.data();
    operation_ = engine_.StartAlong(std::move(spec));
  }
  bool Done() override { return operation_->done(); }
  absl::Status Wait() override { return engine_.Wait(operation_); }
  const adapt::RecordExchange::Record& All() override { return all_; }

 private:
  engine::Engine& engine_;
  adapt::RecordExchange::Record all_;
  std::shared_ptr<engine::Operation> operation_;
};

class EngineExchange final : public adapt::RecordExchange {
 public:
  EngineExchange(engine::Engine& engine, ProgramCache& programs,
                 std::shared_ptr<engine::EngineGroup> group, int64_t timeout_ns)
      : engine_(engine), programs_(programs), group_(std::move(group)), timeout_ns_(timeout_ns) {}

  absl::StatusOr<std::unique_ptr<Pending>> Start(Record mine) override {
    const size_t workers = group_->members.size();
    plan::ProgramKey key;
    key.request.collective = Collective::kAllGather;
    key.request.workers = static_cast<int>(workers);
    key.request.active.resize(workers);
    std::iota(key.request.active.begin(), key.request.active.end(), 0);
    key.request.elements = workers * mine.size();
    key.request.block_elements.assign(workers, mine.size());
    key.element_bytes = sizeof(int64_t);
    key.self = group_->self;
    key.ranks = group_->members;
    SYNCOPATE_ASSIGN_OR_RETURN(const PlannedProgram planned, programs_.Get(key));
    Record all(workers * mine.size());
    std::copy(
        mine.begin(), mine.end(),
        all.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(group_->self) * mine.size()));
    auto pending = std::make_unique<EnginePending>(engine_, std::move(all));
    pending->Start({.group = group_,
                    .program = planned.program,
                    .data = nullptr,
                    .type = DataType::kInt64,
                    .op = ReduceOp::kSum,
                    .weight = 1,
                    .priority = kPriority,
                    .deadline_ns = MonotonicClock().NowNs() + timeout_ns_});
    return pending;
  }

 private:
  engine::Engine& engine_;
  ProgramCache& programs_;
  const std::shared_ptr<engine::EngineGroup> group_;
  const int64_t timeout_ns_;
};

}  // namespace

std::unique_ptr<adapt::RecordExchange> MakeEngineExchange(
    engine::Engine& engine, ProgramCache& programs, std::shared_ptr<engine::EngineGroup> group,
    int64_t timeout_ns) {
  return std::make_unique<EngineExchange>(engine, programs, std::move(group), timeout_ns);
}

}  // namespace syncopate::worker
