// The folds' loops, compiled for every instruction set that the processor may have.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels.cc"
#include "engine/kernels.h"

#include <algorithm>
#include <cassert>
#include <cstring>

// Highway's includes come last and in this order: the first one includes this file for each target.
// clang-format off
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "engine/lanes-inl.h"
// clang-format on
#include "hwy/cache_control.h"

#ifndef SYNCOPATE_ENGINE_KERNELS_ONCE_
#define SYNCOPATE_ENGINE_KERNELS_ONCE_
namespace syncopate {

// What a Fold is called with, less its type and operation.
struct FoldCall {
  absl::Span<const FoldSource> sources;
  absl::Span<void* const> destinations;
  uint64_t elements;
  FoldJournal* journal;
  uint64_t origin;
};

// No store of this thread moves past this point: neither by the compiler nor, where others look on,
// by the processor. On x86 it costs no instruction.
inline void KeepStoresInOrder() {
#ifdef __SANITIZE_THREAD__
  std::atomic_signal_fence(std::memory_order_acq_rel);  // the sanitizer knows no thread fences
#else
  std::atomic_thread_fence(std::memory_order_acq_rel);
#endif
}

inline void PublishState(FoldJournal* journal, uint64_t state) {
  KeepStoresInOrder();
  journal->state.store(state, std::memory_order_release);
  KeepStoresInOrder();
}

// Nothing is pending, and all below `position` is done.
inline void PublishPosition(FoldJournal* journal, uint64_t position) {
  PublishState(journal, FoldJournal::Pack(position, 0, 0));
}

}  // namespace syncopate
#endif  // SYNCOPATE_ENGINE_KERNELS_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syncopate {
namespace HWY_NAMESPACE {

// Writes ahead, or does nothing.
template <bool kOn>
class Recorder {
 public:
  explicit Recorder(const FoldCall& call) : journal_(call.journal), origin_(call.origin) {
    if constexpr (kOn) PublishPosition(journal_, origin_);
  }

  // Where the results of the next block go.
  template <typename T>
  HWY_INLINE T* Results() {
    return reinterpret_cast<T*>(journal_->half(half_));
  }

  // The results of elements [index, index + pending) are complete: the destinations may be written.
  HWY_INLINE void Publish(uint64_t index, uint64_t pending) {
    PublishState(journal_, FoldJournal::Pack(origin_ + index, pending, half_));
    half_ ^= 1;
  }

  void Finish(uint64_t elements) {
    if constexpr (kOn) PublishPosition(journal_, origin_ + elements);
  }

 private:
  FoldJournal* journal_;
  uint64_t origin_;
  uint64_t half_ = 0;
};

// One fold. `kFactors`: some source has a factor; `kJournal`: there is a journal.
template <class L, class Op, bool kFactors, bool kJournal>
class Folder {
  using T = typename L::Stored;
  using D = typename L::D;
  using V = typename L::V;
  static constexpr size_t kUnroll = 4;
  static_assert(kUnroll * kVectorBytesMax <= FoldJournal::kHalfBytes);

 public:
  explicit Folder(const FoldCall& call) : call_(call), recorder_(call) {}

  void Run() {
    const size_t lanes = hn::Lanes(D());
    const uint64_t elements = call_.elements;
    uint64_t i = 0;
    for (; i + kUnroll * lanes <= elements; i += kUnroll * lanes) FoldUnrolled(i);
    for (; i + lanes <= elements; i += lanes) FoldVector(i);
    if (i < elements) FoldPart(i, elements - i);
    recorder_.Finish(elements);
  }

 private:
  HWY_INLINE const T* Source(size_t s, uint64_t i) const {
    return static_cast<const T*>(call_.sources[s].data) + i;
  }
  HWY_INLINE T* Destination(size_t d, uint64_t i) const {
    return static_cast<T*>(call_.destinations[d]) + i;
  }
  HWY_INLINE V Factor(size_t s) const {
    return hn::Set(D(), static_cast<typename L::Value>(call_.sources[s].factor));
  }
  static HWY_INLINE V Read(const T* p, V factor) {
    if constexpr (kFactors) return hn::Mul(L::Load(p), factor);
    (void)factor;
    return L::Load(p);
  }

  HWY_INLINE void FoldUnrolled(uint64_t i) {
    const size_t lanes = hn::Lanes(D());
    V factor = hn::Zero(D());
    if constexpr (kFactors) factor = Factor(0);
    const T* p = Source(0, i);
    V v0 = Read(p, factor);
    V v1 = Read(p + lanes, factor);
    V v2 = Read(p + 2 * lanes, factor);
    V v3 = Read(p + 3 * lanes, factor);
    for (size_t s = 1; s < call_.sources.size(); ++s) {
      if constexpr (kFactors) factor = Factor(s);
      p = Source(s, i);
      v0 = Op::Combine(v0, Read(p, factor));
      v1 = Op::Combine(v1, Read(p + lanes, factor));
      v2 = Op::Combine(v2, Read(p + 2 * lanes, factor));
      v3 = Op::Combine(v3, Read(p + 3 * lanes, factor));
    }
    const auto n0 = L::Narrow(v0);
    const auto n1 = L::Narrow(v1);
    const auto n2 = L::Narrow(v2);
    const auto n3 = L::Narrow(v3);
    const auto write = [&](T* to) HWY_ATTR {
      L::Store(n0, to);
      L::Store(n1, to + lanes);
      L::Store(n2, to + 2 * lanes);
      L::Store(n3, to + 3 * lanes);
    };
    if constexpr (kJournal) {
      write(recorder_.template Results<T>());
      recorder_.Publish(i, kUnroll * lanes);
    }
    for (size_t d = 0; d < call_.destinations.size(); ++d) write(Destination(d, i));
  }

  HWY_INLINE void FoldVector(uint64_t i) {
    V factor = hn::Zero(D());
    if constexpr (kFactors) factor = Factor(0);
    V v = Read(Source(0, i), factor);
    for (size_t s = 1; s < call_.sources.size(); ++s) {
      if constexpr (kFactors) factor = Factor(s);
      v = Op::Combine(v, Read(Source(s, i), factor));
    }
    const auto narrow = L::Narrow(v);
    if constexpr (kJournal) {
      L::Store(narrow, recorder_.template Results<T>());
      recorder_.Publish(i, hn::Lanes(D()));
    }
    for (size_t d = 0; d < call_.destinations.size(); ++d) L::Store(narrow, Destination(d, i));
  }

  // The last elements, fewer than a vector: through the same code, in padded memory.
  void FoldPart(uint64_t i, size_t count) {
    T padded[kVectorBytesMax / sizeof(typename L::Value)] = {};
    const auto read = [&](size_t s) HWY_ATTR {
      std::memcpy(padded, Source(s, i), count * sizeof(T));
      V factor = hn::Zero(D());
      if constexpr (kFactors) factor = Factor(s);
      return Read(padded, factor);
    };
    V v = read(0);
    for (size_t s = 1; s < call_.sources.size(); ++s) v = Op::Combine(v, read(s));
    L::Store(L::Narrow(v), padded);
    if constexpr (kJournal) {
      std::memcpy(recorder_.template Results<T>(), padded, count * sizeof(T));
      recorder_.Publish(i, count);
    }
    for (size_t d = 0; d < call_.destinations.size(); ++d) {
      std::memcpy(Destination(d, i), padded, count * sizeof(T));
    }
  }

  const FoldCall& call_;
  Recorder<kJournal> recorder_;
};

template <class L, class Op, bool kFactors>
void FoldWith(const FoldCall& call) {
  if (call.journal != nullptr) {
    Folder<L, Op, kFactors, true>(call).Run();
  } else {
    Folder<L, Op, kFactors, false>(call).Run();
  }
}

template <class L>
void FoldFloating(FoldOp op, bool factors, const FoldCall& call) {
  switch (op) {
    case FoldOp::kSum:
      return factors ? FoldWith<L, SumOp, true>(call) : FoldWith<L, SumOp, false>(call);
    case FoldOp::kMin:
      return FoldWith<L, MinOp, false>(call);
    case FoldOp::kMax:
      return FoldWith<L, MaxOp, false>(call);
    case FoldOp::kProduct:
      return FoldWith<L, ProductOp, false>(call);
  }
}

// Sums and products are those of unsigned numbers, which wrap.
template <typename T>
void FoldIntegers(FoldOp op, const FoldCall& call) {
  switch (op) {
    case FoldOp::kSum:
      return FoldWith<NativeLanes<hwy::MakeUnsigned<T>>, SumOp, false>(call);
    case FoldOp::kMin:
      return FoldWith<NativeLanes<T>, MinOp, false>(call);
    case FoldOp::kMax:
      return FoldWith<NativeLanes<T>, MaxOp, false>(call);
    case FoldOp::kProduct:
      return FoldWith<NativeLanes<hwy::MakeUnsigned<T>>, ProductOp, false>(call);
  }
}

void FoldTyped(DataType type, FoldOp op, bool factors, const FoldCall& call) {
  switch (type) {
    case DataType::kFloat32:
      return FoldFloating<NativeLanes<float>>(op, factors, call);
    case DataType::kFloat64:
      return FoldFloating<NativeLanes<double>>(op, factors, call);
    case DataType::kFloat16:
      return FoldFloating<Float16Lanes>(op, factors, call);
    case DataType::kBFloat16:
      return FoldFloating<BFloat16Lanes>(op, factors, call);
    case DataType::kInt32:
      return FoldIntegers<int32_t>(op, call);
    case DataType::kInt64:
      return FoldIntegers<int64_t>(op, call);
  }
}

// Copies with stores that go past the cache.
void CopyPastCache(std::byte* to, const std::byte* from, size_t bytes) {
  const hn::CappedTag<uint8_t, kVectorBytesMax> d;
  const size_t lanes = hn::Lanes(d);
  // Such stores want aligned vectors, best whole cache lines.
  const size_t head = std::min<size_t>(-reinterpret_cast<uintptr_t>(to) % kVectorBytesMax, bytes);
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const uint8_t* in = reinterpret_cast<const uint8_t*>(from + i);
    const auto v0 = hn::LoadU(d, in);
    const auto v1 = hn::LoadU(d, in + lanes);
    const auto v2 = hn::LoadU(d, in + 2 * lanes);
    const auto v3 = hn::LoadU(d, in + 3 * lanes);
    uint8_t* out = reinterpret_cast<uint8_t*>(to + i);
    hn::Stream(v0, d, out);
    hn::Stream(v1, d, out + lanes);
    hn::Stream(v2, d, out + 2 * lanes);
    hn::Stream(v3, d, out + 3 * lanes);
  }
  hwy::FlushStream();
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncopate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {
namespace {

HWY_EXPORT(FoldTyped);
HWY_EXPORT(CopyPastCache);

// Below this the destination fits the cache and memcpy is quicker.
constexpr size_t kStreamBytesMin = size_t{1} << 20;

void Copy(const FoldCall& call, size_t bytes) {
  const void* from = call.sources[0].data;
  for (void* to : call.destinations) {
    if (to != from) std::memcpy(to, from, bytes);
  }
}

}  // namespace

void Fold(DataType type, FoldOp op, absl::Span<const FoldSource> sources,
          absl::Span<void* const> destinations, uint64_t elements, FoldJournal* journal,
          uint64_t journal_origin) {
  assert(!sources.empty());
  const FoldCall call = {sources, destinations, elements, journal, journal_origin};
  const bool factors =
      IsFloating(type) && op == FoldOp::kSum &&
      std::any_of(sources.begin(), sources.end(), [](const auto& s) { return s.factor != 1; });
  if (sources.size() > 1 || factors) {
    HWY_DYNAMIC_DISPATCH(FoldTyped)(type, op, factors, call);
    return;
  }
  if (journal != nullptr) PublishPosition(journal, journal_origin);
  Copy(call, elements * SizeOf(type));
  if (journal != nullptr) PublishPosition(journal, journal_origin + elements);
}

void Scale(DataType type, void* data, uint64_t elements, double factor) {
  assert(IsFloating(type));
  const FoldSource source = {data, factor};
  Fold(type, FoldOp::kSum, absl::MakeConstSpan(&source, 1), absl::MakeConstSpan(&data, 1),
       elements);
}

void Divide(DataType type, void* data, uint64_t elements, int64_t divisor) {
  assert(!IsFloating(type) && divisor != 0);
  if (type == DataType::kInt32) {
    int32_t* values = static_cast<int32_t*>(data);
    for (uint64_t i = 0; i < elements; ++i) {
      values[i] = static_cast<int32_t>(values[i] / divisor);
    }
    return;
  }
  int64_t* values = static_cast<int64_t*>(data);
  if (divisor == -1) {  // the smallest value has no opposite; it wraps
    for (uint64_t i = 0; i < elements; ++i) {
      values[i] = static_cast<int64_t>(-static_cast<uint64_t>(values[i]));
    }
    return;
  }
  for (uint64_t i = 0; i < elements; ++i) values[i] /= divisor;
}

void StreamCopy(void* to, const void* from, size_t bytes) {
  if (bytes < kStreamBytesMin) {
    std::memcpy(to, from, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(CopyPastCache)
    (static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
}

}  // namespace syncopate
#endif  // HWY_ONCE
