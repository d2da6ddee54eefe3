// The median of a few numbers, as measurements are summed up by. Pure.
#ifndef SYNCOPATE_BASE_MEDIAN_H_
#define SYNCOPATE_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace syncopate {

// The median is always one of the values, so that it was really measured: of an even number of them
// it is the upper one in the middle. `values` is not empty and holds no NaN.
template <typename Number>
Number MedianOf(std::vector<Number> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_MEDIAN_H_
