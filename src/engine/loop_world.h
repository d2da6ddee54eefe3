// A group of workers on the loop transport, all in this process, driven by one thread in an order
// that a seed decides. Tests run programs on it, and so does `syncopate program run`.
#ifndef SYNCOPATE_ENGINE_LOOP_WORLD_H_
#define SYNCOPATE_ENGINE_LOOP_WORLD_H_

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "transport/loop/loop_transport.h"

namespace syncopate::engine {

class LoopWorld {
 public:
  LoopWorld(int size, uint64_t seed) : network_(size, seed) {
    std::vector<int> everyone(static_cast<size_t>(size));
    std::iota(everyone.begin(), everyone.end(), 0);
    for (int rank = 0; rank < size; ++rank) {
      transports_.push_back(network_.Attach(rank));
      engines_.push_back(
          std::make_unique<Engine>(*transports_.back(), network_.clock(), Engine::Pump::kNone));
      groups_.push_back(*engines_.back()->MakeGroup(1, everyone));
    }
  }

  int size() const { return static_cast<int>(engines_.size()); }
  transport::LoopNetwork& network() { return network_; }
  int64_t now_ns() const { return network_.clock().NowNs(); }

  std::shared_ptr<Operation> Start(int rank, OperationSpec spec) {
    spec.group = groups_[static_cast<size_t>(rank)];
    if (spec.deadline_ns == 0) spec.deadline_ns = int64_t{1} << 60;
    return engines_[static_cast<size_t>(rank)]->Start(std::move(spec));
  }

  // One worker, drawn at random among `alive`, takes a turn; time passes.
  void Step(const std::vector<int>& alive) {
    const int rank = alive[network_.random().Below(alive.size())];
    engines_[static_cast<size_t>(rank)]->DriveOnce();
    network_.Tick();
  }

  // Drives until all are done, or `steps_max` turns have passed; true if they are.
  bool Finish(const std::vector<std::shared_ptr<Operation>>& operations,
              int64_t steps_max = 1'000'000) {
    std::vector<int> all(engines_.size());
    std::iota(all.begin(), all.end(), 0);
    for (int64_t step = 0; step < steps_max; ++step) {
      bool done = true;
      for (const auto& operation : operations) done = done && operation->done();
      if (done) return true;
      Step(all);
    }
    return false;
  }

 private:
  transport::LoopNetwork network_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::shared_ptr<EngineGroup>> groups_;
};

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_LOOP_WORLD_H_
