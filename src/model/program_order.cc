// Only neighbouring accesses of a chunk are compared, in the order of the step list: a read with
// the write before it; a write with the write before it and with the reads since. If those pairs
// are ordered, then so are all conflicting pairs, because being ordered is transitive. So the
// number of questions grows with the number of accesses, not with its square.
//
// A question "is there a path from step s to step t" is answered at once if there is an edge. The
// others are answered with bit sets, for a block of kBlock sources at a time: the row of a step
// says which sources of the block come before it. Memory is steps * kBlock bits at most.
#include "model/program_order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/program_checks.h"

namespace syncopate {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kBlock = 512;
using Row = std::array<uint64_t, kBlock / 64>;

// Must `source` be done before `target` starts? `source` < `target` in the list.
struct Question {
  uint32_t source;
  uint32_t target;
  uint32_t chunk;
  Space space;
  bool source_writes;
  bool target_writes;
};

class OrderCheck {
 public:
  explicit OrderCheck(const Program& program) : program_(program) {
    for (Space space : {Space::kData, Space::kScratch}) {
      states_[static_cast<int>(space)].resize(program.chunks(space));
    }
  }

  absl::Status CheckWorker(int worker) {
    steps_ = &program_.steps[worker];
    questions_.clear();
    reads_.clear();
    for (uint32_t index = 0; index < steps_->size(); ++index) {
      const Step& step = (*steps_)[index];
      if (!IsMessage(step.kind)) {
        Touch(index, step.source_space, step.source_chunk, step.count, /*writes=*/false);
      }
      Touch(index, step.space, step.chunk, step.count, step.kind != StepKind::kSend);
    }
    for (const Step& step : *steps_) {  // only what was touched is put back
      if (!IsMessage(step.kind)) Reset(step.source_space, step.source_chunk, step.count);
      Reset(step.space, step.chunk, step.count);
    }
    const Question* open = FirstOpen();
    return open == nullptr ? absl::OkStatus() : Fault(worker, *open);
  }

 private:
  struct ChunkState {
    uint32_t last_write = kNone;
    uint32_t reads = kNone;  // since the last write: the head of a list in reads_
  };
  struct Read {
    uint32_t step;
    uint32_t next;
  };

  std::vector<ChunkState>& States(Space space) { return states_[static_cast<int>(space)]; }

  void Reset(Space space, uint32_t chunk, uint32_t count) {
    std::fill_n(States(space).begin() + chunk, count, ChunkState{});
  }

  // Notes that step `index` reads or writes the chunks, and asks what must hold for it.
  void Touch(uint32_t index, Space space, uint32_t chunk, uint32_t count, bool writes) {
    for (uint32_t c = chunk; c < chunk + count; ++c) {
      // An empty chunk holds no numbers that could be read too early.
      if (program_.begin(space, c) == program_.begin(space, c + 1)) continue;
      ChunkState& state = States(space)[c];
      if (state.last_write != kNone) Ask({state.last_write, index, c, space, true, writes});
      if (writes) {
        for (uint32_t read = state.reads; read != kNone; read = reads_[read].next) {
          Ask({reads_[read].step, index, c, space, false, true});
        }
        state = {index, kNone};
      } else {
        reads_.push_back({index, state.reads});
        state.reads = static_cast<uint32_t>(reads_.size() - 1);
      }
    }
  }

  void Ask(const Question& question) {
    // A run of chunks asks the same question again and again.
    if (!questions_.empty() && questions_.back().source == question.source &&
        questions_.back().target == question.target) {
      return;
    }
    const auto& after = (*steps_)[question.target].after;
    if (std::find(after.begin(), after.end(), question.source) != after.end()) return;
    questions_.push_back(question);
  }

  // The question with the answer no whose target comes first, or nullptr.
  const Question* FirstOpen() {
    const Question* open = nullptr;
    // By block of sources: the rows of one block are filled once and answer all of its questions.
    std::stable_sort(questions_.begin(), questions_.end(), [](const auto& a, const auto& b) {
      return a.source / kBlock < b.source / kBlock;
    });
    for (size_t i = 0; i < questions_.size();) {
      const uint32_t first = questions_[i].source / kBlock * kBlock;
      size_t end = i;
      uint32_t last_target = 0;
      while (end < questions_.size() && questions_[end].source < first + kBlock) {
        last_target = std::max(last_target, questions_[end].target);
        ++end;
      }
      FillRows(first, last_target);
      for (; i < end; ++i) {
        const uint32_t bit = questions_[i].source - first;
        const bool ordered = (rows_[questions_[i].target - first][bit / 64] >> (bit % 64)) & 1;
        if (!ordered && (open == nullptr || questions_[i].target < open->target)) {
          open = &questions_[i];
        }
      }
    }
    return open;
  }

  // rows_[t - first]: the sources from `first` on that come before step t, and t itself.
  void FillRows(uint32_t first, uint32_t last) {
    rows_.assign(last - first + 1, Row{});
    for (uint32_t t = first; t <= last; ++t) {
      Row& row = rows_[t - first];
      if (t < first + kBlock) row[(t - first) / 64] |= uint64_t{1} << ((t - first) % 64);
      // Edges only point back, so the rows of all earlier steps are complete when t is reached.
      // What comes before the block cannot lead from a source of the block to t.
      for (uint32_t earlier : (*steps_)[t].after) {
        if (earlier < first) continue;
        for (size_t word = 0; word < row.size(); ++word) row[word] |= rows_[earlier - first][word];
      }
    }
  }

  absl::Status Fault(int worker, const Question& open) const {
    const std::string chunk = absl::StrCat(Name(open.space), " chunk ", open.chunk);
    const std::string source = StepText((*steps_)[open.source]);
    return absl::FailedPreconditionError(
        absl::StrCat("conflicting access: ", StepPlace(program_, worker, open.target), " ",
                     open.target_writes ? "writes " : "reads ", chunk, " while step ", open.source,
                     " (", source, ") may still ", open.source_writes ? "write" : "read",
                     " it; no chain of \"after\" orders the two"));
  }

  const Program& program_;
  const std::vector<Step>* steps_ = nullptr;
  std::array<std::vector<ChunkState>, 2> states_;
  std::vector<Read> reads_;
  std::vector<Question> questions_;
  std::vector<Row> rows_;
};

}  // namespace

absl::Status CheckAccessOrder(const Program& program) {
  OrderCheck check(program);
  for (int worker = 0; worker < program.workers; ++worker) {
    SYNCOPATE_RETURN_IF_ERROR(check.CheckWorker(worker));
  }
  return absl::OkStatus();
}

}  // namespace syncopate
