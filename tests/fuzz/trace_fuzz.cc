// The compact form of a worker's trace, and timelines in files: whatever is accepted is valid, and
// what the compact form gives encodes and decodes to the same.
#include <cstdint>
#include <cstdlib>

#include "model/trace.h"
#include "observe/chrome_trace.h"
#include "observe/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto trace = DecodeTrace(bytes);
  if (trace.ok()) {
    const auto again = DecodeTrace(Encode(*trace));
    if (!again.ok() || *again != *trace) std::abort();
  }
  for (const WorkerTrace& each : observe::ReadChromeTrace(bytes).traces) {
    if (!Validate(each).ok()) std::abort();
  }
  observe::ReadMetrics(bytes);
  return 0;
}
