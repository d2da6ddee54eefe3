#include "observe/text_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/figures.h"
#include "picture/text_tree.h"

namespace syncopate::observe {

using picture::ColumnsOf;

TextTable::TextTable(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    left_.push_back(title.substr(0, 1) == "<");
    if (left_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

std::string TextTable::ToString() const {
  std::vector<size_t> widths(left_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size() && i < row.size(); ++i) {
      widths[i] = std::max(widths[i], ColumnsOf(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < widths.size() && i < row.size(); ++i) {
      const std::string blanks(widths[i] - ColumnsOf(row[i]), ' ');
      absl::StrAppend(&line, "  ", left_[i] ? "" : blanks, row[i], left_[i] ? blanks : "");
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

std::string Milliseconds(double seconds) { return Fixed(seconds * 1e3, 2); }

std::vector<std::string> WholeAndParts(const std::vector<double>& parts, int digits) {
  const std::vector<double> rounded = RoundedParts(parts, digits);
  std::vector<std::string> figures = {
      Fixed(std::accumulate(rounded.begin(), rounded.end(), 0.0), digits)};
  for (const double part : rounded) figures.push_back(Fixed(part, digits));
  return figures;
}

std::string Percent(double fraction) { return absl::StrCat(Fixed(fraction * 100, 2), " %"); }

}  // namespace syncopate::observe
