// Each block of elements is added up in a small array of the type in which sums are made, so that
// the inner loops are over plain arrays, whatever the number of terms.
#include "sync/weighted_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace syncopate::sync {
namespace {

constexpr uint64_t kBlock = 1024;

struct BFloat16 {
  uint16_t bits;
};

double Widen(double value) { return value; }
float Widen(float value) { return value; }
float Widen(_Float16 value) { return static_cast<float>(value); }
float Widen(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

void Narrow(double value, double& to) { to = value; }
void Narrow(float value, float& to) { to = value; }
void Narrow(float value, _Float16& to) { to = static_cast<_Float16>(value); }
void Narrow(float value, BFloat16& to) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  // To the nearest, halves to the even one; a NaN stays one.
  to.bits = is_nan ? static_cast<uint16_t>((bits >> 16) | 0x40u)
                   : static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <typename T>
void SumOf(uint64_t elements, absl::Span<const SumTerm> terms, std::byte* to) {
  using Wide = decltype(Widen(T{}));
  T* const out = reinterpret_cast<T*>(to);
  std::array<Wide, kBlock> sums;
  for (uint64_t begin = 0; begin < elements; begin += kBlock) {
    const uint64_t count = std::min(kBlock, elements - begin);
    std::fill_n(sums.begin(), count, Wide{0});
    for (const SumTerm& term : terms) {
      const T* const in = reinterpret_cast<const T*>(term.values) + begin;
      const Wide factor = static_cast<Wide>(term.factor);
      for (uint64_t i = 0; i < count; ++i) sums[i] += factor * Widen(in[i]);
    }
    for (uint64_t i = 0; i < count; ++i) Narrow(sums[i], out[begin + i]);
  }
}

}  // namespace

void WeightedSum(DataType type, uint64_t elements, absl::Span<const SumTerm> terms, std::byte* to) {
  switch (type) {
    case DataType::kFloat64:
      return SumOf<double>(elements, terms, to);
    case DataType::kFloat16:
      return SumOf<_Float16>(elements, terms, to);
    case DataType::kBFloat16:
      return SumOf<BFloat16>(elements, terms, to);
    default:
      return SumOf<float>(elements, terms, to);
  }
}

}  // namespace syncopate::sync
