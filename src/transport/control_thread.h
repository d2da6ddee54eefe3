// The control thread of a worker: it keeps the worker's heartbeat and watches the others, listens to the
// network while no other thread does, and does work that was given to it, such as handing out mail. It
// sleeps on one descriptor.
//
// The heartbeat is part of it on purpose: a worker whose control thread hangs, in whatever work, is
// stuck, and the others notice.
#ifndef SYNCOPATE_TRANSPORT_CONTROL_THREAD_H_
#define SYNCOPATE_TRANSPORT_CONTROL_THREAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "base/mutex.h"

namespace syncopate::transport {

// Thread-safe, except Start() and Stop().
class ControlThread {
 public:
  // Why the thread wakes, and so what it does.
  enum Reason : uint32_t {
    kDuty = 1,    // a round of duties
    kListen = 2,  // the network has something
    kWork = 4,    // the work
  };

  // The clock must outlive it.
  explicit ControlThread(const Clock& clock);
  ~ControlThread() { Stop(); }
  ControlThread(const ControlThread&) = delete;

  // `duty` is called at once, when a descriptor of kDuty is readable, and at the latest when it is due
  // again, which it returns. `listen` is called when the network has something, and returns the
  // reasons that follow from it.
  void Start(std::function<int64_t()> duty, std::function<uint32_t()> listen = {});
  // Returns when the thread has ended.
  void Stop();
  bool running() const { return thread_.joinable(); }
  // Whether work that was begun has not ended for so long that the thread does not send heartbeats any
  // more.
  bool hangs() const {
    const int64_t since_ns = working_since_ns_.load();
    return since_ns != 0 && clock_.NowNs() - since_ns > kHangsNs;
  }

  // Wakes the thread whenever `fd` is readable.
  void Add(int fd, Reason reason);
  // Wakes it each time that `fd`, an eventfd, is written, and now if it is readable. It need not be read.
  void AddBell(int fd, Reason reason);
  void Remove(int fd);
  // The same for one time; then it must be armed again. `fd` is the same each time.
  void Arm(int fd, Reason reason);
  void Disarm(int fd);
  void Wake(Reason reason);

  // What kWork means from now on; null: nothing. When it returns, what it meant before does not run any
  // more; so it must not be called from there.
  void SetWork(std::function<void()> work);
  // Does the work at this time at the latest, once; later calls replace it, INT64_MAX: never. For the
  // work itself.
  void WorkAt(int64_t when_ns) { work_at_ns_ = when_ns; }

 private:
  static constexpr int64_t kHangsNs = 300'000'000;

  void Loop();

  const Clock& clock_;
  const PrivateFd epoll_;
  const PrivateFd wake_;             // eventfd
  std::atomic<uint32_t> wanted_{0};  // reasons of Wake()
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> working_since_ns_{0};  // 0: it does not work
  std::function<int64_t()> duty_;
  std::function<uint32_t()> listen_;

  Mutex arm_mutex_;
  int armed_fd_ ABSL_GUARDED_BY(arm_mutex_) = -1;  // that is in the epoll, armed or not

  Mutex work_mutex_;  // held while it runs
  std::function<void()> work_ ABSL_GUARDED_BY(work_mutex_);
  int64_t work_at_ns_ = INT64_MAX;  // used by the thread alone
  std::thread thread_;
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_CONTROL_THREAD_H_
