// The checks and the text form of a pattern; docs/ds-sync.md has the grammar.
#include "model/pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate {
namespace {

constexpr absl::string_view kPatternTitle = "syncopate pattern 1";

template <typename... What>
absl::Status BadPattern(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

// The name is one word of a line of the text form, where # begins a comment.
absl::Status CheckPlannerOfGroups(absl::string_view planner) {
  if (planner.empty() || planner.size() > limits::kTensorNameBytesMax) {
    return BadPattern("planner: the name has ", planner.size(), " bytes; there must be 1 to ",
                      limits::kTensorNameBytesMax);
  }
  for (const char c : planner) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == '#') {
      return BadPattern(
          "planner: there is a character other than printable ASCII without spaces and #");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPatternSizes(int64_t workers, uint64_t rounds) {
  if (workers < 1 || workers > limits::kWorkersMax) {
    return BadPattern("workers: ", workers, " is not a number from 1 to ", limits::kWorkersMax);
  }
  if (rounds < 1 || rounds > limits::kPatternRoundsMax) {
    return BadPattern("rounds: there are ", rounds, "; there must be 1 to ",
                      limits::kPatternRoundsMax);
  }
  return absl::OkStatus();
}

// `seen` has an entry for each rank and is all -1; it comes back holding the group of each.
absl::Status CheckPartition(const Pattern::Round& round, std::vector<int>& seen) {
  const int workers = static_cast<int>(seen.size());
  int last_first = -1;
  int count = 0;
  for (size_t g = 0; g < round.size(); ++g) {
    if (round[g].empty()) return BadPattern("group ", g, " has no members");
    int last = -1;
    for (const int rank : round[g]) {
      if (rank < 0 || rank >= workers) {
        return BadPattern("worker ", rank, " is not one of the ", workers, " (0-", workers - 1,
                          ")");
      }
      int& group = seen[static_cast<size_t>(rank)];
      if (group == static_cast<int>(g))
        return BadPattern("worker ", rank, " is in its group twice");
      if (group >= 0) return BadPattern("worker ", rank, " is in two groups");
      group = static_cast<int>(g);
      ++count;
      if (rank < last) return BadPattern("group ", g, " is not sorted: ", rank, " after ", last);
      last = rank;
    }
    if (round[g][0] < last_first) {
      return BadPattern("group ", g, " begins with ", round[g][0], ", the one before it with ",
                        last_first, "; groups are sorted by their first ranks");
    }
    last_first = round[g][0];
  }
  if (count == workers) return absl::OkStatus();
  const auto missing = std::find(seen.begin(), seen.end(), -1);
  return BadPattern("worker ", missing - seen.begin(), " is in no group");
}

// "0,4-6", at most `left` ranks, which is made less by as many.
absl::StatusOr<Pattern::Group> ReadGroup(absl::string_view text, int workers, int64_t& left) {
  Pattern::Group group;
  for (const absl::string_view run : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(run, absl::MaxSplits('-', 1));
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t first, ParseInt(ends.first, 0, workers - 1));
    int64_t last = first;
    if (run.size() > ends.first.size()) {
      SYNCOPATE_ASSIGN_OR_RETURN(last, ParseInt(ends.second, first, workers - 1));
    }
    left -= last - first + 1;
    if (left < 0) return BadPattern("a worker is in two groups: members are more than workers");
    for (int64_t rank = first; rank <= last; ++rank) group.push_back(static_cast<int>(rank));
  }
  return group;
}

// Reads the lines of the text form one after the other.
class PatternReader {
 public:
  absl::Status ReadLine(absl::string_view line);
  bool ended() const { return ended_; }
  Pattern Take() { return std::move(pattern_); }

 private:
  absl::Status ReadWorkers(const std::vector<absl::string_view>& words);
  absl::Status ReadRound(const std::vector<absl::string_view>& words);

  Pattern pattern_;
  bool titled_ = false;
  bool ended_ = false;
};

absl::Status PatternReader::ReadWorkers(const std::vector<absl::string_view>& words) {
  if (words.size() != 2) return BadPattern("write \"workers N\"");
  if (pattern_.workers > 0) return BadPattern("the number of workers stands here twice");
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t workers, ParseInt(words[1], 1, limits::kWorkersMax));
  pattern_.workers = static_cast<int>(workers);
  return absl::OkStatus();
}

absl::Status PatternReader::ReadRound(const std::vector<absl::string_view>& words) {
  if (pattern_.workers == 0) return BadPattern("\"workers N\" comes before the first round");
  if (pattern_.rounds.size() == limits::kPatternRoundsMax) {
    return BadPattern("there are more than ", limits::kPatternRoundsMax, " rounds");
  }
  Pattern::Round round;
  // A round holds each rank once, so repeated ranges can take no more memory than it has.
  int64_t left = pattern_.workers;
  for (size_t i = 1; i < words.size(); ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(Pattern::Group group, ReadGroup(words[i], pattern_.workers, left));
    round.push_back(std::move(group));
  }
  Sort(round);
  std::vector<int> seen(static_cast<size_t>(pattern_.workers), -1);
  SYNCOPATE_RETURN_IF_ERROR(CheckPartition(round, seen));
  pattern_.rounds.push_back(std::move(round));
  return absl::OkStatus();
}

absl::Status PatternReader::ReadLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (ended_) return BadPattern("nothing may follow \"end\"");
  if (!titled_) {
    titled_ = absl::StripAsciiWhitespace(line) == kPatternTitle;
    return titled_ ? absl::OkStatus() : BadPattern("a pattern starts with \"", kPatternTitle, "\"");
  }
  if (words[0] == "round") return ReadRound(words);
  if (words[0] == "workers") return ReadWorkers(words);
  if (words[0] == "end" && words.size() == 1) {
    ended_ = true;
    return absl::OkStatus();
  }
  if (words[0] == "planner" && words.size() == 2) {
    if (!pattern_.planner.empty()) return BadPattern("there are two planners");
    pattern_.planner = std::string(words[1]);
    return CheckPlannerOfGroups(pattern_.planner);
  }
  return BadPattern(
      "unknown line; it may be \"planner NAME\", \"workers N\", \"round GROUP GROUP ...\" or "
      "\"end\"");
}

}  // namespace

void Sort(Pattern::Round& round) {
  std::erase_if(round, [](const Pattern::Group& group) { return group.empty(); });
  for (Pattern::Group& group : round) std::sort(group.begin(), group.end());
  std::sort(round.begin(), round.end());
}

absl::Status Validate(const Pattern& pattern) {
  SYNCOPATE_RETURN_IF_ERROR(CheckPlannerOfGroups(pattern.planner));
  SYNCOPATE_RETURN_IF_ERROR(CheckPatternSizes(pattern.workers, pattern.rounds.size()));
  std::vector<int> seen;
  for (size_t t = 0; t < pattern.rounds.size(); ++t) {
    seen.assign(static_cast<size_t>(pattern.workers), -1);
    const absl::Status status = CheckPartition(pattern.rounds[t], seen);
    if (!status.ok()) return At(absl::StrCat("rounds[", t, "]"), status);
  }
  return absl::OkStatus();
}

std::string ToText(const Pattern& pattern) {
  std::string text = absl::StrCat(kPatternTitle, "\nplanner ", pattern.planner, "\nworkers ",
                                  pattern.workers, "\n");
  for (const Pattern::Round& round : pattern.rounds) {
    absl::StrAppend(&text, "round");
    for (const Pattern::Group& group : round) absl::StrAppend(&text, " ", FormatRanks(group));
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "end\n");
  return text;
}

absl::StatusOr<Pattern> ParsePattern(absl::string_view text) {
  if (text.size() > limits::kPatternTextBytesMax) {
    return BadPattern("the pattern has ", FormatBytes(text.size()), ", more than the limit of ",
                      FormatBytes(limits::kPatternTextBytesMax));
  }
  PatternReader reader;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    absl::string_view words = text.substr(0, end);
    words = words.substr(0, words.find('#'));
    const absl::Status status = reader.ReadLine(words);
    if (!status.ok()) return At(absl::StrCat("line ", line), status);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!reader.ended()) {
    return At(absl::StrCat("line ", line), BadPattern("the text stops before its \"end\""));
  }
  Pattern pattern = reader.Take();
  SYNCOPATE_RETURN_IF_ERROR(Validate(pattern));
  return pattern;
}

Digest DigestOf(const Pattern& pattern) {
  // Two planners that find the same groups have found the same pattern.
  std::string text = ToText(pattern);
  return DigestOf(absl::string_view(text).substr(text.find("\nworkers ")));
}

}  // namespace syncopate
