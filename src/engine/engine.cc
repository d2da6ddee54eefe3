#include "engine/engine.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::engine {
namespace {

// Deadlines and losses are checked once in this many idle rounds.
constexpr uint32_t kLookAroundRounds = 64;
// The longest sleep of a driving thread: a lost wake-up, which should not happen, costs no more
// than this.
constexpr int64_t kSleepNs = 100'000'000;
// How long an engine that ends waits for the others to finish what it has finished.
constexpr int64_t kLingerNs = 5'000'000'000;

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

Engine::Engine(transport::Transport& transport, const Clock& clock, Pump pump)
    : transport_(transport), clock_(clock), scratch_(transport), patience_(transport.patience()) {
  if (pump == Pump::kThread) pump_ = std::thread([this] { PumpLoop(); });
}

Engine::~Engine() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    pump_wanted_.Signal();
  }
  transport_.Wake();
  if (pump_.joinable()) pump_.join();
  // The pump has ended and no other thread may use the engine any more, so this thread drives.
  TakeInbox();
  Linger();
  for (const auto& operation : operations_) {
    operation->CallOff(absl::CancelledError("the worker ended while it was under way"));
  }
}

// Operations that are done here may not be done for the others: a member that still needs our part
// gets it.
void Engine::Linger() {
  const int64_t deadline_ns = clock_.NowNs() + kLingerNs;
  const auto needed = [](const auto& operation) { return operation->OthersMayNeed(); };
  while (std::any_of(operations_.begin(), operations_.end(), needed)) {
    transport_.Flush();
    // The poll comes after PrepareToPark(): what arrives between the two ends the sleep at once.
    const uint32_t ticket = transport_.PrepareToPark();
    const int64_t now_ns = clock_.NowNs();
    if (now_ns >= deadline_ns || PollAll(/*lingering=*/true) != Operation::Outcome::kBlocked) {
      transport_.CancelPark();
      if (now_ns >= deadline_ns) return;
      continue;
    }
    transport_.Park(ticket, std::min(deadline_ns, now_ns + kSleepNs));
  }
}

absl::StatusOr<std::shared_ptr<EngineGroup>> Engine::MakeGroup(uint64_t key,
                                                               std::vector<int> members) {
  auto group = std::make_shared<EngineGroup>();
  const auto self = std::find(members.begin(), members.end(), transport_.rank());
  if (self == members.end()) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", transport_.rank(),
                                                   " is not a member of the group ",
                                                   FormatRanks(members), " that it makes"));
  }
  group->self = static_cast<int>(self - members.begin());
  SYNCOPATE_ASSIGN_OR_RETURN(group->port, transport_.OpenGroup(key, members));
  group->key = key;
  group->members = std::move(members);
  return group;
}

std::shared_ptr<Operation> Engine::MakeOperation(OperationSpec spec) {
  // The sequence is what members recognise an operation by, so it is given under the mutex, in the
  // order in which operations enter the inbox.
  const uint64_t sequence = spec.group->next_sequence++;
  return std::make_shared<Operation>(std::move(spec), sequence, transport_, scratch_, clock_);
}

std::shared_ptr<Operation> Engine::Submit(OperationSpec spec) {
  std::shared_ptr<Operation> operation = MakeOperation(std::move(spec));
  inbox_.push_back(operation);
  inbox_full_.store(true, std::memory_order_release);
  return operation;
}

std::shared_ptr<Operation> Engine::Start(OperationSpec spec) {
  std::shared_ptr<Operation> operation;
  bool driven = false;
  {
    MutexLock lock(&mutex_);
    operation = Submit(std::move(spec));
    pump_needed_ = true;
    driven = driving_;
    if (!driven) pump_wanted_.Signal();
  }
  if (driven) transport_.Wake();  // the driving thread may sleep
  return operation;
}

absl::Status Engine::Run(OperationSpec spec) {
  std::shared_ptr<Operation> operation;
  {
    MutexLock lock(&mutex_);
    if (!driving_) {
      // The usual case, and the one that must be quick: nobody drives, so this thread does. With an
      // empty inbox the operation is enqueued directly. Otherwise it goes through the inbox, behind
      // those that were started before it.
      const bool first = inbox_.empty();
      operation = first ? MakeOperation(std::move(spec)) : Submit(std::move(spec));
      driving_ = true;
      ++waiters_;
      mutex_.Unlock();
      if (first) Enqueue(operation);
      Drive(operation.get());
      mutex_.Lock();
      StopDriving();
      --waiters_;
      return operation->status();
    }
    operation = Submit(std::move(spec));
  }
  transport_.Wake();  // the driving thread may sleep
  return Wait(operation);
}

absl::Status Engine::Wait(const std::shared_ptr<Operation>& operation) {
  if (operation->done()) return operation->status();
  MutexLock lock(&mutex_);
  ++waiters_;
  while (!operation->done()) {
    if (driving_) {
      // The driving thread tells when operations get done; their deadlines, which it keeps, bound
      // this wait. The timeout here only guards against a driving thread that ends at the wrong
      // moment.
      news_.WaitFor(&mutex_, std::chrono::milliseconds(100));
      continue;
    }
    driving_ = true;
    mutex_.Unlock();
    Drive(operation.get());
    mutex_.Lock();
    StopDriving();
  }
  --waiters_;
  return operation->status();
}

void Engine::Hasten(Operation& operation, int64_t deadline_ns) {
  if (operation.done() || operation.deadline_ns() <= deadline_ns) return;
  operation.Hasten(deadline_ns);
  transport_.Wake();  // the driving thread may sleep until the deadline that it knows
}

void Engine::StopDriving() {
  driving_ = false;
  // The caller is a waiter itself. Another waiter or the pump drives on.
  if (waiters_ > 1) news_.SignalAll();
  if (pump_needed_) pump_wanted_.Signal();
}

void Engine::PumpLoop() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (driving_ || !pump_needed_) {
      pump_wanted_.Wait(&mutex_);
      continue;
    }
    driving_ = true;
    // It is cleared before driving, not after it: a Start() meanwhile sets it again, and the loop
    // comes round once more.
    pump_needed_ = false;
    mutex_.Unlock();
    Drive(nullptr);
    mutex_.Lock();
    driving_ = false;
    if (waiters_ > 0) news_.SignalAll();
  }
}

// The flag spares the mutex in the usual round, in which nothing has been started.
void Engine::TakeInbox() {
  if (!inbox_full_.load(std::memory_order_acquire)) return;
  std::vector<std::shared_ptr<Operation>> arrived;
  {
    MutexLock lock(&mutex_);
    arrived.swap(inbox_);
    inbox_full_.store(false, std::memory_order_relaxed);
  }
  for (std::shared_ptr<Operation>& operation : arrived) Enqueue(std::move(operation));
}

// Behind those of the same priority, so that operations of one priority keep the order of their
// starts.
void Engine::Enqueue(std::shared_ptr<Operation> operation) {
  const auto place = std::upper_bound(
      operations_.begin(), operations_.end(), operation->priority(),
      [](int priority, const auto& other) { return priority > other->priority(); });
  operations_.insert(place, std::move(operation));
}

void Engine::Retire() {
  std::erase_if(operations_, [](const auto& operation) { return operation->retired(); });
}

// Polls each operation once. After one has moved a quantum, those of higher priority are polled
// again before any other. The one that moved goes behind those of its own priority, so that they
// take turns.
Operation::Outcome Engine::PollAll(bool lingering) {
  Operation::Outcome outcome = Operation::Outcome::kBlocked;
  bool retired = false;
  const EngineGroup* asked = nullptr;
  for (size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = *operations_[i];
    const bool was_done = operation.done();
    // Operations of a group mostly end in order: where one still lingers, those after it do so,
    // too. Polling only the first keeps a long queue of lingering operations cheap.
    if (was_done && (!lingering || asked == &operation.group())) continue;
    const Operation::Outcome moved = operation.Poll();
    if (was_done && moved == Operation::Outcome::kBlocked) asked = &operation.group();
    completed_ |= !was_done && operation.done();
    retired |= operation.retired();
    outcome = std::max(outcome, moved);
    if (moved == Operation::Outcome::kWorked && operations_.size() > 1 &&
        operations_.front()->priority() > operation.priority()) {
      size_t last = i;
      while (last + 1 < operations_.size() &&
             operations_[last + 1]->priority() == operation.priority()) {
        ++last;
      }
      std::rotate(operations_.begin() + static_cast<long>(i),
                  operations_.begin() + static_cast<long>(i) + 1,
                  operations_.begin() + static_cast<long>(last) + 1);
      break;
    }
  }
  if (retired) Retire();
  return outcome;
}

Operation::Outcome Engine::LookAround(int64_t now_ns) {
  std::vector<transport::Loss> losses;
  if (transport_.losses() > 0) losses = transport_.Lost();
  Operation::Outcome outcome = Operation::Outcome::kBlocked;
  for (const auto& operation : operations_) {
    if (losses.empty() && now_ns < operation->deadline_ns()) continue;
    const bool was_done = operation->done();
    outcome = std::max(outcome, operation->CheckTroubles(now_ns, losses));
    completed_ |= !was_done && operation->done();
  }
  Retire();
  return outcome;
}

bool Engine::DriveOnce() {
  TakeInbox();
  transport_.Progress();
  const Operation::Outcome polled = PollAll(/*lingering=*/true);
  return std::max(polled, LookAround(clock_.NowNs())) != Operation::Outcome::kBlocked;
}

void Engine::Drive(const Operation* until) {
  transport_.DriveBegins();
  DriveUntil(until);
  transport_.DriveEnds();
}

void Engine::DriveUntil(const Operation* until) {
  int idle_rounds = 0;
  bool news = true;  // something came since lingering operations were last asked
  for (;;) {
    TakeInbox();
    Operation::Outcome outcome = PollAll(std::exchange(news, false));
    if (transport_.Progress()) {
      outcome = std::max(outcome, Operation::Outcome::kMoved);
      news = true;
    }
    if (completed_) {
      completed_ = false;
      // A thread that drives for its own operation is among the waiters and needs no signal.
      if (waiters_ > (until != nullptr ? 1 : 0)) {
        MutexLock lock(&mutex_);
        news_.SignalAll();
      }
    }
    if (until != nullptr && until->done()) break;
    if (until == nullptr && std::all_of(operations_.begin(), operations_.end(),
                                        [](const auto& operation) { return operation->done(); })) {
      MutexLock lock(&mutex_);
      if (inbox_.empty() || stopping_) return;
      continue;
    }
    if (outcome != Operation::Outcome::kBlocked) {
      idle_rounds = 0;
      continue;
    }
    news |= Rest(idle_rounds, until == nullptr);
    if (until == nullptr && stopping_) return;
  }
  // Operations that nobody waits for are left to the pump.
  if (std::any_of(operations_.begin(), operations_.end(),
                  [](const auto& operation) { return !operation->done(); })) {
    MutexLock lock(&mutex_);
    pump_needed_ = true;
  }
}

// Called when nothing could move: first spins, then yields the core, then sleeps. `patient`: no
// thread waits, so the core is given away sooner. Returns true if others may have moved meanwhile.
bool Engine::Rest(int& idle_rounds, bool patient) {
  ++idle_rounds;
  if (++rounds_ % kLookAroundRounds == 0 &&
      LookAround(clock_.NowNs()) != Operation::Outcome::kBlocked) {
    idle_rounds = 0;
    return true;
  }
  const int spin = patient ? 0 : patience_.spins;
  const int yield = patient ? std::min(5, patience_.yields) : patience_.yields;
  if (idle_rounds <= spin) {
    Pause();
    return idle_rounds % kLookAroundRounds == 0;
  }
  if (idle_rounds <= spin + yield) {
    sched_yield();
    return false;
  }
  const uint32_t ticket = transport_.PrepareToPark();
  const int64_t now_ns = clock_.NowNs();
  // A peer that moved before PrepareToPark() did not wake us, so everything is polled once more
  // before this thread sleeps.
  if (inbox_full_.load(std::memory_order_acquire) ||
      PollAll(/*lingering=*/true) != Operation::Outcome::kBlocked ||
      LookAround(now_ns) != Operation::Outcome::kBlocked) {
    transport_.CancelPark();
    idle_rounds = 0;
    return true;
  }
  // Deadlines are kept by the driving thread alone, so it must be awake when the next one passes.
  int64_t wake_ns = now_ns + kSleepNs;
  for (const auto& operation : operations_) {
    if (!operation->done()) wake_ns = std::min(wake_ns, std::max(now_ns, operation->deadline_ns()));
  }
  transport_.Park(ticket, wake_ns);
  return true;
}

}  // namespace syncopate::engine
