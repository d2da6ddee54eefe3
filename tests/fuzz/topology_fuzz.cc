// The JSON of a topology: what is accepted is valid, and is the same after it was written and read
// again.
#include <cstdint>
#include <cstdlib>

#include "model/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const auto topology = ParseTopology(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!topology.ok()) return 0;
  if (!Validate(*topology).ok()) std::abort();
  const auto again = ParseTopology(ToJson(*topology));
  if (!again.ok() || !(*again == *topology)) std::abort();
  return 0;
}
