// For tests of what goes on around a model: one without parameters that matter.
#ifndef SYNCOPATE_TESTS_NO_PARAMETERS_H_
#define SYNCOPATE_TESTS_NO_PARAMETERS_H_

#include <cstring>
#include <string>

#include "model/tensor_table.h"
#include "sync/replica.h"

namespace syncopate {

inline TensorTable SmallTable() {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 3; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i), .elements = 1000});
  }
  return table;
}

class NoParameters : public sync::Replica {
 public:
  explicit NoParameters(const TensorTable& table) : table_(table) {}
  void Pack(strategy::Content, int tensor, double, std::byte* to) override {
    std::memset(to, 0, table_.tensors[static_cast<size_t>(tensor)].bytes());
  }
  double Apply(const strategy::ApplyUpdate&, const sync::Brought&) override { return 0; }
  absl::Status SetBatch(uint64_t) override { return absl::OkStatus(); }
  absl::Status SetProgress(const strategy::SetProgress&) override { return absl::OkStatus(); }

 private:
  const TensorTable& table_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_NO_PARAMETERS_H_
