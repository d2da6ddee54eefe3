#include "launch/line_tagger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace syncopate::launch {

void LineTagger::Add(absl::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const size_t room = kLineBytesMax - partial_.size();
    const size_t take = std::min(newline == absl::string_view::npos ? bytes.size() : newline, room);
    absl::StrAppend(&partial_, bytes.substr(0, take));
    bytes.remove_prefix(take);
    const bool complete = !bytes.empty() && bytes.front() == '\n';
    if (complete) bytes.remove_prefix(1);
    if (complete || partial_.size() == kLineBytesMax) {
      absl::StrAppend(&out, tag_, partial_, complete || !tag_.empty() ? "\n" : "");
      partial_.clear();
    }
  }
}

void LineTagger::Finish(std::string& out) {
  if (partial_.empty()) return;
  absl::StrAppend(&out, tag_, partial_, tag_.empty() ? "" : "\n");
  partial_.clear();
}

}  // namespace syncopate::launch
