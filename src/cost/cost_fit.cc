// Fits a + b*m to the times of all-reduces that ran alone, then gamma(k) to those that ran
// together. Errors are relative: a second too many matters more for a short all-reduce than for a
// long one.
#include "cost/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/limits.h"
#include "base/median.h"

namespace syncopate::cost {
namespace {

// A point whose relative error is beyond this times the median one counts less (Huber).
constexpr double kFarOff = 2;
constexpr double kErrorLeast = 0.02;  // errors below it are never far off
constexpr int kRounds = 20;
// The start-up is at least this part of the shortest measured time.
constexpr double kStartUpLeast = 0.5;
// gamma is about bytes: points whose bytes take this many times the start-up tell it, if there are
// any. How long several start-ups take together is another matter.
constexpr double kBytesMatter = 4;

struct Line {
  double a = 0;
  double b = 0;
};

// Minimises the sum of weight * ((a + b*m) / t - 1)^2 with a, b >= 0.
Line WeightedLine(const std::vector<CostPoint>& points, const std::vector<double>& weights) {
  // With u = 1/t and v = m/t the error is a*u + b*v - 1: linear in a and b, so the normal equations
  // give them. If one comes out negative, the other alone is fitted.
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double u = 1 / points[i].seconds;
    const double v = static_cast<double>(points[i].bytes) / points[i].seconds;
    uu += weights[i] * u * u;
    uv += weights[i] * u * v;
    vv += weights[i] * v * v;
    u1 += weights[i] * u;
    v1 += weights[i] * v;
  }
  const double determinant = uu * vv - uv * uv;
  Line line;
  if (determinant > 0) {
    line.a = (u1 * vv - v1 * uv) / determinant;
    line.b = (v1 * uu - u1 * uv) / determinant;
  }
  if (determinant <= 0 || line.a < 0) line = {0, v1 / vv};
  if (line.b < 0) line = {u1 / uu, 0};
  return line;
}

// Iteratively reweighted least squares on relative errors: a single slow measurement moves the line
// little.
Line RobustLine(const std::vector<CostPoint>& points) {
  std::vector<double> weights(points.size(), 1);
  Line line;
  for (int round = 0; round < kRounds; ++round) {
    line = WeightedLine(points, weights);
    std::vector<double> errors;
    for (const CostPoint& point : points) {
      errors.push_back(
          std::abs((line.a + line.b * static_cast<double>(point.bytes)) / point.seconds - 1));
    }
    const double far_off = std::max(kErrorLeast, kFarOff * MedianOf(errors));
    for (size_t i = 0; i < errors.size(); ++i) weights[i] = std::min(1.0, far_off / errors[i]);
  }
  return line;
}

// gamma(k) by k, for the k > 1 that were measured.
std::map<int, double> MeasuredGamma(absl::Span<const CostPoint> points, const Line& line) {
  const auto tells = [&](const CostPoint& point) {
    return point.at_once > 1 && line.b * static_cast<double>(point.bytes) >= kBytesMatter * line.a;
  };
  std::set<int> told;  // k with a point that tells gamma well
  for (const CostPoint& point : points) {
    if (tells(point)) told.insert(point.at_once);
  }
  std::map<int, std::pair<double, double>> sums;
  for (const CostPoint& point : points) {
    if (point.at_once == 1 || (told.contains(point.at_once) && !tells(point))) continue;
    // Least squares for gamma in a + gamma * b * m = t, relative to t.
    const double x = line.b * static_cast<double>(point.bytes) / point.seconds;
    sums[point.at_once].first += x * (1 - line.a / point.seconds);
    sums[point.at_once].second += x * x;
  }
  std::map<int, double> gamma;
  for (const auto& [k, sum] : sums) {
    // If bytes seem to cost next to nothing, which large transfers that were lucky can show, what any number of
    // them at once take is any multiple of that.
    gamma[k] = sum.second > 0 ? std::min(sum.first / sum.second, kGammaMax) : 1;
  }
  return gamma;
}

// Fills the k between measured ones by linear interpolation. Index 0 is gamma(1) = 1.
std::vector<double> AllGamma(const std::map<int, double>& measured) {
  std::vector<double> gamma = {1};
  for (const auto& [k, value] : measured) {
    const double from = gamma.back();
    const int first = static_cast<int>(gamma.size());
    for (int i = first; i < k; ++i) {
      gamma.push_back(from + (value - from) * (i + 1 - first) / (k - first));
    }
  }
  return gamma;
}

}  // namespace

double CostFit::ResidualMax() const {
  double largest = 0;
  for (size_t i = 0; i < points.size(); ++i) largest = std::max(largest, std::abs(Residual(i)));
  return largest;
}

absl::StatusOr<CostFit> FitCosts(absl::Span<const CostPoint> points) {
  std::vector<CostPoint> alone;
  for (const CostPoint& point : points) {
    if (!(point.seconds > 0) || !std::isfinite(point.seconds)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "an all-reduce of %d bytes cannot take %g seconds", point.bytes, point.seconds));
    }
    if (point.at_once < 1 || point.at_once > limits::kBesideMax + 1) {
      return absl::InvalidArgumentError(absl::StrFormat("%d all-reduces at once; 1 to %d can be",
                                                        point.at_once, limits::kBesideMax + 1));
    }
    if (point.at_once == 1) alone.push_back(point);
  }
  const auto other = std::find_if(alone.begin(), alone.end(), [&](const CostPoint& point) {
    return point.bytes != alone.front().bytes;
  });
  if (other == alone.end()) {
    return absl::InvalidArgumentError(
        "costs need all-reduces of two sizes that were measured alone");
  }
  Line line = RobustLine(alone);
  // A line that is off must not promise that start-ups cost nothing.
  const auto least = std::min_element(
      alone.begin(), alone.end(),
      [](const CostPoint& x, const CostPoint& y) { return x.seconds < y.seconds; });
  line.a = std::max(line.a, kStartUpLeast * least->seconds);
  CostFit fit;
  fit.points.assign(points.begin(), points.end());
  fit.costs = WithRisingGamma({.a = line.a,
                               .b = line.b,
                               .gamma = AllGamma(MeasuredGamma(points, line)),
                               .source = "measured"});
  for (const CostPoint& point : points) {
    fit.fitted.push_back(fit.costs.a + fit.costs.Gamma(point.at_once) * fit.costs.b *
                                           static_cast<double>(point.bytes));
  }
  return fit;
}

}  // namespace syncopate::cost
