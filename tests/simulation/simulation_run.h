// One run of a simulation (simulation.h): the job's workers, hosts and network, what each worker is
// doing, and what is checked on the way. Its functions stand in six files: simulation.cc makes it and
// lets time pass, simulation_calls.cc is what workers do, simulation_mail.cc what they tell each other
// beside, simulation_agreement.cc what they agree on, simulation_faults.cc what befalls them, and
// simulation_checks.cc what must hold at the end.
#ifndef SYNCOPATE_TESTS_SIMULATION_SIMULATION_RUN_H_
#define SYNCOPATE_TESTS_SIMULATION_SIMULATION_RUN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "simulation/agreement_seat.h"
#include "simulation/scenario.h"
#include "simulation/simulated_network.h"
#include "simulation/simulated_time.h"
#include "simulation/simulation.h"
#include "transport/loop/loop_transport.h"
#include "transport/net/core_transport.h"
#include "worker/live_agreement.h"

namespace syncopate::simulation {

// No run takes longer; one that does hangs.
inline constexpr int64_t kRunNsMax = 400 * kSecond;
inline constexpr uint64_t kEventsMax = 1'000'000;

inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 29);
}

inline uint64_t DigestOf(const std::byte* bytes, size_t size) {
  uint64_t digest = size;
  for (size_t i = 0; i < size; ++i) digest = Mix(digest, static_cast<uint64_t>(bytes[i]));
  return digest;
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
  int64_t start_ns = 0;
  int64_t deadline_ns = 0;  // by the worker's clock
};

// A group at one worker.
struct GroupRun {
  const GroupPlan* plan = nullptr;
  std::shared_ptr<engine::EngineGroup> group;
  int member = 0;
  size_t next = 0;  // call
  std::vector<Call> under_way;
  bool failed = false;
  bool ended() const { return under_way.empty() && (failed || next == plan->calls.size()); }
};

// What a worker has to do with mail.
struct Mailbox {
  using Key = std::pair<int, transport::MailKind>;  // the other one, message or parcel
  Random random;
  int left = 0;                         // how often it will still post
  std::map<Key, uint64_t> posted = {};  // and accepted
  std::map<Key, uint64_t> taken = {};
  std::set<int> gone = {};  // of whom the last mail has come
};

struct Worker {
  Worker(const SimulatedTime& time, int rank_in, int64_t ahead_ns, uint64_t seed)
      : rank(rank_in), clock(time, ahead_ns), random(seed), mailbox{.random = Random(~seed)} {}

  const int rank;
  HostClock clock;
  Random random;
  transport::Transport* local = nullptr;  // owned by `transport`
  std::unique_ptr<transport::net::CoreTransport> transport;
  std::unique_ptr<engine::Engine> engine;
  std::vector<std::unique_ptr<GroupRun>> groups;
  bool begun = false;  // it has made its groups
  bool dead = false;
  int stops = 0;           // faults that keep it from running
  int64_t stopped_ns = 0;  // since when
  int64_t slept_ns = 0;    // in all
  bool out = false;        // it was told that it is out of the job
  bool turn_planned = false;
  int64_t turn_ns = 0;
  uint64_t turns_planned = 0;
  int64_t sentry_ns = 0;
  int64_t busy_until_ns = 0;
  std::map<int, int64_t> noticed_ns;  // by lost rank
  Mailbox mailbox;
  std::unique_ptr<AgreementSeat> seat;  // null: the job has no agreement service
};

struct Host {
  std::unique_ptr<transport::LoopNetwork> network;  // null: one worker only
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

  // Mail.
  void PostMail(Worker& worker);
  void TakeMail(Worker& worker);
  void CheckMail(const std::vector<int>& survivors);

  // Agreement.
  void JoinAgreement(Worker& worker);
  bool Agree(Worker& worker);  // true if anything happened
  void Propose(Worker& worker, const std::string& kind);
  void Check(Worker& worker, const std::string& kind, uint64_t version, const std::string& value,
             worker::LiveAgreement::Checked checked);
  void Adopt(Worker& worker, const std::string& kind, uint64_t version, const std::string& value,
             int64_t from);
  void Decide(Worker& worker, const AgreementSeat::Proposal& proposal,
              const absl::StatusOr<int64_t>& from);
  void Advance(Worker& worker, const std::string& kind);
  bool MayHost(const std::vector<int>& survivors) const;
  void AgreeOnce(const std::vector<int>& survivors);
  void CheckAgreement(const std::vector<int>& survivors);
  void CheckValues(const Worker& worker);
  // How much later than it could be it is now for something that could happen since then.
  int64_t LateNs(int64_t since_ns) const {
    return time_.now_ns() - std::max(since_ns, trouble_ns_);
  }

  // Faults.
  void BeginFault(size_t index);
  void Apply(const Fault& fault, bool begin);
  void Kill(Worker& worker);
  // It runs again.
  void Resume(Worker& worker);
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
  int64_t trouble_ns_ = 0;  // when one last began or ended, or a loss was heard of
  bool posting_ = false;    // workers may post mail, and propose values
  // What survivors use, by kind and version, and when the first of them knew it.
  std::map<std::pair<std::string, uint64_t>, AgreementSeat::Adopted> agreed_;
  std::map<uint64_t, int64_t> time_up_ns_;  // by group: the earliest deadline of its calls
  uint64_t digest_ = 0;
  Report report_;
};

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

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_SIMULATION_RUN_H_
