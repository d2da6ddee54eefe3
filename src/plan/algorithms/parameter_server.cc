// Servers add up shares of everybody's data and hand the results out. A server may be a worker that
// has no data of its own: it then adds in scratch. All traffic meets at the servers, so this pays
// where they have faster links than the workers.
#include <algorithm>

#include "base/status.h"
#include "plan/collective/pipeline.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

bool IsActive(const CollectiveRequest& request, int rank) {
  return std::binary_search(request.active.begin(), request.active.end(), rank);
}

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

}  // namespace

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

}  // namespace syncopate::plan
