// All services of a job with what they have decided, as one machine: what the host and its standby
// step through the same events. Its state is bytes, which a new standby gets.
#ifndef SYNCOPATE_SERVICES_SERVICE_MACHINE_H_
#define SYNCOPATE_SERVICES_SERVICE_MACHINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "services/service.h"
#include "services/service_message.h"
#include "services/ticket_book.h"

namespace syncopate::services {

using Services = std::vector<std::unique_ptr<Service>>;

class ServiceMachine {
 public:
  // All workers of a job have the same services in the same order, at most kServicesMax.
  explicit ServiceMachine(Services services);

  struct Step {
    std::vector<Answer> answers;
    uint16_t service = 0;
    std::string reason;
  };
  // Steps event number sequence() + 1 in the incarnation of the host that numbered it.
  Step Apply(uint64_t incarnation, const EventMessage& message);

  uint64_t sequence() const { return sequence_; }
  int64_t now_ns() const { return now_ns_; }     // of the last event
  uint64_t changes() const { return changes_; }  // of the job's workers, that were stepped
  uint64_t digest() const { return digest_; }    // of all answers so far
  size_t services() const { return services_.size(); }
  const Service& service(size_t index) const { return *services_[index]; }
  // The service that wants to know the time first, and when; INT64_MAX: none.
  std::pair<uint16_t, int64_t> NextDeadline() const;

  std::string State() const;
  // On an error the machine is in no particular state.
  absl::Status Load(absl::string_view state);

  // From what the live workers know: reports of each, by service. Returns what may happen twice. The
  // first error says which service cannot go on.
  bool CanRebuild() const;
  std::string ThoseThatCannotRebuild() const;
  absl::StatusOr<std::string> Rebuild(uint64_t incarnation, uint64_t changes, int64_t now_ns,
                                      const std::vector<std::pair<int, ReportMessage>>& reports);

 private:
  // Before anything changes.
  void KeepFirstStates();
  void Take(uint16_t service, ServiceStep step, Step& into);
  // Answers a request that no service steps: for a state, or to a service that there is not.
  void AnswerItself(uint64_t incarnation, const LoggedRequest& logged, Step& into);
  // Puts an answer into the step if somebody waits for it.
  void Close(uint16_t number, absl::string_view name, Answer answer, Step& into);

  Services services_;
  std::vector<std::string> first_states_;  // of new services; empty as long as they are new
  TicketBook book_;
  uint64_t sequence_ = 0;
  int64_t now_ns_ = 0;
  uint64_t changes_ = 0;
  uint64_t digest_ = 0;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_MACHINE_H_
