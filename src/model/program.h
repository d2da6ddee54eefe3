// The transfer program: one form for every collective.
//
// A Program says, for each worker, which chunks of a buffer it sends, receives, adds and copies,
// and in which order. It is written in elements, not bytes, so one program serves every type and
// reduction. Planners (plan/) make programs; the validator (model/program_validator.h) proves them;
// the cost model, the simulator and the engine run them. Nothing else in the system knows what a
// ring is. docs/program.md has the grammar of the text form and a worked example.
//
// Buffers. Every worker has a *data* buffer (the caller's: input before, output after, always in
// place) and a *scratch* buffer (the engine's; its contents before are undefined and after are
// dropped). Each space is cut into chunks by a table of bounds that is the same on all workers:
// chunk i covers the elements [bounds[i], bounds[i+1]). Chunks may be empty. A step names a run of
// `count` consecutive chunks.
//
// Meaning of a step. A step starts when all steps in `after` (indices of earlier steps of the same
// worker) are done.
//   send            offers the chunks to `peer`; done when the peer has done the matching receive
//   receive         waits for the matching send to have started, then writes the chunks
//   receive-reduce  waits as receive does, then reduces the received values into the chunks:
//                   chunk = chunk (op) received
//   copy, reduce    local: from `source_space`/`source_chunk` into `space`/`chunk`;
//                   reduce: chunk = chunk (op) source
// The k-th send from p to q in p's list matches the k-th receive(-reduce) from p in q's list,
// however the messages travel.
//
// Two steps of one worker that touch a common chunk, at least one of them writing it, must be
// ordered by a path of `after` edges: a program never relies on message timing for its memory
// safety.
#ifndef SYNCOPATE_MODEL_PROGRAM_H_
#define SYNCOPATE_MODEL_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "syncopate/collective.h"

namespace syncopate {

enum class StepKind : uint8_t { kSend, kReceive, kReceiveReduce, kCopy, kReduce };
enum class Space : uint8_t { kData, kScratch };

struct Step {
  StepKind kind = StepKind::kSend;
  Space space = Space::kData;         // what a send reads; what every other kind writes
  Space source_space = Space::kData;  // copy, reduce: what is read
  int32_t peer = -1;                  // send: to whom; receive, receive-reduce: from whom
  uint32_t chunk = 0;                 // first chunk in `space`
  uint32_t source_chunk = 0;          // copy, reduce: first chunk in `source_space`
  uint32_t count = 1;                 // how many chunks; at least 1
  absl::InlinedVector<uint32_t, 2> after;

  friend bool operator==(const Step&, const Step&) = default;
};

struct Program {
  Collective collective = Collective::kAllReduce;
  std::string algorithm;  // which planner made it, for people: "ring", "direct", ...
  int workers = 0;        // ranks 0 .. workers-1
  // Sorted ranks whose data takes part; the others may relay through scratch.
  std::vector<int> active;
  int root = -1;    // where HasRoot(collective)
  int target = -1;  // send-receive only
  // The first is 0, none is less than the one before, the last is the number of elements of data,
  // or of scratch.
  std::vector<uint64_t> data_bounds = {0};
  std::vector<uint64_t> scratch_bounds = {0};
  // Where HasBlocks(collective): block i is the chunks [blocks[i], blocks[i+1]) of data;
  // active.size() + 1 entries.
  std::vector<uint32_t> blocks;
  std::vector<std::vector<Step>> steps;  // by worker

  uint64_t elements() const { return data_bounds.back(); }
  uint64_t scratch_elements() const { return scratch_bounds.back(); }
  uint32_t chunks(Space space) const {
    return static_cast<uint32_t>((space == Space::kData ? data_bounds : scratch_bounds).size() - 1);
  }
  // The elements that `step` touches in `space`, or reads in `source_space`.
  uint64_t begin(Space space, uint32_t chunk) const {
    return (space == Space::kData ? data_bounds : scratch_bounds)[chunk];
  }
  uint64_t size(const Step& step) const {
    return begin(step.space, step.chunk + step.count) - begin(step.space, step.chunk);
  }

  friend bool operator==(const Program&, const Program&) = default;
};

// Well-formedness: every index in range, limits held, `after` pointing backwards, bounds sorted.
// The first fault, with its place ("worker 2, step 5: ..."). Whether the program computes its
// collective is ProveProgram()'s business.
absl::Status Validate(const Program& program);

// The text form; ParseProgram(ToText(p)) == p for every valid p. ParseProgram validates; errors
// name the line.
std::string ToText(const Program& program);
absl::StatusOr<Program> ParseProgram(absl::string_view text);

// The digest of all that matters for running it (not of `algorithm`).
Digest DigestOf(const Program& program);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_H_
