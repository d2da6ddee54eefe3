#include "sim/group_flows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cost/program_cost.h"
#include "cost/program_flows.h"
#include "plan/collective/planners.h"
#include "plan/collective/shared_memory.h"
#include "sim/excerpt.h"

namespace syncopate::sim {
namespace {

constexpr uint64_t kElementBytes = 4;
// The larger size of the smallest size class.
constexpr uint64_t kFirstClassElements = 256;

plan::CollectiveRequest AllReduceOf(size_t workers, uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = static_cast<int>(workers);
  request.elements = elements;
  request.active.resize(workers);
  std::iota(request.active.begin(), request.active.end(), 0);
  return request;
}

// Where all members share memory: the quickest of the programs that run there as a whole.
std::optional<double> SecondsInMemory(const plan::SharedMemory& memory, int workers, double bytes) {
  std::optional<double> least;
  for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
    if (planner->collective != Collective::kAllReduce || !planner->in_place) continue;
    const double seconds =
        plan::InPlaceTime(memory, planner->in_place(workers), workers, bytes).seconds();
    least = std::min(least.value_or(seconds), seconds);
  }
  return least;
}

// Where a line would begin below zero, because the larger size has a slower program, it begins at zero and
// goes through the larger one.
cost::CommunicationCosts LineThrough(uint64_t small, double small_seconds, uint64_t large,
                                     double large_seconds) {
  cost::CommunicationCosts costs;
  const double large_bytes = static_cast<double>(kElementBytes * large);
  const double between = static_cast<double>(kElementBytes * (large - small));
  costs.b = std::clamp((large_seconds - small_seconds) / between, 0.0, large_seconds / large_bytes);
  costs.a = std::max(0.0, large_seconds - costs.b * large_bytes);
  return costs;
}

}  // namespace

cost::CommunicationCosts LineThrough(double small_seconds, double large_seconds) {
  return LineThrough(kPricedElementsSmall, small_seconds, kPricedElementsLarge, large_seconds);
}

GroupFlows::GroupFlows(std::shared_ptr<const Topology> topology, std::vector<int> placement,
                       uint64_t held_bytes, std::shared_ptr<const PlannedAverage> all)
    : topology_(std::move(topology)),
      placement_(std::move(placement)),
      all_(std::move(all)),
      places_(*topology_),
      figures_(plan::FiguresOf(*topology_)),
      routes_(*topology_) {
  for (const Topology::Link& link : topology_->links) capacities_.push_back(link.bandwidth);
  std::vector<double> held(topology_->capacities.size(), 0);
  for (const int device : placement_) {
    for (const int memory : MemoryOf(*topology_, device)) {
      held[static_cast<size_t>(memory)] += static_cast<double>(held_bytes);
    }
  }
  for (size_t i = 0; i < held.size(); ++i) {
    const Topology::Capacity& each = topology_->capacities[i];
    const bool cached = each.cache_bytes > 0 && held[i] <= static_cast<double>(each.cache_bytes);
    capacities_.push_back(cached ? each.cached_bandwidth : each.bandwidth);
  }
  capacities_.resize(capacities_.size() + topology_->nodes.size(), 1);
  if (topology_->shared_cores > 0) capacities_.push_back(topology_->shared_cores);
  weights_.resize(capacities_.size(), 0);
  link_bytes_.resize(topology_->links.size(), 0);
}

absl::StatusOr<GroupFlows::Priced> GroupFlows::Price(const Topology& topology,
                                                     const std::vector<int>& devices,
                                                     uint64_t elements) const {
  Priced priced;
  const plan::CollectiveRequest request = AllReduceOf(devices.size(), elements);
  if (const std::optional<plan::SharedMemory> memory =
          plan::FindSharedMemory(request, topology, devices)) {
    const std::optional<double> seconds =
        SecondsInMemory(*memory, request.workers, static_cast<double>(elements * kElementBytes));
    if (seconds) return Priced{.seconds = *seconds, .program = {}, .in_memory = true};
  }
  std::vector<int> hosts;
  for (const int device : devices) {
    const int host = topology.nodes[static_cast<size_t>(device)].host;
    hosts.push_back(host >= 0 ? host : device);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(priced.program,
                             plan::PlanQuickly(request, kElementBytes, figures_, hosts));
  SYNCOPATE_ASSIGN_OR_RETURN(const cost::ProgramCost cost,
                             cost::CostOf(priced.program, topology, devices, kElementBytes));
  priced.seconds = cost.seconds;
  return priced;
}

// Adds up what the program's steps move, for each byte of a worker's data.
void GroupFlows::Read(const Program& program, const Topology& topology,
                      const std::vector<int>& devices, Recipe& recipe) {
  const double all = static_cast<double>(program.elements());
  std::map<std::pair<int, int>, size_t> channels;
  const auto channel = [&](int from, int to) -> Recipe::Channel& {
    const auto [found, fresh] = channels.emplace(std::pair(from, to), recipe.channels.size());
    if (fresh) recipe.channels.push_back({.from = from, .to = to});
    return recipe.channels[found->second];
  };
  const double all_bytes = all * static_cast<double>(kElementBytes);
  recipe.memory_bytes.assign(devices.size(), 0);
  recipe.device_seconds.assign(devices.size(), 0);
  for (int worker = 0; worker < program.workers; ++worker) {
    const size_t w = static_cast<size_t>(worker);
    const double overhead = topology.nodes[static_cast<size_t>(devices[w])].message_overhead;
    for (const Step& step : program.steps[w]) {
      const double part = static_cast<double>(program.size(step)) / all;
      switch (step.kind) {
        case StepKind::kSend:
          channel(worker, step.peer).bytes += part;
          recipe.device_seconds[w] += overhead / all_bytes;
          break;
        case StepKind::kReceiveReduce:
          channel(step.peer, worker).reduced += part;
          recipe.device_seconds[w] += overhead / all_bytes;
          break;
        case StepKind::kReceive:
          recipe.device_seconds[w] += overhead / all_bytes;
          break;
        case StepKind::kCopy:
          recipe.memory_bytes[w] += cost::kCopyReadsAndWrites * part;
          break;
        case StepKind::kReduce:
          recipe.memory_bytes[w] += cost::kReduceReadsAndWrites * part;
          break;
      }
    }
  }
}

GroupFlows::SizeClass GroupFlows::SizeClassOf(size_t members, uint64_t bytes) {
  if (members > kExcerptMembersMax) return {};
  const uint64_t elements = std::clamp((bytes + kElementBytes - 1) / kElementBytes,
                                       kFirstClassElements, kPricedElementsLarge);
  const uint64_t large = std::bit_ceil(elements);
  return {.small = large / 2, .large = large};
}

absl::StatusOr<std::shared_ptr<const GroupFlows::Recipe>> GroupFlows::MakeRecipe(
    const Topology& topology, const std::vector<int>& devices, const SizeClass& sizes) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Priced small, Price(topology, devices, sizes.small));
  SYNCOPATE_ASSIGN_OR_RETURN(const Priced large, Price(topology, devices, sizes.large));
  auto recipe = std::make_shared<Recipe>();
  recipe->costs = LineThrough(sizes.small, small.seconds, sizes.large, large.seconds);
  recipe->in_memory = large.in_memory;
  if (!large.in_memory) Read(large.program, topology, devices, *recipe);
  ++priced_;
  return recipe;
}

absl::StatusOr<std::shared_ptr<const GroupFlows::Recipe>> GroupFlows::RecipeOf(
    const std::vector<int>& devices, const SizeClass& sizes) {
  if (devices.size() <= kExcerptMembersMax) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Excerpt part, ExcerptOf(*topology_, routes_, devices));
    if (small_recipes_.size() >= kPricesMax) small_recipes_.clear();
    std::shared_ptr<const Recipe>& recipe =
        small_recipes_[{DigestOf(part.topology).ToString(), part.devices, sizes.large}];
    if (recipe == nullptr) {
      SYNCOPATE_ASSIGN_OR_RETURN(recipe, MakeRecipe(part.topology, part.devices, sizes));
    }
    return recipe;
  }
  std::vector<int> canonical = places_.Canonical(devices);
  if (const auto found = recipes_.find(canonical); found != recipes_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe,
                             MakeRecipe(*topology_, canonical, sizes));
  if (recipes_.size() >= kPricesMax) recipes_.clear();
  recipes_.emplace(std::move(canonical), recipe);
  return recipe;
}

void GroupFlows::AddDraw(size_t resource, double weight) {
  if (weight == 0) return;
  if (weights_[resource] == 0) drawn_.push_back(static_cast<int>(resource));
  weights_[resource] += weight;
}

void GroupFlows::AddMemory(int device, double bytes) {
  for (const int memory : MemoryOf(*topology_, device)) {
    AddDraw(topology_->links.size() + static_cast<size_t>(memory), bytes);
  }
}

absl::Status GroupFlows::AddRoute(int from, int to, double bytes) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> route, routes_.Between(from, to));
  for (const int index : route) {
    const Topology::Link& link = topology_->links[static_cast<size_t>(index)];
    double& crossing = link_bytes_[static_cast<size_t>(index)];
    if (crossing == 0) crossed_.push_back(index);
    crossing += bytes;
    // A link whose capacity is not faster never limits (cost/program_flows.cc).
    bool limits = true;
    for (const int capacity : link.capacities) {
      const size_t resource = topology_->links.size() + static_cast<size_t>(capacity);
      AddDraw(resource, bytes);
      limits = limits && capacities_[resource] > link.bandwidth;
    }
    if (limits) AddDraw(static_cast<size_t>(index), bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const GroupFlow>> GroupFlows::FlowOf(
    const Recipe& recipe, const std::vector<int>& devices) {
  auto flow = std::make_shared<GroupFlow>();
  flow->a = recipe.costs.a;
  flow->b = recipe.costs.b;
  absl::Status status;
  for (const Recipe::Channel& channel : recipe.channels) {
    const int from = devices[static_cast<size_t>(channel.from)];
    const int to = devices[static_cast<size_t>(channel.to)];
    status.Update(AddRoute(from, to, channel.bytes));
    AddMemory(from, cost::kSenderReads * channel.bytes);
    AddMemory(to, cost::kReceiveWrites * (channel.bytes - channel.reduced) +
                      cost::kReceiveReduceReadsAndWrites * channel.reduced);
  }
  const size_t first_node = topology_->links.size() + topology_->capacities.size();
  for (size_t i = 0; i < recipe.device_seconds.size(); ++i) {
    AddMemory(devices[i], recipe.memory_bytes[i]);
    AddDraw(first_node + static_cast<size_t>(devices[i]), recipe.device_seconds[i]);
    if (topology_->shared_cores > 0) AddDraw(capacities_.size() - 1, recipe.device_seconds[i]);
  }
  if (recipe.in_memory) {
    for (const int memory : MemoryOf(*topology_, devices.front())) {
      const size_t resource = topology_->links.size() + static_cast<size_t>(memory);
      AddDraw(resource, capacities_[resource] * flow->b);
    }
  }
  double alone = 0;  // seconds a byte by the draws
  for (const int resource : drawn_) {
    const size_t r = static_cast<size_t>(resource);
    alone = std::max(alone, weights_[r] / capacities_[r]);
  }
  // A line is straight and programs are not: it may be steeper or flatter than the bytes at full rate.
  const double scale = alone > flow->b && alone > 0 ? flow->b / alone : 1;
  for (const int resource : drawn_) {
    double& weight = weights_[static_cast<size_t>(resource)];
    if (weight * scale > 0) flow->draws.push_back({resource, weight * scale});
    weight = 0;
  }
  for (const int link : crossed_) {
    flow->link_bytes.emplace_back(link, std::exchange(link_bytes_[static_cast<size_t>(link)], 0));
  }
  drawn_.clear();
  crossed_.clear();
  SYNCOPATE_RETURN_IF_ERROR(status);
  return flow;
}

absl::StatusOr<std::vector<int>> GroupFlows::DevicesOf(const std::vector<int>& ranks) const {
  std::vector<int> devices;
  devices.reserve(ranks.size());
  for (const int rank : ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= placement_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(rank, " is not a rank of a job of ", placement_.size()));
    }
    devices.push_back(placement_[static_cast<size_t>(rank)]);
  }
  return devices;
}

absl::StatusOr<std::shared_ptr<const GroupFlow>> GroupFlows::OfAverage(const Members& members,
                                                                       uint64_t bytes) {
  const SizeClass sizes = SizeClassOf(members->ranks.size(), bytes);
  const SizedGroup group(members, sizes.large);
  if (const auto found = flows_.find(group); found != flows_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> devices, DevicesOf(members->ranks));
  auto flow = std::make_shared<const GroupFlow>();
  // The line of the plan begins at its smaller size. Below, a plan for that size would be another one, of
  // as few messages as the quick choice has.
  const bool on_line = devices.size() > kExcerptMembersMax || sizes.large > kPricedElementsSmall;
  if (all_ != nullptr && on_line && devices.size() == placement_.size() && devices.size() > 1) {
    Recipe recipe;
    recipe.costs = all_->costs;
    Read(all_->program, *topology_, devices, recipe);
    SYNCOPATE_ASSIGN_OR_RETURN(flow, FlowOf(recipe, devices));
  } else if (devices.size() > 1) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe,
                               RecipeOf(devices, sizes));
    SYNCOPATE_ASSIGN_OR_RETURN(flow, FlowOf(*recipe, devices));
  }
  if (flows_.size() >= kFlowsMax) flows_.clear();
  flows_.emplace(group, flow);
  return flow;
}

// One message from each: its latency and overheads first, then its bytes at the rate of the narrowest
// place on its way.
absl::StatusOr<std::shared_ptr<const GroupFlow>> GroupFlows::OfSends(const std::vector<int>& from,
                                                                     int to) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> senders, DevicesOf(from));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> receiver, DevicesOf({to}));
  const std::pair<int, int> one(senders.empty() ? receiver[0] : senders[0], receiver[0]);
  if (senders.size() == 1) {
    if (const auto found = sends_.find(one); found != sends_.end()) return found->second;
  }
  Recipe recipe;
  std::vector<int> devices = receiver;
  double narrowest = 0;  // seconds a byte
  for (const int sender : senders) {
    if (sender == receiver[0]) continue;
    devices.push_back(sender);
    recipe.channels.push_back({.from = static_cast<int>(devices.size()) - 1, .to = 0, .bytes = 1});
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> route, routes_.Between(sender, receiver[0]));
    double seconds = topology_->nodes[static_cast<size_t>(sender)].message_overhead +
                     topology_->nodes[static_cast<size_t>(receiver[0])].message_overhead;
    for (const int link : route) seconds += topology_->links[static_cast<size_t>(link)].latency;
    recipe.costs.a = std::max(recipe.costs.a, seconds);
  }
  // First as if nothing limited it, to learn by its draws what does.
  recipe.costs.b = std::numeric_limits<double>::max();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::shared_ptr<const GroupFlow> open, FlowOf(recipe, devices));
  for (const cost::FlowNetwork::Draw& draw : open->draws) {
    narrowest = std::max(narrowest, draw.weight / capacities_[static_cast<size_t>(draw.resource)]);
  }
  auto flow = std::make_shared<GroupFlow>(*open);
  flow->b = narrowest;
  if (senders.size() == 1) {
    if (sends_.size() >= kFlowsMax) sends_.clear();
    sends_.emplace(one, flow);
  }
  return flow;
}

}  // namespace syncopate::sim
