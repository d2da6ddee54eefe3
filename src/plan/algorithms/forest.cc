// Many trees at once, packed into the network by a linear program (plan/forest/, docs/forest.md).
// A variant is a set of trees, planned for the topology, and a size of the sub-chunks that follow
// each other along them.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/topology_makers.h"
#include "plan/collective/planners.h"
#include "plan/forest/forest_planner.h"

namespace syncopate::plan {
namespace {

// Planning trees for more workers takes seconds, and has to be asked for.
constexpr int kWorkersMax = 64;
constexpr size_t kLinksMax = 400;
// The sizes of sub-chunks, and the least data that a tree is worth.
constexpr uint64_t kChunkMax = uint64_t{1} << 20;
constexpr uint64_t kChunkMin = uint64_t{1} << 14;
constexpr uint64_t kTreeBytesMin = uint64_t{1} << 14;
// Several pairs of trees share links, and TCP does not share them quite as the plan would have it:
// in emulated clusters one pair came to 96-99 % of its predicted speed, several to 88-97 %. So the
// predicted time of several pairs is multiplied by this.
constexpr double kSeveralPairsSlower = 1.06;
// Where no topology is given: equal NICs around one switch. The trees do not depend on the numbers.
constexpr double kAnyBandwidth = 1e9;
constexpr double kAnyLatency = 1e-5;

struct Settings : PlannerData {
  ForestOptions options;
};

struct Prepared : PlannerData {
  ForestPlan plan;
};

std::string Limit(const PlanningContext& context) {
  if (context.memory) return "the workers share memory";
  if (context.request.workers > kWorkersMax || context.topology.links.size() > kLinksMax) {
    return absl::StrCat("for more than ", kWorkersMax, " workers or ", kLinksMax,
                        " links it must be asked for");
  }
  return "";
}

// Which sets of trees are planned.
std::vector<ForestOptions> Forests(const PlanningContext& context) {
  ForestOptions given;
  if (const auto* settings = dynamic_cast<const Settings*>(context.data.get())) {
    given = settings->options;
  }
  std::vector<ForestOptions> forests = {given};
  if (context.request.workers <= kFewPairsMembersMax && !given.few) {
    forests.push_back(given);
    forests.back().few = true;
  }
  // Small buffers: fewer trees, so that each still has messages that are worth sending.
  const uint64_t bytes = context.request.elements * context.bytes_per_element;
  const uint64_t worth = std::max<uint64_t>(1, bytes / kTreeBytesMin);
  if (worth < static_cast<uint64_t>(context.request.workers) && given.trees_max == 0) {
    forests.push_back(forests.back());
    forests.back().trees_max = static_cast<int>(worth);
  }
  return forests;
}

// The sizes of sub-chunks for data of that many bytes, largest first. Sub-chunks that nothing is
// cut into give the program of the next smaller size.
std::vector<uint64_t> ChunkSizes(uint64_t bytes) {
  std::vector<uint64_t> sizes;
  for (uint64_t chunk = kChunkMax; chunk >= kChunkMin; chunk /= 2) {
    if (chunk < bytes || chunk / 2 < kChunkMin) sizes.push_back(chunk);
  }
  return sizes;
}

absl::StatusOr<std::vector<Variant>> Variants(const PlanningContext& context) {
  const CollectiveRequest& request = context.request;
  std::vector<Variant> variants;
  if (request.elements == 0 && !context.asked) return variants;
  const std::vector<uint64_t> sizes =
      context.chunk_bytes > 0 ? std::vector<uint64_t>{context.chunk_bytes}
                              : ChunkSizes(request.elements * context.bytes_per_element);
  for (const ForestOptions& options : Forests(context)) {
    auto prepared = std::make_shared<Prepared>();
    SYNCOPATE_ASSIGN_OR_RETURN(
        prepared->plan, PlanForest(context.topology, context.placement, request.active, options));
    const size_t pairs = prepared->plan.pairs.size();
    for (const uint64_t chunk : sizes) {
      Variant& variant = variants.emplace_back();
      variant.name = absl::StrCat(pairs, pairs == 1 ? " pair" : " pairs", " of trees, ",
                                  FormatBytes(chunk), " chunks");
      variant.options.chunk_bytes = chunk;
      variant.options.data = prepared;
      // What is asked for is what the certificate promises, not what is easiest to run.
      if (!context.asked && pairs > 1) variant.slower = kSeveralPairsSlower;
      variant.finer = chunk != sizes.front();
    }
  }
  return variants;
}

absl::StatusOr<Program> Plan(const CollectiveRequest& request, const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const uint64_t chunk_bytes = options.chunk_bytes > 0 ? options.chunk_bytes : kChunkMax;
  const uint64_t chunk_elements = std::max<uint64_t>(1, chunk_bytes / options.bytes_per_element);
  if (const auto* prepared = dynamic_cast<const Prepared*>(options.data.get())) {
    return MakeForestProgram(request, prepared->plan, chunk_elements);
  }
  const Topology star = StarTopology(request.workers, kAnyBandwidth, kAnyLatency);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> placement, PlaceInOrder(star, request.workers));
  SYNCOPATE_ASSIGN_OR_RETURN(const ForestPlan plan,
                             PlanForest(star, placement, request.active, ForestOptions()));
  return MakeForestProgram(request, plan, chunk_elements);
}

}  // namespace

std::shared_ptr<const PlannerData> ForestSettings(const ForestOptions& options) {
  auto settings = std::make_shared<Settings>();
  settings->options = options;
  return settings;
}

const ForestPlan* ForestOf(const Candidate& candidate) {
  if (candidate.options == nullptr) return nullptr;
  const auto* prepared = dynamic_cast<const Prepared*>(candidate.options->data.get());
  return prepared == nullptr ? nullptr : &prepared->plan;
}

void RegisterForest(PlannerRegistry& registry) {
  registry.Add({.name = std::string(kForest),
                .collective = Collective::kAllReduce,
                .summary = "many trees that fill the network: links that differ, large buffers",
                .preference = 120,
                .plan = Plan,
                .variants = Variants,
                .limit = Limit,
                .cuts_by_variant = true});
}

}  // namespace syncopate::plan
