// Random changes to images that keep what they show. They depend on the seed, the epoch and the
// sample only, so it does not matter which worker a sample comes to.
#ifndef SYNCOPATE_TRAIN_DATA_AUGMENT_H_
#define SYNCOPATE_TRAIN_DATA_AUGMENT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace syncopate::train {

struct Augmentation {
  bool flip = false;      // half of the images, left to right
  int64_t crop_move = 0;  // pixels up to which an image moves each way; black comes in

  bool IsNone() const { return !flip && crop_move == 0; }
};

// Usual for CIFAR-10.
inline constexpr Augmentation kFlipAndCrop{true, 4};

// One image [channels, height, width] into another of the same shape, not the same memory.
void AugmentImage(const Augmentation& augmentation, absl::Span<const int64_t> shape, uint64_t seed,
                  int64_t epoch, int64_t sample, absl::Span<const uint8_t> image,
                  absl::Span<uint8_t> out);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_AUGMENT_H_
