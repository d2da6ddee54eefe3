// How long a training run will still take. Pure.
#ifndef SYNCOPATE_TRAIN_SECONDS_LEFT_H_
#define SYNCOPATE_TRAIN_SECONDS_LEFT_H_

#include <cstdint>

namespace syncopate::train {

struct Course {
  int64_t elapsed_ns = 0;  // since the first iteration, with evaluation and all else between them
  int64_t done = 0;        // iterations in that time
  int64_t left = 0;        // iterations to come
};
// By the mean of all iterations so far: a pause between two of them counts for what it is, not as
// if every iteration to come had one. 0 as long as nothing is done.
double SecondsLeft(const Course& course);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_SECONDS_LEFT_H_
