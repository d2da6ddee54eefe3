#include "worker/job_environment.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

FindAncestor NoAncestor() {
  return [](const std::string&) { return std::nullopt; };
}

FindAncestor Ancestor(std::string name, std::vector<std::string> arguments) {
  return [=](const std::string& program) -> std::optional<std::vector<std::string>> {
    if (program != name) return std::nullopt;
    return arguments;
  };
}

absl::StatusOr<std::optional<Job>> Read(const Variables& variables,
                                        const FindAncestor& ancestor = NoAncestor()) {
  return JobFromEnvironment(MapEnvironment(variables), ancestor);
}

// "id rank/size local_rank/local_size", "alone", or the error's message.
std::string Describe(const absl::StatusOr<std::optional<Job>>& job) {
  if (!job.ok()) {
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(job.status().message());
  }
  if (!job->has_value()) return "alone";
  const Job& j = **job;
  return absl::StrCat(j.id, " ", j.rank, "/", j.size, " ", j.local_rank, "/", j.local_size);
}

Variables With(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kOwn = {{"SYNCOPATE_JOB", "j1"},
                        {"SYNCOPATE_RANK", "2"},
                        {"SYNCOPATE_SIZE", "4"},
                        {"SYNCOPATE_LOCAL_RANK", "0"},
                        {"SYNCOPATE_LOCAL_SIZE", "2"}};
const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "h1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "none"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "1887698945"},
                            {"OMPI_MCA_ess_base_jobid", "1887698945"},
                            {"OMPI_MCA_orte_hnp_uri", "1887698944.0;tcp://192.0.2.2:49089"}};
const Variables kPmi = {{"PMI_FD", "6"},
                        {"PMI_RANK", "3"},
                        {"PMI_SIZE", "4"},
                        {"MPI_LOCALRANKID", "1"},
                        {"MPI_LOCALNRANKS", "2"}};
const Variables kSlurm = {{"SLURM_PROCID", "6"},         {"SLURM_NTASKS", "7"},
                          {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_NODEID", "2"},
                          {"SLURM_LOCALID", "0"},        {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
                          {"SLURM_JOB_ID", "99"},        {"SLURM_STEP_ID", "0"}};

TEST(JobFromEnvironmentTest, AloneWithoutALauncher) {
  EXPECT_EQ(Describe(Read({})), "alone");
  EXPECT_EQ(Describe(Read({{"HOME", "/"}, {"RANK", "colonel"}})), "alone");
}

TEST(JobFromEnvironmentTest, ReadsItsOwnVariables) {
  EXPECT_EQ(Describe(Read(kOwn)), "j1 2/4 0/2");
}

TEST(JobFromEnvironmentTest, TakesAllWorkersToBeLocalIfNothingIsSaid) {
  EXPECT_EQ(
      Describe(Read({{"SYNCOPATE_JOB", "j1"}, {"SYNCOPATE_RANK", "2"}, {"SYNCOPATE_SIZE", "4"}})),
      "j1 2/4 2/4");
}

TEST(JobFromEnvironmentTest, ReadsTorchrun) {
  EXPECT_EQ(Describe(Read(kTorchrun)), "torch-none-h1-29500 5/8 1/4");
  EXPECT_EQ(Describe(Read(With(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "2"}}))),
            "torch-none-h1-29500-2 5/8 1/4");
}

TEST(JobFromEnvironmentTest, ReadsOpenMpi) {
  const std::string expected = "ompi-1887698945-1887698944.0;tcp://192.0.2.2:49089 1/2 1/2";
  EXPECT_EQ(Describe(Read(kOpenMpi)), expected);
  EXPECT_EQ(Describe(Read(Without(kOpenMpi, "PMIX_NAMESPACE"))), expected);
}

TEST(JobFromEnvironmentTest, ReadsMpichWhoseJobIsNamedByItsProxy) {
  const FindAncestor proxy =
      Ancestor("hydra_pmi_proxy", {"/usr/bin/hydra_pmi_proxy", "--control-port", "h1:45019",
                                   "--rmk", "user", "--pgid", "0", "--proxy-id", "0"});
  EXPECT_EQ(Describe(Read(kPmi, proxy)), "hydra-h1:45019-0 3/4 1/2");
}

TEST(JobFromEnvironmentTest, ReadsPmiUnderSlurm) {
  Variables variables = Without(Without(kPmi, "MPI_LOCALRANKID"), "MPI_LOCALNRANKS");
  variables = With(With(kSlurm, variables), {{"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "2"}});
  EXPECT_EQ(Describe(Read(variables)), "slurm-99.0 3/4 2/3");
  EXPECT_EQ(Describe(Read(With(variables, {{"PMI_JOBID", "99.0"}}))), "pmi-99.0 3/4 2/3");
}

TEST(JobFromEnvironmentTest, ReadsSlurm) {
  EXPECT_EQ(Describe(Read(kSlurm)), "slurm-99.0 6/7 0/1");
  EXPECT_EQ(Describe(Read(With(
                kSlurm, {{"SLURM_PROCID", "4"}, {"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "1"}}))),
            "slurm-99.0 4/7 1/3");
}

TEST(JobFromEnvironmentTest, ABatchScriptIsAlone) {
  EXPECT_EQ(Describe(Read(Without(kSlurm, "SLURM_STEP_ID"))), "alone");
}

TEST(JobFromEnvironmentTest, BelievesTheFirstInTheDocumentedOrder) {
  Variables all = kSlurm;
  const FindAncestor proxy = Ancestor("hydra_pmi_proxy", {"p", "--control-port", "h1:1"});
  EXPECT_THAT(Describe(Read(all, proxy)), HasSubstr("slurm-"));
  all = With(all, kPmi);
  EXPECT_THAT(Describe(Read(all, proxy)), HasSubstr("hydra-"));
  all = With(all, kOpenMpi);
  EXPECT_THAT(Describe(Read(all, proxy)), HasSubstr("ompi-"));
  all = With(all, kTorchrun);
  EXPECT_THAT(Describe(Read(all, proxy)), HasSubstr("torch-"));
  all = With(all, kOwn);
  EXPECT_THAT(Describe(Read(all, proxy)), HasSubstr("j1 "));
}

TEST(JobFromEnvironmentTest, AJobNamedByHandIsNamedSoUnderAnyLauncher) {
  for (const Variables& variables : {kTorchrun, kOpenMpi, kPmi, kSlurm}) {
    EXPECT_THAT(Describe(Read(With(variables, {{"SYNCOPATE_JOB", "mine"}}))), HasSubstr("mine "));
  }
}

TEST(JobFromEnvironmentTest, AnErrorNamesTheVariableItsValueAndTheRemedy) {
  struct Case {
    Variables variables;
    std::string name, value;
  };
  const std::string too_long(limits::kEnvironmentValueBytesMax + 1, 'x');
  const std::vector<Case> cases = {
      {With(kOwn, {{"SYNCOPATE_RANK", "4"}}), "SYNCOPATE_RANK", "\"4\""},
      {With(kOwn, {{"SYNCOPATE_RANK", "-1"}}), "SYNCOPATE_RANK", "\"-1\""},
      {With(kOwn, {{"SYNCOPATE_RANK", ""}}), "SYNCOPATE_RANK", "empty"},
      {Without(kOwn, "SYNCOPATE_RANK"), "SYNCOPATE_RANK", "not set"},
      {Without(kOwn, "SYNCOPATE_JOB"), "SYNCOPATE_JOB", "not set"},
      {Without(kOwn, "SYNCOPATE_LOCAL_SIZE"), "SYNCOPATE_LOCAL_SIZE", "not set"},
      {With(kOwn, {{"SYNCOPATE_SIZE", "four"}}), "SYNCOPATE_SIZE", "\"four\""},
      {With(kOwn, {{"SYNCOPATE_SIZE", "0"}}), "SYNCOPATE_SIZE", "\"0\""},
      {With(kOwn, {{"SYNCOPATE_SIZE", "99999999999999999999"}}), "SYNCOPATE_SIZE", "\"999"},
      {With(kOwn, {{"SYNCOPATE_LOCAL_RANK", "2"}}), "SYNCOPATE_LOCAL_RANK", "\"2\""},
      {With(kOwn, {{"SYNCOPATE_LOCAL_SIZE", "5"}}), "SYNCOPATE_LOCAL_SIZE", "\"5\""},
      {With(kOwn, {{"SYNCOPATE_JOB", too_long}}), "SYNCOPATE_JOB", "4097 characters"},
      {{{"SYNCOPATE_JOB", "j"}, {"SYNCOPATE_RANK", "0"}, {"SYNCOPATE_SIZE", "129"}},
       "SYNCOPATE_SIZE",
       "129"},
      {With(kTorchrun, {{"RANK", "8"}}), "RANK", "\"8\""},
      {With(kTorchrun, {{"MASTER_PORT", ""}}), "MASTER_PORT", "empty"},
      {Without(Without(kTorchrun, "MASTER_PORT"), "TORCHELASTIC_RUN_ID"), "MASTER_PORT", "neither"},
      {With(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "1 2"}}), "OMPI_COMM_WORLD_SIZE", "\"1 2\""},
      {With(kPmi, {{"PMI_SIZE", "0x4"}}), "PMI_SIZE", "\"0x4\""},
      {kPmi, "PMI_RANK", "nothing names the job"},
      {{{"PMI_PORT", "h1:1"}, {"PMI_ID", "0"}}, "PMI_SIZE", "not PMI_SIZE"},
      {With(kSlurm, {{"SLURM_LOCALID", "1"}}), "SLURM_LOCALID", "\"1\""},
      {With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3(x2)"}}), "TASKS_PER_NODE", "3(x2)"},
      {With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3(x,1"}}), "TASKS_PER_NODE", "3(x,1"},
      {With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3)"}}), "TASKS_PER_NODE", "3)"},
      {With(kSlurm, {{"SLURM_NODEID", "x"}}), "SLURM_NODEID", "\"x\""},
      {Without(kSlurm, "SLURM_JOB_ID"), "SLURM_JOB_ID", "not set"},
  };
  for (const Case& c : cases) {
    const auto job = Read(c.variables);
    EXPECT_FALSE(job.ok()) << c.name << " " << c.value << ": " << Describe(job);
    EXPECT_THAT(Describe(job), AllOf(HasSubstr(c.name), HasSubstr(c.value), HasSubstr("; ")));
  }
}

TEST(ProcessAncestorsTest, FindsTheParentAndNothingThatIsNotThere) {
  std::string parent;
  std::getline(std::ifstream(absl::StrCat("/proc/", getppid(), "/comm")), parent);
  const auto arguments = ProcessAncestors()(parent);
  ASSERT_TRUE(arguments.has_value()) << parent;
  EXPECT_FALSE(arguments->front().empty());
  EXPECT_FALSE(ProcessAncestors()("no such program").has_value());
}

}  // namespace
}  // namespace syncopate::worker
