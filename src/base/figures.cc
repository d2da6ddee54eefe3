#include "base/figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncopate {
namespace {

// "-0.00" and the like, which StrFormat gives for small negative numbers.
bool IsNegativeZero(absl::string_view text) {
  return absl::StartsWith(text, "-") && text.find_first_of("123456789in") == text.npos;
}

}  // namespace

std::string CountOf(uint64_t count, absl::string_view one, absl::string_view several) {
  if (count == 1) return absl::StrCat("1 ", one);
  return several.empty() ? absl::StrCat(count, " ", one, "s") : absl::StrCat(count, " ", several);
}

std::string Fixed(double value, int digits) {
  const std::string text = absl::StrFormat("%.*f", digits, value);
  return IsNegativeZero(text) ? text.substr(1) : text;
}

std::string FixedSigned(double value, int digits) {
  const std::string text = Fixed(value, digits);
  return absl::StartsWith(text, "-") ? text : absl::StrCat("+", text);
}

std::vector<double> RoundedParts(const std::vector<double>& parts, int digits) {
  const double unit = std::pow(10, -digits);
  std::vector<double> rounded;  // in units, downwards first
  std::vector<double> left;     // what that takes away, from 0 to 1
  double sum = 0, sum_rounded = 0;
  for (const double part : parts) {
    const double units = std::isfinite(part) ? std::max(0.0, part / unit) : 0;
    rounded.push_back(std::floor(units));
    left.push_back(units - rounded.back());
    sum += units;
    sum_rounded += rounded.back();
  }
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return left[a] > left[b]; });
  const double missing = std::round(sum) - sum_rounded;
  for (size_t i = 0; i < order.size() && static_cast<double>(i) < missing; ++i) {
    rounded[order[i]] += 1;
  }
  for (double& part : rounded) part *= unit;
  return rounded;
}

}  // namespace syncopate
