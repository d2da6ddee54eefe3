// What tests of pictures share.
#ifndef SYNCOPATE_PICTURE_PICTURE_TESTING_H_
#define SYNCOPATE_PICTURE_PICTURE_TESTING_H_

#include <cstddef>
#include <string>

namespace syncopate::picture {

// How often `part` stands in `text`.
inline size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_PICTURE_TESTING_H_
