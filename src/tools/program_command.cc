#include "tools/program_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/program.h"
#include "model/program_validator.h"
#include "nlohmann/json.hpp"
#include "syncopate/data_type.h"
#include "tools/command_line.h"
#include "tools/program_run.h"

namespace syncopate::tools {
namespace {

constexpr const char* kCheck = "program check";
constexpr const char* kRun = "program run";
constexpr size_t kWorkersShown = 16;
constexpr const char* kProgramExamples =
    "Examples:\n"
    "  syncopate plan -n 4 --bytes 1M --algorithm ring --export text > ring.txt\n"
    "  syncopate program check ring.txt\n"
    "  syncopate program check mine.txt --json\n"
    "  syncopate program run ring.txt\n"
    "  syncopate program run mine.txt --type bfloat16 --op avg --seed 7\n"
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

// A program that has run.
struct Ran {
  Checked checked;
  ProgramRunOptions options;
  ProgramRun run;
};

absl::StatusOr<ProgramRunOptions> ReadOptions(const ProgramRunArguments& arguments,
                                              Collective collective) {
  ProgramRunOptions options;
  options.seed = arguments.seed;
  const absl::StatusOr<DataType> type = ParseDataType(arguments.type);
  if (!type.ok()) return At("--type", type.status());
  options.type = *type;
  if (arguments.op.empty()) return options;
  const absl::StatusOr<ReduceOp> op = ParseReduceOp(arguments.op);
  if (!op.ok()) return At("--op", op.status());
  if (!Reduces(collective)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--op ", arguments.op, ": ", Name(collective), " adds nothing up"));
  }
  options.op = *op;
  return options;
}

absl::StatusOr<Ran> RunFile(const ProgramRunArguments& arguments) {
  Ran ran;
  SYNCOPATE_ASSIGN_OR_RETURN(ran.checked, Check(arguments.file));
  SYNCOPATE_ASSIGN_OR_RETURN(ran.options, ReadOptions(arguments, ran.checked.program.collective));
  absl::StatusOr<ProgramRun> run = RunOnLoop(ran.checked.program, ran.options);
  if (!run.ok()) return At(arguments.file, run.status());
  ran.run = *std::move(run);
  return ran;
}

std::string WorkerRow(absl::string_view name, const ProgramRun::Worker& worker) {
  return absl::StrFormat("%6s  %13d  %11s  %16d  %5d\n", name, worker.messages,
                         FormatBytes(worker.bytes), worker.checked, worker.wrong);
}

std::string ToTable(const Ran& ran) {
  const Program& program = ran.checked.program;
  const ProgramRun::Worker total = ran.run.Total();
  std::string text =
      absl::StrCat("ran         ", Name(program.collective), " of ", program.elements(), " ",
                   Name(ran.options.type), " among ", program.workers, " workers, ",
                   program.active.size(), " of them active\n", "algorithm   ",
                   program.algorithm.empty() ? "(not named)" : program.algorithm, "\n");
  if (Reduces(program.collective)) {
    absl::StrAppend(&text, "reduction   ", Name(ran.options.op), "\n");
  }
  absl::StrAppend(&text, "seed        ", ran.options.seed, ", ", ran.run.turns,
                  " turns of the workers\n\n",
                  absl::StrFormat("%6s  %13s  %11s  %16s  %5s\n", "worker", "messages sent",
                                  "bytes sent", "elements checked", "wrong"));
  for (size_t rank = 0; rank < ran.run.workers.size() && rank < kWorkersShown; ++rank) {
    absl::StrAppend(&text, WorkerRow(absl::StrCat(rank), ran.run.workers[rank]));
  }
  if (ran.run.workers.size() > kWorkersShown) {
    absl::StrAppend(&text, "   ...  ", ran.run.workers.size() - kWorkersShown,
                    " more; --json has all\n");
  }
  absl::StrAppend(&text, WorkerRow("all", total), "\n");
  if (total.checked == 0) {
    absl::StrAppend(&text, "result      right: it ended, and there is no element to compare\n");
  } else {
    absl::StrAppend(
        &text, "result      ",
        total.wrong == 0
            ? absl::StrCat("right: every element is what ", Name(program.collective), " promises")
            : absl::StrCat("WRONG: ", total.wrong, " of ", total.checked, " elements are not what ",
                           Name(program.collective), " promises"),
        "\n");
  }
  return text;
}

std::string ToJson(const Ran& ran) {
  const Program& program = ran.checked.program;
  const ProgramRun::Worker total = ran.run.Total();
  nlohmann::ordered_json json;
  json["collective"] = Name(program.collective);
  json["algorithm"] = program.algorithm;
  json["workers"] = program.workers;
  json["active"] = program.active;
  json["elements"] = program.elements();
  json["type"] = Name(ran.options.type);
  if (Reduces(program.collective)) json["op"] = Name(ran.options.op);
  json["seed"] = ran.options.seed;
  json["turns"] = ran.run.turns;
  const auto row = [](const ProgramRun::Worker& worker) {
    return nlohmann::ordered_json{{"messages", worker.messages},
                                  {"bytes", worker.bytes},
                                  {"checked", worker.checked},
                                  {"wrong", worker.wrong}};
  };
  json.update(row(total));
  json["right"] = ran.run.right();
  json["digest"] = DigestOf(program).ToString();
  json["by_worker"] = nlohmann::ordered_json::array();
  for (const ProgramRun::Worker& worker : ran.run.workers) json["by_worker"].push_back(row(worker));
  return absl::StrCat(json.dump(), "\n");
}

void AddRun(CLI::App& program, int& exit_code) {
  CLI::App* run = program.add_subcommand(
      "run", "Prove a program, run it in this process and compare every element of its result");
  auto arguments = std::make_shared<ProgramRunArguments>();
  run->add_option("file", arguments->file, "The program's text")->required()->type_name("FILE");
  run->add_option("--type", arguments->type, "float32, float64, float16, bfloat16, int32 or int64")
      ->capture_default_str();
  run->add_option("--op", arguments->op, "sum, avg, wavg, min, max or prod (default: sum)");
  run->add_option("--seed", arguments->seed,
                  "Decides the data, the delays of messages and the order of the workers' turns")
      ->capture_default_str();
  run->add_flag("--json", arguments->json, "Print one JSON object");
  run->footer(absl::StrCat(
      "All workers run in one thread of this process, over the loop transport.\n"
      "Exit code: 0 the result is right, 1 it is wrong, 2 the program is not one that can run.\n"
      "\n",
      kProgramExamples));
  run->callback([arguments, &exit_code] { exit_code = RunProgramRun(*arguments, std::cout); });
}

}  // namespace

int RunProgramRun(const ProgramRunArguments& arguments, std::ostream& out) {
  const absl::StatusOr<Ran> ran = RunFile(arguments);
  if (!ran.ok()) return Complain(kRun, ran.status());
  out << (arguments.json ? ToJson(*ran) : ToTable(*ran)) << std::flush;
  return ran->run.right() ? kDone : kFailed;
}

int RunProgramCheck(const ProgramCheckArguments& arguments, std::ostream& out) {
  const absl::StatusOr<Checked> checked = Check(arguments.file);
  if (!checked.ok()) return Complain(kCheck, checked.status());
  out << (arguments.json ? ToJson(*checked) : ToTable(*checked)) << std::flush;
  return kDone;
}

void AddProgramCommand(CLI::App& app, int& exit_code) {
  CLI::App* program = app.add_subcommand("program", "Work with transfer programs in text form");
  program->require_subcommand(1);
  program->footer(kProgramExamples);
  CLI::App* check = program->add_subcommand("check", "Prove a program, or say what is wrong in it");
  auto arguments = std::make_shared<ProgramCheckArguments>();
  check->add_option("file", arguments->file, "The program's text")->required()->type_name("FILE");
  check->add_flag("--json", arguments->json, "Print one JSON object");
  check->footer(kProgramExamples);
  check->callback([arguments, &exit_code] { exit_code = RunProgramCheck(*arguments, std::cout); });
  AddRun(*program, exit_code);
}

}  // namespace syncopate::tools
