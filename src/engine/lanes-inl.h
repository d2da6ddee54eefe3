// Vectors of each element type: how they are read, computed with and written. Compiled once for
// every instruction set (Highway's foreach_target.h includes it again and again); included by
// kernels.cc only.
//
// A Lanes type has
//   Stored               what an element is in memory
//   Value                what arithmetic is done in
//   D, V                 Highway's tag for a vector of Values, of at most 64 bytes, and the vector
//   Load(p)              a vector of Values from memory, at any alignment
//   Narrow(v)            that vector rounded to what memory holds
//   Store(n, p)          writes what Narrow returned, at any alignment
//   LoadBlock, NarrowBlock, StoreBlock   the same for four vectors, in whatever order of lanes is
//                        quick
#if defined(SYNCOPATE_ENGINE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCOPATE_ENGINE_LANES_INL_H_
#undef SYNCOPATE_ENGINE_LANES_INL_H_
#else
#define SYNCOPATE_ENGINE_LANES_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syncopate::engine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kVectorBytesMax = 64;

template <class V>
struct Four {
  V v0, v1, v2, v3;
};

template <class V>
struct Two {
  V v0, v1;
};

// Blocks by single vectors. `L` is the Lanes type that inherits this.
template <class L>
struct BlocksOfVectors {
  template <typename T>
  static HWY_INLINE auto LoadBlock(const T* p) {
    const size_t lanes = hn::Lanes(typename L::D());
    return Four<typename L::V>{L::Load(p), L::Load(p + lanes), L::Load(p + 2 * lanes),
                               L::Load(p + 3 * lanes)};
  }
  template <class V>
  static HWY_INLINE auto NarrowBlock(const Four<V>& b) {
    return Four<decltype(L::Narrow(b.v0))>{L::Narrow(b.v0), L::Narrow(b.v1), L::Narrow(b.v2),
                                           L::Narrow(b.v3)};
  }
  template <class N, typename T>
  static HWY_INLINE void StoreBlock(const Four<N>& b, T* p) {
    const size_t lanes = hn::Lanes(typename L::D());
    L::Store(b.v0, p);
    L::Store(b.v1, p + lanes);
    L::Store(b.v2, p + 2 * lanes);
    L::Store(b.v3, p + 3 * lanes);
  }
};

// Types that are computed with as they are stored.
template <typename T>
struct NativeLanes : BlocksOfVectors<NativeLanes<T>> {
  using Stored = T;
  using Value = T;
  using D = hn::CappedTag<T, kVectorBytesMax / sizeof(T)>;
  using V = hn::Vec<D>;

  static HWY_INLINE V Load(const T* p) { return hn::LoadU(D(), p); }
  static HWY_INLINE V Narrow(V v) { return v; }
  static HWY_INLINE void Store(V v, T* p) { hn::StoreU(v, D(), p); }
};

// 16-bit floating types are computed with in float32.
struct NarrowLanes {
  using Stored = uint16_t;
  using Value = float;
  using D = hn::CappedTag<float, kVectorBytesMax / sizeof(float)>;
  using V = hn::Vec<D>;
  using DBits = hn::RebindToUnsigned<D>;
  using VBits = hn::Vec<DBits>;
  using DNarrow = hn::Rebind<uint16_t, D>;
  using VNarrow = hn::Vec<DNarrow>;

  static HWY_INLINE VBits LoadBits(const uint16_t* p) {
    return hn::PromoteTo(DBits(), hn::LoadU(DNarrow(), p));
  }
  // The lanes' values are below 2^16.
  static HWY_INLINE VNarrow NarrowBits(VBits bits) {
    return hn::DemoteTo(DNarrow(), hn::BitCast(hn::RebindToSigned<D>(), bits));
  }
  static HWY_INLINE void Store(VNarrow v, uint16_t* p) { hn::StoreU(v, DNarrow(), p); }
};

// Blocks of 16-bit elements as two whole vectors in memory. `L` adds NarrowPair.
template <class L>
struct BlocksOfPairs {
#if HWY_TARGET != HWY_SCALAR
  using DPair = hn::Repartition<uint16_t, NarrowLanes::D>;
  using VPair = hn::Vec<DPair>;
  using V = NarrowLanes::V;

  static HWY_INLINE Two<VPair> NarrowBlock(const Four<V>& b) {
    return {L::NarrowPair(b.v0, b.v1), L::NarrowPair(b.v2, b.v3)};
  }
  static HWY_INLINE void StoreBlock(const Two<VPair>& b, uint16_t* p) {
    hn::StoreU(b.v0, DPair(), p);
    hn::StoreU(b.v1, DPair(), p + hn::Lanes(DPair()));
  }
#endif
};

struct BFloat16Vectors : NarrowLanes {
  static HWY_INLINE V Load(const uint16_t* p) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(LoadBits(p)));
  }
  static HWY_INLINE VNarrow Narrow(V v) { return NarrowBits(hn::ShiftRight<16>(Round(v))); }

 protected:
  // Bits whose upper half is the rounded number; the lower half means nothing.
  static HWY_INLINE VBits Round(V v) {
    const DBits du;
    const VBits bits = hn::BitCast(du, v);
    // Half of the last place, less one bit where the last place is even: ties go to even.
    const VBits odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const VBits rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
    // Rounding would turn some NaNs into infinities; set the quiet bit instead.
    const VBits nan = hn::Or(bits, hn::Set(du, 0x400000));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
  }
};

#if HWY_TARGET == HWY_SCALAR
struct BFloat16Lanes : BFloat16Vectors, BlocksOfVectors<BFloat16Vectors> {};
#else
// Lanes of even and of odd places make two vectors: no lane moves.
struct BFloat16Lanes : BFloat16Vectors, BlocksOfPairs<BFloat16Lanes> {
  using V = BFloat16Vectors::V;

  static HWY_INLINE Four<V> LoadBlock(const uint16_t* p) {
    const VBits bits0 = hn::BitCast(DBits(), hn::LoadU(DPair(), p));
    const VBits bits1 = hn::BitCast(DBits(), hn::LoadU(DPair(), p + hn::Lanes(DPair())));
    return {Even(bits0), Odd(bits0), Even(bits1), Odd(bits1)};
  }
  static HWY_INLINE VPair NarrowPair(V even, V odd) {
    return hn::OddEven(hn::BitCast(DPair(), Round(odd)),
                       hn::BitCast(DPair(), hn::ShiftRight<16>(Round(even))));
  }

 private:
  static HWY_INLINE V Even(VBits bits) { return hn::BitCast(D(), hn::ShiftLeft<16>(bits)); }
  static HWY_INLINE V Odd(VBits bits) {
    return hn::BitCast(D(), hn::And(bits, hn::Set(DBits(), 0xffff0000)));
  }
};
#endif

// x86 converts float16 in hardware from AVX2 on. Highway's own conversions for the sets before do
// not round to nearest and lose infinities, so those have another way here, which gives the same
// bits.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
struct Float16Vectors : NarrowLanes {
  using DHalf = hn::Rebind<hwy::float16_t, D>;
  static HWY_INLINE V Load(const uint16_t* p) {
    return hn::PromoteTo(D(), hn::BitCast(DHalf(), hn::LoadU(DNarrow(), p)));
  }
  static HWY_INLINE VNarrow Narrow(V v) { return hn::BitCast(DNarrow(), hn::DemoteTo(DHalf(), v)); }
};
#else
struct Float16Vectors : NarrowLanes {
  static HWY_INLINE V Load(const uint16_t* p) {
    const D d;
    const DBits du;
    const VBits half = LoadBits(p);
    const VBits sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000)));
    // Moved to float32's place, exponent and mantissa are the value times 2^-112, subnormal or not.
    const VBits moved = hn::ShiftLeft<13>(hn::And(half, hn::Set(du, 0x7fff)));
    const V scaled = hn::Mul(hn::BitCast(d, moved), hn::Set(d, 0x1p112f));
    // Infinity and NaN: the largest exponent stays the largest.
    const VBits special = hn::Or(moved, hn::Set(du, 0x7f800000));
    const auto is_special = hn::Gt(moved, hn::Set(du, 0x0f7fffff));
    return hn::BitCast(d,
                       hn::Or(sign, hn::IfThenElse(is_special, special, hn::BitCast(du, scaled))));
  }
  static HWY_INLINE VNarrow Narrow(V v) {
    const D d;
    const DBits du;
    const VBits bits = hn::BitCast(du, v);
    const VBits magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
    const VBits sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));

    // Normal: rounded to even at bit 13, exponent bias changed from 127 to 15. Values that are too
    // large become infinity by the carry, up to 2^16.
    const VBits odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const VBits bias = hn::Set(du, 0xfffu - (uint32_t{127 - 15} << 23));
    const VBits normal = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(bias, odd)));
    // Subnormal: the last place of 0.5 in float32 is that of float16's subnormals, so the addition
    // rounds as it should.
    const V half = hn::Set(d, 0.5f);
    const VBits subnormal =
        hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(du, half));
    const VBits infinity = hn::Set(du, 0x7c00);
    const VBits nan =
        hn::Or(hn::Set(du, 0x7e00), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3ff)));

    VBits result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000)), subnormal, normal);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477fffff)), infinity, result);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000)), nan, result);
    return NarrowBits(hn::Or(sign, result));
  }
};
#endif

#if HWY_TARGET == HWY_SCALAR
struct Float16Lanes : Float16Vectors, BlocksOfVectors<Float16Vectors> {};
#else
struct Float16Lanes : Float16Vectors, BlocksOfVectors<Float16Vectors>, BlocksOfPairs<Float16Lanes> {
  using V = Float16Vectors::V;
  using BlocksOfPairs<Float16Lanes>::NarrowBlock;
  using BlocksOfPairs<Float16Lanes>::StoreBlock;

  static HWY_INLINE VPair NarrowPair(V low, V high) {
    return hn::Combine(DPair(), Narrow(high), Narrow(low));
  }
};
#endif

// The operations, on vectors of Values.

struct SumOp {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) {
    return hn::Add(a, b);
  }
};

struct ProductOp {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) {
    return hn::Mul(a, b);
  }
};

// Instruction sets differ in what their minimum of a NaN is, so it is spelled out.
template <class V, class M>
HWY_INLINE V ChooseSecond(V a, V b, M second_is_better) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::IfThenElse(hn::Or(second_is_better, hn::IsNaN(b)), b, a);
  } else {
    return hn::IfThenElse(second_is_better, b, a);
  }
}

struct MinOp {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) {
    return ChooseSecond(a, b, hn::Lt(b, a));
  }
};

struct MaxOp {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) {
    return ChooseSecond(a, b, hn::Lt(a, b));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace syncopate::engine
HWY_AFTER_NAMESPACE();

#endif  // include guard, by target
