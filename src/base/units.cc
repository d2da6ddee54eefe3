#include "base/units.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace syncopate {
namespace {

// Cuts the number off the front of `text`, with one space after it if there is one. False if there
// is none.
bool ConsumeNumber(absl::string_view& text, double& number) {
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.')) ++end;
  if (end == 0 || !absl::SimpleAtod(text.substr(0, end), &number)) return false;
  text.remove_prefix(end);
  absl::ConsumePrefix(&text, " ");
  return true;
}

// Cuts a prefix such as "G" or "Mi" off the front; 1 if there is none.
double ConsumePrefixFactor(absl::string_view& text) {
  constexpr absl::string_view kLetters = "kMGT";
  if (text.empty()) return 1;
  const size_t power = kLetters.find(text[0] == 'K' ? 'k' : text[0]);
  if (power == absl::string_view::npos) return 1;
  text.remove_prefix(1);
  const double base = absl::ConsumePrefix(&text, "i") ? 1024 : 1000;
  return std::pow(base, static_cast<double>(power + 1));
}

}  // namespace

absl::StatusOr<double> ParseRate(absl::string_view text) {
  absl::string_view rest = text;
  double rate = 0;
  if (ConsumeNumber(rest, rate)) {
    rate *= ConsumePrefixFactor(rest);
    if (rest == "bit/s") rate /= 8;
    if ((rest == "bit/s" || rest == "B/s") && rate > 0 && std::isfinite(rate)) return rate;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a positive rate; write 10Gbit/s, 200Mbit/s or 1.25GB/s"));
}

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  absl::string_view rest = text;
  double number = 0;
  if (ConsumeNumber(rest, number) && std::isfinite(number)) {
    if (rest == "s") return number;
    if (rest == "ms") return number / 1e3;
    if (rest == "us") return number / 1e6;
    if (rest == "ns") return number / 1e9;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a time; write 50us, 1.5ms, 200ns or 2s"));
}

std::string FormatRate(double bytes_per_second) {
  constexpr const char* kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  int unit = 0;
  while (bytes_per_second >= 1000 && unit < 4) {
    bytes_per_second /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.4g %s", bytes_per_second, kUnits[unit]);
}

std::string FormatSeconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 1e-6) return absl::StrFormat("%.4g ns", seconds * 1e9);
  if (seconds < 1e-3) return absl::StrFormat("%.4g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.4g ms", seconds * 1e3);
  return absl::StrFormat("%.4g s", seconds);
}

}  // namespace syncopate
