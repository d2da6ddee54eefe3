#include "simulation/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/engine.h"
#include "simulation/frame_network.h"
#include "simulation/scenario.h"
#include "simulation/simulated_time.h"
#include "simulation/socket_network.h"
#include "syncopate/status.h"
#include "transport/loop/loop_transport.h"
#include "transport/net/core_transport.h"

namespace syncopate::simulation {
namespace {

using engine::Engine;
using engine::EngineGroup;
using engine::OperationSpec;
using transport::LoopNetwork;
using transport::Loss;
using transport::net::Core;
using transport::net::CoreTransport;

// No run takes longer; one that does hangs.
constexpr int64_t kRunNsMax = 400 * kSecond;
constexpr uint64_t kEventsMax = 1'000'000;
// The job is left alone for this long before the survivors are compared.
constexpr int64_t kQuietNs = 9 * kSecond;
// A call whose deadline has passed ends once the members are asked, and a lost arbiter is replaced
// up to once for every fault.
constexpr int64_t kGraceNs = 6 * kSecond;
constexpr int64_t kNoticeKillNs = kSecond;
constexpr int64_t kNoticeSilenceNs = 5 * kSecond;
constexpr uint64_t kLastGroup = 0xf17a;
// The longest sleep of a worker that waits for nothing.
constexpr int64_t kSleepNs = 100 * kMs;

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 29);
}

uint64_t DigestOf(const std::byte* bytes, size_t size) {
  uint64_t digest = size;
  for (size_t i = 0; i < size; ++i) digest = Mix(digest, static_cast<uint64_t>(bytes[i]));
  return digest;
}

void Store(DataType type, std::byte* data, uint64_t element, double value) {
  const auto put = [&](auto typed) {
    std::memcpy(data + element * sizeof(typed), &typed, sizeof(typed));
  };
  switch (type) {
    case DataType::kFloat32:
      return put(static_cast<float>(value));
    case DataType::kFloat64:
      return put(value);
    case DataType::kInt32:
      return put(static_cast<int32_t>(value));
    default:
      return put(static_cast<int64_t>(value));
  }
}

double Load(DataType type, const std::byte* data, uint64_t element) {
  const auto get = [&](auto typed) {
    std::memcpy(&typed, data + element * sizeof(typed), sizeof(typed));
    return static_cast<double>(typed);
  };
  switch (type) {
    case DataType::kFloat32:
      return get(float{});
    case DataType::kFloat64:
      return get(double{});
    case DataType::kInt32:
      return get(int32_t{});
    default:
      return get(int64_t{});
  }
}

// A user's memory. After the call it stays as it is until the end, so that whoever writes to it
// later is found.
struct Memory {
  explicit Memory(size_t bytes_in) : bytes(new std::byte[bytes_in]), size(bytes_in) {}
  const std::unique_ptr<std::byte[]> bytes;
  const size_t size;
  uint64_t digest = 0;  // when it was given back
};

// A group as its members draw it.
struct GroupPlan {
  uint64_t key = 0;
  std::vector<int> members;
  std::vector<CallPlan> calls;
};

struct Call {
  int index = 0;
  std::shared_ptr<engine::Operation> operation;
  Memory* memory = nullptr;
  int64_t deadline_ns = 0;  // by the worker's clock
};

// A group at one worker.
struct GroupRun {
  const GroupPlan* plan = nullptr;
  std::shared_ptr<EngineGroup> group;
  int member = 0;
  size_t next = 0;  // call
  std::vector<Call> under_way;
  bool failed = false;
  bool ended() const { return under_way.empty() && (failed || next == plan->calls.size()); }
};

struct Worker {
  Worker(const SimulatedTime& time, int rank_in, int64_t ahead_ns, uint64_t seed)
      : rank(rank_in), clock(time, ahead_ns), random(seed) {}

  const int rank;
  HostClock clock;
  Random random;
  transport::Transport* local = nullptr;  // owned by `transport`
  std::unique_ptr<CoreTransport> transport;
  std::unique_ptr<Engine> engine;
  std::vector<std::unique_ptr<GroupRun>> groups;
  bool dead = false;
  int stops = 0;     // faults that keep it from running
  bool out = false;  // it was told that it is out of the job
  bool turn_planned = false;
  int64_t turn_ns = 0;
  uint64_t turns_planned = 0;
  int64_t sentry_ns = 0;
  int64_t busy_until_ns = 0;
  std::map<int, int64_t> noticed_ns;  // by lost rank
};

struct Host {
  std::unique_ptr<LoopNetwork> network;  // null: one worker only
  std::vector<int> ranks;
  int64_t ticked_ns = 0;
};

// How a call ended at a worker.
struct Outcome {
  bool ok = false;
  int suspect = -1;
};

class Simulation {
 public:
  Simulation(uint64_t seed, World world, bool trace)
      : scenario_(DrawScenario(seed)), world_(world), trace_(trace), random_(Mix(seed, 77)) {}

  Report Run();

 private:
  static size_t Index(int rank) { return static_cast<size_t>(rank); }
  Worker& worker(int rank) { return *workers_[Index(rank)]; }
  Host& host(int rank) { return hosts_[Index(scenario_.hosts[Index(rank)])]; }

  void MakeWorkers();
  const GroupPlan& PlanOf(uint64_t key, const std::vector<int>& members, size_t calls);
  void Join(Worker& worker, const GroupPlan& plan);
  void Tear();

  // Time.
  void Wake(int rank);
  void PlanTurn(Worker& worker, int64_t at_ns);
  void Turn(Worker& worker);
  void TickHost(Host& host);
  void WakeHost(const Host& host);
  // Runs events while `going` holds. False: it takes too long.
  template <typename Condition>
  bool RunWhile(Condition going, int64_t limit_ns);

  // What workers do.
  bool StartCall(Worker& worker);
  void StartCall(Worker& worker, GroupRun& run);
  bool CollectCalls(Worker& worker);
  void FinishCall(Worker& worker, GroupRun& run, Call& call);
  void CheckData(const Worker& worker, const GroupRun& run, const Call& call, bool ok);
  void Regroup(Worker& worker, const GroupRun& run, int suspect);
  void NoteLosses(Worker& worker);
  bool IsIdle(const Worker& worker) const;
  bool IsOnOneHost(const std::vector<int>& ranks) const;

  // Faults.
  void BeginFault(size_t index);
  void Apply(const Fault& fault, bool begin);
  void Kill(Worker& worker);
  void FindExpelled(const Host& host);

  // The end.
  std::vector<int> Survivors() const;
  void CompareLosses(const std::vector<int>& survivors);
  void CompareCalls(const std::vector<int>& survivors);
  std::set<int> Justified() const;
  std::set<int> LostBySingleFault() const;
  void CheckSingleFault(const std::vector<int>& survivors);
  void WorkOnce(const std::vector<int>& survivors);

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (report_.failure.empty()) {
      report_.failure = absl::StrCat("at ", time_.now_ns() / kUs, " us: ", parts...);
    }
  }
  // Something happened.
  template <typename... Parts>
  void Note(const Parts&... parts) {
    const std::string line = absl::StrCat(time_.now_ns(), " ", parts...);
    digest_ = Mix(digest_, DigestOf(reinterpret_cast<const std::byte*>(line.data()), line.size()));
    if (trace_) std::printf("%s\n", line.c_str());
  }

  const Scenario scenario_;
  const World world_;
  const bool trace_;
  Random random_;
  SimulatedTime time_;
  std::vector<Host> hosts_;
  std::unique_ptr<SimulatedNetwork> network_;
  std::map<uint64_t, std::unique_ptr<GroupPlan>> plans_;  // by key
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::pair<uint64_t, int>, std::map<int, Outcome>> outcomes_;  // by key and call; rank
  std::vector<std::vector<int>> cuts_;  // how many faults cut this link
  size_t faults_begun_ = 0;
  int faults_running_ = 0;  // that will end
  int64_t fault_ns_ = 0;    // when the last one began
  std::set<int> blamed_early_;
  uint64_t digest_ = 0;
  Report report_;
};

// ---- making it

void Simulation::MakeWorkers() {
  const int size = scenario_.size;
  cuts_.assign(Index(size), std::vector<int>(Index(size)));
  hosts_.resize(Index(1 + *std::max_element(scenario_.hosts.begin(), scenario_.hosts.end())));
  for (int rank = 0; rank < size; ++rank) host(rank).ranks.push_back(rank);
  for (Host& host : hosts_) {
    if (host.ranks.size() > 1) {
      host.network =
          std::make_unique<LoopNetwork>(static_cast<int>(host.ranks.size()), random_.Next());
    }
  }
  const auto wake = [this](int rank) { Wake(rank); };
  if (world_ == World::kFrames) {
    network_ = std::make_unique<FrameNetwork>(time_, scenario_.network, wake);
  } else {
    network_ = std::make_unique<SocketNetwork>(time_, scenario_.network, wake);
  }
  for (int rank = 0; rank < size; ++rank) {
    workers_.push_back(
        std::make_unique<Worker>(time_, rank, random_.Between(0, kSecond), random_.Next()));
    Worker& worker = *workers_.back();
    const Host& here = host(rank);
    std::unique_ptr<transport::Transport> local;
    if (here.network != nullptr) {
      const auto place = std::find(here.ranks.begin(), here.ranks.end(), rank);
      local = here.network->Attach(static_cast<int>(place - here.ranks.begin()));
      worker.local = local.get();
    }
    Core::Options options = {.rank = rank,
                             .size = size,
                             .job = 7,
                             .hosts = {},
                             .consensus = {.rank = rank, .size = size},
                             .limits = scenario_.limits};
    worker.transport =
        std::make_unique<CoreTransport>(options, worker.clock, here.ranks, std::move(local));
    worker.transport->Run(network_->Connect(rank, worker.transport->handler()),
                          CoreTransport::Sentry::kNone);
    worker.engine = std::make_unique<Engine>(*worker.transport, worker.clock, Engine::Pump::kNone);
    // They do not begin together.
    time_.After(random_.Between(0, 3 * kMs), [this, &worker] {
      for (size_t i = 0; i < scenario_.groups.size(); ++i) {
        const std::vector<int>& members = scenario_.groups[i];
        if (std::find(members.begin(), members.end(), worker.rank) == members.end()) continue;
        Join(worker, PlanOf(i + 1, members, Index(scenario_.calls)));
      }
      Wake(worker.rank);
    });
    PlanTurn(worker, random_.Between(0, kMs));
  }
}

const GroupPlan& Simulation::PlanOf(uint64_t key, const std::vector<int>& members, size_t calls) {
  std::unique_ptr<GroupPlan>& plan = plans_[key];
  if (plan == nullptr) {
    plan = std::make_unique<GroupPlan>();
    plan->key = key;
    plan->members = members;
    for (size_t i = 0; i < calls; ++i) {
      plan->calls.push_back(DrawCall(scenario_, key, static_cast<int>(members.size()),
                                     static_cast<int>(i), i + 1 == calls));
    }
  }
  return *plan;
}

void Simulation::Join(Worker& worker, const GroupPlan& plan) {
  if (worker.dead) return;
  auto run = std::make_unique<GroupRun>();
  run->plan = &plan;
  const auto& members = plan.members;
  run->member =
      static_cast<int>(std::find(members.begin(), members.end(), worker.rank) - members.begin());
  absl::StatusOr<std::shared_ptr<EngineGroup>> group = worker.engine->MakeGroup(plan.key, members);
  if (!group.ok()) {
    Fail("worker ", worker.rank, " cannot make group ", plan.key, ": ", group.status().message());
    return;
  }
  run->group = *std::move(group);
  worker.groups.push_back(std::move(run));
}

// ---- time

void Simulation::Wake(int rank) {
  Worker& woken = worker(rank);
  // Now and then a worker is held up.
  const int64_t delay_ns = woken.random.Below(400) == 0 ? woken.random.Between(0, 20 * kMs)
                                                        : woken.random.Between(0, 10 * kUs);
  PlanTurn(woken, time_.now_ns() + delay_ns);
}

void Simulation::PlanTurn(Worker& worker, int64_t at_ns) {
  if (worker.dead || worker.stops > 0) return;
  if (worker.turn_planned && worker.turn_ns <= at_ns) return;
  worker.turn_planned = true;
  worker.turn_ns = at_ns;
  const uint64_t number = ++worker.turns_planned;
  time_.At(at_ns, [this, &worker, number] {
    if (worker.turns_planned == number) Turn(worker);
  });
}

void Simulation::TickHost(Host& host) {
  if (host.network == nullptr) return;
  const int64_t ticks = std::min<int64_t>((time_.now_ns() - host.ticked_ns) / kUs + 1, 16);
  host.ticked_ns = time_.now_ns();
  for (int64_t i = 0; i < ticks; ++i) host.network->Tick();
}

void Simulation::WakeHost(const Host& host) {
  if (host.network == nullptr) return;
  for (const int rank : host.ranks) {
    Wake(rank);
    // By then everything that was said has come.
    time_.After(40 * kUs, [this, rank] { Wake(rank); });
  }
}

void Simulation::Turn(Worker& worker) {
  worker.turn_planned = false;
  if (worker.dead || worker.stops > 0) return;
  TickHost(host(worker.rank));
  const int64_t now_ns = time_.now_ns();
  const uint64_t what = worker.random.Below(5);
  if (what == 0 || now_ns >= worker.sentry_ns) {
    worker.sentry_ns = worker.transport->StepSentry() - worker.clock.ahead_ns();
  }
  const bool moved_engine = what != 1 && worker.engine->DriveOnce();
  NoteLosses(worker);
  const bool ended = CollectCalls(worker);
  const bool started = StartCall(worker);
  const bool moved = moved_engine || ended || started;
  Note("turn ", worker.rank, moved ? " moved" : "");
  network_->Turned(worker.rank);
  FindExpelled(host(worker.rank));
  if (worker.dead) return;
  if (moved) WakeHost(host(worker.rank));
  if (moved || what == 1) {
    PlanTurn(worker, now_ns + worker.random.Between(1, 20 * kUs));
    return;
  }
  int64_t next_ns = std::min(worker.sentry_ns, now_ns + kSleepNs);
  if (worker.busy_until_ns > now_ns) next_ns = std::min(next_ns, worker.busy_until_ns);
  for (const auto& run : worker.groups) {
    for (const Call& call : run->under_way) {
      const int64_t deadline_ns = call.deadline_ns - worker.clock.ahead_ns();
      if (deadline_ns > now_ns) next_ns = std::min(next_ns, deadline_ns);
    }
  }
  PlanTurn(worker, std::max(next_ns, now_ns + kUs));
}

template <typename Condition>
bool Simulation::RunWhile(Condition going, int64_t limit_ns) {
  for (uint64_t i = 0; report_.failure.empty(); ++i) {
    if (i % 16 == 0 && !going()) return true;
    if (time_.empty()) return !going();  // all are dead
    if (time_.now_ns() > limit_ns || time_.events() > kEventsMax) return false;
    if (faults_begun_ < scenario_.faults.size()) {
      const Fault& next = scenario_.faults[faults_begun_];
      if (next.at_event > 0 && time_.events() >= next.at_event) BeginFault(faults_begun_++);
    }
    time_.Step();
  }
  return false;
}

// ---- what workers do

bool Simulation::StartCall(Worker& worker) {
  if (worker.out || time_.now_ns() < worker.busy_until_ns || worker.groups.empty()) return false;
  const size_t first = worker.random.Below(worker.groups.size());
  for (size_t i = 0; i < worker.groups.size(); ++i) {
    GroupRun& run = *worker.groups[(first + i) % worker.groups.size()];
    if (run.failed || run.next == run.plan->calls.size() ||
        run.under_way.size() >= Index(scenario_.window)) {
      continue;
    }
    // A worker for which any call has failed does not make the last one, so that it fails for all.
    if (run.next + 1 == run.plan->calls.size() && !run.under_way.empty()) continue;
    StartCall(worker, run);
    worker.busy_until_ns = time_.now_ns() + worker.random.Between(0, scenario_.pause_ns);
    return true;
  }
  return false;
}

void Simulation::StartCall(Worker& worker, GroupRun& run) {
  const CallPlan& plan = run.plan->calls[run.next];
  Call call;
  call.index = static_cast<int>(run.next++);
  memories_.push_back(std::make_unique<Memory>(plan.request.elements * SizeOf(plan.type)));
  call.memory = memories_.back().get();
  for (uint64_t e = 0; e < plan.request.elements; ++e) {
    Store(plan.type, call.memory->bytes.get(), e,
          static_cast<double>(Initial(worker.rank, e, run.plan->key + Index(call.index))));
  }
  call.deadline_ns = worker.clock.NowNs() + plan.timeout_ns;
  OperationSpec spec;
  spec.group = run.group;
  spec.program = *engine::CompileProgram(plan.program, run.member);
  spec.data = call.memory->bytes.get();
  spec.type = plan.type;
  spec.op = plan.op;
  spec.weight = plan.weights[Index(run.member)];
  spec.priority = plan.priority;
  spec.deadline_ns = call.deadline_ns;
  Note("start ", worker.rank, " group ", run.plan->key, " call ", call.index, " ",
       Name(plan.request.collective), " ", plan.program.algorithm, " of ", plan.request.elements);
  call.operation = worker.engine->Start(std::move(spec));
  run.under_way.push_back(std::move(call));
}

bool Simulation::CollectCalls(Worker& worker) {
  bool any = false;
  for (size_t i = 0; i < worker.groups.size(); ++i) {  // a call that failed may add a group
    GroupRun& run = *worker.groups[i];
    for (size_t c = 0; c < run.under_way.size();) {
      if (!run.under_way[c].operation->done()) {
        ++c;
        continue;
      }
      Call call = std::move(run.under_way[c]);
      run.under_way.erase(run.under_way.begin() + static_cast<ptrdiff_t>(c));
      FinishCall(worker, run, call);
      any = true;
    }
    if (run.ended()) run.group.reset();
  }
  return any;
}

void Simulation::FinishCall(Worker& worker, GroupRun& run, Call& call) {
  const absl::Status status = call.operation->status();
  const BlastRadius blast = GetBlast(status).value_or(BlastRadius::kOperation);
  const int suspect = GetSuspect(status).value_or(-1);
  const std::string what =
      absl::StrCat("worker ", worker.rank, ", group ", run.plan->key, " (",
                   absl::StrJoin(run.plan->members, ","), "), call ", call.index);
  Note("done ", worker.rank, " group ", run.plan->key, " call ", call.index, " ",
       status.ok() ? "ok" : std::string(status.message()));
  ++(status.ok() ? report_.calls_new : report_.calls_old);
  CheckData(worker, run, call, status.ok());
  call.operation.reset();
  call.memory->digest = DigestOf(call.memory->bytes.get(), call.memory->size);
  const int64_t late_ns = worker.clock.NowNs() - call.deadline_ns;
  const auto faults = static_cast<int64_t>(scenario_.faults.size());
  int64_t stopped_ns = 0;
  for (const Fault& fault : scenario_.faults) {
    if (fault.kind == Fault::Kind::kStop) stopped_ns += std::max<int64_t>(fault.duration_ns, 0);
  }
  if (worker.stops == 0 && late_ns > kGraceNs * (1 + faults) + stopped_ns && !worker.out) {
    Fail(what, " ended ", late_ns / kMs, " ms after its deadline");
  }
  outcomes_[{run.plan->key, call.index}][worker.rank] = {.ok = status.ok(), .suspect = suspect};
  if (status.ok()) return;
  const std::vector<Loss> lost = worker.transport->Lost();
  const auto is_lost = [&](int rank) {
    return std::any_of(lost.begin(), lost.end(),
                       [&](const Loss& loss) { return loss.rank == rank; });
  };
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (!is_lost(suspect)) Fail(what, " blames one that is not lost: ", status.message());
      break;
    case absl::StatusCode::kAborted:
      if (!is_lost(worker.rank)) Fail(what, " is not out: ", status.message());
      worker.out = true;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      // On one host a member that knows of a loss breaks a gate at once for all. One that has not
      // heard of the loss yet blames the missing member by a timeout; the loss must follow.
      if (late_ns < 0 && IsOnOneHost(run.plan->members)) {
        blamed_early_.insert(suspect);
      } else if (!scenario_.hasty) {
        Fail(what, " hung until its deadline: ", status.message());
      }
      break;
    default:
      Fail(what, ": ", status.ToString());
  }
  if (blast == BlastRadius::kJob) worker.out = true;
  if (blast == BlastRadius::kGroup && !std::exchange(run.failed, true)) {
    Regroup(worker, run, suspect);
  }
}

void Simulation::CheckData(const Worker& worker, const GroupRun& run, const Call& call, bool ok) {
  const CallPlan& plan = run.plan->calls[Index(call.index)];
  if (!ok && !Reduces(plan.request.collective)) return;  // unspecified
  std::vector<std::vector<double>> initial;
  for (const int rank : run.plan->members) {
    initial.emplace_back();
    for (uint64_t e = 0; e < plan.request.elements; ++e) {
      initial.back().push_back(
          static_cast<double>(Initial(rank, e, run.plan->key + Index(call.index))));
    }
  }
  const std::vector<double> expected =
      ok ? Expected(plan, run.member, initial) : initial[Index(run.member)];
  for (uint64_t e = 0; e < plan.request.elements; ++e) {
    if (std::isnan(expected[e])) continue;
    const double value = Load(plan.type, call.memory->bytes.get(), e);
    const double slack =
        ok && plan.op == ReduceOp::kWeightedAverage ? 1e-9 * (1 + std::abs(expected[e])) : 0;
    if (std::abs(value - expected[e]) <= slack) continue;
    Fail("worker ", worker.rank, ", group ", run.plan->key, " (",
         absl::StrJoin(run.plan->members, ","), "), call ", call.index, " (",
         Name(plan.request.collective), ", ", plan.program.algorithm, ", ", plan.request.elements,
         " elements): element ", e, " is ", value, ", not the ", ok ? "new " : "old ", expected[e]);
    return;
  }
}

// As user code does: a new group without the worker to blame.
void Simulation::Regroup(Worker& worker, const GroupRun& run, int suspect) {
  if (suspect < 0 || suspect == worker.rank || worker.out) return;
  std::vector<int> members = run.plan->members;
  std::erase(members, suspect);
  if (members.size() < 2 || members.size() == run.plan->members.size()) return;
  ++report_.regroups;
  const uint64_t key = Mix(run.plan->key, Index(suspect) + 1);
  Join(worker, PlanOf(key, members, 1 + key % 4));
}

void Simulation::NoteLosses(Worker& worker) {
  if (worker.transport->losses() == worker.noticed_ns.size()) return;
  for (const Loss& loss : worker.transport->Lost()) {
    if (!worker.noticed_ns.emplace(loss.rank, time_.now_ns()).second) continue;
    Note("lost ", worker.rank, " knows ", loss.rank, ": ", loss.cause);
    if (loss.rank == worker.rank) worker.out = true;
  }
}

bool Simulation::IsIdle(const Worker& worker) const {
  if (worker.dead || worker.stops > 0) return true;
  return std::all_of(worker.groups.begin(), worker.groups.end(), [&](const auto& run) {
    return run->ended() || (worker.out && run->under_way.empty());
  });
}

bool Simulation::IsOnOneHost(const std::vector<int>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return scenario_.hosts[Index(rank)] == scenario_.hosts[Index(ranks.front())];
  });
}

// ---- faults

void Simulation::BeginFault(size_t index) {
  const Fault& fault = scenario_.faults[index];
  fault_ns_ = time_.now_ns();
  Note("fault ", ToText(fault));
  Apply(fault, true);
  if (fault.kind != Fault::Kind::kKill && fault.duration_ns >= 0) {
    ++faults_running_;
    time_.After(fault.duration_ns, [this, &fault] {
      --faults_running_;
      Note("no more: ", ToText(fault));
      Apply(fault, false);
    });
  }
  if (index + 1 < scenario_.faults.size()) {
    time_.After(scenario_.faults[index + 1].after_ns, [this, index] {
      ++faults_begun_;
      BeginFault(index + 1);
    });
  }
}

void Simulation::Apply(const Fault& fault, bool begin) {
  const auto cut = [&](int from, int to) {
    if (from == to) return;
    int& count = cuts_[Index(from)][Index(to)];
    count += begin ? 1 : -1;
    network_->Cut(from, to, count > 0);
  };
  Worker& target = worker(fault.rank);
  using Kind = Fault::Kind;
  switch (fault.kind) {
    case Kind::kKill:
      Kill(target);
      return;
    case Kind::kStop:
      target.stops += begin ? 1 : -1;
      target.turn_planned = false;
      ++target.turns_planned;
      if (!begin) Wake(fault.rank);
      return;
    case Kind::kCutPair:
      cut(fault.other, fault.rank);
      [[fallthrough]];
    case Kind::kCutOneWay:
      cut(fault.rank, fault.other);
      return;
    case Kind::kCutOff:
    case Kind::kMute:
    case Kind::kDeaf:
      for (int rank = 0; rank < scenario_.size; ++rank) {
        if (fault.kind != Kind::kDeaf) cut(fault.rank, rank);
        if (fault.kind != Kind::kMute) cut(rank, fault.rank);
      }
      return;
  }
}

void Simulation::Kill(Worker& worker) {
  if (std::exchange(worker.dead, true)) return;
  network_->Kill(worker.rank);
}

// A worker that is held for lost is ended by the others of its host, so that it does not write into
// their memory.
void Simulation::FindExpelled(const Host& host) {
  if (host.network == nullptr) return;
  for (const Loss& loss : worker(host.ranks.front()).local->Lost()) {
    Worker& expelled = worker(host.ranks[Index(loss.rank)]);
    if (expelled.dead) continue;
    Note("ended ", expelled.rank);
    Kill(expelled);
  }
}

// ---- the end

std::vector<int> Simulation::Survivors() const {
  std::vector<int> survivors;
  for (const auto& worker : workers_) {
    if (!worker->dead && !worker->out) survivors.push_back(worker->rank);
  }
  return survivors;
}

// Those whom the faults may have cost their place.
std::set<int> Simulation::Justified() const {
  std::map<int, int64_t> trouble_ns;
  std::set<int> struck;
  for (const Fault& fault : scenario_.faults) {
    const int64_t long_ns = fault.is_long() ? kRunNsMax : fault.duration_ns;
    trouble_ns[fault.rank] += long_ns;
    if (fault.is_long()) struck.insert(fault.rank);
    if (fault.kind == Fault::Kind::kCutPair || fault.kind == Fault::Kind::kCutOneWay) {
      trouble_ns[fault.other] += long_ns;
    }
  }
  std::set<int> justified;
  // Where the others are no majority, they may give up too.
  const bool any = 2 * struck.size() >= Index(scenario_.size);
  for (int rank = 0; rank < scenario_.size; ++rank) {
    if (any || trouble_ns[rank] > 2500 * kMs) justified.insert(rank);
  }
  return justified;
}

void Simulation::CompareLosses(const std::vector<int>& survivors) {
  const std::set<int> justified = Justified();
  const auto text = [](const std::vector<Loss>& losses) {
    return absl::StrJoin(losses, ", ", [](std::string* out, const Loss& loss) {
      absl::StrAppend(out, loss.order, ": ", loss.rank, " ", loss.cause);
    });
  };
  for (const auto& worker : workers_) {
    if (worker->dead) continue;
    for (const Loss& loss : worker->transport->Lost()) {
      if (!justified.contains(loss.rank)) {
        Fail("worker ", worker->rank, " holds ", loss.rank,
             " for lost without a reason: ", loss.cause);
      }
    }
  }
  if (survivors.empty()) return;
  const std::vector<Loss> first = worker(survivors.front()).transport->Lost();
  for (const int rank : survivors) {
    const std::vector<Loss> losses = worker(rank).transport->Lost();
    if (text(losses) != text(first)) {
      Fail("workers ", survivors.front(), " and ", rank, " differ on the losses: ", text(first),
           "; ", text(losses));
    }
  }
  for (int rank = 0; rank < scenario_.size; ++rank) {
    const bool lost = std::any_of(first.begin(), first.end(),
                                  [&](const Loss& loss) { return loss.rank == rank; });
    const bool survives = std::find(survivors.begin(), survivors.end(), rank) != survivors.end();
    if (blamed_early_.contains(rank) && !lost) Fail("worker ", rank, " was blamed and is not lost");
    if (lost == survives) {
      Fail("worker ", rank,
           lost ? " goes on and is held for lost by " : " is gone and not lost for ",
           survivors.front(), ": ", text(first));
    }
  }
  report_.losses = static_cast<int>(first.size());
  report_.blamed_early = static_cast<int>(blamed_early_.size());
}

void Simulation::CompareCalls(const std::vector<int>& survivors) {
  for (const auto& [id, by_rank] : outcomes_) {
    const GroupPlan& plan = *plans_.at(id.first);
    const CallPlan& call = plan.calls[Index(id.second)];
    int ok = 0, members = 0;
    std::set<int> suspects;
    for (const int rank : survivors) {
      if (std::find(plan.members.begin(), plan.members.end(), rank) == plan.members.end()) continue;
      ++members;
      const auto found = by_rank.find(rank);
      if (found == by_rank.end()) continue;
      if (found->second.ok) {
        ++ok;
      } else {
        suspects.insert(found->second.suspect);
      }
    }
    if (!Reduces(call.request.collective) || call.request.elements == 0) continue;
    if (ok > 0 && ok < members) {
      Fail("group ", id.first, ", call ", id.second, ": ", ok, " of ", members,
           " survivors have the new values");
    }
    if (suspects.size() > 1) {
      Fail("group ", id.first, ", call ", id.second, ": survivors blame ",
           absl::StrJoin(suspects, ","));
    }
  }
}

// Whom a single long fault must cost its place, and nobody else.
std::set<int> Simulation::LostBySingleFault() const {
  const Fault& fault = scenario_.faults.front();
  if (!fault.is_long()) return {};
  const bool pair = fault.kind == Fault::Kind::kCutPair || fault.kind == Fault::Kind::kCutOneWay;
  return {pair ? std::max(fault.rank, fault.other) : fault.rank};
}

void Simulation::CheckSingleFault(const std::vector<int>& survivors) {
  if (scenario_.faults.size() != 1 || scenario_.size < 3) return;
  const std::set<int> expected = LostBySingleFault();
  const bool kill = scenario_.faults.front().kind == Fault::Kind::kKill;
  std::set<int> lost;
  for (const int rank : survivors) {
    for (const auto& [other, at_ns] : worker(rank).noticed_ns) {
      lost.insert(other);
      int64_t& longest = kill ? report_.notice_kill_ns : report_.notice_silence_ns;
      longest = std::max(longest, at_ns - fault_ns_);
    }
  }
  if (lost != expected || survivors.size() + expected.size() != Index(scenario_.size)) {
    Fail("lost are ", absl::StrJoin(lost, ","), "; it should be ", absl::StrJoin(expected, ","));
  }
  if (report_.notice_kill_ns > kNoticeKillNs || report_.notice_silence_ns > kNoticeSilenceNs) {
    Fail("the loss was noticed after ",
         std::max(report_.notice_kill_ns, report_.notice_silence_ns) / kMs, " ms");
  }
}

void Simulation::WorkOnce(const std::vector<int>& survivors) {
  if (survivors.size() < 2) return;
  const GroupPlan& plan = PlanOf(kLastGroup, survivors, 4);
  for (const int rank : survivors) {
    Join(worker(rank), plan);
    Wake(rank);
  }
  const auto working = [&] {
    return !std::all_of(survivors.begin(), survivors.end(),
                        [&](int rank) { return IsIdle(worker(rank)); });
  };
  if (!RunWhile(working, time_.now_ns() + 20 * kSecond)) Fail("the last group does not end");
  for (size_t call = 0; call < plan.calls.size(); ++call) {
    for (const int rank : survivors) {
      if (!outcomes_[{kLastGroup, static_cast<int>(call)}][rank].ok) {
        Fail("the survivors cannot work together: call ", call, " failed at worker ", rank);
      }
    }
  }
}

void Simulation::Tear() {
  for (auto& worker : workers_) {
    worker->clock.Rush();
    worker->dead = true;  // it has no turns any more
  }
  for (auto& worker : workers_) {
    worker->groups.clear();
    worker->engine.reset();
  }
  for (auto& worker : workers_) worker->transport.reset();
  for (const auto& memory : memories_) {
    if (memory->digest != 0 && memory->digest != DigestOf(memory->bytes.get(), memory->size)) {
      Fail("memory of a call changed after the call had ended");
    }
  }
}

Report Simulation::Run() {
  Note(ToText(scenario_));
  MakeWorkers();
  const auto busy = [this] {
    return faults_begun_ < scenario_.faults.size() || faults_running_ > 0 ||
           !std::all_of(workers_.begin(), workers_.end(),
                        [this](const auto& worker) { return IsIdle(*worker); });
  };
  const auto wait_for_all = [&](absl::string_view when) {
    if (RunWhile(busy, kRunNsMax)) return;
    std::string waiting;
    for (const auto& worker : workers_) {
      if (!IsIdle(*worker)) absl::StrAppend(&waiting, " ", worker->rank);
    }
    Fail("it does not end ", when, "; workers that wait:", waiting);
  };
  const auto keep_quiet = [&] {
    const int64_t quiet_ns = time_.now_ns() + kQuietNs;
    RunWhile([&] { return time_.now_ns() < quiet_ns; }, quiet_ns + kSecond);
  };
  wait_for_all("");
  keep_quiet();
  bool any = false;  // was stopped for ever, and wakes
  for (auto& worker : workers_) {
    if (std::exchange(worker->stops, 0) == 0) continue;
    any = true;
    Wake(worker->rank);
  }
  if (any) {
    wait_for_all("after stopped workers woke");
    keep_quiet();
  }
  const std::vector<int> survivors = Survivors();
  report_.survivors = static_cast<int>(survivors.size());
  CompareLosses(survivors);
  CompareCalls(survivors);
  CheckSingleFault(survivors);
  if (report_.failure.empty()) WorkOnce(survivors);
  report_.events = time_.events();
  report_.virtual_ns = time_.now_ns();
  report_.digest = digest_;
  Tear();
  if (!report_.failure.empty()) {
    absl::StrAppend(&report_.failure, "\n  ", ToText(scenario_));
  }
  return report_;
}

}  // namespace

Report Simulate(uint64_t seed, World world, bool trace) {
  return Simulation(seed, world, trace).Run();
}

std::string RepeatCommand(uint64_t seed, World world) {
  return absl::StrCat("tests/campaign --seed ", seed, " --seeds 1 --world ",
                      world == World::kFrames ? "frames" : "sockets", " --trace");
}

}  // namespace syncopate::simulation
