// Carries what a strategy says beside transfers in a running job: requests to the job's services, and
// messages to the strategies of other workers, by the mailbox.
#ifndef SYNCOPATE_SYNC_LIVE_MESSENGER_H_
#define SYNCOPATE_SYNC_LIVE_MESSENGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/command.h"
#include "strategy/event.h"
#include "sync/synchronizer.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

class LiveMessenger : public Messenger {
 public:
  // The worker must outlive it. All workers of a job make their messengers in the same order: messages
  // come to the one of the same number.
  explicit LiveMessenger(Worker& worker);
  ~LiveMessenger() override { Stop(); }
  LiveMessenger(const LiveMessenger&) = delete;

  // Adds a service that this messenger's strategy alone asks: the messengers of the same number of all workers
  // share it. One that was added by Worker::AddService is for all.
  absl::Status AddService(std::unique_ptr<Service> service);
  // What the worker calls a service that the strategy asks.
  std::string NameOf(const std::string& service) const;

  // Where answers and messages go from now on, and errors with which the job is lost (BlastRadius::kJob), such
  // as that of a service that has ended; on the control thread, and both must be quick. What came before has
  // waited.
  absl::Status Begin(std::function<void(strategy::Event)> deliver,
                     std::function<void(absl::Status)> fail);

  // Asks a service that was added here, else one of the worker's (Worker::AddService). Any other answer that
  // is an error comes as Refused. Tickets only grow, whichever service is asked: InvalidArgument for one that does not.
  absl::Status Ask(const strategy::AskService& ask) override;
  absl::Status Send(const strategy::SendMessage& send) override;
  void Stop() override;

 private:
  class Recipient;

  Worker& worker_;
  const int number_;  // among the messengers of the worker
  const std::string topic_;
  std::set<std::string> own_services_;
  std::optional<int64_t> last_ticket_;          // that was asked with
  const std::shared_ptr<Recipient> recipient_;  // answers may come after the messenger's end
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_LIVE_MESSENGER_H_
