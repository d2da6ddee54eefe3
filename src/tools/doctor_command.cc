#include "tools/doctor_command.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/environment.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"
#include "tools/doctor/machine_findings.h"
#include "tools/doctor/measured_host.h"
#include "tools/doctor/peer_findings.h"
#include "tools/doctor/transport_findings.h"
#include "tools/interrupt.h"

namespace syncopate::tools {
namespace {

const char* LevelName(Finding::Level level) {
  switch (level) {
    case Finding::Level::kOk:
      return "ok";
    case Finding::Level::kPoor:
      return "poor";
    case Finding::Level::kMissing:
      return "missing";
    case Finding::Level::kBroken:
      return "broken";
  }
  return "?";
}

// Keeps what was measured for `syncopate plan`, and says where.
Finding Keep(const HostMeasurement& measured, const Environment& environment) {
  const MeasuredHost host = {
      .machine = DescribeMachine({}, measured.costs.cores),
      .date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::LocalTimeZone()),
      .costs = measured.costs,
      .busy = measured.busy};
  const absl::StatusOr<bool> saved = SaveMeasuredHost(environment, host);
  if (!saved.ok()) {
    return {"predictions", Finding::Level::kPoor, std::string(saved.status().message()),
            "syncopate plan assumes a typical machine; set SYNCOPATE_CACHE to a folder that can be "
            "written"};
  }
  return {"predictions", Finding::Level::kOk,
          absl::StrCat(*saved ? "syncopate plan uses these measurements; kept in "
                              : "syncopate plan uses those of a quieter time, kept in ",
                       MeasuredHostFile(environment, host.machine).value_or("")),
          ""};
}

Findings AllFindings() {
  std::optional<HostMeasurement> measured;
  Findings all = MachineFindings(MonotonicClock(), &measured);
  if (measured) all.push_back(Keep(*measured, ProcessEnvironment()));
  for (Finding& finding : TransportFindings()) all.push_back(std::move(finding));
  for (Finding& finding : NetworkFindings()) all.push_back(std::move(finding));
  for (Finding& finding : PeerFindings(ProcessEnvironment(), ProgramFolder())) {
    all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace

bool Usable(const Findings& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.level == Finding::Level::kBroken;
  });
}

std::string FormatFindings(const Findings& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.name.size());
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppend(&text, absl::StrFormat("%-*s  %-7s  %s\n", width, finding.name,
                                           LevelName(finding.level), finding.value));
    if (!finding.advice.empty()) {
      absl::StrAppend(&text, absl::StrFormat("%-*s  %-7s  -> %s\n", width, "", "", finding.advice));
    }
  }
  absl::StrAppend(&text, Usable(findings)
                             ? "usable: workers on this machine can share memory\n"
                             : "not usable: workers on this machine cannot share memory\n");
  return text;
}

std::string FindingsToJson(const Findings& findings) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    rows.push_back({{"name", finding.name},
                    {"level", LevelName(finding.level)},
                    {"value", finding.value},
                    {"advice", finding.advice}});
  }
  const nlohmann::ordered_json report = {{"usable", Usable(findings)}, {"findings", rows}};
  return report.dump(2);
}

void AddDoctorCommand(CLI::App& app, int& exit_code) {
  CLI::App* doctor = app.add_subcommand("doctor", "Tell what this machine has and what it lacks");
  auto json = std::make_shared<bool>(false);
  doctor->add_flag("--json", *json, "Print JSON instead of a table");
  doctor->footer(
      "Takes about a second. What it measures is kept in the cache folder, and syncopate plan\n"
      "predicts by it; measure while the machine is quiet. Exit code: 0 usable, 1 workers cannot\n"
      "share memory here.\n"
      "\n"
      "Examples:\n"
      "  syncopate doctor\n"
      "  syncopate doctor --json | jq '.findings[] | select(.level != \"ok\")'");
  doctor->callback([json, &exit_code] {
    const InterruptLine interrupt("doctor");
    std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is something to tell, not to die of
    const Findings findings = AllFindings();
    std::cout << (*json ? FindingsToJson(findings) + "\n" : FormatFindings(findings)) << std::flush;
    exit_code = Usable(findings) ? kDone : kFailed;
  });
}

}  // namespace syncopate::tools
