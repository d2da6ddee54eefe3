#include "transport/net/net_transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/net/core.h"
#include "transport/net/endpoint.h"
#include "transport/net/tcp_mesh.h"
#include "transport/net/tcp_wire.h"
#include "transport/net/ucx_wire.h"
#include "transport/net/ucx_worker.h"
#include "transport/shm/shm_transport.h"
#include "transport/terms.h"

namespace syncopate::transport {
namespace {

using net::Core;
using net::NetGroup;
using net::NetOperation;

// The results of operations this large are told to be complete at once, so that their copies can
// go.
constexpr uint64_t kPromptBytes = 256 << 10;
// Operations of a group under way; those that are only waiting for others to finish count too.
constexpr size_t kOperationsMax = 64;
// How long a leaving worker waits for the others to close their side.
constexpr int64_t kLeaveNs = 2'000'000'000;
// The longest sleep of the sentry: what came while nobody drives is seen within this.
constexpr int64_t kSentryNs = 100'000'000;

class NetTransport;

class NetPort final : public GroupPort {
 public:
  NetPort(NetTransport& transport, uint64_t key, std::vector<int> members, int self,
          std::unique_ptr<GroupPort> local, std::vector<int> local_index)
      : transport_(transport),
        key_(key),
        members_(std::move(members)),
        self_(self),
        local_(std::move(local)),
        local_index_(std::move(local_index)) {}
  ~NetPort() override;

  bool direct() const override { return false; }
  bool optimistic() const override { return true; }
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionSpec& spec) override;

 private:
  friend class NetSession;
  NetTransport& transport_;
  const uint64_t key_;
  const std::vector<int> members_;
  const int self_;
  const std::unique_ptr<GroupPort> local_;  // of the members on this host, if there are others
  const std::vector<int> local_index_;      // by member: index in local_, or -1
};

class NetTransport final : public Transport {
 public:
  NetTransport(const NetOptions& options, const Clock& clock, Core::Options core_options,
               std::vector<int> local_ranks, std::unique_ptr<Transport> local)
      : options_(options),
        clock_(clock),
        local_ranks_(std::move(local_ranks)),
        local_(std::move(local)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        core_(std::move(core_options), clock) {}

  void Run(std::unique_ptr<net::Wire> wire) {
    MutexLock lock(&mutex_);
    core_.Attach(std::move(wire));
    core_.Tick(clock_.NowNs());
    sentry_ = std::thread([this] { Watch(); });
  }
  net::WireHandler& handler() { return core_; }

  ~NetTransport() override {
    if (!sentry_.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(sentry_mutex_);
      stopping_ = true;
    }
    sentry_wanted_.notify_all();
    sentry_.join();
    MutexLock lock(&mutex_);
    core_.Leave();
    const int64_t deadline_ns = clock_.NowNs() + kLeaveNs;
    while (!core_.Left() && clock_.NowNs() < deadline_ns) {
      if (core_.Progress() || !core_.wire().Arm()) continue;
      pollfd ready{.fd = core_.wire().fd(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, 10);
    }
  }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  // A worker that waits for the network sleeps: who polls takes the core from those who work.
  Patience patience() const override { return {.spins = 0, .yields = 1}; }

  absl::StatusOr<std::unique_ptr<GroupPort>> OpenGroup(uint64_t key,
                                                       const std::vector<int>& members) override {
    const auto self = std::find(members.begin(), members.end(), options_.rank);
    if (self == members.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", options_.rank, " is not a member of the group it makes"));
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
    return std::make_unique<NetPort>(*this, key, members, static_cast<int>(self - members.begin()),
                                     std::move(local), std::move(local_index));
  }

  absl::StatusOr<std::byte*> Allocate(size_t bytes) override {
    if (local_ != nullptr) return local_->Allocate(bytes);
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
    }
    return memory;
  }
  void Free(std::byte* memory) override {
    if (local_ != nullptr) {
      local_->Free(memory);
    } else {
      std::free(memory);
    }
  }
  bool Owns(const void* memory, size_t bytes) const override {
    return local_ == nullptr || local_->Owns(memory, bytes);
  }

  bool Progress() override {
    MutexLock lock(&mutex_);
    return ProgressLocked();
  }

  void Flush() override {
    MutexLock lock(&mutex_);
    core_.FlushAll();
  }

  uint32_t PrepareToPark() override {
    if (local_ != nullptr) local_->PrepareToPark();
    MutexLock lock(&mutex_);
    parked_ = true;
    return activity_;  // what has come since and nobody has read wakes us at once
  }

  void Park(uint32_t ticket, int64_t deadline_ns) override {
    bool sleep = false;
    {
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

  void CancelPark() override {
    if (local_ != nullptr) local_->CancelPark();
    MutexLock lock(&mutex_);
    parked_ = false;
  }

  void Wake() override {
    {
      MutexLock lock(&mutex_);
      ++activity_;
    }
    RingOwn();
  }

  uint64_t losses() const override { return losses_.load(std::memory_order_acquire); }
  std::vector<Loss> Lost() const override {
    MutexLock lock(&mutex_);
    return core_.losses();
  }
  void Expel(int rank) override {
    MutexLock lock(&mutex_);
    core_.Expel(rank);
    AfterProgress();
  }
  std::vector<Traffic> TakeTraffic() override {
    MutexLock lock(&mutex_);
    return core_.TakeTraffic();
  }

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  Core& core() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return core_; }

 private:
  friend class NetSession;

  bool ProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool moved = core_.Progress();
    if (moved) {
      ++activity_;
      AfterProgress();
    }
    return moved;
  }

  void AfterProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // A worker of this host that is held for lost must not write into shared memory any more.
    for (const int rank : core_.TakeUncertain()) {
      const auto place = std::find(local_ranks_.begin(), local_ranks_.end(), rank);
      if (local_ != nullptr && place != local_ranks_.end()) {
        local_->Expel(static_cast<int>(place - local_ranks_.begin()));
      }
    }
    losses_.store(core_.losses().size(), std::memory_order_release);
  }

  void RingOwn() {
    const uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
      Log(LogLevel::kWarn, "cannot wake this worker's own threads");
    }
  }

  // The sentry: beats, and sees to what comes while nobody drives.
  void Watch() {
    std::unique_lock<std::mutex> lock(sentry_mutex_);
    int64_t wait_ns = 0;
    while (!stopping_) {
      sentry_wanted_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      if (stopping_) return;
      lock.unlock();
      bool ring = false;
      {
        MutexLock core_lock(&mutex_);
        const uint64_t losses = core_.losses().size();
        const bool moved = ProgressLocked();
        const int64_t now_ns = clock_.NowNs();
        core_.Tick(now_ns);
        AfterProgress();
        if (core_.losses().size() != losses) ++activity_;
        ring = parked_ && (moved || core_.losses().size() != losses);
        wait_ns = std::clamp<int64_t>(core_.NextTickNs() - now_ns, 1'000'000, kSentryNs);
      }
      if (ring) RingOwn();
      lock.lock();
    }
  }

  const NetOptions options_;
  const Clock& clock_;
  const std::vector<int> local_ranks_;  // of this host, sorted
  const std::unique_ptr<Transport> local_;
  const UniqueFd wake_;  // eventfd

  mutable Mutex mutex_;
  Core core_ ABSL_GUARDED_BY(mutex_);
  uint32_t activity_ ABSL_GUARDED_BY(mutex_) = 0;  // grows when something moved
  bool parked_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> losses_{0};

  std::mutex sentry_mutex_;
  std::condition_variable sentry_wanted_;
  bool stopping_ = false;  // guarded by sentry_mutex_
  std::thread sentry_;
};

class NetSession final : public Session {
 public:
  NetSession(NetPort& port, NetGroup& group, NetOperation& operation,
             std::unique_ptr<Session> local)
      : port_(port),
        transport_(port.transport_),
        group_(group),
        operation_(operation),
        sequence_(operation.sequence),
        prompt_(operation.spec.data_bytes >= kPromptBytes ||
                operation.spec.ending == Ending::kAwaited),
        local_(std::move(local)) {}

  ~NetSession() override {
    if (local_ != nullptr && local_->State(Gate::kFinish) != GateState::kPassed) {
      local_->Break(Gate::kStart);
      local_->Break(Gate::kFinish);
    }
    local_.reset();
    MutexLock lock(&transport_.mutex());
    transport_.core().End(group_, sequence_);
  }

  bool Enter(Gate gate, int member) override {
    if (member == port_.self_) local_wanted_[static_cast<size_t>(gate)] = local_ != nullptr;
    EnterLocal();
    MutexLock lock(&transport_.mutex());
    if (member != port_.self_) return true;  // nobody does another's part here
    const bool entered = group_.gates->Enter(sequence_, gate, prompt_);
    transport_.core().Pump(group_);
    return entered;
  }

  GateState State(Gate gate) override {
    EnterLocal();
    MutexLock lock(&transport_.mutex());
    // Those who were promised our result still read it.
    if (gate == Gate::kFinish && operation_.results_left > 0) return GateState::kOpen;
    return group_.gates->State(sequence_, gate);
  }

  GateState Break(Gate gate) override {
    MutexLock lock(&transport_.mutex());
    const GateState state = group_.gates->State(sequence_, gate);
    if (state != GateState::kOpen) return state;
    group_.gates->Ask(sequence_);
    transport_.core().Pump(group_);
    return group_.gates->State(sequence_, gate);
  }

  bool Held() override {
    MutexLock lock(&transport_.mutex());
    return group_.gates->Held(sequence_);
  }

  std::optional<Oddity> FindOddity() override {
    MutexLock lock(&transport_.mutex());
    const auto oddity = group_.gates->OddityOf(sequence_);
    if (!oddity) return std::nullopt;
    return Oddity{.member = oddity->member, .digest = oddity->digest};
  }

  bool Entered(Gate gate, int member) override {
    MutexLock lock(&transport_.mutex());
    return group_.gates->Entered(sequence_, gate, member);
  }

  Hello HelloOf(int member) override {
    MutexLock lock(&transport_.mutex());
    return group_.gates->HelloOf(sequence_, member);
  }

  void Offer(uint32_t step, int to, const std::byte* bytes, Extent where) override {
    if (const int local = LocalIndex(to); local >= 0) {
      local_->Offer(step, local, bytes, where);
      return;
    }
    MutexLock lock(&transport_.mutex());
    transport_.core().Offer(group_, operation_, step, to, bytes, where.bytes);
  }

  const std::byte* Arrived(int from, uint32_t their_step, Extent where) override {
    if (const int local = LocalIndex(from); local >= 0) {
      return LocalReady() ? local_->Arrived(local, their_step, where) : nullptr;
    }
    MutexLock lock(&transport_.mutex());
    return transport_.core().Arrived(group_, operation_, from, their_step, where.bytes);
  }

  void Consume(uint32_t step, int from, uint32_t their_step) override {
    if (const int local = LocalIndex(from); local >= 0) {
      local_->Consume(step, local, their_step);
      return;
    }
    MutexLock lock(&transport_.mutex());
    transport_.core().Consume(operation_, group_.members[static_cast<size_t>(from)], their_step);
  }

  bool Consumed(int to, uint32_t step, uint32_t their_step) override {
    if (const int local = LocalIndex(to); local >= 0) {
      return LocalReady() && local_->Consumed(local, step, their_step);
    }
    MutexLock lock(&transport_.mutex());
    return transport_.core().Sent(operation_, step, group_.members[static_cast<size_t>(to)]);
  }

  std::byte* Memory(int, Space) override { return nullptr; }
  std::byte* Notes(int) override { return nullptr; }
  void Nudge() override {}

 private:
  int LocalIndex(int member) const {
    return local_ == nullptr ? -1 : port_.local_index_[static_cast<size_t>(member)];
  }

  // Enters the gates of this host that were wanted and could not be entered yet: its first member
  // may make the group later than we begin. Who has no message from or for this host must try again
  // too, since the others wait for it.
  void EnterLocal() {
    for (const Gate gate : {Gate::kStart, Gate::kFinish}) {
      bool& wanted = local_wanted_[static_cast<size_t>(gate)];
      if (!wanted) continue;
      wanted = !local_->Enter(gate, port_.local_index_[static_cast<size_t>(port_.self_)]);
    }
  }

  // Members on this host can read each other's memory once all of them have begun.
  bool LocalReady() {
    if (local_ready_) return true;
    EnterLocal();
    if (local_->State(Gate::kStart) != GateState::kPassed) return false;
    for (size_t member = 0; member < port_.members_.size(); ++member) {
      if (LocalIndex(static_cast<int>(member)) < 0) continue;
      const uint64_t digest = local_->HelloOf(LocalIndex(static_cast<int>(member))).digest;
      if (digest == operation_.spec.digest) continue;
      MutexLock lock(&transport_.mutex());
      group_.gates->Ask(sequence_, static_cast<int>(member), digest);
      transport_.core().Pump(group_);
      return false;  // for ever: it will be settled as broken
    }
    local_ready_ = true;
    return true;
  }

  NetPort& port_;
  NetTransport& transport_;
  NetGroup& group_;
  NetOperation& operation_;
  const uint64_t sequence_;
  const bool prompt_;
  std::unique_ptr<Session> local_;
  std::array<bool, 2> local_wanted_ = {};  // by gate: to be entered
  bool local_ready_ = false;
};

NetPort::~NetPort() {
  MutexLock lock(&transport_.mutex());
  transport_.core().CloseGroup(key_);
}

absl::StatusOr<std::unique_ptr<Session>> NetPort::Open(const SessionSpec& spec) {
  {
    MutexLock lock(&transport_.mutex());
    NetGroup& group = transport_.core().group(key_);
    const auto begun = std::count_if(group.operations.begin(), group.operations.end(),
                                     [](const auto& entry) { return entry.second->opened; });
    if (static_cast<size_t>(begun) >= kOperationsMax) {
      transport_.core().FlushAll();
      return absl::UnavailableError("too many operations of the group are under way");
    }
  }
  std::unique_ptr<Session> local;
  if (local_ != nullptr) {
    absl::StatusOr<std::unique_ptr<Session>> opened = local_->Open(spec);
    if (!opened.ok()) {
      transport_.Flush();  // what holds the place may only wait for a word
      return opened.status();
    }
    local = *std::move(opened);
  }
  MutexLock lock(&transport_.mutex());
  NetGroup& group = transport_.core().group(key_);
  NetOperation& operation = transport_.core().Begin(group, spec, self_);
  return std::make_unique<NetSession>(*this, group, operation, std::move(local));
}

// ---- start

// Where the worker listens, and what UCX calls it; the second part is empty without UCX.
std::string JoinAddress(const std::string& address, const std::string& ucx) {
  return ucx.empty() ? address : absl::StrCat(address, " ", ucx);
}
std::pair<std::string, std::string> SplitAddress(const std::string& both) {
  const size_t space = both.find(' ');
  if (space == std::string::npos) return {both, ""};
  return {both.substr(0, space), both.substr(space + 1)};
}

class Start final : public NetStart {
 public:
  Start(const NetOptions& options, const Clock& clock, net::TcpListener listener,
        std::unique_ptr<net::UcxWorker> ucx, net::Endpoint endpoint)
      : options_(options),
        clock_(clock),
        listener_(std::move(listener)),
        ucx_(std::move(ucx)),
        payload_(net::Encode(endpoint)) {}

  const std::string& payload() const override { return payload_; }

  absl::StatusOr<std::unique_ptr<Transport>> Connect(const std::vector<std::string>& payloads,
                                                     const std::string& key) override {
    const int64_t deadline_ns = clock_.NowNs() + options_.start_timeout_ns;
    net::MeshOptions mesh = {.rank = options_.rank,
                             .size = options_.size,
                             .lanes = options_.lanes,
                             .job = static_cast<uint32_t>(DigestOf(options_.job).low),
                             .key = key};
    std::vector<net::Endpoint> endpoints;
    std::vector<std::string> ucx_addresses;
    std::vector<std::string> terms;
    for (size_t rank = 0; rank < payloads.size(); ++rank) {
      absl::StatusOr<net::Endpoint> endpoint = net::DecodeEndpoint(payloads[rank]);
      if (!endpoint.ok()) return At(absl::StrCat("worker ", rank), endpoint.status());
      if (endpoint->wire != options_.wire) {
        return absl::FailedPreconditionError(
            absl::StrCat("worker ", rank, " uses ", endpoint->wire, ", this worker ", options_.wire,
                         "; give all workers the same SYNCOPATE_TRANSPORT"));
      }
      mesh.lanes = std::min(mesh.lanes, endpoint->lanes);  // so all come to the same
      const auto [address, ucx_address] = SplitAddress(endpoint->address);
      mesh.addresses.push_back(address);
      ucx_addresses.push_back(ucx_address);
      mesh.hosts.push_back(endpoint->host);
      terms.push_back(endpoint->terms);
      endpoints.push_back(*std::move(endpoint));
    }
    SYNCOPATE_RETURN_IF_ERROR(CompareTerms(terms));
    std::vector<int> local_ranks;
    const std::string& machine = endpoints[static_cast<size_t>(options_.rank)].machine;
    for (size_t rank = 0; rank < endpoints.size(); ++rank) {
      if (endpoints[rank].machine == machine) local_ranks.push_back(static_cast<int>(rank));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(auto sockets,
                               net::ConnectMesh(std::move(listener_), mesh, clock_, deadline_ns));
    std::unique_ptr<Transport> local;
    if (local_ranks.size() > 1) {
      const auto self = std::find(local_ranks.begin(), local_ranks.end(), options_.rank);
      SYNCOPATE_ASSIGN_OR_RETURN(
          local, StartShmTransport({.job = absl::StrCat(options_.job, "/", machine),
                                    .rank = static_cast<int>(self - local_ranks.begin()),
                                    .size = static_cast<int>(local_ranks.size()),
                                    .arena_bytes = options_.arena_bytes,
                                    .cores = options_.cores,
                                    .bell = true,
                                    .start_timeout_ns = deadline_ns - clock_.NowNs()},
                                   clock_));
    }
    Core::Options core = {.rank = options_.rank,
                          .size = options_.size,
                          .job = mesh.job,
                          .hosts = mesh.hosts,
                          .consensus = options_.consensus};
    core.consensus.rank = options_.rank;
    core.consensus.size = options_.size;
    auto transport = std::make_unique<NetTransport>(options_, clock_, std::move(core),
                                                    std::move(local_ranks), std::move(local));
    std::unique_ptr<net::Wire> wire;
    if (ucx_ != nullptr) {
      net::UcxWire::Options ucx = {.rank = options_.rank, .addresses = std::move(ucx_addresses)};
      for (auto& lanes : sockets) {
        ucx.sockets.push_back(lanes.empty() ? UniqueFd() : std::move(lanes.front()));
      }
      SYNCOPATE_ASSIGN_OR_RETURN(
          wire, net::UcxWire::Make(std::move(ucx_), std::move(ucx), transport->handler(), clock_,
                                   deadline_ns));
    } else {
      SYNCOPATE_ASSIGN_OR_RETURN(wire, net::TcpWire::Make(std::move(sockets), transport->handler(),
                                                          options_.socket_buffer_bytes));
    }
    transport->Run(std::move(wire));
    return transport;
  }

 private:
  const NetOptions options_;
  const Clock& clock_;
  net::TcpListener listener_;
  std::unique_ptr<net::UcxWorker> ucx_;  // null: TCP
  const std::string payload_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NetStart>> StartNetTransport(const NetOptions& options,
                                                            const Clock& clock) {
  if (options.wire != "tcp" && options.wire != "ucx") {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no transport \"", options.wire, "\"; use tcp or ucx"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(net::TcpListener listener, net::ListenTcp(options.ip));
  std::unique_ptr<net::UcxWorker> ucx;
  if (options.wire == "ucx") {
    SYNCOPATE_ASSIGN_OR_RETURN(ucx, net::UcxWorker::Make(options.ip));
  }
  net::Endpoint endpoint = {
      .wire = options.wire,
      .machine = options.machine.empty() ? net::ThisMachine() : options.machine,
      .host = options.host.empty() ? net::ThisHostName() : options.host,
      .address = JoinAddress(listener.address, ucx == nullptr ? "" : ucx->address()),
      .lanes = options.lanes,
      .terms = options.terms};
  return std::make_unique<Start>(options, clock, std::move(listener), std::move(ucx),
                                 std::move(endpoint));
}

}  // namespace syncopate::transport
