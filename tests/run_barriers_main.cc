// Meets the other workers of its job, says "ready" and passes barriers until that fails; then says
// what went wrong. The exit code is 3, or that of the argument.
#include <cstdlib>
#include <iostream>

#include "syncopate/syncopate.h"

int main(int argc, char** argv) {
  const auto worker = syncopate::Worker::Start();
  if (!worker.ok()) {
    std::cerr << worker.status().message() << std::endl;
    return 1;
  }
  absl::Status status = (*worker)->world().Barrier();
  if (status.ok()) std::cout << "ready" << std::endl;
  while (status.ok()) status = (*worker)->world().Barrier();
  std::cerr << status.message() << std::endl;
  return argc > 1 ? std::atoi(argv[1]) : 3;
}
