#include "strategy/options_json.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace syncopate::strategy {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string ToJson(const StrategyOptions& options) {
  Json json = {{"rank", options.rank},
               {"size", options.size},
               {"seed", options.seed},
               {"update_together", options.update_together},
               {"table", Json::parse(syncopate::ToJson(options.table))}};
  if (options.schedule != nullptr) json["schedule"] = syncopate::ToText(*options.schedule);
  if (!options.placement.empty()) json["placement"] = options.placement;
  for (const Role role : options.roles) {
    json["roles"].push_back(role == Role::kServes ? "serves" : "trains");
  }
  if (options.topology != nullptr) {
    json["topology"] = Json::parse(syncopate::ToJson(*options.topology));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<StrategyOptions> ParseStrategyOptions(absl::string_view text) {
  try {
    const Json json = Json::parse(text.begin(), text.end());
    StrategyOptions options;
    json.at("rank").get_to(options.rank);
    json.at("size").get_to(options.size);
    json.at("seed").get_to(options.seed);
    json.at("update_together").get_to(options.update_together);
    SYNCOPATE_ASSIGN_OR_RETURN(options.table, ParseTensorTable(json.at("table").dump()));
    if (json.contains("schedule")) {
      SYNCOPATE_ASSIGN_OR_RETURN(Schedule schedule,
                                 ParseSchedule(json.at("schedule").get<std::string>()));
      options.schedule = std::make_shared<const Schedule>(std::move(schedule));
    }
    if (json.contains("placement")) json.at("placement").get_to(options.placement);
    for (const Json& role : json.value("roles", Json::array())) {
      options.roles.push_back(role == "serves" ? Role::kServes : Role::kTrains);
    }
    if (json.contains("topology")) {
      SYNCOPATE_ASSIGN_OR_RETURN(Topology topology, ParseTopology(json.at("topology").dump()));
      options.topology = std::make_shared<const Topology>(std::move(topology));
    }
    return options;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a strategy's options: ", error.what()));
  }
}

}  // namespace syncopate::strategy
