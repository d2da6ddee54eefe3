#include "model/json_reader.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"
#include "model/value_checks.h"

namespace syncopate::json_reader {

using value_checks::Fault;

namespace {

// Thrown by Guard and caught in ParseJson.
struct Refused {
  std::string why;
};

// Watches the parser for ParseJson.
class Guard {
 public:
  explicit Guard(size_t depth_max) : depth_max_(depth_max) {}

  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (keys_.size() == depth_max_) throw Refused{"the document is nested too deeply"};
        keys_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys_.back().insert(parsed.get<std::string>()).second) {
          throw Refused{absl::StrCat("key ", Excerpt(parsed), " stands twice in one object")};
        }
        break;
      default:
        break;
    }
    return true;
  }

 private:
  const size_t depth_max_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open, outermost first
};

}  // namespace

// Messages must stay one short line whatever the document holds.
std::string Excerpt(const Json& json) {
  constexpr size_t kExcerptBytesMax = 60;
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  std::string text = json.dump(-1, ' ', true);
  if (text.size() > kExcerptBytesMax) text = text.substr(0, kExcerptBytesMax) + "...";
  return text;
}

absl::Status CheckObject(const Place& place, std::initializer_list<const char*> required,
                         std::initializer_list<const char*> optional) {
  const std::string path = place.path.empty() ? "the document" : place.path;
  if (!place.json.is_object()) {
    return Fault(path, absl::StrCat(Excerpt(place.json), " is not an object"));
  }
  // Unknown keys are refused: most of them are misspelt known ones, and a file that is half
  // understood is worse than an error.
  for (const auto& field : place.json.items()) {
    const std::string& key = field.key();
    const auto is_key = [&](const char* known) { return key == known; };
    if (std::any_of(required.begin(), required.end(), is_key)) continue;
    if (std::any_of(optional.begin(), optional.end(), is_key)) continue;
    return Fault(path, absl::StrCat("unknown key ", Excerpt(Json(key)), "; the keys here are ",
                                    absl::StrJoin(required, ", "), optional.size() == 0 ? "" : ", ",
                                    absl::StrJoin(optional, ", ")));
  }
  for (const char* key : required) {
    if (!place.json.contains(key)) return Fault(path, absl::StrCat("\"", key, "\" is missing"));
  }
  return absl::OkStatus();
}

absl::Status CheckList(const Place& place, uint64_t max) {
  if (!place.json.is_array()) {
    return Fault(place.path, absl::StrCat(Excerpt(place.json), " is not a list"));
  }
  if (place.json.size() > max) {
    return Fault(place.path,
                 absl::StrCat(place.json.size(), " entries are more than the limit of ", max));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadString(const Place& place) {
  if (!place.json.is_string()) {
    return Fault(place.path, absl::StrCat(Excerpt(place.json), " is not a string"));
  }
  return place.json.get<std::string>();
}

absl::StatusOr<uint64_t> ReadCount(const Place& place) {
  if (!place.json.is_number_unsigned()) {
    return Fault(place.path, absl::StrCat(Excerpt(place.json), " is not a whole number"));
  }
  return place.json.get<uint64_t>();
}

absl::StatusOr<double> ReadNumber(const Place& place,
                                  absl::StatusOr<double> (*parse)(absl::string_view)) {
  if (place.json.is_number()) return place.json.get<double>();
  if (!place.json.is_string()) {
    return Fault(place.path, absl::StrCat(Excerpt(place.json), " is not a number"));
  }
  const std::string& text = place.json.get_ref<const std::string&>();
  absl::StatusOr<double> number = text.size() <= limits::kTopologyNameBytesMax
                                      ? parse(text)
                                      : absl::InvalidArgumentError("the text is too long");
  if (!number.ok()) return At(place.path, number.status());
  return number;
}

absl::StatusOr<Json> ParseJson(absl::string_view text, size_t depth_max) {
  constexpr size_t kReasonBytesMax = 300;
  try {
    return Json::parse(text.begin(), text.end(), Guard(depth_max));
  } catch (const Refused& refused) {
    return absl::InvalidArgumentError(refused.why);
  } catch (const Json::exception& error) {
    // The library's number of the error says nothing to the reader of a message:
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    absl::string_view reason = error.what();
    if (const size_t end = reason.find("] "); end != absl::string_view::npos) {
      reason.remove_prefix(end + 2);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON: ", reason.substr(0, kReasonBytesMax)));
  }
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace syncopate::json_reader
