// Rates of links as people and tc write them.
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/units.h"
#include "lab/spec.h"

namespace syncopate::lab {
namespace {

struct Unit {
  absl::string_view name;
  int64_t bits;
};
constexpr Unit kUnits[] = {
    {"gbit", 1'000'000'000}, {"mbit", 1'000'000}, {"kbit", 1'000}, {"bit", 1}};

}  // namespace

absl::StatusOr<int64_t> ParseLinkRate(absl::string_view text) {
  if (text == "none") return 0;
  double bits = 0;
  const std::string lower = absl::AsciiStrToLower(text);
  absl::string_view number = lower;
  const Unit* found = nullptr;
  for (const Unit& unit : kUnits) {
    if (absl::ConsumeSuffix(&number, unit.name)) {
      found = &unit;
      break;
    }
  }
  if (found != nullptr) {
    const absl::StatusOr<double> value = ParseDouble(absl::StripAsciiWhitespace(number), 0, 1e15);
    if (value.ok()) bits = *value * static_cast<double>(found->bits);
  } else if (const absl::StatusOr<double> bytes = ParseRate(text); bytes.ok()) {
    bits = *bytes * 8;
  }
  if (bits < static_cast<double>(kRateBitsMin) || bits > static_cast<double>(kRateBitsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a rate from ", FormatLinkRate(kRateBitsMin), " to ",
                     FormatLinkRate(kRateBitsMax),
                     "; write 200mbit, 1.5gbit, 25MB/s, or none for a link that is "
                     "not shaped"));
  }
  return std::llround(bits);
}

std::string FormatLinkRate(int64_t bits) {
  if (bits == 0) return "none";
  for (const Unit& unit : kUnits) {
    // In thousandths of the unit, where that is exact.
    const int64_t step = unit.bits >= 1000 ? unit.bits / 1000 : 1;
    if (bits < unit.bits || bits % step != 0) continue;
    std::string text = absl::StrCat(bits / unit.bits);
    if (const int64_t rest = (bits % unit.bits) / step; rest != 0) {
      std::string digits = absl::StrCat(1000 + rest).substr(1);
      while (digits.back() == '0') digits.pop_back();
      absl::StrAppend(&text, ".", digits);
    }
    return absl::StrCat(text, unit.name);
  }
  return absl::StrCat(bits, "bit");
}

}  // namespace syncopate::lab
