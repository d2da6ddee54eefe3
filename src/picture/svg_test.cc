#include "picture/svg.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::picture {
namespace {

TEST(SvgTest, ShapesAndWords) {
  SvgPicture svg;
  svg.Line(1, 2, 3.25, 4, "#123", 1.5);
  svg.Box(1, 2, 3, 4, "#456", "#789", 5, "a & b");
  svg.Circle(5, 6, 7, "white", "", "c < d");
  svg.Words(8, 9, "e > f", {.size = 10, .anchor = "middle", .bold = true, .turned = 45});
  svg.Words(8, 9, "");
  EXPECT_EQ(svg.Finish(100, 50),
            "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='50' viewBox='0 0 100 50' "
            "font-family='sans-serif' fill='#223'>\n"
            "<rect width='100%' height='100%' fill='white'/>\n"
            "<line x1='1.0' y1='2.0' x2='3.2' y2='4.0' stroke='#123' stroke-width='1.5'/>\n"
            "<rect x='1.0' y='2.0' width='3.0' height='4.0' fill='#456' stroke='#789' rx='5.0'>"
            "<title>a &amp; b</title></rect>\n"
            "<circle cx='5.0' cy='6.0' r='7.0' fill='white'><title>c &lt; d</title></circle>\n"
            "<text x='8.0' y='9.0' font-size='10' text-anchor='middle' font-weight='bold' "
            "transform='rotate(45.0 8.0 9.0)'>e &gt; f</text>\n"
            "</svg>\n");
}

// Inside a page the style sheet colours, and there is no ground of our own.
TEST(SvgTest, ClassesOfAPage) {
  SvgPicture below;
  below.Line(1, 2, 3, 4, Ink::Class("grid"));
  SvgPicture svg;
  svg.Path({{1, 2}, {3, 4}}, Ink::Class("c-network"));
  svg.Box(0.123, 2, 0.08, -1, Ink::Class("c-compute"), "", 0, "thin");
  svg.Words(8, 9, "e", {.fill = Ink::Class("soft")});
  below.Add(svg);
  EXPECT_EQ(below.FinishForPage(100, 50, "what & how"),
            "<svg viewBox='0 0 100 50' width='100' height='50' role='img' "
            "aria-label='what &amp; how'>\n"
            "<line x1='1.0' y1='2.0' x2='3.0' y2='4.0' class='grid'/>\n"
            "<polyline class='line c-network' points='1.0,2.0 3.0,4.0'/>\n"
            "<rect x='0.12' y='2.0' width='0.08' height='0.0' class='c-compute'>"
            "<title>thin</title></rect>\n"
            "<text x='8.0' y='9.0' font-size='12' class='soft'>e</text>\n"
            "</svg>\n");
}

TEST(SvgTest, PathsAreNotFilled) {
  SvgPicture svg;
  svg.Path({{1, 2}, {3, 4}}, "#123");
  EXPECT_THAT(svg.Finish(10, 10),
              ::testing::HasSubstr("<polyline fill='none' stroke='#123' stroke-width='2.0' "
                                   "points='1.0,2.0 3.0,4.0'/>"));
}

TEST(SvgTest, WhatXmlDoesNotAllow) {
  EXPECT_EQ(EscapeXml("<a href=\"x\">&'\x01\n"), "&lt;a href=&quot;x&quot;&gt;&amp;&apos;??");
}

}  // namespace
}  // namespace syncopate::picture
