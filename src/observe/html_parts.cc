#include "observe/html_parts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/figures.h"
#include "base/xml.h"
#include "observe/html_style.h"

namespace syncopate::observe {

std::string EscapeXmlLines(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) lines.push_back(EscapeXml(line));
  return absl::StrJoin(lines, "\n");
}

std::string Table(absl::string_view caption, const std::vector<std::string>& titles,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string text = absl::StrCat("<table><caption>", EscapeXml(caption), "</caption><thead><tr>");
  for (const std::string& title : titles) {
    absl::StrAppend(&text, "<th scope='col'>", EscapeXml(title), "</th>");
  }
  absl::StrAppend(&text, "</tr></thead><tbody>\n");
  for (const auto& row : rows) {
    absl::StrAppend(&text, "<tr>");
    for (const std::string& cell : row) absl::StrAppend(&text, "<td>", EscapeXml(cell), "</td>");
    absl::StrAppend(&text, "</tr>\n");
  }
  return absl::StrCat(text, "</tbody></table>\n");
}

std::string Folded(absl::string_view summary, const std::string& contents) {
  return absl::StrCat("<details><summary>", EscapeXml(summary),
                      "</summary><div class='wide' tabindex='0' role='region' aria-label='",
                      EscapeXml(summary), "'>\n", contents, "</div></details>\n");
}

std::string Figure(const std::string& svg, absl::string_view caption, bool wide) {
  if (svg.empty()) return "";
  const std::string picture =
      wide ? absl::StrCat(
                 "<div class='wide' tabindex='0' role='region' aria-label='Plot, scrolls "
                 "sideways'>\n",
                 svg, "</div>")
           : svg;
  return absl::StrCat("<figure>", picture, "<figcaption>", EscapeXml(caption),
                      "</figcaption></figure>\n");
}

std::string Section(absl::string_view title, const std::string& contents) {
  return absl::StrCat("<section><h2>", EscapeXml(title), "</h2>\n", contents, "</section>\n");
}

std::string Shown(const std::optional<double>& value, int digits, absl::string_view unit) {
  return value ? absl::StrCat(Fixed(*value, digits), unit) : "-";
}

std::string Page(absl::string_view title, absl::string_view subtitle, const std::string& contents) {
  return absl::StrCat(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
      "<meta name='viewport' content='width=device-width,initial-scale=1'>\n"
      "<meta name='color-scheme' content='light dark'>\n<title>",
      EscapeXml(title), "</title>\n<style>", kStyle, "</style></head>\n<body><header><h1>",
      EscapeXml(title), "</h1><p class='soft'>", EscapeXml(subtitle), "</p></header>\n<main>\n",
      contents, "</main>\n<footer>Made by syncopate report.</footer></body></html>\n");
}

}  // namespace syncopate::observe
