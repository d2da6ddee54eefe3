#include "simulation/simulation.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "simulation/frame_network.h"
#include "simulation/simulation_run.h"
#include "simulation/socket_network.h"

namespace syncopate::simulation {
namespace {

using engine::Engine;
using engine::EngineGroup;
using transport::LoopNetwork;
using transport::net::Core;
using transport::net::CoreTransport;

// The job is left alone for this long before the survivors are compared.
constexpr int64_t kQuietNs = 9 * kSecond;
// The longest sleep of a worker that waits for nothing.
constexpr int64_t kSleepNs = 100 * kMs;

}  // namespace

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
    worker.mailbox.left = scenario_.mail;
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
    if (scenario_.proposals >= 0) {
      worker.seat = std::make_unique<AgreementSeat>(*worker.transport, worker.clock,
                                                    Mix(scenario_.seed, Index(rank) + 0xa9),
                                                    scenario_.proposals);
    }
    worker.engine = std::make_unique<Engine>(*worker.transport, worker.clock, Engine::Pump::kNone);
    // They do not begin together.
    time_.After(random_.Between(0, 3 * kMs), [this, &worker] {
      worker.begun = true;
      JoinAgreement(worker);
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
  TakeMail(worker);
  PostMail(worker);
  const bool agreed = Agree(worker);
  const bool ended = CollectCalls(worker);
  const bool started = StartCall(worker);
  const bool moved = moved_engine || agreed || ended || started;
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
  if (worker.seat != nullptr && worker.seat->transport.work_at_ns() < INT64_MAX) {
    next_ns = std::min(next_ns, worker.seat->transport.work_at_ns() - worker.clock.ahead_ns());
  }
  if (worker.busy_until_ns > now_ns) next_ns = std::min(next_ns, worker.busy_until_ns);
  for (const auto& run : worker.groups) {
    for (const Call& call : run->under_way) {
      const int64_t deadline_ns = call.deadline_ns - worker.clock.ahead_ns();
      if (deadline_ns > now_ns) next_ns = std::min(next_ns, deadline_ns);
    }
  }
  PlanTurn(worker, std::max(next_ns, now_ns + kUs));
}

// ---- a whole run

void Simulation::Tear() {
  for (auto& worker : workers_) {
    worker->clock.Rush();
    worker->dead = true;  // it has no turns any more
  }
  for (auto& worker : workers_) {
    worker->groups.clear();
    worker->seat.reset();
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
    posting_ = true;
    const bool ended = RunWhile(busy, kRunNsMax);
    posting_ = false;
    if (ended) return;
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
    if (worker->stops == 0) continue;
    any = true;
    Resume(*worker);
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
  CheckMail(survivors);
  if (report_.failure.empty()) AgreeOnce(survivors);
  CheckAgreement(survivors);
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

// What workers log is of interest where one run is looked at.
Report Simulate(uint64_t seed, World world, bool trace) {
  (void)SetUpLog(trace ? "TRACE" : "OFF", "");
  return Simulation(seed, world, trace).Run();
}

std::string RepeatCommand(uint64_t seed, World world) {
  return absl::StrCat("tests/campaign --seed ", seed, " --seeds 1 --world ",
                      world == World::kFrames ? "frames" : "sockets", " --trace");
}

}  // namespace syncopate::simulation
