// Messages about who is lost: decoding, and what a worker makes of one.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transport/net/loss_consensus.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  constexpr int kSize = 5;
  const auto message = transport::net::DecodeLossMessage(
      absl::string_view(reinterpret_cast<const char*>(data), size), kSize);
  if (!message.ok()) return 0;
  transport::net::LossConsensusOptions options;
  options.rank = 1;
  options.size = kSize;
  transport::net::LossConsensus worker(options, 0);
  for (int64_t now_ns = 0; now_ns < 6'000'000'000; now_ns += 1'000'000'000) {
    worker.Received(2, *message, now_ns);
    worker.Received(4, *message, now_ns);
    worker.Tick(now_ns);
    worker.TakeMessages();
  }
  return 0;
}
