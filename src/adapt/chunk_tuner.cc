#include "adapt/chunk_tuner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/median.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::adapt {
namespace {

// Another size is chosen only if it takes less than this part of the time of the proposed one.
constexpr double kWorthwhile = 0.97;
constexpr uint64_t kChunkMin = 8 << 10;
constexpr uint64_t kChunkMax = 2 << 20;
constexpr int kDecider = 0;  // the rank that compares times

// A name for the calls of a key that is the same on all workers.
Digest DigestOfKey(const plan::ProgramKey& key) {
  const plan::CollectiveRequest& request = key.request;
  return DigestOf(absl::StrCat(
      static_cast<int>(request.collective), " ", request.workers, " ", request.root, " ",
      request.target, " ", request.elements, " ", key.element_bytes, " ", key.network_version, " ",
      key.algorithm, " ", absl::StrJoin(request.active, ","), " ",
      absl::StrJoin(request.block_elements, ","), " ", absl::StrJoin(key.ranks, ",")));
}

}  // namespace

// Sizes on their way are count:u32, then as many (name:u64 u64, bytes:u64).
std::string ChunkTuner::Encode(const Sizes& sizes) {
  std::string out;
  Append(out, static_cast<uint32_t>(sizes.size()));
  for (const auto& [name, bytes] : sizes) {
    Append(out, name.first);
    Append(out, name.second);
    Append(out, bytes);
  }
  return out;
}

absl::StatusOr<ChunkTuner::Sizes> ChunkTuner::Decode(absl::string_view bytes) {
  ByteReader reader(bytes);
  const auto count = reader.Read<uint32_t>();
  if (count > kTunedMax) return absl::InvalidArgumentError(absl::StrCat(count, " sub-chunk sizes"));
  Sizes sizes;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto high = reader.Read<uint64_t>();
    const auto low = reader.Read<uint64_t>();
    const auto size = reader.Read<uint64_t>();
    if (reader.ok() && (size < kChunkMin || size > kChunkMax)) {
      return absl::InvalidArgumentError(absl::StrCat("sub-chunks of ", size, " bytes"));
    }
    sizes[{high, low}] = size;
  }
  if (!reader.AtEnd()) return absl::InvalidArgumentError("no list of sub-chunk sizes");
  return sizes;
}

absl::StatusOr<Digest> ChunkTuner::DigestOfSizes(absl::string_view bytes) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Sizes sizes, Decode(bytes));
  return DigestOf(Encode(sizes));
}

std::vector<uint64_t> ChunkTuner::SizesAround(uint64_t proposed, uint64_t bytes) {
  std::vector<uint64_t> sizes = {proposed};
  for (const uint64_t size : {proposed / 2, proposed * 2}) {
    if (size >= kChunkMin && size <= std::min(kChunkMax, bytes)) sizes.push_back(size);
  }
  return sizes;
}

ChunkTuner::Advice ChunkTuner::BeforeCall(int64_t call, const plan::ProgramKey& key,
                                          uint64_t proposed) {
  if (!IsTuned(key, proposed)) return {};
  MutexLock lock(&mutex_);
  auto found = tuned_.find(key);
  if (found == tuned_.end()) {
    if (tuned_.size() >= kTunedMax) return {};
    found = tuned_.emplace(key, std::make_unique<Call>()).first;
    found->second->sizes = SizesAround(proposed, key.request.elements * key.element_bytes);
    found->second->took.resize(found->second->sizes.size());
    const Digest name = DigestOfKey(key);
    found->second->name = {name.high, name.low};
  }
  TakeSizes(call);
  Call& tuned = *found->second;
  Advice advice{.chunk_bytes = SizeFor(tuned), .took = nullptr};
  if (IsTrial(tuned)) {
    advice.took = std::make_shared<std::atomic<int64_t>>(0);
    tuned.took[SizeOfTrial(tuned)].push_back(advice.took);
  } else if (tuned.calls == kCallsBefore + kTrials * tuned.sizes.size()) {
    agreement_.Begin(call);
    Report(tuned);
  }
  ++tuned.calls;
  if (tuned.records != nullptr && tuned.records->Done()) Decide(tuned);
  return advice;
}

uint64_t ChunkTuner::NextSize(int64_t call, const plan::ProgramKey& key, uint64_t proposed) {
  if (!IsTuned(key, proposed)) return 0;
  MutexLock lock(&mutex_);
  const auto found = tuned_.find(key);
  if (found == tuned_.end()) return 0;
  TakeSizes(call);
  return SizeFor(*found->second);
}

bool ChunkTuner::IsTuned(const plan::ProgramKey& key, uint64_t proposed) {
  return proposed > 0 && key.request.elements * key.element_bytes >= kBytesLeast;
}

bool ChunkTuner::IsTrial(const Call& call) {
  return call.calls >= kCallsBefore && call.calls < kCallsBefore + kTrials * call.sizes.size();
}

uint64_t ChunkTuner::SizeFor(const Call& call) const {
  if (call.calls < kCallsBefore) return 0;
  if (IsTrial(call)) return SizeOfTrial(call) == 0 ? 0 : call.sizes[SizeOfTrial(call)];
  const auto chosen = in_force_.find(call.name);
  return chosen == in_force_.end() ? 0 : chosen->second;
}

void ChunkTuner::TakeSizes(int64_t call) {
  for (const ValueAgreement::Value& value : agreement_.TakeNew()) {
    absl::StatusOr<Sizes> sizes = Decode(value.bytes);
    if (sizes.ok()) coming_.emplace_back(value.from, *std::move(sizes));
  }
  while (!coming_.empty() && coming_.front().first <= call) {
    in_force_ = std::move(coming_.front().second);
    coming_.pop_front();
  }
}

void ChunkTuner::Report(Call& call) {
  std::vector<int64_t> mine;
  for (const auto& all : call.took) {
    std::vector<int64_t> known;
    for (size_t i = 1; i < all.size(); ++i) {
      if (const int64_t ns = all[i]->load(); ns > 0) known.push_back(ns);
    }
    mine.push_back(known.empty() ? 0 : MedianOf(std::move(known)));
  }
  call.took.clear();
  auto records = exchange_.Start(
      {.what = "times of sub-chunks", .text = EncodeNumbers(mine), .root = kDecider});
  if (exchange_.rank() == kDecider) call.records = std::move(records);
}

void ChunkTuner::Decide(Call& call) {
  // If the records could not be exchanged, a worker is lost, and the group with it.
  const absl::StatusOr<std::vector<std::string>> texts =
      std::exchange(call.records, nullptr)->Wait();
  if (!texts.ok()) return;
  const size_t sizes = call.sizes.size();
  std::vector<int64_t> slowest(sizes, 0);
  for (const std::string& text : *texts) {
    const absl::StatusOr<std::vector<int64_t>> theirs = DecodeIntegers(text, sizes);
    if (!theirs.ok()) return;
    for (size_t i = 0; i < sizes; ++i) {
      // A size that some worker could not measure is out.
      slowest[i] = std::max(slowest[i], (*theirs)[i] > 0 ? (*theirs)[i] : INT64_MAX);
    }
  }
  if (slowest[0] == INT64_MAX) return;
  const size_t best =
      static_cast<size_t>(std::min_element(slowest.begin(), slowest.end()) - slowest.begin());
  const bool worthwhile =
      static_cast<double>(slowest[best]) < kWorthwhile * static_cast<double>(slowest[0]);
  Log(LogLevel::kInfo, "sub-chunks of ", FormatBytes(call.sizes[best]), " are the quickest of ",
      sizes, " sizes; proposed were ", FormatBytes(call.sizes[0]),
      worthwhile ? "" : ", which stay");
  if (!worthwhile) return;
  proposed_[call.name] = call.sizes[best];
  agreement_.Propose(++version_, Encode(proposed_));
}

}  // namespace syncopate::adapt
