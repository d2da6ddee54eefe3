#include "plan/forest/arborescence.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace syncopate::plan {
namespace {

// The cheapest edge from one contracted node into another.
struct Entry {
  double cost = EdgeCosts::kNone;  // less what entering the target's parts costs anyway
  int32_t from = -1;               // workers
  int32_t to = -1;
};

}  // namespace

Arborescences::Arborescences(const EdgeCosts& costs) : workers_(costs.workers()) {
  const size_t n = static_cast<size_t>(workers_);
  nodes_.resize(n);
  if (n < 2) return;
  // Contracted nodes live in slots; a new one takes over the slot of one of its parts.
  std::vector<Entry> entries(n * n);  // by target's slot, then source's
  for (size_t to = 0; to < n; ++to) {
    for (size_t from = 0; from < n; ++from) {
      if (from == to) continue;
      entries[to * n + from] = {costs.at(static_cast<int>(from), static_cast<int>(to)),
                                static_cast<int32_t>(from), static_cast<int32_t>(to)};
    }
  }
  std::vector<size_t> slots(n);   // that are in use
  std::vector<int> node_in(n);    // by slot
  std::vector<int> place(n, -1);  // by slot: where it stands on the path, -1 if it does not
  for (size_t i = 0; i < n; ++i) slots[i] = i, node_in[i] = static_cast<int>(i);
  // The path grows backwards along cheapest edges: each slot is entered most cheaply from the one
  // behind it. Where it would meet itself, it has closed a cycle.
  std::vector<size_t> path = {0};
  std::vector<double> enter_cost;  // by place on the path, of all but the last
  place[0] = 0;
  while (slots.size() > 1) {
    const size_t top = path.back();
    const Entry* row = &entries[top * n];
    size_t best = top;
    double best_cost = EdgeCosts::kNone;
    for (const size_t slot : slots) {
      if (slot != top && row[slot].cost < best_cost) best = slot, best_cost = row[slot].cost;
    }
    if (best == top) break;  // nobody reaches it: against the contract; TreeOf() then stops there
    Node& node = nodes_[static_cast<size_t>(node_in[top])];
    node.enter_from = row[best].from;
    node.enter_to = row[best].to;
    node.price = best_cost;
    enter_cost.push_back(best_cost);
    if (place[best] < 0) {
      place[best] = static_cast<int>(path.size());
      path.push_back(best);
      continue;
    }
    // A cycle: everything on the path from `best` on becomes one node, in the slot of `best`.
    const size_t first = static_cast<size_t>(place[best]);
    const int made = static_cast<int>(nodes_.size());
    Node joined;
    std::vector<bool> in_cycle(n, false);
    for (size_t i = first; i < path.size(); ++i) {
      in_cycle[path[i]] = true;
      joined.parts.push_back(node_in[path[i]]);
      nodes_[static_cast<size_t>(node_in[path[i]])].parent = made;
    }
    nodes_.push_back(std::move(joined));
    std::vector<size_t> left;
    for (const size_t slot : slots) {
      if (!in_cycle[slot]) left.push_back(slot);
    }
    // An edge into the cycle replaces the edge by which its target was entered inside, so that
    // edge's cost is taken off. Edges out of the cycle cost what they did.
    for (const size_t other : left) {
      Entry into, out_of;
      for (size_t i = first; i < path.size(); ++i) {
        const Entry& in = entries[path[i] * n + other];
        if (in.cost - enter_cost[i] < into.cost) {
          into = {in.cost - enter_cost[i], in.from, in.to};
        }
        const Entry& out = entries[other * n + path[i]];
        if (out.cost < out_of.cost) out_of = out;
      }
      entries[best * n + other] = into;
      entries[other * n + best] = out_of;
    }
    left.push_back(best);
    slots = std::move(left);
    for (size_t i = first + 1; i < path.size(); ++i) place[path[i]] = -1;
    path.resize(first + 1);
    enter_cost.resize(first);
    node_in[best] = made;
  }
}

std::vector<int> Arborescences::SetParents() const {
  std::vector<int> parents;
  for (const Node& node : nodes_) parents.push_back(node.parent);
  return parents;
}

std::vector<double> Arborescences::SetPrices() const {
  std::vector<double> prices;
  for (const Node& node : nodes_) prices.push_back(node.price);
  return prices;
}

WorkerTree Arborescences::TreeOf(int root) const {
  WorkerTree tree;
  tree.root = root;
  tree.parent.assign(static_cast<size_t>(workers_), -1);
  tree.parent[static_cast<size_t>(root)] = root;
  // Open all nodes above a worker up to one that is entered there; the other parts of each are
  // entered by their own edges.
  std::vector<std::pair<int, int>> todo = {{root, static_cast<int>(nodes_.size()) - 1}};
  while (!todo.empty()) {
    const auto [worker, top] = todo.back();
    todo.pop_back();
    for (int at = worker; at != top; at = nodes_[static_cast<size_t>(at)].parent) {
      const int above = nodes_[static_cast<size_t>(at)].parent;
      if (above < 0) break;
      for (const int part : nodes_[static_cast<size_t>(above)].parts) {
        if (part == at) continue;
        const Node& node = nodes_[static_cast<size_t>(part)];
        tree.parent[static_cast<size_t>(node.enter_to)] = node.enter_from;
        todo.emplace_back(node.enter_to, part);
      }
    }
  }
  return tree;
}

}  // namespace syncopate::plan
