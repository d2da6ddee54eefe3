// One rank of `syncopate train`, which starts it: syncopate-train OPTIONS, as JSON.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "observe/summary.h"
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
  if (argc < 2) {
    std::fprintf(stderr, "syncopate-train: run syncopate train; it starts this program\n");
    return 2;
  }
  const absl::StatusOr<TrainOptions> options = ParseTrainOptions(argv[1]);
  if (!options.ok()) return Complain(options.status(), 0);
  bool json = false, progress = false;
  for (int i = 2; i < argc; ++i) {
    json |= std::string(argv[i]) == "--json";
    progress |= std::string(argv[i]) == "--progress";
  }
  const auto worker = Worker::Start();
  if (!worker.ok()) return Complain(worker.status(), 0);
  const int rank = (*worker)->rank();
  const absl::StatusOr<observe::Summary> summary =
      Train(**worker, *options, [&](absl::string_view line) {
        if (progress) std::fprintf(stderr, "%s\n", std::string(line).c_str());
      });
  if (!summary.ok()) return Complain(summary.status(), rank);
  if (rank != 0) return 0;
  const std::string text = json ? absl::StrCat(ToJson(*summary), "\n") : ToTable(*summary);
  std::fputs(text.c_str(), stdout);
  return summary->reached.value_or(true) ? 0 : 1;
}

}  // namespace
}  // namespace syncopate::train

int main(int argc, char** argv) { return syncopate::train::Main(argc, argv); }
