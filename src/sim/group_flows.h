// What transfers ask of a network, by where their members are.
//
// An average takes start-up and a time a byte by a straight line through the times of a smaller and a larger
// all-reduce, by the program that the group would run at once (plan/collective/quick_choice.h), or in the
// memory that all members share. Its bytes draw on links, on the capacities that links share, on memory
// and on the devices' time as those of the larger program do, so beside others it gets what these leave
// it. Alone it takes what the line says: its rate has that limit, and where the draws alone would be
// slower they are scaled down to it.
//
// Small averages run other programs than large ones. So groups of few have a line for each size class:
// between a power of two bytes and the next, from 512 B to 16 MiB; what is smaller or larger is on the
// first or the last line. Larger groups, whose programs take long to price, have one line for all sizes.
//
// A strategy may make very many groups, so programs are priced once for groups of few whose parts of the
// network look the same (sim/excerpt.h), and for larger ones in places that are alike
// (plan/collective/like_places.h); only the routes are looked up for each group.
#ifndef SYNCOPATE_SIM_GROUP_FLOWS_H_
#define SYNCOPATE_SIM_GROUP_FLOWS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cost/communication_costs.h"
#include "cost/flow_network.h"
#include "model/program.h"
#include "model/topology.h"
#include "model/topology_routes.h"
#include "plan/collective/like_places.h"
#include "plan/collective/quick_choice.h"
#include "sim/member_list.h"

namespace syncopate::sim {

// The sizes of the two all-reduces by which one line for all sizes is found, in float32 elements.
inline constexpr uint64_t kPricedElementsSmall = 1 << 14;
inline constexpr uint64_t kPricedElementsLarge = 1 << 22;

// The line through what they take.
cost::CommunicationCosts LineThrough(double small_seconds, double large_seconds);

struct GroupFlow {
  double a = 0;                                    // seconds of start-up
  double b = 0;                                    // seconds a byte if it moves alone
  std::vector<cost::FlowNetwork::Draw> draws;      // of a byte
  std::vector<std::pair<int, double>> link_bytes;  // bytes that cross a link for each byte of it
};

// A program for 64 KiB or more that runs instead of the quick choice, made for kPricedElementsLarge float32 elements
// of as many workers as there are ranks, and what it costs.
struct PlannedAverage {
  Program program;
  cost::CommunicationCosts costs;
};

// Not thread-safe.
class GroupFlows {
 public:
  // `topology` is valid; `placement` has for each rank the device that it is on. `held_bytes`: that a
  // worker touches, by which memories have their cached bandwidth or not. `all`: what averages of all
  // ranks run; null: the quick choice.
  GroupFlows(std::shared_ptr<const Topology> topology, std::vector<int> placement,
             uint64_t held_bytes, std::shared_ptr<const PlannedAverage> all = nullptr);

  // Of `bytes` in all. InvalidArgument if there is no such rank.
  absl::StatusOr<std::shared_ptr<const GroupFlow>> OfAverage(const Members& members,
                                                             uint64_t bytes);
  // Every rank of `from` sends all bytes to `to`.
  absl::StatusOr<std::shared_ptr<const GroupFlow>> OfSends(const std::vector<int>& from, int to);

  // Of the resources that flows draw on: links, capacities, the time of each node, all cores.
  std::vector<double> capacities() const { return capacities_; }
  size_t links() const { return topology_->links.size(); }
  const Topology& topology() const { return *topology_; }

  // Groups that were priced so far, those alike once for each size class.
  uint64_t priced() const { return priced_; }

 private:
  // When there are more, all are forgotten.
  static constexpr size_t kPricesMax = 4096;
  static constexpr size_t kFlowsMax = 4096;
  // Groups of up to this many are priced on their part of the network (excerpt.h), by pairs of members.
  static constexpr size_t kExcerptMembersMax = 16;

  // What a program does for each byte of its data, by its own numbers of workers.
  struct Recipe {
    cost::CommunicationCosts costs;
    bool in_memory = false;  // all happens there, and fills it
    struct Channel {
      int from = 0, to = 0;
      double bytes = 0;
      double reduced = 0;  // of these
    };
    std::vector<Channel> channels;
    std::vector<double> memory_bytes;    // by worker: read and written by local steps
    std::vector<double> device_seconds;  // by worker: of its own time, for messages
  };

  absl::StatusOr<std::vector<int>> DevicesOf(const std::vector<int>& ranks) const;
  // The two sizes that a line goes through, in float32 elements.
  struct SizeClass {
    uint64_t small = kPricedElementsSmall;
    uint64_t large = kPricedElementsLarge;
  };
  static SizeClass SizeClassOf(size_t members, uint64_t bytes);
  absl::StatusOr<std::shared_ptr<const Recipe>> RecipeOf(const std::vector<int>& devices,
                                                         const SizeClass& sizes);
  absl::StatusOr<std::shared_ptr<const Recipe>> MakeRecipe(const Topology& topology,
                                                           const std::vector<int>& devices,
                                                           const SizeClass& sizes);
  static void Read(const Program& program, const Topology& topology,
                   const std::vector<int>& devices, Recipe& recipe);
  absl::StatusOr<std::shared_ptr<const GroupFlow>> FlowOf(const Recipe& recipe,
                                                          const std::vector<int>& devices);
  // The program and its seconds; no program where it runs in memory as a whole.
  struct Priced {
    double seconds = 0;
    Program program;
    bool in_memory = false;
  };
  absl::StatusOr<Priced> Price(const Topology& topology, const std::vector<int>& devices,
                               uint64_t elements) const;

  absl::Status AddRoute(int from, int to, double bytes);
  void AddMemory(int device, double bytes);
  void AddDraw(size_t resource, double weight);

  const std::shared_ptr<const Topology> topology_;
  const std::vector<int> placement_;
  const std::shared_ptr<const PlannedAverage> all_;
  const plan::LikePlaces places_;
  const plan::NetworkFigures figures_;
  std::vector<double> capacities_;
  Routes routes_;
  std::map<std::tuple<std::string, std::vector<int>, uint64_t>, std::shared_ptr<const Recipe>>
      small_recipes_;  // by the digest of the excerpt, devices in it and the larger size of the class
  std::map<std::vector<int>, std::shared_ptr<const Recipe>>
      recipes_;                                     // by places that stand for all
  using SizedGroup = std::pair<Members, uint64_t>;  // and the larger size of its class
  struct ByRanks {
    size_t operator()(const SizedGroup& group) const {
      return absl::HashOf(group.first->hash, group.second);
    }
    bool operator()(const SizedGroup& one, const SizedGroup& two) const {
      return one.second == two.second && Same(one.first, two.first);
    }
  };
  absl::flat_hash_map<SizedGroup, std::shared_ptr<const GroupFlow>, ByRanks, ByRanks> flows_;
  absl::flat_hash_map<std::pair<int, int>, std::shared_ptr<const GroupFlow>> sends_;  // by device
  uint64_t priced_ = 0;
  // Of the flow that is being made.
  std::vector<double> weights_;     // by resource
  std::vector<int> drawn_;          // resources with a weight
  std::vector<double> link_bytes_;  // by link
  std::vector<int> crossed_;        // links with bytes
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_GROUP_FLOWS_H_
