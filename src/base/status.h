// The public errors (syncopate/status.h) and what the library itself needs to pass them on.
#ifndef SYNCOPATE_BASE_STATUS_H_
#define SYNCOPATE_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "syncopate/status.h"

namespace syncopate {

// `status` with "place: " before its message and all else as it was.
absl::Status At(absl::string_view place, const absl::Status& status);

// Unavailable: "what: " and what the system says of errno.
absl::Status SystemError(absl::string_view what);

}  // namespace syncopate

#define SYNCOPATE_CONCAT_INNER(a, b) a##b
#define SYNCOPATE_CONCAT(a, b) SYNCOPATE_CONCAT_INNER(a, b)

// Returns from the calling function if `expr` is an error.
#define SYNCOPATE_RETURN_IF_ERROR(expr)                  \
  do {                                                   \
    absl::Status syncopate_status = (expr);              \
    if (!syncopate_status.ok()) return syncopate_status; \
  } while (false)

// `lhs` gets the value of `expr`, or the calling function returns its error.
#define SYNCOPATE_ASSIGN_OR_RETURN(lhs, expr) \
  SYNCOPATE_ASSIGN_OR_RETURN_IMPL(SYNCOPATE_CONCAT(syncopate_or_, __LINE__), lhs, expr)
#define SYNCOPATE_ASSIGN_OR_RETURN_IMPL(var, lhs, expr) \
  auto var = (expr);                                    \
  if (!var.ok()) return std::move(var).status();        \
  lhs = *std::move(var)

#endif  // SYNCOPATE_BASE_STATUS_H_
