// Finds when transfers really begin: once the last of their participants has started them. Pure.
#ifndef SYNCOPATE_OBSERVE_REAL_BEGINS_H_
#define SYNCOPATE_OBSERVE_REAL_BEGINS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "model/trace.h"

namespace syncopate::observe {

struct RealBegin {
  int64_t at_ns = 0;  // of rank 0's clock
  int rank = 0;       // the one that started it last
};
using RealBegins = absl::flat_hash_map<std::pair<int, int>, RealBegin>;  // by iteration and id

inline RealBegins FindRealBegins(const std::vector<WorkerTrace>& traces) {
  RealBegins begins;
  for (const WorkerTrace& trace : traces) {
    for (const Span& span : trace.spans) {
      if (span.kind != SpanKind::kTransfer) continue;
      const RealBegin mine{span.begin_ns + trace.clock_offset_ns, trace.rank};
      const auto [found, added] = begins.try_emplace({span.iteration, span.id}, mine);
      if (!added && mine.at_ns > found->second.at_ns) found->second = mine;
    }
  }
  return begins;
}

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_REAL_BEGINS_H_
