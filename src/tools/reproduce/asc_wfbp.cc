#include "tools/reproduce/asc_wfbp.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "schedule/models/model_tables.h"
#include "schedule/planners.h"
#include "schedule/published.h"
#include "schedule/search.h"
#include "schedule/timeline.h"
#include "tools/plan_schedule.h"

namespace syncopate::tools::reproduce {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<double> Iteration(absl::string_view planner, const TensorTable& table,
                                 const cost::CommunicationCosts& costs) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Schedule schedule,
                             schedule::MakeSchedule(planner, table, costs));
  return schedule::PredictIteration(table, costs, schedule);
}

absl::StatusOr<AscWfbpRow> MakeRow(const schedule::PublishedIteration& published) {
  const cost::CommunicationCosts costs = schedule::PublishedCosts();
  cost::CommunicationCosts full = costs;
  full.gamma = {1, 2};
  SYNCOPATE_ASSIGN_OR_RETURN(const TensorTable table, schedule::MakeModelTable(published.model));
  AscWfbpRow row;
  row.model = table.model;
  row.tensors = table.size();
  row.parameters = static_cast<double>(table.elements());
  row.published_wfbp = published.wfbp;
  row.published_mg = published.mg_wfbp;
  row.published_asc = published.asc_wfbp;
  SYNCOPATE_ASSIGN_OR_RETURN(row.none, Iteration("none", table, costs));
  SYNCOPATE_ASSIGN_OR_RETURN(row.wfbp, Iteration("wfbp", table, costs));
  SYNCOPATE_ASSIGN_OR_RETURN(row.mg, Iteration("mg-wfbp", table, costs));
  SYNCOPATE_ASSIGN_OR_RETURN(row.bucket, Iteration("bucket", table, costs));
  SYNCOPATE_ASSIGN_OR_RETURN(row.asc, Iteration("asc-wfbp", table, costs));
  SYNCOPATE_ASSIGN_OR_RETURN(row.search, Iteration("search", table, costs));
  SYNCOPATE_ASSIGN_OR_RETURN(row.asc_full, Iteration("asc-wfbp", table, full));
  SYNCOPATE_ASSIGN_OR_RETURN(row.search_full, Iteration("search", table, full));
  row.bound = schedule::IterationBound(table, costs, {});
  row.implied_startup =
      (published.wfbp - table.forward_seconds() - costs.b * static_cast<double>(table.bytes())) /
      table.size();
  return row;
}

}  // namespace

absl::StatusOr<std::vector<AscWfbpRow>> MakeAscWfbpRows() {
  std::vector<AscWfbpRow> rows;
  for (const schedule::PublishedIteration& published : schedule::kPublishedIterations) {
    SYNCOPATE_ASSIGN_OR_RETURN(AscWfbpRow row, MakeRow(published));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string AscWfbpToText(const std::vector<AscWfbpRow>& rows) {
  std::string text = absl::StrFormat(
      "Table IV: seconds an iteration, published and by the model (a 1.4 ms, b 1.7 ns/B, gamma "
      "1.5)\n%-13s %7s  %-14s %-14s %-14s %-12s %-12s\n%-13s %7s  %-14s %-14s %-14s %-12s %-12s\n",
      "", "", "WFBP", "MG-WFBP", "ASC-WFBP", "WFBP/ASC", "MG/ASC", "model", "tensors",
      " publ.  model", " publ.  model", " publ.  model", "publ. model", "publ. model");
  for (const AscWfbpRow& row : rows) {
    absl::StrAppend(
        &text, absl::StrFormat("%-13s %7d  %6.3f %6.3f  %6.3f %6.3f  %6.3f %6.3f  %5.2f %5.2f  "
                               "%5.2f %5.2f\n",
                               row.model, row.tensors, row.published_wfbp, row.wfbp,
                               row.published_mg, row.mg, row.published_asc, row.asc,
                               row.published_wfbp / row.published_asc, row.wfbp / row.asc,
                               row.published_mg / row.published_asc, row.mg / row.asc));
  }
  absl::StrAppend(&text, absl::StrFormat("\nThe others on the model\n%-13s %7s %7s %7s %7s  %10s "
                                         "%10s  %7s\n",
                                         "model", "none", "bucket", "search", "bound", "WFBP/srch",
                                         "MG/srch", "ASC/srch"));
  for (const AscWfbpRow& row : rows) {
    absl::StrAppend(
        &text, absl::StrFormat("%-13s %7.3f %7.3f %7.3f %7.3f  %10.2f %10.2f  %7.2f\n", row.model,
                               row.none, row.bucket, row.search, row.bound, row.wfbp / row.search,
                               row.mg / row.search, row.asc / row.search));
  }
  absl::StrAppend(
      &text, absl::StrFormat("\nWhat the published numbers imply\n%-13s %21s %18s %9s %11s %22s\n",
                             "model", "start-up by WFBP (ms)", "publ. MG / none", "ASC, 2",
                             "search, 2", "publ. ASC / search, 2"));
  for (const AscWfbpRow& row : rows) {
    absl::StrAppend(
        &text, absl::StrFormat("%-13s %21.2f %18.2f %9.3f %11.3f %22.2f\n", row.model,
                               row.implied_startup * 1e3, row.published_mg / row.none, row.asc_full,
                               row.search_full, row.published_asc / row.search_full));
  }
  absl::StrAppend(
      &text,
      "\nBy (4) the published times of WFBP leave less than a = 1.4 ms for each start-up; those "
      "of\n"
      "MG-WFBP are near those of sending everything after the backward pass; and b is already the\n"
      "line rate of 9.43 Gbit/s, so that gamma < 2 cannot hold for large transfers. The columns\n"
      "\", 2\" have gamma = 2. docs/asc-wfbp.md tells more.\n");
  return text;
}

std::string AscWfbpToJson(const std::vector<AscWfbpRow>& rows) {
  Json list = Json::array();
  for (const AscWfbpRow& row : rows) {
    list.push_back(
        {{"model", row.model},
         {"tensors", row.tensors},
         {"parameters", row.parameters},
         {"published",
          {{"wfbp", row.published_wfbp},
           {"mg-wfbp", row.published_mg},
           {"asc-wfbp", row.published_asc}}},
         {"model_seconds",
          {{"none", row.none},
           {"wfbp", row.wfbp},
           {"mg-wfbp", row.mg},
           {"bucket", row.bucket},
           {"asc-wfbp", row.asc},
           {"search", row.search},
           {"bound", row.bound}}},
         {"full_line_seconds", {{"asc-wfbp", row.asc_full}, {"search", row.search_full}}},
         {"implied_startup_seconds", row.implied_startup}});
  }
  return Json({{"models", std::move(list)}}).dump(1) + "\n";
}

}  // namespace syncopate::tools::reproduce
