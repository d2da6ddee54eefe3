// Every event, command and message names its fields (Fields()), so one writer and one reader serve
// all of them. What follows is a pair of functions for each type of field.
#include "strategy/record.h"

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace syncopate::strategy {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
struct Named {
  T value;
  const char* name;
};
constexpr Named<Movement> kMovements[] = {{Movement::kAverage, "average"},
                                          {Movement::kPush, "push"},
                                          {Movement::kPull, "pull"},
                                          {Movement::kExchange, "exchange"}};
constexpr Named<Content> kContents[] = {{Content::kGradients, "gradients"},
                                        {Content::kParameters, "parameters"}};
constexpr Named<Update> kUpdates[] = {{Update::kStepAveraged, "step-averaged"},
                                      {Update::kStepLocal, "step-local"},
                                      {Update::kAdopt, "adopt"},
                                      {Update::kAddChange, "add-change"}};
constexpr const auto& NamesOf(Movement) { return kMovements; }
constexpr const auto& NamesOf(Content) { return kContents; }
constexpr const auto& NamesOf(Update) { return kUpdates; }

[[noreturn]] void Refuse(const std::string& why) { throw std::invalid_argument(why); }

template <typename Variant>
Json ObjectOf(const Variant& variant);
template <typename Variant>
void ReadObject(const Json& json, Variant& variant);

// ---- a field as JSON

template <typename T>
requires std::is_arithmetic_v<T> Json Write(const T& value) { return value; }
Json Write(const std::string& value) { return value; }
Json Write(const std::vector<int>& value) { return value; }
Json Write(const GroupKey& key) { return Json::array({key.maker, key.number}); }
Json Write(const StrategyMessage& message) { return ObjectOf(message); }
Json Write(const std::vector<Source>& sources) {
  Json list = Json::array();
  for (const Source& source : sources) list.push_back({source.rank, source.weight});
  return list;
}
template <typename T>
requires std::is_enum_v<T> Json Write(const T& value) {
  for (const Named<T>& named : NamesOf(value)) {
    if (named.value == value) return named.name;
  }
  return nullptr;
}
Json Write(const absl::Status& status) {
  Json json = {{"code", absl::StatusCodeToString(status.code())},
               {"message", std::string(status.message())}};
  if (const auto blast = GetBlast(status)) json["lost"] = std::string(Name(*blast));
  if (const auto suspect = GetSuspect(status)) json["suspect"] = *suspect;
  return json;
}
Json Write(const Value& value) {
  if (const auto* schedule = std::get_if<std::shared_ptr<const Schedule>>(&value)) {
    return {{"schedule", syncopate::ToText(**schedule)}};
  }
  const auto& topology = std::get<std::shared_ptr<const Topology>>(value);
  return {{"topology", Json::parse(syncopate::ToJson(*topology))}};
}

// ---- and back; exceptions of the JSON library say what is wrong

template <typename T>
requires std::is_arithmetic_v<T>
void Read(const Json& json, T& value) { json.get_to(value); }
void Read(const Json& json, std::string& value) { json.get_to(value); }
void Read(const Json& json, std::vector<int>& value) { json.get_to(value); }
void Read(const Json& json, GroupKey& key) {
  json.at(0).get_to(key.maker);
  json.at(1).get_to(key.number);
}
void Read(const Json& json, StrategyMessage& message) { ReadObject(json, message); }
void Read(const Json& json, std::vector<Source>& sources) {
  for (const Json& source : json) {
    sources.push_back({source.at(0).get<int>(), source.at(1).get<double>()});
  }
}
template <typename T>
requires std::is_enum_v<T>
void Read(const Json& json, T& value) {
  const std::string name = json.get<std::string>();
  for (const Named<T>& named : NamesOf(value)) {
    if (name == named.name) {
      value = named.value;
      return;
    }
  }
  Refuse(absl::StrCat("there is no ", name));
}
void Read(const Json& json, absl::Status& status) {
  const std::string code = json.at("code").get<std::string>();
  absl::StatusCode found = absl::StatusCode::kUnknown;
  for (int i = 0; i <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++i) {
    const auto one = static_cast<absl::StatusCode>(i);
    if (absl::StatusCodeToString(one) == code) found = one;
  }
  status = absl::Status(found, json.at("message").get<std::string>());
  for (const auto radius : {BlastRadius::kOperation, BlastRadius::kGroup, BlastRadius::kJob}) {
    if (json.value("lost", "") != Name(radius)) continue;
    status = WithBlast(status, radius, json.value("suspect", -1));
  }
}
void Read(const Json& json, Value& value) {
  if (json.contains("schedule")) {
    absl::StatusOr<Schedule> schedule = ParseSchedule(json.at("schedule").get<std::string>());
    if (!schedule.ok()) Refuse(std::string(schedule.status().message()));
    value = std::make_shared<const Schedule>(*std::move(schedule));
    return;
  }
  absl::StatusOr<Topology> topology = ParseTopology(json.at("topology").dump());
  if (!topology.ok()) Refuse(std::string(topology.status().message()));
  value = std::make_shared<const Topology>(*std::move(topology));
}

// ---- whole structs

// Puts each field into an object; those at their usual value are left out if they have one.
struct ObjectWriter {
  Json& json;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    json[name] = Write(value);
  }
  template <typename T>
  void operator()(const char* name, const T& value, [[maybe_unused]] const T& usual) const {
    if constexpr (requires { value.empty(); }) {  // lists, which are usually empty
      if (!value.empty()) json[name] = Write(value);
    } else {
      if (value != usual) json[name] = Write(value);
    }
  }
};

struct ObjectReader {
  const Json& json;
  template <typename T>
  void operator()(const char* name, T& value) const {
    Read(json.at(name), value);
  }
  template <typename T>
  void operator()(const char* name, T& value, const T&) const {
    if (json.contains(name)) Read(json.at(name), value);
  }
};

template <typename Variant>
Json ObjectOf(const Variant& variant) {
  Json json;
  std::visit(
      [&](const auto& one) {
        json["kind"] = std::string(one.kName);
        one.Fields(one, ObjectWriter{json});
      },
      variant);
  return json;
}

template <size_t kIndex = 0, typename Variant>
bool ReadAs(const Json& json, absl::string_view kind, Variant& variant) {
  if constexpr (kIndex < std::variant_size_v<Variant>) {
    using One = std::variant_alternative_t<kIndex, Variant>;
    if (kind != One::kName) return ReadAs<kIndex + 1>(json, kind, variant);
    One one;
    One::Fields(one, ObjectReader{json});
    variant = std::move(one);
    return true;
  }
  return false;
}

template <typename Variant>
void ReadObject(const Json& json, Variant& variant) {
  const std::string kind = json.at("kind").get<std::string>();
  if (!ReadAs(json, kind, variant)) Refuse(absl::StrCat("there is no ", kind));
}

// ---- text

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TextOf(const Json& json) {
  return json.is_string() ? json.get<std::string>() : Dump(json);
}

template <typename Variant>
std::string VariantText(const Variant& variant) {
  const Json json = ObjectOf(variant);
  std::string text = json.at("kind").template get<std::string>();
  for (const auto& [key, value] : json.items()) {
    if (key != "kind") absl::StrAppend(&text, " ", key, " ", TextOf(value));
  }
  return text;
}

}  // namespace

std::string ToText(const Event& event) { return VariantText(event); }
std::string ToText(const Command& command) { return VariantText(command); }

std::string ToJson(const Command& command) { return Dump(ObjectOf(command)); }
std::string ToJson(const absl::Status& status) { return Dump(Write(status)); }

std::string ToJson(const Decision& decision) {
  Json json;
  json["time"] = decision.now;
  json["event"] = ObjectOf(decision.event);
  json["commands"] = Json::array();
  for (const Command& command : decision.commands) json["commands"].push_back(ObjectOf(command));
  return Dump(json);
}

absl::StatusOr<Decision> ParseDecision(absl::string_view text) {
  try {
    const Json json = Json::parse(text.begin(), text.end());
    Decision decision;
    decision.now = json.at("time").get<double>();
    ReadObject(json.at("event"), decision.event);
    for (const Json& command : json.at("commands")) {
      ReadObject(command, decision.commands.emplace_back());
    }
    return decision;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a decision: ", error.what()));
  }
}

}  // namespace syncopate::strategy
