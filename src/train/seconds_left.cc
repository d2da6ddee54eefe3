#include "train/seconds_left.h"

namespace syncopate::train {

double SecondsLeft(const Course& course) {
  if (course.done <= 0) return 0;
  return static_cast<double>(course.elapsed_ns) * 1e-9 / static_cast<double>(course.done) *
         static_cast<double>(course.left);
}

}  // namespace syncopate::train
