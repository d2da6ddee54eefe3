// Tensor tables of well-known models, to plan for and to replay where the models themselves are too
// large to train.
//
// Tensors and sizes are those of the published architectures. Times are those of one GPU (RTX 2080
// Ti) as the ASC-WFBP paper has them or lets them be derived, divided among the tensors by what
// their layers compute and move; docs/asc-wfbp.md says how. Scaled() fits a table to other
// machines.
#ifndef SYNCOPATE_SCHEDULE_MODELS_MODEL_TABLES_H_
#define SYNCOPATE_SCHEDULE_MODELS_MODEL_TABLES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/tensor_table.h"

namespace syncopate::schedule {

struct KnownModel {
  absl::string_view name;   // "resnet-152"
  absl::string_view input;  // "32 images of 224 x 224": of an iteration
};

absl::Span<const KnownModel> KnownModels();

// InvalidArgument with the names that there are.
absl::StatusOr<TensorTable> MakeModelTable(absl::string_view name);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_MODELS_MODEL_TABLES_H_
