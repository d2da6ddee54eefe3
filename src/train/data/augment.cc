#include "train/data/augment.h"

#include "base/random.h"
#include "train/data/sampler.h"

namespace syncopate::train {

void AugmentImage(const Augmentation& augmentation, absl::Span<const int64_t> shape, uint64_t seed,
                  int64_t epoch, int64_t sample, absl::Span<const uint8_t> image,
                  absl::Span<uint8_t> out) {
  Random random(
      MixSeed(MixSeed(seed, static_cast<uint64_t>(epoch)), static_cast<uint64_t>(sample)));
  const bool flip = augmentation.flip && random.Below(2) == 1;
  const int64_t dy = random.Between(-augmentation.crop_move, augmentation.crop_move);
  const int64_t dx = random.Between(-augmentation.crop_move, augmentation.crop_move);
  const int64_t channels = shape[0], height = shape[1], width = shape[2];
  size_t to = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t from_y = y + dy;
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_x = (flip ? width - 1 - x : x) + dx;
        const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        const auto from = static_cast<size_t>((c * height + from_y) * width + from_x);
        out[to++] = inside ? image[from] : 0;
      }
    }
  }
}

}  // namespace syncopate::train
