#include "worker/program_cache.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/quick_select.h"

namespace syncopate::worker {
namespace {

// For larger calls the algorithm is chosen by their own size, not by one that stands for it.
constexpr uint64_t kAlikeBytesMax = 4 << 20;

// A size that stands for those near it: the next one below with two significant binary digits. A
// call with blocks stands for itself, since its blocks have sizes of their own.
uint64_t AlikeElements(const plan::ProgramKey& key) {
  const uint64_t elements = key.request.elements;
  if (elements < 4 || elements * key.element_bytes > kAlikeBytesMax ||
      !key.request.block_elements.empty()) {
    return elements;
  }
  const int digits = std::bit_width(elements);
  return elements >> (digits - 2) << (digits - 2);
}

// About how much memory a program takes.
uint64_t BytesOf(const PlannedProgram& planned) {
  const engine::CompiledProgram& compiled = *planned.program;
  const uint64_t workers = static_cast<uint64_t>(compiled.program.workers);
  const uint64_t bounds =
      compiled.program.data_bounds.size() + compiled.program.scratch_bounds.size();
  return 1024 + compiled.plan.size() * (sizeof(engine::CompiledProgram::StepPlan) + 32) +
         bounds * sizeof(uint64_t) +
         compiled.shares.size() * (sizeof(engine::CompiledProgram::Share) + workers * sizeof(int));
}

}  // namespace

// ---- plans to come

bool ComingPlan::WaitUntil(int64_t deadline_ns) {
  MutexLock lock(&mutex_);
  while (!done()) {
    const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
    if (left_ns <= 0) return false;
    finished_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  return true;
}

void ComingPlan::Finish(absl::StatusOr<PlannedProgram> result) {
  MutexLock lock(&mutex_);
  result_ = std::move(result);
  done_.store(true, std::memory_order_release);
  finished_.SignalAll();
}

const PlannedProgram* ProgramCache::Programs::Find(const plan::ProgramKey& key) const {
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : &found->second;
}

void ProgramCache::Programs::Add(const plan::ProgramKey& key, const PlannedProgram& planned) {
  if (programs_.size() >= kProgramsMax || bytes_ >= kProgramBytesMax) {
    programs_.clear();
    bytes_ = 0;
  }
  if (programs_.emplace(key, planned).second) bytes_ += BytesOf(planned);
}

// ---- the cache

ProgramCache::ProgramCache(int cores, std::optional<Network> network)
    : cores_(cores),
      placement_(network ? network->placement : std::vector<int>()),
      first_(network ? std::make_shared<const Version>(network->topology) : nullptr),
      stop_([this] { return stopping_.load(std::memory_order_relaxed); }) {}

ProgramCache::~ProgramCache() {
  std::thread threads[std::size(desks_)];
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (size_t i = 0; i < std::size(desks_); ++i) {
      threads[i].swap(desks_[i].thread);
      desks_[i].queued.SignalAll();
    }
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

std::shared_ptr<const ProgramCache::Version> ProgramCache::FindVersion(uint64_t version) {
  if (first_ == nullptr || version == 0 || version == first_->topology.version) return first_;
  for (const std::shared_ptr<const Version>& known : published_) {
    if (known->topology.version == version) return known;
  }
  return nullptr;
}

absl::Status ProgramCache::CheckVersion(uint64_t version) {
  if (first_ == nullptr && version != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no version ", version, " of the network: the job is on one host"));
  }
  MutexLock lock(&mutex_);
  if (first_ == nullptr || FindVersion(version) != nullptr) return absl::OkStatus();
  std::vector<uint64_t> known = {first_->topology.version};
  for (const auto& each : published_) known.push_back(each->topology.version);
  return absl::FailedPreconditionError(absl::StrCat("this worker does not plan by version ",
                                                    version, " of the network, but by versions ",
                                                    absl::StrJoin(known, ", ")));
}

// A version that is forgotten is replaced by the one that the job began with, which is never forgotten. Workers
// may forget one at different moments; a call that falls in between fails, since its digests differ.
std::pair<plan::ProgramKey, std::shared_ptr<const ProgramCache::Version>> ProgramCache::Place(
    const plan::ProgramKey& key) {
  plan::ProgramKey placed = key;
  placed.ranks.clear();
  placed.network_version = 0;
  if (first_ == nullptr || key.ranks.empty()) return {std::move(placed), nullptr};
  std::shared_ptr<const Version> version;
  {
    MutexLock lock(&mutex_);
    version = FindVersion(key.network_version);
    if (version == nullptr) version = first_;
  }
  std::vector<int> placement;
  bool one_host = true;
  for (const int rank : key.ranks) {
    placement.push_back(placement_[static_cast<size_t>(rank)]);
    one_host = one_host && plan::HostOf(version->topology, placement.back()) ==
                               plan::HostOf(version->topology, placement.front());
  }
  if (one_host) return {std::move(placed), nullptr};
  placed.ranks = version->places.Canonical(placement);
  placed.network_version = version->topology.version;
  return {std::move(placed), std::move(version)};
}

// On one host the choice follows from fixed costs and the number of cores, without a topology.
absl::StatusOr<Program> ProgramCache::PlanForHost(const plan::ProgramKey& key) const {
  absl::string_view algorithm = key.algorithm;
  if (algorithm.empty()) {
    HostCosts costs;
    costs.cores = cores_;
    algorithm = plan::QuickSelect(static_cast<int>(key.request.active.size()), costs)
                    .Algorithm(key.request.collective, key.request.elements * key.element_bytes);
  }
  plan::PlannerOptions options;
  options.bytes_per_element = key.element_bytes;
  return plan::PlanBy(algorithm, key.request, options);
}

absl::StatusOr<std::shared_ptr<const plan::Selection>> ProgramCache::ChoiceFor(
    plan::ProgramKey key, const Version& version) {
  // What does not bear on the choice is cleared, so that all such calls share one entry.
  key.request.elements = AlikeElements(key);
  key.self = 0;
  key.chunk_bytes = 0;
  {
    MutexLock lock(&mutex_);
    const auto found = choices_.find(key);
    if (found != choices_.end()) return found->second;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      plan::Selection selection,
      plan::SelectProgram(key.request, key.element_bytes, version.topology, key.ranks,
                          {.algorithm = key.algorithm, .stop = stop_}));
  Log(LogLevel::kInfo, Name(key.request.collective), " of about ",
      key.request.elements * key.element_bytes, " bytes: ", selection.why);
  // The program is of the size that stands for others, and the other candidates lost: neither is
  // asked for again.
  selection.program = {};
  selection.candidates.resize(1);
  auto choice = std::make_shared<const plan::Selection>(std::move(selection));
  MutexLock lock(&mutex_);
  if (choices_.size() >= kProgramsMax) choices_.clear();
  choices_[key] = choice;
  return choice;
}

absl::StatusOr<PlannedProgram> ProgramCache::Plan(const plan::ProgramKey& key,
                                                  const Version* version) {
  PlannedProgram planned;
  if (version == nullptr || key.request.elements == 0) {
    SYNCOPATE_ASSIGN_OR_RETURN(Program program, PlanForHost(key));
    SYNCOPATE_ASSIGN_OR_RETURN(planned.program,
                               engine::CompileProgram(std::move(program), key.self));
    return planned;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::shared_ptr<const plan::Selection> choice,
                             ChoiceFor(key, *version));
  absl::StatusOr<Program> program = plan::PlanAlike(*choice, key.request, key.chunk_bytes);
  planned.chunk_bytes =
      key.chunk_bytes > 0 ? key.chunk_bytes : choice->candidates.front().chunk_bytes;
  if (!program.ok() && key.algorithm.empty() && key.chunk_bytes == 0) {
    // A planner from outside may serve the size that stands for those near it, and not this one.
    SYNCOPATE_ASSIGN_OR_RETURN(
        plan::Selection exact,
        plan::SelectProgram(key.request, key.element_bytes, version->topology, key.ranks,
                            {.algorithm = "", .stop = stop_}));
    planned.chunk_bytes = exact.candidates.front().chunk_bytes;
    program = std::move(exact.program);
  }
  if (!program.ok()) return program.status();
  SYNCOPATE_ASSIGN_OR_RETURN(planned.program,
                             engine::CompileProgram(*std::move(program), key.self));
  return planned;
}

absl::StatusOr<PlannedProgram> ProgramCache::GetPlaced(
    const plan::ProgramKey& key, const std::shared_ptr<const Version>& version) {
  {
    MutexLock lock(&mutex_);
    if (const PlannedProgram* known = programs_.Find(key)) return *known;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(PlannedProgram planned, Plan(key, version.get()));
  MutexLock lock(&mutex_);
  // Another thread may have planned it meanwhile. It is the same program.
  if (const PlannedProgram* known = programs_.Find(key)) return *known;
  programs_.Add(key, planned);
  return planned;
}

absl::StatusOr<PlannedProgram> ProgramCache::Get(const plan::ProgramKey& key) {
  const auto [placed, version] = Place(key);
  return GetPlaced(placed, version);
}

absl::StatusOr<PlannedProgram> ProgramCache::PlanByFormula(const plan::ProgramKey& key,
                                                           const Version& version) {
  std::vector<int> hosts;
  for (const int device : key.ranks) hosts.push_back(plan::HostOf(version.topology, device));
  SYNCOPATE_ASSIGN_OR_RETURN(
      Program program, plan::PlanQuickly(key.request, key.element_bytes, version.figures, hosts));
  PlannedProgram planned;
  SYNCOPATE_ASSIGN_OR_RETURN(planned.program, engine::CompileProgram(std::move(program), key.self));
  return planned;
}

absl::StatusOr<PlannedProgram> ProgramCache::GetQuick(const plan::ProgramKey& key) {
  const auto [placed, version] = Place(key);
  if (version == nullptr || key.request.elements == 0) return GetPlaced(placed, version);
  {
    MutexLock lock(&mutex_);
    if (const PlannedProgram* known = quick_.Find(placed)) return *known;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(PlannedProgram planned, PlanByFormula(placed, *version));
  MutexLock lock(&mutex_);
  quick_.Add(placed, planned);
  return planned;
}

absl::StatusOr<ProgramCache::Offer> ProgramCache::Find(const plan::ProgramKey& key) {
  const auto [placed, version] = Place(key);
  const bool asked = !key.algorithm.empty() || key.chunk_bytes > 0;
  if (asked) return Offer{.now = {}, .better = true};
  Offer offer;
  if (version == nullptr || key.request.elements == 0) {
    SYNCOPATE_ASSIGN_OR_RETURN(offer.now, GetPlaced(placed, version));
    return offer;
  }
  if (absl::StatusOr<PlannedProgram> quick = GetQuick(key); quick.ok()) {
    offer.now = *std::move(quick);
  }
  offer.better = true;
  return offer;
}

bool ProgramCache::Knows(const plan::ProgramKey& key) {
  const auto [placed, version] = Place(key);
  MutexLock lock(&mutex_);
  return programs_.Find(placed) != nullptr;
}

std::shared_ptr<ComingPlan> ProgramCache::Order(const plan::ProgramKey& key, For whom) {
  const auto [placed, version] = Place(key);
  MutexLock lock(&mutex_);
  if (const PlannedProgram* known = programs_.Find(placed)) {
    auto made = std::make_shared<ComingPlan>();
    made->Finish(*known);
    return made;
  }
  std::shared_ptr<ComingPlan>& coming = coming_[placed];
  if (coming == nullptr) {
    coming = std::make_shared<ComingPlan>();
    Add(DeskFor(whom),
        {.key = placed,
         .make = [this, placed = placed, version = version] { return GetPlaced(placed, version); },
         .plan = coming});
  } else if (whom == For::kWaiting) {
    Hasten(coming.get());
  }
  return coming;
}

std::shared_ptr<ComingPlan> ProgramCache::Order(
    std::function<absl::StatusOr<PlannedProgram>()> make) {
  auto coming = std::make_shared<ComingPlan>();
  MutexLock lock(&mutex_);
  Add(DeskFor(For::kWaiting), {.key = std::nullopt, .make = std::move(make), .plan = coming});
  return coming;
}

void ProgramCache::Add(Desk& desk, Queued queued) {
  desk.queue.push_back(std::move(queued));
  if (!desk.thread.joinable()) desk.thread = std::thread([this, &desk] { MakePlans(desk); });
  desk.queued.Signal();
}

void ProgramCache::Hasten(const ComingPlan* plan) {
  std::deque<Queued>& later = DeskFor(For::kLater).queue;
  const auto found = std::find_if(later.begin(), later.end(),
                                  [plan](const Queued& each) { return each.plan.get() == plan; });
  if (found == later.end()) return;
  Queued queued = std::move(*found);
  later.erase(found);
  Add(DeskFor(For::kWaiting), std::move(queued));
}

// What nobody waits for any more, since its groups are gone, is not made.
void ProgramCache::MakePlans(Desk& desk) {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (desk.queue.empty()) {
      desk.queued.Wait(&mutex_);
      continue;
    }
    const Queued next = std::move(desk.queue.front());
    desk.queue.pop_front();
    const bool wanted =
        next.plan.use_count() > (next.key ? 2 : 1);  // more than here and in coming_
    if (wanted) {
      mutex_.Unlock();
      next.plan->Finish(next.make());
      mutex_.Lock();
    }
    if (next.key) coming_.erase(*next.key);
  }
}

// The programs of versions that are forgotten go when the memory is needed.
void ProgramCache::Publish(uint64_t version, const Topology& topology) {
  auto published = std::make_shared<Version>(topology);
  MutexLock lock(&mutex_);
  if (version != topology.version) return;
  published_.push_back(std::move(published));
  if (published_.size() > kVersionsMax) published_.pop_front();
}

}  // namespace syncopate::worker
