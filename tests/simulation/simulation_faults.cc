// What befalls the workers of a simulated job.
#include <utility>

#include "simulation/simulation_run.h"

namespace syncopate::simulation {

using transport::Loss;

void Simulation::BeginFault(size_t index) {
  const Fault& fault = scenario_.faults[index];
  fault_ns_ = trouble_ns_ = time_.now_ns();
  Note("fault ", ToText(fault));
  Apply(fault, true);
  if (fault.kind != Fault::Kind::kKill && fault.duration_ns >= 0) {
    ++faults_running_;
    time_.After(fault.duration_ns, [this, &fault] {
      --faults_running_;
      trouble_ns_ = time_.now_ns();
      Note("no more: ", ToText(fault));
      Apply(fault, false);
    });
  }
  if (index + 1 < scenario_.faults.size()) {
    time_.After(scenario_.faults[index + 1].after_ns, [this, index] {
      ++faults_begun_;
      BeginFault(index + 1);
    });
  }
}

void Simulation::Apply(const Fault& fault, bool begin) {
  const auto cut = [&](int from, int to) {
    if (from == to) return;
    int& count = cuts_[Index(from)][Index(to)];
    count += begin ? 1 : -1;
    network_->Cut(from, to, count > 0);
  };
  Worker& target = worker(fault.rank);
  using Kind = Fault::Kind;
  switch (fault.kind) {
    case Kind::kKill:
      Kill(target);
      return;
    case Kind::kStop:
      if (begin && target.stops++ == 0) target.stopped_ns = time_.now_ns();
      target.turn_planned = false;
      ++target.turns_planned;
      if (!begin && --target.stops == 0) Resume(target);
      return;
    case Kind::kCutPair:
      cut(fault.other, fault.rank);
      [[fallthrough]];
    case Kind::kCutOneWay:
      cut(fault.rank, fault.other);
      return;
    case Kind::kCutOff:
    case Kind::kMute:
    case Kind::kDeaf:
      for (int rank = 0; rank < scenario_.size; ++rank) {
        if (fault.kind != Kind::kDeaf) cut(fault.rank, rank);
        if (fault.kind != Kind::kMute) cut(rank, fault.rank);
      }
      return;
  }
}

void Simulation::Resume(Worker& worker) {
  worker.stops = 0;
  trouble_ns_ = time_.now_ns();
  worker.slept_ns += time_.now_ns() - worker.stopped_ns;
  Wake(worker.rank);
}

void Simulation::Kill(Worker& worker) {
  if (std::exchange(worker.dead, true)) return;
  network_->Kill(worker.rank);
}

// A worker that is held for lost is ended by the others of its host, so that it does not write into
// their memory.
void Simulation::FindExpelled(const Host& host) {
  if (host.network == nullptr) return;
  for (const Loss& loss : worker(host.ranks.front()).local->Lost()) {
    Worker& expelled = worker(host.ranks[Index(loss.rank)]);
    if (expelled.dead) continue;
    Note("ended ", expelled.rank);
    Kill(expelled);
  }
}

}  // namespace syncopate::simulation
