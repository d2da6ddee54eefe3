#include "observe/metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/figures.h"
#include "nlohmann/json.hpp"

namespace syncopate::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLineBytesMax = size_t{1} << 16;
constexpr size_t kMetricsMax = size_t{1} << 20;
constexpr absl::string_view kResumedAt = "resumed_at";

// JSON has no infinity and no NaN; null is read back as a value that is not there.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::optional<Metric> ReadMetric(const Json& json) {
  const auto kind = json.find("kind");
  const auto iteration = json.find("iteration");
  if (kind == json.end() || !kind->is_string() || iteration == json.end() ||
      !iteration->is_number_integer()) {
    return std::nullopt;
  }
  Metric metric;
  metric.kind = kind->get<std::string>();
  metric.iteration = iteration->get<int64_t>();
  for (const auto& [key, value] : json.items()) {
    if (key == "iteration") continue;
    if (key == "seconds" && value.is_number()) {
      metric.seconds = value.get<double>();
    } else if (key == "text" && value.is_string()) {
      metric.text = value.get<std::string>();
    } else if (value.is_number()) {
      metric.values.emplace_back(key, value.get<double>());
    }
  }
  return metric;
}

}  // namespace

std::optional<double> Metric::Value(absl::string_view name) const {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string ToJson(const Metric& metric) {
  Json json;
  json["kind"] = metric.kind;
  json["iteration"] = metric.iteration;
  json["seconds"] = Finite(metric.seconds);
  for (const auto& [key, value] : metric.values) json[key] = Finite(value);
  if (!metric.text.empty()) json["text"] = metric.text;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Reads what is there: a run that is under way or was killed has a line that is cut off, and one
// bad line is no reason to show nothing.
MetricsContents ReadMetrics(absl::string_view text) {
  MetricsContents contents;
  uint64_t malformed = 0;
  while (!text.empty() && contents.metrics.size() < kMetricsMax) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view line = absl::StripAsciiWhitespace(text.substr(0, end));
    const bool last = end == text.size();
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    Json json(Json::value_t::discarded);
    if (line.size() <= kLineBytesMax) json = Json::parse(line.begin(), line.end(), nullptr, false);
    const std::optional<Metric> metric =
        json.is_object() ? ReadMetric(json) : std::optional<Metric>();
    if (metric) {
      contents.metrics.push_back(*metric);
    } else if (last && !json.is_object()) {
      contents.notes.push_back("the last line is cut off and was left out");
    } else {
      ++malformed;
    }
  }
  if (malformed > 0)
    contents.notes.push_back(absl::StrCat(CountOf(malformed, "line"), " could not be read"));
  if (!text.empty()) {
    contents.notes.push_back(absl::StrCat("only the first ", kMetricsMax, " lines were read"));
  }
  return contents;
}

Metric ResumeEvent(int64_t iteration) {
  return {.kind = "event",
          .iteration = iteration,
          .values = {{std::string(kResumedAt), static_cast<double>(iteration)}},
          .text = absl::StrCat("resumed at ", iteration)};
}

std::vector<int64_t> ResumedAt(const std::vector<Metric>& metrics) {
  std::vector<int64_t> iterations;
  for (const Metric& metric : metrics) {
    if (metric.Value(kResumedAt)) iterations.push_back(metric.iteration);
  }
  return iterations;
}

// Iterations after a checkpoint are done again when a run goes on from it. What the earlier part
// said about them goes, or curves would run back over themselves.
void DropSuperseded(std::vector<Metric>& metrics) {
  std::vector<Metric> kept;
  kept.reserve(metrics.size());
  for (Metric& metric : metrics) {
    if (metric.Value(kResumedAt)) {
      while (!kept.empty() && kept.back().iteration > metric.iteration) kept.pop_back();
    }
    kept.push_back(std::move(metric));
  }
  metrics = std::move(kept);
}

}  // namespace syncopate::observe
