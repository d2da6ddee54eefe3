// The two phases of ring algorithms.
#include "plan/collective/ring_phases.h"

#include <algorithm>
#include <numeric>

#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

int Modulo(int value, int size) { return ((value % size) + size) % size; }

// The active indices in the order of options.order.
std::vector<int> RingOrder(const CollectiveRequest& request, const PlannerOptions& options) {
  std::vector<int> order(request.active.size());
  if (options.order.empty()) {
    std::iota(order.begin(), order.end(), 0);
  } else {
    std::transform(options.order.begin(), options.order.end(), order.begin(),
                   [&](int rank) { return IndexOf(request, rank); });
  }
  return order;
}

}  // namespace

Ring MakeRing(const CollectiveRequest& request, const PlannerOptions& options) {
  Ring ring;
  for (int index : RingOrder(request, options)) {
    ring.ranks.push_back(request.active[static_cast<size_t>(index)]);
    ring.share_of.push_back(static_cast<uint32_t>(index));
  }
  ring.pieces = static_cast<uint32_t>(options.pieces);
  return ring;
}

void ReduceScatterAround(const Ring& ring, ProgramBuilder* builder) {
  const int size = static_cast<int>(ring.ranks.size());
  for (int round = 0; round < size - 1; ++round) {
    for (uint32_t piece = 0; piece < ring.pieces; ++piece) {
      for (int p = 0; p < size; ++p) {
        const int next = Modulo(p + 1, size);
        const uint32_t share = ring.share_of[static_cast<size_t>(Modulo(p - 1 - round, size))];
        builder->MoveReduce(ring.ranks[static_cast<size_t>(p)],
                            ring.ranks[static_cast<size_t>(next)],
                            Data(share * ring.pieces + piece));
      }
    }
  }
}

void AllGatherAround(const Ring& ring, int complete, ProgramBuilder* builder) {
  const int size = static_cast<int>(ring.ranks.size());
  for (int round = 0; round < size - 1; ++round) {
    for (uint32_t piece = 0; piece < ring.pieces; ++piece) {
      for (int p = 0; p < size; ++p) {
        const int next = Modulo(p + 1, size);
        if (next == complete) continue;
        const uint32_t share = ring.share_of[static_cast<size_t>(Modulo(p - round, size))];
        builder->Move(ring.ranks[static_cast<size_t>(p)], ring.ranks[static_cast<size_t>(next)],
                      Data(share * ring.pieces + piece));
      }
    }
  }
}

}  // namespace syncopate::plan
