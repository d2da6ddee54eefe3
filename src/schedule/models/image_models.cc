// ResNet, DenseNet and VGG (architectures.h).
#include "absl/strings/str_cat.h"
#include "schedule/models/architectures.h"

namespace syncopate::schedule {
namespace {

constexpr int kClasses = 1000;

struct BottleneckWidths {
  int inner = 0;
  int out = 0;
  int stride = 1;
};

// A 1 x 1 convolution to few channels, a 3 x 3 one among them, a 1 x 1 one to many. The input is
// added to the result; where its shape differs (`downsample`), after a 1 x 1 convolution of its
// own.
Shape AddBottleneck(const std::string& name, const Shape& in, const BottleneckWidths& widths,
                    bool downsample, ModelBuilder& model) {
  const auto normalized = [&](const char* number, const Shape& shape) {
    return model.Normalization(absl::StrCat(name, ".bn", number), shape);
  };
  Shape x = model.Convolution(absl::StrCat(name, ".conv1"), in, widths.inner, Valid(1));
  x = normalized("1", x);
  model.Elementwise(x);
  x = model.Convolution(absl::StrCat(name, ".conv2"), x, widths.inner, Same(3, widths.stride));
  x = normalized("2", x);
  model.Elementwise(x);
  x = model.Convolution(absl::StrCat(name, ".conv3"), x, widths.out, Valid(1));
  x = normalized("3", x);
  if (downsample) {
    x = model.Convolution(absl::StrCat(name, ".downsample.0"), in, widths.out,
                          Valid(1, widths.stride));
    x = model.Normalization(absl::StrCat(name, ".downsample.1"), x);
  }
  model.Elementwise(x, 2);  // the sum
  model.Elementwise(x);
  return x;
}

}  // namespace

// The first block of each stage but the first halves the image.
void AddResNet(const Shape& image, absl::Span<const int> blocks, ModelBuilder& model) {
  Shape x = model.Convolution("conv1", image, 64, {7, 7, 2, 3, 3});
  x = model.Normalization("bn1", x);
  model.Elementwise(x);
  x = model.Pool(x, Same(3, 2));
  int inner = 64;
  for (size_t stage = 0; stage < blocks.size(); ++stage, inner *= 2) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const bool first = block == 0;
      x = AddBottleneck(absl::StrCat("layer", stage + 1, ".", block), x,
                        {inner, 4 * inner, first && stage > 0 ? 2 : 1}, first, model);
    }
  }
  model.Linear("fc", model.PoolAll(x), kClasses);
}

// Within a block each layer reads everything that was made before it and adds `growth` channels; a
// transition between blocks halves channels and image.
void AddDenseNet(const Shape& image, absl::Span<const int> layers, int growth,
                 ModelBuilder& model) {
  Shape x = model.Convolution("features.conv0", image, 2 * growth, {7, 7, 2, 3, 3});
  x = model.Normalization("features.norm0", x);
  model.Elementwise(x);
  x = model.Pool(x, Same(3, 2));
  for (size_t block = 0; block < layers.size(); ++block) {
    for (int layer = 0; layer < layers[block]; ++layer) {
      const std::string name =
          absl::StrCat("features.denseblock", block + 1, ".denselayer", layer + 1);
      Shape y = model.Normalization(absl::StrCat(name, ".norm1"), x);
      model.Elementwise(y);
      y = model.Convolution(absl::StrCat(name, ".conv1"), y, 4 * growth, Valid(1));
      y = model.Normalization(absl::StrCat(name, ".norm2"), y);
      model.Elementwise(y);
      y = model.Convolution(absl::StrCat(name, ".conv2"), y, growth, Same(3));
      x.channels += growth;
      model.Elementwise(x);  // put beside what was there
    }
    if (block + 1 == layers.size()) break;
    const std::string name = absl::StrCat("features.transition", block + 1);
    x = model.Normalization(absl::StrCat(name, ".norm"), x);
    model.Elementwise(x);
    x = model.Convolution(absl::StrCat(name, ".conv"), x, x.channels / 2, Valid(1));
    x = model.Pool(x, Valid(2, 2));
  }
  x = model.Normalization("features.norm5", x);
  model.Elementwise(x);
  model.Linear("classifier", model.PoolAll(x), kClasses);
}

// The names count activations and poolings as layers, as a PyTorch Sequential does.
void AddVgg16(const Shape& image, ModelBuilder& model) {
  constexpr int kPool = 0;
  constexpr int kLayers[] = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                             kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  Shape x = image;
  int index = 0;
  for (const int channels : kLayers) {
    if (channels == kPool) {
      x = model.Pool(x, Valid(2, 2));
      index += 1;
      continue;
    }
    x = model.Convolution(absl::StrCat("features.", index), x, channels, Same(3), true);
    model.Elementwise(x);
    index += 2;
  }
  x = {x.channels * x.height * x.width, 1, 1};
  for (const int layer : {0, 3}) {
    x = model.Linear(absl::StrCat("classifier.", layer), x, 4096);
    model.Elementwise(x, 2);  // activation and dropout
  }
  model.Linear("classifier.6", x, kClasses);
}

}  // namespace syncopate::schedule
