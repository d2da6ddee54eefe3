// Runs a program with real numbers: all its workers in this process, on the engine and the loop
// transport, whose delays and orders a seed decides. What each worker ends with is compared, element
// by element, with what collective.h promises, computed without any of the engine's code.
#ifndef SYNCOPATE_TOOLS_PROGRAM_RUN_H_
#define SYNCOPATE_TOOLS_PROGRAM_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/program.h"
#include "syncopate/data_type.h"

namespace syncopate::tools {

struct ProgramRunOptions {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;  // read by collectives that reduce
  uint64_t seed = 1;             // of the data, the delays and the order of the workers' turns
};

struct ProgramRun {
  struct Worker {
    bool active = false;
    uint64_t messages = 0;  // that it sent
    uint64_t bytes = 0;     // that it sent
    uint64_t checked = 0;   // elements of which the collective promises something
    uint64_t wrong = 0;     // of these
  };
  std::vector<Worker> workers;  // by rank
  uint64_t turns = 0;           // of all workers together

  Worker Total() const;  // active: whether any is
  bool right() const { return Total().wrong == 0; }
};

// What all workers of one run may hold together, their copies of the program included.
inline constexpr uint64_t kProgramRunBytesMax = uint64_t{1} << 30;

// `program` must have been proved: one that does not end is given up after a number of turns.
// InvalidArgument for a type and reduction that do not go together; ResourceExhausted for a program
// that needs more than kProgramRunBytesMax.
absl::StatusOr<ProgramRun> RunOnLoop(const Program& program, const ProgramRunOptions& options);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROGRAM_RUN_H_
