#include "tools/doctor/memory_bandwidth.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace syncopate::tools {
namespace {

// Copies in pieces, so that all threads stop soon after the time is over.
constexpr uint64_t kPieceBytes = 1 << 20;

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
  char* data() const { return static_cast<char*>(data_); }

 private:
  const uint64_t bytes_;
  void* const data_;
};

}  // namespace

double MeasureCopyBytesPerSecond(const Clock& clock, int threads, uint64_t bytes,
                                 int64_t duration_ns) {
  // Each thread copies from the first to the second half of its share.
  const uint64_t half = bytes / static_cast<uint64_t>(threads) / 2 / kPieceBytes * kPieceBytes;
  const Mapping memory(bytes);
  if (half == 0 || !memory.ok()) return 0;
  std::atomic<int> ready = 0;
  std::atomic<uint64_t> copied = 0;
  std::atomic<int64_t> begin_ns = 0;
  const auto work = [&](int thread) {
    char* const from = memory.data() + 2 * half * static_cast<uint64_t>(thread);
    char* const to = from + half;
    std::memset(from, 1, 2 * half);
    if (ready.fetch_add(1) + 1 == threads) {  // the last one starts the watch
      begin_ns = clock.NowNs();
      begin_ns.notify_all();
    }
    begin_ns.wait(0);
    const int64_t end_ns = begin_ns + duration_ns;
    uint64_t mine = 0;
    for (uint64_t at = 0; clock.NowNs() < end_ns; at = (at + kPieceBytes) % half) {
      std::memcpy(to + at, from + at, kPieceBytes);
      mine += kPieceBytes;
    }
    copied += mine;
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  const double seconds = static_cast<double>(clock.NowNs() - begin_ns) * 1e-9;
  return 2 * static_cast<double>(copied) / seconds;
}

}  // namespace syncopate::tools
