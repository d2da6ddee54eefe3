#include "base/switch.h"

#include "absl/strings/str_cat.h"

namespace syncopate {

absl::StatusOr<bool> IsOn(const Environment& environment, const std::string& name, bool otherwise) {
  const std::string text = environment(name).value_or(otherwise ? "1" : "0");
  if (text == "1" || text == "0") return text == "1";
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": \"", text, "\" is neither 1",
                   otherwise ? " (the default) nor 0" : " nor 0 (the default)"));
}

}  // namespace syncopate
