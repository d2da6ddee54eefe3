// The folds' loops, compiled for every instruction set that the processor may have.
//
// Left out are instruction sets whose vectors' size is not known to the compiler, since vectors are
// kept in structs here and memory is the limit anyway, and one that only very old processors have
// without SSE4: each set costs seconds to compile.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels.cc"
#include "engine/kernels.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

// Highway's includes come last and in this order: the first one includes this file for each target.
// clang-format off
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "engine/lanes-inl.h"
// clang-format on
#include "hwy/cache_control.h"

#ifndef SYNCOPATE_ENGINE_KERNELS_ONCE_
#define SYNCOPATE_ENGINE_KERNELS_ONCE_
namespace syncopate::engine {

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

}  // namespace syncopate::engine
#endif  // SYNCOPATE_ENGINE_KERNELS_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syncopate::engine {
namespace HWY_NAMESPACE {

// Writes ahead, or does nothing. Meant to live in registers: pass it by value to what is not
// inlined.
template <bool kOn>
class Recorder {
 public:
  explicit HWY_INLINE Recorder(const FoldCall& call) : journal_(call.journal) {
    if constexpr (kOn) {
      PublishPosition(journal_, call.origin);
      state_ = FoldJournal::Pack(call.origin, 0, 0);
    }
  }

  // Writes one block with `write` to the journal and publishes it, before the caller writes it to
  // the destinations. These may be sources, too, so a block that is half written cannot be computed
  // again; ReplayJournal() copies it from the journal. The halves alternate, so that the next block
  // does not overwrite the one that the published state still names.
  template <typename T, class Write>
  HWY_INLINE void Record(uint64_t count, const Write& write) {
    if constexpr (kOn) {
      write(reinterpret_cast<T*>(journal_->half(FoldJournal::Half(state_))));
      PublishState(journal_, state_ + count);
      // The next block begins `count` further on and uses the other half.
      state_ = (state_ + FoldJournal::Pack(count, 0, 0)) ^ FoldJournal::Pack(0, 0, 1);
    }
  }

  HWY_INLINE void Finish() const {
    if constexpr (kOn) PublishPosition(journal_, FoldJournal::Position(state_));
  }

 private:
  FoldJournal* journal_;
  uint64_t state_ = 0;  // of the next block, less its count
};

// The loops of one type and operation. `kFactors`: some source has a factor; `kJournal`: there is a
// journal. They work in blocks of four vectors, then vectors, then a part of one, all with the same
// arithmetic.
template <class L, class Op, bool kFactors, bool kJournal>
struct Loops {
  using T = typename L::Stored;
  using D = typename L::D;
  using V = typename L::V;
  static constexpr size_t kBlockVectors = 4;
  static_assert(kBlockVectors * kVectorBytesMax <= FoldJournal::kHalfBytes);

  static HWY_INLINE const T* At(const FoldSource& source, uint64_t i) {
    return static_cast<const T*>(source.data) + i;
  }
  static HWY_INLINE V Factor(const FoldSource& source) {
    return hn::Set(D(), static_cast<typename L::Value>(kFactors ? source.factor : 1));
  }
  static HWY_INLINE V Read(const T* p, V factor) {
    if constexpr (kFactors) return hn::Mul(L::Load(p), factor);
    (void)factor;
    return L::Load(p);
  }

  static HWY_INLINE Four<V> ReadBlock(const T* p, V factor) {
    const Four<V> b = L::LoadBlock(p);
    if constexpr (!kFactors) return b;
    return {hn::Mul(b.v0, factor), hn::Mul(b.v1, factor), hn::Mul(b.v2, factor),
            hn::Mul(b.v3, factor)};
  }
  static HWY_INLINE Four<V> CombineBlocks(const Four<V>& a, const Four<V>& b) {
    return {Op::Combine(a.v0, b.v0), Op::Combine(a.v1, b.v1), Op::Combine(a.v2, b.v2),
            Op::Combine(a.v3, b.v3)};
  }

  // The general loop, for any number of sources and destinations.
  static void Fold(const FoldCall& call) {
    Recorder<kJournal> recorder(call);
    const FoldSource* const sources = call.sources.data();
    const size_t source_count = call.sources.size();
    void* const* const destinations = call.destinations.data();
    const size_t destination_count = call.destinations.size();
    const uint64_t elements = call.elements;
    const size_t block = kBlockVectors * hn::Lanes(D());
    uint64_t i = 0;
    for (; i + block <= elements; i += block) {
      Four<V> sum = ReadBlock(At(sources[0], i), Factor(sources[0]));
      for (size_t s = 1; s < source_count; ++s) {
        sum = CombineBlocks(sum, ReadBlock(At(sources[s], i), Factor(sources[s])));
      }
      const auto result = L::NarrowBlock(sum);
      const auto write = [&](T* to) HWY_ATTR { L::StoreBlock(result, to); };
      recorder.template Record<T>(block, write);
      for (size_t d = 0; d < destination_count; ++d) write(static_cast<T*>(destinations[d]) + i);
    }
    FoldRest(call, recorder, i);
  }

  // `kBuffers` sources that are all the destinations too. The compiler knows their number and keeps
  // their addresses in registers, which nearly doubles the speed inside the cache: addresses that
  // are loaded among the stores hold these up.
  template <size_t kBuffers>
  static void FoldInPlace(const FoldCall& call) {
    Recorder<kJournal> recorder(call);
    T* buffers[kBuffers];
    typename L::Value factors[kBuffers];
    for (size_t b = 0; b < kBuffers; ++b) {
      buffers[b] = static_cast<T*>(const_cast<void*>(call.sources[b].data));
      factors[b] = static_cast<typename L::Value>(call.sources[b].factor);
    }
    const uint64_t elements = call.elements;
    const size_t block = kBlockVectors * hn::Lanes(D());
    uint64_t i = 0;
    for (; i + block <= elements; i += block) {
      Four<V> sum = ReadBlock(buffers[0] + i, hn::Set(D(), factors[0]));
#pragma GCC unroll 8
      for (size_t b = 1; b < kBuffers; ++b) {
        sum = CombineBlocks(sum, ReadBlock(buffers[b] + i, hn::Set(D(), factors[b])));
      }
      const auto result = L::NarrowBlock(sum);
      const auto write = [&](T* to) HWY_ATTR { L::StoreBlock(result, to); };
      recorder.template Record<T>(block, write);
#pragma GCC unroll 8
      for (size_t b = 0; b < kBuffers; ++b) write(buffers[b] + i);
    }
    FoldRest(call, recorder, i);
  }

  // Elements from `i` on, vector by vector; in the end a part of a vector, in padded memory.
  static HWY_NOINLINE void FoldRest(const FoldCall& call, Recorder<kJournal> recorder, uint64_t i) {
    const size_t lanes = hn::Lanes(D());
    while (i < call.elements) {
      const size_t count = std::min<uint64_t>(lanes, call.elements - i);
      T padded[kVectorBytesMax / sizeof(typename L::Value)] = {};
      const auto read = [&](const FoldSource& source) HWY_ATTR {
        if (count == lanes) return Read(At(source, i), Factor(source));
        std::memcpy(padded, At(source, i), count * sizeof(T));
        return Read(padded, Factor(source));
      };
      V v = read(call.sources[0]);
      for (size_t s = 1; s < call.sources.size(); ++s) v = Op::Combine(v, read(call.sources[s]));
      L::Store(L::Narrow(v), padded);
      const auto write = [&](T* to) { std::memcpy(to, padded, count * sizeof(T)); };
      recorder.template Record<T>(count, write);
      for (void* destination : call.destinations) write(static_cast<T*>(destination) + i);
      i += count;
    }
    recorder.Finish();
  }
};

// Whether the destinations are the sources, each once, in any order.
HWY_INLINE bool IsInPlace(const FoldCall& call) {
  return call.sources.size() == call.destinations.size() &&
         std::all_of(call.sources.begin(), call.sources.end(), [&](const FoldSource& source) {
           return std::count(call.destinations.begin(), call.destinations.end(), source.data) == 1;
         });
}

// Sums of 32-bit and narrower floating types are what training spends its time on, so they have
// loops of their own for small numbers of buffers. (Narrower ones up to four: with more the
// processor runs out of registers.)
template <class L, class Op, bool kFactors, bool kJournal>
void FoldCounted(const FoldCall& call) {
  using F = Loops<L, Op, kFactors, kJournal>;
  constexpr bool kSumsFloat = std::is_same_v<Op, SumOp> && std::is_same_v<typename L::Value, float>;
  if constexpr (kSumsFloat) {
    if (call.sources.size() <= 8 && IsInPlace(call)) {
      switch (call.sources.size()) {
        case 2:
          return F::template FoldInPlace<2>(call);
        case 3:
          return F::template FoldInPlace<3>(call);
        case 4:
          return F::template FoldInPlace<4>(call);
      }
      if constexpr (std::is_same_v<typename L::Stored, float>) {
        switch (call.sources.size()) {
          case 5:
            return F::template FoldInPlace<5>(call);
          case 6:
            return F::template FoldInPlace<6>(call);
          case 7:
            return F::template FoldInPlace<7>(call);
          case 8:
            return F::template FoldInPlace<8>(call);
        }
      }
    }
  }
  F::Fold(call);
}

template <class L, class Op, bool kFactors>
void FoldWith(const FoldCall& call) {
  if (call.journal != nullptr) {
    FoldCounted<L, Op, kFactors, true>(call);
  } else {
    FoldCounted<L, Op, kFactors, false>(call);
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

// Sums and products are computed as those of unsigned numbers, which wrap: an overflow of signed
// ones would be undefined.
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
  // Streaming stores need aligned vectors, and whole cache lines are best. The head up to the first
  // aligned address is copied the usual way.
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
  // Streaming stores are not ordered with others; peers must see them before we say that we are
  // done.
  hwy::FlushStream();
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncopate::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::engine {
namespace {

HWY_EXPORT(FoldTyped);
HWY_EXPORT(CopyPastCache);

// Below this the ends of the copy, which cannot go past the cache, are most of it.
constexpr size_t kStreamBytesMin = 4096;

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
  // A copy does not change its source, so it can be done again from the beginning: the journal
  // needs no block, only the position before and after.
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

}  // namespace syncopate::engine
#endif  // HWY_ONCE
