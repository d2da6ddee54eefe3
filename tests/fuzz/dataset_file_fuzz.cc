// A file of data: what is accepted is valid, and is the same after it was written and read again.
#include <cstdint>
#include <cstdlib>

#include "memory_file.h"
#include "train/data/dataset_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto info = train::DecodeInfo(bytes);
  if (info.ok()) {
    const auto again = train::DecodeInfo(train::EncodeInfo(*info));
    if (!again.ok() || train::EncodeInfo(*again) != train::EncodeInfo(*info)) std::abort();
  }
  const MemoryFile file(bytes);
  const auto dataset = train::ReadDatasetFile(file.path());
  if (dataset.ok() && !dataset->Validate().ok()) std::abort();
  return 0;
}
