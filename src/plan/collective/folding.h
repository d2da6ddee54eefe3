// How algorithms for powers of two serve other numbers of workers: the surplus workers hand their
// data to a neighbour before, and get the result from it after.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_FOLDING_H_
#define SYNCOPATE_PLAN_COLLECTIVE_FOLDING_H_

#include <vector>

#include "plan/collective/program_builder.h"

namespace syncopate::plan {

// Reduces `all` (of data) of the surplus workers into their neighbours' and returns the ranks that
// go on, ascending: the largest power of two of them.
std::vector<int> FoldIn(const CollectiveRequest& request, Chunks all, ProgramBuilder* builder);

// Gives the surplus workers the result.
void FoldOut(const CollectiveRequest& request, Chunks all, ProgramBuilder* builder);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_FOLDING_H_
