#include "tools/probe/lab_trials.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/lab.h"
#include "lab/scoped_lab.h"
#include "probe/trial.h"
#include "tools/probe/lab_job.h"
#include "tools/probe/probe_job.h"

namespace syncopate::tools {
namespace {

int64_t ShapedBits(double bytes_per_second) {
  return std::llround(bytes_per_second * 8 / lab::kPayloadShare);
}

// How rank 0, in its own process, reports to the one that made the lab.
std::string Encode(const probe::Inference& found, const probe::Verdict& verdict) {
  std::vector<std::string> notes = verdict.wrong;
  if (found.disturbance.experiments > 0) {
    notes.push_back(Describe(found.disturbance));
  }
  return absl::StrCat(verdict.racks_right ? 1 : 0, " ", verdict.capacities, " ", verdict.within,
                      " ", found.experiments, " ", found.seconds, "\n", absl::StrJoin(notes, "\n"));
}

absl::Status Decode(const std::string& text, TrialRow& row) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  const std::vector<std::string> words =
      absl::StrSplit(lines.empty() ? "" : lines.front(), ' ', absl::SkipEmpty());
  if (words.size() != 5) return absl::InternalError("the probe's report makes no sense");
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t right, ParseInt(words[0], 0, 1));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t capacities, ParseInt(words[1], 0, 1 << 20));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t within, ParseInt(words[2], 0, 1 << 20));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t experiments, ParseInt(words[3], 0, 1 << 20));
  SYNCOPATE_ASSIGN_OR_RETURN(row.seconds, ParseDouble(words[4], 0, 1e6));
  row.racks_right = right == 1;
  row.capacities = static_cast<int>(capacities);
  row.within = static_cast<int>(within);
  row.experiments = static_cast<int>(experiments);
  row.notes.assign(lines.begin() + 1, lines.end());
  return absl::OkStatus();
}

absl::StatusOr<TrialRow> TryOne(const TrialsOptions& options, uint64_t seed, const Clock& clock) {
  probe::TrialOptions trial;
  trial.nic = static_cast<double>(options.nic_bits) / 8 * lab::kPayloadShare;
  const probe::NetworkShape truth = probe::RandomNetwork(seed, trial);
  TrialRow row;
  row.seed = seed;
  row.hosts = static_cast<int>(truth.hosts.size());
  row.racks = static_cast<int>(truth.racks.size());
  const std::string name = absl::StrCat("probe-test-", getpid());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<lab::ScopedLab> lab,
                             lab::ScopedLab::Up(LabOf(truth, name), name, clock));
  const LabWork work = [&](transport::Transport& transport,
                           const std::string& host) -> absl::StatusOr<std::string> {
    probe::InferOptions infer;
    infer.budget_seconds = options.budget_seconds;
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<probe::Inference> found,
                               ProbeTogether(transport, clock, host, host, infer, nullptr));
    if (!found) return std::string();
    return Encode(*found, probe::Compare(truth, found->shape));
  };
  const int64_t timeout_ns = static_cast<int64_t>(
      (3 * std::max(options.budget_seconds, probe::DefaultBudgetSeconds(row.hosts)) + 60) * 1e9);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                             RunInLab(**lab, work, clock, timeout_ns, options.cancel_fd));
  SYNCOPATE_RETURN_IF_ERROR(Decode(text, row));
  return row;
}

}  // namespace

lab::Spec LabOf(const probe::NetworkShape& shape, const std::string& name) {
  lab::Spec spec;
  spec.name = name;
  spec.nodes.push_back({"core", false});
  for (const probe::NetworkShape::Rack& rack : shape.racks) {
    lab::Link link;
    link.a = static_cast<int>(spec.nodes.size());
    link.b = 0;
    link.rate_forward = ShapedBits(rack.up);
    link.rate_back = ShapedBits(rack.down);
    spec.nodes.push_back({rack.name, false});
    spec.links.push_back(link);
  }
  for (const probe::NetworkShape::Host& host : shape.hosts) {
    lab::Link link;
    link.a = static_cast<int>(spec.nodes.size());
    link.b = 1 + host.rack;
    link.rate_forward = ShapedBits(host.out);
    link.rate_back = ShapedBits(host.in);
    spec.nodes.push_back({host.name, true});
    spec.links.push_back(link);
  }
  return spec;
}

absl::StatusOr<std::vector<TrialRow>> RunLabTrials(const TrialsOptions& options, const Clock& clock,
                                                   Progress& progress, std::ostream& out) {
  double seconds = 0;
  for (int i = 0; i < options.labs; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    const size_t hosts = probe::RandomNetwork(seed, probe::TrialOptions()).hosts.size();
    seconds += options.budget_seconds > 0 ? options.budget_seconds
                                          : probe::DefaultBudgetSeconds(static_cast<int>(hosts));
  }
  progress.Announce(seconds, absl::StrCat("at most, for ", options.labs, " labs"));
  out << absl::StrFormat("%8s %6s %6s %8s %12s %8s %12s\n", "seed", "hosts", "racks", "right?",
                         "within 10 %", "seconds", "experiments");
  std::vector<TrialRow> rows;
  for (int i = 0; i < options.labs; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    progress.Show(absl::StrCat("lab of seed ", seed), static_cast<double>(i) / options.labs);
    absl::StatusOr<TrialRow> row = TryOne(options, seed, clock);
    progress.Clear();
    if (!row.ok()) return At(absl::StrCat("lab of seed ", seed), row.status());
    out << absl::StrFormat("%8d %6d %6d %8s %12s %8.1f %12d\n", row->seed, row->hosts, row->racks,
                           row->racks_right ? "yes" : "NO",
                           absl::StrCat(row->within, "/", row->capacities), row->seconds,
                           row->experiments);
    for (const std::string& note : row->notes) out << "         " << note << "\n";
    out.flush();
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace syncopate::tools
