#include "picture/svg.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncopate::picture {

void SvgPicture::Close(absl::string_view element, absl::string_view title) {
  if (title.empty()) {
    absl::StrAppend(&body_, "/>\n");
  } else {
    absl::StrAppend(&body_, "><title>", EscapeXml(title), "</title></", element, ">\n");
  }
}

void SvgPicture::Line(double x1, double y1, double x2, double y2, absl::string_view colour,
                      double width, absl::string_view title) {
  absl::StrAppend(&body_, absl::StrFormat("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' "
                                          "stroke='%s' stroke-width='%.1f'",
                                          x1, y1, x2, y2, colour, width));
  Close("line", title);
}

void SvgPicture::Box(double x, double y, double width, double height, absl::string_view fill,
                     absl::string_view line, double radius, absl::string_view title) {
  absl::StrAppend(
      &body_, absl::StrFormat("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='%s'", x, y,
                              width, height, fill));
  if (!line.empty()) absl::StrAppend(&body_, " stroke='", line, "'");
  if (radius > 0) absl::StrAppend(&body_, absl::StrFormat(" rx='%.1f'", radius));
  Close("rect", title);
}

void SvgPicture::Circle(double x, double y, double radius, absl::string_view fill,
                        absl::string_view line, absl::string_view title) {
  absl::StrAppend(&body_, absl::StrFormat("<circle cx='%.1f' cy='%.1f' r='%.1f' fill='%s'", x, y,
                                          radius, fill));
  if (!line.empty()) absl::StrAppend(&body_, " stroke='", line, "'");
  Close("circle", title);
}

void SvgPicture::Words(double x, double y, absl::string_view text, const SvgWords& style) {
  if (text.empty()) return;
  absl::StrAppend(&body_,
                  absl::StrFormat("<text x='%.1f' y='%.1f' font-size='%d'", x, y, style.size));
  if (style.anchor != "start") absl::StrAppend(&body_, " text-anchor='", style.anchor, "'");
  if (style.bold) absl::StrAppend(&body_, " font-weight='bold'");
  if (!style.fill.empty()) absl::StrAppend(&body_, " fill='", style.fill, "'");
  if (style.turned != 0) {
    absl::StrAppend(&body_,
                    absl::StrFormat(" transform='rotate(%.1f %.1f %.1f)'", style.turned, x, y));
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

}  // namespace syncopate::picture
