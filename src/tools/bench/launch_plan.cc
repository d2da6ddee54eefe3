#include "tools/bench/launch_plan.h"

#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace syncopate::tools::bench {
namespace {

struct Known {
  const char* contestant;
  const char* driver;
  const char* launcher;  // or null: the driver makes its ranks itself
  const char* packages;  // or null: always built
};
constexpr Known kKnown[] = {
    {kOurs, "bench_syncopate", nullptr, nullptr},
    {kOpenMpi, "bench_openmpi", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    {kOpenMpiRing, "bench_openmpi", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    {kOpenMpiUcx, "bench_openmpi", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    {kMpich, "bench_mpich", "mpirun.mpich", "libmpich-dev mpich"},
    {kGloo, "bench_gloo", nullptr, "libgloo-dev"},
    {kMemoryLimit, "bench_memory_limit", nullptr, nullptr},
};

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::optional<std::string> FindInPath(const std::string& program, const Environment& environment) {
  const std::string path = environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string candidate = absl::StrCat(folder, "/", program);
    if (IsProgram(candidate)) return candidate;
  }
  return std::nullopt;
}

void Append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Open MPI's launcher: more ranks than cores are wanted; ranks yield while they wait, unless each
// has a core, where polling serves it better; and whatever it writes to disk or shared memory goes
// where it is cleaned up.
void AddOpenMpi(const std::string& contestant, const BenchOptions& options,
                const LaunchPlace& place, LaunchPlan& plan) {
  auto& arguments = plan.arguments;
  if (place.root) arguments.push_back("--allow-run-as-root");
  const char* yields = options.workers > place.cores ? "1" : "0";
  Append(arguments, {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", yields,
                     "--mca", "orte_tmpdir_base", place.directory});
  if (place.lab) Append(arguments, MpirunWords(*place.lab));
  if (contestant == kOpenMpiUcx) {
    Append(arguments, {"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca",
                       "pml_ucx_devices", "any"});
    plan.environment["UCX_POSIX_DIR"] = place.directory;
    return;
  }
  Append(arguments,
         {"--mca", "pml", "ob1", "--mca", "btl_vader_backing_directory", place.directory});
  if (place.lab) Append(arguments, {"--mca", "btl", "tcp,self,vader"});
  if (contestant == kOpenMpiRing) {
    Append(arguments, {"--mca", "coll_tuned_use_dynamic_rules", "1", "--mca",
                       "coll_tuned_allreduce_algorithm", "4"});
  }
}

// The words before the driver's name.
absl::Status AddLauncher(const Known& known, const BenchOptions& options, const LaunchPlace& place,
                         LaunchPlan& plan) {
  if (known.launcher == nullptr) {
    if (place.lab) plan.arguments = LaunchInLab(*place.lab);
    return absl::OkStatus();
  }
  const std::optional<std::string> launcher = FindInPath(known.launcher, place.environment);
  if (!launcher) {
    return absl::NotFoundError(
        absl::StrCat("there is no ", known.launcher, " in PATH; install ", known.packages));
  }
  if (place.lab) plan.arguments = place.lab->exec;
  plan.arguments.push_back(*launcher);
  if (std::string(known.contestant) != kMpich) AddOpenMpi(known.contestant, options, place, plan);
  Append(plan.arguments, {"-n", absl::StrCat(options.workers)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchPlan> PlanLaunch(const std::string& contestant, const BenchOptions& options,
                                      const LaunchPlace& place) {
  const auto build = options.builds.find(contestant);
  const bool ours = contestant == kOurs || build != options.builds.end();
  const Known* known = nullptr;
  for (const Known& candidate : kKnown) {
    if ((ours ? kOurs : contestant) == candidate.contestant) known = &candidate;
  }
  if (known == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("\"", contestant, "\" is not a contestant"));
  }
  const std::string driver = absl::StrCat(
      build == options.builds.end() ? place.drivers : build->second, "/", known->driver);
  if (!IsProgram(driver)) {
    return absl::NotFoundError(absl::StrCat(
        "there is no ", driver, "; ",
        known->packages != nullptr ? absl::StrCat("install ", known->packages, " and ") : "",
        "build again"));
  }
  LaunchPlan plan;
  // Large temporary buffers of the peers stay mapped instead of faulting in at every call.
  plan.environment["MALLOC_MMAP_THRESHOLD_"] = "4294967296";
  plan.environment["MALLOC_TRIM_THRESHOLD_"] = "4294967296";
  plan.environment["MALLOC_TOP_PAD_"] = "67108864";
  SYNCOPATE_RETURN_IF_ERROR(AddLauncher(*known, options, place, plan));
  plan.arguments.push_back(driver);
  const auto add = [&](const char* name, std::string value) {
    plan.arguments.push_back(name);
    plan.arguments.push_back(std::move(value));
  };
  add("--dir", place.directory);
  add("--workers", absl::StrCat(options.workers));
  add("--bytes-max", absl::StrCat(options.sizes.back()));
  add("--timeout", absl::StrCat(absl::ToInt64Milliseconds(options.timeout), "ms"));
  if (place.lab && known->launcher == nullptr) add("--rank-from", kRankVariable);
  if (ours) {
    if (place.lab && !place.lab->topology.empty()) {
      plan.environment["SYNCOPATE_TOPO_FILE"] = place.lab->topology;
    }
    // Trials of other programs would be among the calls that are timed.
    if (!place.environment("SYNCOPATE_TUNE")) plan.environment["SYNCOPATE_TUNE"] = "0";
    add("--memory", options.memory);
    if (!options.algorithm.empty()) add("--algorithm", options.algorithm);
  }
  if (contestant == kGloo) {
    // A trial of all algorithms at every size would take minutes on a slow network.
    std::string algorithm = options.gloo_algorithm;
    if (algorithm.empty() && place.lab) algorithm = "ring";
    if (!algorithm.empty() && algorithm != kGlooQuickest) add("--algorithm", algorithm);
  }
  return plan;
}

absl::StatusOr<std::string> FindDrivers(const std::string& named, const std::string& bin) {
  std::vector<std::string> folders = {absl::StrCat(bin, "/../peers"),
                                      absl::StrCat(bin, "/../libexec/syncopate"), bin};
  if (!named.empty()) folders = {named};
  for (const std::string& folder : folders) {
    // The memory limit needs no library, so it is wherever drivers are.
    if (IsProgram(absl::StrCat(folder, "/bench_memory_limit"))) return folder;
  }
  return absl::NotFoundError(
      absl::StrCat("the drivers are in none of ", absl::StrJoin(folders, ", "),
                   "; build with -DSYNCOPATE_BUILD_PEERS=ON or name their folder with --drivers"));
}

}  // namespace syncopate::tools::bench
