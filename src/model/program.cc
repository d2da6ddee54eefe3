// Well-formedness and digest of a program. Well-formed means that every index is in range and every
// limit kept, so that whoever runs, plays or proves the program needs no checks of its own; that it
// does what its collective promises is proved in program_validator.cc.
#include "model/program.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/digest_stream.h"
#include "base/limits.h"
#include "base/status.h"
#include "model/program_checks.h"

namespace syncopate {
namespace {

// What is wrong with a table of bounds, or an empty string.
std::string BoundsFault(const std::vector<uint64_t>& bounds) {
  if (bounds.empty() || bounds.front() != 0) return "the bounds must start with 0";
  if (bounds.size() - 1 > limits::kChunksMax) {
    return absl::StrCat(bounds.size() - 1, " chunks, more than the limit of ", limits::kChunksMax);
  }
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] < bounds[i - 1]) {
      return absl::StrCat("chunk ", i - 1, " ends before it begins (", bounds[i - 1], " to ",
                          bounds[i], ")");
    }
  }
  if (bounds.back() > limits::kElementsMax) {
    return absl::StrCat(bounds.back(), " elements, more than the limit of ", limits::kElementsMax);
  }
  return "";
}

// The name is the rest of a line of the text form, where # begins a comment and spaces at either
// end would be lost.
std::string AlgorithmFault(const std::string& name) {
  if (name.size() > limits::kAlgorithmBytesMax) return "the name is too long";
  for (char c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) || c == '#') {
      return "the name must be printable ASCII without '#'";
    }
  }
  if (absl::StripAsciiWhitespace(name) != name)
    return "the name must not begin or end with a space";
  return "";
}

std::string BlocksFault(const Program& program) {
  const std::vector<uint32_t>& blocks = program.blocks;
  if (!HasBlocks(program.collective)) {
    return blocks.empty() ? "" : absl::StrCat(Name(program.collective), " has no blocks");
  }
  const size_t active = program.active.size();
  if (blocks.size() != active + 1) {
    return absl::StrCat("there must be one block per active worker, ", active, ", not ",
                        blocks.empty() ? 0 : blocks.size() - 1);
  }
  if (blocks.front() != 0 || !std::is_sorted(blocks.begin(), blocks.end())) {
    return "the blocks must start with chunk 0 and follow one another";
  }
  if (blocks.back() != program.chunks(Space::kData)) {
    return absl::StrCat("the blocks cover ", blocks.back(), " chunks, the data has ",
                        program.chunks(Space::kData));
  }
  // Block j of worker i becomes block i of worker j, chunk by chunk.
  if (program.collective != Collective::kAllToAll) return "";
  for (size_t i = 1; i < active; ++i) {
    bool alike = blocks[i + 1] - blocks[i] == blocks[1];
    for (uint32_t c = 0; alike && c < blocks[1]; ++c) {
      alike = program.begin(Space::kData, blocks[i] + c + 1) -
                  program.begin(Space::kData, blocks[i] + c) ==
              program.begin(Space::kData, c + 1) - program.begin(Space::kData, c);
    }
    if (!alike) {
      return absl::StrCat("all-to-all exchanges blocks, so all must be cut alike, but block ", i,
                          " is not cut like block 0");
    }
  }
  return "";
}

bool IsActive(const Program& program, int worker) {
  return std::binary_search(program.active.begin(), program.active.end(), worker);
}

// `rank` must be active where it is `wanted`, else -1.
std::string RankFault(const Program& program, bool wanted, int rank) {
  if (!wanted) return rank == -1 ? "" : absl::StrCat(Name(program.collective), " has none");
  if (IsActive(program, rank)) return "";
  if (rank == -1) return absl::StrCat(Name(program.collective), " needs one");
  return absl::StrCat("worker ", rank, " is not active");
}

template <typename List>
void AppendList(std::string& out, const List& list) {
  Append<uint64_t>(out, list.size());
  for (const auto& item : list) Append(out, item);
}

// All fields in one piece: a program has very many steps, and is digested while a call waits.
void AppendStep(std::string& out, const Step& step) {
  char bytes[3 + 4 * 4 + 8];
  char* end = bytes;
  const auto put = [&end](auto value) {
    std::memcpy(end, &value, sizeof(value));
    end += sizeof(value);
  };
  put(static_cast<uint8_t>(step.kind));
  put(static_cast<uint8_t>(step.space));
  put(static_cast<uint8_t>(step.source_space));
  put(step.peer);
  put(step.chunk);
  put(step.source_chunk);
  put(step.count);
  put(uint64_t{step.after.size()});
  out.append(bytes, sizeof(bytes));
  out.append(reinterpret_cast<const char*>(step.after.data()),
             step.after.size() * sizeof(step.after[0]));
}

std::string RunText(uint32_t chunk, uint32_t count) {
  if (count == 1) return absl::StrCat(chunk);
  return absl::StrCat(chunk, "-", uint64_t{chunk} + count - 1);
}

}  // namespace

absl::string_view Name(StepKind kind) {
  switch (kind) {
    case StepKind::kSend:
      return "send";
    case StepKind::kReceive:
      return "receive";
    case StepKind::kReceiveReduce:
      return "receive-reduce";
    case StepKind::kCopy:
      return "copy";
    case StepKind::kReduce:
      return "reduce";
  }
  return "?";
}

absl::string_view Name(Space space) { return space == Space::kData ? "data" : "scratch"; }

std::string StepText(const Step& step) {
  std::string text =
      absl::StrCat(Name(step.kind), " ", Name(step.space), " ", RunText(step.chunk, step.count));
  if (IsMessage(step.kind)) {
    absl::StrAppend(&text, step.kind == StepKind::kSend ? " to " : " from ", step.peer);
  } else {
    absl::StrAppend(&text, " from ", Name(step.source_space), " ",
                    RunText(step.source_chunk, step.count));
  }
  return text;
}

std::string StepPlace(const Program& program, int worker, size_t index) {
  return absl::StrCat("worker ", worker, ", step ", index, " (",
                      StepText(program.steps[worker][index]), ")");
}

std::optional<HeadFault> FindHeadFault(const Program& program) {
  if (program.workers < 1 || program.workers > limits::kWorkersMax) {
    return HeadFault{"workers", absl::StrCat(program.workers, " is not a number from 1 to ",
                                             limits::kWorkersMax)};
  }
  if (program.active.empty()) return HeadFault{"active", "at least one worker must be active"};
  for (size_t i = 0; i < program.active.size(); ++i) {
    if (program.active[i] < 0 || program.active[i] >= program.workers) {
      return HeadFault{"active", absl::StrCat("worker ", program.active[i], " is not one of 0 to ",
                                              program.workers - 1)};
    }
    if (i > 0 && program.active[i] <= program.active[i - 1]) {
      return HeadFault{"active", "the ranks must be sorted, without repeats"};
    }
  }
  std::string fault = AlgorithmFault(program.algorithm);
  if (!fault.empty()) return HeadFault{"algorithm", fault};
  fault = RankFault(program, HasRoot(program.collective), program.root);
  if (!fault.empty()) return HeadFault{"root", fault};
  fault = RankFault(program, program.collective == Collective::kSendReceive, program.target);
  if (!fault.empty()) return HeadFault{"target", fault};
  fault = BoundsFault(program.data_bounds);
  if (fault.empty() && program.collective == Collective::kBarrier && program.elements() != 0) {
    fault = "a barrier has no data: its chunks must be empty";
  }
  if (!fault.empty()) return HeadFault{"data", fault};
  fault = BoundsFault(program.scratch_bounds);
  if (!fault.empty()) return HeadFault{"scratch", fault};
  fault = BlocksFault(program);
  if (!fault.empty()) return HeadFault{"blocks", fault};
  return std::nullopt;
}

absl::Status CheckStep(const Program& program, int worker, size_t index) {
  const Step& step = program.steps[worker][index];
  const auto fault = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", worker, ", step ", index, ": ", what...));
  };
  const auto inside = [&](Space space, uint32_t chunk) {
    return uint64_t{chunk} + step.count <= program.chunks(space);
  };
  if (step.count < 1) return fault("a step covers at least one chunk");
  if (!inside(step.space, step.chunk)) {
    return fault("\"", StepText(step), "\" goes past the ", program.chunks(step.space),
                 " chunks of ", Name(step.space));
  }
  if (IsMessage(step.kind)) {
    if (step.peer < 0 || step.peer >= program.workers) {
      return fault("the peer ", step.peer, " is not one of 0 to ", program.workers - 1);
    }
    if (step.peer == worker) return fault("a worker cannot exchange messages with itself");
    if (step.source_space != Space::kData || step.source_chunk != 0) {
      return fault("a message has no source chunk");
    }
  } else {
    if (step.peer != -1) return fault("a local step has no peer");
    if (!inside(step.source_space, step.source_chunk)) {
      return fault("\"", StepText(step), "\" reads past the ", program.chunks(step.source_space),
                   " chunks of ", Name(step.source_space));
    }
  }
  // An empty step moves no numbers, so it may be of any kind.
  if (IsReducing(step.kind) && !Reduces(program.collective) && program.size(step) > 0) {
    return fault(Name(program.collective), " adds nothing up, but the step is a ", Name(step.kind));
  }
  for (uint32_t earlier : step.after) {
    // Dependencies that only point back cannot form a cycle within a worker; those between workers,
    // through messages, are the validator's business.
    if (earlier >= index) {
      return fault("it comes after step ", earlier,
                   ", which is not an earlier one: a dependency cycle, or a forward reference that "
                   "could make one");
    }
  }
  return absl::OkStatus();
}

absl::Status Validate(const Program& program) {
  if (std::optional<HeadFault> fault = FindHeadFault(program)) {
    return absl::InvalidArgumentError(absl::StrCat(fault->field, ": ", fault->what));
  }
  if (program.steps.size() != static_cast<size_t>(program.workers)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are step lists for ", program.steps.size(), " workers, not for ", program.workers));
  }
  for (int worker = 0; worker < program.workers; ++worker) {
    const size_t count = program.steps[worker].size();
    if (count > limits::kStepsPerWorkerMax) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", worker, ": ", count,
                                                     " steps, more than the limit of ",
                                                     limits::kStepsPerWorkerMax));
    }
    for (size_t index = 0; index < count; ++index) {
      SYNCOPATE_RETURN_IF_ERROR(CheckStep(program, worker, index));
    }
  }
  return absl::OkStatus();
}

// Over everything that changes what the workers do. The name of the algorithm does not: two
// planners that make the same program agree.
Digest DigestOf(const Program& program) {
  DigestStream digest;
  std::string bytes;
  Append(bytes, static_cast<uint8_t>(program.collective));
  Append(bytes, program.workers);
  AppendList(bytes, program.active);
  Append(bytes, program.root);
  Append(bytes, program.target);
  AppendList(bytes, program.data_bounds);
  AppendList(bytes, program.scratch_bounds);
  AppendList(bytes, program.blocks);
  for (const std::vector<Step>& steps : program.steps) {
    Append<uint64_t>(bytes, steps.size());
    for (const Step& step : steps) AppendStep(bytes, step);
    // One worker's at a time: together they are hundreds of kilobytes, which would come from the system each time.
    digest.Add(bytes);
    bytes.clear();
  }
  digest.Add(bytes);
  return digest.Get();
}

}  // namespace syncopate
