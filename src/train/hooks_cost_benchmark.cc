// What our hooks cost one worker: an ordinary LibTorch loop beside the same loop with DataParallel,
// and beside our trainer. Contestants take turns; ratios with their spread over rounds.
//
//   hooks_cost_benchmark [MODEL BATCH]...
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "train/hooks_cost_testing.h"
#include "train/trainer.h"

namespace syncopate::train::testing {
namespace {

constexpr int kRounds = 7;

struct Ratios {
  std::vector<double> values;
  void Print(const char* what) const {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    std::printf("    %-34s %.4f  (%.4f to %.4f over %zu rounds)\n", what, MedianOf(values), *least,
                *most, values.size());
  }
};

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The trainer's median iteration, by its own account.
absl::StatusOr<double> TrainerSeconds(Worker& worker, const std::string& model, int64_t batch,
                                      int64_t iterations) {
  TrainOptions options;
  options.model = model;
  options.data = ReadsText(model) ? "synthetic-text" : "synthetic";
  options.synthetic_samples = 400;
  options.batch = batch;
  options.iterations = iterations;
  options.evaluate_samples = 1;
  options.threads = 1;
  options.rate.base = 0.01;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<observe::Summary> summary,
                             Train(worker, options, [](absl::string_view) {}));
  return summary.value_or(observe::Summary()).iteration_ms_p50.value_or(NAN) * 1e-3;
}

absl::Status Compare(Worker& worker, const std::string& model, int64_t batch) {
  // About a second for each contestant and round.
  SYNCOPATE_ASSIGN_OR_RETURN(const HooksCost first, MeasureHooks(worker, model, batch, 5));
  const double each = MedianOf(first.plain.wall_seconds);
  const int iterations = std::clamp(static_cast<int>(1 / each), 10, 500);
  std::printf("%s, batch %ld: an iteration takes %.2f ms; %d of each a round\n", model.c_str(),
              static_cast<long>(batch), each * 1e3, iterations);
  Ratios median, mean, processor, trainer;
  for (int round = 0; round < kRounds; ++round) {
    SYNCOPATE_ASSIGN_OR_RETURN(const HooksCost cost,
                               MeasureHooks(worker, model, batch, iterations));
    median.values.push_back(MedianOf(cost.hooked.wall_seconds) / MedianOf(cost.plain.wall_seconds));
    mean.values.push_back(MeanOf(cost.hooked.thread_seconds) / MeanOf(cost.plain.thread_seconds));
    processor.values.push_back(MedianOf(cost.hooked.thread_seconds) /
                               MedianOf(cost.plain.thread_seconds));
    // The trainer's iterations have loading in them, so the plain loop's must, too.
    PlainLoop plain(model);
    std::vector<double> whole;
    for (int i = 0; i < iterations; ++i) {
      const double begin = SecondsOf(CLOCK_MONOTONIC);
      plain.Step(batch, [] {});
      whole.push_back(SecondsOf(CLOCK_MONOTONIC) - begin);
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const double own, TrainerSeconds(worker, model, batch, iterations));
    trainer.values.push_back(own / MedianOf(whole));
  }
  median.Print("DataParallel, median wall time");
  processor.Print("DataParallel, median thread time");
  mean.Print("DataParallel, mean thread time");
  trainer.Print("trainer, median wall time");
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Options options;
  options.job = Job{absl::StrCat("hooks-", getpid()), 0, 1, 0, 1};
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Start(options));
  std::vector<std::pair<std::string, int64_t>> jobs;
  for (int i = 1; i + 1 < argc; i += 2) jobs.emplace_back(argv[i], std::atol(argv[i + 1]));
  if (jobs.empty()) jobs = {{"mlp", 64}, {"cnn", 64}, {"resnet20", 32}, {"transformer", 16}};
  for (const auto& [model, batch] : jobs) {
    SYNCOPATE_RETURN_IF_ERROR(Compare(*worker, model, batch));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace syncopate::train::testing

int main(int argc, char** argv) {
  const absl::Status status = syncopate::train::testing::Run(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
