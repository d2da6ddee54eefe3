#include "cost/flow_network.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace syncopate::cost {
namespace {
// Completions within this relative distance are one event. Without it, rounding would split an
// event of many equal flows into many events, each of which settles the network again.
constexpr double kSameTime = 1e-10;

// Below this many entries the queue of completions is never cleaned.
constexpr size_t kCompletionsMin = 64;
}  // namespace

FlowNetwork::FlowNetwork(std::vector<double> capacities) : resources_(capacities.size()) {
  for (size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i];
}

void FlowNetwork::SetDirty(int resource) {
  if (resources_[resource].dirty) return;
  resources_[resource].dirty = true;
  dirty_.push_back(resource);
}

int FlowNetwork::Start(double now, double amount, absl::Span<const Draw> draws, int tag,
                       double rate_max) {
  now_ = now;
  if (free_.empty()) {
    free_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int index = free_.back();
  free_.pop_back();
  Flow& flow = flows_[index];
  flow.shares.clear();
  flow.rate_max = rate_max;
  flow.remaining = amount;
  flow.rate = 0;
  flow.updated = now;
  flow.started = starts_++;
  flow.stamp = ++stamps_;
  flow.tag = tag;
  for (const Draw& draw : draws) {
    Resource& resource = resources_[draw.resource];
    flow.shares.push_back(
        {draw.resource, draw.weight, static_cast<uint32_t>(resource.flows.size())});
    resource.flows.emplace_back(index, static_cast<uint32_t>(flow.shares.size() - 1));
    SetDirty(draw.resource);
  }
  if (draws.empty()) dirty_flows_.push_back(index);
  return index;
}

void FlowNetwork::Cancel(double now, int flow) {
  now_ = now;
  Remove(flow);
}

void FlowNetwork::SetCapacity(double now, int resource, double capacity) {
  now_ = now;
  resources_[resource].capacity = capacity;
  SetDirty(resource);
}

double FlowNetwork::Usage(int resource) {
  Settle();
  double usage = 0;
  for (const auto& [flow, share] : resources_[resource].flows) {
    usage += flows_[flow].rate * flows_[flow].shares[share].weight;
  }
  return usage;
}

void FlowNetwork::Remove(int index) {
  for (const Share& share : flows_[index].shares) {
    Resource& resource = resources_[share.resource];
    // The last flow of the list takes the free slot, so that removal takes constant time.
    resource.flows[share.slot] = resource.flows.back();
    const auto [moved, moved_share] = resource.flows[share.slot];
    flows_[moved].shares[moved_share].slot = share.slot;
    resource.flows.pop_back();
    SetDirty(share.resource);
  }
  flows_[index].stamp = 0;  // no completion has stamp 0, so all queued ones become stale
  free_.push_back(index);
}

// A completion that was queued before the flow's rate changed is left in the queue and skipped when
// it comes to the top: a heap cannot remove from its middle.
bool FlowNetwork::IsStale(const Completion& completion) const {
  return flows_[completion.flow].stamp != completion.stamp;
}

double FlowNetwork::NextCompletion() {
  Settle();
  while (!completions_.empty() && IsStale(completions_.front())) {
    std::pop_heap(completions_.begin(), completions_.end());
    completions_.pop_back();
  }
  return completions_.empty() ? std::numeric_limits<double>::infinity() : completions_.front().time;
}

std::vector<int> FlowNetwork::Complete(double now) {
  Settle();
  now_ = now;
  std::vector<std::pair<uint64_t, int>> ended;  // (position in the order of starts, flow)
  while (!completions_.empty() && completions_.front().time <= now * (1 + kSameTime)) {
    const Completion completion = completions_.front();
    std::pop_heap(completions_.begin(), completions_.end());
    completions_.pop_back();
    if (!IsStale(completion)) ended.emplace_back(flows_[completion.flow].started, completion.flow);
  }
  // The queue's order among equal times depends on rounding; the order of starts does not.
  std::sort(ended.begin(), ended.end());
  std::vector<int> tags;
  for (const auto& [started, flow] : ended) {
    tags.push_back(flows_[flow].tag);
    Remove(flow);
  }
  return tags;
}

// Notes a flow with what it draws on, once. Resources that others draw on as well come to shared_.
void FlowNetwork::AddChanged(int index) {
  Flow& flow = flows_[index];
  if (flow.mark == mark_) return;
  flow.mark = mark_;
  flow.number = static_cast<int>(changed_.size());
  double limit = flow.rate_max;
  for (const Share& share : flow.shares) {
    Resource& resource = resources_[share.resource];
    if (resource.flows.size() == 1) {
      limit = std::min(limit, resource.capacity / share.weight);
      continue;
    }
    if (resource.mark != mark_) {
      resource.mark = mark_;
      resource.number = static_cast<int>(shared_.size());
      shared_.push_back({share.resource, resource.capacity, 0, 0, 0});
    }
    SharedResource& shared = shared_[resource.number];
    shared.weight += share.weight;
    ++shared.unfixed;
    changed_shares_.push_back({resource.number, share.weight});
  }
  changed_.push_back({index, limit, -1, changed_shares_.size()});
}

// A change of one resource can change the rates of every flow that is connected to it through a
// chain of shared resources, and of no other. This is a breadth-first search of that component.
void FlowNetwork::CollectChanged() {
  ++mark_;
  changed_.clear();
  changed_shares_.clear();
  shared_.clear();
  for (const int index : dirty_) {
    resources_[index].dirty = false;
    for (const auto& [flow, share] : resources_[index].flows) AddChanged(flow);
  }
  for (const int index : dirty_flows_) {
    if (flows_[index].stamp != 0) AddChanged(index);
  }
  dirty_.clear();
  dirty_flows_.clear();
  for (size_t next = 0; next < shared_.size(); ++next) {
    for (const auto& [flow, share] : resources_[shared_[next].resource].flows) AddChanged(flow);
  }
  for (SharedResource& shared : shared_) shared.weight_exact = shared.weight;
}

double FlowNetwork::ExactWeight(SharedResource& shared) const {
  // After many subtractions the rest is mostly rounding error, and dividing by it would give an
  // arbitrary rate. A rest below this part of the last exact sum is added up anew.
  constexpr double kTrustedPart = 1e-6;
  if (shared.weight < kTrustedPart * shared.weight_exact) {
    shared.weight = 0;
    for (const auto& [flow, share] : resources_[shared.resource].flows) {
      if (changed_[flows_[flow].number].rate < 0) {
        shared.weight += flows_[flow].shares[share].weight;
      }
    }
    shared.weight_exact = shared.weight;
  }
  return shared.weight;
}

// What the flow uses is no longer available to the flows that go on growing.
void FlowNetwork::Fix(ChangedFlow& flow, size_t number, double rate) {
  flow.rate = rate;
  const size_t begin = number == 0 ? 0 : changed_[number - 1].shares_end;
  for (size_t i = begin; i < flow.shares_end; ++i) {
    const ChangedShare& share = changed_shares_[i];
    SharedResource& shared = shared_[share.number];
    shared.available = std::max(0.0, shared.available - share.weight * rate);
    shared.weight -= share.weight;
    --shared.unfixed;
  }
}

void FlowNetwork::Fill() {
  // A resource is full when all rates have grown to available / weight. Fixing a flow at a lower
  // rate only raises that level, so an entry of the queue may be too low, never too high.
  limits_.clear();
  levels_.clear();
  for (size_t i = 0; i < changed_.size(); ++i) {
    if (changed_[i].limit < std::numeric_limits<double>::infinity()) {
      limits_.emplace_back(changed_[i].limit, static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < shared_.size(); ++i) {
    levels_.emplace_back(shared_[i].available / shared_[i].weight, static_cast<int>(i));
  }
  const auto take = [](std::vector<Level>& heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<Level>());
    const Level top = heap.back();
    heap.pop_back();
    return top;
  };
  std::make_heap(limits_.begin(), limits_.end(), std::greater<Level>());
  std::make_heap(levels_.begin(), levels_.end(), std::greater<Level>());
  double reached = 0;  // the level so far
  for (size_t left = changed_.size(); left > 0;) {
    if (levels_.empty() || (!limits_.empty() && limits_.front().first <= levels_.front().first)) {
      const auto [limit, number] = take(limits_);
      if (changed_[number].rate >= 0) continue;
      reached = std::max(reached, limit);
      Fix(changed_[number], static_cast<size_t>(number), reached);
      --left;
      continue;
    }
    const auto [entry, number] = take(levels_);
    SharedResource& full = shared_[number];
    if (full.unfixed == 0) continue;
    // Levels never fall in exact arithmetic; rounding must not make them fall here.
    const double level = std::max(reached, full.available / ExactWeight(full));
    // The entry was too low: the resource goes back into the queue with its true level.
    if (level > entry * (1 + kSameTime)) {
      levels_.emplace_back(level, number);
      std::push_heap(levels_.begin(), levels_.end(), std::greater<Level>());
      continue;
    }
    reached = level;
    // The resource is full, so the rates of all flows on it stop here.
    for (const auto& [index, unused] : resources_[full.resource].flows) {
      const size_t flow = static_cast<size_t>(flows_[index].number);
      if (changed_[flow].rate >= 0) continue;
      Fix(changed_[flow], flow, level);
      --left;
    }
  }
}

// Where most flows have changed, the queue is made anew: entries that nobody needs would pile up in it
// otherwise, because those of slower rates are far behind.
void FlowNetwork::QueueCompletions() {
  const size_t alive = flows_.size() - free_.size();
  const bool anew = changed_.size() * 4 > alive ||
                    completions_.size() + changed_.size() > 4 * alive + kCompletionsMin;
  for (const ChangedFlow& changed : changed_) {
    Flow& flow = flows_[changed.flow];
    if (flow.rate == changed.rate) continue;  // its queued completion stays right
    flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.updated));
    flow.updated = now_;
    flow.rate = changed.rate;
    flow.completes = now_ + flow.remaining / flow.rate;
    flow.stamp = ++stamps_;
    if (anew) continue;
    completions_.push_back({flow.completes, changed.flow, flow.stamp});
    std::push_heap(completions_.begin(), completions_.end());
  }
  if (!anew) return;
  completions_.clear();
  for (size_t i = 0; i < flows_.size(); ++i) {
    const Flow& flow = flows_[i];
    if (flow.stamp == 0) continue;
    completions_.push_back({flow.completes, static_cast<int>(i), flow.stamp});
  }
  std::make_heap(completions_.begin(), completions_.end());
}

void FlowNetwork::Settle() {
  if (dirty_.empty() && dirty_flows_.empty()) return;
  CollectChanged();
  Fill();
  QueueCompletions();
}

}  // namespace syncopate::cost
