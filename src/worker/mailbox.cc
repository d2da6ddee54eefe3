#include "worker/mailbox.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

using transport::MailKind;

static_assert(1 + limits::kMailTopicBytesMax <= limits::kMailLabelBytesMax);
static_assert(limits::kMailTopicBytesMax <= 255);

absl::Status CheckTopic(absl::string_view topic) {
  if (!topic.empty() && topic.size() <= limits::kMailTopicBytesMax) return absl::OkStatus();
  return WithBlast(
      absl::InvalidArgumentError(absl::StrCat(
          "a topic of ", topic.size(), " bytes; it may have 1 to ", limits::kMailTopicBytesMax)),
      BlastRadius::kOperation);
}

// The topic's length, the topic, the bytes.
std::string Label(absl::string_view topic, absl::string_view bytes) {
  std::string labelled;
  labelled.reserve(1 + topic.size() + bytes.size());
  labelled.push_back(static_cast<char>(topic.size()));
  absl::StrAppend(&labelled, topic, bytes);
  return labelled;
}

// What it counts while it is kept.
uint64_t CostOf(const Mail& mail) {
  return std::max<uint64_t>(mail.bytes.size(), limits::kMailCostMin);
}

}  // namespace

absl::Status Mailbox::Send(int to, MailKind kind, absl::string_view topic,
                           absl::string_view bytes) {
  SYNCOPATE_RETURN_IF_ERROR(CheckTopic(topic));
  const bool message = kind == MailKind::kMessage;
  const uint64_t most = message ? limits::kMailBytesMax : limits::kParcelBytesMax;
  if (bytes.size() > most) {
    return WithBlast(
        absl::InvalidArgumentError(absl::StrCat(
            message ? "a message" : "a parcel", " of ", bytes.size(), " bytes to worker ", to,
            "; it may have ", most, message ? ", and a parcel more" : "")),
        BlastRadius::kOperation);
  }
  Begin();
  return transport_.Post(to, kind, Label(topic, bytes));
}

absl::Status Mailbox::Receive(absl::string_view topic, MailHandler handler) {
  SYNCOPATE_RETURN_IF_ERROR(CheckTopic(topic));
  {
    MutexLock lock(&mutex_);
    auto found = topics_.find(topic);
    if (found == topics_.end()) {
      if (topics_.size() >= kMailTopicsMax) {
        return WithBlast(absl::ResourceExhaustedError(
                             absl::StrCat("there are ", kMailTopicsMax, " topics already")),
                         BlastRadius::kOperation);
      }
      found = topics_.emplace(topic, Topic{}).first;
    }
    Topic& mine = found->second;
    mine.handler = handler ? std::make_shared<const MailHandler>(std::move(handler)) : nullptr;
    mine.told = 0;
    // What the caller has just replaced must not run when this returns.
    while (running_ == &mine && runner_ != std::this_thread::get_id()) handed_.Wait(&mutex_);
  }
  Begin();
  transport_.WakeControl();  // something may have been kept for it
  return absl::OkStatus();
}

// Only workers that use mail have their control thread listen for it.
void Mailbox::Begin() {
  if (begun_) return;  // without the mutex: handlers come here
  MutexLock lock(&begin_mutex_);
  if (begun_ || stopped_) return;
  // Before the work is set: its handlers come here too, and must not wait for this mutex, which Stop()
  // holds while it waits for them.
  begun_ = true;
  transport_.SetControlWork([this] { Work(); });
  transport_.WakeControl();  // for what others wanted done in between
}

void Mailbox::Stop() {
  MutexLock lock(&begin_mutex_);
  if (begun_ && !stopped_) transport_.SetControlWork(nullptr);
  stopped_ = true;
}

void Mailbox::Work() {
  std::vector<transport::Mail> taken;
  transport_.TakeMail(taken);
  MutexLock lock(&mutex_);
  for (transport::Mail& mail : taken) {
    if (mail.kind == MailKind::kMessage || mail.kind == MailKind::kParcel) {
      Take(std::move(mail));
      continue;
    }
    // All that came before it is handed out first.
    HandOut();
    gone_.push_back({.from = mail.from,
                     .kind = mail.kind == MailKind::kLost ? Mail::Kind::kLost : Mail::Kind::kLeft,
                     .bytes = std::move(mail.bytes),
                     .order = mail.order});
  }
  HandOut();
  RunTasks();
}

void Mailbox::Do(std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  Begin();
  transport_.WakeControl();
}

void Mailbox::DoAt(int64_t when_ns, std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    timed_.emplace(when_ns, std::move(task));
  }
  Begin();
  transport_.WakeControl();  // to be told of the time
}

// Tasks that come meanwhile wake the thread again: they do not keep it from its other duties.
void Mailbox::RunTasks() {
  if (tasks_.empty() && timed_.empty()) return;
  const auto due = timed_.upper_bound(clock_.NowNs());
  for (auto task = timed_.begin(); task != due; ++task) tasks_.push_back(std::move(task->second));
  timed_.erase(timed_.begin(), due);
  std::deque<std::function<void()>> tasks = std::exchange(tasks_, {});
  mutex_.Unlock();
  for (const std::function<void()>& task : tasks) task();
  tasks.clear();
  mutex_.Lock();
  if (!timed_.empty()) transport_.WakeControlAt(timed_.begin()->first);
}

void Mailbox::Take(transport::Mail mail) {
  const auto drop = [&](const auto&... why) {
    if (std::exchange(warned_, true)) return;
    Log(LogLevel::kWarn, "mail from worker ", mail.from, " is dropped: ", why...);
  };
  const size_t length = mail.bytes.empty() ? 0 : static_cast<unsigned char>(mail.bytes[0]);
  if (length == 0 || length > limits::kMailTopicBytesMax || 1 + length > mail.bytes.size()) {
    return drop("it has no topic");
  }
  const absl::string_view name = absl::string_view(mail.bytes).substr(1, length);
  auto found = topics_.find(name);
  if (found == topics_.end() && topics_.size() < kMailTopicsMax) {
    found = topics_.emplace(name, Topic{}).first;
  }
  const bool message = mail.kind == MailKind::kMessage;
  Mail kept = {.from = mail.from,
               .kind = message ? Mail::Kind::kMessage : Mail::Kind::kParcel,
               .bytes = mail.bytes.substr(1 + length)};
  // The usual one goes to its handler at once. What came before it goes first, and words of workers that are
  // gone, which others may have still to hear.
  if (found != topics_.end() && found->second.handler != nullptr && found->second.kept.empty() &&
      found->second.told == gone_.size()) {
    return Hand(found->second, std::move(kept));
  }
  if (found == topics_.end() ||
      (found->second.handler == nullptr && kept_bytes_ + CostOf(kept) > kMailKeptBytesMax)) {
    return drop("too much waits for topics that nobody receives, such as \"", name, "\"");
  }
  kept_bytes_ += CostOf(kept);
  found->second.kept.push_back(std::move(kept));
}

// A handler that is new hears of all that are gone after what they have sent.
void Mailbox::HandOut() {
  for (auto& [name, topic] : topics_) {
    while (topic.handler != nullptr && !topic.kept.empty()) {
      Mail mail = std::move(topic.kept.front());
      topic.kept.pop_front();
      kept_bytes_ -= CostOf(mail);
      Hand(topic, std::move(mail));
    }
    while (topic.handler != nullptr && topic.told < gone_.size()) {
      Mail last = gone_[topic.told++];
      Hand(topic, std::move(last));
    }
  }
}

void Mailbox::Hand(Topic& topic, Mail mail) {
  const std::shared_ptr<const MailHandler> handler = topic.handler;
  running_ = &topic;
  runner_ = std::this_thread::get_id();
  mutex_.Unlock();
  (*handler)(std::move(mail));
  mutex_.Lock();
  running_ = nullptr;
  handed_.SignalAll();
}

}  // namespace syncopate::worker
