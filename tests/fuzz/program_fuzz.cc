// The text of a program: what is accepted is valid, and is the same after it was written and read
// again.
#include <cstdint>
#include <cstdlib>

#include "model/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const auto program = ParseProgram(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!program.ok()) return 0;
  if (!Validate(*program).ok()) std::abort();
  const auto again = ParseProgram(ToText(*program));
  if (!again.ok() || !(*again == *program)) std::abort();
  return 0;
}
