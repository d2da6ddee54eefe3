// Every pair of workers that must exchange data does so in one message: the fewest rounds, and
// where workers share memory each reads its peers' buffers in place. On a network the many messages
// at once can collide.
//
// The engine recognises the programs of all-reduce, reduce-scatter, all-gather, broadcast and
// reduce by the order of their steps and runs them faster, so that order is a promise
// (direct_test.cc spells it out); messages are sent even where a chunk is empty.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

// Chunk i belongs to the i-th active worker. Everybody sends everybody their chunk; then each adds
// up its own chunk in the order of the ranks.
void ExchangeShares(const CollectiveRequest& request, size_t k, ProgramBuilder* builder) {
  const std::vector<int>& active = request.active;
  for (size_t j = 0; j < active.size(); ++j) {
    if (j != k) builder->Send(active[k], active[j], Data(static_cast<uint32_t>(j)));
  }
  for (size_t j = 0; j < active.size(); ++j) {
    if (j != k) builder->ReceiveReduce(active[k], active[j], Data(static_cast<uint32_t>(k)));
  }
}

// Everybody sends their own chunk to everybody.
void CollectShares(const CollectiveRequest& request, size_t k, ProgramBuilder* builder) {
  const std::vector<int>& active = request.active;
  for (size_t j = 0; j < active.size(); ++j) {
    if (j != k) builder->Send(active[k], active[j], Data(static_cast<uint32_t>(k)));
  }
  for (size_t j = 0; j < active.size(); ++j) {
    if (j != k) builder->Receive(active[k], active[j], Data(static_cast<uint32_t>(j)));
  }
}

absl::StatusOr<Program> PlanDirectAllReduce(const CollectiveRequest& request,
                                            const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, request.active.size()));
  ProgramBuilder builder(request, "direct", std::move(bounds));
  for (size_t k = 0; k < request.active.size(); ++k) {
    ExchangeShares(request, k, &builder);
    CollectShares(request, k, &builder);
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectReduceScatter(const CollectiveRequest& request,
                                                const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kReduceScatter, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  ProgramBuilder builder(request, "direct", std::move(bounds));
  for (size_t k = 0; k < request.active.size(); ++k) ExchangeShares(request, k, &builder);
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectAllGather(const CollectiveRequest& request,
                                            const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllGather, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  ProgramBuilder builder(request, "direct", std::move(bounds));
  for (size_t k = 0; k < request.active.size(); ++k) CollectShares(request, k, &builder);
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectBroadcast(const CollectiveRequest& request,
                                            const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kBroadcast, request, options));
  ProgramBuilder builder(request, "direct", {0, request.elements});
  for (int rank : request.active) {
    if (rank == request.root) continue;
    builder.Send(request.root, rank, Data(0));
    builder.Receive(rank, request.root, Data(0));
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectReduce(const CollectiveRequest& request,
                                         const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kReduce, request, options));
  ProgramBuilder builder(request, "direct", {0, request.elements});
  for (int rank : request.active) {
    if (rank == request.root) continue;
    builder.Send(rank, request.root, Data(0));
    builder.ReceiveReduce(request.root, rank, Data(0));
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectGather(const CollectiveRequest& request,
                                         const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kGather, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  ProgramBuilder builder(request, "direct", std::move(bounds));
  for (size_t i = 0; i < request.active.size(); ++i) {
    if (request.active[i] == request.root) continue;
    builder.Move(request.active[i], request.root, Data(static_cast<uint32_t>(i)));
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectScatter(const CollectiveRequest& request,
                                          const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kScatter, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  ProgramBuilder builder(request, "direct", std::move(bounds));
  for (size_t i = 0; i < request.active.size(); ++i) {
    if (request.active[i] == request.root) continue;
    builder.Move(request.root, request.active[i], Data(static_cast<uint32_t>(i)));
  }
  return builder.Finish();
}

// Pieces in which the blocks on one side of a worker's own are copied: several, so that the first messages leave
// while the rest is copied, and few, since each is a step.
constexpr uint32_t kCopiesOfASide = 2;

// Copies the blocks from `first` up to `end`.
void CopyBlocks(int worker, uint32_t first, uint32_t end, ProgramBuilder* builder) {
  const uint32_t pieces = std::min(kCopiesOfASide, end - first);
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    const uint32_t begin = first + (end - first) * piece / pieces;
    const uint32_t count = first + (end - first) * (piece + 1) / pieces - begin;
    builder->Copy(worker, Data(begin, count), Scratch(begin, count));
  }
}

absl::StatusOr<Program> PlanDirectAllToAll(const CollectiveRequest& request,
                                           const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllToAll, request, options));
  const std::vector<int>& active = request.active;
  const uint32_t size = static_cast<uint32_t>(active.size());
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, 1));
  if (size == 1 || request.elements == 0) {
    return ProgramBuilder(request, "direct", std::move(bounds)).Finish();
  }
  // A block is overwritten by the peer whom it is for, so it is sent from a copy.
  ProgramBuilder builder(request, "direct", bounds, bounds);
  builder.Reserve(2 * (size - 1) + 2 * kCopiesOfASide);
  for (uint32_t i = 0; i < size; ++i) {
    CopyBlocks(active[i], i + 1, size, &builder);  // those that leave first
    CopyBlocks(active[i], 0, i, &builder);
  }
  // In each round everybody sends to one peer and receives from one, so that nobody is rushed.
  for (uint32_t distance = 1; distance < size; ++distance) {
    for (uint32_t i = 0; i < size; ++i) {
      const uint32_t j = (i + distance) % size;
      builder.Move(active[i], Scratch(j), active[j], Data(i));
    }
  }
  return builder.Finish();
}

absl::StatusOr<Program> PlanDirectSendReceive(const CollectiveRequest& request,
                                              const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kSendReceive, request, options));
  ProgramBuilder builder(request, "direct", {0, request.elements});
  if (request.root != request.target) builder.Move(request.root, request.target, Data(0));
  return builder.Finish();
}

uint64_t StepsWithRoot(uint64_t workers, const PlannerOptions&) { return 2 * workers; }

uint64_t StepsOfAllToAll(uint64_t workers, const PlannerOptions&) {
  return 2 * workers * (workers - 1) + 2 * kCopiesOfASide * workers;
}

// One gate; everybody adds up its share of all data (nS read in all) and writes it to all (nS
// written in all); one gate.
InPlaceCost DirectCost(int workers) {
  const double n = workers;
  return {.rounds = 2, .traffic = 2 * n, .touched = n};
}

}  // namespace

void RegisterDirect(PlannerRegistry& registry) {
  const auto make = [](Collective collective, int preference, std::string summary, Planner plan) {
    PlannerInfo info;
    info.name = "direct";
    info.collective = collective;
    info.summary = std::move(summary);
    info.preference = preference;
    info.plan = std::move(plan);
    info.for_hosts = true;
    if (HasRoot(collective)) {
      info.steps = StepsWithRoot;
    } else if (collective == Collective::kAllToAll) {
      info.steps = StepsOfAllToAll;
    } else {
      const uint64_t phases = collective == Collective::kAllReduce ? 2 : 1;
      info.steps = [phases](uint64_t workers, const PlannerOptions&) {
        return StepsOfAllPairs(workers, phases);
      };
    }
    return info;
  };
  PlannerInfo all_reduce = make(
      Collective::kAllReduce, 20,
      "every worker reduces its share straight from all peers: two rounds", PlanDirectAllReduce);
  all_reduce.in_place = DirectCost;
  registry.Add(std::move(all_reduce));
  registry.Add(
      make(Collective::kReduce, 30, "everybody straight to the root: one round", PlanDirectReduce));
  registry.Add(make(Collective::kBroadcast, 40, "the root straight to everybody: one round",
                    PlanDirectBroadcast));
  registry.Add(make(Collective::kAllGather, 20, "everybody straight to everybody: one round",
                    PlanDirectAllGather));
  registry.Add(make(Collective::kReduceScatter, 20, "everybody straight to everybody: one round",
                    PlanDirectReduceScatter));
  registry.Add(
      make(Collective::kGather, 10, "everybody straight to the root: one round", PlanDirectGather));
  registry.Add(make(Collective::kScatter, 10, "the root straight to everybody: one round",
                    PlanDirectScatter));
  registry.Add(make(Collective::kAllToAll, 10, "everybody straight to everybody, out of a copy",
                    PlanDirectAllToAll));
  registry.Add(make(Collective::kSendReceive, 10, "one message", PlanDirectSendReceive));
}

}  // namespace syncopate::plan
