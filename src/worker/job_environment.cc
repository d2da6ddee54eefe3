#include "worker/job_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

constexpr int kAncestorsMax = 64;

// The variables of one launcher that hold numbers.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Names kOwn = {"syncopate launch", "SYNCOPATE_RANK", "SYNCOPATE_SIZE",
                        "SYNCOPATE_LOCAL_RANK", "SYNCOPATE_LOCAL_SIZE"};
constexpr Names kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kPmi = {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

absl::Status Refuse(absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; ", remedy));
}

// Reads variables with a limit on their length.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool Has(const std::string& name) const { return environment_(name).has_value(); }

  absl::StatusOr<std::string> Text(const std::string& name) const {
    std::optional<std::string> value = environment_(name);
    if (!value.has_value() || value->empty()) {
      return Refuse(absl::StrCat(name, " is ", value.has_value() ? "empty" : "not set"),
                    "start the workers with syncopate launch, or set it");
    }
    if (value->size() > limits::kEnvironmentValueBytesMax) {
      return Refuse(absl::StrCat(name, " has ", value->size(), " characters"),
                    absl::StrCat("use at most ", limits::kEnvironmentValueBytesMax));
    }
    return *std::move(value);
  }

  absl::StatusOr<int> Number(const std::string& name, int lo, int hi) const {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, Text(name));
    absl::StatusOr<int64_t> value = ParseInt(text, lo, hi);
    if (!value.ok()) {
      return Refuse(absl::StrCat(name, "=", value.status().message()),
                    "start the workers with syncopate launch, or correct it");
    }
    return static_cast<int>(*value);
  }

  // The values of those variables that are set, joined.
  absl::StatusOr<std::string> Joined(const std::vector<std::string>& names) const {
    std::string joined;
    for (const std::string& name : names) {
      if (!Has(name)) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, Text(name));
      absl::StrAppend(&joined, joined.empty() ? "" : "-", text);
    }
    return joined;
  }

 private:
  const Environment& environment_;
};

// Everything but the id. Without local numbers all workers are taken to be on this host.
absl::StatusOr<Job> ReadNumbers(const Reader& read, const Names& names) {
  Job job;
  SYNCOPATE_ASSIGN_OR_RETURN(job.size, read.Number(names.size, 1, limits::kWorkersMax));
  SYNCOPATE_ASSIGN_OR_RETURN(job.rank, read.Number(names.rank, 0, job.size - 1));
  if (!read.Has(names.local_rank) && !read.Has(names.local_size)) {
    if (job.size > limits::kLocalWorkersMax) {
      return Refuse(absl::StrCat(names.size, "=", job.size, " workers on one host"),
                    absl::StrCat("use at most ", limits::kLocalWorkersMax, ", or set ",
                                 names.local_rank, " and ", names.local_size));
    }
    job.local_rank = job.rank;
    job.local_size = job.size;
    return job;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      job.local_size,
      read.Number(names.local_size, 1, std::min(job.size, limits::kLocalWorkersMax)));
  SYNCOPATE_ASSIGN_OR_RETURN(job.local_rank, read.Number(names.local_rank, 0, job.local_size - 1));
  return job;
}

// The run id is "none" unless the user chose one, so the place of rendezvous is part of the
// identity, and so is the number of restarts: the workers of the run before are another job.
absl::StatusOr<std::string> TorchrunId(const Reader& read) {
  if (!read.Has("TORCHELASTIC_RUN_ID") && !read.Has("MASTER_PORT")) {
    return Refuse("RANK and WORLD_SIZE are set, but neither TORCHELASTIC_RUN_ID nor MASTER_PORT",
                  "start the workers with syncopate launch or torchrun, or set SYNCOPATE_JOB");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string id,
                             read.Joined({"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
                                          "TORCHELASTIC_RESTART_COUNT"}));
  return absl::StrCat("torch-", id);
}

// Open MPI 4 numbers its jobs from a short hash, so the address of its daemon is part of the
// identity.
absl::StatusOr<std::string> OpenMpiId(const Reader& read) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::string id,
      read.Joined({read.Has("PMIX_NAMESPACE") ? "PMIX_NAMESPACE" : "OMPI_MCA_ess_base_jobid",
                   "OMPI_MCA_orte_hnp_uri"}));
  if (id.empty()) {
    return Refuse(
        "OMPI_COMM_WORLD_RANK is set, but none of PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid and "
        "OMPI_MCA_orte_hnp_uri",
        "start the workers with mpirun, or set SYNCOPATE_JOB");
  }
  return absl::StrCat("ompi-", id);
}

// MPICH's launcher, Hydra, gives its workers nothing that names the job, but each host's proxy is
// started with the address at which the launcher listens: unique and the same for all workers.
std::optional<std::string> HydraJob(const FindAncestor& find_ancestor) {
  const std::optional<std::vector<std::string>> proxy = find_ancestor("hydra_pmi_proxy");
  if (!proxy.has_value()) return std::nullopt;
  std::string address, group;
  for (size_t i = 0; i + 1 < proxy->size(); ++i) {
    if ((*proxy)[i] == "--control-port") address = (*proxy)[i + 1];
    if ((*proxy)[i] == "--pgid") group = (*proxy)[i + 1];
  }
  if (address.empty()) return std::nullopt;
  return absl::StrCat("hydra-", address, "-", group);
}

// The number of tasks on node `node` from Slurm's "4(x2),3" form.
absl::StatusOr<int> TasksOnNode(const std::string& name, const std::string& text, int node) {
  const absl::Status bad =
      Refuse(absl::StrCat(name, "=\"", text, "\" does not tell the tasks of node ", node),
             "start the workers with srun, or set SYNCOPATE_JOB, SYNCOPATE_RANK and others");
  int64_t first = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t repeat = 1;
    if (absl::ConsumeSuffix(&part, ")")) {
      const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits("(x", 1));
      absl::StatusOr<int64_t> times = ParseInt(ends.back(), 1, limits::kWorkersMax);
      if (ends.size() != 2 || !times.ok()) return bad;
      part = ends.front();
      repeat = *times;
    }
    absl::StatusOr<int64_t> tasks = ParseInt(part, 1, limits::kLocalWorkersMax);
    if (!tasks.ok()) return bad;
    first += repeat;
    if (node < first) return static_cast<int>(*tasks);
  }
  return bad;
}

absl::StatusOr<std::string> SlurmId(const Reader& read) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string job, read.Text("SLURM_JOB_ID"));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string step, read.Text("SLURM_STEP_ID"));
  return absl::StrCat("slurm-", job, ".", step);
}

absl::Status ReadSlurmLocal(const Reader& read, Job& job) {
  const char* tasks_name =
      read.Has("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string tasks, read.Text(tasks_name));
  SYNCOPATE_ASSIGN_OR_RETURN(const int node,
                             read.Number("SLURM_NODEID", 0, limits::kWorkersMax - 1));
  SYNCOPATE_ASSIGN_OR_RETURN(job.local_size, TasksOnNode(tasks_name, tasks, node));
  SYNCOPATE_ASSIGN_OR_RETURN(job.local_rank, read.Number("SLURM_LOCALID", 0, job.local_size - 1));
  return absl::OkStatus();
}

absl::StatusOr<Job> SlurmNumbers(const Reader& read) {
  Job job;
  const char* size = read.Has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  SYNCOPATE_ASSIGN_OR_RETURN(job.size, read.Number(size, 1, limits::kWorkersMax));
  SYNCOPATE_ASSIGN_OR_RETURN(job.rank, read.Number("SLURM_PROCID", 0, job.size - 1));
  SYNCOPATE_RETURN_IF_ERROR(ReadSlurmLocal(read, job));
  return job;
}

absl::StatusOr<Job> PmiNumbers(const Reader& read) {
  SYNCOPATE_ASSIGN_OR_RETURN(Job job, ReadNumbers(read, kPmi));
  // srun --mpi=pmi2 sets no local numbers of PMI's.
  if (read.Has("SLURM_STEP_ID") && !read.Has(kPmi.local_rank)) {
    SYNCOPATE_RETURN_IF_ERROR(ReadSlurmLocal(read, job));
  }
  return job;
}

absl::StatusOr<std::string> PmiId(const Reader& read, const FindAncestor& find_ancestor) {
  std::optional<std::string> hydra = HydraJob(find_ancestor);
  if (hydra.has_value()) return *std::move(hydra);
  if (read.Has("PMI_JOBID")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string id, read.Text("PMI_JOBID"));
    return absl::StrCat("pmi-", id);
  }
  if (read.Has("SLURM_STEP_ID")) return SlurmId(read);
  return Refuse("PMI_RANK and PMI_SIZE are set, but nothing names the job",
                "set SYNCOPATE_JOB to the same text on all its workers, say with mpirun -genv");
}

// The job of `numbers` with the id that the user gave or, failing that, the launcher's.
absl::StatusOr<std::optional<Job>> Complete(
    const char* launcher, absl::StatusOr<Job> numbers, const Reader& read,
    const std::function<absl::StatusOr<std::string>()>& launcher_id) {
  if (!numbers.ok()) return At(absl::StrCat("variables of ", launcher), numbers.status());
  absl::StatusOr<std::string> id =
      read.Has("SYNCOPATE_JOB") ? read.Text("SYNCOPATE_JOB") : launcher_id();
  if (!id.ok()) return At(absl::StrCat("variables of ", launcher), id.status());
  numbers->id = *std::move(id);
  return std::optional<Job>(*std::move(numbers));
}

// The name and the parent of a process from /proc/PID/stat: "PID (name) state parent …".
std::optional<std::pair<std::string, int>> NameAndParent(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(line.substr(close + 1), ' ');
  if (fields.size() < 3) return std::nullopt;
  absl::StatusOr<int64_t> parent = ParseInt(fields[2], 0, INT32_MAX);
  if (!parent.ok()) return std::nullopt;
  return std::make_pair(line.substr(open + 1, close - open - 1), static_cast<int>(*parent));
}

}  // namespace

FindAncestor ProcessAncestors() {
  return [](const std::string& program) -> std::optional<std::vector<std::string>> {
    int pid = getppid();
    for (int depth = 0; depth < kAncestorsMax && pid > 0; ++depth) {
      const auto process = NameAndParent(pid);
      if (!process.has_value()) return std::nullopt;
      if (process->first == program) {
        std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        return std::vector<std::string>(absl::StrSplit(text, '\0'));
      }
      pid = process->second;
    }
    return std::nullopt;
  };
}

absl::StatusOr<std::optional<Job>> JobFromEnvironment(const Environment& environment,
                                                      const FindAncestor& find_ancestor) {
  const Reader read(environment);
  if (read.Has(kOwn.rank) || read.Has(kOwn.size)) {
    return Complete(kOwn.launcher, ReadNumbers(read, kOwn), read,
                    [&] { return read.Text("SYNCOPATE_JOB"); });
  }
  if (read.Has(kTorchrun.rank) && read.Has(kTorchrun.size)) {
    return Complete(kTorchrun.launcher, ReadNumbers(read, kTorchrun), read,
                    [&] { return TorchrunId(read); });
  }
  if (read.Has(kOpenMpi.rank)) {
    return Complete(kOpenMpi.launcher, ReadNumbers(read, kOpenMpi), read,
                    [&] { return OpenMpiId(read); });
  }
  if (read.Has(kPmi.rank)) {
    return Complete(kPmi.launcher, PmiNumbers(read), read,
                    [&] { return PmiId(read, find_ancestor); });
  }
  if (read.Has("PMI_PORT") && read.Has("PMI_ID")) {
    return Refuse("PMI_PORT and PMI_ID are set, but not PMI_SIZE",
                  "start the workers without mpirun's -pmi-port");
  }
  // A batch script has SLURM_PROCID as well, but it is one process and no step.
  if (read.Has("SLURM_PROCID") && read.Has("SLURM_STEP_ID")) {
    return Complete("Slurm", SlurmNumbers(read), read, [&] { return SlurmId(read); });
  }
  return std::optional<Job>();
}

}  // namespace syncopate::worker
