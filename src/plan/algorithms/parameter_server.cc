// Servers add up shares of everybody's data and hand the results out. A server may be a worker that
// has no data of its own: it then adds in scratch. All traffic meets at the servers, so this pays
// where they have faster links than the workers.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "plan/collective/pipeline.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

// Scratch has the shares of inactive servers only, piece by piece.
std::vector<uint64_t> ScratchBounds(const CollectiveRequest& request,
                                    const std::vector<int>& servers,
                                    const std::vector<uint64_t>& data_bounds) {
  std::vector<uint64_t> bounds = {0};
  for (size_t chunk = 0; chunk + 1 < data_bounds.size(); ++chunk) {
    if (IsActive(request, servers[chunk % servers.size()])) continue;
    bounds.push_back(bounds.back() + data_bounds[chunk + 1] - data_bounds[chunk]);
  }
  return bounds;
}

absl::StatusOr<Program> PlanParameterServerAllReduce(const CollectiveRequest& request,
                                                     const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const std::vector<int>& active = request.active;
  if (active.size() == 1) {
    return ProgramBuilder(request, "parameter-server", {0, request.elements}).Finish();
  }
  std::vector<int> servers = options.servers;
  if (servers.empty()) servers.push_back(active[0]);
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> bounds,
      CutEvenly(request.elements, servers.size() * static_cast<uint64_t>(options.pieces)));
  std::vector<uint64_t> scratch_bounds = ScratchBounds(request, servers, bounds);
  ProgramBuilder builder(request, "parameter-server", std::move(bounds), scratch_bounds);

  const size_t inactive = static_cast<size_t>(std::count_if(
      servers.begin(), servers.end(), [&](int server) { return !IsActive(request, server); }));
  Pipeline pipeline(static_cast<uint32_t>(servers.size()), static_cast<uint32_t>(inactive));
  uint32_t scratch = 0;
  for (size_t s = 0; s < servers.size(); ++s) {
    const int server = servers[s];
    const Chunks share = Data(static_cast<uint32_t>(s));
    const bool adds_in_data = IsActive(request, server);
    const Chunks sum = adds_in_data ? share : Scratch(scratch++);
    // Start with another worker at each server, so that not all send to the same one first.
    bool has_value = adds_in_data;
    for (size_t i = 0; i < active.size(); ++i) {
      const int worker = active[(s + i) % active.size()];
      if (worker == server) continue;
      if (has_value) {
        pipeline.MoveReduce(0, worker, share, server, sum);
      } else {
        pipeline.Move(0, worker, share, server, sum);
      }
      has_value = true;
      pipeline.Move(1, server, sum, worker, share);
    }
  }
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

// The variants are one server, all active workers as servers and, where some workers are not
// active, these or all workers as servers.
absl::StatusOr<std::vector<Variant>> Servers(const PlanningContext& context) {
  const CollectiveRequest& request = context.request;
  std::vector<Variant> variants = {{.name = "1 server"}};
  if (request.active.size() > 1) {
    variants.push_back({.name = absl::StrCat(request.active.size(), " servers")});
    variants.back().options.servers = request.active;
  }
  std::vector<int> relays;
  for (int worker = 0; worker < request.workers; ++worker) {
    if (!IsActive(request, worker)) relays.push_back(worker);
  }
  if (relays.empty()) return variants;
  variants.push_back({.name = absl::StrCat("inactive servers ", FormatRanks(relays))});
  variants.back().options.servers = relays;
  variants.push_back({.name = absl::StrCat("all ", request.workers, " workers as servers")});
  std::vector<int>& everyone = variants.back().options.servers;
  everyone.resize(static_cast<size_t>(request.workers));
  std::iota(everyone.begin(), everyone.end(), 0);
  return variants;
}

uint64_t ParameterServerSteps(uint64_t workers, const PlannerOptions& options) {
  return 4 * workers * std::max<uint64_t>(1, options.servers.size()) *
         static_cast<uint64_t>(options.pieces);
}

}  // namespace

void RegisterParameterServer(PlannerRegistry& registry) {
  registry.Add({.name = "parameter-server",
                .collective = Collective::kAllReduce,
                .summary = "servers add shares: servers with faster links",
                .preference = 80,
                .plan = PlanParameterServerAllReduce,
                .variants = Servers,
                .steps = ParameterServerSteps});
}

}  // namespace syncopate::plan
