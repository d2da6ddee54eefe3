// The TOML of a lab: what is accepted is valid, and is the same after it was written and read again.
#include <cstdint>
#include <cstdlib>

#include "lab/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const auto spec =
      lab::ParseLab(absl::string_view(reinterpret_cast<const char*>(data), size), "the file");
  if (!spec.ok()) return 0;
  if (!lab::Validate(*spec).ok()) std::abort();
  const auto again = lab::ParseLab(lab::ToToml(*spec), "the file");
  if (!again.ok() || !(*again == *spec)) std::abort();
  return 0;
}
