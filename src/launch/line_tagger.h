// Cuts one worker's output into lines and puts its tag before each, so that the lines of many
// workers can share a stream without tearing.
#ifndef SYNCOPATE_LAUNCH_LINE_TAGGER_H_
#define SYNCOPATE_LAUNCH_LINE_TAGGER_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace syncopate::launch {

// Not thread-safe.
class LineTagger {
 public:
  // A line that is longer is passed on in parts, so that a worker without newlines cannot fill the
  // memory.
  static constexpr size_t kLineBytesMax = 64 << 10;

  // With an empty tag the bytes stay as they are; they only wait for the end of their line.
  explicit LineTagger(std::string tag) : tag_(std::move(tag)) {}

  // Takes the next bytes and appends the lines that they complete to `out`.
  void Add(absl::string_view bytes, std::string& out);
  // The worker is done: appends what has no newline yet, with one if there is a tag.
  void Finish(std::string& out);

 private:
  const std::string tag_;
  std::string partial_;  // the unfinished line; shorter than kLineBytesMax
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_LINE_TAGGER_H_
