// A worker's mail by topic: what is sent gets its topic before it, and what comes is handed to the
// handlers of its topic, on the worker's control thread. That thread also runs tasks of the library's
// own between them.
#ifndef SYNCOPATE_WORKER_MAILBOX_H_
#define SYNCOPATE_WORKER_MAILBOX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "syncopate/syncopate.h"
#include "transport/transport.h"

namespace syncopate::worker {

inline constexpr uint64_t kMailTopicsMax = 1024;
inline constexpr uint64_t kMailKeptBytesMax = uint64_t{128} << 20;  // for topics without a handler

// Thread-safe.
class Mailbox {
 public:
  // Both must outlive it.
  Mailbox(transport::Transport& transport, const Clock& clock)
      : transport_(transport), clock_(clock) {}
  ~Mailbox() { Stop(); }
  Mailbox(const Mailbox&) = delete;

  // See Worker::Send(), SendParcel() and Receive(). Topics of the library itself begin with
  // kOwnTopics; the public interface refuses them.
  static constexpr absl::string_view kOwnTopics = "syncopate/";
  absl::Status Send(int to, transport::MailKind kind, absl::string_view topic,
                    absl::string_view bytes);
  absl::Status Send(int to, absl::string_view topic, absl::string_view message) {
    return Send(to, transport::MailKind::kMessage, topic, message);
  }
  absl::Status Receive(absl::string_view topic, MailHandler handler);
  // Has the control thread run a task, which must be quick: as soon as it can, after those that were
  // given before, or at a time. Tasks run between handlers, never beside one.
  void Do(std::function<void()> task);
  void DoAt(int64_t when_ns, std::function<void()> task);
  // What the control thread does: takes mail and hands it out, runs tasks. For transports that have no
  // such thread.
  void Work();
  // No handler and no task runs from now on. Not from one of them.
  void Stop();

 private:
  struct Topic {
    std::shared_ptr<const MailHandler> handler;  // null: none yet
    std::deque<Mail> kept;                       // what has come and was not handed out
    size_t told = 0;                             // how many of gone_ the handler has heard of
  };

  // From now on the transport's thread calls Work().
  void Begin();
  // Hands a message or parcel to the handler of its topic, or files it there until there is one.
  void Take(transport::Mail mail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands out all that has come.
  void HandOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs the tasks that are due, without the mutex, and says when the next one is.
  void RunTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands one to the handler, without the mutex. The topic stays where it is.
  void Hand(Topic& topic, Mail mail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  transport::Transport& transport_;
  const Clock& clock_;
  Mutex begin_mutex_;
  std::atomic<bool> begun_{false};  // written under the mutex
  bool stopped_ ABSL_GUARDED_BY(begin_mutex_) = false;

  Mutex mutex_;
  CondVar handed_;
  std::map<std::string, Topic, std::less<>> topics_ ABSL_GUARDED_BY(mutex_);  // never erased
  std::vector<Mail> gone_ ABSL_GUARDED_BY(mutex_);  // the last of each worker, in order
  uint64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::multimap<int64_t, std::function<void()>> timed_ ABSL_GUARDED_BY(mutex_);  // by time
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  const Topic* running_ ABSL_GUARDED_BY(mutex_) = nullptr;  // whose handler runs
  std::thread::id runner_ ABSL_GUARDED_BY(mutex_);
};

// A worker's mailbox, for the rooms that stand above this one.
Mailbox& MailboxOf(Worker& worker);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_MAILBOX_H_
