// What the pictures of the command line are made of: shapes and words in SVG.
//
// Coordinates are pixels, y grows downwards. Text is escaped here; colours and attributes come from
// our own code and are not. The same calls give the same bytes.
#ifndef SYNCOPATE_PICTURE_SVG_H_
#define SYNCOPATE_PICTURE_SVG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/xml.h"

namespace syncopate::picture {

struct SvgWords {
  int size = 12;
  absl::string_view anchor = "start";  // "middle", "end": which end of the text is at x
  bool bold = false;
  absl::string_view fill = "";  // empty: as the whole picture
  double turned = 0;            // degrees, clockwise around (x, y)
};

class SvgPicture {
 public:
  // `title`: what a reader that points at the shape is told; empty: nothing.
  void Line(double x1, double y1, double x2, double y2, absl::string_view colour, double width,
            absl::string_view title = "");
  // `line`: colour of its edge, empty: none.
  void Box(double x, double y, double width, double height, absl::string_view fill,
           absl::string_view line = "", double radius = 0, absl::string_view title = "");
  void Circle(double x, double y, double radius, absl::string_view fill,
              absl::string_view line = "", absl::string_view title = "");
  void Words(double x, double y, absl::string_view text, const SvgWords& style = {});

  // The file: a white ground of that size with all that was drawn.
  std::string Finish(double width, double height) const;

 private:
  void Close(absl::string_view element, absl::string_view title);

  std::string body_;
};

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_SVG_H_
