// Tensor tables, costs and schedules as files have them: whatever is accepted is valid and reads
// back as it was written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cost/communication_costs.h"
#include "model/schedule.h"
#include "model/tensor_table.h"

namespace syncopate {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace
}  // namespace syncopate

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto table = ParseTensorTable(text); table.ok()) {
    Require(Validate(*table).ok());
    const auto again = ParseTensorTable(ToJson(*table));
    Require(again.ok() && *again == *table);
  }
  if (const auto costs = cost::ParseCommunicationCosts(text); costs.ok()) {
    Require(Validate(*costs).ok() && costs->Gamma(100) >= costs->Gamma(2));
    const auto again = cost::ParseCommunicationCosts(ToJson(*costs));
    Require(again.ok() && *again == *costs);
  }
  if (const auto schedule = ParseSchedule(text); schedule.ok()) {
    Require(Validate(*schedule, schedule->tensors()).ok());
    const auto again = ParseSchedule(ToText(*schedule));
    Require(again.ok() && *again == *schedule);
  }
  return 0;
}
