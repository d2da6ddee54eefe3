// The file of a checkpoint, whose digest is made right here, or nothing would come past it; and the
// note on a set of them. What is accepted keeps to what is there: the bytes of every tensor lie in
// the file, as many as its extents say.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "train/options/checkpoint_form.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  std::string file(reinterpret_cast<const char*>(data), size);
  (void)train::DecodeCheckpoint(file).ok();
  const Digest digest = DigestOf(file);
  Append(file, digest.high);
  Append(file, digest.low);
  const auto checkpoint = train::DecodeCheckpoint(file);
  if (!checkpoint.ok()) return 0;
  for (const train::TensorForm& tensor : checkpoint->tensors) {
    uint64_t bytes = train::kTensorTypeBytes[tensor.type];
    for (const int64_t extent : tensor.extents) {
      if (extent < 0 || static_cast<uint64_t>(extent) > train::kCheckpointBytesMax) std::abort();
      bytes *= static_cast<uint64_t>(extent);
    }
    if (bytes != tensor.bytes.size()) std::abort();
    if (bytes > 0 && (tensor.bytes.data() < file.data() ||
                      tensor.bytes.data() + bytes > file.data() + file.size())) {
      std::abort();
    }
  }
  return 0;
}
