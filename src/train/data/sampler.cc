#include "train/data/sampler.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace syncopate::train {

uint64_t MixSeed(uint64_t seed, uint64_t number) {
  return Random(Random(seed).Next() ^ Random(~number).Next()).Next();
}

Sampler::Sampler(int64_t samples, uint64_t seed) : samples_(samples), seed_(seed) {}

absl::StatusOr<SampleBatch> Sampler::Next(absl::Span<const int64_t> batch_sizes, int rank) {
  if (rank < 0 || rank >= static_cast<int64_t>(batch_sizes.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " among ", batch_sizes.size(), " batch sizes"));
  }
  int64_t before = 0, all = 0;
  for (size_t r = 0; r < batch_sizes.size(); ++r) {
    if (batch_sizes[r] < 0 || batch_sizes[r] > samples_ - all) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", r, " asks for a batch of ", batch_sizes[r],
                       "; all batches together must be at most the ", samples_,
                       " samples of an epoch: use a smaller batch or fewer workers"));
    }
    if (static_cast<int64_t>(r) < rank) before += batch_sizes[r];
    all += batch_sizes[r];
  }
  if (all == 0) return absl::InvalidArgumentError("all batch sizes are 0");
  if (position_.offset > samples_ - all) position_ = {position_.epoch + 1, 0};
  SampleBatch batch;
  batch.epoch = position_.epoch;
  const auto first = OrderOf(position_.epoch).begin() + position_.offset + before;
  batch.samples.assign(first, first + batch_sizes[static_cast<size_t>(rank)]);
  position_.offset += all;
  return batch;
}

absl::Status Sampler::SetPosition(const SamplerPosition& position) {
  if (position.epoch < 0 || position.offset < 0 || position.offset > samples_) {
    return absl::InvalidArgumentError(absl::StrCat("no sample ", position.offset, " in epoch ",
                                                   position.epoch, "; an epoch has ", samples_));
  }
  position_ = position;
  return absl::OkStatus();
}

absl::Span<const uint32_t> Sampler::OrderOf(int64_t epoch) {
  if (shuffled_epoch_ == epoch) return order_;
  shuffled_epoch_ = epoch;
  order_.resize(static_cast<size_t>(samples_));
  std::iota(order_.begin(), order_.end(), 0u);
  Random random(MixSeed(seed_, static_cast<uint64_t>(epoch)));
  for (size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[random.Below(left)]);
  }
  return order_;
}

}  // namespace syncopate::train
