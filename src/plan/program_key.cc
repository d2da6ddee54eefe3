#include "plan/program_key.h"

#include "absl/hash/hash.h"

namespace syncopate::plan {

size_t ProgramKeyHash::operator()(const ProgramKey& key) const {
  return absl::HashOf(key.request.collective, key.request.workers, key.request.active,
                      key.request.root, key.request.target, key.request.elements,
                      key.request.block_elements, key.element_bytes, key.algorithm, key.self,
                      key.ranks, key.chunk_bytes, key.network_version);
}

}  // namespace syncopate::plan
