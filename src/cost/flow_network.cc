#include "cost/flow_network.h"

#include <algorithm>
#include <limits>

namespace syncopate::cost {
namespace {
// Completions within this relative distance are one event. Without it, rounding would split an
// event of many equal flows into many events, each of which settles the network again.
constexpr double kSameTime = 1e-10;
}  // namespace

FlowNetwork::FlowNetwork(std::vector<double> capacities) : resources_(capacities.size()) {
  for (size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i];
}

void FlowNetwork::SetDirty(int resource) {
  if (resources_[resource].dirty) return;
  resources_[resource].dirty = true;
  dirty_.push_back(resource);
}

// A limit of the rate is a resource that no other flow draws on.
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
  flow.remaining = amount;
  flow.rate = 0;
  flow.updated = now;
  flow.started = starts_++;
  flow.tag = tag;
  flow.own = -1;
  const auto draw_on = [&](int on, double weight) {
    Resource& resource = resources_[on];
    flow.shares.push_back({on, weight, static_cast<uint32_t>(resource.flows.size())});
    resource.flows.emplace_back(index, static_cast<uint32_t>(flow.shares.size() - 1));
    SetDirty(on);
  };
  for (const Draw& draw : draws) draw_on(draw.resource, draw.weight);
  if (rate_max < std::numeric_limits<double>::infinity()) {
    if (free_own_.empty()) {
      free_own_.push_back(static_cast<int>(resources_.size()));
      resources_.emplace_back();
    }
    flow.own = free_own_.back();
    free_own_.pop_back();
    resources_[flow.own].capacity = rate_max;
    draw_on(flow.own, 1);
  }
  return index;
}

void FlowNetwork::Cancel(double now, int flow) {
  now_ = now;
  Remove(flow);
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
  if (flows_[index].own >= 0) free_own_.push_back(flows_[index].own);
  flows_[index].stamp = 0;  // no completion has stamp 0, so all queued ones become stale
  free_.push_back(index);
}

// A completion that was queued before the flow's rate changed is left in the queue and skipped when
// it comes to the top: a priority queue cannot remove from its middle.
bool FlowNetwork::IsStale(const Completion& completion) const {
  return flows_[completion.flow].stamp != completion.stamp;
}

double FlowNetwork::NextCompletion() {
  Settle();
  while (!completions_.empty() && IsStale(completions_.top())) completions_.pop();
  return completions_.empty() ? std::numeric_limits<double>::infinity() : completions_.top().time;
}

std::vector<int> FlowNetwork::Complete(double now) {
  Settle();
  now_ = now;
  std::vector<std::pair<uint64_t, int>> ended;  // (position in the order of starts, flow)
  while (!completions_.empty() && completions_.top().time <= now * (1 + kSameTime)) {
    const Completion completion = completions_.top();
    completions_.pop();
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

// A change of one resource can change the rates of every flow that is connected to it through a
// chain of shared resources, and of no other. This is a breadth-first search of that component.
void FlowNetwork::CollectChanged() {
  ++mark_;
  changed_flows_.clear();
  changed_resources_.clear();
  for (const int index : dirty_) {
    resources_[index].dirty = false;
    resources_[index].mark = mark_;
    changed_resources_.push_back(index);
  }
  dirty_.clear();
  for (size_t next = 0; next < changed_resources_.size(); ++next) {
    for (const auto& [index, unused] : resources_[changed_resources_[next]].flows) {
      Flow& flow = flows_[index];
      if (flow.mark == mark_) continue;
      flow.mark = mark_;
      changed_flows_.push_back(index);
      for (const Share& share : flow.shares) {
        if (resources_[share.resource].mark == mark_) continue;
        resources_[share.resource].mark = mark_;
        changed_resources_.push_back(share.resource);
      }
    }
  }
}

double FlowNetwork::ExactWeight(Resource& resource) const {
  // After many subtractions the rest is mostly rounding error, and dividing by it would give an
  // arbitrary rate. A rest below this part of the last exact sum is added up anew.
  constexpr double kTrustedPart = 1e-6;
  if (resource.weight < kTrustedPart * resource.weight_exact) {
    resource.weight = 0;
    for (const auto& [flow, share] : resource.flows) {
      if (!flows_[flow].fixed) resource.weight += flows_[flow].shares[share].weight;
    }
    resource.weight_exact = resource.weight;
  }
  return resource.weight;
}

void FlowNetwork::Fill() {
  // A resource is full when all rates have grown to available / weight. Fixing a flow at a lower
  // rate only raises that level, so an entry of the queue may be too low, never too high.
  using Level = std::pair<double, int>;  // (level, resource)
  std::priority_queue<Level, std::vector<Level>, std::greater<Level>> levels;
  for (const int index : changed_resources_) {
    Resource& resource = resources_[index];
    resource.available = resource.capacity;
    resource.unfixed = static_cast<uint32_t>(resource.flows.size());
    resource.weight = 0;
    for (const auto& [flow, share] : resource.flows) {
      resource.weight += flows_[flow].shares[share].weight;
    }
    resource.weight_exact = resource.weight;
    if (resource.unfixed > 0) levels.emplace(resource.available / resource.weight, index);
  }
  double reached = 0;  // the level so far
  while (!levels.empty()) {
    const auto [entry, index] = levels.top();
    levels.pop();
    Resource& full = resources_[index];
    if (full.unfixed == 0) continue;
    // Levels never fall in exact arithmetic; rounding must not make them fall here.
    const double level = std::max(reached, full.available / ExactWeight(full));
    // The entry was too low: the resource goes back into the queue with its true level.
    if (level > entry * (1 + kSameTime)) {
      levels.emplace(level, index);
      continue;
    }
    reached = level;
    // The resource is full, so the rates of all flows on it stop here. What they use elsewhere is
    // no longer available to the flows that go on growing.
    for (const auto& [flow_index, unused] : full.flows) {
      Flow& flow = flows_[flow_index];
      if (flow.fixed) continue;
      flow.fixed = true;
      flow.rate = level;
      for (const Share& share : flow.shares) {
        Resource& resource = resources_[share.resource];
        if (&resource == &full) continue;
        resource.available = std::max(0.0, resource.available - share.weight * level);
        resource.weight -= share.weight;
        --resource.unfixed;
      }
    }
    full.unfixed = 0;
  }
}

void FlowNetwork::Settle() {
  if (dirty_.empty()) return;
  CollectChanged();
  for (const int index : changed_flows_) {
    Flow& flow = flows_[index];
    flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.updated));
    flow.updated = now_;
    flow.fixed = false;
    flow.rate_before = flow.rate;
  }
  Fill();
  for (const int index : changed_flows_) {
    Flow& flow = flows_[index];
    if (flow.rate == flow.rate_before) continue;  // its queued completion stays right
    const double completes = now_ + flow.remaining / flow.rate;
    flow.stamp = ++stamps_;
    completions_.push({completes, index, flow.stamp});
  }
}

}  // namespace syncopate::cost
