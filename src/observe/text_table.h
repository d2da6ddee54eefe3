// A table of text whose columns line up.
#ifndef SYNCOPATE_OBSERVE_TEXT_TABLE_H_
#define SYNCOPATE_OBSERVE_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace syncopate::observe {

class TextTable {
 public:
  // A title that begins with '<' (which is not shown) makes its column flush left.
  explicit TextTable(std::vector<std::string> titles);
  // As many cells as titles.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Two blanks before each line and between columns; no blanks at the ends of lines.
  std::string ToString() const;

 private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// "12.34", "-" for nothing.
std::string Milliseconds(double seconds);
// The sum of the parts and each of them, rounded such that they add up as printed.
std::vector<std::string> WholeAndParts(const std::vector<double>& parts, int digits);
// "98.51 %".
std::string Percent(double fraction);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_TEXT_TABLE_H_
