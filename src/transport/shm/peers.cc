#include "transport/shm/peers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/pidfd.h"
#include "base/status.h"
#include "transport/shm/futex.h"
#include "transport/shm/introduction.h"
#include "transport/terms.h"

namespace syncopate::transport::shm {
namespace {
// How long a killed process may take to vanish before we go on: none of its threads runs code of its
// own again, whatever keeps the process from vanishing (a device, a freezer, a debugger).
constexpr int kFenceMs = 1000;
// What is taken of the arena from the system at the start: enough for the small operations that are under way at a
// time, so that the memory of a job with very many of them does not creep up to the largest number there ever was.
constexpr size_t kReadyArenaBytes = 256 << 10;
// While workers tell each other whom they can end: how often one looks whether another has died.
constexpr int64_t kLookNs = 50'000'000;

// What was written before is visible to others before anything that is read after.
void FullFence() {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer knows no fences; a read-modify-write has the same effect where it runs.
  static std::atomic<int> word{0};
  word.fetch_add(0);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}
}  // namespace

Peers::Peers(const ShmOptions& options, const Clock& clock, MemoryFile control, MemoryFile arena)
    : options_(options),
      clock_(clock),
      control_memory_(std::move(control)),
      arena_(std::move(arena)),
      processes_(static_cast<size_t>(options.size)),
      pids_(static_cast<size_t>(options.size)),
      bells_(static_cast<size_t>(options.size)),
      controls_(static_cast<size_t>(options.size)),
      arenas_(static_cast<size_t>(options.size)),
      arena_bytes_(static_cast<size_t>(options.size)),
      waited_for_(static_cast<size_t>(options.size)),
      seen_dead_(static_cast<size_t>(options.size)),
      sentry_(clock) {
  arena_.Populate(kReadyArenaBytes);
}

absl::StatusOr<std::unique_ptr<Peers>> Peers::Meet(const ShmOptions& options, const Clock& clock) {
  if (options.size < 1 || options.size > limits::kLocalWorkersMax || options.rank < 0 ||
      options.rank >= options.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", options.rank, " of ", options.size, " is not possible: shared memory takes 1 to ",
        limits::kLocalWorkersMax, " workers, and ranks count from 0"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(MemoryFile control,
                             MemoryFile::Create("syncopate-control", sizeof(Control)));
  SYNCOPATE_ASSIGN_OR_RETURN(MemoryFile arena,
                             MemoryFile::Create("syncopate-arena", options.arena_bytes));
  std::unique_ptr<Peers> peers(new Peers(options, clock, std::move(control), std::move(arena)));
  SYNCOPATE_RETURN_IF_ERROR(peers->Connect());
  return peers;
}

absl::Status Peers::Connect() {
  const int64_t deadline_ns = clock_.NowNs() + options_.start_timeout_ns;
  const size_t self = static_cast<size_t>(options_.rank);
  controls_[self] = reinterpret_cast<Control*>(control_memory_.data());
  arenas_[self] = arena_.memory().data();
  arena_bytes_[self] = arena_.memory().bytes();
  own().magic = kMagic;
  own().rank = options_.rank;
  own().pid = getpid();
  own().beat_ns.store(clock_.NowNs());
  own().bell.store(options_.bell ? 1 : 0);
  bells_[self] = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

  const IntroductionSpec spec = {.job = options_.job,
                                 .rank = options_.rank,
                                 .size = options_.size,
                                 .names = options_.names,
                                 .control_fd = control_memory_.fd(),
                                 .arena_fd = arena_.memory().fd(),
                                 .bell_fd = bells_[self].get(),
                                 .arena_bytes = arena_.memory().bytes(),
                                 .text = options_.terms};
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<Introduction> met, MeetPeers(spec, clock_, deadline_ns));
  std::vector<std::string> terms;
  for (const Introduction& peer : met) terms.push_back(peer.text);
  terms[self] = options_.terms;
  SYNCOPATE_RETURN_IF_ERROR(CompareTerms(terms));
  mapped_.reserve(2 * met.size());
  for (size_t rank = 0; rank < met.size(); ++rank) {
    if (rank == self) continue;
    Introduction& peer = met[rank];
    SYNCOPATE_ASSIGN_OR_RETURN(MemoryFile control,
                               MemoryFile::Open(std::move(peer.control), sizeof(Control)));
    SYNCOPATE_ASSIGN_OR_RETURN(MemoryFile arena,
                               MemoryFile::Open(std::move(peer.arena), peer.arena_bytes));
    controls_[rank] = reinterpret_cast<Control*>(control.data());
    arenas_[rank] = arena.data();
    arena_bytes_[rank] = arena.bytes();
    bells_[rank] = std::move(peer.bell);
    pids_[rank] = peer.pid;
    if (peer.pid != getpid()) processes_[rank] = std::move(peer.process);
    mapped_.push_back(std::move(control));
    mapped_.push_back(std::move(arena));
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckFences(deadline_ns));
  last_ns_ = since_ns_ = clock_.NowNs();
  for (const PrivateFd& process : processes_) {
    if (process.ok()) sentry_.Add(process.get(), ControlThread::kDuty);
  }
  sentry_.Start([this] { return Watch(); });
  return absl::OkStatus();
}

// Each worker says in its own memory whether it can end all others, and reads what they say.
absl::Status Peers::CheckFences(int64_t deadline_ns) {
  uint32_t answer = kFencesAll;
  for (int rank = 0; rank < options_.size; ++rank) {
    const size_t place = static_cast<size_t>(rank);
    if (rank == options_.rank || pids_[place] == getpid()) continue;
    const PrivateFd& process = processes_[place];
    // Signal 0 ends nothing. A process that is gone already (ESRCH) needs no ending.
    if (process.ok() && (SendSignal(process.unique(), 0) == 0 || errno == ESRCH)) continue;
    answer = kCannotFence | static_cast<uint32_t>(process.ok() ? errno : ENOSYS);
  }
  own().fencing.store(answer);
  FutexWakeAll(own().fencing);
  absl::Status refusal;
  for (int rank = 0; rank < options_.size; ++rank) {
    std::atomic<uint32_t>& said = control(rank).fencing;
    pollfd gone{.fd = processes_[static_cast<size_t>(rank)].get(), .events = POLLIN, .revents = 0};
    while (said.load() == 0) {
      const int64_t now_ns = clock_.NowNs();
      if (poll(&gone, 1, 0) == 1 || now_ns >= deadline_ns) {
        return WithBlast(absl::UnavailableError(absl::StrCat("worker ", Name(rank),
                                                             " was lost while the job started")),
                         BlastRadius::kJob, Name(rank));
      }
      FutexWait(said, 0, std::min(deadline_ns, now_ns + kLookNs));
    }
    if (said == kFencesAll || !refusal.ok()) continue;
    refusal = absl::FailedPreconditionError(
        absl::StrCat("rank ", Name(rank), " cannot end the process of another worker of its host (",
                     std::strerror(static_cast<int>(said & ~kCannotFence)),
                     "), as in a PID namespace of its own, so they cannot share memory"));
    refusal.SetPayload(kCannotFencePayload, absl::Cord());
  }
  return refusal;
}

Peers::~Peers() {
  if (!sentry_.running()) return;  // never got so far
  if (Pronounce(board(), options_.rank, Cause::kLeft, options_.rank)) RingAll();
  sentry_.Stop();
  pause_.TellLongest();
}

void Peers::Ring(int rank) {
  Control& peer = control(rank);
  FullFence();
  if (peer.sleepers.load(std::memory_order_relaxed) == 0) return;
  peer.doorbell.fetch_add(1);
  FutexWakeAll(peer.doorbell);
  if (peer.bell.load(std::memory_order_relaxed) == 0) return;
  const uint64_t one = 1;
  if (write(bells_[static_cast<size_t>(rank)].get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot ring the bell of worker ", Name(rank));
  }
}

void Peers::TellMail(int to, int from) {
  const uint64_t bit = uint64_t{1} << from;
  // By `from` it has been told, and has not looked yet. That another has told it does not count: that
  // one may have died before it rang.
  if ((control(to).mail_from.fetch_or(bit) & bit) != 0) return;
  const uint64_t one = 1;
  if (write(bells_[static_cast<size_t>(to)].get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot tell worker ", Name(to), " that it has mail");
  }
}

uint64_t Peers::TakeMailFrom() {
  uint64_t drained = 0;
  // Emptied before the look: what is told after the look makes it readable again. The control thread hears each
  // ring by itself, which saves it a system call for each message.
  if (mail_bell() >= 0 && !has_work_ && read(mail_bell(), &drained, sizeof(drained)) < 0 &&
      errno != EAGAIN) {
    Log(LogLevel::kWarn, "cannot read the mail bell");
  }
  return own().mail_from.exchange(0);
}

void Peers::RingAll() {
  for (int rank = 0; rank < options_.size; ++rank) {
    Ring(rank);
    // Of a loss each is told as by itself: whatever others have told it, this rings.
    if (!options_.bell) TellMail(rank, options_.rank);
  }
}

HeldProcess Peers::LookAt(int rank) const {
  const PrivateFd& process = processes_[static_cast<size_t>(rank)];
  const pid_t number = process.ok() ? NumberInProc(process.unique()) : 0;
  return number > 0 ? LookAtProcess(number) : HeldProcess{};
}

bool Peers::Fence(int rank, Cause cause, const std::string& how) {
  const PrivateFd& process = processes_[static_cast<size_t>(rank)];
  if (!process.ok()) return true;  // a thread of this process
  if (options_.on_ending) {
    options_.on_ending(pids_[static_cast<size_t>(rank)],
                       how.empty() ? WhyEnded(cause) : absl::StrCat(WhyEnded(cause), "; ", how));
  }
  if (SendSignal(process.unique(), SIGKILL) != 0 && errno != ESRCH) {
    Log(LogLevel::kWarn, "worker ", Name(rank), " cannot be ended: ", std::strerror(errno));
    return false;
  }
  pollfd gone{.fd = process.get(), .events = POLLIN, .revents = 0};
  if (poll(&gone, 1, kFenceMs) != 1) {
    Log(LogLevel::kWarn, "worker ", Name(rank), " was killed and has not vanished within ",
        kFenceMs, " ms", how.empty() ? "" : ": ", how);
  }
  return true;
}

void Peers::Expel(int rank, Cause cause) {
  if (IsLost(board(), rank)) return;
  if (cause != Cause::kDied) {
    const HeldProcess held = LookAt(rank);
    if (cause == Cause::kStuck && held.hold == Hold::kDebugger) cause = Cause::kStuckInDebugger;
    if (cause == Cause::kStuck && held.hold == Hold::kFreezer) cause = Cause::kStuckFrozen;
    if (!Fence(rank, cause, held.how)) return;
  }
  if (Pronounce(board(), rank, cause, options_.rank)) {
    Log(LogLevel::kInfo, "worker ", Name(rank), " ", Describe(cause));
  }
  RingAll();
}

void Peers::Stuck(int rank) {
  HeldProcess held;
  if (options_.when_stuck != WhenStuck::kEnd) held = LookAt(rank);
  const bool wait = options_.when_stuck == WhenStuck::kWait || held.hold != Hold::kNone;
  if (!wait) return Expel(rank, Cause::kStuck);
  if (waited_for_[static_cast<size_t>(rank)]) return;
  waited_for_[static_cast<size_t>(rank)] = true;
  // The first of those that wait says so.
  for (int other = 0; other < options_.rank; ++other) {
    if (other != rank && !IsLost(board(), other)) return;
  }
  Log(LogLevel::kWarn, "waiting for worker ", Name(rank), ", which has no heartbeat",
      held.how.empty() ? "" : ": ", held.how, " (SYNCOPATE_STUCK=kill ends such workers)");
}

bool Peers::LookForDeaths() {
  bool any = false;
  for (int rank = 0; rank < options_.size; ++rank) {
    const PrivateFd& process = processes_[static_cast<size_t>(rank)];
    if (!process.ok() || seen_dead_[static_cast<size_t>(rank)]) continue;
    pollfd gone{.fd = process.get(), .events = POLLIN, .revents = 0};
    if (poll(&gone, 1, 0) != 1) continue;
    any = true;
    seen_dead_[static_cast<size_t>(rank)] = true;
    sentry_.Remove(process.get());
    Expel(rank, Cause::kDied);
  }
  return any;
}

// A process that ended shows at once on its pidfd, one that is stopped by its missing heartbeats.
int64_t Peers::Watch() {
  const int64_t now_ns = clock_.NowNs();
  const int64_t due_ns = now_ns + options_.beat_ns;
  own().beat_ns.store(now_ns, std::memory_order_relaxed);
  pause_.Acts(now_ns, due_ns);
  if (now_ns - last_ns_ > 3 * options_.beat_ns) since_ns_ = now_ns;
  last_ns_ = now_ns;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank || IsLost(board(), rank)) continue;
    const int64_t beat_ns = control(rank).beat_ns.load(std::memory_order_relaxed);
    if (now_ns - std::max(beat_ns, since_ns_) > options_.stuck_ns) {
      Stuck(rank);
    } else {
      waited_for_[static_cast<size_t>(rank)] = false;
    }
  }
  const bool deaths = LookForDeaths();
  // Another worker's verdict: wake our own threads so that they see it.
  const uint64_t losses = CountVerdicts(board());
  if (losses != known_losses_) {
    known_losses_ = losses;
    Ring(options_.rank);
    if (!options_.bell) TellMail(options_.rank, options_.rank);
  }
  return deaths ? now_ns : due_ns;  // to end a process may have taken a while
}

void Peers::SetControlWork(std::function<void()> work) {
  const bool any = work != nullptr;
  sentry_.SetWork(std::move(work));
  if (mail_bell() < 0 || any == has_work_.exchange(any)) return;
  if (any) {
    sentry_.AddBell(mail_bell(), ControlThread::kWork);
  } else {
    sentry_.Remove(mail_bell());
  }
}

}  // namespace syncopate::transport::shm
