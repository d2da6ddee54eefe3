// What the pages of a report are made of: tables, figures, sections and the page around them. Pure.
// Texts are escaped here; `contents` and `svg` are parts that were made before.
#ifndef SYNCOPATE_OBSERVE_HTML_PARTS_H_
#define SYNCOPATE_OBSERVE_HTML_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace syncopate::observe {

// EscapeXml() for text of several lines.
std::string EscapeXmlLines(absl::string_view text);

std::string Table(absl::string_view caption, const std::vector<std::string>& titles,
                  const std::vector<std::vector<std::string>>& rows);

// A table that is shown when asked for; it can be scrolled by keyboard.
std::string Folded(absl::string_view summary, const std::string& contents);

// A plot with its sentence; nothing without a plot. A wide one scrolls sideways by itself, so that
// the page does not.
std::string Figure(const std::string& svg, absl::string_view caption, bool wide);

std::string Section(absl::string_view title, const std::string& contents);

// "-" for what was not measured.
std::string Shown(const std::optional<double>& value, int digits, absl::string_view unit = "");

// A whole document, with its style.
std::string Page(absl::string_view title, absl::string_view subtitle, const std::string& contents);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_HTML_PARTS_H_
