// The checks and the text form of a schedule; docs/asc-wfbp.md has an example.
#include "model/schedule.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate {
namespace {

constexpr absl::string_view kScheduleTitle = "syncopate schedule 1";

template <typename... What>
absl::Status BadSchedule(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

// The name is one word of a line of the text form, where # begins a comment.
absl::Status CheckPlanner(absl::string_view planner) {
  if (planner.empty() || planner.size() > limits::kTensorNameBytesMax) {
    return BadSchedule("planner: the name has ", planner.size(), " bytes; there must be 1 to ",
                       limits::kTensorNameBytesMax);
  }
  for (const char c : planner) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == '#') {
      return BadSchedule(
          "planner: there is a character other than printable ASCII without spaces and #");
    }
  }
  return absl::OkStatus();
}

// "4-6" or "4".
absl::Status ReadRun(absl::string_view text, Transfer& transfer) {
  constexpr int64_t kTensorMax = limits::kTensorsMax - 1;
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t first, ParseInt(ends.first, 0, kTensorMax));
  int64_t last = first;
  if (text.size() > ends.first.size()) {
    SYNCOPATE_ASSIGN_OR_RETURN(last, ParseInt(ends.second, first, kTensorMax));
  }
  transfer.first = static_cast<int>(first);
  transfer.last = static_cast<int>(last);
  return absl::OkStatus();
}

absl::Status ReadTransfer(const std::vector<absl::string_view>& words, Schedule& schedule) {
  if (words.size() != 2 && (words.size() != 4 || words[2] != "beside")) {
    return BadSchedule("write \"transfer FIRST-LAST\" or \"transfer FIRST-LAST beside N\"");
  }
  if (schedule.transfers.size() == limits::kTensorsMax) {
    return BadSchedule("there are more than ", limits::kTensorsMax, " transfers");
  }
  Transfer transfer;
  SYNCOPATE_RETURN_IF_ERROR(ReadRun(words[1], transfer));
  if (words.size() == 4) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t beside, ParseInt(words[3], 0, limits::kBesideMax));
    transfer.beside = static_cast<int>(beside);
  }
  schedule.transfers.push_back(transfer);
  return absl::OkStatus();
}

// One line, without its comment. Sets `ended` at the last one.
absl::Status ReadLine(absl::string_view line, bool& titled, bool& ended, Schedule& schedule) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (ended) return BadSchedule("nothing may follow \"end\"");
  if (!titled) {
    titled = absl::StripAsciiWhitespace(line) == kScheduleTitle;
    return titled ? absl::OkStatus()
                  : BadSchedule("a schedule starts with \"", kScheduleTitle, "\"");
  }
  if (words[0] == "transfer") return ReadTransfer(words, schedule);
  if (words[0] == "end" && words.size() == 1) {
    ended = true;
    return absl::OkStatus();
  }
  if (words[0] == "planner" && words.size() == 2) {
    if (!schedule.planner.empty()) return BadSchedule("there are two planners");
    schedule.planner = std::string(words[1]);
    return CheckPlanner(schedule.planner);
  }
  return BadSchedule(
      "unknown line; it may be \"planner NAME\", \"transfer FIRST-LAST\" or \"end\"");
}

}  // namespace

absl::Status Validate(const Schedule& schedule, int tensors) {
  SYNCOPATE_RETURN_IF_ERROR(CheckPlanner(schedule.planner));
  if (tensors < 1 || static_cast<uint64_t>(tensors) > limits::kTensorsMax) {
    return BadSchedule("a schedule cannot be for ", tensors, " tensors; there must be 1 to ",
                       limits::kTensorsMax);
  }
  // Tensors become ready from the last to the first, so the transfers must take them in that order
  // and leave none out: each ends where the one before it began.
  int left = tensors;  // that no transfer so far holds
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::string place = absl::StrCat("transfers[", i, "]: ");
    if (transfer.last != left - 1 || transfer.first < 0 || transfer.first > transfer.last) {
      return BadSchedule(
          place, "tensors ", transfer.first, "-", transfer.last,
          left == 0 ? absl::StrCat(" after tensor 0 was sent")
                    : absl::StrCat(" where a run that ends with tensor ", left - 1, " comes next"));
    }
    // Nothing runs before the first transfer.
    const int beside_max = i == 0 ? 0 : limits::kBesideMax;
    if (transfer.beside < 0 || transfer.beside > beside_max) {
      return BadSchedule(place, "beside ", transfer.beside, " is not a number from 0 to ",
                         beside_max);
    }
    left = transfer.first;
  }
  if (left > 0) return BadSchedule("no transfer holds the tensors 0-", left - 1);
  return absl::OkStatus();
}

std::string ToText(const Schedule& schedule) {
  std::string text = absl::StrCat(kScheduleTitle, "\nplanner ", schedule.planner, "\n");
  for (const Transfer& transfer : schedule.transfers) {
    absl::StrAppend(&text, "transfer ", transfer.first);
    if (transfer.last != transfer.first) absl::StrAppend(&text, "-", transfer.last);
    if (transfer.beside != 0) absl::StrAppend(&text, " beside ", transfer.beside);
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "end\n");
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view text) {
  if (text.size() > limits::kTensorTextBytesMax) {
    return BadSchedule("the schedule has ", FormatBytes(text.size()), ", more than the limit of ",
                       FormatBytes(limits::kTensorTextBytesMax));
  }
  Schedule schedule;
  bool titled = false;
  bool ended = false;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    absl::string_view words = text.substr(0, end);
    words = words.substr(0, words.find('#'));
    const absl::Status status = ReadLine(words, titled, ended, schedule);
    if (!status.ok()) return At(absl::StrCat("line ", line), status);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!ended)
    return At(absl::StrCat("line ", line), BadSchedule("the text stops before its \"end\""));
  // The text does not say how many tensors there are; the first transfer does, which holds the last
  // one. Whether a schedule fits a table is asked again where the two meet.
  SYNCOPATE_RETURN_IF_ERROR(Validate(schedule, schedule.tensors()));
  return schedule;
}

Digest DigestOf(const Schedule& schedule) {
  // Two planners that find the same transfers have found the same schedule.
  Schedule bare = schedule;
  bare.planner = "any";
  return DigestOf(absl::string_view(ToText(bare)));
}

}  // namespace syncopate
