// Decodes PNG images of a known size.
#ifndef SYNCOPATE_TRAIN_DATA_PNG_H_
#define SYNCOPATE_TRAIN_DATA_PNG_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::train {

// Red, green and blue of each pixel, row by row. DataLoss if it is damaged or of another size.
absl::StatusOr<std::vector<uint8_t>> DecodePng(absl::string_view file, uint32_t width,
                                               uint32_t height);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_PNG_H_
