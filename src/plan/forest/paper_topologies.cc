// The clusters and active sets of the paper's evaluation.
#include "plan/forest/paper_topologies.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::plan {
namespace {

constexpr int kGpusMax = 26;  // they are named by letters
constexpr int kCubeMeshGpus = 8;
constexpr double kGigabit = 1e9 / 8;  // bytes

class ClusterBuilder {
 public:
  explicit ClusterBuilder(const PaperCluster& cluster) : cluster_(cluster) {}

  Topology Build() {
    topology_.source = absl::StrCat(
        "declared: ", cluster_.machines, "x", cluster_.gpus, ", inside ", Name(cluster_.inside),
        " of ", cluster_.inside_rate / kGigabit, " Gb/s, between ", Name(cluster_.between), " of ",
        cluster_.between_rate / kGigabit, " Gb/s");
    for (int machine = 0; machine < cluster_.machines; ++machine) AddMachine(machine);
    if (cluster_.between == BetweenNetwork::kSharedNics) AddNics();
    for (int from = 0; from < cluster_.machines; ++from) {
      for (int to = 0; to < cluster_.machines; ++to) {
        if (from != to) Join(from, to);
      }
    }
    return std::move(topology_);
  }

 private:
  int AddNode(std::string id, NodeKind kind) {
    Topology::Node node;
    node.id = std::move(id);
    node.kind = kind;
    topology_.nodes.push_back(std::move(node));
    return static_cast<int>(topology_.nodes.size()) - 1;
  }
  int AddCapacity(std::string id) {
    Topology::Capacity capacity;
    capacity.id = std::move(id);
    capacity.bandwidth = cluster_.between_rate;
    topology_.capacities.push_back(std::move(capacity));
    return static_cast<int>(topology_.capacities.size()) - 1;
  }
  int AddLink(int from, int to, double rate, std::vector<int> capacities = {}) {
    Topology::Link link;
    link.id = absl::StrCat(topology_.nodes[static_cast<size_t>(from)].id, ">",
                           topology_.nodes[static_cast<size_t>(to)].id);
    link.from = from;
    link.to = to;
    link.bandwidth = rate;
    link.capacities = std::move(capacities);
    topology_.links.push_back(std::move(link));
    return static_cast<int>(topology_.links.size()) - 1;
  }
  int Gpu(int machine, int gpu) const {
    return devices_[static_cast<size_t>(machine * cluster_.gpus + gpu)];
  }

  void AddMachine(int machine) {
    const int host = AddNode(absl::StrCat("m", machine), NodeKind::kHost);
    for (int gpu = 0; gpu < cluster_.gpus; ++gpu) {
      const char letter[] = {static_cast<char>('A' + gpu), '\0'};
      devices_.push_back(AddNode(absl::StrCat("m", machine, ".", letter), NodeKind::kDevice));
      topology_.nodes.back().host = host;
    }
    switch (cluster_.inside) {
      case InsideNetwork::kPairs:
        for (int from = 0; from < cluster_.gpus; ++from) {
          for (int to = 0; to < cluster_.gpus; ++to) {
            if (from != to) AddLink(Gpu(machine, from), Gpu(machine, to), cluster_.inside_rate);
          }
        }
        break;
      case InsideNetwork::kSwitches:
        AddSwitches(machine);
        break;
      case InsideNetwork::kCubeMesh:
        AddCubeMesh(machine);
        break;
    }
  }

  void AddSwitches(int machine) {
    int switches[2];
    for (int i = 0; i < 2; ++i) {
      switches[i] = AddNode(absl::StrCat("m", machine, ".pcie", i), NodeKind::kSwitch);
    }
    AddLink(switches[0], switches[1], cluster_.inside_rate);
    AddLink(switches[1], switches[0], cluster_.inside_rate);
    for (int gpu = 0; gpu < cluster_.gpus; ++gpu) {
      const int hub = switches[gpu < (cluster_.gpus + 1) / 2 ? 0 : 1];
      AddLink(Gpu(machine, gpu), hub, cluster_.inside_rate);
      AddLink(hub, Gpu(machine, gpu), cluster_.inside_rate);
    }
  }

  void AddCubeMesh(int machine) {
    int link_of[kCubeMeshGpus][kCubeMeshGpus];
    for (int from = 0; from < kCubeMeshGpus; ++from) {
      for (int to = 0; to < kCubeMeshGpus; ++to) {
        const bool joined = from != to && (from / 4 == to / 4 || from % 4 == to % 4);
        link_of[from][to] =
            joined ? AddLink(Gpu(machine, from), Gpu(machine, to), cluster_.inside_rate) : -1;
      }
    }
    for (int from = 0; from < kCubeMeshGpus; ++from) {
      for (int to = 0; to < kCubeMeshGpus; ++to) {
        if (from == to || link_of[from][to] >= 0) continue;
        // Through the opposite of one of the two; in turn, so that all links are used alike.
        const int middle = (from + to) % 2 == 0 ? (from + 4) % 8 : (to + 4) % 8;
        Topology::Route route;
        route.from = Gpu(machine, from);
        route.to = Gpu(machine, to);
        route.links = {link_of[from][middle], link_of[middle][to]};
        topology_.routes.push_back(std::move(route));
      }
    }
  }

  void AddNics() {
    for (int machine = 0; machine < cluster_.machines; ++machine) {
      nic_out_.push_back(AddCapacity(absl::StrCat("m", machine, ".out")));
      nic_in_.push_back(AddCapacity(absl::StrCat("m", machine, ".in")));
    }
  }

  void Join(int from, int to) {
    std::vector<int> shared;
    if (cluster_.between == BetweenNetwork::kMachinePairs) {
      shared = {AddCapacity(absl::StrCat("m", from, ">m", to))};
    } else if (cluster_.between == BetweenNetwork::kSharedNics) {
      shared = {nic_out_[static_cast<size_t>(from)], nic_in_[static_cast<size_t>(to)]};
    }
    for (int i = 0; i < cluster_.gpus; ++i) {
      for (int j = 0; j < cluster_.gpus; ++j) {
        AddLink(Gpu(from, i), Gpu(to, j), cluster_.between_rate, shared);
      }
    }
  }

  const PaperCluster& cluster_;
  Topology topology_;
  std::vector<int> devices_;  // nodes, by worker
  std::vector<int> nic_out_;  // capacities, by machine; only with shared NICs
  std::vector<int> nic_in_;
};

absl::Status Check(const PaperCluster& cluster) {
  if (cluster.machines < 1 || cluster.gpus < 1 || cluster.gpus > kGpusMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(cluster.machines, " machines with ", cluster.gpus,
                     " GPUs each: expected at least one machine, and 1 to ", kGpusMax, " GPUs"));
  }
  if (cluster.inside == InsideNetwork::kCubeMesh && cluster.gpus != kCubeMeshGpus) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cube mesh has ", kCubeMeshGpus, " GPUs, not ", cluster.gpus));
  }
  for (const double rate : {cluster.inside_rate, cluster.between_rate}) {
    if (!(rate > 0) || !std::isfinite(rate)) {
      return absl::InvalidArgumentError(absl::StrCat(rate, " is not a positive finite rate"));
    }
  }
  // Few enough machines that the product cannot overflow.
  const uint64_t machines = static_cast<uint64_t>(cluster.machines);
  const uint64_t workers = machines * static_cast<uint64_t>(cluster.gpus);
  if (machines > limits::kTopologyNodesMax || workers * workers > limits::kTopologyLinksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(cluster.machines, "x", cluster.gpus, " GPUs have more than ",
                     limits::kTopologyLinksMax, " pairs, each with a link; choose fewer"));
  }
  return absl::OkStatus();
}

// The GPUs that a code names.
absl::StatusOr<std::vector<int>> GpusOf(absl::string_view code) {
  if (code == "2G") return std::vector<int>{0, 6};
  if (code == "3G") return std::vector<int>{0, 1, 6};
  if (code == "4H") return std::vector<int>{0, 1, 6, 7};
  int count = 0;
  if (!absl::SimpleAtoi(code, &count) || count < 0 || count > kGpusMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", code, "\" is not a number of GPUs, 2G, 3G or 4H"));
  }
  std::vector<int> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(i);
  return gpus;
}

}  // namespace

absl::string_view Name(InsideNetwork inside) {
  switch (inside) {
    case InsideNetwork::kPairs:
      return "pairs";
    case InsideNetwork::kSwitches:
      return "switches";
    case InsideNetwork::kCubeMesh:
      return "cube-mesh";
  }
  return "unknown";
}

absl::string_view Name(BetweenNetwork between) {
  switch (between) {
    case BetweenNetwork::kGpuPairs:
      return "gpu-pairs";
    case BetweenNetwork::kMachinePairs:
      return "machine-pairs";
    case BetweenNetwork::kSharedNics:
      return "shared-nics";
  }
  return "unknown";
}

absl::StatusOr<BetweenNetwork> ParseBetweenNetwork(absl::string_view name) {
  for (const BetweenNetwork between :
       {BetweenNetwork::kGpuPairs, BetweenNetwork::kMachinePairs, BetweenNetwork::kSharedNics}) {
    if (Name(between) == name) return between;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is not a network; choose gpu-pairs, machine-pairs or shared-nics"));
}

PaperCluster MakePaperCluster(int machines, int gpus, BetweenNetwork between,
                              double between_gigabits) {
  PaperCluster cluster;
  cluster.machines = machines;
  cluster.gpus = gpus;
  const bool nvlink = gpus == kCubeMeshGpus;
  cluster.inside = nvlink ? InsideNetwork::kCubeMesh : InsideNetwork::kPairs;
  cluster.inside_rate = (nvlink ? 300 : 100) * kGigabit;
  cluster.between = between;
  cluster.between_rate = between_gigabits * kGigabit;
  return cluster;
}

absl::StatusOr<Topology> PaperTopology(const PaperCluster& cluster) {
  SYNCOPATE_RETURN_IF_ERROR(Check(cluster));
  return ClusterBuilder(cluster).Build();
}

absl::StatusOr<ActiveSet> MakeActiveSet(const PaperCluster& cluster,
                                        absl::Span<const std::string> codes) {
  if (codes.size() != static_cast<size_t>(cluster.machines)) {
    return absl::InvalidArgumentError(
        absl::StrCat(codes.size(), " codes for ", cluster.machines, " machines"));
  }
  ActiveSet set;
  set.name = absl::StrCat("(", absl::StrJoin(codes, ","), ")");
  for (size_t machine = 0; machine < codes.size(); ++machine) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> gpus, GpusOf(codes[machine]));
    for (const int gpu : gpus) {
      if (gpu >= cluster.gpus) {
        return absl::InvalidArgumentError(
            absl::StrCat(codes[machine], ": a machine has only ", cluster.gpus, " GPUs"));
      }
      set.workers.push_back(static_cast<int>(machine) * cluster.gpus + gpu);
    }
  }
  if (set.workers.empty()) return absl::InvalidArgumentError("no worker is active");
  return set;
}

const std::vector<std::vector<std::string>>& ActiveCodesOfFourByFour() {
  static const auto* codes = new std::vector<std::vector<std::string>>{
      {"4", "4", "4", "4"}, {"4", "4", "2", "2"}, {"4", "3", "2", "1"}, {"2", "2", "2", "2"},
      {"4", "2", "2", "1"}, {"4", "1", "1", "1"}, {"2", "1", "1", "1"}, {"1", "1", "1", "1"},
      {"2", "2", "0", "0"}, {"1", "1", "1", "0"}, {"1", "1", "0", "0"}};
  return *codes;
}

const std::vector<std::vector<std::string>>& ActiveCodesOfEightByEight() {
  static const auto* codes =
      new std::vector<std::vector<std::string>>{{"8", "8", "8", "8", "8", "8", "8", "8"},
                                                {"6", "6", "6", "6", "6", "6", "6", "6"},
                                                {"4H", "4H", "4H", "4H", "4H", "4H", "4H", "4H"},
                                                {"4", "4", "4", "4", "4", "4", "4", "4"},
                                                {"3G", "3G", "3G", "3G", "3G", "3G", "3G", "3G"},
                                                {"2G", "2G", "2G", "2G", "2G", "2G", "2G", "2G"},
                                                {"8", "8", "6", "6", "4H", "4H", "2G", "2G"},
                                                {"2G", "3G", "4H", "6", "2G", "3G", "4H", "6"},
                                                {"4H", "4H", "3G", "3G", "2G", "2G", "1", "1"},
                                                {"1", "1", "1", "1", "1", "1", "1", "1"}};
  return *codes;
}

}  // namespace syncopate::plan
