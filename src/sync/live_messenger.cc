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

// Where events go, as long as somebody takes them. A strategy may ask before anybody does, of a worker
// that is lost already: the answer waits.
class LiveMessenger::Recipient {
 public:
  void Begin(std::function<void(strategy::Event)> deliver, std::function<void(absl::Status)> fail) {
    MutexLock lock(&mutex_);
    deliver_ = std::move(deliver);
    fail_ = std::move(fail);
    for (strategy::Event& event : std::exchange(kept_, {})) deliver_(std::move(event));
    if (!failure_.ok()) fail_(failure_);
  }
  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    deliver_ = nullptr;
    fail_ = nullptr;
  }
  void Fail(const absl::Status& failure) {
    MutexLock lock(&mutex_);
    if (fail_) {
      fail_(failure);
    } else if (failure_.ok()) {
      failure_ = failure;
    }
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
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // that came before anybody took it
  std::function<void(strategy::Event)> deliver_ ABSL_GUARDED_BY(mutex_);
  std::function<void(absl::Status)> fail_ ABSL_GUARDED_BY(mutex_);
};

LiveMessenger::LiveMessenger(Worker& worker)
    : worker_(worker),
      number_(worker::ServicesOf(worker).NextMessenger()),
      topic_(absl::StrCat(worker::Mailbox::kOwnTopics, "strategy/", number_)),
      recipient_(std::make_shared<Recipient>()) {}

absl::Status LiveMessenger::AddService(std::unique_ptr<Service> service) {
  const std::string name(service->name());
  SYNCOPATE_RETURN_IF_ERROR(worker::AddServiceFor(worker_, number_, std::move(service)));
  own_services_.insert(name);
  return absl::OkStatus();
}

void LiveMessenger::Stop() {
  recipient_->Stop();
  worker::MailboxOf(worker_).Receive(topic_, nullptr).IgnoreError();
}

absl::Status LiveMessenger::Begin(std::function<void(strategy::Event)> deliver,
                                  std::function<void(absl::Status)> fail) {
  recipient_->Begin(std::move(deliver), std::move(fail));
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

std::string LiveMessenger::NameOf(const std::string& service) const {
  return own_services_.contains(service) ? worker::JobServices::NameFor(service, number_) : service;
}

absl::Status LiveMessenger::Ask(const strategy::AskService& ask) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(ask.message, worker_.size()));
  // The strategy could not tell the answers apart.
  if (last_ticket_ && ask.ticket <= *last_ticket_) {
    return absl::InvalidArgumentError(
        absl::StrCat("it asks the service ", ask.service, " with ticket ", ask.ticket,
                     " after ticket ", *last_ticket_, "; tickets of a worker only grow"));
  }
  SYNCOPATE_RETURN_IF_ERROR(worker_.StartAsking(
      NameOf(ask.service), Encode(ask.message),
      [recipient = recipient_, workers = worker_.size(), service = ask.service,
       ticket = ask.ticket](const absl::StatusOr<std::string>& answer) {
        // A service that is lost is no answer that a strategy could do something with.
        if (GetBlast(answer.status()) == BlastRadius::kJob) {
          return recipient->Fail(answer.status());
        }
        recipient->Deliver(strategy::Answered{
            .service = service, .ticket = ticket, .message = MessageOfAnswer(answer, workers)});
      }));
  last_ticket_ = ask.ticket;
  return absl::OkStatus();
}

absl::Status LiveMessenger::Send(const strategy::SendMessage& send) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(send.message, worker_.size()));
  const absl::Status sent = worker::MailboxOf(worker_).Send(send.to, topic_, Encode(send.message));
  // One that is gone gets nothing.
  return absl::IsUnavailable(sent) ? absl::OkStatus() : sent;
}

}  // namespace syncopate::sync
