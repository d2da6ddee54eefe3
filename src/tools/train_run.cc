#include "tools/train_run.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "launch/agent_command.h"
#include "observe/run_directory.h"
#include "tools/command_line.h"
#include "train/options/checkpoint_note.h"

namespace syncopate::tools {
namespace {

using observe::Summary;
using train::TrainOptions;

constexpr const char* kTrainRunCommand = "train";
constexpr uint64_t kFileBytesMax = uint64_t{1} << 20;

bool HasTarget(const TrainOptions& options) {
  return options.target_accuracy.has_value() || options.target_loss.has_value();
}

// Whether the run's last evaluation has what the options ask for.
bool MeetsTarget(const Summary& summary, const TrainOptions& options) {
  return HasTarget(options) &&
         (!options.target_accuracy || summary.accuracy.value_or(-1) >= *options.target_accuracy) &&
         (!options.target_loss || (summary.loss && *summary.loss <= *options.target_loss));
}

// As the user would type it: in quotes only where a shell needs them.
std::string Typed(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-+./:@%=,", c);
  });
  return plain ? name : launch::ShellQuote(name);
}

std::string GoOn(const TrainRun& run) {
  return absl::StrCat("syncopate train --run ", Typed(run.name), " --resume");
}

void Say(absl::string_view line) { std::cerr << "syncopate train: " << line << "\n" << std::flush; }

// "accuracy 91.20 % (target 95.00 %), loss 0.2101 (target 0.1)".
std::string Missed(const Summary& summary, const TrainOptions& options) {
  std::vector<std::string> parts;
  if (options.target_accuracy) {
    parts.push_back(absl::StrFormat("accuracy %.2f %% (target %.2f %%)",
                                    100 * summary.accuracy.value_or(0),
                                    100 * *options.target_accuracy));
  }
  if (options.target_loss) {
    parts.push_back(
        absl::StrFormat("loss %.4f (target %g)", summary.loss.value_or(0), *options.target_loss));
  }
  return absl::StrJoin(parts, ", ");
}

// How to go on with a run that was cut off.
std::string AfterFailure(const TrainRun& run, const TrainOptions& options) {
  const absl::StatusOr<train::CheckpointNote> note = train::ReadCheckpointNote(run.folder);
  if (note.ok()) {
    return absl::StrCat("checkpoint at ", note->iteration, "; go on with: ", GoOn(run));
  }
  if (options.checkpoint_every > 0) {
    return absl::StrCat("no checkpoint yet (the first comes at iteration ",
                        options.checkpoint_every, "); begin anew with --overwrite");
  }
  return "no checkpoint to go on from; --checkpoint-every N saves one every N iterations";
}

}  // namespace

absl::StatusOr<TrainOptions> ReadRunOptions(const TrainRun& run) {
  const std::string path = absl::StrCat(run.folder, "/config.json");
  const absl::StatusOr<std::string> text = ReadFile(path, kFileBytesMax);
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat("--resume: there is no run in ", run.folder, " (", path, "); --run names it"));
  }
  absl::StatusOr<TrainOptions> options = train::ParseTrainOptions(*text);
  if (!options.ok()) return At(path, options.status());
  return options;
}

std::optional<Summary> ReadRunSummary(const TrainRun& run) {
  const absl::StatusOr<std::string> text =
      ReadFile(absl::StrCat(run.folder, "/summary.json"), kFileBytesMax);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<Summary> summary = observe::ParseSummary(*text);
  if (!summary.ok()) return std::nullopt;
  return *summary;
}

std::string WhyNothingIsLeft(const Summary& summary, const TrainOptions& before,
                             const TrainOptions& now) {
  if (MeetsTarget(summary, now)) {
    return absl::StrCat("nothing is left to do: the target was reached at iteration ",
                        summary.iterations);
  }
  // A run that its target did not end has done what --iterations or --epochs asked for.
  const bool same_end = now.iterations == before.iterations && now.epochs == before.epochs &&
                        !summary.reached.value_or(false);
  if (!same_end && (now.iterations == 0 || now.iterations > summary.iterations)) return "";
  return absl::StrCat(
      "nothing is left to do: all ", summary.iterations, " iterations are done",
      HasTarget(now) ? absl::StrCat(", without the target: ", Missed(summary, now)) : "",
      "; --iterations asks for more");
}

int TellEnd(const TrainRun& run, const TrainOptions& options, bool json, int code) {
  if (code == kBadUsage) return code;  // nothing was begun, and the reason has been told
  if (code != kDone) {
    std::error_code error;
    if (std::filesystem::exists(absl::StrCat(run.folder, "/metrics.jsonl"), error)) {
      Say(AfterFailure(run, options));
    }
    return code;
  }
  const std::optional<Summary> summary = ReadRunSummary(run);
  if (!summary) {
    return Complain(kTrainRunCommand,
                    absl::UnavailableError(absl::StrCat(
                        "the job has ended, but its summary is not in ", run.folder,
                        " on this machine; the host of the worker that wrote it has it")));
  }
  if (!json) {
    std::cout << "\nthe model is " << observe::RunPath(run.name) << "/model.pt\n"
              << "next: syncopate report " << Typed(run.name) << " --html report.html\n"
              << std::flush;
  }
  if (summary->reached.value_or(true)) return kDone;
  Say(absl::StrCat("the target was not reached after ", summary->iterations,
                   " iterations: ", Missed(*summary, options)));
  return kFailed;
}

}  // namespace syncopate::tools
