// How fast folds are, against a plain loop that the compiler vectorises and against memcpy.
//
// All contestants read and write every buffer once, so bytes_per_second compares directly. Machines
// are noisy: let the contestants alternate and take the best,
//   engine_benchmark --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
//                    --benchmark_min_time=0.02 --benchmark_report_aggregates_only=true
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "engine/kernels.h"

namespace syncopate::engine {
namespace {

// Page-aligned buffers in shared memory, as workers have them; zeros, which sum to zeros.
class Buffers {
 public:
  Buffers(int64_t count, int64_t bytes) : mapped_(static_cast<size_t>(count * bytes)) {
    memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) abort();
    std::memset(memory_, 0, mapped_);
    for (int64_t i = 0; i < count; ++i) {
      pointers.push_back(static_cast<std::byte*>(memory_) + i * bytes);
      sources.push_back({pointers.back()});
    }
  }
  ~Buffers() { munmap(memory_, mapped_); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  std::vector<void*> pointers;
  std::vector<FoldSource> sources;

 private:
  size_t mapped_;
  void* memory_;
};

void CountBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * state.range(0) *
                          state.range(1));
}

void BM_Fold(benchmark::State& state, DataType type, bool with_journal, double factor) {
  Buffers buffers(state.range(0), state.range(1));
  for (FoldSource& source : buffers.sources) source.factor = factor;
  alignas(4096) static FoldJournal journal;
  for (auto _ : state) {
    Fold(type, FoldOp::kSum, buffers.sources, buffers.pointers,
         static_cast<uint64_t>(state.range(1)) / SizeOf(type), with_journal ? &journal : nullptr);
  }
  CountBytes(state);
}

// What one would write by hand, with everything known to the compiler.
template <int kBuffers>
#if defined(__x86_64__)
[[gnu::target("avx2")]]
#endif
[[gnu::optimize("O3"), gnu::noinline]] void
PlainLoop(float* const* buffers, int64_t elements) {
  float* p[kBuffers];
  std::copy_n(buffers, kBuffers, p);
#pragma GCC ivdep
  for (int64_t i = 0; i < elements; ++i) {
    float sum = p[0][i];
    for (int b = 1; b < kBuffers; ++b) sum += p[b][i];
    for (int b = 0; b < kBuffers; ++b) p[b][i] = sum;
  }
}

void BM_PlainLoop(benchmark::State& state) {
  Buffers buffers(state.range(0), state.range(1));
  std::vector<float*> floats;
  for (void* p : buffers.pointers) floats.push_back(static_cast<float*>(p));
  const int64_t elements = state.range(1) / static_cast<int64_t>(sizeof(float));
  for (auto _ : state) {
    switch (state.range(0)) {
      case 2:
        PlainLoop<2>(floats.data(), elements);
        break;
      case 4:
        PlainLoop<4>(floats.data(), elements);
        break;
      default:
        PlainLoop<8>(floats.data(), elements);
    }
  }
  CountBytes(state);
}

// As many bytes, copied from one half of the buffers to the other, twice.
void BM_Memcpy(benchmark::State& state) {
  Buffers buffers(state.range(0), state.range(1));
  const int64_t half = state.range(0) / 2;
  const size_t bytes = static_cast<size_t>(state.range(1));
  for (auto _ : state) {
    for (int64_t b = 0; b < half; ++b) {
      std::memcpy(buffers.pointers[b + half], buffers.pointers[b], bytes);
      benchmark::ClobberMemory();
      std::memcpy(buffers.pointers[b], buffers.pointers[b + half], bytes);
      benchmark::ClobberMemory();
    }
  }
  CountBytes(state);
}

void BM_StreamCopy(benchmark::State& state) {
  Buffers buffers(2, state.range(0));
  for (auto _ : state) {
    StreamCopy(buffers.pointers[1], buffers.pointers[0], static_cast<size_t>(state.range(0)));
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * state.range(0));
}

void BM_PlainCopy(benchmark::State& state) {
  Buffers buffers(2, state.range(0));
  for (auto _ : state) {
    std::memcpy(buffers.pointers[1], buffers.pointers[0], static_cast<size_t>(state.range(0)));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * state.range(0));
}

double Best(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void Sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"buffers", "bytes"})->ComputeStatistics("best", Best);
  for (int64_t buffers : {2, 4, 8}) {
    for (int64_t bytes : {64 << 10, 1 << 20, 16 << 20}) b->Args({buffers, bytes});
  }
}

void CopySizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"bytes"})->ComputeStatistics("best", Best);
  for (int64_t bytes = 64 << 10; bytes <= 64 << 20; bytes *= 4) b->Args({bytes});
}

BENCHMARK_CAPTURE(BM_Fold, float32, DataType::kFloat32, false, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Fold, float32_journal, DataType::kFloat32, true, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Fold, float32_factor_journal, DataType::kFloat32, true, 0.5)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Fold, float16_journal, DataType::kFloat16, true, 1)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Fold, bfloat16_journal, DataType::kBFloat16, true, 1)->Apply(Sizes);
BENCHMARK(BM_PlainLoop)->Apply(Sizes);
BENCHMARK(BM_Memcpy)->Apply(Sizes);
BENCHMARK(BM_StreamCopy)->Apply(CopySizes);
BENCHMARK(BM_PlainCopy)->Apply(CopySizes);

}  // namespace
}  // namespace syncopate::engine

BENCHMARK_MAIN();
