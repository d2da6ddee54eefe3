// How algorithms for powers of two serve other numbers of workers.
#include "plan/collective/folding.h"

#include "plan/collective/shares.h"

namespace syncopate::plan {
namespace {

// The first `Surplus` odd indices are the surplus; each belongs to the even index before it.
size_t Surplus(const CollectiveRequest& request) {
  const int size = static_cast<int>(request.active.size());
  return static_cast<size_t>(size - FloorPowerOfTwo(size));
}

}  // namespace

std::vector<int> FoldIn(const CollectiveRequest& request, Chunks all, ProgramBuilder* builder) {
  const std::vector<int>& active = request.active;
  const size_t surplus = Surplus(request);
  std::vector<int> members;
  for (size_t i = 0; i < surplus; ++i) {
    builder->MoveReduce(active[2 * i + 1], active[2 * i], all);
    members.push_back(active[2 * i]);
  }
  for (size_t i = 2 * surplus; i < active.size(); ++i) members.push_back(active[i]);
  return members;
}

void FoldOut(const CollectiveRequest& request, Chunks all, ProgramBuilder* builder) {
  const std::vector<int>& active = request.active;
  for (size_t i = 0; i < Surplus(request); ++i) {
    builder->Move(active[2 * i], active[2 * i + 1], all);
  }
}

}  // namespace syncopate::plan
