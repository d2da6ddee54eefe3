#include "tools/reproduce/forest_figures.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace syncopate::tools::reproduce {
namespace {

constexpr double kGigabits[] = {10, 25, 40, 100};

struct Setting {
  int figure = 0;
  double gigabits = 0;
  int machines = 0;
  int gpus = 0;
  std::vector<std::string> codes;  // of the active workers; empty: all
};

std::vector<Setting> SettingsOf(int figure) {
  std::vector<Setting> settings;
  if (figure == 6) {
    for (const auto& codes : plan::ActiveCodesOfEightByEight())
      settings.push_back({6, 100, 8, 8, codes});
    return settings;
  }
  for (const double gigabits : kGigabits) {
    if (figure == 4) {
      for (const int gpus : {4, 8}) {
        for (const int machines : {2, 4, 8}) settings.push_back({4, gigabits, machines, gpus, {}});
      }
      continue;
    }
    for (const auto& codes : plan::ActiveCodesOfFourByFour()) {
      settings.push_back({figure, gigabits, 4, 4, codes});
    }
  }
  return settings;
}

// What a setting takes on average on a small server, for the display of progress: those of Figure 6
// have few symmetries and large linear programs.
double SecondsOfSetting(int figure) { return figure == 6 ? 8 : 0.1; }

void FindBest(FigureRow& row) {
  const std::vector<BaselineTime>& all = row.baselines;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].in_paper && all[i].time.staged < all[row.best].time.staged) row.best = i;
    if (all[i].time.pipelined < all[row.best_overlapped].time.pipelined) row.best_overlapped = i;
  }
  row.ratio = all[row.best].time.staged / row.forest.seconds;
  row.ratio_overlapped = all[row.best_overlapped].time.pipelined / row.forest.seconds;
}

absl::StatusOr<FigureRow> MakeRow(const Setting& setting, const FigureOptions& options,
                                  const ForestTimer& timer) {
  plan::PaperCluster cluster =
      plan::MakePaperCluster(setting.machines, setting.gpus, options.between, setting.gigabits);
  if (options.pcie_switches && cluster.inside == plan::InsideNetwork::kPairs) {
    cluster.inside = plan::InsideNetwork::kSwitches;
  }
  FigureRow row;
  row.figure = setting.figure;
  row.cluster = absl::StrCat(setting.machines, "x", setting.gpus);
  row.gigabits = setting.gigabits;
  std::vector<std::string> codes = setting.codes;
  if (codes.empty())
    codes.assign(static_cast<size_t>(setting.machines), absl::StrCat(setting.gpus));
  SYNCOPATE_ASSIGN_OR_RETURN(const plan::ActiveSet active, plan::MakeActiveSet(cluster, codes));
  row.active = setting.codes.empty() ? std::string("all") : active.name;
  SYNCOPATE_ASSIGN_OR_RETURN(const Topology topology, plan::PaperTopology(cluster));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> placement,
                             PlaceInOrder(topology, setting.machines * setting.gpus));
  SYNCOPATE_ASSIGN_OR_RETURN(row.forest,
                             timer(topology, placement, active.workers, false, kModelBytes));
  if (setting.figure == 7) {
    SYNCOPATE_ASSIGN_OR_RETURN(row.separate,
                               timer(topology, placement, active.workers, true, kModelBytes));
    row.overlap_saving = 1 - row.forest.seconds / row.separate.seconds;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(row.baselines,
                             TimesOfBaselines(topology, placement, active.workers, kModelBytes));
  FindBest(row);
  return row;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// "2.29, 2.80 to 4.00": the mean, the least and the most.
std::string Spread(const std::vector<double>& values) {
  return absl::StrFormat("%.2f (%.2f to %.2f)", Mean(values),
                         *std::min_element(values.begin(), values.end()),
                         *std::max_element(values.begin(), values.end()));
}

std::string FoundByRate(const std::vector<FigureRow>& rows) {
  std::vector<std::string> parts;
  for (const double gigabits : kGigabits) {
    std::vector<double> ratios;
    for (const FigureRow& row : rows) {
      if (row.gigabits == gigabits) ratios.push_back(row.ratio);
    }
    parts.push_back(absl::StrFormat("%s at %g Gb/s", Spread(ratios), gigabits));
  }
  return absl::StrCat("mean (least to most) over the clusters: ", absl::StrJoin(parts, ", "));
}

std::string Described(const FigureRow& row) {
  return absl::StrFormat("%s at %g Gb/s, next %s", row.active, row.gigabits,
                         row.baselines[row.best].name);
}

std::string FoundOf(int number, const std::vector<FigureRow>& rows) {
  const auto by_ratio = [](const FigureRow& a, const FigureRow& b) { return a.ratio < b.ratio; };
  const auto most = std::max_element(rows.begin(), rows.end(), by_ratio);
  const auto least = std::min_element(rows.begin(), rows.end(), by_ratio);
  switch (number) {
    case 4:
      return FoundByRate(rows);
    case 5:
      return absl::StrFormat("up to %.1f times less (%s); at least %.2f (%s)", most->ratio,
                             Described(*most), least->ratio, Described(*least));
    case 6:
      return absl::StrFormat("at least %.2f times less (%s); up to %.2f (%s)", least->ratio,
                             Described(*least), most->ratio, Described(*most));
    default: {
      const auto saver = std::max_element(
          rows.begin(), rows.end(),
          [](const auto& a, const auto& b) { return a.overlap_saving < b.overlap_saving; });
      return absl::StrFormat("up to %.0f %% (%s at %g Gb/s)", 100 * saver->overlap_saving,
                             saver->active, saver->gigabits);
    }
  }
}

Figure Describe(int number) {
  Figure figure;
  figure.number = number;
  switch (number) {
    case 4:
      figure.title = "all workers active";
      figure.published =
          "2.9, 2.1, 1.2 times less than the best baseline at 10, 25, 40 Gb/s; equal to PS at 100";
      break;
    case 5:
      figure.title = "some of 4 machines with 4 GPUs active";
      figure.published = "up to 18.3 times less than the best baseline";
      break;
    case 6:
      figure.title = "some of 8 machines with 8 GPUs (DGX-1) active, 100 Gb/s between machines";
      figure.published = "at least 1.44 times less than the best baseline";
      break;
    default:
      figure.title = "reducing and broadcasting overlapped or one after the other, 4x4";
      figure.published = "overlap saves up to 30 %";
  }
  return figure;
}

}  // namespace

absl::StatusOr<std::vector<Figure>> MakeFigures(const FigureOptions& options,
                                                const ForestTimer& timer, Progress& progress) {
  double seconds = 0, seconds_done = 0;
  size_t settings = 0;
  for (const int number : options.figures) {
    const size_t count = SettingsOf(number).size();
    settings += count;
    seconds += static_cast<double>(count) * SecondsOfSetting(number);
  }
  progress.Announce(seconds, absl::StrCat(settings, " settings"));
  std::vector<Figure> figures;
  for (const int number : options.figures) {
    Figure& figure = figures.emplace_back(Describe(number));
    for (const Setting& setting : SettingsOf(number)) {
      const std::string name =
          absl::StrFormat("figure %d, %dx%d at %g Gb/s %s", number, setting.machines, setting.gpus,
                          setting.gigabits, absl::StrJoin(setting.codes, ","));
      progress.Show(name, seconds_done / seconds);
      absl::StatusOr<FigureRow> row = MakeRow(setting, options, timer);
      if (!row.ok()) return At(name, row.status());
      figure.rows.push_back(*std::move(row));
      seconds_done += SecondsOfSetting(number);
    }
    figure.found = FoundOf(number, figure.rows);
  }
  return figures;
}

std::vector<std::string> Assumptions(const FigureOptions& options) {
  std::vector<std::string> lines;
  lines.push_back(
      options.pcie_switches
          ? "a machine of 4 GPUs has two PCIe switches of two GPUs, all links 100 Gb/s each way"
          : "in a machine of 4 GPUs every pair has its own 100 Gb/s link, each way");
  lines.push_back(
      "a machine of 8 GPUs is a DGX-1 cube mesh, 300 Gb/s each way for each of its 16 links; other "
      "pairs send through the GPU between them");
  switch (options.between) {
    case plan::BetweenNetwork::kGpuPairs:
      lines.push_back(
          "every pair of GPUs in different machines has the rate between machines for itself: only "
          "so is PS as good as any at 100 Gb/s, as the text says");
      break;
    case plan::BetweenNetwork::kMachinePairs:
      lines.push_back("all GPU pairs of an ordered pair of machines share the rate between them");
      break;
    case plan::BetweenNetwork::kSharedNics:
      lines.push_back(
          "all that leaves a machine shares the rate between machines, and all that enters it");
      break;
  }
  lines.push_back(
      "active sets of Figures 5 to 7 are ours (docs/forest-figures.md): the text does not list "
      "them");
  lines.push_back(
      "times are those of a fluid, bytes over rate on the most loaded link; the stages of a "
      "baseline "
      "follow one another, as in the paper; \"overl.\" is the best of all baselines if its stages "
      "overlap without loss");
  return lines;
}

}  // namespace syncopate::tools::reproduce
