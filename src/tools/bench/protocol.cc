#include "tools/bench/protocol.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::tools::bench {
namespace {

constexpr int64_t kNsMax = std::numeric_limits<int64_t>::max();

// The words of `line`, if it has `count` of them and the first is `verb`.
absl::StatusOr<std::vector<absl::string_view>> WordsAfter(absl::string_view line,
                                                          absl::string_view verb, size_t count) {
  std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != count || words.front() != verb) {
    return absl::InvalidArgumentError(absl::StrCat("\"", line.substr(0, 80), "\" is not a \"", verb,
                                                   "\" line of ", count, " words"));
  }
  return words;
}

}  // namespace

std::string Format(const Hello& hello) {
  return absl::StrCat("hello ", hello.rank, " ", hello.size, " ", hello.pid);
}

absl::StatusOr<Hello> ParseHello(absl::string_view line) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto words, WordsAfter(line, "hello", 4));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t size, ParseInt(words[2], 1, limits::kLocalWorkersMax));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t rank, ParseInt(words[1], 0, size - 1));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t pid,
                             ParseInt(words[3], 2, std::numeric_limits<int>::max()));
  return Hello{static_cast<int>(rank), static_cast<int>(size), static_cast<int>(pid)};
}

std::string Format(const RunRequest& request) {
  return absl::StrCat("run ", Name(request.collective), " ", request.bytes, " ", Name(request.type),
                      " ", Name(request.op), " ", request.warmup, " ", request.iterations, " ",
                      request.check, " ",
                      request.active.empty() ? "all" : FormatRanks(request.active));
}

absl::StatusOr<RunRequest> ParseRunRequest(absl::string_view line) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto words, WordsAfter(line, "run", 9));
  RunRequest request;
  SYNCOPATE_ASSIGN_OR_RETURN(request.collective, ParseCollective(words[1]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.bytes, ParseBytes(words[2], kBufferBytesMax));
  SYNCOPATE_ASSIGN_OR_RETURN(request.type, ParseDataType(words[3]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.op, ParseReduceOp(words[4]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.warmup, ParseInt(words[5], 0, kIterationsMax));
  SYNCOPATE_ASSIGN_OR_RETURN(request.iterations, ParseInt(words[6], 1, kIterationsMax));
  SYNCOPATE_ASSIGN_OR_RETURN(request.check, ParseInt(words[7], 0, kCheckedCallsMax));
  if (words[8] != "all") {
    SYNCOPATE_ASSIGN_OR_RETURN(request.active, ParseRanks(words[8], limits::kWorkersMax));
  }
  if (request.bytes % SizeOf(request.type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.bytes, " bytes are not a whole number of ", Name(request.type)));
  }
  return request;
}

std::string Format(const RankResult& result) {
  std::string line = absl::StrCat("result ", result.wrong, " ", result.samples_ns.size());
  for (int64_t ns : result.samples_ns) absl::StrAppend(&line, " ", ns);
  return line;
}

absl::StatusOr<RankResult> ParseReply(absl::string_view line) {
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, "unsupported ")) return absl::UnimplementedError(text);
  if (absl::ConsumePrefix(&text, "refused ")) return absl::InvalidArgumentError(text);
  if (absl::ConsumePrefix(&text, "error ")) return absl::InternalError(text);
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  RankResult result;
  uint64_t samples = 0;
  if (words.size() < 3 || words[0] != "result" || !absl::SimpleAtoi(words[1], &result.wrong) ||
      !absl::SimpleAtoi(words[2], &samples) || samples != words.size() - 3) {
    return absl::InternalError(
        absl::StrCat("\"", line.substr(0, 80), "\" is not a reply of a driver"));
  }
  result.samples_ns.reserve(samples);
  for (size_t i = 3; i < words.size(); ++i) {
    const absl::StatusOr<int64_t> ns = ParseInt(words[i], 0, kNsMax);
    if (!ns.ok()) return absl::InternalError(ns.status().message());
    result.samples_ns.push_back(*ns);
  }
  return result;
}

bool EndsAll(absl::string_view line) {
  return absl::StartsWith(line, "error ") || absl::StartsWith(line, "refused ");
}

std::string FormatError(const absl::Status& error) {
  const std::string text = absl::StrReplaceAll(error.message(), {{"\n", " "}});
  if (absl::IsUnimplemented(error)) return absl::StrCat("unsupported ", text);
  return absl::StrCat(absl::IsInvalidArgument(error) ? "refused " : "error ", text);
}

}  // namespace syncopate::tools::bench
