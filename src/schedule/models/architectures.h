// The published architectures, layer by layer, with the tensor names of the usual PyTorch
// implementations. Each function adds all layers of a model to a builder.
#ifndef SYNCOPATE_SCHEDULE_MODELS_ARCHITECTURES_H_
#define SYNCOPATE_SCHEDULE_MODELS_ARCHITECTURES_H_

#include "absl/types/span.h"
#include "schedule/models/model_builder.h"

namespace syncopate::schedule {

// He et al. 2016, with bottleneck blocks: {3, 4, 6, 3} is ResNet-50, {3, 8, 36, 3} ResNet-152.
void AddResNet(const Shape& image, absl::Span<const int> blocks, ModelBuilder& model);
// Huang et al. 2017: {6, 12, 48, 32} with growth 32 is DenseNet-201.
void AddDenseNet(const Shape& image, absl::Span<const int> layers, int growth, ModelBuilder& model);
// Szegedy et al. 2017.
void AddInceptionV4(const Shape& image, ModelBuilder& model);
// Simonyan and Zisserman 2015, configuration D.
void AddVgg16(const Shape& image, ModelBuilder& model);
// Devlin et al. 2019, with both heads of pre-training; the word embedding also decodes, so it is
// one tensor.
void AddBertBase(int tokens, ModelBuilder& model);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_MODELS_ARCHITECTURES_H_
