#include "sync/live_messenger.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "model/strategy_message.h"
#include "worker/job_services.h"
#include "worker/mailbox.h"

namespace syncopate::sync {
namespace {

// What the strategy gets for its ticket. An answer that cannot be read is as good as none.
StrategyMessage MessageOf(const absl::StatusOr<std::string>& answer, int workers) {
  absl::Status fault = answer.status();
  if (answer.ok()) {
    absl::StatusOr<StrategyMessage> message = DecodeStrategyMessage(*answer, workers);
    if (message.ok()) return *std::move(message);
    fault = message.status();
  }
  return Refused{std::string(fault.message().substr(0, limits::kMessageTextBytesMax))};
}

}  // namespace

// Where events go, as long as somebody takes them. A strategy may ask before anybody does, of a worker
// that is lost already: the answer waits.
class LiveMessenger::Recipient {
 public:
  void Begin(std::function<void(strategy::Event)> deliver) {
    MutexLock lock(&mutex_);
    deliver_ = std::move(deliver);
    for (strategy::Event& event : std::exchange(kept_, {})) deliver_(std::move(event));
  }
  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    deliver_ = nullptr;
  }
  void Deliver(strategy::Event event) {
    MutexLock lock(&mutex_);
    if (deliver_) {
      deliver_(std::move(event));
    } else if (!stopped_) {
      kept_.push_back(std::move(event));
    }
  }

 private:
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<strategy::Event> kept_ ABSL_GUARDED_BY(mutex_);
  std::function<void(strategy::Event)> deliver_ ABSL_GUARDED_BY(mutex_);
};

LiveMessenger::LiveMessenger(Worker& worker)
    : worker_(worker),
      topic_(absl::StrCat(worker::Mailbox::kOwnTopics, "strategy/",
                          worker::ServicesOf(worker).NextMessenger())),
      recipient_(std::make_shared<Recipient>()) {}

void LiveMessenger::Stop() {
  recipient_->Stop();
  worker::MailboxOf(worker_).Receive(topic_, nullptr).IgnoreError();
}

absl::Status LiveMessenger::Begin(std::function<void(strategy::Event)> deliver) {
  recipient_->Begin(std::move(deliver));
  return worker::MailboxOf(worker_).Receive(topic_, [recipient = recipient_,
                                                     workers = worker_.size()](const Mail& mail) {
    if (mail.kind != Mail::Kind::kMessage) return;  // the synchronizer tells who is gone
    absl::StatusOr<StrategyMessage> message = DecodeStrategyMessage(mail.bytes, workers);
    if (!message.ok()) {
      Log(LogLevel::kWarn, "a message of rank ", mail.from,
          " is dropped: ", message.status().message());
      return;
    }
    recipient->Deliver(strategy::MessageArrived{.from = mail.from, .message = *std::move(message)});
  });
}

absl::Status LiveMessenger::Ask(const strategy::AskService& ask) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(ask.message, worker_.size()));
  return worker_.StartAsking(
      ask.service, Encode(ask.message),
      [recipient = recipient_, workers = worker_.size(), service = ask.service,
       ticket = ask.ticket](const absl::StatusOr<std::string>& answer) {
        recipient->Deliver(strategy::Answered{
            .service = service, .ticket = ticket, .message = MessageOf(answer, workers)});
      });
}

absl::Status LiveMessenger::Send(const strategy::SendMessage& send) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(send.message, worker_.size()));
  const absl::Status sent = worker::MailboxOf(worker_).Send(send.to, topic_, Encode(send.message));
  // One that is gone gets nothing.
  return absl::IsUnavailable(sent) ? absl::OkStatus() : sent;
}

}  // namespace syncopate::sync
