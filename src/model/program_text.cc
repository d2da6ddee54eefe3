// The text form of a program: one fact a line. docs/program.md has the grammar. Writing and reading
// round-trip, and the reader accepts only programs that Validate() accepts: it uses the same checks
// (program_checks.h), so that it can name the line of a fault.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/program.h"
#include "model/program_checks.h"

namespace syncopate {
namespace {

constexpr absl::string_view kProgramTitle = "syncopate program 1";
constexpr int kSizesPerLine = 16;

template <typename... What>
absl::Status BadProgram(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

// The differences of `bounds`, as "3x256 255": equal neighbours are counted. Nothing for no chunks.
template <typename Bounds>
void AppendSizes(absl::string_view keyword, const Bounds& bounds, std::string* text) {
  int on_line = 0;
  for (size_t i = 1; i < bounds.size();) {
    const auto size = bounds[i] - bounds[i - 1];
    size_t end = i;
    while (end < bounds.size() && bounds[end] - bounds[end - 1] == size) ++end;
    if (on_line == 0) absl::StrAppend(text, keyword);
    absl::StrAppend(text, " ");
    if (end - i > 1) absl::StrAppend(text, end - i, "x");
    absl::StrAppend(text, size);
    on_line = (on_line + 1) % kSizesPerLine;
    if (on_line == 0) absl::StrAppend(text, "\n");
    i = end;
  }
  if (on_line != 0) absl::StrAppend(text, "\n");
}

// Reads the lines of a program one by one. A line is cut into words first; `words_` points into the
// text that is being read.
class Reader {
 public:
  // One pass, line by line, which knows where each fault stands. Memory is taken as lines are read,
  // so that it is bounded by the size of the text but for the repeats of ReadSizes(), which has a
  // limit.
  absl::StatusOr<Program> Read(absl::string_view text) {
    if (text.size() > limits::kProgramTextBytesMax) {
      return BadProgram("the program has ", FormatBytes(text.size()), ", more than the limit of ",
                        FormatBytes(limits::kProgramTextBytesMax));
    }
    while (!text.empty()) {
      ++line_;
      const size_t end = std::min(text.find('\n'), text.size());
      absl::Status status = ReadLine(text.substr(0, end));
      if (!status.ok()) return At(absl::StrCat("line ", line_at_fault_.value_or(line_)), status);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (stage_ == Stage::kEnd) return std::move(program_);
    return At(absl::StrCat("line ", line_), BadProgram("the text stops before its \"end\""));
  }

 private:
  enum class Stage { kStart, kHead, kSteps, kEnd };

  absl::Status ReadLine(absl::string_view line) {
    line = line.substr(0, line.find('#'));
    Split(line);
    if (words_.empty()) return absl::OkStatus();
    const absl::string_view keyword = words_[0];
    switch (stage_) {
      case Stage::kStart:
        if (absl::StripAsciiWhitespace(line) != kProgramTitle) {
          return BadProgram("a program starts with \"", kProgramTitle, "\"");
        }
        stage_ = Stage::kHead;
        return absl::OkStatus();
      case Stage::kHead:
        if (keyword != "worker" && keyword != "end") {
          return ReadHead(keyword, absl::StripAsciiWhitespace(line).substr(keyword.size()));
        }
        SYNCOPATE_RETURN_IF_ERROR(FinishHead());
        stage_ = Stage::kSteps;
        [[fallthrough]];
      case Stage::kSteps:
        if (keyword == "worker") return ReadWorker();
        if (keyword != "end") return ReadStep();
        if (words_.size() > 1) return BadProgram("nothing may follow \"end\"");
        stage_ = Stage::kEnd;
        return absl::OkStatus();
      case Stage::kEnd:
        return BadProgram("nothing may follow \"end\"");
    }
    return absl::OkStatus();
  }

  void Split(absl::string_view line) {
    words_.clear();
    for (size_t i = 0; i < line.size();) {
      if (absl::ascii_isspace(static_cast<unsigned char>(line[i]))) {
        ++i;
        continue;
      }
      const size_t begin = i;
      while (i < line.size() && !absl::ascii_isspace(static_cast<unsigned char>(line[i]))) ++i;
      words_.push_back(line.substr(begin, i - begin));
    }
  }

  absl::Status ReadHead(absl::string_view keyword, absl::string_view rest) {
    rest = absl::StripAsciiWhitespace(rest);
    // Tables of sizes may go on in further lines; everything else is said once.
    const bool first = line_of_.emplace(keyword, line_).second;
    if (keyword == "data") return ReadSizes(limits::kElementsMax, &program_.data_bounds);
    if (keyword == "scratch") return ReadSizes(limits::kElementsMax, &program_.scratch_bounds);
    if (keyword == "blocks") {
      if (program_.blocks.empty()) program_.blocks.push_back(0);
      return ReadSizes(limits::kChunksMax, &program_.blocks);
    }
    if (!first) return BadProgram("a second \"", keyword, "\"");
    if (keyword == "algorithm") {
      if (rest.size() > limits::kAlgorithmBytesMax) return BadProgram("the name is too long");
      program_.algorithm = std::string(rest);
      return absl::OkStatus();
    }
    if (keyword == "collective") {
      SYNCOPATE_ASSIGN_OR_RETURN(program_.collective, ParseCollective(rest));
      return absl::OkStatus();
    }
    if (keyword == "active") {
      SYNCOPATE_ASSIGN_OR_RETURN(program_.active, ParseRanks(rest, limits::kWorkersMax));
      return absl::OkStatus();
    }
    int* number = keyword == "workers"  ? &program_.workers
                  : keyword == "root"   ? &program_.root
                  : keyword == "target" ? &program_.target
                                        : nullptr;
    if (number == nullptr) {
      return BadProgram(
          "\"", keyword,
          "\" is not one of collective, algorithm, workers, active, root, target, data, "
          "scratch, blocks, worker and end");
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t value, ParseInt(rest, 0, limits::kWorkersMax));
    *number = static_cast<int>(value);
    return absl::OkStatus();
  }

  // Appends to a table of bounds what "3x256 255" says.
  template <typename Bound>
  absl::Status ReadSizes(uint64_t sum_max, std::vector<Bound>* bounds) {
    for (size_t i = 1; i < words_.size(); ++i) {
      const std::pair<absl::string_view, absl::string_view> parts = Cut(words_[i], 'x');
      int64_t repeat = 1;
      absl::string_view size_text = parts.first;
      if (parts.second.data() != nullptr) {
        SYNCOPATE_ASSIGN_OR_RETURN(repeat, ParseInt(parts.first, 1, limits::kChunksMax));
        size_text = parts.second;
      }
      SYNCOPATE_ASSIGN_OR_RETURN(const int64_t size,
                                 ParseInt(size_text, 0, static_cast<int64_t>(sum_max)));
      if (bounds->size() - 1 + static_cast<uint64_t>(repeat) > limits::kChunksMax) {
        return BadProgram("more than the limit of ", limits::kChunksMax, " chunks");
      }
      for (int64_t k = 0; k < repeat; ++k) {
        const uint64_t bound = uint64_t{bounds->back()} + static_cast<uint64_t>(size);
        if (bound > sum_max)
          return BadProgram("the sizes add up to more than the limit of ", sum_max);
        bounds->push_back(static_cast<Bound>(bound));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FinishHead() {
    for (absl::string_view keyword : {"collective", "workers", "active"}) {
      if (!line_of_.contains(keyword))
        return BadProgram("before this line \"", keyword, "\" is missing");
    }
    // The head is checked as a whole before the first step, because the limits of a step (chunks,
    // workers) are in it. The fault is told at the line of its field, which was read before.
    if (std::optional<HeadFault> fault = FindHeadFault(program_)) {
      const auto line = line_of_.find(fault->field);
      if (line != line_of_.end()) line_at_fault_ = line->second;
      return BadProgram(fault->field, ": ", fault->what);
    }
    program_.steps.resize(static_cast<size_t>(program_.workers));
    return absl::OkStatus();
  }

  absl::Status ReadWorker() {
    if (words_.size() != 2) return BadProgram("expected \"worker RANK\"");
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t worker, ParseInt(words_[1], 0, program_.workers - 1));
    if (worker <= worker_)
      return BadProgram("worker ", worker, " does not come after worker ", worker_);
    worker_ = static_cast<int>(worker);
    return absl::OkStatus();
  }

  // "7: receive-reduce data 4-5 from 1 after 3 6", "8: copy data 4 from scratch 0"
  absl::Status ReadStep() {
    if (worker_ < 0) return BadProgram("a step stands before the first \"worker\"");
    std::vector<Step>& steps = program_.steps[worker_];
    // Steps are numbered for the reader and for `after`. Numbers that must be right are a check
    // against lines that were lost or moved.
    if (words_[0] != absl::StrCat(steps.size(), ":")) {
      return BadProgram("expected step \"", steps.size(), ":\" of worker ", worker_,
                        ", \"worker\" or \"end\", not \"", words_[0], "\"");
    }
    if (steps.size() >= limits::kStepsPerWorkerMax) {
      return BadProgram("more than the limit of ", limits::kStepsPerWorkerMax, " steps");
    }
    steps.emplace_back();
    Step& step = steps.back();
    SYNCOPATE_ASSIGN_OR_RETURN(step.kind, ReadKind(Word(1)));
    const bool message = IsMessage(step.kind);
    SYNCOPATE_RETURN_IF_ERROR(ReadRun(2, &step.space, &step.chunk, &step.count));
    const absl::string_view preposition = step.kind == StepKind::kSend ? "to" : "from";
    if (Word(4) != preposition) {
      return BadProgram("expected \"", preposition, "\", not \"", Word(4), "\"");
    }
    size_t next = 0;
    if (message) {
      SYNCOPATE_ASSIGN_OR_RETURN(const int64_t peer, ParseInt(Word(5), 0, program_.workers - 1));
      step.peer = static_cast<int32_t>(peer);
      next = 6;
    } else {
      uint32_t count = 0;
      SYNCOPATE_RETURN_IF_ERROR(ReadRun(5, &step.source_space, &step.source_chunk, &count));
      if (count != step.count) {
        return BadProgram("the step writes ", step.count, " chunks and reads ", count);
      }
      next = 7;
    }
    if (next < words_.size()) SYNCOPATE_RETURN_IF_ERROR(ReadAfter(next, &step));
    // Here and not at the end, so that the error names this line.
    return CheckStep(program_, worker_, steps.size() - 1);
  }

  absl::Status ReadAfter(size_t next, Step* step) {
    if (words_[next] != "after")
      return BadProgram("expected \"after\", not \"", words_[next], "\"");
    if (next + 1 == words_.size()) return BadProgram("\"after\" names no step");
    for (size_t i = next + 1; i < words_.size(); ++i) {
      SYNCOPATE_ASSIGN_OR_RETURN(const int64_t earlier,
                                 ParseInt(words_[i], 0, limits::kStepsPerWorkerMax - 1));
      step->after.push_back(static_cast<uint32_t>(earlier));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StepKind> ReadKind(absl::string_view word) const {
    for (StepKind kind : {StepKind::kSend, StepKind::kReceive, StepKind::kReceiveReduce,
                          StepKind::kCopy, StepKind::kReduce}) {
      if (word == Name(kind)) return kind;
    }
    return BadProgram("\"", word,
                      "\" is not one of send, receive, receive-reduce, copy and reduce");
  }

  // "data 4-5", from word `at` on.
  absl::Status ReadRun(size_t at, Space* space, uint32_t* chunk, uint32_t* count) const {
    if (Word(at) != "data" && Word(at) != "scratch") {
      return BadProgram("expected \"data\" or \"scratch\", not \"", Word(at), "\"");
    }
    *space = Word(at) == "data" ? Space::kData : Space::kScratch;
    const auto [first_text, last_text] = Cut(Word(at + 1), '-');
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t first, ParseInt(first_text, 0, limits::kChunksMax));
    int64_t last = first;
    if (last_text.data() != nullptr) {
      SYNCOPATE_ASSIGN_OR_RETURN(last, ParseInt(last_text, first, limits::kChunksMax));
    }
    *chunk = static_cast<uint32_t>(first);
    *count = static_cast<uint32_t>(last - first + 1);
    return absl::OkStatus();
  }

  // The parts before and after the first `separator`; the second has no data() if there is none.
  static std::pair<absl::string_view, absl::string_view> Cut(absl::string_view word,
                                                             char separator) {
    const size_t at = word.find(separator);
    if (at == absl::string_view::npos) return {word, absl::string_view()};
    return {word.substr(0, at), word.substr(at + 1)};
  }

  absl::string_view Word(size_t i) const { return i < words_.size() ? words_[i] : ""; }

  Program program_;
  Stage stage_ = Stage::kStart;
  int worker_ = -1;
  int64_t line_ = 0;
  std::vector<absl::string_view> words_;
  absl::flat_hash_map<std::string, int64_t> line_of_;  // by keyword of the head
  std::optional<int64_t> line_at_fault_;               // if it is not the last line that was read
};

}  // namespace

std::string ToText(const Program& program) {
  std::string text = absl::StrCat(kProgramTitle, "\ncollective ", Name(program.collective), "\n");
  if (!program.algorithm.empty()) absl::StrAppend(&text, "algorithm ", program.algorithm, "\n");
  absl::StrAppend(&text, "workers ", program.workers, "\nactive ", FormatRanks(program.active),
                  "\n");
  if (program.root >= 0) absl::StrAppend(&text, "root ", program.root, "\n");
  if (program.target >= 0) absl::StrAppend(&text, "target ", program.target, "\n");
  AppendSizes("data", program.data_bounds, &text);
  AppendSizes("scratch", program.scratch_bounds, &text);
  AppendSizes("blocks", program.blocks, &text);
  for (size_t worker = 0; worker < program.steps.size(); ++worker) {
    const std::vector<Step>& steps = program.steps[worker];
    if (steps.empty()) continue;
    absl::StrAppend(&text, "worker ", worker, "\n");
    for (size_t i = 0; i < steps.size(); ++i) {
      absl::StrAppend(&text, "  ", i, ": ", StepText(steps[i]));
      if (!steps[i].after.empty()) absl::StrAppend(&text, " after");
      for (uint32_t earlier : steps[i].after) absl::StrAppend(&text, " ", earlier);
      absl::StrAppend(&text, "\n");
    }
  }
  absl::StrAppend(&text, "end\n");
  return text;
}

absl::StatusOr<Program> ParseProgram(absl::string_view text) { return Reader().Read(text); }

}  // namespace syncopate
