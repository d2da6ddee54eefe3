// Why one run is enough: messages are matched by their place in the lists, conflicting accesses are
// ordered by `after` edges, and a step that may start stays allowed to start. So every order of
// events gives every step the same inputs, and a program that gets stuck in one order gets stuck in
// all. The prover therefore runs the program once, in any order, with the strictest messages: a
// send and its receive are done together, when both may start.
#include "model/program_validator.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "model/program_checks.h"
#include "model/program_contributions.h"
#include "model/program_order.h"
#include "model/program_steps.h"

namespace syncopate {
namespace {

using StepId = StepTable::Id;
using Id = Contributions::Id;
constexpr size_t kDeadlockStepsShown = 8;

template <typename... What>
absl::Status Flaw(const What&... what) {
  return absl::FailedPreconditionError(absl::StrCat(what...));
}

// The symbolic run: every chunk holds, in place of numbers, which contributions of which workers
// were added up in it (Contributions).
class Prover {
 public:
  Prover(const Program& program, StepTable steps)
      : program_(program),
        steps_(std::move(steps)),
        chunks_(program.chunks(Space::kData)),
        owner_(program.workers, -1),
        values_(program.active, chunks_) {
    for (size_t i = 0; i < program.active.size(); ++i) {
      owner_[program.active[i]] = static_cast<int>(i);
    }
  }

  absl::StatusOr<ProgramProof> Prove() {
    for (StepId id = 0; id < steps_.size(); ++id) {
      SYNCOPATE_RETURN_IF_ERROR(CheckInactive(id));
      SYNCOPATE_RETURN_IF_ERROR(CheckSizes(id));
    }
    // The order of accesses is proved before the run: only then does one run stand for all.
    SYNCOPATE_RETURN_IF_ERROR(CheckAccessOrder(program_));
    SYNCOPATE_RETURN_IF_ERROR(Run());
    SYNCOPATE_RETURN_IF_ERROR(CheckEnd());
    proof_.same_bits_everywhere = SameBits();
    CountSent();
    return proof_;
  }

 private:
  uint64_t ChunkSize(Space space, uint32_t chunk) const {
    return program_.begin(space, chunk + 1) - program_.begin(space, chunk);
  }

  // An inactive worker may have no data at all, so no step of it may touch any.
  absl::Status CheckInactive(StepId id) const {
    const Step& step = steps_[id];
    if (owner_[steps_.worker(id)] >= 0 || program_.size(step) == 0) return absl::OkStatus();
    const bool local = !IsMessage(step.kind);
    if ((local && step.source_space == Space::kData) ||
        (step.kind == StepKind::kSend && step.space == Space::kData)) {
      return Flaw("inactive worker's data mixed in: ", steps_.Place(id), " reads data chunk ",
                  local ? step.source_chunk : step.chunk, " of worker ", steps_.worker(id),
                  ", which is not active");
    }
    if (step.space == Space::kData) {
      return Flaw("inactive worker's data changed: ", steps_.Place(id), " writes data chunk ",
                  step.chunk, " of worker ", steps_.worker(id), ", which is not active");
    }
    return absl::OkStatus();
  }

  // Both ends of a transfer must be cut alike. Sends are looked at from their receive.
  absl::Status CheckSizes(StepId id) const {
    const Step& step = steps_[id];
    if (step.kind == StepKind::kSend) return absl::OkStatus();
    const bool local = !IsMessage(step.kind);
    const Step& source = local ? step : steps_[steps_.partner(id)];
    const auto [space, chunk] = steps_.Source(id);
    const auto both = [&] {
      return local ? steps_.Place(id)
                   : absl::StrCat(steps_.Place(id), " and ", steps_.Place(steps_.partner(id)));
    };
    if (step.count != source.count) {
      return Flaw("mismatched sizes: ", both(), " differ in the number of chunks, ", step.count,
                  " and ", source.count);
    }
    for (uint32_t i = 0; i < step.count; ++i) {
      const uint64_t to = ChunkSize(step.space, step.chunk + i);
      const uint64_t from = ChunkSize(space, chunk + i);
      if (to != from) {
        return Flaw("mismatched sizes: ", both(), ": ", Name(step.space), " chunk ", step.chunk + i,
                    " has ", to, " elements, but ", Name(space), " chunk ", chunk + i, " has ",
                    from);
      }
      if (local && to > 0 && space == step.space && chunk + i >= step.chunk &&
          chunk + i < step.chunk + step.count) {
        return Flaw("conflicting access: ", steps_.Place(id), " reads and writes ", Name(space),
                    " chunk ", chunk + i);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Run() {
    PrepareRun();
    // A message runs at its receive, so that it is not started once from each end.
    for (StepId id = 0; id < steps_.size(); ++id) {
      if (waiting_[id] == 0 && steps_[id].kind != StepKind::kSend) MayStart(id);
    }
    StepId done = 0;
    while (!runnable_.empty()) {
      const StepId id = runnable_.back();
      runnable_.pop_back();
      SYNCOPATE_RETURN_IF_ERROR(Execute(id));
      ++done;
      Done(id);
      if (steps_.partner(id) != StepTable::kNone) {
        ++done;
        Done(steps_.partner(id));
      }
    }
    return done == steps_.size() ? absl::OkStatus() : Deadlock();
  }

  // The edges go into one array with offsets: a vector for each step would take more memory than
  // the edges themselves.
  void PrepareRun() {
    waiting_.assign(steps_.size(), 0);
    level_.assign(steps_.size(), 0);
    done_.assign(steps_.size(), false);
    dependents_begin_.assign(steps_.size() + 1, 0);
    const auto for_each_edge = [&](auto&& visit) {
      for (StepId id = 0; id < steps_.size(); ++id) {
        for (uint32_t index : steps_[id].after) visit(steps_.begin(steps_.worker(id)) + index, id);
      }
    };
    for_each_edge([&](StepId earlier, StepId id) {
      ++waiting_[id];
      ++dependents_begin_[earlier + 1];
    });
    std::partial_sum(dependents_begin_.begin(), dependents_begin_.end(), dependents_begin_.begin());
    dependents_.resize(dependents_begin_.back());
    std::vector<uint64_t> next(dependents_begin_.begin(), dependents_begin_.end() - 1);
    for_each_edge([&](StepId earlier, StepId id) { dependents_[next[earlier]++] = id; });

    for (auto& space : content_) space.resize(program_.workers);
    for (int worker = 0; worker < program_.workers; ++worker) {
      content_[1][worker].assign(program_.chunks(Space::kScratch), Contributions::kUndefined);
      if (owner_[worker] < 0) continue;  // CheckInactive() showed that its data is never touched
      content_[0][worker].resize(chunks_);
      std::iota(content_[0][worker].begin(), content_[0][worker].end(),
                values_.Atom(owner_[worker], 0));
    }
    if (program_.collective == Collective::kBarrier) {
      words_ = (program_.active.size() + 63) / 64;
      heard_.assign(steps_.size() * words_, 0);
      for (StepId id = 0; id < steps_.size(); ++id) {
        const int owner = owner_[steps_.worker(id)];
        if (owner >= 0) heard_[id * words_ + owner / 64] |= uint64_t{1} << (owner % 64);
      }
    }
  }

  // No other step of its worker holds step `id` back. A message runs, at its receiving end, when
  // that is true of both its ends.
  void MayStart(StepId id) {
    const StepId partner = steps_.partner(id);
    if (partner == StepTable::kNone) {
      runnable_.push_back(id);
    } else if (waiting_[partner] == 0) {
      runnable_.push_back(steps_[id].kind == StepKind::kSend ? partner : id);
    }
  }

  absl::Status Execute(StepId id) {
    const Step& step = steps_[id];
    const int worker = steps_.worker(id);
    const bool message = IsMessage(step.kind);
    const int from = message ? step.peer : worker;
    if (message) {
      const StepId send = steps_.partner(id);
      // The message makes the chain of its send longer by one, not the chain of its receive: it
      // travels while the receiver still waits for its turn.
      level_[id] = level_[send] = std::max(level_[id], level_[send] + 1);
      proof_.rounds = std::max(proof_.rounds, level_[id]);
      for (size_t word = 0; word < words_; ++word) {
        heard_[id * words_ + word] |= heard_[send * words_ + word];
      }
    }
    const auto [source_space, source_chunk] = steps_.Source(id);
    for (uint32_t i = 0; i < step.count; ++i) {
      const uint32_t chunk = step.chunk + i;
      if (ChunkSize(step.space, chunk) == 0) continue;
      const Id value = Content(source_space, from)[source_chunk + i];
      Id& target = Content(step.space, worker)[chunk];
      if (value == Contributions::kUndefined) {
        const StepId reader = message ? steps_.partner(id) : id;
        return Flaw("read of undefined scratch: ", steps_.Place(reader), " reads scratch chunk ",
                    source_chunk + i, ", which nothing has written");
      }
      if (!IsReducing(step.kind)) {
        target = value;
        continue;
      }
      if (target == Contributions::kUndefined) {
        return Flaw("read of undefined scratch: ", steps_.Place(id), " adds to scratch chunk ",
                    chunk, ", which nothing has written");
      }
      absl::StatusOr<Id> sum = values_.Add(target, value);
      if (!sum.ok()) {
        return At(absl::StrCat(steps_.Place(id), ", ", Name(step.space), " chunk ", chunk),
                  sum.status());
      }
      target = *sum;
    }
    return absl::OkStatus();
  }

  // Hands on to the steps that waited for `id` what is known at its end: the length of the chain of
  // messages, and for a barrier which workers have started.
  void Done(StepId id) {
    done_[id] = true;
    for (uint64_t i = dependents_begin_[id]; i < dependents_begin_[id + 1]; ++i) {
      const StepId later = dependents_[i];
      level_[later] = std::max(level_[later], level_[id]);
      for (size_t word = 0; word < words_; ++word) {
        heard_[later * words_ + word] |= heard_[id * words_ + word];
      }
      if (--waiting_[later] == 0) MayStart(later);
    }
  }

  // Every step that is not done waits for another one that is not done: following them from any
  // step leads into a circle.
  absl::Status Deadlock() const {
    const auto waits_for = [&](StepId id) {
      for (uint32_t index : steps_[id].after) {
        const StepId earlier = steps_.begin(steps_.worker(id)) + index;
        if (!done_[earlier]) return earlier;
      }
      return steps_.partner(id);
    };
    StepId id = static_cast<StepId>(std::find(done_.begin(), done_.end(), false) - done_.begin());
    std::vector<bool> seen(steps_.size(), false);
    for (; !seen[id]; id = waits_for(id)) seen[id] = true;
    std::string circle;
    const StepId start = id;
    size_t shown = 0;
    do {
      const StepId next = waits_for(id);
      if (shown++ < kDeadlockStepsShown) {
        absl::StrAppend(&circle, circle.empty() ? "" : "; ", steps_.Place(id), " waits for ",
                        steps_.Place(next));
      }
      id = next;
    } while (id != start);
    if (shown > kDeadlockStepsShown) {
      absl::StrAppend(&circle, "; and so on, ", shown, " steps in a circle");
    }
    return Flaw("deadlock: ", circle);
  }

  // Checks that the workers end with what the collective promises. Empty chunks promise nothing.
  absl::Status CheckEnd() const {
    const std::vector<int>& active = program_.active;
    if (program_.collective == Collective::kBarrier) return CheckBarrier();
    for (size_t i = 0; i < active.size(); ++i) {
      for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
        if (ChunkSize(Space::kData, chunk) > 0) SYNCOPATE_RETURN_IF_ERROR(CheckChunk(i, chunk));
      }
    }
    return absl::OkStatus();
  }

  // Checks chunk `chunk` of the `mine`-th active worker. A worker of which the collective promises
  // nothing for the chunk may end with anything in it.
  absl::Status CheckChunk(size_t mine, uint32_t chunk) const {
    const int worker = program_.active[mine];
    const bool at_root = worker == program_.root;
    const auto root = [&] { return static_cast<size_t>(owner_[program_.root]); };
    const auto block = [&] {
      const auto& blocks = program_.blocks;
      return static_cast<size_t>(std::upper_bound(blocks.begin(), blocks.end(), chunk) -
                                 blocks.begin() - 1);
    };
    switch (program_.collective) {
      case Collective::kAllReduce:
        return ExpectSum(worker, chunk);
      case Collective::kReduce:
        return at_root ? ExpectSum(worker, chunk) : absl::OkStatus();
      case Collective::kBroadcast:
        return ExpectAtom(worker, chunk, root(), chunk);
      case Collective::kAllGather:
        return ExpectAtom(worker, chunk, block(), chunk);
      case Collective::kReduceScatter:
        return block() == mine ? ExpectSum(worker, chunk) : absl::OkStatus();
      case Collective::kGather:
        return at_root ? ExpectAtom(worker, chunk, block(), chunk) : absl::OkStatus();
      case Collective::kScatter:
        return block() == mine ? ExpectAtom(worker, chunk, root(), chunk) : absl::OkStatus();
      case Collective::kAllToAll: {
        const size_t theirs = block();
        const uint32_t offset = chunk - program_.blocks[theirs];
        return ExpectAtom(worker, chunk, theirs, program_.blocks[mine] + offset);
      }
      case Collective::kSendReceive:
        return ExpectAtom(worker, chunk, worker == program_.target ? root() : mine, chunk);
      case Collective::kBarrier:
        break;
    }
    return absl::OkStatus();
  }

  // `worker` must end with the sum of all contributions to data chunk `chunk` in that chunk.
  absl::Status ExpectSum(int worker, uint32_t chunk) const {
    const Id value = content_[0][worker][chunk];
    if (values_.ChunkOf(value) != chunk) {
      return Flaw("wrong place: worker ", worker, " ends with ", values_.Describe(value),
                  " in data chunk ", chunk);
    }
    // A contribution cannot be in the sum twice: Add() has refused that during the run.
    for (size_t owner = 0; !values_.Complete(value) && owner < program_.active.size(); ++owner) {
      if (!values_.Holds(value, owner)) {
        return Flaw("contribution lost: worker ", worker, " ends with ", values_.Describe(value),
                    ", without the contribution of worker ", program_.active[owner]);
      }
    }
    return absl::OkStatus();
  }

  // `worker` must end with the `owner`-th active worker's chunk `from` in its data chunk `chunk`.
  absl::Status ExpectAtom(int worker, uint32_t chunk, size_t owner, uint32_t from) const {
    const Id value = content_[0][worker][chunk];
    const Id expected = values_.Atom(owner, from);
    if (value == expected) return absl::OkStatus();
    // Three kinds of fault, by what was expected and what is there: data that had to stay has
    // changed, nothing has arrived, or something else has arrived.
    const bool own = expected == values_.Atom(static_cast<size_t>(owner_[worker]), chunk);
    const bool untouched = value == values_.Atom(static_cast<size_t>(owner_[worker]), chunk);
    return Flaw(own         ? "data changed"
                : untouched ? "contribution lost"
                            : "wrong place",
                ": worker ", worker, " ends with ", values_.Describe(value), " in data chunk ",
                chunk, own ? ", which had to stay as it was" : "",
                own ? "" : absl::StrCat(", not with ", values_.Describe(expected)));
  }

  // A barrier moves no data, so what counts is news: no worker may end before it has heard from
  // every active worker. It has heard what any of its steps has.
  absl::Status CheckBarrier() const {
    std::vector<uint64_t> heard;
    for (size_t mine = 0; mine < program_.active.size(); ++mine) {
      const int worker = program_.active[mine];
      heard.assign(words_, 0);
      heard[mine / 64] |= uint64_t{1} << (mine % 64);
      for (StepId id = steps_.begin(worker); id < steps_.begin(worker + 1); ++id) {
        for (size_t word = 0; word < words_; ++word) heard[word] |= heard_[id * words_ + word];
      }
      for (size_t owner = 0; owner < program_.active.size(); ++owner) {
        if ((heard[owner / 64] >> (owner % 64)) & 1) continue;
        return Flaw("contribution lost: worker ", worker,
                    " can end before it has heard, directly or through others, that worker ",
                    program_.active[owner], " has started");
      }
    }
    return absl::OkStatus();
  }

  // Equal ids mean that the contributions were added in the same order, up to swapping the sides of
  // one addition, which does not change the bits of a floating-point sum.
  bool SameBits() const {
    if (program_.collective != Collective::kAllReduce) return true;
    for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
      if (ChunkSize(Space::kData, chunk) == 0) continue;
      for (int worker : program_.active) {
        if (content_[0][worker][chunk] != content_[0][program_.active[0]][chunk]) return false;
      }
    }
    return true;
  }

  void CountSent() {
    for (const std::vector<Step>& steps : program_.steps) {
      uint64_t sent = 0;
      for (const Step& step : steps) {
        if (step.kind == StepKind::kSend) sent += program_.size(step);
      }
      proof_.sent_elements_max = std::max(proof_.sent_elements_max, sent);
      proof_.sent_elements_total += sent;
    }
  }

  std::vector<Id>& Content(Space space, int worker) {
    return content_[static_cast<int>(space)][worker];
  }

  // Constant after construction.
  const Program& program_;
  const StepTable steps_;
  const uint32_t chunks_;   // of data
  std::vector<int> owner_;  // by worker: its index among the active ones, or -1

  // The run.
  Contributions values_;
  std::vector<std::vector<Id>> content_[2];  // by space, worker, chunk
  // The steps that wait for step i are dependents_[dependents_begin_[i]] up to, and without,
  // dependents_[dependents_begin_[i + 1]].
  std::vector<uint64_t> dependents_begin_;
  std::vector<StepId> dependents_;
  std::vector<uint32_t> waiting_;  // by step: entries of `after` that are not done
  std::vector<bool> done_;
  std::vector<StepId> runnable_;  // local steps and receives
  std::vector<int> level_;        // by step: messages in the longest chain up to its end
  // Barrier only. By step, a bit per active worker: set if the start of that worker certainly came
  // before the step's end. News travels with a message, not against it: a transport that buffers
  // ends a send before its receive.
  size_t words_ = 0;
  std::vector<uint64_t> heard_;

  ProgramProof proof_;
};

// Refuses what would take more memory or time than a proof is allowed.
absl::Status CheckLimits(const Program& program) {
  const uint64_t workers = static_cast<uint64_t>(program.workers);
  uint64_t accesses = 0;
  for (const std::vector<Step>& steps : program.steps) {
    for (const Step& step : steps)
      accesses += uint64_t{step.count} * (IsMessage(step.kind) ? 1 : 2);
  }
  const uint64_t chunks = uint64_t{program.chunks(Space::kData)} + program.chunks(Space::kScratch);
  if (workers * chunks > limits::kProofCellsMax || accesses > limits::kProofCellsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the program is too large to be proved: ", workers, " workers with ", chunks,
        " chunks each and ", accesses, " accesses; the limit is ", limits::kProofCellsMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramProof> ProveProgram(const Program& program) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(program));
  SYNCOPATE_RETURN_IF_ERROR(CheckLimits(program));
  SYNCOPATE_ASSIGN_OR_RETURN(StepTable steps, StepTable::Make(program));
  return Prover(program, std::move(steps)).Prove();
}

}  // namespace syncopate
