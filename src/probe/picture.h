// Pictures of a network's shape: a tree in text, and SVG.
#ifndef SYNCOPATE_PROBE_PICTURE_H_
#define SYNCOPATE_PROBE_PICTURE_H_

#include <string>

#include "probe/shape.h"

namespace syncopate::probe {

std::string PictureText(const NetworkShape& shape);
std::string PictureSvg(const NetworkShape& shape);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_PICTURE_H_
