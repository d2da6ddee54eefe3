#include "lab/toml_reader.h"

#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "lab/spec.h"

namespace syncopate::lab {
namespace {

std::string_view Std(absl::string_view text) { return {text.data(), text.size()}; }

std::string PlaceOf(absl::string_view file, const toml::source_region& source) {
  return absl::StrCat(file, ":", source.begin.line, ":", source.begin.column);
}

}  // namespace

absl::StatusOr<toml::table> ParseToml(absl::string_view text, absl::string_view place) {
  toml::parse_result result = toml::parse(Std(text));
  if (result) return std::move(result).table();
  const toml::parse_error& error = result.error();
  const std::string_view why = error.description();
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(place, error.source()),
                   ": this is not TOML: ", absl::string_view(why.data(), why.size())));
}

TableReader::TableReader(const toml::table& table, absl::string_view place, absl::string_view what)
    : table_(table), place_(place), what_(what) {}

const toml::node* TableReader::Find(absl::string_view key) {
  asked_.insert(std::string(key));
  return table_.get(Std(key));
}

void TableReader::Note(const toml::node& node, absl::string_view key, absl::string_view message) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(place_, node.source()), ": ", what_, " ", key, ": ", message));
}

absl::Status TableReader::Fault(absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(place_, table_.source()), ": ", what_, ": ", message));
}

bool TableReader::Has(absl::string_view key) { return Find(key) != nullptr; }

std::string TableReader::Text(absl::string_view key, absl::string_view fallback) {
  const toml::node* node = Find(key);
  if (node == nullptr) return std::string(fallback);
  if (const auto* text = node->as_string()) return text->get();
  Note(*node, key, "this is not a text; put it between quotes");
  return std::string(fallback);
}

std::string TableReader::NeededText(absl::string_view key, absl::string_view example) {
  if (Find(key) == nullptr && status_.ok()) {
    status_ = Fault(absl::StrCat("there is no ", key, "; write ", key, " = ", example));
  }
  return Text(key, "");
}

bool TableReader::Flag(absl::string_view key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (const auto* flag = node->as_boolean()) return flag->get();
  Note(*node, key, "this is neither true nor false");
  return false;
}

int64_t TableReader::Int(absl::string_view key, int64_t fallback, int64_t lo, int64_t hi) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  const auto* number = node->as_integer();
  if (number != nullptr && number->get() >= lo && number->get() <= hi) return number->get();
  Note(*node, key, absl::StrCat("this is not a whole number from ", lo, " to ", hi));
  return fallback;
}

double TableReader::Number(absl::string_view key, double fallback, double lo, double hi) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  const std::optional<double> number = node->value<double>();  // also of a whole number
  if (number && *number >= lo && *number <= hi) return *number;
  Note(*node, key, absl::StrCat("this is not a number from ", lo, " to ", hi));
  return fallback;
}

template <typename Value>
Value TableReader::Parsed(absl::string_view key, Value fallback,
                          absl::StatusOr<Value> (*parse)(absl::string_view)) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  const absl::StatusOr<Value> value = parse(Text(key, ""));
  if (value.ok()) return *value;
  Note(*node, key, value.status().message());
  return fallback;
}

int64_t TableReader::Rate(absl::string_view key, int64_t fallback) {
  return Parsed<int64_t>(key, fallback, [](absl::string_view text) { return ParseLinkRate(text); });
}

double TableReader::Seconds(absl::string_view key, double fallback) {
  return Parsed<double>(key, fallback, [](absl::string_view text) { return ParseSeconds(text); });
}

int64_t TableReader::Bytes(absl::string_view key, int64_t fallback) {
  return Parsed<int64_t>(key, fallback, [](absl::string_view text) -> absl::StatusOr<int64_t> {
    SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text, uint64_t{1} << 30));
    return static_cast<int64_t>(bytes);
  });
}

std::vector<std::string> TableReader::Texts(absl::string_view key, absl::string_view example) {
  const toml::node* node = Find(key);
  std::vector<std::string> texts;
  if (node == nullptr) {
    if (status_.ok()) {
      status_ = Fault(absl::StrCat("there is no ", key, "; write ", key, " = ", example));
    }
    return texts;
  }
  bool good = node->is_array();
  for (size_t i = 0; good && i < node->as_array()->size(); ++i) {
    const auto* text = node->as_array()->get(i)->as_string();
    good = text != nullptr;
    if (good) texts.push_back(text->get());
  }
  if (!good) Note(*node, key, absl::StrCat("this is not a list of texts like ", example));
  return texts;
}

std::vector<const toml::table*> TableReader::Tables(absl::string_view key) {
  const toml::node* node = Find(key);
  std::vector<const toml::table*> tables;
  if (node == nullptr) return tables;
  if (!node->is_array_of_tables()) {
    Note(*node, key, absl::StrCat("write [[", key, "]] with two brackets, once for each"));
    return tables;
  }
  for (const toml::node& element : *node->as_array()) tables.push_back(element.as_table());
  return tables;
}

const toml::table* TableReader::Table(absl::string_view key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) Note(*node, key, absl::StrCat("write it as a table, [", key, "]"));
  return node->as_table();
}

absl::Status TableReader::Finish() {
  if (!status_.ok()) return status_;
  for (const auto& [key, node] : table_) {
    const std::string_view name = key.str();
    if (asked_.count(std::string(name)) != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(PlaceOf(place_, key.source()), ": ", what_, " has no key \"",
                     std::string(name), "\"; possible are ", absl::StrJoin(asked_, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::lab
