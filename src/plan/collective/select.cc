#include "plan/collective/select.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/digest.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "model/topology_routes.h"
#include "plan/collective/local_trees.h"
#include "plan/collective/locality.h"
#include "plan/collective/machines.h"
#include "plan/collective/planners.h"
#include "plan/collective/quick_select.h"
#include "plan/collective/ring_order.h"

namespace syncopate::plan {
namespace {

constexpr int kPieceCounts[] = {1, 2, 4, 8, 16, 32, 64};
// Cutting finer is not tried: the pieces of a share would be too small to be worth a message.
constexpr uint64_t kPieceBytesMin = 4096;
// Predictions so close together are alike; the planner that is listed first wins.
constexpr double kAlike = 1.001;
// For more workers the best order of a ring is not looked for: its program is too large anyway.
constexpr size_t kBestOrderWorkersMax = 128;
// Likewise for trees inside machines.
constexpr size_t kLocalTreeWorkersMax = 64;
// Planning trees for more workers takes seconds, and has to be asked for.
constexpr int kForestWorkersMax = 64;
constexpr size_t kForestLinksMax = 400;
// Sub-chunks of a forest, and the least data of a tree.
constexpr uint64_t kForestChunkMax = uint64_t{1} << 20;
constexpr uint64_t kForestChunkMin = uint64_t{1} << 14;
constexpr uint64_t kTreeBytesMin = uint64_t{1} << 14;
// Several pairs of trees share links, and TCP does not share them quite as the plan would have it:
// in emulated clusters one pair came to 96-99 % of its predicted speed, several to 88-97 %. So
// predictions for several are multiplied.
constexpr double kSeveralPairsSlower = 1.06;

struct Variant {
  std::string name;
  PlannerOptions options;
};

bool WantsGroups(absl::string_view algorithm) {
  return algorithm == "hierarchical" || algorithm == "hierarchical-ring" || algorithm == "blink" ||
         algorithm == "plink";
}

// The order in which a ring is quickest, if that is neither that of the ranks nor that by place.
absl::StatusOr<std::optional<std::vector<int>>> BetterOrder(const CollectiveRequest& request,
                                                            const Topology& topology,
                                                            absl::Span<const int> placement,
                                                            const std::vector<int>& by_place) {
  if (request.active.size() > kBestOrderWorkersMax) return std::nullopt;
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<int> best,
                             BestRingOrder(topology, placement, request.active));
  SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, RingSecondsPerByte(topology, placement, best));
  for (const std::vector<int>& known : {request.active, by_place}) {
    SYNCOPATE_ASSIGN_OR_RETURN(const double before, RingSecondsPerByte(topology, placement, known));
    if (seconds * kAlike >= before) return std::nullopt;
  }
  return best;
}

// What a planner can be told about this topology, besides the number of pieces.
absl::StatusOr<std::vector<Variant>> VariantsOf(absl::string_view algorithm,
                                                const CollectiveRequest& request,
                                                const Topology& topology,
                                                absl::Span<const int> placement) {
  std::vector<Variant> variants = {{"", {}}};
  if (algorithm == "ring" || algorithm == "chain") {
    const std::vector<int> order = OrderByPlace(topology, placement, request.active);
    if (order != request.active) {
      variants.push_back({"by place", {}});
      variants.back().options.order = order;
    }
    if (algorithm == "ring") {
      SYNCOPATE_ASSIGN_OR_RETURN(std::optional<std::vector<int>> best,
                                 BetterOrder(request, topology, placement, order));
      if (best) {
        variants.push_back({"best order", {}});
        variants.back().options.order = *std::move(best);
      }
    }
  }
  if (WantsGroups(algorithm)) {
    variants[0].options.levels = LevelsOf(topology, placement, request.active);
  }
  if ((algorithm == "blink" || algorithm == "plink") && !variants[0].options.levels.empty() &&
      LargestOf(variants[0].options.levels[0]) <= kLocalTreeWorkersMax) {
    SYNCOPATE_ASSIGN_OR_RETURN(variants[0].options.local_trees,
                               PackLocalTrees(topology, placement, variants[0].options.levels[0]));
  }
  if (algorithm == "parameter-server") {
    variants[0].name = "1 server";
    if (request.active.size() > 1) {
      variants.push_back({absl::StrCat(request.active.size(), " servers"), {}});
      variants.back().options.servers = request.active;
    }
    std::vector<int> relays;
    for (int worker = 0; worker < request.workers; ++worker) {
      if (!std::binary_search(request.active.begin(), request.active.end(), worker)) {
        relays.push_back(worker);
      }
    }
    if (!relays.empty()) {
      variants.push_back({absl::StrCat("inactive servers ", FormatRanks(relays)), {}});
      variants.back().options.servers = relays;
      variants.push_back({absl::StrCat("all ", request.workers, " workers as servers"), {}});
      variants.back().options.servers.resize(static_cast<size_t>(request.workers));
      std::iota(variants.back().options.servers.begin(), variants.back().options.servers.end(), 0);
    }
  }
  return variants;
}

// About how many steps the program will have, to know it before it is made. Where a planner is not
// known here, what the largest would have.
uint64_t EstimatedSteps(const PlannerInfo& planner, uint64_t n, const PlannerOptions& options) {
  const uint64_t pieces = static_cast<uint64_t>(options.pieces);
  const uint64_t rounds = static_cast<uint64_t>(std::bit_width(n));
  if (planner.name == "recursive-doubling" || planner.name == "dissemination")
    return 4 * n * rounds;
  if (planner.name == "halving-doubling") return 8 * n * rounds;
  if (planner.name == "binomial") return 4 * n;
  if (planner.name == "double-tree") return 10 * n * pieces;
  if (planner.name == "chain") return 2 * n * pieces;
  if (planner.name == "parameter-server") {
    return 4 * n * std::max<uint64_t>(1, options.servers.size()) * pieces;
  }
  if (planner.name == "hierarchical") {
    uint64_t peers = 0;  // of a worker, at all levels together
    uint64_t groups = n;
    for (const auto& level : options.levels) {
      peers += groups / level.size();
      groups = level.size();
    }
    return 4 * n * (peers + groups) * pieces;
  }
  if (planner.name == "plink") return 4 * n * pieces;
  if (planner.name == "blink" || planner.name == "hierarchical-ring") {
    const uint64_t machines = options.levels.empty() ? n : options.levels[0].size();
    const uint64_t shares = options.levels.empty() ? 1 : LargestOf(options.levels[0]);
    return 4 * shares * (n - machines + machines * (machines - 1)) * pieces;
  }
  if (planner.name == "direct" && HasRoot(planner.collective)) return 2 * n;
  const uint64_t phases = planner.collective == Collective::kAllReduce ? 2 : 1;
  return 2 * phases * n * n * (planner.name == "ring" ? pieces : 1);
}

// The memory that all active workers share, if they do: all on one host that declares one.
std::optional<SharedMemory> FindSharedMemory(const CollectiveRequest& request,
                                             const Topology& topology,
                                             absl::Span<const int> placement) {
  SharedMemory memory;
  Routes routes(topology);
  const int first = placement[request.active[0]];
  for (const int worker : request.active) {
    const Topology::Node& device = topology.nodes[placement[worker]];
    if (device.host < 0 || device.host != topology.nodes[first].host) return std::nullopt;
    for (const bool back : {false, true}) {
      const absl::StatusOr<std::vector<int>> route = back
                                                         ? routes.Between(placement[worker], first)
                                                         : routes.Between(first, placement[worker]);
      if (!route.ok()) return std::nullopt;
      double latency = 0;
      for (const int link : *route) latency += topology.links[link].latency;
      memory.handover = std::max(memory.handover, latency);
    }
  }
  const std::vector<int>& capacities = topology.nodes[topology.nodes[first].host].memory;
  if (capacities.size() != 1) return std::nullopt;
  const Topology::Capacity& capacity = topology.capacities[capacities[0]];
  memory.bandwidth = capacity.bandwidth;
  memory.cached_bandwidth = capacity.cached_bandwidth;
  memory.cache_bytes = capacity.cache_bytes;
  return memory;
}

class Selector {
 public:
  Selector(const CollectiveRequest& request, size_t bytes_per_element, const Topology& topology,
           absl::Span<const int> placement, const SelectOptions& options)
      : request_(request),
        bytes_per_element_(bytes_per_element),
        topology_(topology),
        placement_(placement),
        options_(options),
        memory_(FindSharedMemory(request, topology, placement)) {}

  absl::Status Try(const PlannerInfo& planner);
  // The forest planner, with sub-chunks of several sizes.
  absl::Status TryForest();
  absl::StatusOr<Selection> Choose();

 private:
  // One planner, one variant, one number of pieces. `first`: the digest of the variant's first
  // program; a program that is equal to it (the planner does not cut) is left out and gives false.
  absl::StatusOr<bool> TryOne(const PlannerInfo& planner, const Variant& variant, int pieces,
                              std::optional<Digest>& first);
  // Plays the program and notes it as the best one if it is.
  absl::Status Play(Candidate candidate, Program program);
  void Skip(Candidate candidate, std::string why);
  std::string TooLarge(uint64_t steps, absl::string_view about) const;
  absl::Status TryTrees(const ForestPlan& plan);
  void MarkBestPieces(size_t begin);
  double SecondsOnHost(const Candidate& candidate, double of_steps) const;
  std::string Why() const;
  std::string WhatLimits() const;

  const CollectiveRequest& request_;
  const size_t bytes_per_element_;
  const Topology& topology_;
  const absl::Span<const int> placement_;
  const SelectOptions& options_;
  const std::optional<SharedMemory> memory_;  // if all active workers share it

  Selection selection_;
  size_t best_ = 0;  // in selection_.candidates
  bool any_ = false;
};

double Selector::SecondsOnHost(const Candidate& candidate, double of_steps) const {
  const int workers = static_cast<int>(request_.active.size());
  const double bytes =
      static_cast<double>(request_.elements) * static_cast<double>(bytes_per_element_);
  if (candidate.in_place) {
    return candidate.algorithm == "one-shot" ? OneShotSeconds(*memory_, workers, bytes)
                                             : DirectSeconds(*memory_, workers, bytes);
  }
  return of_steps + StepwiseSeconds(*memory_, workers, bytes, Reduces(request_.collective));
}

absl::StatusOr<bool> Selector::TryOne(const PlannerInfo& planner, const Variant& variant,
                                      int pieces, std::optional<Digest>& first) {
  Candidate candidate;
  candidate.algorithm = std::string(planner.name);
  candidate.variant = variant.name;
  candidate.pieces = pieces;
  PlannerOptions options = variant.options;
  options.pieces = pieces;
  const uint64_t estimate = EstimatedSteps(planner, request_.active.size(), options);
  // Twice: an estimate must not be the reason why a program that would fit is left out.
  if (estimate / 2 > options_.steps_max) {
    Skip(std::move(candidate), TooLarge(estimate, "about "));
    return true;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(Program program, planner.plan(request_, options));
  const Digest digest = DigestOf(program);
  if (first && *first == digest) return false;
  if (!first) first = digest;
  SYNCOPATE_RETURN_IF_ERROR(Play(std::move(candidate), std::move(program)));
  return true;
}

std::string Selector::TooLarge(uint64_t steps, absl::string_view about) const {
  return absl::StrCat("its program has ", about, steps, " steps, more than the ",
                      options_.steps_max, " that are played");
}

void Selector::Skip(Candidate candidate, std::string why) {
  candidate.skipped = std::move(why);
  selection_.candidates.push_back(std::move(candidate));
}

absl::Status Selector::Play(Candidate candidate, Program program) {
  uint64_t steps = 0;
  for (const std::vector<Step>& list : program.steps) steps += list.size();
  if (steps > options_.steps_max) {
    Skip(std::move(candidate), TooLarge(steps, ""));
    return absl::OkStatus();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(cost::ProgramCost cost,
                             cost::CostOf(program, topology_, placement_, bytes_per_element_));
  candidate.seconds = cost.seconds * candidate.slower;
  candidate.messages = cost.messages;
  candidate.bytes_sent_max = cost.bytes_sent_max;
  candidate.bytes_sent_total = cost.bytes_sent_total;
  if (memory_) {
    candidate.in_place = request_.collective == Collective::kAllReduce &&
                         request_.active.size() == static_cast<size_t>(request_.workers) &&
                         (candidate.algorithm == "direct" || candidate.algorithm == "one-shot");
    candidate.seconds = SecondsOnHost(candidate, cost.seconds);
  }
  selection_.candidates.push_back(candidate);
  if (!any_ || candidate.seconds * kAlike < selection_.candidates[best_].seconds) {
    any_ = true;
    best_ = selection_.candidates.size() - 1;
    selection_.program = std::move(program);
    selection_.cost = std::move(cost);
  }
  return absl::OkStatus();
}

absl::Status Selector::TryForest() {
  Candidate candidate;
  candidate.algorithm = std::string(kForest);
  if (options_.algorithm.empty()) {
    if (memory_) {
      Skip(std::move(candidate), "the workers share memory");
      return absl::OkStatus();
    }
    if (request_.workers > kForestWorkersMax || topology_.links.size() > kForestLinksMax) {
      Skip(std::move(candidate), absl::StrCat("for more than ", kForestWorkersMax, " workers or ",
                                              kForestLinksMax, " links it must be asked for"));
      return absl::OkStatus();
    }
  }
  std::vector<ForestOptions> variants = {options_.forest};
  if (request_.workers <= kFewPairsMembersMax && !options_.forest.few) {
    variants.push_back(options_.forest);
    variants.back().few = true;
  }
  // Small buffers: fewer trees, so that each still has messages that are worth sending.
  const uint64_t bytes = request_.elements * bytes_per_element_;
  const uint64_t worth = std::max<uint64_t>(1, bytes / kTreeBytesMin);
  if (worth < static_cast<uint64_t>(request_.workers) && options_.forest.trees_max == 0) {
    variants.push_back(variants.back());
    variants.back().trees_max = static_cast<int>(worth);
  }
  const size_t begin = selection_.candidates.size();
  double best = 0;
  for (const ForestOptions& variant : variants) {
    SYNCOPATE_ASSIGN_OR_RETURN(ForestPlan plan,
                               PlanForest(topology_, placement_, request_.active, variant));
    const size_t first = selection_.candidates.size();
    SYNCOPATE_RETURN_IF_ERROR(TryTrees(plan));
    for (size_t i = first; i < selection_.candidates.size(); ++i) {
      const Candidate& tried = selection_.candidates[i];
      if (!tried.skipped.empty()) continue;
      if (selection_.forest && tried.seconds * kAlike >= best) continue;
      best = tried.seconds;
      selection_.forest = plan;
    }
  }
  MarkBestPieces(begin);
  return absl::OkStatus();
}

absl::Status Selector::TryTrees(const ForestPlan& plan) {
  const uint64_t bytes = request_.elements * bytes_per_element_;
  for (uint64_t chunk = kForestChunkMax; chunk >= kForestChunkMin; chunk /= 2) {
    if (options_.chunk_bytes > 0) chunk = options_.chunk_bytes;
    // Sub-chunks that nothing is cut into give the program of the next smaller size.
    const bool cuts = chunk < bytes || chunk / 2 < kForestChunkMin || options_.chunk_bytes > 0;
    if (cuts) {
      Candidate candidate;
      candidate.algorithm = std::string(kForest);
      candidate.chunk_bytes = chunk;
      candidate.variant =
          absl::StrCat(plan.pairs.size(), plan.pairs.size() == 1 ? " pair" : " pairs",
                       " of trees, ", FormatBytes(chunk), " chunks");
      if (options_.algorithm.empty() && plan.pairs.size() > 1) {
        candidate.slower = kSeveralPairsSlower;
      }
      SYNCOPATE_ASSIGN_OR_RETURN(
          Program program,
          MakeForestProgram(request_, plan, std::max<uint64_t>(1, chunk / bytes_per_element_)));
      SYNCOPATE_RETURN_IF_ERROR(Play(std::move(candidate), std::move(program)));
      if (!selection_.candidates.back().skipped.empty()) break;
    }
    if (options_.chunk_bytes > 0) break;
  }
  return absl::OkStatus();
}

// Among the candidates from `begin` on, which differ in their pieces only.
void Selector::MarkBestPieces(size_t begin) {
  std::vector<Candidate>& all = selection_.candidates;
  size_t best = begin;
  for (size_t i = begin + 1; i < all.size(); ++i) {
    if (all[i].skipped.empty() && all[i].seconds * kAlike < all[best].seconds) best = i;
  }
  if (all[best].skipped.empty()) all[best].best_pieces = true;
}

absl::Status Selector::Try(const PlannerInfo& planner) {
  const uint64_t bytes = request_.elements * bytes_per_element_;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Variant> variants,
                             VariantsOf(planner.name, request_, topology_, placement_));
  for (const Variant& variant : variants) {
    if (WantsGroups(planner.name) && variant.options.levels.empty() && options_.algorithm.empty()) {
      Candidate candidate;
      candidate.algorithm = std::string(planner.name);
      candidate.skipped = "the topology names no groups of workers";
      selection_.candidates.push_back(candidate);
      continue;
    }
    std::optional<Digest> first;
    const size_t begin = selection_.candidates.size();
    for (const int pieces : kPieceCounts) {
      if (options_.pieces == 0 && pieces > 1 &&
          bytes / static_cast<uint64_t>(pieces) < kPieceBytesMin) {
        break;
      }
      SYNCOPATE_ASSIGN_OR_RETURN(
          const bool cuts,
          TryOne(planner, variant, options_.pieces > 0 ? options_.pieces : pieces, first));
      if (!cuts || options_.pieces > 0 || !selection_.candidates.back().skipped.empty()) break;
    }
    MarkBestPieces(begin);
  }
  return absl::OkStatus();
}

// The busiest part of the topology, if it is busy for most of the time.
std::string Selector::WhatLimits() const {
  constexpr double kBusy = 0.6;
  double most = 0;
  std::string name;
  const auto look = [&](absl::string_view kind, const std::string& id,
                        const cost::ProgramCost::Load& load) {
    if (load.utilisation <= most * kAlike) return;
    most = load.utilisation;
    name = absl::StrCat(kind, " \"", id, "\"");
  };
  for (size_t i = 0; i < topology_.capacities.size(); ++i) {
    look("capacity", topology_.capacities[i].id, selection_.cost.capacities[i]);
  }
  for (size_t i = 0; i < topology_.links.size(); ++i) {
    look("link", topology_.links[i].id, selection_.cost.links[i]);
  }
  if (most >= kBusy) return absl::StrFormat("it is limited by %s, %.0f %% busy", name, 100 * most);
  return absl::StrCat("most of that is waiting, in a chain of ",
                      selection_.cost.critical_chain.size(), " steps that follow one another");
}

std::string Selector::Why() const {
  const std::vector<Candidate>& all = selection_.candidates;
  const Candidate& winner = all[0];
  std::string why =
      absl::StrCat(Describe(winner), " is predicted to take ", FormatSeconds(winner.seconds));
  const auto other = std::find_if(all.begin(), all.end(), [&](const Candidate& candidate) {
    return candidate.best_pieces && candidate.algorithm != winner.algorithm;
  });
  if (other != all.end() && winner.seconds > 0) {
    const double ratio = other->seconds / winner.seconds;
    absl::StrAppend(&why, ", ", Describe(*other), ", the next, ",
                    ratio < 1.005 ? "as long" : absl::StrFormat("%.2f times as long", ratio));
  }
  if (winner.seconds == 0) return absl::StrCat(why, ": there is nothing to wait for");
  if (!winner.in_place) return absl::StrCat(why, "; ", WhatLimits());
  const double waiting = (winner.algorithm == "one-shot" ? 1 : 2) * memory_->handover;
  return absl::StrCat(why, "; ", FormatSeconds(waiting),
                      " of that is waiting for one another, the rest memory traffic");
}

absl::StatusOr<Selection> Selector::Choose() {
  if (!any_) {
    const std::string reason =
        selection_.candidates.empty() ? "there is no planner" : selection_.candidates[0].skipped;
    return absl::ResourceExhaustedError(
        absl::StrCat("no program for ", Name(request_.collective), " can be played: ", reason));
  }
  std::vector<Candidate>& all = selection_.candidates;
  std::rotate(all.begin(), all.begin() + static_cast<ptrdiff_t>(best_),
              all.begin() + static_cast<ptrdiff_t>(best_) + 1);
  std::stable_sort(all.begin() + 1, all.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_pair(!a.skipped.empty(), a.seconds) <
           std::make_pair(!b.skipped.empty(), b.seconds);
  });
  selection_.why = Why();
  return std::move(selection_);
}

}  // namespace

std::string Describe(const Candidate& candidate) {
  std::string text = candidate.algorithm;
  if (candidate.pieces > 1) absl::StrAppend(&text, ", ", candidate.pieces, " pieces");
  if (!candidate.variant.empty()) absl::StrAppend(&text, ", ", candidate.variant);
  return text;
}

absl::StatusOr<Selection> SelectProgram(const CollectiveRequest& request, size_t bytes_per_element,
                                        const Topology& topology, absl::Span<const int> placement,
                                        const SelectOptions& options) {
  PlannerOptions asked;
  if (options.pieces > 0) asked.pieces = options.pieces;
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(request.collective, request, asked));
  if (placement.size() != static_cast<size_t>(request.workers)) {
    return absl::InvalidArgumentError(absl::StrCat("the placement has ", placement.size(),
                                                   " entries for ", request.workers, " workers"));
  }
  for (size_t worker = 0; worker < placement.size(); ++worker) {
    const int node = placement[worker];
    if (node < 0 || static_cast<size_t>(node) >= topology.nodes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement[", worker, "]: ", node, " is not the index of a node"));
    }
  }
  Selector selector(request, bytes_per_element, topology, placement, options);
  if (options.algorithm == kForest && request.collective == Collective::kAllReduce) {
    SYNCOPATE_RETURN_IF_ERROR(selector.TryForest());
    return selector.Choose();
  }
  if (!options.algorithm.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner,
                               FindPlanner(request.collective, options.algorithm));
    SYNCOPATE_RETURN_IF_ERROR(selector.Try(*planner));
    return selector.Choose();
  }
  for (const PlannerInfo& planner : AllPlanners()) {
    if (planner.collective != request.collective) continue;
    SYNCOPATE_RETURN_IF_ERROR(selector.Try(planner));
  }
  if (request.collective == Collective::kAllReduce && request.elements > 0) {
    SYNCOPATE_RETURN_IF_ERROR(selector.TryForest());
  }
  return selector.Choose();
}

absl::StatusOr<Program> PlanAlike(const Selection& like, const CollectiveRequest& request,
                                  size_t bytes_per_element, const Topology& topology,
                                  absl::Span<const int> placement, uint64_t chunk_bytes) {
  const Candidate& chosen = like.candidates.front();
  if (chosen.algorithm == kForest) {
    if (chunk_bytes == 0) chunk_bytes = chosen.chunk_bytes;
    SYNCOPATE_ASSIGN_OR_RETURN(
        Program program, MakeForestProgram(request, *like.forest,
                                           std::max<uint64_t>(1, chunk_bytes / bytes_per_element)));
    uint64_t steps = 0;
    for (const std::vector<Step>& list : program.steps) steps += list.size();
    if (steps > SelectOptions().steps_max) {
      return absl::ResourceExhaustedError(absl::StrCat("a forest with chunks of ", chunk_bytes,
                                                       " bytes would have ", steps, " steps"));
    }
    return program;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner,
                             FindPlanner(request.collective, chosen.algorithm));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Variant> variants,
                             VariantsOf(planner->name, request, topology, placement));
  for (const Variant& variant : variants) {
    if (variant.name != chosen.variant) continue;
    PlannerOptions options = variant.options;
    options.pieces = chosen.pieces;
    return planner->plan(request, options);
  }
  return absl::InternalError(absl::StrCat("there is no ", Describe(chosen), " for this request"));
}

}  // namespace syncopate::plan
