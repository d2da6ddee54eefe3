// The settings of the tree-packing paper's Figures 4 to 7, and what we find for each.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_FOREST_FIGURES_H_
#define SYNCOPATE_TOOLS_REPRODUCE_FOREST_FIGURES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/progress.h"
#include "plan/forest/paper_topologies.h"
#include "tools/reproduce/baseline_times.h"

namespace syncopate::tools::reproduce {

inline constexpr uint64_t kModelBytes = 1'330'000'000;  // about BERT-large
inline constexpr int kFigures[] = {4, 5, 6, 7};

// What our planner finds, as times of a fluid: bytes of the trees over their rates.
struct ForestTime {
  double seconds = 0;
  double bound_seconds = 0;  // no plan takes less than this
  double plan_seconds = 0;   // what finding it took
};
// `separate`: all is reduced before anything is broadcast; else both overlap.
using ForestTimer = std::function<absl::StatusOr<ForestTime>(
    const Topology& topology, absl::Span<const int> placement, const std::vector<int>& active,
    bool separate, uint64_t bytes)>;

struct FigureOptions {
  std::vector<int> figures = {std::begin(kFigures), std::end(kFigures)};
  plan::BetweenNetwork between = plan::BetweenNetwork::kGpuPairs;
  bool pcie_switches = false;  // machines of 4 GPUs have two PCIe switches instead of pairs
};

struct FigureRow {
  int figure = 0;
  std::string cluster;  // "4x8"
  std::string active;   // "all", "(4,3,2,1)"
  double gigabits = 0;  // between machines
  ForestTime forest;
  ForestTime separate;  // Figure 7 only
  std::vector<BaselineTime> baselines;
  // The quickest of the paper's baselines, if its stages follow one another as the paper has it,
  // and how many times as long it takes as our plan.
  size_t best = 0;
  double ratio = 0;
  // The quickest of all baselines, if all their stages overlap without loss, and how many times as
  // long it takes as our plan.
  size_t best_overlapped = 0;
  double ratio_overlapped = 0;
  double overlap_saving = 0;  // Figure 7: the part of the separate time that overlapping saves
};

struct Figure {
  int number = 0;
  std::string title;
  std::string published;  // what the paper says
  std::string found;      // the same of our rows
  std::vector<FigureRow> rows;
};

// Errors of the timer are passed on with the setting.
absl::StatusOr<std::vector<Figure>> MakeFigures(const FigureOptions& options,
                                                const ForestTimer& timer, Progress& progress);

// What is assumed where the text is silent, and how times are computed, a sentence each.
std::vector<std::string> Assumptions(const FigureOptions& options);

}  // namespace syncopate::tools::reproduce

#endif  // SYNCOPATE_TOOLS_REPRODUCE_FOREST_FIGURES_H_
