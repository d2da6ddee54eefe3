#include "train/data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "train/data/convert.h"

namespace syncopate::train {

namespace {

// Hard enough that a model has to learn, and easy enough that it does within some hundred
// iterations: a coarse pattern for each class, moved a little, under noise that is stronger than
// it.
constexpr int64_t kGrid = 5;      // values across a pattern; between them it is interpolated
constexpr int64_t kMove = 2;      // pixels
constexpr double kContrast = 48;  // of a pattern
constexpr double kNoise = 64;     // largest

// A pattern with a margin of kMove on each side, in [-1, 1].
std::vector<float> MakePattern(int64_t height, int64_t width, Random& random) {
  std::vector<double> grid(kGrid * kGrid);
  for (double& value : grid) value = 2 * random.Unit() - 1;
  const int64_t rows = height + 2 * kMove, columns = width + 2 * kMove;
  std::vector<float> pattern;
  pattern.reserve(static_cast<size_t>(rows * columns));
  for (int64_t y = 0; y < rows; ++y) {
    const double gy = static_cast<double>(y) * (kGrid - 1) / rows;
    for (int64_t x = 0; x < columns; ++x) {
      const double gx = static_cast<double>(x) * (kGrid - 1) / columns;
      const auto iy = static_cast<size_t>(gy), ix = static_cast<size_t>(gx);
      const double fy = gy - static_cast<double>(iy), fx = gx - static_cast<double>(ix);
      const double* corner = &grid[iy * kGrid + ix];
      pattern.push_back(
          static_cast<float>((1 - fy) * ((1 - fx) * corner[0] + fx * corner[1]) +
                             fy * ((1 - fx) * corner[kGrid] + fx * corner[kGrid + 1])));
    }
  }
  return pattern;
}

void AppendSamples(const SyntheticImages& request, const std::vector<std::vector<float>>& patterns,
                   int64_t samples, Random& random, std::vector<uint8_t>& inputs,
                   std::vector<uint8_t>& labels) {
  const int64_t channels = request.shape[0], height = request.shape[1], width = request.shape[2];
  for (int64_t i = 0; i < samples; ++i) {
    const auto label = random.Below(static_cast<uint64_t>(request.classes));
    labels.push_back(static_cast<uint8_t>(label));
    const int64_t dy = random.Between(0, 2 * kMove), dx = random.Between(0, 2 * kMove);
    for (int64_t c = 0; c < channels; ++c) {
      const auto& pattern =
          patterns[label * static_cast<size_t>(channels) + static_cast<size_t>(c)];
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          const float value = pattern[static_cast<size_t>((y + dy) * (width + 2 * kMove) + x + dx)];
          const double pixel = 128 + kContrast * value + kNoise * (2 * random.Unit() - 1);
          inputs.push_back(static_cast<uint8_t>(std::clamp(pixel, 0.0, 255.0)));
        }
      }
    }
  }
}

}  // namespace

absl::StatusOr<Dataset> MakeSyntheticImages(const SyntheticImages& request) {
  DatasetBytes bytes;
  bytes.info.name = "synthetic";
  bytes.info.sample_shape = request.shape;
  bytes.info.classes = request.classes;
  int64_t elements = 1;
  for (const int64_t extent : request.shape) {
    if (extent < 1 || extent > kSampleElementsMax / elements) elements = 0;
    if (elements == 0) break;
    elements *= extent;
  }
  if (request.shape.size() != 3 || elements == 0 || request.classes < 2 ||
      request.classes > kClassesMax || request.train_samples < 1 || request.test_samples < 0 ||
      request.train_samples > kDatasetBytesMax / elements ||
      request.test_samples > kDatasetBytesMax / elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic images: need channels, height and width with at most ",
                     kSampleElementsMax, " pixels in all, 2 to ", kClassesMax,
                     " classes, and samples of at most ", kDatasetBytesMax, " bytes"));
  }
  Random random(request.seed);
  std::vector<std::vector<float>> patterns;  // of each class and channel
  for (int64_t i = 0; i < request.classes * request.shape[0]; ++i) {
    patterns.push_back(MakePattern(request.shape[1], request.shape[2], random));
  }
  AppendSamples(request, patterns, request.train_samples, random, bytes.train_inputs,
                bytes.train_labels);
  AppendSamples(request, patterns, request.test_samples, random, bytes.test_inputs,
                bytes.test_labels);
  SetNormalisation(bytes);
  return MakeDataset(std::move(bytes));
}

absl::StatusOr<Dataset> MakeSyntheticText(int64_t characters, uint64_t seed) {
  constexpr uint64_t kLetters = 24;
  if (characters < 2 * kTextLength || characters > kDatasetBytesMax / 4) {
    return absl::InvalidArgumentError(absl::StrCat("synthetic text: ", characters,
                                                   " characters; need at least ", 2 * kTextLength));
  }
  Random random(seed);
  // The letter that likes to follow each letter, and each pair of letters.
  std::vector<uint8_t> after_one(kLetters), after_two(kLetters * kLetters);
  for (uint8_t& next : after_one) next = static_cast<uint8_t>(random.Below(kLetters));
  for (uint8_t& next : after_two) next = static_cast<uint8_t>(random.Below(kLetters));
  std::string text = "ab";
  // Mostly what follows the last letter or the last two, so that a model gains by looking back;
  // some at random, so that no model can be sure.
  while (static_cast<int64_t>(text.size()) < characters) {
    const auto before = static_cast<uint64_t>(text[text.size() - 2] - 'a');
    const auto last = static_cast<uint64_t>(text.back() - 'a');
    const uint64_t dice = random.Below(100);
    const uint64_t any = random.Below(kLetters);
    const uint64_t next = dice < 55   ? after_one[last]
                          : dice < 85 ? after_two[before * kLetters + last]
                                      : any;
    text.push_back(static_cast<char>('a' + next));
  }
  return MakeTextDataset("synthetic-text", text, kTextLength);
}

}  // namespace syncopate::train
