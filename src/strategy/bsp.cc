// The states of a tensor in one iteration: its gradient becomes ready (backward), is averaged (its
// transfer runs, then has arrived), the update makes its parameters fresh, and the next forward
// pass, which asked for it, may proceed. Each event moves some tensors on by one state;
// StartWhatCan() and UpdateWhatCan() then do all that has become possible.
#include "strategy/bsp.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::strategy {
namespace {

class Bsp final : public Strategy {
 public:
  Bsp(const WorkerInfo& info, std::shared_ptr<const Schedule> schedule, const BspOptions& options)
      : info_(info),
        options_(options),
        schedule_(std::move(schedule)),
        ready_(static_cast<size_t>(info.tensors), false),
        fresh_(static_cast<size_t>(info.tensors), true),
        needed_(static_cast<size_t>(info.tensors), false) {}

  std::string name() const override { return "bsp"; }

  void Step(double /*now*/, const Event& event, std::vector<Command>& commands) override {
    if (failed_) return;
    commands_ = &commands;
    std::visit([&](const auto& e) { On(e); }, event);
  }

 private:
  void On(const IterationBegan& event) {
    iteration_ = event.iteration;
    samples_ = event.samples;
  }

  void On(const ForwardNeeds& event) {
    needed_[static_cast<size_t>(event.tensor)] = true;
    Release(event.tensor, event.tensor);
  }

  void On(const GradientReady& event) {
    BeginBackward();
    ready_[static_cast<size_t>(event.tensor)] = true;
    StartWhatCan();
  }

  // A tensor that had no part in this backward pass has a gradient of 0, and others may wait for
  // its transfer; so all count as ready.
  void On(const BackwardEnded&) {
    BeginBackward();
    ready_.assign(ready_.size(), true);
    StartWhatCan();
    in_backward_ = false;
  }

  void On(const TransferDone& event) {
    for (size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].id != event.transfer) continue;
      const Running done = running_[i];
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
      arrived_.push_back(done);
      break;
    }
    StartWhatCan();
    UpdateWhatCan();
  }

  // There is no mean of all without one of them.
  void On(const WorkerLost& event) { End(event.why); }
  void On(const WorkerLeft& event) {
    End(WithBlast(absl::UnavailableError(absl::StrCat("worker ", event.rank, " has left")),
                  BlastRadius::kJob, event.rank));
  }
  void On(const TransferFailed& event) { End(event.why); }

  void On(const NewValue& event) {
    if (std::holds_alternative<std::shared_ptr<const Schedule>>(event.value)) {
      next_schedules_.push_back(event);
    }
  }

  void On(const Drain&) {
    draining_ = true;
    FinishDraining();
  }

  // Events that mean nothing to BSP.
  void On(const WorkerJoined&) {}
  void On(const Answered&) {}
  void On(const MessageArrived&) {}
  void On(const Updated&) {}
  void On(const TimePassed&) {}

  void End(const absl::Status& why) {
    failed_ = true;
    Do(Fail{why});
  }

  // To be called within a step.
  void Do(Command command) { commands_->push_back(std::move(command)); }

  // The first gradient of an iteration. The forward pass before it needed every tensor, so all
  // transfers of the iteration before have ended, and the schedule may change.
  void BeginBackward() {
    if (in_backward_) return;
    in_backward_ = true;
    weight_ = static_cast<double>(samples_);
    while (!next_schedules_.empty() && next_schedules_.front().from <= iteration_) {
      schedule_ = std::get<std::shared_ptr<const Schedule>>(next_schedules_.front().value);
      next_schedules_.erase(next_schedules_.begin());
    }
    started_ = 0;
    ready_.assign(ready_.size(), false);
    fresh_.assign(fresh_.size(), false);
    needed_.assign(needed_.size(), false);
  }

  // Starts the transfers in the order of the schedule, which is the same on all workers.
  void StartWhatCan() {
    const auto& transfers = schedule_->transfers;
    while (started_ < transfers.size()) {
      const Transfer& transfer = transfers[started_];
      // `beside`: how many others may still run when this one starts. Later transfers wait behind
      // it even if they could start, since all workers must start them in the same order.
      if (running_.size() > static_cast<size_t>(transfer.beside)) return;
      for (int tensor = transfer.last; tensor >= transfer.first; --tensor) {
        if (!ready_[static_cast<size_t>(tensor)]) return;
      }
      ++started_;
      if (info_.size == 1) {
        arrived_.push_back({-1, transfer.first, transfer.last});
        continue;
      }
      const int64_t id = next_id_++;
      running_.push_back({id, transfer.first, transfer.last});
      // Of transfers that run at once, the one with the first tensors goes first: the next forward
      // pass needs it first.
      Do(StartTransfer{.transfer = id,
                       .first = transfer.first,
                       .last = transfer.last,
                       .weight = weight_,
                       .priority = info_.tensors - transfer.first});
    }
    // Alone nothing ends later, so nothing else would call it.
    if (info_.size == 1) UpdateWhatCan();
  }

  // Applies what has arrived. With update_together nothing is applied before the last transfer of
  // the iteration has arrived: the norm of the whole gradient is known only then.
  void UpdateWhatCan() {
    const bool all = started_ == schedule_->transfers.size() && running_.empty();
    if (options_.update_together && !all) return;
    for (const Running& transfer : std::exchange(arrived_, {})) {
      Do(ApplyUpdate{.update = transfer.id < 0 ? Update::kStepLocal : Update::kStepAveraged,
                     .first = transfer.first,
                     .last = transfer.last,
                     .transfer = transfer.id});
      for (int tensor = transfer.first; tensor <= transfer.last; ++tensor) {
        fresh_[static_cast<size_t>(tensor)] = true;
      }
      Release(transfer.first, transfer.last);
    }
    FinishDraining();
  }

  // Lets the forward pass go on where it waits for a tensor whose update is applied.
  void Release(int first, int last) {
    for (int tensor = first; tensor <= last; ++tensor) {
      const size_t t = static_cast<size_t>(tensor);
      if (!needed_[t] || !fresh_[t]) continue;
      needed_[t] = false;
      Do(Proceed{tensor});
    }
  }

  // Called wherever something may have been the last that was under way.
  void FinishDraining() {
    if (!draining_ || !running_.empty() || !arrived_.empty()) return;
    draining_ = false;
    Do(Drained{});
  }

  struct Running {
    int64_t id;  // -1: this worker is alone, nothing was sent
    int first;
    int last;
  };

  const WorkerInfo info_;
  const BspOptions options_;
  std::shared_ptr<const Schedule> schedule_;
  std::vector<NewValue> next_schedules_;  // by `from`

  int64_t iteration_ = 0;
  uint64_t samples_ = 1;
  double weight_ = 1;  // the samples behind the gradients, which may leave in the next iteration
  bool in_backward_ = false;
  bool draining_ = false;
  bool failed_ = false;
  size_t started_ = 0;  // transfers of this iteration's schedule
  int64_t next_id_ = 0;
  std::vector<Running> running_;
  std::vector<Running> arrived_;              // done, and not yet applied
  std::vector<bool> ready_;                   // by tensor: this iteration's gradient is there
  std::vector<bool> fresh_;                   // by tensor: the last iteration's update is applied
  std::vector<bool> needed_;                  // by tensor: the forward pass waits for it
  std::vector<Command>* commands_ = nullptr;  // of the step that runs
};

}  // namespace

std::unique_ptr<Strategy> MakeBsp(const WorkerInfo& info, std::shared_ptr<const Schedule> schedule,
                                  const BspOptions& options) {
  return std::make_unique<Bsp>(info, std::move(schedule), options);
}

}  // namespace syncopate::strategy
