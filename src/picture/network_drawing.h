// A network as a picture: nodes and links where network_layout puts them, and what is said of them.
#ifndef SYNCOPATE_PICTURE_NETWORK_DRAWING_H_
#define SYNCOPATE_PICTURE_NETWORK_DRAWING_H_

#include <string>
#include <vector>

#include "model/topology.h"
#include "picture/network_layout.h"
#include "picture/svg.h"

namespace syncopate::picture {

// What a picture says of the parts of a network, besides what the topology tells.
struct NetworkMarks {
  struct Link {
    Ink ink;
    std::string label;  // stands along the line, if there is room
    std::string title;
    double weight = 0;  // heavier links lie on top, and are labelled if not all can be
  };
  struct Device {
    Ink fill;
    std::string words;  // inside its circle
    std::string title;
  };
  std::vector<Link> links;      // by link
  std::vector<Device> devices;  // by node; only those of devices are looked at
  size_t labels_max = 40;       // where there are more, only half as many are drawn
  int label_size = 8;
};

class NetworkDrawing {
 public:
  // `topology` must be valid and, like `marks`, outlive this.
  NetworkDrawing(const Topology& topology, const NetworkMarks& marks);

  double width() const { return layout_.width; }
  double height() const { return layout_.height; }

  void Draw(double left, double top, SvgPicture& svg);

 private:
  Point At(int node) const;
  double LineWidth(const Topology::Link& link) const;
  void DrawLinks(SvgPicture& svg) const;
  void DrawLink(size_t index, int before, SvgPicture* labels, SvgPicture& svg) const;
  void DrawNodes(SvgPicture& svg) const;
  void NameDevice(int node, SvgPicture& svg) const;
  double ReachOf(int node, double dx, double dy, double away) const;

  const Topology& topology_;
  const NetworkMarks& marks_;
  const NetworkLayout layout_;
  double rate_most_ = 0;  // of the links that set the scale of lines
  double left_ = 0, top_ = 0;
};

// The SVG file of a network alone: its devices, numbered in order, and the rate of each link
// between machines.
std::string DrawNetwork(const Topology& topology);

}  // namespace syncopate::picture

#endif  // SYNCOPATE_PICTURE_NETWORK_DRAWING_H_
