// One rank of `syncopate train`, which starts it: syncopate-train RUN, then
//   --json       the summary as JSON instead of a table
//   --progress   every line of progress on standard error, for a terminal
//   --lines      the last of them every half minute, for a log (base/progress.h)
//
// The options come as JSON in SYNCOPATE_TRAIN_OPTIONS, which also reaches other hosts; RUN is for
// people who look at the list of processes.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/process_start.h"
#include "base/progress.h"
#include "observe/summary.h"
#include "strategy/registry.h"
#include "sync/service_order.h"
#include "syncopate/syncopate.h"
#include "train/trainer.h"

namespace syncopate::train {
namespace {

// 1: failed, 2: bad input.
int Complain(const absl::Status& status, int rank) {
  // Another rank tells, and its exit code counts: a launcher may end it when this one fails.
  if (absl::IsCancelled(status)) return 0;
  std::fprintf(stderr, "syncopate train: rank %d: %s\n", rank,
               std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                 absl::IsAlreadyExists(status)
             ? 2
             : 1;
}

int Main(int argc, char** argv) {
  const std::optional<std::string> text = ProcessEnvironment()(kTrainOptionsVariable);
  if (!text) {
    std::fprintf(stderr, "syncopate-train: run syncopate train; it starts this program\n");
    return 2;
  }
  const absl::StatusOr<TrainOptions> options = ParseTrainOptions(*text);
  if (!options.ok()) return Complain(options.status(), 0);
  const int64_t began_ns = ProcessStartNs();
  bool json = false, progress = false, lines = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    json |= word == "--json";
    progress |= word == "--progress";
    lines |= word == "--lines";
  }
  const absl::StatusOr<ProgressOptions> speech =
      ProgressOptionsFor(ProcessEnvironment(), /*terminal=*/false);
  if (!speech.ok()) return Complain(speech.status(), 0);
  const auto strategy = strategy::FindStrategy(options->strategy);
  if (!strategy.ok()) return Complain(strategy.status(), 0);
  Options start;
  start.server_ranks = (*strategy)->servers();
  const auto worker = Worker::Start(start);
  if (!worker.ok()) return Complain(worker.status(), 0);
  const int rank = (*worker)->rank();
  // Made by the first that speaks: another worker may have to.
  std::optional<Progress> log;
  const auto say = [&](absl::string_view line) {
    if (progress) std::fprintf(stderr, "%s\n", std::string(line).c_str());
    if (!lines) return;
    if (!log) log.emplace("syncopate train", *speech, MonotonicClock(), std::cerr);
    log->Show(line);
  };
  // By the worker that writes the run, which tells how far it is from then on.
  if (lines && sync::ServiceOrder(**worker).front() == rank) say("starting");
  const absl::StatusOr<std::optional<observe::Summary>> summary =
      Train(**worker, *options, say, began_ns);
  log.reset();
  if (!summary.ok()) return Complain(summary.status(), rank);
  if (!summary->has_value()) return 0;
  // Whether a target was reached the command reads in the summary: this worker has done its work.
  const std::string end =
      json ? absl::StrCat(ToJson(**summary, options->run_folder), "\n") : ToTable(**summary);
  std::fputs(end.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace syncopate::train

int main(int argc, char** argv) { return syncopate::train::Main(argc, argv); }
