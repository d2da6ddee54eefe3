// Linked into the room's tests only. LEMON's headers need what C++20 took out of std::allocator, so
// this one file is C++17 (src/CMakeLists.txt).
#include "plan/forest/lemon_arborescence.h"

#include <lemon/list_graph.h>
#include <lemon/min_cost_arborescence.h>

#include <cmath>
#include <vector>

namespace syncopate::plan {

double LemonArborescenceCost(int workers, const double* costs, int root) {
  using Graph = lemon::ListDigraph;
  Graph graph;
  Graph::ArcMap<double> cost(graph);
  std::vector<Graph::Node> nodes;
  for (int worker = 0; worker < workers; ++worker) nodes.push_back(graph.addNode());
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      const double edge = costs[from * workers + to];
      if (from != to && std::isfinite(edge)) cost[graph.addArc(nodes[from], nodes[to])] = edge;
    }
  }
  lemon::MinCostArborescence<Graph, Graph::ArcMap<double>> arborescence(graph, cost);
  arborescence.run(nodes[root]);
  return arborescence.arborescenceCost();
}

}  // namespace syncopate::plan
