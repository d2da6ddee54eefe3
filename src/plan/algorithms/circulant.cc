// Reduce-scatter and all-gather over a circulant graph: a worker only talks to those that are n/2,
// n/4, ..., 1 positions away (rounded up). For every number of workers, not only for powers of two,
// nobody sends more than the least that any algorithm must send, and each phase has ceil(lg n)
// rounds, the fewest there can be if a worker sends one message at a time. (Träff: Optimal,
// non-pipelined reduce-scatter and allreduce algorithms, 2024. The all-gather is older: Bruck, Ho,
// Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport
// message-passing systems, 1997.)
//
// Workers stand in a circle of n positions, and each position owns a block. In the round with skip
// s that follows the one with skip e (e = n at first), position p sends what it has added up so far
// of the blocks of p + s, ..., p + e - 1 to position p + s, which adds it to its own; p then goes on
// with the s blocks of p, ..., p + s - 1. What a worker sends in a round and what it adds to are
// different blocks, because e - s <= s. After the round with skip 1 a worker is left with its own
// block, to which everybody has contributed. The all-gather is the same in reverse.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

// A round moves the blocks of `skip` to `end` - 1 positions further on by `skip` positions.
struct Round {
  uint32_t skip = 0;
  uint32_t end = 0;
};

// The rounds of a reduce-scatter among `size` workers, with the longest skip first.
std::vector<Round> RoundsOf(size_t size) {
  std::vector<Round> rounds;
  for (uint32_t end = static_cast<uint32_t>(size); end > 1; end = rounds.back().skip) {
    rounds.push_back({.skip = (end + 1) / 2, .end = end});
  }
  return rounds;
}

// Calls `move(p, p + skip, chunks)` for each position p and the chunks of the blocks that move
// between the two. A run of blocks that goes past the last one makes two messages. The runs of p in
// all rounds lie behind one another and go once around the circle, so that there is at most one
// more message for each position in a phase.
template <typename Function>
void ForEachMessage(const Round& round, uint32_t size, const Function& move) {
  const uint32_t count = round.end - round.skip;
  for (uint32_t position = 0; position < size; ++position) {
    const uint32_t other = (position + round.skip) % size;
    const uint32_t before_seam = std::min(count, size - other);
    move(position, other, Data(other, before_seam));
    if (before_seam < count) move(position, other, Data(0, count - before_seam));
  }
}

// Chunk p is the block of position p, where the worker ranks[p] stands.
void ReduceScatter(const std::vector<int>& ranks, ProgramBuilder* builder) {
  for (const Round& round : RoundsOf(ranks.size())) {
    ForEachMessage(round, static_cast<uint32_t>(ranks.size()),
                   [&](uint32_t position, uint32_t other, Chunks chunks) {
                     builder->MoveReduce(ranks[position], ranks[other], chunks);
                   });
  }
}

void AllGather(const std::vector<int>& ranks, ProgramBuilder* builder) {
  const std::vector<Round> rounds = RoundsOf(ranks.size());
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    ForEachMessage(*round, static_cast<uint32_t>(ranks.size()),
                   [&](uint32_t position, uint32_t other, Chunks chunks) {
                     builder->Move(ranks[other], ranks[position], chunks);
                   });
  }
}

// Seats the ranks so that those beside each other in `ranks` are the longest skip apart, because
// half of the data moves by that skip, and neighbours are the likeliest to be close. For a power of
// two a seat's number is the bits of the index in reverse.
std::vector<int> Seated(const std::vector<int>& ranks) {
  std::vector<uint32_t> seats = {0};  // of the smaller circle whose positions are doubled next
  const std::vector<Round> rounds = RoundsOf(ranks.size());
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    std::vector<uint32_t> doubled;
    for (const uint32_t seat : seats) {
      doubled.push_back(seat);
      if (seat + round->skip < round->end) doubled.push_back(seat + round->skip);
    }
    seats = std::move(doubled);
  }
  std::vector<int> seated(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) seated[seats[i]] = ranks[i];
  return seated;
}

absl::StatusOr<Program> PlanCirculantAllReduce(const CollectiveRequest& request,
                                               const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const std::vector<int> ranks = Seated(options.order.empty() ? request.active : options.order);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds,
                             CutEvenly(request.elements, ranks.size()));
  ProgramBuilder builder(request, "circulant", std::move(bounds));
  ReduceScatter(ranks, &builder);
  AllGather(ranks, &builder);
  return builder.Finish();
}

// Where blocks belong to workers, positions follow the ranks: the blocks of a message then lie
// behind one another, which they would not in any other order.
absl::StatusOr<Program> PlanCirculantReduceScatter(const CollectiveRequest& request,
                                                   const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kReduceScatter, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, /*pieces=*/1));
  ProgramBuilder builder(request, "circulant", std::move(bounds));
  ReduceScatter(request.active, &builder);
  return builder.Finish();
}

absl::StatusOr<Program> PlanCirculantAllGather(const CollectiveRequest& request,
                                               const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllGather, request, options));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, CutBlocks(request, /*pieces=*/1));
  ProgramBuilder builder(request, "circulant", std::move(bounds));
  AllGather(request.active, &builder);
  return builder.Finish();
}

// One message a round and one more for the seam, each with two ends.
uint64_t CirculantSteps(uint64_t workers, uint64_t phases) {
  return 2 * phases * workers * (static_cast<uint64_t>(std::bit_width(workers)) + 1);
}

}  // namespace

void RegisterCirculant(PlannerRegistry& registry) {
  const auto one_phase = [](int workers) {
    const double n = workers;
    return MessageCost{.rounds = static_cast<double>(RoundsOf(static_cast<size_t>(workers)).size()),
                       .sent = (n - 1) / n};
  };
  const auto steps = [](uint64_t phases) {
    return [phases](uint64_t workers, const PlannerOptions&) {
      return CirculantSteps(workers, phases);
    };
  };
  registry.Add({.name = "circulant",
                .collective = Collective::kAllReduce,
                .summary = "partners around a circle: least traffic in few rounds, any number",
                .preference = 55,
                .plan = PlanCirculantAllReduce,
                .variants = VariantsByPlace,
                .steps = steps(2)});
  registry.Add({.name = "circulant",
                .collective = Collective::kReduceScatter,
                .summary = "partners around a circle: few rounds, small blocks",
                .preference = 30,
                .plan = PlanCirculantReduceScatter,
                .steps = steps(1),
                .by_messages = one_phase});
  registry.Add({.name = "circulant",
                .collective = Collective::kAllGather,
                .summary = "partners around a circle: few rounds, small blocks",
                .preference = 30,
                .plan = PlanCirculantAllGather,
                .steps = steps(1),
                .by_messages = one_phase});
}

}  // namespace syncopate::plan
