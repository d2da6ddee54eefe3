#include "model/element_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace syncopate {
namespace {

uint16_t HalfOf(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto bits = static_cast<uint32_t>(std::lrint(mantissa * 2048));
  const uint32_t magnitude = (static_cast<uint32_t>(exponent + 13) << 10) + bits;
  return static_cast<uint16_t>((value < 0 ? 0x8000u : 0u) | magnitude);
}

double FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double magnitude = exponent == 0 ? std::ldexp(bits & 1023, -24)
                                         : std::ldexp((bits & 1023) | 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
void Store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

void StoreElement(DataType type, double value, std::byte* to) {
  switch (type) {
    case DataType::kFloat32:
      return Store(to, static_cast<float>(value));
    case DataType::kFloat64:
      return Store(to, value);
    case DataType::kFloat16:
      return Store(to, HalfOf(value));
    case DataType::kBFloat16:
      return Store(to, static_cast<uint16_t>(
                           (std::bit_cast<uint32_t>(static_cast<float>(value)) + 0x8000u) >> 16));
    case DataType::kInt32:
      return Store(to, static_cast<int32_t>(value));
    case DataType::kInt64:
      return Store(to, static_cast<int64_t>(value));
  }
}

double LoadElement(DataType type, const std::byte* from) {
  switch (type) {
    case DataType::kFloat32:
      return Load<float>(from);
    case DataType::kFloat64:
      return Load<double>(from);
    case DataType::kFloat16:
      return FromHalf(Load<uint16_t>(from));
    case DataType::kBFloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(from)) << 16);
    case DataType::kInt32:
      return Load<int32_t>(from);
    case DataType::kInt64:
      return static_cast<double>(Load<int64_t>(from));
  }
  return 0;
}

double ReducePlainly(ReduceOp op, DataType type, absl::Span<const double> values,
                     absl::Span<const double> weights) {
  double result = values[0];
  double weight = 0;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      for (size_t i = 1; i < values.size(); ++i) result += values[i];
      if (op == ReduceOp::kSum) return result;
      result /= static_cast<double>(values.size());
      return IsFloating(type) ? result : std::trunc(result);
    case ReduceOp::kWeightedAverage:
      result = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        result += weights[i] * values[i];
        weight += weights[i];
      }
      return result / weight;
    case ReduceOp::kMin:
      return *std::min_element(values.begin(), values.end());
    case ReduceOp::kMax:
      return *std::max_element(values.begin(), values.end());
    case ReduceOp::kProduct:
      for (size_t i = 1; i < values.size(); ++i) result *= values[i];
      return result;
  }
  return 0;
}

}  // namespace syncopate
