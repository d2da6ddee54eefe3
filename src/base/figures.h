// Figures as people read them: a count with its noun, a number that is never "-0.0", and parts of a
// whole that still add up to it when all of them are rounded. Pure.
#ifndef SYNCOPATE_BASE_FIGURES_H_
#define SYNCOPATE_BASE_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace syncopate {

// "1 switch", "2 switches". Without `several` the plural ends in "s".
std::string CountOf(uint64_t count, absl::string_view one, absl::string_view several = "");

// `value` with `digits` decimals. What is rounded to zero has no minus sign.
std::string Fixed(double value, int digits);
// The same with a plus sign before what is not negative, for differences: "+0.0", "-1.5".
std::string FixedSigned(double value, int digits);

// The parts rounded to `digits` decimals such that they add up to their rounded sum, each to the
// number below or above it (the method of the largest remainder). Parts that are negative or not
// finite count as 0.
std::vector<double> RoundedParts(const std::vector<double>& parts, int digits);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_FIGURES_H_
