#include "train/options/optimizer_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

absl::Status CheckRange(const char* name, double value, double lo, double hi) {
  if (value >= lo && value < hi) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " ", value, "; expected at least ", lo, " and less than ", hi));
}

}  // namespace

absl::Status OptimizerOptions::Validate() const {
  if (name != "sgd" && name != "adam") {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no optimizer \"", name, "\"; there are sgd and adam"));
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckRange("weight decay", weight_decay, 0, 1e6));
  SYNCOPATE_RETURN_IF_ERROR(CheckRange("momentum", momentum, 0, 1));
  SYNCOPATE_RETURN_IF_ERROR(CheckRange("beta1", beta1, 0, 1));
  SYNCOPATE_RETURN_IF_ERROR(CheckRange("beta2", beta2, 0, 1));
  SYNCOPATE_RETURN_IF_ERROR(CheckRange("epsilon", epsilon, 0, 1));
  if (nesterov && momentum == 0) {
    return absl::InvalidArgumentError("nesterov needs a momentum");
  }
  return absl::OkStatus();
}

}  // namespace syncopate::train
