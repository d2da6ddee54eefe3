// Messages of strategies: what is read is valid, and written as it was read.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/strategy_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  constexpr int kWorkers = 9;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<StrategyMessage> message = DecodeStrategyMessage(bytes, kWorkers);
  if (!message.ok()) return 0;
  if (!Validate(*message, kWorkers).ok() || Encode(*message) != bytes) abort();
  return 0;
}
