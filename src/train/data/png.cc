#include "train/data/png.h"

#include <png.h>

#include "absl/strings/str_cat.h"

namespace syncopate::train {

absl::StatusOr<std::vector<uint8_t>> DecodePng(absl::string_view file, uint32_t width,
                                               uint32_t height) {
  // libpng's simple interface: it catches its own errors and keeps their text.
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    return absl::DataLossError(absl::StrCat("not a PNG image: ", image.message));
  }
  if (image.width != width || image.height != height) {
    const std::string size = absl::StrCat(image.width, " x ", image.height);
    png_image_free(&image);
    return absl::DataLossError(
        absl::StrCat("an image of ", size, " pixels; expected ", width, " x ", height));
  }
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0) {
    return absl::DataLossError(absl::StrCat("a damaged PNG image: ", image.message));
  }
  if (PNG_IMAGE_FAILED(image)) {
    return absl::DataLossError(absl::StrCat("a damaged PNG image: ", image.message));
  }
  return pixels;
}

}  // namespace syncopate::train
