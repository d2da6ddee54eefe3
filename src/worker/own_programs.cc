#include "worker/own_programs.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/program_validator.h"

namespace syncopate::worker {
namespace {

absl::Status Refusal(absl::string_view why) {
  return WithBlast(absl::InvalidArgumentError(absl::StrCat("the program from outside: ", why)),
                   BlastRadius::kOperation);
}

std::vector<uint64_t> BlockElements(const Program& program) {
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i + 1 < program.blocks.size(); ++i) {
    sizes.push_back(program.data_bounds[program.blocks[i + 1]] -
                    program.data_bounds[program.blocks[i]]);
  }
  return sizes;
}

// Whether the program, which must be well-formed, is for this request.
absl::Status CheckAgainst(const Program& program, const plan::CollectiveRequest& request) {
  const auto differs = [](absl::string_view what, const auto& its, const auto& wanted) {
    return Refusal(absl::StrCat("it is for ", what, " ", its, ", the call for ", wanted));
  };
  if (program.collective != request.collective) {
    return differs("the collective", Name(program.collective), Name(request.collective));
  }
  if (program.workers != request.workers) {
    return differs("a number of workers of", program.workers, request.workers);
  }
  if (program.active != request.active) {
    return differs("the active workers", FormatRanks(program.active), FormatRanks(request.active));
  }
  if (HasRoot(request.collective) && program.root != request.root) {
    return differs("the root", program.root, request.root);
  }
  if (request.collective == Collective::kSendReceive && program.target != request.target) {
    return differs("the target", program.target, request.target);
  }
  if (program.elements() != request.elements) {
    return differs("a number of elements of", program.elements(), request.elements);
  }
  if (HasBlocks(request.collective) && BlockElements(program) != request.block_elements) {
    return differs("blocks of", absl::StrJoin(BlockElements(program), ","),
                   absl::StrCat(absl::StrJoin(request.block_elements, ","), " elements"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> ReadOwnProgram(const std::string& text,
                                       const plan::CollectiveRequest& request) {
  absl::StatusOr<Program> program = ParseProgram(text);
  if (!program.ok()) return Refusal(program.status().message());
  SYNCOPATE_RETURN_IF_ERROR(CheckAgainst(*program, request));
  const absl::StatusOr<ProgramProof> proof = ProveProgram(*program);
  if (!proof.ok()) return Refusal(proof.status().message());
  return program;
}

std::optional<absl::StatusOr<PlannedProgram>> OwnPrograms::Find(const plan::ProgramKey& key,
                                                                const std::string& text) {
  std::shared_ptr<const engine::CompiledProgram> known;
  {
    MutexLock lock(&mutex_);
    const auto found = programs_.find(std::make_pair(text, key.self));
    if (found == programs_.end()) return std::nullopt;
    known = found->second;
  }
  if (absl::Status fits = CheckAgainst(known->program, key.request); !fits.ok()) return fits;
  return PlannedProgram{.program = std::move(known)};
}

absl::StatusOr<PlannedProgram> OwnPrograms::Get(const plan::ProgramKey& key,
                                                const std::string& text) {
  if (auto known = Find(key, text)) return *std::move(known);
  SYNCOPATE_ASSIGN_OR_RETURN(Program program, ReadOwnProgram(text, key.request));
  SYNCOPATE_ASSIGN_OR_RETURN(std::shared_ptr<const engine::CompiledProgram> compiled,
                             engine::CompileProgram(std::move(program), key.self));
  MutexLock lock(&mutex_);
  if (programs_.size() >= kProgramsMax || text_bytes_ + text.size() > kTextBytesMax) {
    programs_.clear();
    text_bytes_ = 0;
  }
  // Another thread may have read the same text meanwhile.
  const auto [place, fresh] =
      programs_.try_emplace(std::make_pair(text, key.self), std::move(compiled));
  if (fresh) text_bytes_ += text.size();
  return PlannedProgram{.program = place->second};
}

}  // namespace syncopate::worker
