#include "probe/picture.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "picture/text_tree.h"

namespace syncopate::probe {
namespace {

std::string Workers(const NetworkShape::Host& host) {
  return absl::StrCat(host.workers.size() == 1 ? "worker " : "workers ",
                      absl::StrJoin(host.workers, ","));
}

// The lines of the tree, with what stands beside them in a column.
struct Tree {
  std::vector<std::pair<std::string, std::string>> lines;  // the tree itself, what stands beside it

  std::string Text() const {
    size_t columns = 0;
    for (const auto& [tree, note] : lines) columns = std::max(columns, picture::ColumnsOf(tree));
    std::string text;
    for (const auto& [tree, note] : lines) {
      absl::StrAppend(&text, note.empty() ? tree : picture::PaddedTo(columns + 3, tree), note,
                      "\n");
    }
    return text;
  }
};

std::string Both(const char* out, double out_rate, const char* in, double in_rate) {
  return absl::StrFormat("%s %-12s %s %-12s", out, FormatRate(out_rate), in, FormatRate(in_rate));
}

void AddHosts(const NetworkShape& shape, const std::vector<int>& hosts, const std::string& indent,
              Tree& tree) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    const NetworkShape::Host& host = shape.hosts[static_cast<size_t>(hosts[i])];
    tree.lines.emplace_back(
        absl::StrCat(picture::BranchTo(indent, i + 1 == hosts.size()), host.name),
        absl::StrCat(Both("out ", host.out, "in  ", host.in), "  ", Workers(host)));
  }
}

void AddRacks(const NetworkShape& shape, const std::vector<int>& racks, const std::string& indent,
              Tree& tree) {
  for (size_t i = 0; i < racks.size(); ++i) {
    const NetworkShape::Rack& rack = shape.racks[static_cast<size_t>(racks[i])];
    const bool last = i + 1 == racks.size();
    tree.lines.emplace_back(absl::StrCat(picture::BranchTo(indent, last), rack.name),
                            absl::StrCat(Both("up  ", rack.up, "down", rack.down), "  latency ",
                                         FormatSeconds(rack.latency)));
    AddHosts(shape, rack.hosts, picture::IndentBelow(indent, last), tree);
  }
}

std::string PairTable(const NetworkShape& shape) {
  std::string text = "bytes/s from (down) to (across):\n";
  absl::StrAppend(&text, absl::StrFormat("%-16s", ""));
  for (const NetworkShape::Host& to : shape.hosts) {
    absl::StrAppend(&text, absl::StrFormat(" %12s", to.name));
  }
  text += '\n';
  for (size_t from = 0; from < shape.hosts.size(); ++from) {
    absl::StrAppend(&text, absl::StrFormat("%-16s", shape.hosts[from].name));
    for (size_t to = 0; to < shape.hosts.size(); ++to) {
      absl::StrAppend(
          &text, absl::StrFormat(
                     " %12s", from == to ? std::string("-") : FormatRate(shape.links[from][to])));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string PictureText(const NetworkShape& shape) {
  Tree tree;
  if (!shape.links.empty()) {
    tree.lines.emplace_back("every pair of hosts has a link of its own", "");
    AddHosts(shape, shape.racks.front().hosts, "", tree);
    return absl::StrCat(tree.Text(), "\n", PairTable(shape));
  }
  if (shape.racks.size() < 2) {
    tree.lines.emplace_back("switch",
                            absl::StrCat("latency ", FormatSeconds(shape.racks.front().latency)));
    AddHosts(shape, shape.racks.front().hosts, "", tree);
    return tree.Text();
  }
  tree.lines.emplace_back(
      "core", absl::StrCat("latency between racks ", FormatSeconds(shape.latency_between_racks)));
  if (shape.pods.size() < 2) {
    AddRacks(shape, shape.pods.front().racks, "", tree);
    return tree.Text();
  }
  for (size_t p = 0; p < shape.pods.size(); ++p) {
    const NetworkShape::Pod& pod = shape.pods[p];
    const bool last = p + 1 == shape.pods.size();
    tree.lines.emplace_back(absl::StrCat(picture::BranchTo("", last), pod.name),
                            Both("up  ", pod.up, "down", pod.down));
    AddRacks(shape, pod.racks, picture::IndentBelow("", last), tree);
  }
  return tree.Text();
}

}  // namespace syncopate::probe
