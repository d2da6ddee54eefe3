#include "train/model_file.h"

#include <torch/serialize/output-archive.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace syncopate::train {
namespace {

// What one must know to use the tensors: which model, on what input, and what its outputs mean.
std::string Describe(const std::string& name, const DatasetInfo& data) {
  nlohmann::ordered_json json;
  json["model"] = name;
  json["data"] = data.name;
  json["sample_shape"] = data.sample_shape;
  json["classes"] = data.classes;
  if (data.IsText()) {
    json["alphabet"] = data.alphabet;
  } else {
    json["mean"] = data.mean;
    json["deviation"] = data.deviation;
  }
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

absl::Status SaveModel(const std::string& folder, const std::string& name, const DatasetInfo& data,
                       const Model& model) {
  const std::string path = absl::StrCat(folder, "/", kModelFile);
  const std::string beside = absl::StrCat(path, ".new");
  try {
    ::torch::serialize::OutputArchive archive;
    model.save(archive);
    archive.save_to(beside);
  } catch (const std::exception& error) {  // LibTorch's, whose text goes on with a stack
    const std::string text = error.what();
    return absl::UnavailableError(
        absl::StrCat("cannot write ", beside, ": ", text.substr(0, text.find('\n'))));
  }
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", error.message()));
  }
  return WriteFile(absl::StrCat(folder, "/", kModelDescription),
                   absl::StrCat(Describe(name, data), "\n"));
}

}  // namespace syncopate::train
