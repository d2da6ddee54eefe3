// Writes programs step by step and works out their `after` edges.
#include "plan/collective/program_builder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"

namespace syncopate::plan {

ProgramBuilder::ProgramBuilder(const CollectiveRequest& request, absl::string_view algorithm,
                               std::vector<uint64_t> data_bounds,
                               std::vector<uint64_t> scratch_bounds) {
  program_.collective = request.collective;
  program_.algorithm = std::string(algorithm);
  program_.workers = request.workers;
  program_.active = request.active;
  if (HasRoot(request.collective)) program_.root = request.root;
  if (request.collective == Collective::kSendReceive) program_.target = request.target;
  program_.data_bounds = std::move(data_bounds);
  program_.scratch_bounds = std::move(scratch_bounds);
  // Blocks are runs of equally many chunks, one for each active worker.
  if (HasBlocks(request.collective)) {
    const uint32_t blocks = static_cast<uint32_t>(request.active.size());
    const uint32_t chunks = program_.chunks(Space::kData) / blocks;
    for (uint32_t i = 0; i <= blocks; ++i) program_.blocks.push_back(i * chunks);
  }
  program_.steps.resize(static_cast<size_t>(request.workers));
  access_.resize(static_cast<size_t>(request.workers));
}

void ProgramBuilder::Reserve(size_t steps) {
  for (const int worker : program_.active) {
    program_.steps[static_cast<size_t>(worker)].reserve(
        std::min<size_t>(steps, limits::kStepsPerWorkerMax));
  }
}

void ProgramBuilder::Send(int worker, int to, Chunks chunks) {
  Candidates candidates;
  NoteRead(worker, chunks, &candidates);
  Message(StepKind::kSend, worker, to, chunks, &candidates);
}

void ProgramBuilder::Receive(int worker, int from, Chunks chunks) {
  Candidates candidates;
  NoteWrite(worker, chunks, &candidates);
  Message(StepKind::kReceive, worker, from, chunks, &candidates);
}

void ProgramBuilder::ReceiveReduce(int worker, int from, Chunks chunks) {
  Candidates candidates;
  NoteWrite(worker, chunks, &candidates);
  Message(StepKind::kReceiveReduce, worker, from, chunks, &candidates);
}

void ProgramBuilder::Move(int from, Chunks source, int to, Chunks destination) {
  if (Empty(source)) return;
  Send(from, to, source);
  Receive(to, from, destination);
}

void ProgramBuilder::MoveReduce(int from, Chunks source, int to, Chunks destination) {
  if (Empty(source)) return;
  Send(from, to, source);
  ReceiveReduce(to, from, destination);
}

void ProgramBuilder::Copy(int worker, Chunks source, Chunks destination) {
  Local(StepKind::kCopy, worker, source, destination);
}

void ProgramBuilder::Reduce(int worker, Chunks source, Chunks destination) {
  Local(StepKind::kReduce, worker, source, destination);
}

absl::StatusOr<Program> ProgramBuilder::Finish() {
  if (too_long_) {
    return absl::InvalidArgumentError(absl::StrCat(
        program_.algorithm, " among ", program_.active.size(), " workers would need more than ",
        limits::kStepsPerWorkerMax, " steps for one of them: use fewer pieces"));
  }
  return std::move(program_);
}

bool ProgramBuilder::Empty(Chunks chunks) const {
  return program_.begin(chunks.space, chunks.first) ==
         program_.begin(chunks.space, chunks.first + chunks.count);
}

ProgramBuilder::Access& ProgramBuilder::AccessTo(int worker, Space space, uint32_t chunk) {
  std::vector<Access>& all = access_[static_cast<size_t>(worker)];
  const uint32_t data_chunks = program_.chunks(Space::kData);
  if (all.empty()) all.resize(data_chunks + program_.chunks(Space::kScratch));
  return all[space == Space::kData ? chunk : data_chunks + chunk];
}

// Reads follow the last write of each chunk; they need not follow each other.
void ProgramBuilder::NoteRead(int worker, Chunks chunks, Candidates* candidates) {
  const uint32_t step = static_cast<uint32_t>(program_.steps[static_cast<size_t>(worker)].size());
  for (uint32_t i = 0; i < chunks.count; ++i) {
    Access& access = AccessTo(worker, chunks.space, chunks.first + i);
    if (access.writer >= 0) candidates->push_back(static_cast<uint32_t>(access.writer));
    access.readers.push_back(step);
  }
}

// A write follows everything that used what it overwrites.
void ProgramBuilder::NoteWrite(int worker, Chunks chunks, Candidates* candidates) {
  const size_t step = program_.steps[static_cast<size_t>(worker)].size();
  for (uint32_t i = 0; i < chunks.count; ++i) {
    Access& access = AccessTo(worker, chunks.space, chunks.first + i);
    // Every reader already follows the writer, so an edge to the writer would add nothing.
    if (access.readers.empty()) {
      if (access.writer >= 0) candidates->push_back(static_cast<uint32_t>(access.writer));
    } else {
      candidates->insert(candidates->end(), access.readers.begin(), access.readers.end());
    }
    access.readers.clear();
    access.writer = static_cast<int64_t>(step);
  }
}

// Leaves the edges that say something. Programs are validated, compiled and sent as text, so an
// edge that follows from others would only cost.
void ProgramBuilder::Thin(int worker, Candidates* candidates) {
  if (candidates->size() < 2) return;
  std::sort(candidates->begin(), candidates->end());
  candidates->erase(std::unique(candidates->begin(), candidates->end()), candidates->end());
  if (candidates->size() < 2) return;
  const std::vector<Step>& steps = program_.steps[static_cast<size_t>(worker)];
  if (seen_in_.size() < steps.size()) seen_in_.resize(steps.size(), 0);
  ++walk_;
  // Walk back from every candidate. A candidate that the walk meets comes before another one
  // anyway, so its edge is not needed. Edges lead to earlier steps only, so the walk need not go
  // past the earliest candidate.
  const uint32_t earliest = candidates->front();
  stack_.assign(candidates->begin(), candidates->end());
  while (!stack_.empty()) {
    const uint32_t from = stack_.back();
    stack_.pop_back();
    for (uint32_t step : steps[from].after) {
      if (step < earliest || seen_in_[step] == walk_) continue;
      seen_in_[step] = walk_;
      stack_.push_back(step);
    }
  }
  candidates->erase(std::remove_if(candidates->begin(), candidates->end(),
                                   [&](uint32_t step) { return seen_in_[step] == walk_; }),
                    candidates->end());
}

void ProgramBuilder::Message(StepKind kind, int worker, int peer, Chunks chunks,
                             Candidates* candidates) {
  Step* step = Append(worker, candidates);
  if (step == nullptr) return;
  step->kind = kind;
  step->space = chunks.space;
  step->peer = peer;
  step->chunk = chunks.first;
  step->count = chunks.count;
}

void ProgramBuilder::Local(StepKind kind, int worker, Chunks source, Chunks destination) {
  Candidates candidates;
  NoteRead(worker, source, &candidates);
  NoteWrite(worker, destination, &candidates);
  Step* step = Append(worker, &candidates);
  if (step == nullptr) return;
  step->kind = kind;
  step->space = destination.space;
  step->source_space = source.space;
  step->chunk = destination.first;
  step->source_chunk = source.first;
  step->count = destination.count;
}

Step* ProgramBuilder::Append(int worker, Candidates* candidates) {
  std::vector<Step>& steps = program_.steps[static_cast<size_t>(worker)];
  // A program that is too long is never returned, so what was noted for it no longer matters.
  if (too_long_ || steps.size() >= limits::kStepsPerWorkerMax) {
    too_long_ = true;
    return nullptr;
  }
  Thin(worker, candidates);
  Step& step = steps.emplace_back();
  step.after.assign(candidates->begin(), candidates->end());
  return &step;
}

}  // namespace syncopate::plan
