#include "tools/program_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/random.h"
#include "base/status.h"
#include "engine/compiled_program.h"
#include "engine/loop_world.h"
#include "model/element_value.h"

namespace syncopate::tools {
namespace {

// A program that has been proved needs far fewer turns; the limit is for mistakes of ours.
constexpr int64_t kTurnsMin = 1'000'000, kTurnsPerStep = 1000;
constexpr uint64_t kProductFactorsMax = 8;  // 2^8 is exact in every type

// The largest whole number up to which all whole numbers are exact, kept small enough to be quick.
uint64_t ExactMax(DataType type) { return type == DataType::kBFloat16 ? 256 : 2048; }

// Half the distance from 1 to the next number: what one rounding may be off, relatively.
double RoundingOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return 0x1p-24;
    case DataType::kFloat64:
      return 0x1p-53;
    case DataType::kFloat16:
      return 0x1p-11;
    case DataType::kBFloat16:
      return 0x1p-8;
    case DataType::kInt32:
    case DataType::kInt64:
      return 0;
  }
  return 0;
}

// What workers bring, and what they must have in the end.
class Reference {
 public:
  Reference(const Program& program, const ProgramRunOptions& options)
      : program_(program),
        options_(options),
        reduces_(Reduces(program.collective)),
        salt_(Random(options.seed).Next()) {
    for (const uint32_t chunk : program.blocks) {
      block_begin_.push_back(program.data_bounds[chunk]);
    }
    if (!reduces_) return;
    std::vector<double> values, weights;
    for (const int rank : program.active) weights.push_back(Weight(rank));
    for (uint64_t e = 0; e < program.elements(); ++e) {
      values.clear();
      for (const int rank : program.active) values.push_back(Initial(rank, e));
      reduced_.push_back(ReducePlainly(options.op, options.type, values, weights));
    }
  }

  static double Weight(int rank) { return 1 + rank % 7; }

  // Small whole numbers, so that sums and products are exact in every type and order.
  double Initial(int rank, uint64_t element) const {
    Random random(salt_ ^ (static_cast<uint64_t>(rank) << 40) ^ element);
    const uint64_t count = program_.active.size();
    // Of many workers only every k-th brings something to an element; which ones differs from
    // element to element.
    const auto takes_part = [&](uint64_t most) {
      const uint64_t every = (count + most - 1) / most;
      return (static_cast<uint64_t>(rank) + element) % every == 0;
    };
    if (reduces_ && options_.op == ReduceOp::kProduct) {
      return takes_part(kProductFactorsMax) && random.Below(2) == 1 ? 2 : 1;
    }
    if (!reduces_) return static_cast<double>(random.Below(ExactMax(options_.type)));
    if (!takes_part(ExactMax(options_.type))) return 0;
    const uint64_t most = std::clamp<uint64_t>(ExactMax(options_.type) / count, 1, 15);
    return static_cast<double>(random.Below(most + 1));
  }

  // What the active worker at `place` must have there, by the words of collective.h; nothing where
  // nothing is promised.
  std::optional<double> Expected(size_t place, uint64_t element) const {
    const int rank = program_.active[place];
    switch (program_.collective) {
      case Collective::kAllReduce:
        return reduced_[element];
      case Collective::kReduce:
        if (rank != program_.root) return std::nullopt;
        return reduced_[element];
      case Collective::kBroadcast:
        return Initial(program_.root, element);
      case Collective::kReduceScatter:
        if (BlockOf(element) != place) return std::nullopt;
        return reduced_[element];
      case Collective::kScatter:
        if (BlockOf(element) != place) return std::nullopt;
        return Initial(program_.root, element);
      case Collective::kGather:
        if (rank != program_.root) return std::nullopt;
        [[fallthrough]];
      case Collective::kAllGather:
        return Initial(program_.active[BlockOf(element)], element);
      case Collective::kAllToAll: {
        const size_t from = BlockOf(element);
        return Initial(program_.active[from], block_begin_[place] + element - block_begin_[from]);
      }
      case Collective::kSendReceive:
        return Initial(rank == program_.target ? program_.root : rank, element);
      case Collective::kBarrier:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // Written so that what is not a number is wrong.
  bool IsRight(double is, double expected) const {
    const bool averages =
        options_.op == ReduceOp::kAverage || options_.op == ReduceOp::kWeightedAverage;
    if (!reduces_ || !averages) return is == expected;
    // Each contribution is rounded when it is multiplied by its factor and when it is added, and
    // the factors are rounded themselves.
    const double roundings = 2 * static_cast<double>(program_.active.size()) + 2;
    return std::fabs(is - expected) <= roundings * RoundingOf(options_.type) * expected;
  }

 private:
  size_t BlockOf(uint64_t element) const {
    const auto after = std::upper_bound(block_begin_.begin(), block_begin_.end(), element);
    return static_cast<size_t>(after - block_begin_.begin()) - 1;
  }

  const Program& program_;
  const ProgramRunOptions& options_;
  const bool reduces_;
  const uint64_t salt_;
  std::vector<uint64_t> block_begin_;  // elements; one more than there are blocks
  std::vector<double> reduced_;        // by element, of collectives that reduce
};

absl::Status CheckOptions(const Program& program, const ProgramRunOptions& options) {
  if (Reduces(program.collective) && options.op == ReduceOp::kWeightedAverage &&
      !IsFloating(options.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--op wavg needs a floating type; ", Name(options.type), " is none"));
  }
  // Reductions run on a copy of the data, and every worker has a copy of the program.
  const uint64_t copies = Reduces(program.collective) ? 2 : 1;
  uint64_t steps = 0;
  for (const std::vector<Step>& list : program.steps) steps += list.size();
  const double bytes =
      static_cast<double>(program.workers) *
      (static_cast<double>(copies * program.elements() + program.scratch_elements()) *
           static_cast<double>(SizeOf(options.type)) +
       static_cast<double>(steps * sizeof(Step)));
  if (bytes > static_cast<double>(kProgramRunBytesMax)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "its ", program.workers, " workers would hold ", FormatBytes(static_cast<uint64_t>(bytes)),
        ", more than the ", FormatBytes(kProgramRunBytesMax), " of a run; run a smaller one"));
  }
  return absl::OkStatus();
}

}  // namespace

ProgramRun::Worker ProgramRun::Total() const {
  Worker total;
  for (const Worker& worker : workers) {
    total.active = total.active || worker.active;
    total.messages += worker.messages;
    total.bytes += worker.bytes;
    total.checked += worker.checked;
    total.wrong += worker.wrong;
  }
  return total;
}

absl::StatusOr<ProgramRun> RunOnLoop(const Program& program, const ProgramRunOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(CheckOptions(program, options));
  const Reference reference(program, options);
  const size_t width = SizeOf(options.type);
  const size_t workers = static_cast<size_t>(program.workers);
  ProgramRun run;
  run.workers.resize(workers);
  for (const int rank : program.active) run.workers[static_cast<size_t>(rank)].active = true;

  engine::LoopWorld world(program.workers, options.seed);
  std::vector<std::vector<std::byte>> data(workers);
  std::vector<std::shared_ptr<engine::Operation>> operations;
  int64_t steps = 0;
  for (size_t rank = 0; rank < workers; ++rank) {
    const bool active = run.workers[rank].active;
    if (active) data[rank].resize(program.elements() * width);
    for (uint64_t e = 0; e * width < data[rank].size(); ++e) {
      StoreElement(options.type, reference.Initial(static_cast<int>(rank), e),
                   &data[rank][e * width]);
    }
    SYNCOPATE_ASSIGN_OR_RETURN(std::shared_ptr<const engine::CompiledProgram> compiled,
                               engine::CompileProgram(program, static_cast<int>(rank)));
    steps += static_cast<int64_t>(program.steps[rank].size());
    operations.push_back(
        world.Start(static_cast<int>(rank), {.group = nullptr,
                                             .program = std::move(compiled),
                                             .data = active ? data[rank].data() : nullptr,
                                             .type = options.type,
                                             .op = options.op,
                                             .weight = Reference::Weight(static_cast<int>(rank))}));
  }
  if (!world.Finish(operations, kTurnsMin + kTurnsPerStep * steps)) {
    return absl::DeadlineExceededError("the program did not end");
  }
  for (size_t rank = 0; rank < workers; ++rank) {
    if (!operations[rank]->status().ok()) {
      return At(absl::StrCat("worker ", rank), operations[rank]->status());
    }
    const auto& sent = world.network().SentBy(static_cast<int>(rank));
    run.workers[rank].messages = sent.messages;
    run.workers[rank].bytes = sent.bytes;
  }
  for (size_t place = 0; place < program.active.size(); ++place) {
    const size_t rank = static_cast<size_t>(program.active[place]);
    for (uint64_t e = 0; e < program.elements(); ++e) {
      const std::optional<double> expected = reference.Expected(place, e);
      if (!expected) continue;
      ++run.workers[rank].checked;
      const double is = LoadElement(options.type, &data[rank][e * width]);
      if (!reference.IsRight(is, *expected)) ++run.workers[rank].wrong;
    }
  }
  run.turns = static_cast<uint64_t>(world.now_ns() / 1000);
  return run;
}

}  // namespace syncopate::tools
