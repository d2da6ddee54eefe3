// Texts between the workers of a group: values that are agreed on, traces that are gathered.
#ifndef SYNCOPATE_SYNC_EXCHANGE_H_
#define SYNCOPATE_SYNC_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/job_exchange.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

inline constexpr uint64_t kExchangedTextBytesMax = uint64_t{64} << 20;

// `root`'s text, on all members. Only the root's own matters.
absl::StatusOr<std::string> BroadcastText(Group& group, const std::string& text, int root);

// The texts of all members, by their ranks in the group, on all of them.
absl::StatusOr<std::vector<std::string>> AllGatherTexts(Group& group, const std::string& text);

// The texts of all members, by their ranks in the group, on `root`; elsewhere nothing. For texts
// that are too long to be sent to everybody.
absl::StatusOr<std::vector<std::string>> GatherTexts(Group& group, const std::string& text,
                                                     int root);

// The value's digest must be the same on all members. Otherwise an error on all of them, which
// shows the digest of rank 0 and that of the first member that has another one.
absl::Status CompareDigests(Group& group, const std::string& what, const std::string& digest);

// What adapt agrees by, over a group of its own of all workers: transfers may be under way on the
// world group. All workers of the job call it at the same point; `worker` must outlive the result.
absl::StatusOr<std::unique_ptr<adapt::JobExchange>> MakeJobExchange(Worker& worker);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_EXCHANGE_H_
