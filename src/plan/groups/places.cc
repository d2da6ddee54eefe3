#include "plan/groups/places.h"

#include <utility>

namespace syncopate::plan {

Place WithoutSingles(const Place& place) {
  if (place.is_worker()) return place;
  Place result = place;
  result.children.clear();
  for (const Place& child : place.children) {
    Place kept = WithoutSingles(child);
    if (kept.is_worker() || !kept.children.empty()) result.children.push_back(std::move(kept));
  }
  if (result.children.size() != 1) return result;
  Place only = std::move(result.children.front());
  only.slow = only.slow || place.slow;
  return only;
}

int WorkersIn(const Place& place) {
  if (place.is_worker()) return 1;
  int workers = 0;
  for (const Place& child : place.children) workers += WorkersIn(child);
  return workers;
}

}  // namespace syncopate::plan
