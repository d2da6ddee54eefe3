#include "picture/text_tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace syncopate::picture {

size_t ColumnsOf(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;  // not the rest of a character
  }));
}

std::string PaddedTo(size_t columns, absl::string_view text) {
  const size_t taken = ColumnsOf(text);
  return absl::StrCat(text, std::string(taken < columns ? columns - taken : 0, ' '));
}

std::string BranchTo(absl::string_view indent, bool last) {
  return absl::StrCat(indent, last ? "└─ " : "├─ ");
}

std::string IndentBelow(absl::string_view indent, bool last) {
  return absl::StrCat(indent, last ? "   " : "│  ");
}

}  // namespace syncopate::picture
