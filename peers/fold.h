// The memory limit's arithmetic: one plain vectorised loop.
#ifndef SYNCOPATE_PEERS_FOLD_H_
#define SYNCOPATE_PEERS_FOLD_H_

#include <cstddef>
#include <cstdint>

#include "syncopate/data_type.h"

namespace syncopate::peers {

// to[d][i] = from[0][i] (op) from[1][i] (op) ... for all d and i < elements. Each destination is
// one of the sources or disjoint from them.
using FoldLoop = void (*)(std::byte* const* from, size_t sources, std::byte* const* to,
                          size_t destinations, uint64_t elements);

// The quickest loop that this processor can run, or null if there is none for that type and
// reduction.
FoldLoop FindFold(DataType type, ReduceOp op);

}  // namespace syncopate::peers

#endif  // SYNCOPATE_PEERS_FOLD_H_
