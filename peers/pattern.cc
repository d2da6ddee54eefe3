#include "pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/random.h"
#include "model/element_value.h"

namespace syncopate::peers {
namespace {

constexpr uint64_t kPeriod = 1021;  // elements
constexpr std::byte kPoison{0x5a};

// How far an average may be off: it may be rounded once per contribution, or by a reciprocal.
double Tolerance(const tools::bench::RunRequest& request) {
  const bool averages =
      request.op == ReduceOp::kAverage || request.op == ReduceOp::kWeightedAverage;
  if (!Reduces(request.collective) || !averages) return 0;
  switch (request.type) {
    case DataType::kFloat32:
      return 4e-6;
    case DataType::kFloat64:
      return 4e-14;
    case DataType::kFloat16:
      return 2e-3;
    case DataType::kBFloat16:
      return 2e-2;
    case DataType::kInt32:
    case DataType::kInt64:
      return 0;
  }
  return 0;
}

}  // namespace

Pattern::Pattern(const tools::bench::RunRequest& request, int size, int64_t salt)
    : request_(request),
      size_(size),
      salt_(salt),
      width_(SizeOf(request.type)),
      elements_(request.bytes / width_),
      block_(elements_ / static_cast<uint64_t>(size)) {}

double Pattern::Value(int rank, uint64_t phase) const {
  Random random((static_cast<uint64_t>(salt_) << 40) ^ (static_cast<uint64_t>(rank) << 20) ^ phase);
  if (request_.op == ReduceOp::kProduct && Reduces(request_.collective)) {
    return rank < 8 && random.Below(2) == 1 ? 2 : 1;  // 2^8 is exact everywhere
  }
  // bfloat16 is exact up to 256, which 16 ranks of at most 15 or 128 ranks of at most 2 keep to.
  return static_cast<double>(random.Below(size_ <= 16 ? 16 : 3));
}

std::vector<std::byte> Pattern::TableOf(int rank) const {
  std::vector<std::byte> table(kPeriod * width_);
  for (uint64_t i = 0; i < kPeriod; ++i) {
    StoreElement(request_.type, Value(rank, i), &table[i * width_]);
  }
  return table;
}

std::vector<std::byte> Pattern::TableOfReduction() const {
  std::vector<std::byte> table(kPeriod * width_);
  std::vector<int> ranks = request_.active;
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::vector<double> values(ranks.size());
  std::vector<double> weights(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) weights[r] = Weight(ranks[r]);
  for (uint64_t i = 0; i < kPeriod; ++i) {
    for (size_t r = 0; r < ranks.size(); ++r) values[r] = Value(ranks[r], i);
    StoreElement(request_.type, ReducePlainly(request_.op, request_.type, values, weights),
                 &table[i * width_]);
  }
  return table;
}

void Pattern::Tile(const std::vector<std::byte>& table, uint64_t first, uint64_t elements,
                   std::byte* data) const {
  while (elements > 0) {
    const uint64_t phase = first % kPeriod;
    const uint64_t run = std::min(elements, kPeriod - phase);
    std::memcpy(data, &table[phase * width_], run * width_);
    data += run * width_;
    first += run;
    elements -= run;
  }
}

uint64_t Pattern::Differences(const std::vector<std::byte>& table, uint64_t first,
                              uint64_t elements, const std::byte* data) const {
  const double tolerance = Tolerance(request_);
  uint64_t wrong = 0;
  while (elements > 0) {
    const uint64_t phase = first % kPeriod;
    const uint64_t run = std::min(elements, kPeriod - phase);
    const std::byte* expected = &table[phase * width_];
    if (std::memcmp(data, expected, run * width_) != 0) {
      for (uint64_t i = 0; i < run; ++i) {
        const std::byte* is = data + i * width_;
        const std::byte* should = expected + i * width_;
        if (std::memcmp(is, should, width_) == 0) continue;
        const double right = LoadElement(request_.type, should);
        // Written so that a NaN is wrong.
        const bool close = tolerance > 0 && std::fabs(LoadElement(request_.type, is) - right) <=
                                                tolerance * std::max(1.0, std::fabs(right));
        if (!close) ++wrong;
      }
    }
    data += run * width_;
    first += run;
    elements -= run;
  }
  return wrong;
}

void Pattern::Fill(int rank, std::byte* data) const {
  const bool own_block_only =
      request_.collective == Collective::kAllGather || request_.collective == Collective::kGather;
  if (!own_block_only) return Tile(TableOf(rank), 0, elements_, data);
  const uint64_t first = static_cast<uint64_t>(rank) * block_;
  std::memset(data, static_cast<int>(kPoison), elements_ * width_);
  Tile(TableOf(rank), first, block_, data + first * width_);
}

uint64_t Pattern::CountWrong(int rank, const std::byte* whole, const std::byte* block) const {
  const uint64_t own = static_cast<uint64_t>(rank) * block_;
  uint64_t wrong = 0;
  switch (request_.collective) {
    case Collective::kAllReduce:
      return Differences(request_.IsActive(rank) ? TableOfReduction() : TableOf(rank), 0, elements_,
                         whole);
    case Collective::kReduce:
      return rank == kRoot ? Differences(TableOfReduction(), 0, elements_, whole) : 0;
    case Collective::kBroadcast:
      return Differences(TableOf(kRoot), 0, elements_, whole);
    case Collective::kReduceScatter:
      return Differences(TableOfReduction(), own, block_, block);
    case Collective::kScatter:
      return Differences(TableOf(kRoot), own, block_, whole + own * width_);
    case Collective::kAllGather:
    case Collective::kGather:
      if (request_.collective == Collective::kGather && rank != kRoot) return 0;
      for (int r = 0; r < size_; ++r) {
        const uint64_t first = static_cast<uint64_t>(r) * block_;
        wrong += Differences(TableOf(r), first, block_, whole + first * width_);
      }
      return wrong;
    case Collective::kAllToAll:
      for (int r = 0; r < size_; ++r) {
        wrong += Differences(TableOf(r), own, block_,
                             whole + static_cast<uint64_t>(r) * block_ * width_);
      }
      return wrong;
    case Collective::kSendReceive:
      return Differences(TableOf(rank == Target(size_) ? kRoot : rank), 0, elements_, whole);
    case Collective::kBarrier:
      return 0;
  }
  return wrong;
}

void FillNeutral(const tools::bench::RunRequest& request, std::byte* data) {
  std::memset(data, 0, request.bytes);
  if (request.op != ReduceOp::kProduct) return;
  const size_t width = SizeOf(request.type);
  for (uint64_t at = 0; at < request.bytes; at += width) StoreElement(request.type, 1, data + at);
}

}  // namespace syncopate::peers
