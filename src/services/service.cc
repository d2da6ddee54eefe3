#include "services/service.h"

#include "absl/strings/str_cat.h"

namespace syncopate::services {

absl::StatusOr<std::string> Service::Rebuild(const ServiceContext& /*context*/,
                                             const std::vector<ServiceReport>& /*reports*/) {
  return absl::UnimplementedError(absl::StrCat("service ", name(), " cannot be rebuilt"));
}

Answer Refusal(int to, uint64_t ticket, const absl::Status& status) {
  return {.to = to,
          .ticket = ticket,
          .code = status.code(),
          .bytes = std::string(status.message().substr(0, limits::kServiceErrorBytesMax))};
}

}  // namespace syncopate::services
