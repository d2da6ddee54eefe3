// Reading JSON values from outside with bounds: every fault becomes an InvalidArgument that names
// its place in the document ("links[3].bandwidth: ..."). For the readers of values in this room.
#ifndef SYNCOPATE_MODEL_JSON_READER_H_
#define SYNCOPATE_MODEL_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace syncopate::json_reader {

using Json = nlohmann::ordered_json;

// A piece of the document and where it stands in it.
struct Place {
  const Json& json;
  std::string path;

  Place Element(size_t index) const { return {json[index], absl::StrCat(path, "[", index, "]")}; }
  Place Field(const char* key) const {
    return {json[key], path.empty() ? std::string(key) : absl::StrCat(path, ".", key)};
  }
};

// The first bytes of a value, for messages.
std::string Excerpt(const Json& json);

// Checks that it is an object with all required keys, and no others but the optional ones.
absl::Status CheckObject(const Place& place, std::initializer_list<const char*> required,
                         std::initializer_list<const char*> optional);
absl::Status CheckList(const Place& place, uint64_t max);

absl::StatusOr<std::string> ReadString(const Place& place);
absl::StatusOr<uint64_t> ReadCount(const Place& place);
// A number, or a string that `parse` reads.
absl::StatusOr<double> ReadNumber(const Place& place,
                                  absl::StatusOr<double> (*parse)(absl::string_view));

// The document. Stops at nesting deeper than `depth_max`, before memory is spent on it, and at a
// key that stands twice in one object, of which the library would silently keep one.
absl::StatusOr<Json> ParseJson(absl::string_view text, size_t depth_max);

// On one line, in ASCII.
std::string Dump(const Json& json);

}  // namespace syncopate::json_reader

#endif  // SYNCOPATE_MODEL_JSON_READER_H_
