// Escapes text for SVG and HTML.
#ifndef SYNCOPATE_BASE_XML_H_
#define SYNCOPATE_BASE_XML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace syncopate {

// Text as it may stand between tags and in attributes. Characters that XML does not allow become
// '?'.
std::string EscapeXml(absl::string_view text);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_XML_H_
