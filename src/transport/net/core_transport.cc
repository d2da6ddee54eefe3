#include "transport/net/core_transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/net/net_port.h"

namespace syncopate::transport::net {
namespace {

// How long a leaving worker waits for the others to close their side.
constexpr int64_t kLeaveNs = 2'000'000'000;
// The longest sleep of the sentry: what came while nobody drives is seen within this.
constexpr int64_t kSentryNs = 100'000'000;

}  // namespace

CoreTransport::CoreTransport(const Core::Options& core_options, const Clock& clock,
                             std::vector<int> local_ranks, std::unique_ptr<Transport> local)
    : rank_(core_options.rank),
      size_(core_options.size),
      clock_(clock),
      local_ranks_(std::move(local_ranks)),
      local_(std::move(local)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      mail_bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      core_(core_options, clock),
      control_(clock) {}

void CoreTransport::Run(std::unique_ptr<Wire> wire, Sentry sentry) {
  MutexLock lock(&mutex_);
  core_.Attach(std::move(wire));
  core_.Tick(clock_.NowNs());
  if (sentry == Sentry::kNone) return;
  control_.Start([this] { return StepSentry(); }, [this] { return Listen(); });
}

CoreTransport::~CoreTransport() {
  if (!control_.running()) return;
  control_.Stop();
  MutexLock lock(&mutex_);
  core_.Leave();
  const int64_t deadline_ns = clock_.NowNs() + kLeaveNs;
  while (!core_.Left() && clock_.NowNs() < deadline_ns) {
    if (core_.Progress() || !core_.wire().Arm()) continue;
    pollfd ready{.fd = core_.wire().fd(), .events = POLLIN, .revents = 0};
    poll(&ready, 1, 10);
  }
  pause_.TellLongest();
  if (core_.dropped().total() > 0) {
    Log(LogLevel::kInfo, "dropped frames: ", Describe(core_.dropped()));
  }
}

absl::StatusOr<std::unique_ptr<GroupPort>> CoreTransport::OpenGroup(
    uint64_t key, const std::vector<int>& members) {
  const auto self = std::find(members.begin(), members.end(), rank_);
  if (self == members.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank_, " is not a member of the group it makes"));
  }
  std::vector<int> local_members, local_index(members.size(), -1);
  for (size_t member = 0; member < members.size(); ++member) {
    const auto place = std::find(local_ranks_.begin(), local_ranks_.end(), members[member]);
    if (place == local_ranks_.end()) continue;
    local_index[member] = static_cast<int>(local_members.size());
    local_members.push_back(static_cast<int>(place - local_ranks_.begin()));
  }
  std::unique_ptr<GroupPort> local;
  if (local_ != nullptr && local_members.size() > 1) {
    SYNCOPATE_ASSIGN_OR_RETURN(local, local_->OpenGroup(key, local_members));
    if (local_members.size() == members.size()) return local;
  }
  MutexLock lock(&mutex_);
  SYNCOPATE_RETURN_IF_ERROR(core_.OpenGroup(key, members));
  return std::make_unique<NetPort>(*this, key, static_cast<int>(self - members.begin()),
                                   std::move(local), std::move(local_index));
}

void CoreTransport::Renounce(uint64_t key) {
  if (local_ != nullptr) local_->Renounce(key);
  MutexLock lock(&mutex_);
  core_.Renounce(key);
}

absl::StatusOr<std::byte*> CoreTransport::Allocate(size_t bytes) {
  if (local_ != nullptr) return local_->Allocate(bytes);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  }
  return memory;
}

void CoreTransport::Free(std::byte* memory) {
  if (local_ != nullptr) {
    local_->Free(memory);
  } else {
    std::free(memory);
  }
}

bool CoreTransport::Owns(const void* memory, size_t bytes) const {
  return local_ == nullptr || local_->Owns(memory, bytes);
}

bool CoreTransport::Progress() {
  MutexLock lock(&mutex_);
  return ProgressLocked();
}

void CoreTransport::Flush() {
  MutexLock lock(&mutex_);
  core_.FlushAll();
}

uint32_t CoreTransport::PrepareToPark() {
  if (local_ != nullptr) local_->PrepareToPark();
  MutexLock lock(&mutex_);
  parked_ = true;
  return activity_;  // what has come since and nobody has read wakes us at once
}

void CoreTransport::Park(uint32_t ticket, int64_t deadline_ns) {
  bool sleep = false;
  if (control_.running()) {
    MutexLock lock(&mutex_);
    sleep = activity_ == ticket && core_.wire().Arm();
  }
  if (sleep) {
    pollfd fds[3] = {
        {.fd = core_.wire().fd(), .events = POLLIN, .revents = 0},
        {.fd = wake_.get(), .events = POLLIN, .revents = 0},
        {.fd = local_ == nullptr ? -1 : local_->bell(), .events = POLLIN, .revents = 0}};
    const int64_t left_ns = std::max<int64_t>(deadline_ns - clock_.NowNs(), 0);
    const timespec timeout = {.tv_sec = left_ns / 1'000'000'000,
                              .tv_nsec = left_ns % 1'000'000'000};
    ppoll(fds, 3, &timeout, nullptr);
    uint64_t drained = 0;
    for (const pollfd& fd : {fds[1], fds[2]}) {
      if (fd.fd >= 0 && fd.revents != 0 && read(fd.fd, &drained, sizeof(drained)) < 0) {
        continue;  // somebody else was quicker
      }
    }
  }
  CancelPark();
  Progress();
}

void CoreTransport::CancelPark() {
  if (local_ != nullptr) local_->CancelPark();
  MutexLock lock(&mutex_);
  parked_ = false;
}

void CoreTransport::Wake() {
  {
    MutexLock lock(&mutex_);
    ++activity_;
  }
  RingOwn();
}

absl::Status CoreTransport::Post(int to, MailKind kind, std::string bytes) {
  MutexLock lock(&mutex_);
  const absl::Status status = core_.Post(to, kind, std::move(bytes));
  RingForMail();  // it may be to this worker
  // What did not leave at once goes when the wire can take it.
  if (listens_ && drivers_ == 0 && !core_.wire().Arm()) control_.Wake(ControlThread::kListen);
  return status;
}

void CoreTransport::TakeMail(std::vector<Mail>& mail) {
  MutexLock lock(&mutex_);
  uint64_t drained = 0;
  if (mail_told_ && read(mail_bell_.get(), &drained, sizeof(drained)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot read the mail bell");
  }
  mail_told_ = false;
  core_.TakeMail(mail);
}

void CoreTransport::RingForMail() {
  if (mail_told_ || listening_ || !core_.HasMail()) return;
  mail_told_ = true;
  const uint64_t one = 1;
  if (write(mail_bell_.get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot ring the mail bell");
  }
}

std::vector<Loss> CoreTransport::Lost() const {
  MutexLock lock(&mutex_);
  return core_.losses();
}

void CoreTransport::Expel(int rank) {
  MutexLock lock(&mutex_);
  core_.Expel(rank);
  AfterProgress();
}

std::vector<Traffic> CoreTransport::TakeTraffic() {
  MutexLock lock(&mutex_);
  return core_.TakeTraffic();
}

bool CoreTransport::ProgressLocked() {
  bool moved = core_.Progress();
  // A sentry that is held up sends no heartbeats. A thread that drives meanwhile sends them for it: this
  // worker is alive. But one that hangs in its work is stuck.
  if (const int64_t now_ns = clock_.NowNs();
      now_ns > core_.NextTickNs() + kSentryNs && !control_.hangs()) {
    const size_t losses = core_.losses().size();
    core_.Tick(now_ns);
    moved |= core_.losses().size() != losses;
  }
  if (moved) {
    ++activity_;
    AfterProgress();
  }
  return moved;
}

void CoreTransport::AfterProgress() {
  // A worker of this host that is held for lost must not write into shared memory any more.
  for (const int rank : core_.TakeUncertain()) {
    const auto place = std::find(local_ranks_.begin(), local_ranks_.end(), rank);
    if (local_ != nullptr && place != local_ranks_.end()) {
      local_->Expel(static_cast<int>(place - local_ranks_.begin()));
    }
  }
  losses_.store(core_.losses().size(), std::memory_order_release);
  RingForMail();
}

void CoreTransport::RingOwn() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot wake this worker's own threads");
  }
}

void CoreTransport::SetControlWork(std::function<void()> work) {
  const bool any = work != nullptr;
  control_.SetWork(std::move(work));
  if (!control_.running() || any == std::exchange(has_work_, any)) return;
  if (any) {
    control_.Add(mail_bell_.get(), ControlThread::kWork);
  } else {
    control_.Remove(mail_bell_.get());
  }
  MutexLock lock(&mutex_);
  listens_ = any;
  if (any) control_.Wake(ControlThread::kListen);
}

void CoreTransport::DriveBegins() {
  MutexLock lock(&mutex_);
  ++drivers_;
  if (std::exchange(armed_, false)) control_.Disarm(core_.wire().fd());
}

void CoreTransport::DriveEnds() {
  MutexLock lock(&mutex_);
  --drivers_;
  if (ListenNext() != 0) control_.Wake(ControlThread::kListen);
}

uint32_t CoreTransport::ListenNext() {
  if (!listens_ || drivers_ > 0 || armed_) return 0;
  if (!core_.wire().Arm()) return ControlThread::kListen;
  armed_ = true;
  control_.Arm(core_.wire().fd(), ControlThread::kListen);
  return 0;
}

uint32_t CoreTransport::Listen() {
  MutexLock lock(&mutex_);
  armed_ = false;
  if (!listens_ || drivers_ > 0) return 0;
  listening_ = true;
  ProgressLocked();
  listening_ = false;
  uint32_t next = ListenNext();
  if (core_.HasMail()) next |= ControlThread::kWork;
  return next;
}

int64_t CoreTransport::StepSentry() {
  bool ring = false;
  int64_t due_ns = 0;
  {
    MutexLock core_lock(&mutex_);
    const uint64_t losses = core_.losses().size();
    const bool moved = ProgressLocked();
    const int64_t now_ns = clock_.NowNs();
    core_.Tick(now_ns);
    AfterProgress();
    if (core_.losses().size() != losses) ++activity_;
    ring = parked_ && (moved || core_.losses().size() != losses);
    due_ns = now_ns + std::clamp<int64_t>(core_.NextTickNs() - now_ns, 1'000'000, kSentryNs);
    pause_.Acts(now_ns, due_ns);
    armed_ = false;  // the wire wants to be armed again after it has moved
    if (ListenNext() != 0) control_.Wake(ControlThread::kListen);
  }
  if (ring) RingOwn();
  return due_ns;
}

}  // namespace syncopate::transport::net
