// Messages about gates: decoding, and what a member makes of one.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transport/net/gate_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  using namespace syncopate;
  const auto message = transport::net::DecodeGateMessage(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!message.ok()) return 0;
  for (const int self : {0, 1, 2}) {
    transport::net::GateProtocol member({0, 1, 2}, self);
    for (uint64_t sequence = 0; sequence < 3; ++sequence) {
      member.Open(sequence, transport::net::GateProtocol::Mode::kShared, {}, false);
    }
    member.Receive((self + 1) % 3, *message);
    member.Enter(0, transport::Gate::kFinish, true);
    member.Lose((self + 2) % 3);
    member.Receive((self + 1) % 3, *message);
    member.TakeMessages();
    member.TakeProvisions();
  }
  return 0;
}
