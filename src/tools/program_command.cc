#include "tools/program_command.h"

#include <iostream>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/program.h"
#include "model/program_validator.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

constexpr const char* kCommand = "program check";
constexpr const char* kExamples =
    "Examples:\n"
    "  syncopate plan -n 4 --bytes 1M --algorithm ring --export text > ring.txt\n"
    "  syncopate program check ring.txt\n"
    "  syncopate program check mine.txt --json\n"
    "docs/program.md has the language.";

struct Checked {
  Program program;
  ProgramProof proof;
  uint64_t steps = 0;
};

absl::StatusOr<Checked> Check(const std::string& file) {
  Checked checked;
  absl::StatusOr<std::string> text = ReadFile(file, limits::kProgramTextBytesMax);
  if (!text.ok()) return text.status();
  absl::StatusOr<Program> program = ParseProgram(*text);
  if (!program.ok()) return At(file, program.status());
  checked.program = *std::move(program);
  absl::StatusOr<ProgramProof> proof = ProveProgram(checked.program);
  if (!proof.ok()) {
    // What is wrong is the user's file, whatever the kind of fault.
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", proof.status().message()));
  }
  checked.proof = *proof;
  for (const std::vector<Step>& list : checked.program.steps) checked.steps += list.size();
  return checked;
}

std::string ToTable(const Checked& checked) {
  const Program& program = checked.program;
  return absl::StrCat(
      "proved      ", Name(program.collective), " of ", program.elements(), " elements among ",
      program.workers, " workers, ", program.active.size(), " of them active\n", "algorithm   ",
      program.algorithm.empty() ? "(not named)" : program.algorithm, "\n", "steps       ",
      checked.steps, "\n", "rounds      ", checked.proof.rounds, "\n", "elements    ",
      checked.proof.sent_elements_max, " sent by the worker that sends most, ",
      checked.proof.sent_elements_total, " in all\n", "same bits   ",
      checked.proof.same_bits_everywhere ? "yes: all workers add in the same order"
                                         : "no: workers add in different orders",
      "\n", "digest      ", DigestOf(program).ToString(), "\n");
}

std::string ToJson(const Checked& checked) {
  nlohmann::ordered_json json;
  json["collective"] = Name(checked.program.collective);
  json["algorithm"] = checked.program.algorithm;
  json["workers"] = checked.program.workers;
  json["active"] = checked.program.active;
  json["elements"] = checked.program.elements();
  json["steps"] = checked.steps;
  json["rounds"] = checked.proof.rounds;
  json["sent_elements_max"] = checked.proof.sent_elements_max;
  json["sent_elements_total"] = checked.proof.sent_elements_total;
  json["same_bits"] = checked.proof.same_bits_everywhere;
  json["digest"] = DigestOf(checked.program).ToString();
  return absl::StrCat(json.dump(), "\n");
}

}  // namespace

int RunProgramCheck(const ProgramCheckArguments& arguments, std::ostream& out) {
  const absl::StatusOr<Checked> checked = Check(arguments.file);
  if (!checked.ok()) return Complain(kCommand, checked.status());
  out << (arguments.json ? ToJson(*checked) : ToTable(*checked)) << std::flush;
  return kDone;
}

void AddProgramCommand(CLI::App& app, int& exit_code) {
  CLI::App* program = app.add_subcommand("program", "Work with transfer programs in text form");
  program->require_subcommand(1);
  program->footer(kExamples);
  CLI::App* check = program->add_subcommand("check", "Prove a program, or say what is wrong in it");
  auto arguments = std::make_shared<ProgramCheckArguments>();
  check->add_option("file", arguments->file, "The program's text")->required()->type_name("FILE");
  check->add_flag("--json", arguments->json, "Print one JSON object");
  check->footer(kExamples);
  check->callback([arguments, &exit_code] { exit_code = RunProgramCheck(*arguments, std::cout); });
}

}  // namespace syncopate::tools
