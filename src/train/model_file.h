// A trained model as files for others: model.pt, which LibTorch and PyTorch read without anything of
// ours, and model.json, which says what the model takes and gives.
//
// model.pt is what torch::save() makes of a module: an archive of tensors by name ("conv1.weight"),
// parameters and buffers, with declarations and no code that is run when it is read. C++ reads it by
// torch::load(), Python by torch.jit.load(path).state_dict() (torch.load does the same).
#ifndef SYNCOPATE_TRAIN_MODEL_FILE_H_
#define SYNCOPATE_TRAIN_MODEL_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "train/data/dataset.h"
#include "train/models.h"

namespace syncopate::train {

inline constexpr char kModelFile[] = "model.pt";
inline constexpr char kModelDescription[] = "model.json";

// Writes both into `folder`, each beside its place and renamed. `name` is that of the model.
absl::Status SaveModel(const std::string& folder, const std::string& name, const DatasetInfo& data,
                       const Model& model);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_MODEL_FILE_H_
