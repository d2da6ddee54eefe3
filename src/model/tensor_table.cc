// The checks, the JSON form and the sums of a tensor table.
#include "model/tensor_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "model/json_reader.h"
#include "model/value_checks.h"

namespace syncopate {
namespace {

using json_reader::CheckList;
using json_reader::CheckObject;
using json_reader::Json;
using json_reader::Place;
using json_reader::ReadCount;
using json_reader::ReadNumber;
using json_reader::ReadString;
using value_checks::CheckPrintable;
using value_checks::CheckSeconds;
using value_checks::Fault;

constexpr size_t kTableDepthMax = 3;  // the document, the list, a tensor

absl::Status CheckName(const std::string& path, absl::string_view name) {
  if (name.empty()) return Fault(path, "the name is empty");
  return CheckPrintable(path, name, limits::kTensorNameBytesMax);
}

absl::StatusOr<TensorInfo> ReadTensor(const Place& place) {
  SYNCOPATE_RETURN_IF_ERROR(
      CheckObject(place, {"name", "elements", "forward_seconds", "backward_seconds"}, {"type"}));
  TensorInfo tensor;
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.name, ReadString(place.Field("name")));
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.elements, ReadCount(place.Field("elements")));
  if (place.json.contains("type")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string type, ReadString(place.Field("type")));
    const absl::StatusOr<DataType> parsed = ParseDataType(type);
    if (!parsed.ok()) return At(place.Field("type").path, parsed.status());
    tensor.type = *parsed;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.forward_seconds,
                             ReadNumber(place.Field("forward_seconds"), ParseSeconds));
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.backward_seconds,
                             ReadNumber(place.Field("backward_seconds"), ParseSeconds));
  return tensor;
}

}  // namespace

uint64_t TensorTable::elements() const {
  uint64_t sum = 0;
  for (const TensorInfo& tensor : tensors) sum += tensor.elements;
  return sum;
}

uint64_t TensorTable::bytes() const {
  uint64_t sum = 0;
  for (const TensorInfo& tensor : tensors) sum += tensor.bytes();
  return sum;
}

double TensorTable::forward_seconds() const {
  double sum = 0;
  for (const TensorInfo& tensor : tensors) sum += tensor.forward_seconds;
  return sum;
}

double TensorTable::backward_seconds() const {
  double sum = 0;
  for (const TensorInfo& tensor : tensors) sum += tensor.backward_seconds;
  return sum;
}

absl::Status Validate(const TensorTable& table) {
  SYNCOPATE_RETURN_IF_ERROR(CheckName("model", table.model));
  if (table.tensors.empty()) return Fault("tensors", "there is none");
  if (table.tensors.size() > limits::kTensorsMax) {
    return Fault("tensors",
                 absl::StrCat(table.tensors.size(), " entries are more than the limit of ",
                              limits::kTensorsMax));
  }
  absl::flat_hash_set<absl::string_view> names;
  uint64_t elements = 0;
  for (size_t i = 0; i < table.tensors.size(); ++i) {
    const TensorInfo& tensor = table.tensors[i];
    const std::string path = absl::StrCat("tensors[", i, "]");
    SYNCOPATE_RETURN_IF_ERROR(CheckName(absl::StrCat(path, ".name"), tensor.name));
    if (!names.insert(tensor.name).second) {
      return Fault(absl::StrCat(path, ".name"),
                   absl::StrCat("\"", tensor.name, "\" is also the name of an earlier one"));
    }
    if (tensor.elements == 0) return Fault(absl::StrCat(path, ".elements"), "there are none");
    // Compared without adding, because the sum could overflow.
    if (tensor.elements > limits::kElementsMax - elements) {
      return Fault(absl::StrCat(path, ".elements"),
                   absl::StrCat("with ", tensor.elements,
                                " here the model has more elements than the limit of ",
                                limits::kElementsMax));
    }
    elements += tensor.elements;
    SYNCOPATE_RETURN_IF_ERROR(CheckSeconds(absl::StrCat(path, ".forward_seconds"),
                                           tensor.forward_seconds, limits::kTensorSecondsMax));
    SYNCOPATE_RETURN_IF_ERROR(CheckSeconds(absl::StrCat(path, ".backward_seconds"),
                                           tensor.backward_seconds, limits::kTensorSecondsMax));
  }
  return absl::OkStatus();
}

std::string ToJson(const TensorTable& table) {
  std::string text =
      absl::StrCat("{\"model\": ", json_reader::Dump(Json(table.model)), ",\n \"tensors\": [");
  for (size_t i = 0; i < table.tensors.size(); ++i) {
    const TensorInfo& tensor = table.tensors[i];
    const Json json = {{"name", tensor.name},
                       {"elements", tensor.elements},
                       {"type", std::string(Name(tensor.type))},
                       {"forward_seconds", tensor.forward_seconds},
                       {"backward_seconds", tensor.backward_seconds}};
    absl::StrAppend(&text, i == 0 ? "\n  " : ",\n  ", json_reader::Dump(json));
  }
  absl::StrAppend(&text, "]}\n");
  return text;
}

absl::StatusOr<TensorTable> ParseTensorTable(absl::string_view json) {
  if (json.size() > limits::kTensorTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor table has ", FormatBytes(json.size()), ", more than the limit of ",
                     FormatBytes(limits::kTensorTextBytesMax)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Json parsed, json_reader::ParseJson(json, kTableDepthMax));
  const Place document{parsed, ""};
  SYNCOPATE_RETURN_IF_ERROR(CheckObject(document, {"model", "tensors"}, {}));
  TensorTable table;
  SYNCOPATE_ASSIGN_OR_RETURN(table.model, ReadString(document.Field("model")));
  const Place list = document.Field("tensors");
  SYNCOPATE_RETURN_IF_ERROR(CheckList(list, limits::kTensorsMax));
  table.tensors.reserve(list.json.size());
  for (size_t i = 0; i < list.json.size(); ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(TensorInfo tensor, ReadTensor(list.Element(i)));
    table.tensors.push_back(std::move(tensor));
  }
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  return table;
}

Digest DigestOf(const TensorTable& table) { return DigestOf(absl::string_view(ToJson(table))); }

TensorTable Scaled(const TensorTable& table, double bytes, double times) {
  TensorTable scaled = table;
  for (TensorInfo& tensor : scaled.tensors) {
    const double elements = std::round(static_cast<double>(tensor.elements) * bytes);
    // A valid table has no empty tensor, however small the factor is.
    tensor.elements = static_cast<uint64_t>(std::max(1.0, elements));
    tensor.forward_seconds *= times;
    tensor.backward_seconds *= times;
  }
  return scaled;
}

std::vector<double> ReadyTimes(const TensorTable& table) {
  std::vector<double> ready(table.tensors.size());
  double now = 0;
  // The backward pass goes from the last tensor to the first, each for as long as it takes alone.
  for (size_t i = table.tensors.size(); i-- > 0;) {
    now += table.tensors[i].backward_seconds;
    ready[i] = now;
  }
  return ready;
}

}  // namespace syncopate
