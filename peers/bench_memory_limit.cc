// The yardstick `memory-limit`: plain loops over one mapping that all ranks share. It does what a
// collective must do to memory and nothing else: no planning, no protection, no failure handling
// but a deadline. Each rank reduces its share from all ranks' buffers and writes it to all of them.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "driver.h"
#include "fold.h"

namespace syncopate::peers {
namespace {

constexpr uint64_t kPage = 4096;

struct alignas(64) SharedState {
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> generation{0};
};

struct Mapping {
  SharedState* state = nullptr;
  std::byte* buffers = nullptr;
  uint64_t stride = 0;
};

// What all ranks inherit: the state, then one buffer a rank, page-aligned.
absl::StatusOr<Mapping> MapShared(const DriverOptions& options) {
  Mapping mapping;
  mapping.stride = (options.bytes_max + kPage - 1) / kPage * kPage;
  const uint64_t bytes = kPage + mapping.stride * static_cast<uint64_t>(options.workers);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a shared mapping of ", FormatBytes(bytes)));
  }
  mapping.state = new (memory) SharedState;
  mapping.buffers = static_cast<std::byte*>(memory) + kPage;
  return mapping;
}

class MemoryLimit final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const DriverOptions& options,
                                                          const Mapping& mapping, int rank) {
    if (!options.algorithm.empty()) {
      return absl::UnimplementedError("the memory limit has one algorithm");
    }
    auto contestant = std::unique_ptr<MemoryLimit>(new MemoryLimit(options, mapping, rank));
    // Every rank touches all buffers, so that no page fault is left for the timed calls.
    volatile std::byte* touched = mapping.buffers;
    for (uint64_t at = 0; at < mapping.stride * static_cast<uint64_t>(options.workers);
         at += kPage) {
      touched[at] = std::byte{0};
    }
    return contestant;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::byte* data() override { return buffers_[static_cast<size_t>(rank_)]; }

  absl::Status Prepare(const tools::bench::RunRequest& request) override {
    if (!request.active.empty()) {
      return absl::UnimplementedError("the memory limit has all ranks active");
    }
    request_ = request;
    fold_ = nullptr;
    if (Reduces(request.collective)) {
      fold_ = FindFold(request.type, request.op);
      if (fold_ == nullptr) {
        return absl::UnimplementedError(absl::StrCat("the memory limit has no loop for ",
                                                     Name(request.op), " of ", Name(request.type)));
      }
    }
    width_ = SizeOf(request.type);
    elements_ = request.bytes / width_;
    // Shares of whole cache lines, so that no line is written by two ranks.
    const uint64_t line = 64 / width_;
    const uint64_t lines = (elements_ + line - 1) / line;
    const auto ranks = static_cast<uint64_t>(size_);
    const auto me = static_cast<uint64_t>(rank_);
    share_begin_ = std::min(elements_, lines * me / ranks * line);
    share_end_ = std::min(elements_, lines * (me + 1) / ranks * line);
    return absl::OkStatus();
  }

  absl::Status Call() override {
    // After the first barrier the data of all ranks is there. After the second all ranks have taken
    // what they need.
    SYNCOPATE_RETURN_IF_ERROR(Barrier());
    if (request_.collective == Collective::kBarrier) return absl::OkStatus();
    Move();
    return Barrier();
  }

  absl::Status Barrier() override {
    const uint32_t generation = state_.generation.load(std::memory_order_acquire);
    if (state_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
        static_cast<uint32_t>(size_)) {
      state_.arrived.store(0, std::memory_order_relaxed);
      state_.generation.store(generation + 1, std::memory_order_release);
      return absl::OkStatus();
    }
    constexpr uint64_t kSpinsBeforeYield = 20000;  // with a core for everyone
    constexpr uint64_t kLooksPerClock = 4096;
    int64_t deadline = 0;
    for (uint64_t looks = 1; state_.generation.load(std::memory_order_acquire) == generation;
         ++looks) {
      if (core_each_ && looks < kSpinsBeforeYield) {
        Pause();
      } else {
        sched_yield();
      }
      if (looks % kLooksPerClock != 0) continue;
      const int64_t now = MonotonicClock().NowNs();
      if (deadline == 0) deadline = now + timeout_ns_;
      if (now > deadline) return absl::DeadlineExceededError("a rank did not come to the barrier");
    }
    return absl::OkStatus();
  }

 private:
  MemoryLimit(const DriverOptions& options, const Mapping& mapping, int rank)
      : rank_(rank),
        size_(options.workers),
        core_each_(options.workers <= static_cast<int>(std::thread::hardware_concurrency())),
        timeout_ns_(absl::ToInt64Nanoseconds(options.timeout)),
        state_(*mapping.state),
        at_(static_cast<size_t>(size_)) {
    for (int r = 0; r < size_; ++r) {
      buffers_.push_back(mapping.buffers + static_cast<uint64_t>(r) * mapping.stride);
    }
  }

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  // Reduces elements [begin, end) of all ranks' buffers into those of `to`.
  void Reduce(uint64_t begin, uint64_t end, std::byte* const* to, size_t destinations) {
    for (int r = 0; r < size_; ++r) at_[static_cast<size_t>(r)] = At(r, begin);
    to_.assign(to, to + destinations);
    for (std::byte*& destination : to_) destination += begin * width_;
    fold_(at_.data(), at_.size(), to_.data(), to_.size(), end - begin);
  }

  std::byte* At(int rank, uint64_t element) const {
    return buffers_[static_cast<size_t>(rank)] + element * width_;
  }

  static void Swap(std::byte* a, std::byte* b, uint64_t bytes) {
    std::byte buffer[kPage];
    for (uint64_t at = 0; at < bytes; at += kPage) {
      const uint64_t n = std::min(kPage, bytes - at);
      std::memcpy(buffer, a + at, n);
      std::memcpy(a + at, b + at, n);
      std::memcpy(b + at, buffer, n);
    }
  }

  void Move() {
    const uint64_t block = elements_ / static_cast<uint64_t>(size_);
    const auto me = static_cast<uint64_t>(rank_);
    const uint64_t block_bytes = block * width_;
    switch (request_.collective) {
      case Collective::kAllReduce:
        return Reduce(share_begin_, share_end_, buffers_.data(), buffers_.size());
      case Collective::kReduce:
        return Reduce(share_begin_, share_end_, &buffers_[kRoot], 1);
      case Collective::kReduceScatter:
        return Reduce(me * block, (me + 1) * block, &buffers_[me], 1);
      case Collective::kBroadcast:
        if (rank_ != kRoot) std::memcpy(data(), At(kRoot, 0), request_.bytes);
        return;
      case Collective::kSendReceive:
        if (rank_ == Target(size_) && size_ > 1) std::memcpy(data(), At(kRoot, 0), request_.bytes);
        return;
      case Collective::kAllGather:
        for (int r = 0; r < size_; ++r) {
          const uint64_t at = static_cast<uint64_t>(r) * block;
          if (r != rank_) std::memcpy(At(rank_, at), At(r, at), block_bytes);
        }
        return;
      case Collective::kGather:
        if (rank_ != kRoot) std::memcpy(At(kRoot, me * block), At(rank_, me * block), block_bytes);
        return;
      case Collective::kScatter:
        if (rank_ != kRoot) std::memcpy(At(rank_, me * block), At(kRoot, me * block), block_bytes);
        return;
      case Collective::kAllToAll:
        for (int r = rank_ + 1; r < size_; ++r) {
          Swap(At(rank_, static_cast<uint64_t>(r) * block), At(r, me * block), block_bytes);
        }
        return;
      case Collective::kBarrier:
        return;
    }
  }

  const int rank_;
  const int size_;
  const bool core_each_;
  const int64_t timeout_ns_;
  SharedState& state_;
  std::vector<std::byte*> buffers_;
  std::vector<std::byte*> at_;  // reused by every Reduce()
  std::vector<std::byte*> to_;
  tools::bench::RunRequest request_;
  FoldLoop fold_ = nullptr;
  size_t width_ = 4;
  uint64_t elements_ = 0;
  uint64_t share_begin_ = 0;
  uint64_t share_end_ = 0;
};

}  // namespace
}  // namespace syncopate::peers

int main(int argc, char** argv) {
  using namespace syncopate::peers;  // NOLINT: the program's only function
  Mapping mapping;
  return ForkedMain(
      argc, argv,
      [&](const DriverOptions& options, int rank) {
        return MemoryLimit::Make(options, mapping, rank);
      },
      [&](const DriverOptions& options) -> absl::Status {
        SYNCOPATE_ASSIGN_OR_RETURN(mapping, MapShared(options));
        return absl::OkStatus();
      });
}
