// A network's shape as a tree of text.
#ifndef SYNCOPATE_PROBE_PICTURE_H_
#define SYNCOPATE_PROBE_PICTURE_H_

#include <string>

#include "probe/shape.h"

namespace syncopate::probe {

std::string PictureText(const NetworkShape& shape);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_PICTURE_H_
