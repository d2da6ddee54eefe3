#include "train/options/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::train {

namespace {

constexpr int64_t kIterationMax = int64_t{1} << 48;
constexpr double kRateMax = 1e6;

}  // namespace

double LearningRate::RateAt(int64_t iteration) const {
  if (iteration < warmup) {
    return base * static_cast<double>(iteration + 1) / static_cast<double>(warmup);
  }
  switch (shape) {
    case Shape::kConstant:
      return base;
    case Shape::kStep: {
      const auto passed =
          std::count_if(steps.begin(), steps.end(), [&](int64_t s) { return s <= iteration; });
      return base * std::pow(factor, static_cast<double>(passed));
    }
    case Shape::kCosine: {
      const double part = static_cast<double>(iteration - warmup) /
                          static_cast<double>(std::max<int64_t>(1, iterations - warmup));
      return base * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, part)));
    }
  }
  return base;
}

absl::Status LearningRate::Validate() const {
  if (!(base > 0 && base <= kRateMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("learning rate ", base, "; expected more than 0 and at most ", kRateMax));
  }
  if (warmup < 0 || warmup > kIterationMax) {
    return absl::InvalidArgumentError(absl::StrCat("warm-up of ", warmup, " iterations"));
  }
  if (shape == Shape::kCosine && (iterations <= warmup || iterations > kIterationMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cosine schedule over ", iterations, " iterations with ", warmup,
                     " of warm-up; it needs more iterations than warm-up"));
  }
  if (shape == Shape::kStep &&
      (steps.empty() ||
       std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) != steps.end())) {
    return absl::InvalidArgumentError("a step schedule needs iterations that rise");
  }
  if (shape == Shape::kStep && !(factor > 0 && factor <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("factor ", factor, " of a step; expected more than 0 and at most 1"));
  }
  return absl::OkStatus();
}

std::string LearningRate::ShapeText() const {
  switch (shape) {
    case Shape::kConstant:
      return "constant";
    case Shape::kCosine:
      return "cosine";
    case Shape::kStep:
      return absl::StrCat("step:", absl::StrJoin(steps, ","), "x", factor);
  }
  return "";
}

absl::Status ParseShape(absl::string_view text, LearningRate& rate) {
  const std::string place = absl::StrCat("schedule \"", text, "\"");
  if (text == "constant") {
    rate.shape = LearningRate::Shape::kConstant;
    return absl::OkStatus();
  }
  if (text == "cosine") {
    rate.shape = LearningRate::Shape::kCosine;
    return absl::OkStatus();
  }
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "step:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        place,
        ": expected constant, cosine, or step:1000,2000 (x0.5 after it for another factor)"));
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('x', 1));
  std::vector<int64_t> steps;
  for (const absl::string_view part : absl::StrSplit(parts.first, ',')) {
    const auto step = ParseInt(part, 1, kIterationMax);
    if (!step.ok()) return At(place, step.status());
    steps.push_back(*step);
  }
  double factor = 0.1;
  if (absl::StrContains(rest, 'x')) {
    const auto parsed = ParseDouble(parts.second, 1e-9, 1);
    if (!parsed.ok()) return At(place, parsed.status());
    factor = *parsed;
  }
  rate.shape = LearningRate::Shape::kStep;
  rate.steps = std::move(steps);
  rate.factor = factor;
  return absl::OkStatus();
}

}  // namespace syncopate::train
