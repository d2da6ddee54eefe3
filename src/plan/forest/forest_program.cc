// The program of a forest plan: which sub-chunk goes along which edge, in which order.
//
// Every pair of trees owns a range of the data, cut into sub-chunks that follow each other through
// its two trees: up the reduce tree, down the broadcast tree. The messages of all pairs are laid
// out on one axis of time, on which a pair sends its sub-chunks evenly from 0 to 1 and a hop takes
// a fixed time. Sorted by that time they are the order of the program, so that all pairs progress
// together, which the plan's rates assume, and each worker sends first what is wanted first.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/forest/forest.h"

namespace syncopate::plan {
namespace {

// The time that a sub-chunk is taken to need for one edge, in units of the time in which one leaves
// the whole network; and how many of these units a worker may be ahead of what has come back to it,
// at least and for each pair. Leaves could send all they have at once. The links would then first
// carry reductions alone and later broadcasts alone, while the plan counts on both at once; and
// queues would overflow.
constexpr double kHop = 2;
constexpr double kWindow = 24;
constexpr double kWindowOfPair = 2;

// One sub-chunk along one edge.
struct Message {
  double time = 0;  // when it is sent if all goes well; the whole is 1
  uint32_t chunk = 0;
  int from = 0;
  int to = 0;
  bool reduce = false;
};

// The range of elements that a pair owns, cut into sub-chunks: `count` chunks from `first` on.
struct Range {
  uint32_t first = 0;
  uint32_t count = 0;
};

// Bounds between pairs fall on cache lines where the data is large enough that this moves a share
// by less than about a percent.
uint64_t Aligned(double element, uint64_t elements) {
  const uint64_t at = static_cast<uint64_t>(std::llround(element));
  if (elements >= 64 * kCutAlignment) return std::min(elements, at / kCutAlignment * kCutAlignment);
  return std::min(elements, at);
}

// Cuts the data by the shares; fills `ranges`.
absl::StatusOr<std::vector<uint64_t>> Cut(uint64_t elements, const std::vector<TreePair>& pairs,
                                          uint64_t chunk_elements, std::vector<Range>& ranges) {
  std::vector<uint64_t> bounds = {0};
  double before = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const uint64_t begin = bounds.back();
    before += pairs[i].share;
    const uint64_t end =
        i + 1 == pairs.size()
            ? elements
            : std::max(begin, Aligned(before * static_cast<double>(elements), elements));
    // A share can be so small that it rounds to nothing; its pair then owns no sub-chunk.
    ranges.push_back({static_cast<uint32_t>(bounds.size() - 1), 0});
    if (end == begin) continue;
    // The number of sub-chunks nearest to what was asked for, all of about one size: a short last
    // one would cost a message for little.
    const uint64_t chunks =
        std::max<uint64_t>(1, (end - begin + chunk_elements / 2) / chunk_elements);
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<uint64_t> cuts, CutEvenly(end - begin, chunks));
    for (size_t cut = 1; cut < cuts.size(); ++cut) bounds.push_back(begin + cuts[cut]);
    ranges.back().count = static_cast<uint32_t>(chunks);
  }
  return bounds;
}

// Equal chunks, a whole number of them for each pair: those that its share is worth, and one more
// for the pairs that would lose most. Fills `ranges`.
std::vector<uint64_t> CutInto(uint64_t elements, const std::vector<TreePair>& pairs,
                              uint32_t chunks, std::vector<Range>& ranges) {
  std::vector<double> lost;
  uint32_t given = 0;
  for (const TreePair& pair : pairs) {
    const double worth = pair.share * chunks;
    const uint32_t count = std::min(chunks - given, static_cast<uint32_t>(worth));
    ranges.push_back({0, count});
    lost.push_back(worth - count);
    given += count;
  }
  for (; given < chunks; ++given) {
    const auto most = std::max_element(lost.begin(), lost.end());
    ++ranges[most - lost.begin()].count;
    *most -= 1;
  }
  for (size_t i = 1; i < ranges.size(); ++i) {
    ranges[i].first = ranges[i - 1].first + ranges[i - 1].count;
  }
  std::vector<uint64_t> bounds;
  for (uint64_t i = 0; i <= chunks; ++i) {
    bounds.push_back(elements / chunks * i + std::min(i, elements % chunks));
  }
  return bounds;
}

// The depth of each worker in the tree: how many edges lie between it and the root.
std::vector<int> Depths(const WorkerTree& tree, int& deepest) {
  std::vector<int> depths(tree.parent.size(), 0);
  deepest = 0;
  for (const auto& [parent, child] : EdgesFromRoot(tree)) {
    depths[child] = depths[parent] + 1;
    deepest = std::max(deepest, depths[child]);
  }
  return depths;
}

// A sub-chunk leaves the deepest leaves first (stage 0), reaches the root after `height` stages,
// and the deepest receivers `depth` stages later. A leaf higher up waits, so that both children's
// parts of a sum arrive at a parent at about the same time.
void AddMessages(const TreePair& pair, Range range, double hop, std::vector<Message>& messages) {
  int height = 0;
  const std::vector<int> up = Depths(pair.reduce, height);
  int depth = 0;
  const std::vector<int> down = Depths(pair.broadcast, depth);
  for (uint32_t i = 0; i < range.count; ++i) {
    const double begin = static_cast<double>(i) / range.count;
    const auto add = [&](int stage, int from, int to, bool reduce) {
      messages.push_back({begin + stage * hop, range.first + i, from, to, reduce});
    };
    for (const auto& [parent, child] : EdgesFromRoot(pair.reduce)) {
      add(height - up[child], child, parent, true);
    }
    for (const auto& [parent, child] : EdgesFromRoot(pair.broadcast)) {
      add(height + down[child] - 1, parent, child, false);
    }
  }
}

// Lets a worker send to its parents no further ahead than a window beyond the sums that it got
// back.
class Pacing {
 public:
  Pacing(int workers, double window) : window_(window), steps_(workers, 0), results_(workers) {}

  // In the order in which the program is built, where every message is a step at both ends.
  void Note(const Message& message) {
    const uint32_t send = steps_[message.from]++;
    const uint32_t receive = steps_[message.to]++;
    if (!message.reduce) {
      results_[message.to].push_back({message.time, receive});
      return;
    }
    // The last result that comes before the window; a worker that has got none by then need not
    // wait.
    const std::vector<Result>& results = results_[message.from];
    const auto next =
        std::upper_bound(results.begin(), results.end(), message.time - window_,
                         [](double time, const Result& result) { return time < result.time; });
    if (next != results.begin()) waits_.push_back({message.from, send, (next - 1)->step});
  }

  void AddWaits(Program& program) const {
    for (const Wait& wait : waits_) {
      auto& after = program.steps[wait.worker][wait.step].after;
      const auto place = std::lower_bound(after.begin(), after.end(), wait.after);
      if (place == after.end() || *place != wait.after) after.insert(place, wait.after);
    }
  }

 private:
  struct Result {
    double time;
    uint32_t step;  // that receives it
  };
  struct Wait {
    int worker;
    uint32_t step;
    uint32_t after;
  };

  const double window_;
  std::vector<uint32_t> steps_;               // by worker, so far
  std::vector<std::vector<Result>> results_;  // by worker, in the order of time
  std::vector<Wait> waits_;
};

absl::Status CheckRequest(const CollectiveRequest& request, const ForestPlan& plan) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, {}));
  if (request.workers == plan.workers && request.active == plan.active) return absl::OkStatus();
  return absl::InvalidArgumentError("the plan is for other workers than the request");
}

// The data is cut at `bounds`; `ranges` by pair.
absl::StatusOr<Program> MakeProgram(const CollectiveRequest& request, const ForestPlan& plan,
                                    const std::vector<uint64_t>& bounds,
                                    const std::vector<Range>& ranges) {
  const bool relays = request.active.size() != static_cast<size_t>(request.workers);
  std::vector<uint64_t> scratch = relays ? bounds : std::vector<uint64_t>{0};
  uint32_t chunks = 1;
  for (const Range& range : ranges) chunks += range.count;
  const double hop = kHop / chunks;
  std::vector<Message> messages;
  if (request.active.size() > 1) {
    for (size_t i = 0; i < plan.pairs.size(); ++i) {
      AddMessages(plan.pairs[i], ranges[i], hop, messages);
    }
  }
  // Stable, so that the order of messages of one time is that of pairs and edges on every worker.
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.time < b.time; });

  std::vector<bool> is_active(request.workers, false);
  for (const int rank : request.active) is_active[rank] = true;
  ProgramBuilder builder(request, "forest", bounds, std::move(scratch));
  // A relay keeps what passes through it in scratch: the first that comes is written, the next
  // added.
  std::vector<std::vector<bool>> holds(request.workers);
  const auto place = [&](int worker, uint32_t chunk) {
    return is_active[worker] ? Data(chunk) : Scratch(chunk);
  };
  const double window = std::max(kWindow, kWindowOfPair * static_cast<double>(plan.pairs.size()));
  Pacing pacing(request.workers, window / chunks);
  for (const Message& message : messages) {
    // The builder leaves out what has no elements, so Pacing must not count it.
    if (bounds[message.chunk] == bounds[message.chunk + 1]) continue;
    pacing.Note(message);
    const Chunks source = place(message.from, message.chunk);
    const Chunks target = place(message.to, message.chunk);
    bool add = message.reduce;
    if (message.reduce && !is_active[message.to]) {
      std::vector<bool>& held = holds[message.to];
      held.resize(ranges.back().first + ranges.back().count);
      add = held[message.chunk];
      held[message.chunk] = true;
    }
    if (add) {
      builder.MoveReduce(message.from, source, message.to, target);
    } else {
      builder.Move(message.from, source, message.to, target);
    }
  }
  // The builder numbers steps in the order of the calls, as Pacing has counted them.
  SYNCOPATE_ASSIGN_OR_RETURN(Program program, builder.Finish());
  pacing.AddWaits(program);
  return program;
}

}  // namespace

absl::StatusOr<Program> MakeForestProgram(const CollectiveRequest& request, const ForestPlan& plan,
                                          uint64_t chunk_elements) {
  SYNCOPATE_RETURN_IF_ERROR(CheckRequest(request, plan));
  std::vector<Range> ranges;
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> bounds,
      Cut(request.elements, plan.pairs, std::max<uint64_t>(1, chunk_elements), ranges));
  return MakeProgram(request, plan, bounds, ranges);
}

absl::StatusOr<Program> MakeEvenForestProgram(const CollectiveRequest& request,
                                              const ForestPlan& plan, uint32_t chunks) {
  SYNCOPATE_RETURN_IF_ERROR(CheckRequest(request, plan));
  if (chunks < 1 || chunks > limits::kChunksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(chunks, " is not a number of chunks from 1 to ", limits::kChunksMax));
  }
  std::vector<Range> ranges;
  std::vector<uint64_t> bounds = CutInto(request.elements, plan.pairs, chunks, ranges);
  return MakeProgram(request, plan, bounds, ranges);
}

}  // namespace syncopate::plan
