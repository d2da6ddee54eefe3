#include "sync/resumed_state.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "services/service_state.h"
#include "worker/job_services.h"

namespace syncopate::sync {

absl::StatusOr<std::string> ServiceStateOf(Worker& worker, absl::string_view service,
                                           absl::Duration timeout) {
  SYNCOPATE_ASSIGN_OR_RETURN(worker::LiveService* const live,
                             worker::ServicesOf(worker).Find(service));
  return live->StateAndWait(MonotonicClock().NowNs() + absl::ToInt64Nanoseconds(timeout));
}

// The moments go to everybody, the state itself, which may be long, only from where it is newest. Whoever
// has none says so in the same round, since the others would wait for it in the next one.
absl::StatusOr<std::string> NewestServiceState(adapt::JobExchange& exchange,
                                               absl::string_view own) {
  absl::StatusOr<services::ServiceState> state = services::DecodeServiceState(own);
  std::string moment;
  if (state.ok()) {
    moment =
        adapt::EncodeNumbers(std::vector<int64_t>{static_cast<int64_t>(state->moment.incarnation),
                                                  static_cast<int64_t>(state->moment.sequence)});
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> moments,
                             adapt::TextsOfAll(exchange, "service's moments", std::move(moment)));
  SYNCOPATE_RETURN_IF_ERROR(state.status());
  int root = 0;
  services::StateMoment newest;
  for (int rank = 0; rank < exchange.size(); ++rank) {
    const absl::StatusOr<std::vector<int64_t>> numbers =
        adapt::DecodeIntegers(moments[static_cast<size_t>(rank)], 2);
    if (!numbers.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint of worker ", rank, " has no state of the service"));
    }
    const services::StateMoment each = {.incarnation = static_cast<uint64_t>((*numbers)[0]),
                                        .sequence = static_cast<uint64_t>((*numbers)[1])};
    if (newest < each) {
      newest = each;
      root = rank;
    }
  }
  return adapt::TextOfRoot(exchange, "service's state",
                           root == exchange.rank() ? std::move(state->state) : "", root);
}

}  // namespace syncopate::sync
