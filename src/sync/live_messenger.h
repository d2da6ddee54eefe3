// Carries what a strategy says beside transfers in a running job: requests to the job's services, and
// messages to the strategies of other workers, by the mailbox.
#ifndef SYNCOPATE_SYNC_LIVE_MESSENGER_H_
#define SYNCOPATE_SYNC_LIVE_MESSENGER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/command.h"
#include "strategy/event.h"
#include "sync/synchronizer.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

class LiveMessenger : public Messenger {
 public:
  // The worker must outlive it. All workers of a job make their messengers in the same order: messages
  // come to the one of the same number.
  explicit LiveMessenger(Worker& worker);
  ~LiveMessenger() override { Stop(); }
  LiveMessenger(const LiveMessenger&) = delete;

  // Where answers and messages go from now on, on the control thread; must be quick. What came before
  // has waited.
  absl::Status Begin(std::function<void(strategy::Event)> deliver);

  // Asks a service that this worker has added (Worker::AddService). An answer that is an error comes as
  // Refused.
  absl::Status Ask(const strategy::AskService& ask) override;
  absl::Status Send(const strategy::SendMessage& send) override;
  void Stop() override;

 private:
  class Recipient;

  Worker& worker_;
  const std::string topic_;
  const std::shared_ptr<Recipient> recipient_;  // answers may come after the messenger's end
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_LIVE_MESSENGER_H_
