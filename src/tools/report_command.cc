#include "tools/report_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "observe/html_report.h"
#include "observe/run_directory.h"
#include "observe/run_reader.h"
#include "observe/text_report.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

constexpr const char* kReportCommand = "report";
constexpr const char* kReportExamples =
    "Examples:\n"
    "  syncopate report first                      # the run in runs/first\n"
    "  syncopate report runs/first --html first.html\n"
    "  syncopate report runs/wfbp runs/search      # a row a run\n"
    "  syncopate report first --json";

constexpr size_t kRunsNamed = 8;  // in a message of one line

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// A path, or a name as `syncopate train` takes it. Where there is none: which runs there are.
absl::StatusOr<std::string> FindRun(const std::string& given) {
  const std::string path = IsFolder(given) ? given : observe::RunPath(given);
  if (IsFolder(path)) return path;
  std::vector<std::string> names = observe::RunNames(observe::kRunsFolder);
  const size_t more = names.size() - std::min(names.size(), kRunsNamed);
  names.resize(names.size() - more);
  const std::string there =
      names.empty() ? "there are none in runs/ yet; syncopate train --run NAME leaves one there"
                    : absl::StrCat("runs/ has ", absl::StrJoin(names, ", "),
                                   more == 0 ? "" : absl::StrCat(" and ", more, " more"));
  return absl::NotFoundError(
      absl::StrCat("there is no run \"", given, "\": ", path, " is not a folder; ", there));
}

}  // namespace

int RunReport(const ReportArguments& arguments, std::ostream& out) {
  std::vector<observe::RunRecord> runs;
  for (const std::string& given : arguments.runs) {
    const absl::StatusOr<std::string> path = FindRun(given);
    if (!path.ok()) return Complain(kReportCommand, path.status());
    absl::StatusOr<observe::RunRecord> run = observe::ReadRun(*path);
    if (!run.ok()) return Complain(kReportCommand, run.status());
    runs.push_back(*std::move(run));
  }
  if (arguments.json) {
    out << observe::ToJson(runs) << "\n";
  } else {
    out << (runs.size() == 1 ? observe::ToText(runs[0]) : observe::ToComparison(runs));
  }
  if (!arguments.html.empty()) {
    const absl::Status status = WriteFile(arguments.html, observe::ToHtml(runs));
    if (!status.ok()) return Complain(kReportCommand, At("--html", status));
    if (!arguments.json) out << "\nwrote " << arguments.html << "\n";
  }
  out << std::flush;
  return kDone;
}

void AddReportCommand(CLI::App& app, int& exit_code) {
  // Shared with the callback, which lives as long as the app.
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* report = app.add_subcommand(
      kReportCommand, "Show where the time of a run went, who is late, and how training went");
  report->add_option("RUN", arguments->runs, "run directories, or names of runs in runs/")
      ->required();
  report->add_flag("--json", arguments->json, "print one JSON object");
  report->add_option("--html", arguments->html,
                     "file for a page with plots that needs nothing else");
  report->footer(kReportExamples);
  report->callback([arguments, &exit_code] { exit_code = RunReport(*arguments, std::cout); });
}

}  // namespace syncopate::tools
