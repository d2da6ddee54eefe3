// What a worker says of itself when all meet.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transport/net/endpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto endpoint = transport::net::DecodeEndpoint(bytes);
  if (endpoint.ok() && Encode(*endpoint) != bytes) std::abort();
  return 0;
}
