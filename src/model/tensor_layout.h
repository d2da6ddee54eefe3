// Where the tensors of a model stand in one buffer: those of a type in the order of the tensors,
// type after type, so that any run of tensors is one range of each type that it has.
#ifndef SYNCOPATE_MODEL_TENSOR_LAYOUT_H_
#define SYNCOPATE_MODEL_TENSOR_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor_table.h"
#include "syncopate/data_type.h"

namespace syncopate {

class TensorLayout {
 public:
  // `table` is valid.
  explicit TensorLayout(const TensorTable& table);

  // Of the whole buffer.
  uint64_t bytes() const { return bytes_; }
  DataType type(int tensor) const { return types_[static_cast<size_t>(tensor)]; }
  // Where a tensor begins, in bytes.
  uint64_t Offset(int tensor) const;

  // A run of tensors is moved by one collective for each type that is in it.
  struct Range {
    DataType type = DataType::kFloat32;
    uint64_t offset = 0;    // in bytes
    uint64_t elements = 0;  // of `type`

    friend bool operator==(const Range&, const Range&) = default;
  };
  // Of tensors first..last, in the order of the types.
  std::vector<Range> Ranges(int first, int last) const;

  // Of the bytes begin..end-1 of the buffer. InvalidArgument if they are not in the buffer or cut an
  // element in two.
  absl::StatusOr<std::vector<Range>> RangesOfBytes(uint64_t begin, uint64_t end) const;
  // The tensors of which these bytes hold at least a part, sorted.
  std::vector<int> TensorsIn(uint64_t begin, uint64_t end) const;
  uint64_t BytesOf(int tensor) const;

 private:
  static constexpr size_t kTypes = std::size(kDataTypes);

  std::vector<DataType> types_;   // by tensor, as are sizes and begins
  std::vector<uint64_t> sizes_;   // in elements
  std::vector<uint64_t> begins_;  // elements within the section of its type
  uint64_t elements_[kTypes] = {};
  uint64_t offsets_[kTypes] = {};
  uint64_t bytes_ = 0;
};

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_TENSOR_LAYOUT_H_
