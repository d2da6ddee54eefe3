// A lab as a tree of text: switches, hosts, addresses, rates, and what the links carry just now.
#ifndef SYNCOPATE_LAB_PICTURE_H_
#define SYNCOPATE_LAB_PICTURE_H_

#include <array>
#include <string>
#include <vector>

#include "lab/change.h"
#include "lab/plan.h"

namespace syncopate::lab {

// `load` by link as MeasureLoad gives it; empty: not shown.
std::string Picture(const Plan& plan, const Settings& settings,
                    const std::vector<std::array<double, 2>>& load);

// "200 Mbit/s", "1.5 Gbit/s"; for people, unlike FormatLinkRate.
std::string ReadableRate(double bits);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_PICTURE_H_
