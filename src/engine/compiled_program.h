// A program made ready to run by one of its workers: sends matched with receives, and two shapes
// recognised that direct memory can run with fewer messages than the steps say, with the same
// result.
#ifndef SYNCOPATE_ENGINE_COMPILED_PROGRAM_H_
#define SYNCOPATE_ENGINE_COMPILED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "model/program.h"

namespace syncopate::engine {

struct CompiledProgram {
  enum class Shape : uint8_t {
    kEmpty,     // nothing moves (no elements, or one worker): the start gate is all there is to it
    kOneShot,   // each worker copies its data to scratch, then folds the scratch of all
    kExchange,  // each worker folds its share of all workers' data and writes it to all
    kSteps,     // anything else: step by step
  };
  // What one worker owns in an exchange.
  struct Share {
    uint64_t begin = 0;  // elements
    uint64_t end = 0;
    std::vector<int> order;  // the workers whose data is added, in this order
  };
  // One of this worker's steps.
  struct StepPlan {
    Step step;
    uint32_t match = 0;  // the peer's step at the other end of a send or receive
    // Where the data of a receive lies at the sender; their_begin in elements.
    uint64_t their_begin = 0;
    Space their_space = Space::kData;
    std::vector<uint32_t> dependents;  // steps that have this one in `after`
  };

  // Without its steps: this worker's own are in `plan`, and jobs with many groups keep many programs.
  Program program;
  int self = 0;
  // False: this worker contributes no data and at most relays that of others.
  bool active = true;
  uint64_t digest = 0;
  Shape shape = Shape::kSteps;
  std::vector<int> order;          // one-shot: the order of the fold, the same on all workers
  std::vector<Share> shares;       // exchange: by worker
  std::vector<StepPlan> plan;      // steps: in the order of the program
  std::vector<uint64_t> incoming;  // elements that each worker sends to this one
};

// Validates the program, then compiles it for worker `self`. It does not prove the program correct:
// a caller that takes programs from outside calls ProveProgram() first.
absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompileProgram(Program program, int self);

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_COMPILED_PROGRAM_H_
