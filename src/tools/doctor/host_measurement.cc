#include "tools/doctor/host_measurement.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>

#include "absl/container/inlined_vector.h"
#include "engine/kernels.h"
#include "engine/operation.h"
#include "syncopate/data_type.h"

namespace syncopate::tools {
namespace {

constexpr int kWindows = 4;
constexpr int kBuffers = 4;
constexpr int kThreadsMax = 64;
// From what surely stays in the caches of the cores to what no cache holds.
constexpr uint64_t kSmallestBytes = uint64_t{256} << 10, kLargestBytes = uint64_t{256} << 20;
constexpr uint64_t kSizeFactor = 4;
constexpr int64_t kFoldNs = 60'000'000, kMeetingNs = 60'000'000;
constexpr int kMeetingsAtOnce = 16;  // between two looks at the clock
// With less of the cores' time than this, the machine counts as busy with something else.
constexpr double kShareOfCoresMin = 0.8;

// Memory straight from the system, never before used.
class Mapping {
 public:
  explicit Mapping(uint64_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() {
    if (ok()) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const uint64_t bytes_;
  void* const data_;
};

// Threads meet by a counter that all look at, as the gates of shared memory do.
class Meeting {
 public:
  Meeting(int threads, bool gives_way)
      : threads_(static_cast<uint64_t>(threads)), gives_way_(gives_way) {}

  void Attend() {
    const uint64_t round = came_.fetch_add(1) / threads_;
    for (int looks = 0; came_.load(std::memory_order_acquire) / threads_ == round; ++looks) {
      // One whose core is taken by another program must not be waited for by looking alone.
      if (gives_way_ || looks > kLooksMax) sched_yield();
    }
  }

 private:
  static constexpr int kLooksMax = 10'000;
  const uint64_t threads_;
  const bool gives_way_;
  alignas(64) std::atomic<uint64_t> came_{0};
};

double OwnProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void RunThreads(int threads, const std::function<void(int thread)>& work) {
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

double MeasureFoldBytesPerSecond(const Clock& clock, int threads, int buffers, uint64_t bytes,
                                 int64_t duration_ns) {
  const uint64_t elements = bytes / static_cast<uint64_t>(buffers) / sizeof(float);
  const uint64_t share = elements / static_cast<uint64_t>(threads);
  if (share == 0) return 0;
  const Mapping memory(bytes);
  if (!memory.ok()) return 0;
  // A worker moves at most this many elements at once.
  const uint64_t piece = engine::kQuantumBytes / sizeof(float) / static_cast<uint64_t>(buffers);
  Meeting meeting(threads, /*gives_way=*/true);
  std::vector<double> rates(static_cast<size_t>(threads) * kWindows, 0);
  RunThreads(threads, [&](int thread) {
    const uint64_t begin = share * static_cast<uint64_t>(thread);
    absl::InlinedVector<engine::FoldSource, 8> sources(static_cast<size_t>(buffers));
    absl::InlinedVector<void*, 8> destinations(static_cast<size_t>(buffers));
    const auto at = [&](int buffer, uint64_t element) {
      return memory.data() + (elements * static_cast<uint64_t>(buffer) + element) * sizeof(float);
    };
    for (int buffer = 0; buffer < buffers; ++buffer) {
      std::memset(at(buffer, begin), 0, share * sizeof(float));
    }
    for (int window = 0; window < kWindows; ++window) {
      meeting.Attend();
      const int64_t begin_ns = clock.NowNs();
      uint64_t moved = 0, from = 0;
      int64_t now_ns = begin_ns;
      while (now_ns - begin_ns < duration_ns / kWindows) {
        const uint64_t count = std::min(piece, share - from);
        for (int buffer = 0; buffer < buffers; ++buffer) {
          destinations[static_cast<size_t>(buffer)] = at(buffer, begin + from);
          sources[static_cast<size_t>(buffer)].data = at(buffer, begin + from);
        }
        engine::Fold(DataType::kFloat32, engine::FoldOp::kSum, sources, destinations, count);
        moved += count;
        from = from + count == share ? 0 : from + count;
        now_ns = clock.NowNs();
      }
      rates[static_cast<size_t>(window * threads + thread)] =
          2 * static_cast<double>(moved * sizeof(float)) * buffers * 1e9 /
          static_cast<double>(now_ns - begin_ns);
    }
  });
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    double rate = 0;
    for (int thread = 0; thread < threads; ++thread) {
      rate += rates[static_cast<size_t>(window * threads + thread)];
    }
    best = std::max(best, rate);
  }
  return best;
}

double MeasureMeetingSeconds(const Clock& clock, int threads, int cores, int64_t duration_ns) {
  Meeting meeting(threads, /*gives_way=*/threads > cores);
  std::atomic<int64_t> end_ns = 0;
  double best = 0;
  RunThreads(threads, [&](int thread) {
    for (int window = 0; window < kWindows; ++window) {
      if (thread == 0) end_ns = clock.NowNs() + duration_ns / kWindows;
      meeting.Attend();
      const int64_t begin_ns = clock.NowNs();
      // All threads must agree on when to stop: the first one decides, between two meetings.
      int64_t meetings = 0;
      for (bool goes_on = true; goes_on;) {
        for (int i = 0; i < kMeetingsAtOnce; ++i) meeting.Attend();
        meetings += kMeetingsAtOnce;
        if (thread == 0 && clock.NowNs() >= end_ns.load()) end_ns = 0;
        meeting.Attend();
        goes_on = end_ns.load() != 0;
        meeting.Attend();
        meetings += 2;
      }
      if (thread != 0) continue;
      const double seconds =
          static_cast<double>(clock.NowNs() - begin_ns) * 1e-9 / static_cast<double>(meetings);
      best = window == 0 ? seconds : std::min(best, seconds);
    }
  });
  return best;
}

void SetBandwidths(const std::vector<FoldRate>& rates, HostCosts& costs) {
  double best = 0;
  for (const FoldRate& rate : rates) best = std::max(best, rate.bytes_per_second);
  costs.memory_bandwidth = rates.back().bytes_per_second;
  costs.cached_bandwidth = costs.memory_bandwidth;
  costs.cache_bytes = 0;
  const double between = std::sqrt(best * costs.memory_bandwidth);
  // The rate of the cache is the mean of what was measured in it, on the scale on which times are
  // compared.
  double logarithms = 0;
  int count = 0;
  for (const FoldRate& rate : rates) {
    if (rate.bytes_per_second <= between) break;
    costs.cache_bytes = rate.bytes;
    logarithms += std::log(rate.bytes_per_second);
    ++count;
  }
  if (count > 0) costs.cached_bandwidth = std::exp(logarithms / count);
}

std::optional<HostMeasurement> MeasureHost(const Clock& clock, int cores, uint64_t bytes_max) {
  HostMeasurement measured;
  HostCosts& costs = measured.costs;
  costs.cores = cores;
  const int threads = std::min(cores, kThreadsMax);
  std::vector<FoldRate> rates;
  const int64_t begin_ns = clock.NowNs();
  const double before = OwnProcessorSeconds();
  for (uint64_t bytes = kSmallestBytes; bytes <= std::min(kLargestBytes, bytes_max);
       bytes *= kSizeFactor) {
    const double rate = MeasureFoldBytesPerSecond(clock, threads, kBuffers, bytes, kFoldNs);
    if (rate == 0) break;
    rates.push_back({bytes, rate});
  }
  // Without the last size nothing is known of the memory behind the cache.
  if (rates.empty() || rates.back().bytes != kLargestBytes) return std::nullopt;
  // All threads compute all the time, if they are let.
  const double seconds = static_cast<double>(clock.NowNs() - begin_ns) * 1e-9;
  measured.busy = OwnProcessorSeconds() - before < kShareOfCoresMin * threads * seconds;
  SetBandwidths(rates, costs);
  if (threads > 1) costs.handover = MeasureMeetingSeconds(clock, threads, cores, kMeetingNs);
  const int crowd = 2 * threads;
  costs.handover_oversubscribed =
      MeasureMeetingSeconds(clock, crowd, cores, kMeetingNs) * cores / crowd;
  return measured;
}

}  // namespace syncopate::tools
