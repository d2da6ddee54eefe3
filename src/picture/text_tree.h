// What trees drawn in text need: branches, and how wide text is on a terminal.
#ifndef SYNCOPATE_PICTURE_TEXT_TREE_H_
#define SYNCOPATE_PICTURE_TEXT_TREE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace syncopate::picture {

// How many columns of a terminal UTF-8 text takes, if none of its characters is a wide one.
size_t ColumnsOf(absl::string_view text);

// `text` and blanks behind it, so that it takes at least `columns`.
std::string PaddedTo(size_t columns, absl::string_view text);

// What stands before a node whose siblings are indented by `indent`: "├─ ", "└─ " before the last.
std::string BranchTo(absl::string_view indent, bool last);
// The indent of the children of that node.
std::string IndentBelow(absl::string_view indent, bool last);

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_TEXT_TREE_H_
