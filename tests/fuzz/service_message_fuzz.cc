// Mail of the services' topics from other workers: what is read is written as it was read, and neither a
// host nor its standby is led astray by a sequence of such messages; what they send can be read.
//
//   input = (byte: 1 to the standby, else to the host; from rank (byte / 2) % 3) length:u16 bytes ...
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/agreement.h"
#include "services/counter.h"
#include "services/sample_ranges.h"
#include "services/service_host.h"

namespace {

using namespace syncopate::services;

std::unique_ptr<ServiceHost> MakeHost(int rank) {
  Services services;
  services.push_back(std::make_unique<Agreement>(std::vector<int>{0, 1, 2}));
  services.push_back(std::make_unique<SampleRanges>(SampleRangesOptions{.samples = 100}));
  services.push_back(std::make_unique<Counter>(/*rebuilds=*/true));
  return *ServiceHost::Make({.rank = rank, .size = 3, .candidates = {0, 1, 2}, .history = {}},
                            std::move(services), 0);
}

void CheckSent(ServiceHost& host) {
  for (const ServiceCommand& command : host.TakeCommands()) {
    const auto* sent = std::get_if<Send>(&command);
    if (sent != nullptr && !DecodeMessage(sent->bytes).ok()) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<ServiceHost> hosts[] = {MakeHost(0), MakeHost(1)};
  for (int64_t now_ns = 1; size >= 3; ++now_ns) {
    const int to = data[0] % 2, from = data[0] / 2 % 3;
    const size_t length = std::min<size_t>(data[1] | data[2] << 8, size - 3);
    const absl::string_view bytes(reinterpret_cast<const char*>(data) + 3, length);
    data += 3 + length;
    size -= 3 + length;
    const absl::StatusOr<ServiceMessage> message = DecodeMessage(bytes);
    if (message.ok() && EncodeMessage(*message) != bytes) abort();
    if (from == to) continue;
    hosts[to]->Arrived(from, bytes, now_ns);
    CheckSent(*hosts[to]);
  }
  return 0;
}
