// Writes programs step by step and works out their `after` edges.
//
// The builder reads its calls as a sequential program: what each step does is what it would do if
// every step finished before the next call. It gives a step exactly those edges that this needs:
// a read comes after the last write of its chunks, a write also after the reads since then; edges
// that follow from others are left out. Steps that share no chunk stay free to overlap.
//
// A planner that only uses Move, MoveReduce, Copy and Reduce therefore cannot deadlock at any
// message delay: of the steps that are not done, those of the earliest call can always run. One
// that calls Send, Receive and ReceiveReduce itself must find such an order of its own; each pair
// of ends must be added in the same order on both sides.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_PROGRAM_BUILDER_H_
#define SYNCOPATE_PLAN_COLLECTIVE_PROGRAM_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/program.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

// A run of chunks of one space.
struct Chunks {
  Space space = Space::kData;
  uint32_t first = 0;
  uint32_t count = 1;
};
inline Chunks Data(uint32_t first, uint32_t count = 1) { return {Space::kData, first, count}; }
inline Chunks Scratch(uint32_t first, uint32_t count = 1) {
  return {Space::kScratch, first, count};
}

class ProgramBuilder {
 public:
  // Workers are named by rank in all calls. Where the collective has blocks, block i is
  // data chunks [i * n, (i + 1) * n) with n = chunks / blocks.
  ProgramBuilder(const CollectiveRequest& request, absl::string_view algorithm,
                 std::vector<uint64_t> data_bounds, std::vector<uint64_t> scratch_bounds = {0});

  // An active worker has about this many steps.
  void Reserve(size_t steps);

  // One end of a message each.
  void Send(int worker, int to, Chunks chunks);
  void Receive(int worker, int from, Chunks chunks);
  void ReceiveReduce(int worker, int from, Chunks chunks);

  // Both ends of a message; nothing if the chunks have no elements.
  void Move(int from, Chunks source, int to, Chunks destination);
  void MoveReduce(int from, Chunks source, int to, Chunks destination);
  // The same chunks of data at both ends.
  void Move(int from, int to, Chunks chunks) { Move(from, chunks, to, chunks); }
  void MoveReduce(int from, int to, Chunks chunks) { MoveReduce(from, chunks, to, chunks); }

  // Steps within a worker.
  void Copy(int worker, Chunks source, Chunks destination);
  void Reduce(int worker, Chunks source, Chunks destination);

  // The program, or InvalidArgument if it is larger than programs may be. Call once.
  absl::StatusOr<Program> Finish();

 private:
  // The steps that touched a chunk of a worker last.
  struct Access {
    int64_t writer = -1;                       // the last step that wrote it; -1: none
    absl::InlinedVector<uint32_t, 2> readers;  // the steps that read it since then
  };
  using Candidates = absl::InlinedVector<uint32_t, 4>;

  bool Empty(Chunks chunks) const;
  Access& AccessTo(int worker, Space space, uint32_t chunk);
  // Add to `candidates` the steps that a read or write of the chunks must follow, and note that the
  // worker's next step reads or writes them.
  void NoteRead(int worker, Chunks chunks, Candidates* candidates);
  void NoteWrite(int worker, Chunks chunks, Candidates* candidates);
  // Drops from `candidates` what follows from the rest, and sorts it.
  void Thin(int worker, Candidates* candidates);
  void Message(StepKind kind, int worker, int peer, Chunks chunks, Candidates* candidates);
  void Local(StepKind kind, int worker, Chunks source, Chunks destination);
  // The worker's next step, with its edges; nullptr if the program has become too long.
  Step* Append(int worker, Candidates* candidates);

  Program program_;
  bool too_long_ = false;
  std::vector<std::vector<Access>> access_;  // by worker, made at its first step; data then scratch
  // Used by Thin(), and members only to keep their memory. seen_in_ has, by step, the number of the
  // last walk that met it.
  std::vector<uint32_t> stack_;
  std::vector<uint64_t> seen_in_;
  uint64_t walk_ = 0;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_PROGRAM_BUILDER_H_
