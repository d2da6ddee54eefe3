#include "tools/probe_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/figures.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/status.h"
#include "lab/spec.h"
#include "nlohmann/json.hpp"
#include "picture/network_drawing.h"
#include "probe/picture.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "tools/probe/allreduce.h"
#include "tools/probe/lab_trials.h"
#include "tools/probe/probe_job.h"
#include "tools/start_job.h"
#include "transport/net/endpoint.h"
#include "worker/job_environment.h"
#include "worker/start_transport.h"

namespace syncopate::tools {
namespace {

constexpr int64_t kBudgetNsMin = 1'000'000'000, kBudgetNsMax = 3'600'000'000'000;
constexpr int kTrialsMax = 10'000;

struct ProbeArguments {
  std::string topology_out;
  std::string svg;
  std::string budget;
  bool json = false;
  bool allreduce = false;
  std::string costs_out;
  JobPlace place;  // if not in a job already
  // Trials in labs.
  int self_test = 0;
  uint64_t seed = 1;
  std::string nic = "200mbit";
};

absl::StatusOr<double> Budget(const ProbeArguments& arguments) {
  if (arguments.budget.empty()) return 0;  // chosen by the number of hosts
  absl::StatusOr<int64_t> budget_ns = ParseDurationNs(arguments.budget);
  if (budget_ns.ok() && (*budget_ns < kBudgetNsMin || *budget_ns > kBudgetNsMax)) {
    budget_ns = absl::InvalidArgumentError(
        absl::StrCat("\"", arguments.budget, "\" is not between 1s and 1h"));
  }
  if (!budget_ns.ok()) return At("--budget", budget_ns.status());
  return static_cast<double>(*budget_ns) * 1e-9;
}

std::string ToJson(const probe::Inference& found) {
  nlohmann::ordered_json json;
  json["hosts"] = nlohmann::ordered_json::array();
  for (const probe::NetworkShape::Host& host : found.shape.hosts) {
    json["hosts"].push_back({{"name", host.name},
                             {"workers", host.workers},
                             {"rack", found.shape.racks[static_cast<size_t>(host.rack)].name},
                             {"out", host.out},
                             {"in", host.in}});
  }
  json["racks"] = nlohmann::ordered_json::array();
  for (const probe::NetworkShape::Rack& rack : found.shape.racks) {
    std::vector<std::string> names;
    for (const int host : rack.hosts) {
      names.push_back(found.shape.hosts[static_cast<size_t>(host)].name);
    }
    nlohmann::ordered_json entry = {
        {"name", rack.name}, {"hosts", names}, {"latency", rack.latency}};
    if (found.shape.racks.size() > 1) {
      entry["up"] = rack.up;
      entry["down"] = rack.down;
    }
    json["racks"].push_back(std::move(entry));
  }
  json["seconds"] = found.seconds;
  json["experiments"] = found.experiments;
  json["flows"] = found.flows;
  json["complete"] = found.complete;
  json["disturbed"] = {{"measurements", found.disturbance.experiments}};
  if (found.disturbance.experiments > 0) {
    json["disturbed"]["host"] = found.disturbance.host;
    json["disturbed"]["stolen"] = found.disturbance.stolen;
    json["disturbed"]["note"] = Describe(found.disturbance);
  }
  json["topology"] = nlohmann::ordered_json::parse(ToJson(probe::ToTopology(found.shape)));
  return json.dump(2) + "\n";
}

std::string Summary(const probe::Inference& found) {
  const size_t hosts = found.shape.hosts.size(), racks = found.shape.racks.size();
  std::string text = CountOf(hosts, "host");
  if (racks > 1) absl::StrAppend(&text, " in ", racks, " racks");
  if (found.shape.pods.size() > 1) absl::StrAppend(&text, " in ", found.shape.pods.size(), " pods");
  if (found.experiments > 0) {
    absl::StrAppendFormat(&text, ", measured in %.1f s by %s (%s)", found.seconds,
                          CountOf(static_cast<uint64_t>(found.experiments), "experiment"),
                          CountOf(static_cast<uint64_t>(found.flows), "flow"));
  }
  if (!found.complete) {
    absl::StrAppend(&text, "\nThe time did not suffice to be sure of all racks; give a longer ",
                    "--budget");
  }
  if (found.disturbance.experiments > 0) {
    absl::StrAppend(&text, "\n", Describe(found.disturbance));
  }
  return text;
}

absl::Status Report(const ProbeArguments& arguments, const probe::Inference& found) {
  const Topology topology = probe::ToTopology(found.shape);
  SYNCOPATE_RETURN_IF_ERROR(Validate(topology));
  if (!arguments.topology_out.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(WriteFile(arguments.topology_out, ToJson(topology)));
  }
  if (!arguments.svg.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(WriteFile(arguments.svg, picture::DrawNetwork(topology)));
  }
  if (arguments.json) {
    std::cout << ToJson(found);
  } else {
    std::cout << Summary(found) << "\n\n" << probe::PictureText(found.shape);
    if (!arguments.topology_out.empty()) {
      std::cout << "\nsaved as " << arguments.topology_out << "\n";
    }
  }
  std::cout.flush();
  return absl::OkStatus();
}

// In a job: every rank comes here.
absl::Status RunInJob(const ProbeArguments& arguments) {
  probe::InferOptions options;
  SYNCOPATE_ASSIGN_OR_RETURN(options.budget_seconds, Budget(arguments));
  const Environment environment = ProcessEnvironment();
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::StartedTransport started,
                             worker::StartTransport({}, environment));
  const std::string host = environment("SYNCOPATE_HOST").value_or(transport::net::ThisHostName());
  SYNCOPATE_ASSIGN_OR_RETURN(const ProgressOptions style, ProgressOfThisProcess());
  std::optional<probe::Inference> found;
  {
    Progress progress("syncopate probe", style, MonotonicClock(), std::cerr);
    SYNCOPATE_ASSIGN_OR_RETURN(found,
                               ProbeTogether(*started.transport, MonotonicClock(), host,
                                             transport::net::ThisMachine(), options, &progress));
  }
  return found ? Report(arguments, *found) : absl::OkStatus();
}

// What every rank of the job runs.
std::vector<std::string> JobWords(const ProbeArguments& arguments) {
  std::vector<std::string> words = {"probe"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  if (arguments.allreduce) words.push_back("--allreduce");
  add("-o", arguments.costs_out);
  add("--budget", arguments.budget);
  add("--topology-out", arguments.topology_out);
  add("--svg", arguments.svg);
  if (arguments.json) words.push_back("--json");
  return words;
}

absl::Status RunTrials(const ProbeArguments& arguments) {
  SYNCOPATE_RETURN_IF_ERROR(
      SetUpLog(ProcessEnvironment()("SYNCOPATE_DEBUG").value_or(""), "self-test"));
  TrialsOptions options;
  options.labs = arguments.self_test;
  options.seed = arguments.seed;
  SYNCOPATE_ASSIGN_OR_RETURN(options.budget_seconds, Budget(arguments));
  absl::StatusOr<int64_t> nic = lab::ParseLinkRate(arguments.nic);
  if (nic.ok() && *nic < 8 * lab::kRateBitsMin) {
    nic = absl::InvalidArgumentError("the hosts need at least 1mbit");
  }
  if (!nic.ok()) return At("--nic", nic.status());
  options.nic_bits = *nic;
  SYNCOPATE_ASSIGN_OR_RETURN(ProgressOptions style, ProgressOfThisProcess());
  style.thread = false;
  Progress progress("syncopate probe", style, MonotonicClock(), std::cerr);
  const InterruptScope interrupt;
  options.cancel_fd = interrupt.fd();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<TrialRow> rows,
                             RunLabTrials(options, MonotonicClock(), progress, std::cout));
  int right = 0, capacities = 0, within = 0;
  double seconds = 0;
  for (const TrialRow& row : rows) {
    right += row.racks_right ? 1 : 0;
    capacities += row.capacities;
    within += row.within;
    seconds = std::max(seconds, row.seconds);
  }
  const double percent = capacities == 0 ? 100 : 100.0 * within / capacities;
  std::cout << absl::StrFormat(
      "racks right in %d of %d labs, %.1f %% of %d capacities within 10 %%, at most %.1f s\n",
      right, rows.size(), percent, capacities, seconds);
  if (right < static_cast<int>(rows.size()) || percent < 95) {
    return absl::InternalError("the probe missed what it promises on these labs");
  }
  return absl::OkStatus();
}

// The exit code, unless there is something to say.
absl::StatusOr<int> Run(const ProbeArguments& arguments) {
  if (arguments.self_test > 0) {
    SYNCOPATE_RETURN_IF_ERROR(RunTrials(arguments));
    return kDone;
  }
  if (!arguments.costs_out.empty() && !arguments.allreduce) {
    return absl::InvalidArgumentError("-o saves the costs of --allreduce; give that too");
  }
  if (arguments.place.given()) {
    SYNCOPATE_RETURN_IF_ERROR(Budget(arguments).status());
    JobPlace place = arguments.place;
    place.declared_topology = arguments.allreduce;  // else it is just what is to be found out
    return RunAsJob(place, JobWords(arguments));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<Job> job,
                             worker::JobFromEnvironment(ProcessEnvironment()));
  if (!job) {
    return absl::InvalidArgumentError(
        "there is no network to measure: name hosts with -H, or a lab with --lab, or run this "
        "command as a job, as in syncopate launch -H h0,h1 -- syncopate probe");
  }
  if (arguments.allreduce) {
    AllReduceProbe probe{.budget_seconds = 0, .json = arguments.json, .out = arguments.costs_out};
    SYNCOPATE_ASSIGN_OR_RETURN(probe.budget_seconds, Budget(arguments));
    SYNCOPATE_RETURN_IF_ERROR(ProbeAllReduce(probe));
    return kDone;
  }
  SYNCOPATE_RETURN_IF_ERROR(RunInJob(arguments));
  return kDone;
}

constexpr char kProbeFooter[] =
    "As a job, every rank runs `syncopate probe` and rank 0 prints. With -H, --hostfile or --lab\n"
    "the command starts itself as such a job.\n"
    "\n"
    "Examples:\n"
    "  syncopate probe -H h0,h1,h2,h3 --topology-out net.json\n"
    "  syncopate probe --lab labs/two-racks.toml --svg net.svg\n"
    "  mpirun -np 8 syncopate probe --json\n"
    "  syncopate probe --allreduce -n 4 -o costs.json\n"
    "  syncopate probe --allreduce --lab labs/two-racks.toml\n"
    "  syncopate probe --self-test 20 --seed 1      (root: random labs, one after the other)\n"
    "The saved topology is used by SYNCOPATE_TOPO_FILE=net.json and `syncopate plan --topology`.";

}  // namespace

void AddProbeCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* probe =
      app.add_subcommand("probe", "Measure the network: hosts, racks, what NICs and uplinks carry");
  probe->add_option("--topology-out", arguments->topology_out, "Save the topology (JSON) here")
      ->type_name("FILE");
  probe->add_option("--svg", arguments->svg, "Save a picture here")->type_name("FILE");
  probe
      ->add_option("--budget", arguments->budget,
                   "How long to measure (25s, more for more than 12 hosts; --allreduce: 5s)")
      ->type_name("TIME");
  probe->add_flag("--json", arguments->json, "Print one JSON object");
  probe->add_flag("--allreduce", arguments->allreduce,
                  "Instead, measure what all-reduces cost: start-up, a byte, several at once");
  probe
      ->add_option("-o,--out", arguments->costs_out,
                   "With --allreduce: save the costs here, for `plan --schedule --costs`")
      ->type_name("FILE");
  AddJobPlaceOptions(*probe, arguments->place);
  probe
      ->add_option("--self-test", arguments->self_test,
                   "Make this many random labs and compare what is found with what they are")
      ->check(WholeNumber(1, kTrialsMax))
      ->type_name("N");
  probe->add_option("--seed", arguments->seed, "Self-test: of the first lab")
      ->capture_default_str();
  probe->add_option("--nic", arguments->nic, "Self-test: the rate of most hosts")
      ->type_name("RATE")
      ->capture_default_str();
  probe->footer(kProbeFooter);
  probe->callback([arguments, &exit_code] {
    const absl::StatusOr<int> code = Run(*arguments);
    exit_code = code.ok() ? *code : Complain("probe", code.status());
  });
}

}  // namespace syncopate::tools
