// What a worker says to the one that it pushes to or pulls from, before both move the values: a
// message of the mailbox.
//
//   request = movement (1 byte: 1 push, 2 pull) first last (4 bytes each) begin end (8 bytes each)
//             weight share (float64 each) group version (8 bytes each)
//
// All numbers are little-endian.
#ifndef SYNCOPATE_SYNC_SERVE_REQUEST_H_
#define SYNCOPATE_SYNC_SERVE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tensor_layout.h"

namespace syncopate::sync {

struct ServeRequest {
  bool push = false;  // else it pulls
  // Tensors first..last, or bytes begin..end-1 of the packed layout, if end is not 0.
  uint32_t first = 0;
  uint32_t last = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  double weight = 1;  // of a push
  // What gradients were multiplied with when they were packed, where their type bears it; 0: nothing.
  double share = 0;
  uint64_t group = 0;    // the number of the pair's group
  uint64_t version = 0;  // of the network, by which that group is planned

  friend bool operator==(const ServeRequest&, const ServeRequest&) = default;
};

std::string Encode(const ServeRequest& request);
// InvalidArgument if it is not what Encode() gives, or not finite.
absl::StatusOr<ServeRequest> DecodeServeRequest(absl::string_view bytes);
// What it moves. InvalidArgument if the layout of `tensors` tensors has no such values.
absl::StatusOr<std::vector<TensorLayout::Range>> RangesOf(const ServeRequest& request,
                                                          const TensorLayout& layout, int tensors);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SERVE_REQUEST_H_
