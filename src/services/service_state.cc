#include "services/service_state.h"

#include <utility>

#include "absl/status/status.h"
#include "base/limits.h"
#include "services/fields.h"

namespace syncopate::services {

std::string EncodeServiceState(const ServiceState& state) {
  std::string out;
  Append(out, state.moment.incarnation);
  Append(out, state.moment.sequence);
  AppendSized(out, state.state);
  return out;
}

absl::StatusOr<ServiceState> DecodeServiceState(absl::string_view bytes) {
  ByteReader reader(bytes);
  ServiceState state;
  state.moment.incarnation = reader.Read<uint64_t>();
  state.moment.sequence = reader.Read<uint64_t>();
  state.state = ReadSized(reader, limits::kServiceBytesMax);
  if (!reader.AtEnd()) return absl::DataLossError("the state of a service cannot be read");
  return state;
}

}  // namespace syncopate::services
