// Workers report to rank 0 beside their collectives, and rank 0 tells who was slowest.
#include <atomic>
#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "syncopate/syncopate.h"

absl::Status Run() {
  std::atomic<int> reports{0}, slowest{0}, slowest_ms{-1};  // they outlive the worker
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  const int rank = (*worker)->rank(), size = (*worker)->size();

  // Handlers run on a thread of the library's, whatever this one does.
  absl::Status status = (*worker)->Receive("report", [&](syncopate::Mail mail) {
    if (mail.kind != syncopate::Mail::Kind::kMessage) return;  // `mail.from` is lost, or left
    const int ms = std::stoi(mail.bytes);
    if (ms > slowest_ms) {
      slowest_ms = ms;
      slowest = mail.from;
    }
    ++reports;
  });
  if (!status.ok()) return status;

  for (int step = 0; step < 10; ++step) {
    float data = 1;
    status =
        (*worker)->world().AllReduce(syncopate::Array::Of(&data, 1), syncopate::ReduceOp::kSum);
    if (!status.ok()) return status;
    // It never waits, and it comes before any data that has not left yet.
    status = (*worker)->Send(0, "report", std::to_string(10 * rank + step));
    if (!status.ok()) return status;
  }

  while (rank == 0 && reports < 10 * size && (*worker)->Lost().empty())
    absl::SleepFor(absl::Milliseconds(1));
  if (rank == 0) {
    std::printf("rank 0: %d reports, the slowest worker is %d\n", reports.load(), slowest.load());
  }
  return (*worker)->world().Barrier();  // nobody leaves before rank 0 has all reports
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
