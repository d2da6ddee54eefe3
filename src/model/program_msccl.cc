// Thread blocks, dependencies and XML of the MSCCL export.
#include "model/program_msccl.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/program_checks.h"
#include "model/program_steps.h"
#include "model/program_validator.h"

namespace syncopate {
namespace {

// Limits of the MSCCL runtime: it refuses a file that goes past them.
constexpr size_t kStepsPerBlockMax = 256;
constexpr int kBlocksPerChannelMax = 32;  // that send, and that receive
constexpr int kChannelsMax = 32;
constexpr uint32_t kChunksPerStepMax = 64;  // it allows 71; a longer run is cut
constexpr size_t kNameBytesMax = 200;
constexpr uint64_t kBytesMax = uint64_t{1} << 40;  // of a buffer; 0 does not mean "any" everywhere

template <typename... What>
absl::Status Cannot(const What&... what) {
  return absl::FailedPreconditionError(absl::StrCat("MSCCL cannot express it: ", what...));
}

// The runtime reads no entities, so only harmless characters pass.
std::string NameFor(const Program& program) {
  std::string name = program.algorithm.empty() ? "syncopate" : program.algorithm;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  return name.substr(0, kNameBytesMax);
}

// MSCCL has one size of chunk and knows no inactive ranks. Sizes that differ by one element come
// from the rounding of an even cut, which MSCCL makes itself.
absl::Status CheckExpressible(const Program& program) {
  const Collective collective = program.collective;
  if (collective != Collective::kAllReduce && collective != Collective::kAllGather &&
      collective != Collective::kReduceScatter) {
    return Cannot("the collective is ", Name(collective),
                  "; only all-reduce, all-gather and reduce-scatter can be exported");
  }
  if (program.active.size() != static_cast<size_t>(program.workers)) {
    return Cannot("some workers are inactive");
  }
  uint64_t smallest = UINT64_MAX;
  uint64_t largest = 0;
  for (Space space : {Space::kData, Space::kScratch}) {
    for (uint32_t chunk = 0; chunk < program.chunks(space); ++chunk) {
      const uint64_t size = program.begin(space, chunk + 1) - program.begin(space, chunk);
      smallest = std::min(smallest, size);
      largest = std::max(largest, size);
    }
  }
  if (program.chunks(Space::kData) == 0) return Cannot("there is no data");
  if (largest - smallest > 1) {
    return Cannot("its chunks have from ", smallest, " to ", largest,
                  " elements, but all chunks must have one size");
  }
  for (size_t i = 1; i < program.blocks.size(); ++i) {
    if (program.blocks[i] - program.blocks[i - 1] != program.blocks[1]) {
      return Cannot("block ", i - 1, " has another number of chunks than block 0");
    }
  }
  return absl::OkStatus();
}

// A thread block talks to at most one peer in each direction and runs its steps in order.
struct Block {
  int send = -1;
  int receive = -1;
  std::vector<uint32_t> steps;  // of the worker, in order
};

struct WorkerPlan {
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of;  // by step
  // By step: the last step of every other block that it waits for.
  std::vector<std::vector<uint32_t>> waits;
  std::vector<bool> waited_for;  // by step: from another block
  std::vector<size_t> last;      // by step: the number, in its block, of the last line it becomes
};

uint32_t ChunksPerLine(const Step& step) {
  return step.kind == StepKind::kReduce ? 1 : kChunksPerStepMax;  // MSCCL may fuse reductions
}

size_t Lines(const Step& step) { return (step.count - 1) / ChunksPerLine(step) + 1; }

// One block for each peer that is sent to, one for each that is received from, and one for all
// local steps. A step may wait for one step of one other block only, so further waits become steps
// that do nothing ("nop") before it.
WorkerPlan PlanWorker(const std::vector<Step>& steps) {
  WorkerPlan plan;
  std::map<std::pair<int, int>, uint32_t> by_peers;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    Block block;
    if (IsMessage(steps[i].kind)) {
      (steps[i].kind == StepKind::kSend ? block.send : block.receive) = steps[i].peer;
    }
    const auto [it, fresh] = by_peers.try_emplace({block.send, block.receive},
                                                  static_cast<uint32_t>(plan.blocks.size()));
    if (fresh) plan.blocks.push_back(block);
    plan.block_of.push_back(it->second);
    plan.blocks[it->second].steps.push_back(i);
  }
  plan.waits.resize(steps.size());
  plan.waited_for.resize(steps.size(), false);
  for (uint32_t i = 0; i < steps.size(); ++i) {
    std::map<uint32_t, uint32_t> latest;  // block -> step
    for (uint32_t earlier : steps[i].after) {
      if (plan.block_of[earlier] == plan.block_of[i]) continue;
      uint32_t& step = latest[plan.block_of[earlier]];
      step = std::max(step, earlier);
    }
    for (const auto& [block, step] : latest) {
      plan.waits[i].push_back(step);
      plan.waited_for[step] = true;
    }
  }
  plan.last.resize(steps.size());
  for (const Block& block : plan.blocks) {
    size_t lines = 0;
    for (uint32_t i : block.steps) {
      lines += Lines(steps[i]) + (plan.waits[i].empty() ? 0 : plan.waits[i].size() - 1);
      plan.last[i] = lines - 1;
    }
  }
  return plan;
}

// The program as MSCCL will run it: equal chunks, every thread block in order.
Program AsMscclRunsIt(const Program& program, const std::vector<WorkerPlan>& plans) {
  Program run = program;
  for (std::vector<uint64_t>* bounds : {&run.data_bounds, &run.scratch_bounds}) {
    for (size_t i = 0; i < bounds->size(); ++i) (*bounds)[i] = i;
  }
  for (int worker = 0; worker < program.workers; ++worker) {
    for (const Block& block : plans[worker].blocks) {
      for (size_t k = 1; k < block.steps.size(); ++k) {
        run.steps[worker][block.steps[k]].after.push_back(block.steps[k - 1]);
      }
    }
  }
  return run;
}

class Writer {
 public:
  Writer(const Program& program, const StepTable& steps, const std::vector<WorkerPlan>& plans)
      : program_(program), steps_(steps), plans_(plans) {}

  absl::StatusOr<std::string> Write() {
    SYNCOPATE_RETURN_IF_ERROR(ChooseChannels());
    const uint32_t chunks = program_.chunks(Space::kData);
    const uint32_t share = chunks / static_cast<uint32_t>(program_.workers);
    const bool gather = program_.collective == Collective::kAllGather;
    const bool scatter = program_.collective == Collective::kReduceScatter;
    absl::StrAppend(
        &xml_, "<algo name=\"", NameFor(program_), "\" proto=\"Simple\" nchannels=\"", channels_,
        "\" nchunksperloop=\"", chunks, "\" ngpus=\"", program_.workers, "\" coll=\"",
        gather    ? "allgather"
        : scatter ? "reducescatter"
                  : "allreduce",
        "\" inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"", kBytesMax, "\">\n");
    for (int worker = 0; worker < program_.workers; ++worker) {
      absl::StrAppend(&xml_, "  <gpu id=\"", worker, "\" i_chunks=\"", gather ? share : chunks,
                      "\" o_chunks=\"", scatter ? share : chunks, "\" s_chunks=\"",
                      program_.chunks(Space::kScratch), "\">\n");
      for (size_t block = 0; block < plans_[worker].blocks.size(); ++block) {
        SYNCOPATE_RETURN_IF_ERROR(WriteBlock(worker, block));
      }
      absl::StrAppend(&xml_, "  </gpu>\n");
    }
    absl::StrAppend(&xml_, "</algo>\n");
    return std::move(xml_);
  }

 private:
  // Both ends of a connection must choose the same channel. One is enough unless somebody has too
  // many peers; then the distance between the two decides.
  absl::Status ChooseChannels() {
    for (const WorkerPlan& plan : plans_) {
      int sends = 0;
      int receives = 0;
      for (const Block& block : plan.blocks) {
        sends += block.send >= 0;
        receives += block.receive >= 0;
      }
      by_distance_ |= std::max(sends, receives) > kBlocksPerChannelMax;
    }
    for (int worker = 0; worker < program_.workers; ++worker) {
      for (const Block& block : plans_[worker].blocks) {
        channels_ = std::max(channels_, ChannelOf(worker, block) + 1);
      }
    }
    if (channels_ > kChannelsMax) {
      return Cannot("the workers have so many peers that ", channels_,
                    " channels would be needed; the limit is ", kChannelsMax);
    }
    return absl::OkStatus();
  }

  int ChannelOf(int worker, const Block& block) const {
    if (!by_distance_ || (block.send < 0 && block.receive < 0)) return 0;
    const int from = block.send >= 0 ? worker : block.receive;
    const int to = block.send >= 0 ? block.send : worker;
    return ((to - from + program_.workers) % program_.workers - 1) / kBlocksPerChannelMax;
  }

  absl::Status WriteBlock(int worker, size_t block_index) {
    const WorkerPlan& plan = plans_[worker];
    const Block& block = plan.blocks[block_index];
    if (plan.last[block.steps.back()] >= kStepsPerBlockMax) {
      return Cannot("a thread block of worker ", worker, " would have ",
                    plan.last[block.steps.back()] + 1, " steps; the limit is ", kStepsPerBlockMax);
    }
    absl::StrAppend(&xml_, "    <tb id=\"", block_index, "\" send=\"", block.send, "\" recv=\"",
                    block.receive, "\" chan=\"", ChannelOf(worker, block), "\">\n");
    size_t line = 0;
    for (uint32_t index : block.steps) WriteStep(worker, index, &line);
    absl::StrAppend(&xml_, "    </tb>\n");
    return absl::OkStatus();
  }

  void WriteStep(int worker, uint32_t index, size_t* line) {
    const WorkerPlan& plan = plans_[worker];
    const Step& step = program_.steps[worker][index];
    const std::vector<uint32_t>& waits = plan.waits[index];
    const std::string wait_for_nothing = " depid=\"-1\" deps=\"-1\"";
    const auto wait_for = [&](uint32_t earlier) {
      return absl::StrCat(" depid=\"", plan.block_of[earlier], "\" deps=\"", plan.last[earlier],
                          "\"");
    };
    for (size_t k = 0; k + 1 < waits.size(); ++k) {
      absl::StrAppend(&xml_, "      <step s=\"", (*line)++,
                      "\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" "
                      "cnt=\"0\"",
                      wait_for(waits[k]), " hasdep=\"0\"/>\n");
    }
    const auto [source, target] = Ends(worker, index);
    const uint32_t per_line = ChunksPerLine(step);
    for (uint32_t at = 0; at < step.count; at += per_line) {
      const bool last = at + per_line >= step.count;
      absl::StrAppend(&xml_, "      <step s=\"", (*line)++, "\" type=\"", TypeOf(step.kind),
                      "\" srcbuf=\"", Buffer(source.first), "\" srcoff=\"", source.second + at,
                      "\" dstbuf=\"", Buffer(target.first), "\" dstoff=\"", target.second + at,
                      "\" cnt=\"", std::min(per_line, step.count - at), "\"",
                      at == 0 && !waits.empty() ? wait_for(waits.back()) : wait_for_nothing,
                      " hasdep=\"", last && plan.waited_for[index] ? 1 : 0, "\"/>\n");
    }
  }

  using Place = std::pair<Space, uint32_t>;

  // Where the numbers come from and where they go, on whichever worker that is. A receive-reduce
  // reads its own chunk.
  std::pair<Place, Place> Ends(int worker, uint32_t index) const {
    const StepTable::Id id = steps_.begin(worker) + index;
    const Step& step = steps_[id];
    const Place own = {step.space, step.chunk};
    if (step.kind == StepKind::kReceiveReduce) return {own, own};
    if (step.kind != StepKind::kSend) return {steps_.Source(id), own};
    const Step& receive = steps_[steps_.partner(id)];
    return {own, {receive.space, receive.chunk}};
  }

  static absl::string_view TypeOf(StepKind kind) {
    switch (kind) {
      case StepKind::kSend:
        return "s";
      case StepKind::kReceive:
        return "r";
      case StepKind::kReceiveReduce:
        return "rrc";
      case StepKind::kCopy:
        return "cpy";
      case StepKind::kReduce:
        return "re";
    }
    return "?";
  }

  // In place, the whole of the data is the output of an all-gather and the input of the others.
  absl::string_view Buffer(Space space) const {
    if (space == Space::kScratch) return "s";
    return program_.collective == Collective::kAllGather ? "o" : "i";
  }

  const Program& program_;
  const StepTable& steps_;
  const std::vector<WorkerPlan>& plans_;
  bool by_distance_ = false;
  int channels_ = 1;
  std::string xml_;
};

}  // namespace

absl::StatusOr<std::string> ToMscclXml(const Program& program) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(program));
  SYNCOPATE_RETURN_IF_ERROR(CheckExpressible(program));
  SYNCOPATE_ASSIGN_OR_RETURN(const StepTable steps, StepTable::Make(program));
  std::vector<WorkerPlan> plans;
  for (const std::vector<Step>& list : program.steps) plans.push_back(PlanWorker(list));
  // Blocks that run in order wait for more than our program asks for, which could make a deadlock.
  // The program is therefore proved again as it will run.
  const absl::Status proof = ProveProgram(AsMscclRunsIt(program, plans)).status();
  if (!proof.ok()) return At("with equal chunks and thread blocks that run in order", proof);
  return Writer(program, steps, plans).Write();
}

}  // namespace syncopate
