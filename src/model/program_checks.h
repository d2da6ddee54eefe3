// The parts of Validate(): the text reader uses them one by one, to name the line of a fault.
#ifndef SYNCOPATE_MODEL_PROGRAM_CHECKS_H_
#define SYNCOPATE_MODEL_PROGRAM_CHECKS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/program.h"

namespace syncopate {

// A fault outside the steps. `field` is the keyword of the text form: "workers", "root", ...
struct HeadFault {
  absl::string_view field;
  std::string what;
};

// All of the program but its steps.
std::optional<HeadFault> FindHeadFault(const Program& program);

// Step `index` of `worker`, in a program whose head has no fault.
absl::Status CheckStep(const Program& program, int worker, size_t index);

inline bool IsMessage(StepKind kind) { return kind <= StepKind::kReceiveReduce; }
inline bool IsReducing(StepKind kind) {
  return kind == StepKind::kReceiveReduce || kind == StepKind::kReduce;
}

absl::string_view Name(StepKind kind);  // "receive-reduce"
absl::string_view Name(Space space);    // "data"

// A step without its `after`: "receive-reduce data 4-5 from 1".
std::string StepText(const Step& step);

// A step and its place: "worker 2, step 7 (send data 3 to 0)".
std::string StepPlace(const Program& program, int worker, size_t index);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_CHECKS_H_
