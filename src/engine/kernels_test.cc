// Folds against a plain scalar reference, bit for bit, on every instruction set of this machine.
#include "engine/kernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "hwy/targets.h"

namespace syncopate::engine {
namespace {

constexpr FoldOp kFoldOps[] = {FoldOp::kSum, FoldOp::kMin, FoldOp::kMax, FoldOp::kProduct};
constexpr uint64_t kSizes[] = {0,  1,  2,  3,  4,  5,  7,   8,   9,   15,  16,  17,
                               31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 321};
constexpr uint64_t kMost = 321;
constexpr size_t kPadding = 64;  // after the data, to see what is written past its end

// What a 16-bit floating type is made of; numbers with `digits` bits after the point.
struct Format16 {
  int digits;
  int exponent_min;
};
constexpr Format16 kHalf = {10, -14};
constexpr Format16 kBrain = {7, -126};

double Decode(uint16_t bits, Format16 format) {
  const int exponents = 1 << (15 - format.digits);
  const int exponent = (bits & 0x7fff) >> format.digits;
  const int fraction = bits & ((1 << format.digits) - 1);
  double value;
  if (exponent == exponents - 1) {
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, format.exponent_min - format.digits);
  } else {
    value = std::ldexp((1 << format.digits) + fraction,
                       exponent - 1 + format.exponent_min - format.digits);
  }
  return bits & 0x8000 ? -value : value;
}

// To nearest, ties to even.
uint16_t Encode(double value, Format16 format) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int exponents = 1 << (15 - format.digits);
  const uint16_t infinity = static_cast<uint16_t>((exponents - 1) << format.digits);
  if (std::isnan(value)) return sign | infinity | 1u << (format.digits - 1);
  const double magnitude = std::abs(value);
  if (std::isinf(value)) return sign | infinity;
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), format.exponent_min);
  const int places = static_cast<int>(
      std::nearbyint(std::ldexp(magnitude, format.digits - exponent)));  // 0 .. 2^(digits+1)
  // Added, not or-ed: a carry moves on into the exponent, and from the largest to infinity.
  const int bits = ((exponent - format.exponent_min) << format.digits) + places;
  return sign | static_cast<uint16_t>(std::min<int>(bits, infinity));
}

template <typename T>
T Combine(FoldOp op, T a, T b) {
  switch (op) {
    case FoldOp::kSum:
      return a + b;
    case FoldOp::kProduct:
      return a * b;
    case FoldOp::kMin:
      return a != a || b != b ? a + b : b < a ? b : a;
    case FoldOp::kMax:
      return a != a || b != b ? a + b : a < b ? b : a;
  }
  return a;
}

template <typename S, typename U>
uint64_t CombineIntegers(FoldOp op, uint64_t a, uint64_t b) {
  const S x = static_cast<S>(a);
  const S y = static_cast<S>(b);
  if (op == FoldOp::kMin) return static_cast<U>(std::min(x, y));
  if (op == FoldOp::kMax) return static_cast<U>(std::max(x, y));
  return Combine<U>(op, static_cast<U>(a), static_cast<U>(b));
}

// The bits of one element of the fold, from the sources' bits.
uint64_t Reference(DataType type, FoldOp op, const std::vector<uint64_t>& bits,
                   const std::vector<double>& factors) {
  const auto in_float = [&](auto decode) {
    float result = decode(bits[0]) * static_cast<float>(factors[0]);
    for (size_t s = 1; s < bits.size(); ++s) {
      result = Combine<float>(op, result, decode(bits[s]) * static_cast<float>(factors[s]));
    }
    return result;
  };
  uint64_t result = bits[0];
  switch (type) {
    case DataType::kFloat32:
      return std::bit_cast<uint32_t>(in_float(
          [](uint64_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value)); }));
    case DataType::kFloat16:
      return Encode(
          in_float([](uint64_t value) { return static_cast<float>(Decode(value, kHalf)); }), kHalf);
    case DataType::kBFloat16:
      return Encode(
          in_float([](uint64_t value) { return static_cast<float>(Decode(value, kBrain)); }),
          kBrain);
    case DataType::kFloat64: {
      double sum = std::bit_cast<double>(bits[0]) * factors[0];
      for (size_t s = 1; s < bits.size(); ++s) {
        sum = Combine<double>(op, sum, std::bit_cast<double>(bits[s]) * factors[s]);
      }
      return std::bit_cast<uint64_t>(sum);
    }
    case DataType::kInt32:
      for (size_t s = 1; s < bits.size(); ++s) {
        result = CombineIntegers<int32_t, uint32_t>(op, result, bits[s]);
      }
      return result;
    case DataType::kInt64:
      for (size_t s = 1; s < bits.size(); ++s) {
        result = CombineIntegers<int64_t, uint64_t>(op, result, bits[s]);
      }
      return result;
  }
  return 0;
}

bool IsNan(DataType type, uint64_t bits) {
  switch (type) {
    case DataType::kFloat32:
      return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DataType::kFloat64:
      return std::isnan(std::bit_cast<double>(bits));
    case DataType::kFloat16:
      return (bits & 0x7fff) > 0x7c00;
    case DataType::kBFloat16:
      return (bits & 0x7fff) > 0x7f80;
    default:
      return false;
  }
}

// An array of elements at a chosen distance from alignment, with room behind that must not change.
class Elements {
 public:
  Elements(DataType type, uint64_t count, size_t shift = 0)
      : type_(type),
        count_(count),
        first_(kPadding + shift * SizeOf(type)),
        bytes_(first_ + count * SizeOf(type) + kPadding, std::byte{0xa5}) {}

  void* data() { return bytes_.data() + first_; }
  uint64_t Get(uint64_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes_.data() + first_ + i * SizeOf(type_), SizeOf(type_));
    return bits;
  }
  void Set(uint64_t i, uint64_t bits) {
    std::memcpy(bytes_.data() + first_ + i * SizeOf(type_), &bits, SizeOf(type_));
  }
  bool PaddingIsWhole() const {
    const size_t end = first_ + count_ * SizeOf(type_);
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if ((i < first_ || i >= end) && bytes_[i] != std::byte{0xa5}) return false;
    }
    return true;
  }

 private:
  DataType type_;
  uint64_t count_;
  size_t first_;
  std::vector<std::byte> bytes_;
};

// Bits of every kind of number: mostly of ordinary size, some anything, some special.
uint64_t RandomBits(DataType type, Random* random) {
  const uint64_t any = random->Next();
  const uint64_t kind = random->Below(16);
  const double ordinary = (random->Unit() - 0.5) * std::ldexp(1.0, random->Between(-3, 6));
  static constexpr double kSpecial[] = {0.0, -0.0, 1.0, HUGE_VAL, -HUGE_VAL, 65504, 1e-7, 3e38};
  double number = kind < 12 ? ordinary : kSpecial[random->Below(std::size(kSpecial))];
  if (kind == 15 && random->Below(8) == 0) number = std::nan("");
  const bool raw = kind >= 12 && kind < 14;
  switch (type) {
    case DataType::kFloat32:
      return raw ? any >> 32 : std::bit_cast<uint32_t>(static_cast<float>(number));
    case DataType::kFloat64:
      return raw ? any : std::bit_cast<uint64_t>(number);
    case DataType::kFloat16:
      return raw ? any >> 48 : Encode(number, kHalf);
    case DataType::kBFloat16:
      return raw ? any >> 48 : Encode(number, kBrain);
    case DataType::kInt32:
      return kind < 8 ? static_cast<uint32_t>(random->Between(-9, 9)) : any >> 32;
    case DataType::kInt64:
      return kind < 8 ? static_cast<uint64_t>(random->Between(-9, 9)) : any;
  }
  return 0;
}

// Sources and what their fold must be.
struct Problem {
  DataType type;
  FoldOp op;
  std::vector<double> factors;
  std::vector<std::vector<uint64_t>> sources;  // bits
  std::vector<uint64_t> expected;              // bits

  Problem(DataType t, FoldOp o, size_t source_count, bool with_factors, uint64_t seed)
      : type(t), op(o), sources(source_count), expected(kMost) {
    Random random(seed);
    for (auto& source : sources) {
      factors.push_back(with_factors ? random.Unit() * 3 : 1);
      for (uint64_t i = 0; i < kMost; ++i) source.push_back(RandomBits(type, &random));
    }
    for (uint64_t i = 0; i < kMost; ++i) {
      std::vector<uint64_t> bits;
      for (const auto& source : sources) bits.push_back(source[i]);
      expected[i] = Reference(type, op, bits, factors);
    }
  }
};

enum class Place { kInPlace, kInPlaceWithJournal, kApart, kOneOfThem };

// Folds the first `size` elements, cut at random, and checks every destination.
void CheckFold(const Problem& problem, uint64_t size, Place place, int pieces, Random* random) {
  std::vector<Elements> arrays;
  for (const auto& bits : problem.sources) {
    arrays.emplace_back(problem.type, size, random->Below(9));
    for (uint64_t i = 0; i < size; ++i) arrays.back().Set(i, bits[i]);
  }
  const size_t sources = arrays.size();
  if (place == Place::kApart) {
    arrays.emplace_back(problem.type, size, random->Below(9));
    arrays.emplace_back(problem.type, size, random->Below(9));
  }
  const size_t first = place == Place::kApart       ? sources
                       : place == Place::kOneOfThem ? random->Below(sources)
                                                    : 0;
  const size_t last = place == Place::kOneOfThem ? first + 1 : arrays.size();
  FoldJournal journal = {};
  const bool with_journal = place == Place::kInPlaceWithJournal;
  const uint64_t origin = with_journal ? random->Below(1 << 30) : 0;

  uint64_t done = 0;
  for (int piece = 0; piece < pieces; ++piece) {
    const uint64_t count = piece + 1 == pieces ? size - done : random->Below(size - done + 1);
    const uint64_t offset = done * SizeOf(problem.type);
    std::vector<FoldSource> from;
    std::vector<void*> to;
    for (size_t a = 0; a < sources; ++a) {
      from.push_back({static_cast<std::byte*>(arrays[a].data()) + offset, problem.factors[a]});
    }
    for (size_t a = first; a < last; ++a) {
      to.push_back(static_cast<std::byte*>(arrays[a].data()) + offset);
    }
    Fold(problem.type, problem.op, from, to, count, with_journal ? &journal : nullptr,
         origin + done);
    done += count;
    if (with_journal) {
      EXPECT_EQ(FoldJournal::Position(journal.state.load()), origin + done);
      EXPECT_EQ(FoldJournal::Pending(journal.state.load()), 0u);
    }
  }

  for (size_t a = 0; a < arrays.size(); ++a) {
    const bool written = a >= first && a < last;
    ASSERT_TRUE(arrays[a].PaddingIsWhole()) << "array " << a;
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t expected = written ? problem.expected[i] : problem.sources[a][i];
      const uint64_t got = arrays[a].Get(i);
      if (written && IsNan(problem.type, expected) && IsNan(problem.type, got)) continue;
      ASSERT_EQ(got, expected) << "array " << a << ", element " << i;
    }
  }
}

std::vector<int64_t> Targets() {
  hwy::SetSupportedTargetsForTest(0);
  return hwy::SupportedAndGeneratedTargets();
}

// Runs its tests on one instruction set.
class KernelsTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, KernelsTest, ::testing::ValuesIn(Targets()),
                         [](const auto& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

TEST_P(KernelsTest, FoldsAsTheReferenceDoes) {
  Random random(20240601);
  for (DataType type : kDataTypes) {
    for (FoldOp op : kFoldOps) {
      for (bool factors : {false, true}) {
        if (factors && (op != FoldOp::kSum || !IsFloating(type))) continue;
        for (size_t sources = 1; sources <= 9; ++sources) {
          const uint64_t seed = random.Next();
          const Problem problem(type, op, sources, factors, seed);
          for (uint64_t size : kSizes) {
            for (Place place :
                 {Place::kInPlace, Place::kInPlaceWithJournal, Place::kApart, Place::kOneOfThem}) {
              SCOPED_TRACE(absl::StrCat(Name(type), " op ", static_cast<int>(op), " factors ",
                                        factors, " sources ", sources, " size ", size, " place ",
                                        static_cast<int>(place), " seed ", seed));
              CheckFold(problem, size, place, 1, &random);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, CutsDoNotShow) {
  Random random(77);
  for (DataType type : kDataTypes) {
    for (FoldOp op : kFoldOps) {
      const uint64_t seed = random.Next();
      const Problem problem(type, op, 3, op == FoldOp::kSum && IsFloating(type), seed);
      for (int round = 0; round < 20; ++round) {
        SCOPED_TRACE(absl::StrCat(Name(type), " op ", static_cast<int>(op), " seed ", seed));
        CheckFold(problem, kMost, round % 2 == 0 ? Place::kInPlaceWithJournal : Place::kApart,
                  static_cast<int>(random.Between(2, 9)), &random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Adding minus zero changes nothing, so what comes out is how the type is read and written.
TEST_P(KernelsTest, SixteenBitTypesPassThroughUnchanged) {
  for (DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    std::vector<uint16_t> all(1 << 16);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const std::vector<uint16_t> zeros(all.size(), 0x8000);
    std::vector<uint16_t> out(all.size());
    void* to = out.data();
    const FoldSource from[] = {{all.data()}, {zeros.data()}};
    Fold(type, FoldOp::kSum, from, absl::MakeConstSpan(&to, 1), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (IsNan(type, all[i])) {
        ASSERT_TRUE(IsNan(type, out[i])) << Name(type) << " " << i;
      } else {
        ASSERT_EQ(out[i], all[i]) << Name(type);
      }
    }
  }
}

// Every 16-bit number times a factor that moves it between, onto and beside representable ones.
TEST_P(KernelsTest, SixteenBitTypesRoundToNearestEven) {
  for (DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    const Format16 format = type == DataType::kFloat16 ? kHalf : kBrain;
    for (double factor :
         {0.5, 0.75, 1.25, 1.0009765625, 0.99951171875, 2.0, 0x1p-9, 0x1p-14, 1.5}) {
      std::vector<uint16_t> values(1 << 16);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i);
      Scale(type, values.data(), values.size(), factor);
      for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t before = static_cast<uint16_t>(i);
        const uint16_t expected =
            Encode(static_cast<float>(Decode(before, format)) * static_cast<float>(factor), format);
        if (IsNan(type, expected) && IsNan(type, values[i])) continue;
        ASSERT_EQ(values[i], expected) << Name(type) << " " << i << " times " << factor;
      }
    }
  }
}

TEST_P(KernelsTest, ScalesInPlace) {
  std::vector<float> floats(77, 3);
  Scale(DataType::kFloat32, floats.data(), floats.size(), 0.25);
  EXPECT_EQ(floats, std::vector<float>(77, 0.75f));
  std::vector<double> doubles(77, 3);
  Scale(DataType::kFloat64, doubles.data(), doubles.size(), 0.1);
  EXPECT_EQ(doubles, std::vector<double>(77, 3 * 0.1));
}

TEST_P(KernelsTest, MinimumAndMaximumKeepNaNWhereverItStands) {
  for (FoldOp op : {FoldOp::kMin, FoldOp::kMax}) {
    for (size_t nan_source = 0; nan_source < 3; ++nan_source) {
      for (size_t nan_at = 0; nan_at < 45; ++nan_at) {
        std::vector<std::vector<float>> values(3, std::vector<float>(45, 1.0f));
        values[nan_source][nan_at] = std::numeric_limits<float>::quiet_NaN();
        const FoldSource from[] = {{values[0].data()}, {values[1].data()}, {values[2].data()}};
        void* const to[] = {values[0].data(), values[2].data()};
        Fold(DataType::kFloat32, op, from, to, 45);
        for (size_t i = 0; i < 45; ++i) {
          EXPECT_EQ(std::isnan(values[0][i]), i == nan_at);
          EXPECT_EQ(std::isnan(values[2][i]), i == nan_at);
        }
      }
    }
  }
}

TEST_P(KernelsTest, StreamCopyCopiesAllAndNothingElse) {
  Random random(5);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, (size_t{1} << 20) - 1, size_t{1} << 20,
                       (size_t{1} << 20) + 1, (size_t{3} << 20) + 777}) {
    const size_t from_shift = random.Below(70);
    const size_t to_shift = random.Below(70);
    std::vector<uint8_t> from(bytes + 200);
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(random.Next());
    std::vector<uint8_t> to(bytes + 200, 0xee);
    StreamCopy(to.data() + to_shift, from.data() + from_shift, bytes);
    EXPECT_EQ(std::memcmp(to.data() + to_shift, from.data() + from_shift, bytes), 0) << bytes;
    for (size_t i = 0; i < to.size(); ++i) {
      const bool outside = i < to_shift || i >= to_shift + bytes;
      ASSERT_TRUE(!outside || to[i] == 0xee) << bytes << " at " << i;
    }
  }
}

TEST(DivideTest, TruncatesTowardsZero) {
  std::vector<int32_t> small = {7, -7, 8, -8, 0, 1, -1, INT32_MAX, INT32_MIN};
  Divide(DataType::kInt32, small.data(), small.size(), 2);
  EXPECT_EQ(small, (std::vector<int32_t>{3, -3, 4, -4, 0, 0, 0, INT32_MAX / 2, INT32_MIN / 2}));
  std::vector<int64_t> large = {7, -7, INT64_MAX, INT64_MIN};
  Divide(DataType::kInt64, large.data(), large.size(), 3);
  EXPECT_EQ(large, (std::vector<int64_t>{2, -2, INT64_MAX / 3, INT64_MIN / 3}));
  std::vector<int64_t> least = {INT64_MIN, 5};
  Divide(DataType::kInt64, least.data(), least.size(), -1);
  EXPECT_EQ(least, (std::vector<int64_t>{INT64_MIN, -5}));
}

}  // namespace
}  // namespace syncopate::engine
