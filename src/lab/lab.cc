#include "lab/lab.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/child_process.h"
#include "lab/cpu_share.h"
#include "lab/flow.h"
#include "lab/netns.h"
#include "lab/proc_file.h"
#include "lab/requirements.h"
#include "lab/state.h"
#include "lab/wiring.h"

namespace syncopate::lab {
namespace {

constexpr int64_t kEndWaitNs = 10'000'000'000;
constexpr int kFlowPortFirst = 40'000;
constexpr int kFlowPorts = 4'000;

// A lab is made within moments; being interrupted in between would leave it half made.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

absl::Status RunScript(const Script& script) {
  std::vector<std::string> words = {script.tool};
  if (!script.netns.empty()) words.insert(words.end(), {"-n", script.netns});
  words.insert(words.end(), {"-batch", "-"});
  return Run(words, script.text).status();
}

absl::Status RunScripts(const std::vector<Script>& scripts) {
  for (const Script& script : scripts) SYNCOPATE_RETURN_IF_ERROR(RunScript(script));
  return absl::OkStatus();
}

// The kernel's settings of one namespace: no chatter of IPv6, nothing remembered from earlier
// connections, which had other rates.
absl::Status SetUpKernel(const std::string& netns) {
  SYNCOPATE_ASSIGN_OR_RETURN(const NamespaceVisit visit, NamespaceVisit::Enter(netns));
  const std::string folder = "/proc/sys/net/";
  for (const char* which : {"all", "default"}) {
    const std::string path = absl::StrCat(folder, "ipv6/conf/", which, "/disable_ipv6");
    if (access(path.c_str(), F_OK) == 0) SYNCOPATE_RETURN_IF_ERROR(WriteProcFile(path, "1"));
  }
  return WriteProcFile(folder + "ipv4/tcp_no_metrics_save", "1");
}

absl::Status Make(const Plan& plan, const Settings& settings) {
  SYNCOPATE_RETURN_IF_ERROR(RunScript(NamespaceScript(plan)));
  SYNCOPATE_RETURN_IF_ERROR(SetUpKernel(plan.fabric));
  for (const int host : Hosts(plan.spec)) {
    SYNCOPATE_RETURN_IF_ERROR(SetUpKernel(plan.netns[host]));
  }
  for (const int host : Hosts(plan.spec)) {
    const Node& node = plan.spec.nodes[static_cast<size_t>(host)];
    if (node.cores > 0) SYNCOPATE_RETURN_IF_ERROR(LimitCpu(plan.spec.name, node.name, node.cores));
  }
  return RunScripts(WiringScripts(plan, settings));
}

std::vector<std::string> NamespacesOf(const std::string& lab) {
  std::vector<std::string> names = ListNamespaces();
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const std::string& name) { return !IsNamespaceOf(lab, name); }),
              names.end());
  return names;
}

// Ends everything that lives in the namespaces; they are ours alone.
absl::Status EndAllIn(const std::vector<std::string>& namespaces, const Clock& clock) {
  const int64_t deadline_ns = clock.NowNs() + kEndWaitNs;
  while (true) {
    const std::vector<pid_t> processes = ProcessesIn(namespaces);
    if (processes.empty()) return absl::OkStatus();
    if (clock.NowNs() > deadline_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat("processes ", absl::StrJoin(processes, ", "),
                       " in the lab do not end although they were killed"));
    }
    for (const pid_t pid : processes) kill(pid, SIGKILL);
    const timespec pause = {0, 2'000'000};
    nanosleep(&pause, nullptr);
  }
}

absl::Status TakeAway(const std::string& lab, const Clock& clock) {
  // Again until nothing is found: a program of an `up` that was killed may just have ended.
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::string> namespaces = NamespacesOf(lab);
    if (namespaces.empty()) break;
    SYNCOPATE_RETURN_IF_ERROR(EndAllIn(namespaces, clock));
    for (const std::string& name : namespaces) SYNCOPATE_RETURN_IF_ERROR(RemoveNamespace(name));
  }
  RemoveCpuLimits(lab);
  RemoveState(lab);
  return absl::OkStatus();
}

std::string KindName(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kRate:
      return "rate";
    case ChangeKind::kCut:
      return "cut";
    case ChangeKind::kFlow:
      return "flow";
    case ChangeKind::kSlow:
      return "slow";
  }
  return "change";
}

// The CPU share of a host by the lab's file and the changes that stand; 0 if it is not limited.
double CoresOf(const Spec& spec, const std::vector<Change>& changes, int host) {
  const double own = spec.nodes[static_cast<size_t>(host)].cores;
  double cores = own;
  const int hosts = static_cast<int>(WorkerHosts(spec).size());
  const int machine = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (const Change& change : changes) {
    if (change.kind != ChangeKind::kSlow || change.a != host) continue;
    const double full = change.cores > 0 ? change.cores : own > 0 ? own : FairCores(machine, hosts);
    cores = full / change.factor;
  }
  return cores;
}

// Leads the running lab from the changes `before` to `after`, which differ by one.
absl::Status Switch(const Plan& plan, const std::vector<Change>& before,
                    const std::vector<Change>& after, const Change& which) {
  if (which.kind == ChangeKind::kSlow) {
    return LimitCpu(plan.spec.name, plan.spec.nodes[which.a].name,
                    CoresOf(plan.spec, after, which.a));
  }
  return RunScripts(ChangeScripts(plan, Effective(plan.spec, before), Effective(plan.spec, after)));
}

absl::Status ApplyTo(State& state, const Plan& plan, Change change, const Clock& clock) {
  const std::vector<Change> before = state.changes;
  ++state.changes_made;
  if (change.kind == ChangeKind::kFlow) {
    SYNCOPATE_RETURN_IF_ERROR(CheckIperf());
    const int port = kFlowPortFirst + state.changes_made % kFlowPorts;
    SYNCOPATE_ASSIGN_OR_RETURN(change.processes, StartFlow(plan, change, port, clock));
    state.changes.push_back(change);
    return SaveState(state);
  }
  // Written down first: what was not quite done can be undone.
  state.changes.push_back(change);
  SYNCOPATE_RETURN_IF_ERROR(SaveState(state));
  absl::Status done = Switch(plan, before, state.changes, change);
  if (done.ok()) return done;
  Switch(plan, state.changes, before, change).IgnoreError();
  state.changes = before;
  SaveState(state).IgnoreError();
  return done;
}

absl::Status CheckNewName(const State& state, const std::string& name) {
  SYNCOPATE_RETURN_IF_ERROR(CheckName(name, kLabNameBytesMax));
  for (const Change& change : state.changes) {
    if (change.name != name) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("there is a change called ", name, " already; choose another name"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Lab> Lab::Up(const Spec& spec, const std::string& name, const Clock& clock) {
  Spec named = spec;
  if (!name.empty()) named.name = name;
  SYNCOPATE_RETURN_IF_ERROR(Validate(named));
  SYNCOPATE_RETURN_IF_ERROR(CheckRequirements(named));
  SYNCOPATE_ASSIGN_OR_RETURN(const LabLock lock, LabLock::Take(clock));
  const std::vector<std::string> names = LabNames();
  if (std::find(names.begin(), names.end(), named.name) != names.end()) {
    return absl::AlreadyExistsError(
        absl::StrCat("a lab called ", named.name,
                     " is up (or was left half made); take it down with "
                     "syncopate lab down ",
                     named.name, ", or call this one otherwise by --name"));
  }
  const SignalsHeld held;
  State state;
  state.spec = named;
  SYNCOPATE_RETURN_IF_ERROR(SaveState(state));  // before anything is there that must be removed
  const Plan plan = MakePlan(named);
  absl::Status made = WriteFile(HostsPath(named.name), HostsFile(plan));
  if (made.ok()) made = Make(plan, Effective(named, {}));
  for (const BackgroundFlow& flow : named.flows) {
    if (!made.ok()) break;
    Change change;
    change.kind = ChangeKind::kFlow;
    change.name = absl::StrCat("flow", state.changes_made + 1);
    change.a = flow.from;
    change.b = flow.to;
    change.rate = flow.rate;
    change.seconds = flow.seconds;
    change.udp = flow.udp;
    made = ApplyTo(state, plan, change, clock);
  }
  if (made.ok()) {
    state.complete = true;
    made = SaveState(state);
  }
  if (!made.ok()) {
    TakeAway(named.name, clock).IgnoreError();
    return At(absl::StrCat("lab ", named.name, " could not be made and is gone again"), made);
  }
  return Lab(plan, &clock);
}

absl::StatusOr<Lab> Lab::Open(const std::string& name, const Clock& clock) {
  SYNCOPATE_RETURN_IF_ERROR(CheckBasics());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string resolved, ResolveName(name));
  SYNCOPATE_ASSIGN_OR_RETURN(const State state, LoadState(resolved));
  const std::vector<std::string> there = NamespacesOf(resolved);
  if (!state.complete || there.size() != Hosts(state.spec).size() + 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("lab ", resolved, " is only half there; clean up with syncopate lab down ",
                     resolved, " and make it again"));
  }
  return Lab(MakePlan(state.spec), &clock);
}

absl::Status Lab::Down(const std::string& name, const Clock& clock) {
  SYNCOPATE_RETURN_IF_ERROR(CheckBasics());
  SYNCOPATE_RETURN_IF_ERROR(CheckName(name, kLabNameBytesMax));
  if (AreWeIn(NamespacesOf(name))) {
    return absl::FailedPreconditionError(absl::StrCat("this command itself runs in lab ", name,
                                                      "; leave its host first, then take it down"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const LabLock lock, LabLock::Take(clock));
  const std::vector<std::string> names = LabNames();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no lab ", name,
                     names.empty() ? "; none is up" : "; up: ", absl::StrJoin(names, ", ")));
  }
  return TakeAway(name, clock);
}

std::vector<HostAddress> Lab::hosts() const {
  std::vector<HostAddress> hosts;
  for (const int host : WorkerHosts(plan_.spec)) {
    hosts.push_back({plan_.spec.nodes[host].name, plan_.address[host]});
  }
  return hosts;
}

std::vector<std::string> Lab::ExecWords(const std::string& syncopate,
                                        const std::string& host) const {
  return {syncopate, "lab", "exec", "--lab", name(), host, "--"};
}

std::string Lab::HostsWithSlots(const std::vector<int>& slots) const {
  std::vector<std::string> places;
  const std::vector<HostAddress> all = hosts();
  for (size_t i = 0; i < all.size() && i < slots.size(); ++i) {
    if (slots[i] > 0) places.push_back(absl::StrCat(all[i].name, ":", slots[i]));
  }
  return absl::StrJoin(places, ",");
}

std::string Lab::Agent(const std::string& syncopate) const {
  return absl::StrJoin(ExecWords(syncopate, "{host}"), " ");
}

absl::StatusOr<std::string> Lab::Apply(Change change, const std::string& as) {
  SYNCOPATE_ASSIGN_OR_RETURN(const LabLock lock, LabLock::Take(*clock_));
  SYNCOPATE_ASSIGN_OR_RETURN(State state, LoadState(name()));
  if (state.changes.size() >= kChangesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kChangesMax, " changes stand already; undo some"));
  }
  int number = state.changes_made + 1;
  change.name = as;
  while (change.name.empty() || (as.empty() && !CheckNewName(state, change.name).ok())) {
    change.name = absl::StrCat(KindName(change.kind), number++);
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckNewName(state, change.name));
  const std::string given = change.name;
  SYNCOPATE_RETURN_IF_ERROR(ApplyTo(state, plan_, std::move(change), *clock_));
  return given;
}

absl::Status Lab::Undo(const std::string& change) {
  SYNCOPATE_ASSIGN_OR_RETURN(const LabLock lock, LabLock::Take(*clock_));
  SYNCOPATE_ASSIGN_OR_RETURN(State state, LoadState(name()));
  const auto found = std::find_if(state.changes.begin(), state.changes.end(),
                                  [&](const Change& each) { return each.name == change; });
  if (found == state.changes.end()) {
    std::vector<std::string> names;
    for (const Change& each : state.changes) names.push_back(each.name);
    return absl::NotFoundError(absl::StrCat("lab ", name(), " has no change \"", change, "\"; ",
                                            names.empty() ? "none stands" : "it has ",
                                            absl::StrJoin(names, ", ")));
  }
  const Change undone = *found;
  const std::vector<Change> before = state.changes;
  state.changes.erase(found);
  if (undone.kind == ChangeKind::kFlow) {
    for (const ProcessId& process : undone.processes) EndProcess(process);
  } else {
    SYNCOPATE_RETURN_IF_ERROR(Switch(plan_, before, state.changes, undone));
  }
  return SaveState(state);
}

absl::StatusOr<std::vector<Change>> Lab::Changes() const {
  SYNCOPATE_ASSIGN_OR_RETURN(State state, LoadState(name()));
  return std::move(state.changes);
}

std::vector<int> SpreadSlots(int hosts, int workers, int per_host) {
  if (workers <= 0) return std::vector<int>(static_cast<size_t>(hosts), std::max(1, per_host));
  std::vector<int> slots;
  for (int i = 0; i < hosts; ++i) slots.push_back(workers / hosts + (i < workers % hosts ? 1 : 0));
  return slots;
}

}  // namespace syncopate::lab
