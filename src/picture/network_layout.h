// Where the nodes of a topology stand in a picture.
//
// Networks in which nothing but switches and hosts stands between the devices are drawn as a
// layered tree, devices at the bottom; others, and large ones, as a circle of devices with the rest
// inside, on rings. Nodes of a layer or ring do not touch: the picture grows with them.
#ifndef SYNCOPATE_PICTURE_NETWORK_LAYOUT_H_
#define SYNCOPATE_PICTURE_NETWORK_LAYOUT_H_

#include <vector>

#include "model/topology.h"
#include "picture/svg.h"

namespace syncopate::picture {

struct NetworkLayout {
  std::vector<Point> nodes;  // by node of the topology
  // By node: the fewest links between it and a device.
  std::vector<int> level;
  // By node: half the width of what is drawn for it, its name included.
  std::vector<double> half_width;
  bool circle = false;
  bool meshed = false;  // nodes of one level are joined directly
  double width = 0;
  double height = 0;
};

// `topology` must be valid.
NetworkLayout LayOut(const Topology& topology);

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_NETWORK_LAYOUT_H_
