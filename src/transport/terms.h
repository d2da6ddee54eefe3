// What all workers of a job must have in common, though the transport does not care what it is: a
// text that every worker brings when they meet, so that a difference is an error at the start and
// costs no message of its own.
#ifndef SYNCOPATE_TRANSPORT_TERMS_H_
#define SYNCOPATE_TRANSPORT_TERMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace syncopate::transport {

// Bytes of the text.
inline constexpr size_t kTermsBytesMax = 1024;

// OK if all are equal. Else FailedPrecondition, the same for all workers, with the terms of the
// first worker and of the first that differs from it. `terms` by rank; empty means nothing special.
absl::Status CompareTerms(const std::vector<std::string>& terms);

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_TERMS_H_
