// How quickly a pattern of groups makes all workers agree.
//
// A round replaces each worker's value by the mean of its group: an orthogonal projection W_t, the
// identity on differences between groups and zero on those inside them. Let J be the mean of all,
// and B the period.
//   sigma2    ||W_(B-1) ... W_0 - J||, the spectral norm: after k periods what is left of the
//             differences is at most sigma2^k times what it was.
//   lambda    the B-th root of the largest |eigenvalue| of that matrix: by which factor a round
//             shrinks differences in the long run. Such a product is not symmetric and its
//             eigenvalues may be complex; it may also be that all are 0, and everybody agrees after
//             some rounds exactly.
//   variance  V: the variance among workers at which averaging and training come to rest, if in
//             every iteration each worker's parameters move by independent noise of variance 1
//             before they are averaged. It is the mean over t of the sum over k >= 0 of
//             ||W_t W_(t-1) ... W_(t-k) - J||_F^2 / (N - 1); 0 if all average in every round.
//
// After round t the values are equal within its groups, so all of this is computed on one number a
// group, which a round hands on to the groups of the next one.
#ifndef SYNCOPATE_PLAN_GROUPS_CONSENSUS_H_
#define SYNCOPATE_PLAN_GROUPS_CONSENSUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/pattern.h"

namespace syncopate::plan {

struct Consensus {
  double sigma2 = 0;
  double lambda = 0;
  double variance = 0;
};

// FailedPrecondition if the groups of all rounds together do not connect the workers, with two that
// never learn of each other: "workers 0 and 4 never learn of each other".
absl::Status CheckConnected(const Pattern& pattern);

// `pattern` must be valid. The error of CheckConnected(), if there is one.
absl::StatusOr<Consensus> ConsensusOf(const Pattern& pattern);

// Its variance alone. It must be connected.
double VarianceOf(const Pattern& pattern);

// Its lambda alone, which takes a small part of the time; 1 if it is not connected.
double LambdaOf(const Pattern& pattern);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_CONSENSUS_H_
