#include "services/service.h"

#include "absl/strings/str_cat.h"
#include "base/limits.h"

namespace syncopate {

absl::StatusOr<std::string> Service::Rebuild(const ServiceContext& /*context*/,
                                             const std::vector<ServiceReport>& /*reports*/) {
  return absl::UnimplementedError(absl::StrCat("service ", name(), " cannot be rebuilt"));
}

absl::Status Service::Resume(absl::string_view /*state*/, const std::vector<int>& /*ranks*/) {
  return absl::UnimplementedError(absl::StrCat("service ", name(), " does not go on from a state"));
}

ServiceAnswer Refusal(int to, uint64_t ticket, const absl::Status& status) {
  return {.to = to,
          .ticket = ticket,
          .code = status.code(),
          .bytes = std::string(status.message().substr(0, limits::kServiceErrorBytesMax))};
}

}  // namespace syncopate
