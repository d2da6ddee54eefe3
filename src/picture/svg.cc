#include "picture/svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncopate::picture {
namespace {

// One or two decimals: the boxes of a timeline may be thinner than a tenth of a pixel, and must not
// overlap.
std::string Fine(double pixels) {
  std::string text = absl::StrFormat("%.2f", pixels);
  if (text.back() == '0') text.pop_back();
  return text;
}

// "stroke='#123'", or "class='grid'" for either attribute.
void Paint(absl::string_view attribute, const Ink& ink, std::string& body) {
  if (ink.empty()) return;
  absl::StrAppend(&body, " ", ink.is_class() ? "class" : attribute, "='", ink.name(), "'");
}

// What an area is filled with and, unless a class says both, what its edge is drawn with.
void PaintArea(const Ink& fill, const Ink& line, std::string& body) {
  Paint("fill", fill, body);
  if (!line.is_class()) Paint("stroke", line, body);
}

void AppendWidth(double width, std::string& body) {
  if (width != 1) absl::StrAppendFormat(&body, " stroke-width='%.1f'", width);
}

}  // namespace

void SvgPicture::Close(absl::string_view element, absl::string_view title) {
  if (title.empty()) {
    absl::StrAppend(&body_, "/>\n");
  } else {
    absl::StrAppend(&body_, "><title>", EscapeXml(title), "</title></", element, ">\n");
  }
}

void SvgPicture::Line(double x1, double y1, double x2, double y2, const Ink& ink, double width,
                      absl::string_view title) {
  absl::StrAppendFormat(&body_, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'", x1, y1, x2, y2);
  Paint("stroke", ink, body_);
  AppendWidth(width, body_);
  Close("line", title);
}

void SvgPicture::Path(const std::vector<Point>& points, const Ink& ink, double width) {
  if (ink.is_class()) {
    absl::StrAppend(&body_, "<polyline class='line ", ink.name(), "'");
  } else {
    absl::StrAppend(&body_, "<polyline fill='none'");
    Paint("stroke", ink, body_);
    AppendWidth(width, body_);
  }
  absl::StrAppend(&body_, " points='");
  const char* gap = "";
  for (const Point& point : points) {
    absl::StrAppendFormat(&body_, "%s%.1f,%.1f", gap, point.x, point.y);
    gap = " ";
  }
  absl::StrAppend(&body_, "'/>\n");
}

void SvgPicture::Box(double x, double y, double width, double height, const Ink& fill,
                     const Ink& line, double radius, absl::string_view title) {
  absl::StrAppendFormat(&body_, "<rect x='%s' y='%.1f' width='%s' height='%.1f'", Fine(x), y,
                        Fine(std::max(0.0, width)), std::max(0.0, height));
  PaintArea(fill, line, body_);
  if (radius > 0) absl::StrAppendFormat(&body_, " rx='%.1f'", radius);
  Close("rect", title);
}

void SvgPicture::Circle(double x, double y, double radius, const Ink& fill, const Ink& line,
                        absl::string_view title) {
  absl::StrAppendFormat(&body_, "<circle cx='%.1f' cy='%.1f' r='%.1f'", x, y, radius);
  PaintArea(fill, line, body_);
  Close("circle", title);
}

void SvgPicture::Words(double x, double y, absl::string_view text, const SvgWords& style) {
  if (text.empty()) return;
  absl::StrAppendFormat(&body_, "<text x='%.1f' y='%.1f' font-size='%d'", x, y, style.size);
  if (style.anchor != "start") absl::StrAppend(&body_, " text-anchor='", style.anchor, "'");
  if (style.bold) absl::StrAppend(&body_, " font-weight='bold'");
  Paint("fill", style.fill, body_);
  if (style.halo) {
    absl::StrAppend(&body_, " stroke='white' stroke-width='2.5' paint-order='stroke'");
  }
  if (style.turned != 0) {
    absl::StrAppendFormat(&body_, " transform='rotate(%.1f %.1f %.1f)'", style.turned, x, y);
  }
  absl::StrAppend(&body_, ">", EscapeXml(text), "</text>\n");
}

std::string SvgPicture::Finish(double width, double height) const {
  return absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' viewBox='0 0 %.0f %.0f' "
      "font-family='sans-serif' fill='#223'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
      "%s</svg>\n",
      width, height, width, height, body_);
}

std::string SvgPicture::FinishForPage(double width, double height, absl::string_view label) const {
  return absl::StrCat(
      absl::StrFormat("<svg viewBox='0 0 %.0f %.0f' width='%.0f' height='%.0f' role='img' ", width,
                      height, width, height),
      "aria-label='", EscapeXml(label), "'>\n", body_, "</svg>\n");
}

}  // namespace syncopate::picture
