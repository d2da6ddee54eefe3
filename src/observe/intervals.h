// Sets of moments, as sorted intervals that neither touch nor overlap: what the breakdown of a run
// calculates with. An interval holds its begin and not its end. Pure.
#ifndef SYNCOPATE_OBSERVE_INTERVALS_H_
#define SYNCOPATE_OBSERVE_INTERVALS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace syncopate::observe {

struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

using Intervals = std::vector<Interval>;

// Any intervals in any order, empty ones too, as a set.
inline Intervals Merged(Intervals all) {
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Intervals merged;
  for (const Interval& each : all) {
    if (each.end <= each.begin) continue;
    if (!merged.empty() && each.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, each.end);
    } else {
      merged.push_back(each);
    }
  }
  return merged;
}

// Of two sets: what is in both.
inline Intervals Intersection(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval part{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (part.begin < part.end) both.push_back(part);
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

// Of two sets: what is in `a` only.
inline Intervals Difference(const Intervals& a, const Intervals& b) {
  Intervals rest;
  size_t j = 0;
  for (Interval left : a) {
    while (j < b.size() && b[j].end <= left.begin) ++j;
    for (size_t k = j; k < b.size() && b[k].begin < left.end; ++k) {
      if (left.begin < b[k].begin) rest.push_back({left.begin, b[k].begin});
      left.begin = std::max(left.begin, b[k].end);
    }
    if (left.begin < left.end) rest.push_back(left);
  }
  return rest;
}

inline int64_t Length(const Intervals& set) {
  int64_t length = 0;
  for (const Interval& each : set) length += each.end - each.begin;
  return length;
}

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_INTERVALS_H_
