// The one writer of SVG: shapes and words, for a file that stands alone or for a figure inside an
// HTML page.
//
// Coordinates are pixels, y grows downwards. Text is escaped here; colours, classes and attributes
// come from our own code and are not. The same calls give the same bytes.
#ifndef SYNCOPATE_PICTURE_SVG_H_
#define SYNCOPATE_PICTURE_SVG_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/xml.h"

namespace syncopate::picture {

struct Point {
  double x = 0;
  double y = 0;
};

// What a shape is painted with: a colour, which is written into the shape, or a class, which the
// style sheet of the page colours (so that the picture suits light and dark pages). A class colours
// areas and edges alike. The empty ink paints nothing, or as the whole picture.
class Ink {
 public:
  Ink() = default;
  // A colour is an ink, so these convert.
  Ink(absl::string_view colour) : name_(colour) {}   // NOLINT(google-explicit-constructor)
  Ink(const std::string& colour) : name_(colour) {}  // NOLINT(google-explicit-constructor)
  Ink(const char* colour) : name_(colour) {}         // NOLINT(google-explicit-constructor)
  static Ink Class(absl::string_view name) {
    Ink ink(name);
    ink.is_class_ = true;
    return ink;
  }

  const std::string& name() const { return name_; }
  bool is_class() const { return is_class_; }
  bool empty() const { return name_.empty(); }

 private:
  std::string name_;
  bool is_class_ = false;
};

struct SvgWords {
  int size = 12;
  absl::string_view anchor = "start";  // "middle", "end": which end of the text is at x
  bool bold = false;
  Ink fill = {};      // empty: as the whole picture
  double turned = 0;  // degrees, clockwise around (x, y)
  bool halo = false;  // a white edge, so that it can be read across lines
};

class SvgPicture {
 public:
  // `title`: what a reader that points at the shape is told; empty: nothing.
  void Line(double x1, double y1, double x2, double y2, const Ink& ink, double width = 1,
            absl::string_view title = "");
  // A line from point to point, not filled. A class comes with the class "line", which the style
  // sheet must leave unfilled.
  void Path(const std::vector<Point>& points, const Ink& ink, double width = 2);
  // `line`: the ink of its edge, empty: none. A negative width or height is drawn as none.
  void Box(double x, double y, double width, double height, const Ink& fill, const Ink& line = {},
           double radius = 0, absl::string_view title = "");
  void Circle(double x, double y, double radius, const Ink& fill, const Ink& line = {},
              absl::string_view title = "");
  void Words(double x, double y, absl::string_view text, const SvgWords& style = {});

  // All shapes of another, on top.
  void Add(const SvgPicture& other) { body_ += other.body_; }

  // The file: a white ground of that size with all that was drawn.
  std::string Finish(double width, double height) const;
  // A figure for an HTML page, on the page's own ground. `label`: what it shows, in a sentence for
  // readers who cannot see it.
  std::string FinishForPage(double width, double height, absl::string_view label) const;

 private:
  void Close(absl::string_view element, absl::string_view title);

  std::string body_;
};

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_SVG_H_
