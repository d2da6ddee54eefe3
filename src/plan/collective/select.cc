// Selection by trying: every planner makes its programs, in its variants and cut into several
// numbers of pieces, and the cost model plays each on the topology. What is too large to play or
// refuses is kept as a candidate with the reason, so that --explain can show why it was not chosen.
#include "plan/collective/select.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/digest.h"
#include "base/figures.h"
#include "base/status.h"
#include "base/units.h"
#include "plan/collective/planners.h"
#include "plan/collective/shared_memory.h"

namespace syncopate::plan {
namespace {

constexpr int kPieceCounts[] = {1, 2, 4, 8, 16, 32, 64};
// Cutting finer is not tried: the pieces of a share would be too small to be worth a message.
constexpr uint64_t kPieceBytesMin = 4096;

uint64_t StepsOf(const Program& program) {
  uint64_t steps = 0;
  for (const std::vector<Step>& list : program.steps) steps += list.size();
  return steps;
}

class Selector {
 public:
  Selector(const CollectiveRequest& request, size_t bytes_per_element, const Topology& topology,
           absl::Span<const int> placement, const SelectOptions& options)
      : request_(request),
        bytes_per_element_(bytes_per_element),
        topology_(topology),
        placement_(placement),
        options_(options),
        context_(request, bytes_per_element, topology, placement) {
    context_.memory = FindSharedMemory(request, topology, placement);
    context_.asked = !options.algorithm.empty();
    context_.chunk_bytes = options.chunk_bytes;
    context_.data = options.data;
  }

  absl::Status Try(const PlannerInfo& planner);
  absl::StatusOr<Selection> Choose();

 private:
  // Tries one variant of a planner with several numbers of pieces.
  absl::Status TryPieces(const PlannerInfo& planner, const Variant& variant);
  // Tries one variant with one number of pieces. `first`: the digest of the variant's first
  // program; a program that is equal to it (the planner does not cut) is left out and gives false.
  absl::StatusOr<bool> TryOne(const PlannerInfo& planner, const Variant& variant,
                              std::shared_ptr<const PlannerOptions> options, int pieces,
                              std::optional<Digest>* first);
  // Plays the program and notes it as the best one if it is.
  absl::Status Play(const PlannerInfo& planner, Candidate candidate, Program program);
  // What it takes on a host whose memory all share.
  void TimeOnHost(const PlannerInfo& planner, Candidate& candidate) const;
  void Skip(Candidate candidate, std::string why);
  std::string TooLarge(uint64_t steps, absl::string_view about) const;
  void MarkBestPieces(size_t begin);
  std::string Why() const;
  std::string WhatLimits() const;

  const CollectiveRequest& request_;
  const size_t bytes_per_element_;
  const Topology& topology_;
  const absl::Span<const int> placement_;
  const SelectOptions& options_;
  PlanningContext context_;

  Selection selection_;
  size_t best_ = 0;  // in selection_.candidates
  bool any_ = false;
};

// Where all workers reach each other's memory, the engine runs some programs in place instead of
// step by step. Then their time is that of the memory traffic, and what the steps would take as
// messages does not count.
void Selector::TimeOnHost(const PlannerInfo& planner, Candidate& candidate) const {
  const SharedMemory& memory = *context_.memory;
  const int workers = static_cast<int>(request_.active.size());
  const double bytes =
      static_cast<double>(request_.elements) * static_cast<double>(bytes_per_element_);
  candidate.in_place = planner.in_place != nullptr && workers == request_.workers;
  if (candidate.in_place) {
    candidate.steps_seconds = 0;
    candidate.on_host = InPlaceTime(memory, planner.in_place(workers), workers, bytes);
  } else {
    candidate.on_host = StepwiseTime(memory, workers, bytes, Reduces(request_.collective));
  }
}

// The estimate, if the planner has one, spares making a program that is far too large to be played.
// A planner that the user has asked for by name must say why it cannot; of the others that is only
// the reason why they are not chosen.
absl::StatusOr<bool> Selector::TryOne(const PlannerInfo& planner, const Variant& variant,
                                      std::shared_ptr<const PlannerOptions> options, int pieces,
                                      std::optional<Digest>* first) {
  if (options_.stop && options_.stop()) return absl::CancelledError("planning was given up");
  Candidate candidate;
  candidate.algorithm = planner.name;
  candidate.variant = variant.name;
  candidate.pieces = pieces;
  candidate.chunk_bytes = variant.options.chunk_bytes;
  candidate.slower = variant.slower;
  candidate.options = options;
  PlannerOptions mine = *options;
  mine.pieces = pieces;
  const uint64_t estimate = planner.steps ? planner.steps(request_.active.size(), mine) : 0;
  // Up to twice the limit the program is made and counted: an estimate that is somewhat too large
  // must not leave out a program that would fit.
  if (estimate / 2 > options_.steps_max) {
    Skip(std::move(candidate), TooLarge(estimate, "about "));
    return true;
  }
  absl::StatusOr<Program> program = planner.plan(request_, mine);
  if (!program.ok()) {
    if (context_.asked) return program.status();
    Skip(std::move(candidate), absl::StrCat("it refuses: ", program.status().message()));
    return true;
  }
  if (first != nullptr) {
    const Digest digest = DigestOf(*program);
    if (*first && **first == digest) return false;
    if (!*first) *first = digest;
  }
  SYNCOPATE_RETURN_IF_ERROR(Play(planner, std::move(candidate), *std::move(program)));
  return true;
}

std::string Selector::TooLarge(uint64_t steps, absl::string_view about) const {
  return absl::StrCat("its program has ", about, steps, " steps, more than the ",
                      options_.steps_max, " that are played");
}

void Selector::Skip(Candidate candidate, std::string why) {
  candidate.skipped = std::move(why);
  selection_.candidates.push_back(std::move(candidate));
}

absl::Status Selector::Play(const PlannerInfo& planner, Candidate candidate, Program program) {
  const uint64_t steps = StepsOf(program);
  if (steps > options_.steps_max) {
    Skip(std::move(candidate), TooLarge(steps, ""));
    return absl::OkStatus();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(cost::ProgramCost cost,
                             cost::CostOf(program, topology_, placement_, bytes_per_element_));
  candidate.steps_seconds = cost.seconds;
  candidate.messages = cost.messages;
  candidate.bytes_sent_max = cost.bytes_sent_max;
  candidate.bytes_sent_total = cost.bytes_sent_total;
  if (context_.memory) TimeOnHost(planner, candidate);
  candidate.seconds = candidate.steps_seconds * candidate.slower + candidate.on_host.seconds();
  selection_.candidates.push_back(candidate);
  // Candidates come in the order of preference, so the first of several that are alike stays.
  if (!any_ || candidate.seconds * kAlike < selection_.candidates[best_].seconds) {
    any_ = true;
    best_ = selection_.candidates.size() - 1;
    selection_.program = std::move(program);
    selection_.cost = std::move(cost);
  }
  return absl::OkStatus();
}

// Marks the best of the candidates from `begin` on, which differ in how they cut the data only.
void Selector::MarkBestPieces(size_t begin) {
  Candidate* best = nullptr;
  for (size_t i = begin; i < selection_.candidates.size(); ++i) {
    Candidate& candidate = selection_.candidates[i];
    if (!candidate.skipped.empty()) continue;
    if (best == nullptr || candidate.seconds * kAlike < best->seconds) best = &candidate;
  }
  if (best != nullptr) best->best_pieces = true;
}

// More pieces let a pipeline fill earlier and cost more messages; the best number depends on the
// topology, so some are played. The search ends where pieces become too small, where the planner
// turns out not to cut, and where a program is too large (more pieces would be larger).
absl::Status Selector::TryPieces(const PlannerInfo& planner, const Variant& variant) {
  const uint64_t bytes = request_.elements * bytes_per_element_;
  auto options = std::make_shared<PlannerOptions>(variant.options);
  options->bytes_per_element = bytes_per_element_;
  if (planner.cuts_by_variant) {
    return TryOne(planner, variant, std::move(options), 1, nullptr).status();
  }
  std::optional<Digest> first;
  const size_t begin = selection_.candidates.size();
  for (const int pieces : kPieceCounts) {
    if (options_.pieces == 0 && pieces > 1 &&
        bytes / static_cast<uint64_t>(pieces) < kPieceBytesMin) {
      break;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(
        const bool cuts,
        TryOne(planner, variant, options, options_.pieces > 0 ? options_.pieces : pieces, &first));
    if (!cuts || options_.pieces > 0 || !selection_.candidates.back().skipped.empty()) break;
  }
  MarkBestPieces(begin);
  return absl::OkStatus();
}

// A planner may keep itself out where it is of no use; one that was asked for by name is tried all
// the same. A variant that is only a finer cut of the one before it is not made after that one was
// too large.
absl::Status Selector::Try(const PlannerInfo& planner) {
  if (!context_.asked && planner.limit) {
    if (std::string why = planner.limit(context_); !why.empty()) {
      Candidate candidate;
      candidate.algorithm = planner.name;
      Skip(std::move(candidate), std::move(why));
      return absl::OkStatus();
    }
  }
  std::vector<Variant> variants = {{.name = ""}};
  if (planner.variants) {
    SYNCOPATE_ASSIGN_OR_RETURN(variants, planner.variants(context_));
  }
  const size_t begin = selection_.candidates.size();
  bool too_large = false;
  for (const Variant& variant : variants) {
    if (variant.finer && too_large) continue;
    SYNCOPATE_RETURN_IF_ERROR(TryPieces(planner, variant));
    too_large = !selection_.candidates.back().skipped.empty();
  }
  if (planner.cuts_by_variant) MarkBestPieces(begin);
  return absl::OkStatus();
}

// The busiest part of the topology, if it is busy for most of the time.
std::string Selector::WhatLimits() const {
  constexpr double kBusy = 0.6;
  double most = 0;
  std::string name;
  const auto look = [&](absl::string_view kind, const std::string& id,
                        const cost::ProgramCost::Load& load) {
    if (load.utilisation <= most * kAlike) return;
    most = load.utilisation;
    name = absl::StrCat(kind, " \"", id, "\"");
  };
  for (size_t i = 0; i < topology_.capacities.size(); ++i) {
    look("capacity", topology_.capacities[i].id, selection_.cost.capacities[i]);
  }
  for (size_t i = 0; i < topology_.links.size(); ++i) {
    look("link", topology_.links[i].id, selection_.cost.links[i]);
  }
  if (most >= kBusy) return absl::StrFormat("it is limited by %s, %.0f %% busy", name, 100 * most);
  return absl::StrCat("most of that is waiting, in a chain of ",
                      CountOf(selection_.cost.critical_chain.size(), "step"),
                      " that follow one another");
}

// One sentence for --explain: the winner, the best of another algorithm beside it, and what takes
// the time.
std::string Selector::Why() const {
  const std::vector<Candidate>& all = selection_.candidates;
  const Candidate& winner = all[0];
  std::string why =
      absl::StrCat(Describe(winner), " is predicted to take ", FormatSeconds(winner.seconds));
  const auto other = std::find_if(all.begin(), all.end(), [&](const Candidate& candidate) {
    return candidate.best_pieces && candidate.algorithm != winner.algorithm;
  });
  if (other != all.end() && winner.seconds > 0) {
    const double ratio = other->seconds / winner.seconds;
    absl::StrAppend(&why, ", ", Describe(*other), ", the next, ",
                    ratio < 1.005 ? "as long" : absl::StrFormat("%.2f times as long", ratio));
  }
  if (winner.seconds == 0) return absl::StrCat(why, ": there is nothing to wait for");
  if (!winner.in_place) return absl::StrCat(why, "; ", WhatLimits());
  return absl::StrCat(why, "; ", FormatSeconds(winner.on_host.waiting()),
                      " of that is waiting for one another, the rest memory traffic");
}

// The winner comes first and the others by their time. It is moved and not sorted there: among
// candidates that are predicted alike the sort would not know of the planners' preference.
absl::StatusOr<Selection> Selector::Choose() {
  if (!any_) {
    const std::string reason =
        selection_.candidates.empty() ? "there is no planner" : selection_.candidates[0].skipped;
    return absl::ResourceExhaustedError(
        absl::StrCat("no program for ", Name(request_.collective), " can be played: ", reason));
  }
  std::vector<Candidate>& all = selection_.candidates;
  std::rotate(all.begin(), all.begin() + static_cast<ptrdiff_t>(best_),
              all.begin() + static_cast<ptrdiff_t>(best_) + 1);
  std::stable_sort(all.begin() + 1, all.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_pair(!a.skipped.empty(), a.seconds) <
           std::make_pair(!b.skipped.empty(), b.seconds);
  });
  selection_.why = Why();
  return std::move(selection_);
}

}  // namespace

std::string Describe(const Candidate& candidate) {
  std::string text = candidate.algorithm;
  if (candidate.pieces > 1) absl::StrAppend(&text, ", ", candidate.pieces, " pieces");
  if (!candidate.variant.empty()) absl::StrAppend(&text, ", ", candidate.variant);
  return text;
}

absl::StatusOr<Selection> SelectProgram(const CollectiveRequest& request, size_t bytes_per_element,
                                        const Topology& topology, absl::Span<const int> placement,
                                        const SelectOptions& options) {
  PlannerOptions asked;
  if (options.pieces > 0) asked.pieces = options.pieces;
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(request.collective, request, asked));
  if (placement.size() != static_cast<size_t>(request.workers)) {
    return absl::InvalidArgumentError(absl::StrCat("the placement has ", placement.size(),
                                                   " entries for ", request.workers, " workers"));
  }
  for (size_t worker = 0; worker < placement.size(); ++worker) {
    const int node = placement[worker];
    if (node < 0 || static_cast<size_t>(node) >= topology.nodes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement[", worker, "]: ", node, " is not the index of a node"));
    }
  }
  Selector selector(request, bytes_per_element, topology, placement, options);
  if (!options.algorithm.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner,
                               FindPlanner(request.collective, options.algorithm));
    SYNCOPATE_RETURN_IF_ERROR(selector.Try(*planner));
    return selector.Choose();
  }
  for (const PlannerInfo* planner : AllPlanners()) {
    if (planner->collective != request.collective) continue;
    SYNCOPATE_RETURN_IF_ERROR(selector.Try(*planner));
  }
  return selector.Choose();
}

// The size of the program is checked only where the caller may have asked for finer chunks than
// were played.
absl::StatusOr<Program> PlanAlike(const Selection& like, const CollectiveRequest& request,
                                  uint64_t chunk_bytes) {
  const Candidate& chosen = like.candidates.front();
  SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner,
                             FindPlanner(request.collective, chosen.algorithm));
  PlannerOptions options = *chosen.options;
  options.pieces = chosen.pieces;
  if (chunk_bytes > 0) options.chunk_bytes = chunk_bytes;
  SYNCOPATE_ASSIGN_OR_RETURN(Program program, planner->plan(request, options));
  const uint64_t steps = StepsOf(program);
  if (options.chunk_bytes > 0 && steps > SelectOptions().steps_max) {
    return absl::ResourceExhaustedError(absl::StrCat(chosen.algorithm, " with chunks of ",
                                                     options.chunk_bytes, " bytes would have ",
                                                     steps, " steps"));
  }
  return program;
}

}  // namespace syncopate::plan
