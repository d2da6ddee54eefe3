// Patterns as files and other workers have them: whatever is accepted is valid and reads back as it
// was written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto pattern = ParsePattern(text);
  if (!pattern.ok()) return 0;
  if (!Validate(*pattern).ok()) std::abort();
  const auto again = ParsePattern(ToText(*pattern));
  if (!again.ok() || !(*again == *pattern)) std::abort();
  return 0;
}
