// Three ways to have a say in how a collective runs: a planner of one's own, which the library may
// choose; rules that override the choice; and a Program of one's own. Every worker brings its rank,
// all get the sum, each time.
//
//   syncopate launch -n 4 -- ./own_program
#include <cstdio>
#include <string>
#include <vector>

#include "syncopate/planner.h"
#include "syncopate/syncopate.h"

// An all-reduce along a line: the sum grows from worker to worker, and comes back from the last. It
// is not quick, but it is short. docs/program.md has the language.
std::string LineProgram(int workers, uint64_t elements) {
  const std::string last = std::to_string(workers - 1);
  std::string text = "syncopate program 1\ncollective all-reduce\nworkers " +
                     std::to_string(workers) + "\nactive 0-" + last + "\ndata " +
                     std::to_string(elements) + "\n";
  for (int worker = 0; worker < workers; ++worker) {
    const std::string before = std::to_string(worker - 1), behind = std::to_string(worker + 1);
    std::vector<std::string> steps;
    if (worker > 0) steps.push_back("receive-reduce data 0 from " + before);
    if (worker + 1 < workers) {
      steps.push_back("send data 0 to " + behind);
      steps.push_back("receive data 0 from " + behind);
    }
    if (worker > 0) steps.push_back("send data 0 to " + before);
    text += "worker " + std::to_string(worker) + "\n";
    for (size_t i = 0; i < steps.size(); ++i) {
      text += "  " + std::to_string(i) + ": " + steps[i];
      if (i > 0) text += " after " + std::to_string(i - 1);
      text += "\n";
    }
  }
  return text + "end\n";
}

// The same for any request.
absl::StatusOr<std::string> PlanLine(const syncopate::PlanRequest& request) {
  if (static_cast<int>(request.active.size()) != request.workers) {
    return absl::UnimplementedError("the line needs data of all workers");
  }
  return LineProgram(request.workers, request.elements);
}

absl::Status Run() {
  // Before the start, so that the workers can see that all of them have it.
  absl::Status status = syncopate::RegisterPlanner({.name = "line",
                                                    .collective = syncopate::Collective::kAllReduce,
                                                    .summary = "from worker to worker and back",
                                                    .plan = PlanLine});
  if (!status.ok()) return status;
  syncopate::Options options;
  options.algorithms = "allreduce:0-64K:line";  // as SYNCOPATE_ALGORITHM would have it
  auto worker = syncopate::Worker::Start(options);
  if (!worker.ok()) return worker.status();

  constexpr uint64_t kElements = 1000;
  std::vector<float> numbers(kElements);
  syncopate::Call call = {.data = syncopate::Array::Of(numbers.data(), kElements)};
  const auto run = [&](const char* how) {
    for (float& number : numbers) number = static_cast<float>((*worker)->rank());
    const absl::Status ran = (*worker)->world().Run(call);
    if (ran.ok()) {
      std::printf("rank %d of %d, %s: the sum is %g\n", (*worker)->rank(), (*worker)->size(), how,
                  numbers[999]);
    }
    return ran;
  };
  if (status = run("the line by a rule"); !status.ok()) return status;
  call.algorithm = "ring";  // what a call asks for goes before the rules
  if (status = run("a ring by name"); !status.ok()) return status;
  call.algorithm = "";
  call.program = LineProgram((*worker)->size(), kElements);
  return run("a program of our own");
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
