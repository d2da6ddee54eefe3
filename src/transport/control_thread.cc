#include "transport/control_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace syncopate::transport {
namespace {

// In the place of a reason: the reasons are those of Wake().
constexpr uint32_t kWanted = 0;

void Control(int epoll, int operation, int fd, uint32_t events, uint32_t reason) {
  epoll_event event = {};
  event.events = events;
  event.data.u32 = reason;
  if (epoll_ctl(epoll, operation, fd, &event) == 0) return;
  Log(LogLevel::kWarn, "the control thread cannot watch a descriptor: ", std::strerror(errno));
}

}  // namespace

ControlThread::ControlThread(const Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  Control(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWanted);
}

void ControlThread::Start(std::function<int64_t()> duty, std::function<uint32_t()> listen) {
  duty_ = std::move(duty);
  listen_ = std::move(listen);
  thread_ = std::thread([this] { Loop(); });
}

void ControlThread::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  Wake(kDuty);
  thread_.join();
}

void ControlThread::Add(int fd, Reason reason) {
  Control(epoll_.get(), EPOLL_CTL_ADD, fd, EPOLLIN, reason);
}

void ControlThread::AddBell(int fd, Reason reason) {
  Control(epoll_.get(), EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, reason);
}

void ControlThread::Remove(int fd) { Control(epoll_.get(), EPOLL_CTL_DEL, fd, 0, 0); }

void ControlThread::Arm(int fd, Reason reason) {
  MutexLock lock(&arm_mutex_);
  const int operation = armed_fd_ == fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  armed_fd_ = fd;
  Control(epoll_.get(), operation, fd, EPOLLIN | EPOLLONESHOT, reason);
}

void ControlThread::Disarm(int fd) {
  MutexLock lock(&arm_mutex_);
  if (armed_fd_ == fd) Control(epoll_.get(), EPOLL_CTL_MOD, fd, 0, 0);
}

void ControlThread::Wake(Reason reason) {
  if ((wanted_.fetch_or(reason) & reason) != 0) return;  // it has been woken for this
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot wake the control thread");
  }
}

void ControlThread::SetWork(std::function<void()> work) {
  MutexLock lock(&work_mutex_);
  work_ = std::move(work);
}

void ControlThread::Loop() {
  uint32_t reasons = kDuty | kWork;
  int64_t due_ns = 0;
  while (!stopping_) {
    if ((reasons & kDuty) != 0) due_ns = duty_();
    uint32_t next = 0;
    if ((reasons & kListen) != 0 && listen_) {
      const uint32_t heard = listen_();
      reasons |= heard & kWork;
      next = heard & kListen;
    }
    if ((reasons & kWork) != 0) {
      MutexLock lock(&work_mutex_);
      work_at_ns_ = INT64_MAX;
      working_since_ns_ = clock_.NowNs();
      if (work_) work_();
      working_since_ns_ = 0;
    }
    const int64_t wake_ns = std::min(due_ns, work_at_ns_);
    const int64_t left_ns = std::max<int64_t>(wake_ns - clock_.NowNs(), 0);
    const int wait_ms = next != 0 ? 0 : static_cast<int>((left_ns + 999'999) / 1'000'000);
    epoll_event events[16];
    const int count = epoll_wait(epoll_.get(), events, 16, wait_ms);
    reasons = next;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u32 != kWanted) {
        reasons |= events[i].data.u32;
        continue;
      }
      // Emptied before the look: what is wanted after the look wakes it again.
      uint64_t drained = 0;
      if (read(wake_.get(), &drained, sizeof(drained)) < 0 && errno != EAGAIN) {
        Log(LogLevel::kWarn, "the control thread cannot read its own bell");
      }
      reasons |= wanted_.exchange(0);
    }
    const int64_t now_ns = clock_.NowNs();
    if (now_ns >= due_ns) reasons |= kDuty;
    if (now_ns >= work_at_ns_) reasons |= kWork;
  }
}

}  // namespace syncopate::transport
