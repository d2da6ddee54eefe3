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

TEST(SvgTest, WhatXmlDoesNotAllow) {
  EXPECT_EQ(EscapeXml("<a href=\"x\">&'\x01\n"), "&lt;a href=&quot;x&quot;&gt;&amp;&apos;??");
}

}  // namespace
}  // namespace syncopate::picture
