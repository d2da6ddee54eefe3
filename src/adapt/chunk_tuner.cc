#include "adapt/chunk_tuner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/median.h"
#include "base/parse.h"

namespace syncopate::adapt {
namespace {

// Another size is chosen only if it takes less than this part of the time of the proposed one.
constexpr double kWorthwhile = 0.97;
constexpr uint64_t kChunkMin = 8 << 10;
constexpr uint64_t kChunkMax = 2 << 20;

}  // namespace

std::vector<uint64_t> ChunkTuner::SizesAround(uint64_t proposed, uint64_t bytes) {
  std::vector<uint64_t> sizes = {proposed};
  for (const uint64_t size : {proposed / 2, proposed * 2}) {
    if (size >= kChunkMin && size <= std::min(kChunkMax, bytes)) sizes.push_back(size);
  }
  return sizes;
}

ChunkTuner::Advice ChunkTuner::BeforeCall(const plan::ProgramKey& key, uint64_t proposed) {
  const uint64_t bytes = key.request.elements * key.element_bytes;
  if (proposed == 0 || bytes < kBytesLeast) return {};
  MutexLock lock(&mutex_);
  auto found = tuned_.find(key);
  if (found == tuned_.end()) {
    if (tuned_.size() >= kTunedMax) return {};
    found = tuned_.emplace(key, std::make_unique<Call>()).first;
    found->second->sizes = SizesAround(proposed, bytes);
    found->second->took.resize(found->second->sizes.size());
  }
  Call& call = *found->second;
  if (call.decided) return {.chunk_bytes = call.chosen, .took = nullptr};
  const uint64_t number = call.calls++;
  const uint64_t trials = kTrials * call.sizes.size();
  if (number < kCallsBefore) return {};
  if (number < kCallsBefore + trials) {
    const size_t size = (number - kCallsBefore) % call.sizes.size();
    auto took = std::make_shared<std::atomic<int64_t>>(0);
    call.took[size].push_back(took);
    return {.chunk_bytes = size == 0 ? 0 : call.sizes[size], .took = std::move(took)};
  }
  if (number == kCallsBefore + trials) {
    std::vector<int64_t> mine;
    for (const auto& all : call.took) {
      std::vector<int64_t> known;
      for (size_t i = 1; i < all.size(); ++i) {
        if (const int64_t ns = all[i]->load(); ns > 0) known.push_back(ns);
      }
      mine.push_back(known.empty() ? 0 : MedianOf(std::move(known)));
    }
    call.records = exchange_.Start({.what = "times of sub-chunks", .text = EncodeNumbers(mine)});
    call.took.clear();
  }
  if (number == kCallsBefore + trials + kSwitchCalls) Decide(call);
  return {.chunk_bytes = call.chosen, .took = nullptr};
}

void ChunkTuner::Decide(Call& call) {
  call.decided = true;
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
  if (static_cast<double>(slowest[best]) < kWorthwhile * static_cast<double>(slowest[0])) {
    call.chosen = call.sizes[best];
  }
  Log(LogLevel::kInfo, "sub-chunks of ", FormatBytes(call.sizes[best]), " are the quickest of ",
      sizes, " sizes; proposed were ", FormatBytes(call.sizes[0]),
      call.chosen == 0 ? ", which stay" : "");
}

}  // namespace syncopate::adapt
