#include "fold.h"

#include <cstring>

#if defined(__x86_64__)
#define SYNCOPATE_BENCH_AVX2 __attribute__((target("avx2")))
#endif

namespace syncopate::peers {
namespace {

constexpr size_t kVectorBytes = 32;
constexpr size_t kUnroll = 4;

struct Add {
  template <typename V>
  [[gnu::always_inline]] static inline void Into(V& a, const V& b) {
    a += b;
  }
};
struct Multiply {
  template <typename V>
  [[gnu::always_inline]] static inline void Into(V& a, const V& b) {
    a *= b;
  }
};
struct Least {
  template <typename V>
  [[gnu::always_inline]] static inline void Into(V& a, const V& b) {
    a = b < a ? b : a;
  }
};
struct Greatest {
  template <typename V>
  [[gnu::always_inline]] static inline void Into(V& a, const V& b) {
    a = a < b ? b : a;
  }
};

// A step takes kUnroll vectors from each source into registers, then writes them everywhere: each
// byte is read once and written once per buffer.
template <typename T, typename Op>
[[gnu::always_inline]] inline void Loop(std::byte* const* from, size_t sources,
                                        std::byte* const* to, size_t destinations,
                                        uint64_t elements) {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  constexpr uint64_t kStep = kUnroll * kVectorBytes / sizeof(T);
  uint64_t i = 0;
  for (; i + kStep <= elements; i += kStep) {
    const uint64_t at = i * sizeof(T);
    Vector sum[kUnroll];
    for (size_t u = 0; u < kUnroll; ++u) {
      sum[u] = *reinterpret_cast<const Vector*>(from[0] + at + u * kVectorBytes);
    }
    for (size_t s = 1; s < sources; ++s) {
      for (size_t u = 0; u < kUnroll; ++u) {
        Op::Into(sum[u], *reinterpret_cast<const Vector*>(from[s] + at + u * kVectorBytes));
      }
    }
    for (size_t d = 0; d < destinations; ++d) {
      for (size_t u = 0; u < kUnroll; ++u) {
        *reinterpret_cast<Vector*>(to[d] + at + u * kVectorBytes) = sum[u];
      }
    }
  }
  for (; i < elements; ++i) {
    T sum;
    std::memcpy(&sum, from[0] + i * sizeof(T), sizeof(T));
    for (size_t s = 1; s < sources; ++s) {
      T value;
      std::memcpy(&value, from[s] + i * sizeof(T), sizeof(T));
      Op::Into(sum, value);
    }
    for (size_t d = 0; d < destinations; ++d) {
      std::memcpy(to[d] + i * sizeof(T), &sum, sizeof(T));
    }
  }
}

template <typename T, typename Op>
void PlainLoop(std::byte* const* from, size_t sources, std::byte* const* to, size_t destinations,
               uint64_t elements) {
  Loop<T, Op>(from, sources, to, destinations, elements);
}

#if defined(SYNCOPATE_BENCH_AVX2)
template <typename T, typename Op>
SYNCOPATE_BENCH_AVX2 void Avx2Loop(std::byte* const* from, size_t sources, std::byte* const* to,
                                   size_t destinations, uint64_t elements) {
  Loop<T, Op>(from, sources, to, destinations, elements);
}
#endif

template <typename T, typename Op>
FoldLoop Best() {
#if defined(SYNCOPATE_BENCH_AVX2)
  if (__builtin_cpu_supports("avx2")) return Avx2Loop<T, Op>;
#endif
  return PlainLoop<T, Op>;
}

template <typename T>
FoldLoop ForOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return Best<T, Add>();
    case ReduceOp::kMin:
      return Best<T, Least>();
    case ReduceOp::kMax:
      return Best<T, Greatest>();
    case ReduceOp::kProduct:
      return Best<T, Multiply>();
    default:
      return nullptr;
  }
}

}  // namespace

FoldLoop FindFold(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat32:
      return ForOp<float>(op);
    case DataType::kFloat64:
      return ForOp<double>(op);
    case DataType::kInt32:
      return ForOp<int32_t>(op);
    case DataType::kInt64:
      return ForOp<int64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace syncopate::peers
