// A run as a training job would leave it, for tests: a few workers, transfers that overlap with the
// backward pass and with each other, and one worker that is often late.
#ifndef SYNCOPATE_OBSERVE_SAMPLE_RUN_TESTING_H_
#define SYNCOPATE_OBSERVE_SAMPLE_RUN_TESTING_H_

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/trace.h"
#include "observe/metrics.h"

namespace syncopate::observe::testing {

struct SampleOptions {
  int workers = 4;
  int iterations = 60;
  int late_rank = 2;  // takes half as long again in two of three iterations; -1: none does
  uint64_t seed = 1;
};

// Four transfers an iteration, the second beside the first; all workers wait for all of them.
inline std::vector<WorkerTrace> SampleTraces(const SampleOptions& options = {}) {
  std::mt19937_64 random(options.seed);
  const auto about = [&](double us) {
    return static_cast<int64_t>(us * 1e3 *
                                (0.95 + 0.1 * static_cast<double>(random() % 1000) / 1e3));
  };
  const size_t workers = static_cast<size_t>(options.workers);
  std::vector<WorkerTrace> traces(workers);
  for (size_t r = 0; r < workers; ++r) {
    traces[r].rank = static_cast<int>(r);
    traces[r].host = absl::StrCat("node", r / 2);
    traces[r].clock_offset_ns = -static_cast<int64_t>(r / 2) * 7'000'000;
    traces[r].clock_error_ns = r < 2 ? 0 : 20'000;
  }
  std::vector<int64_t> now(workers, 1'000'000'000);  // of rank 0's clock
  for (int i = 0; i < options.iterations; ++i) {
    std::vector<std::vector<int64_t>> starts(4, std::vector<int64_t>(workers));
    const auto add = [&](size_t r, SpanKind kind, int id, int64_t begin, int64_t end,
                         uint64_t bytes = 0) {
      const int64_t offset = traces[r].clock_offset_ns;
      traces[r].spans.push_back({kind, i, id, begin - offset, end - offset, bytes});
    };
    for (size_t r = 0; r < workers; ++r) {
      const bool late = static_cast<int>(r) == options.late_rank && i % 3 != 0;
      const double factor = late ? 1.5 : 1.0;
      const auto step = [&](SpanKind kind, int id, double us) {
        const int64_t begin = now[r];
        now[r] += about(us * factor);
        add(r, kind, id, begin, now[r]);
      };
      step(SpanKind::kLoad, -1, 400);
      step(SpanKind::kForward, -1, 4'000);
      for (int t = 3; t >= 0; --t) {
        step(SpanKind::kBackward, t, 2'500);
        step(SpanKind::kPack, 3 - t, 200);
        starts[static_cast<size_t>(3 - t)][r] = now[r];
      }
    }
    int64_t free = 0, before = 0;  // when the network is free; the end of the transfer before
    std::vector<int64_t> ends;
    for (int t = 0; t < 4; ++t) {
      const auto& start = starts[static_cast<size_t>(t)];
      const int64_t ready = *std::max_element(start.begin(), start.end());
      const int64_t begin = t == 1 ? ready : std::max(ready, free);
      ends.push_back(begin + about(3'200));
      for (size_t r = 0; r < workers; ++r) {
        // A worker starts a transfer once those before it are done, but the second at once.
        const int64_t mine = t == 1 ? start[r] : std::max(start[r], t == 0 ? 0 : before);
        add(r, SpanKind::kTransfer, t, mine, std::max(ends.back(), mine), 400'000);
      }
      free = before = std::max(free, ends.back());
    }
    for (size_t r = 0; r < workers; ++r) {
      add(r, SpanKind::kWait, -1, now[r], std::max(now[r], free));
      now[r] = std::max(now[r], free);
      const int64_t begin = now[r];
      now[r] += about(600);
      add(r, SpanKind::kUpdate, -1, begin, now[r]);
      if (i % 20 == 19) {
        add(r, SpanKind::kEvaluate, -1, now[r], now[r] + 30'000'000);
        now[r] += 30'000'000;
      }
      now[r] += 50'000;
    }
  }
  return traces;
}

inline std::vector<Metric> SampleMetrics(const SampleOptions& options = {}) {
  std::mt19937_64 random(options.seed);
  std::vector<Metric> metrics;
  for (int i = 0; i < options.iterations; ++i) {
    const double noise = static_cast<double>(random() % 1000) / 1e3 - 0.5;
    const double loss = 0.15 + 2.1 * std::exp(-i * 4.0 / options.iterations) + 0.12 * noise;
    metrics.push_back({"train", i, 0.022 * i, {{"loss", loss}, {"learning_rate", 0.1}}, ""});
    if (i % 20 != 19) continue;
    const double accuracy = 0.985 - 0.8 * std::exp(-i * 5.0 / options.iterations);
    metrics.push_back(
        {"evaluate", i, 0.022 * i + 0.02, {{"loss", loss - 0.05}, {"accuracy", accuracy}}, ""});
  }
  metrics.push_back({"event", options.iterations / 2, 0.6, {}, "planned again: 4 transfers"});
  return metrics;
}

}  // namespace syncopate::observe::testing

#endif  // SYNCOPATE_OBSERVE_SAMPLE_RUN_TESTING_H_
