#include "tools/usage_message.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace syncopate::tools {
namespace {

using Words = std::vector<std::string>;

bool LooksLikeOption(absl::string_view word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

std::string WithoutValue(absl::string_view word) {
  return std::string(word.substr(0, word.find('=')));
}

std::string WithoutDashes(absl::string_view word) {
  while (absl::ConsumePrefix(&word, "-")) {
  }
  return std::string(word);
}

// The commands that the words led to: `syncopate`, `lab`, `up`.
std::vector<const CLI::App*> Reached(const CLI::App& app) {
  std::vector<const CLI::App*> reached = {&app};
  while (!reached.back()->get_subcommands().empty()) {
    reached.push_back(reached.back()->get_subcommands().front());
  }
  return reached;
}

// `lab up`; empty for `syncopate` itself.
std::string CommandName(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  const std::string outer = CommandName(*command.get_parent());
  return absl::StrCat(outer, outer.empty() ? "" : " ", command.get_name());
}

std::string SeeHelp(const CLI::App& command) {
  const std::string name = CommandName(command);
  return absl::StrCat("syncopate ", name, name.empty() ? "" : " ", "--help shows what is possible");
}

std::vector<const CLI::Option*> Options(const CLI::App& command) {
  return command.get_options([](const CLI::Option*) { return true; });
}

std::vector<const CLI::App*> Commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

bool IsArgument(const CLI::Option& option) {
  return option.get_lnames().empty() && option.get_snames().empty();
}

bool IsFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// The option as the user wrote it, for example `-n` although it is called --ranks as well.
std::string NameAsTyped(const CLI::Option& option, const Words& words) {
  if (IsArgument(option)) return absl::StrCat("the argument \"", option.get_name(), "\"");
  for (const std::string& word : words) {
    const std::string name = WithoutValue(word);
    if (absl::StartsWith(name, "--") && option.check_lname(name.substr(2))) return name;
    if (LooksLikeOption(name) && option.check_sname(name.substr(1, 1))) return name.substr(0, 2);
  }
  return option.get_name();
}

std::string HelpOf(const CLI::Option& option) {
  return absl::StrCat("its help says: ", option.get_description());
}

// How far `given` is from `candidate`, where a beginning of a name counts as one letter wrong;
// nothing if they are not similar.
std::optional<int> Unlikeness(absl::string_view given, absl::string_view candidate) {
  const std::string a = absl::AsciiStrToLower(WithoutDashes(given));
  const std::string b = absl::AsciiStrToLower(WithoutDashes(candidate));
  const int length = static_cast<int>(a.size());
  int distance = EditDistance(a, b);
  if (length >= 3 && absl::StartsWith(b, a)) distance = std::min(distance, 1);
  if (distance > 0 && (distance >= length || distance > std::max(1, length / 3))) {
    return std::nullopt;
  }
  return distance;
}

// Keeps the candidate that is most similar to a word.
class Nearest {
 public:
  explicit Nearest(std::string word) : word_(std::move(word)) {}

  // `shown` is what the user should write for the name.
  void Consider(absl::string_view name, absl::string_view shown) {
    const std::optional<int> unlikeness = Unlikeness(word_, name);
    if (!unlikeness.has_value() || (best_.has_value() && *best_ <= *unlikeness)) return;
    best_ = unlikeness;
    shown_ = std::string(shown);
  }
  void ConsiderOptionsOf(const CLI::App& command) {
    for (const CLI::Option* option : Options(command)) {
      if (option->get_group().empty()) continue;  // hidden from users
      for (const std::string& name : option->get_lnames()) Consider(name, absl::StrCat("--", name));
      for (const std::string& name : option->get_snames()) Consider(name, absl::StrCat("-", name));
    }
  }
  // Those of `command` first, then all below: `syncopate up` means `syncopate lab up`.
  void ConsiderCommandsOf(const CLI::App& command) {
    for (const CLI::App* each : Commands(command)) {
      Consider(each->get_name(), absl::StrCat("syncopate ", CommandName(*each)));
    }
    for (const CLI::App* each : Commands(command)) ConsiderCommandsOf(*each);
  }
  std::string Question() const {
    return best_.has_value() ? absl::StrCat("; did you mean ", shown_, "? ") : "; ";
  }

 private:
  const std::string word_;
  std::optional<int> best_;
  std::string shown_;
};

std::string DescribeNoSuchOption(const CLI::App& command, absl::string_view word) {
  const std::string name = WithoutValue(word);
  Nearest nearest(name);
  nearest.ConsiderOptionsOf(command);
  return absl::StrCat("there is no option ", name, nearest.Question(), SeeHelp(command));
}

std::string DescribeUnexpected(const CLI::App& command, const std::string& word,
                               const Words& words) {
  if (LooksLikeOption(word)) return DescribeNoSuchOption(command, word);
  Words arguments;
  for (const CLI::Option* option : Options(command)) {
    if (IsArgument(*option)) arguments.push_back(option->get_name());
  }
  Nearest nearest(word);
  if (!Commands(command).empty() && arguments.empty()) {
    nearest.ConsiderCommandsOf(command);
    return absl::StrCat("there is no command \"", word, "\"", nearest.Question(), SeeHelp(command));
  }
  const auto at = std::find(words.begin(), words.end(), word);
  if (at != words.begin() && at != words.end()) {
    const CLI::Option* before = command.get_option_no_throw(*(at - 1));
    if (before != nullptr && IsFlag(*before)) {
      return absl::StrCat("\"", word, "\" is not expected: ", *(at - 1), " takes no value; ",
                          SeeHelp(command));
    }
  }
  nearest.ConsiderOptionsOf(command);
  const std::string taken =
      arguments.empty()
          ? "options only"
          : absl::StrCat("no argument but \"", absl::StrJoin(arguments, "\", \""), "\"");
  return absl::StrCat("\"", word, "\" is not expected: the command takes ", taken,
                      nearest.Question(), SeeHelp(command));
}

// The first word that no command on the way wanted, if there is one.
std::optional<std::string> Unexpected(const std::vector<const CLI::App*>& reached,
                                      const Words& words) {
  for (const CLI::App* command : reached) {
    if (command->get_prefix_command()) continue;
    for (const std::string& word : command->remaining()) {
      if (word != "--") return DescribeUnexpected(*command, word, words);
    }
  }
  return std::nullopt;
}

// The library takes whatever follows an option for its value: `--model --data mnist` is a model
// called --data.
std::optional<std::string> OptionTakenForValue(const std::vector<const CLI::App*>& reached,
                                               const Words& words) {
  for (const CLI::App* command : reached) {
    for (const CLI::Option* option : Options(*command)) {
      for (const std::string& value : option->results()) {
        if (!LooksLikeOption(value) || command->get_option_no_throw(value) == nullptr) continue;
        return absl::StrCat(NameAsTyped(*option, words), ": its value is missing: ", value,
                            ", which follows, is an option; ", HelpOf(*option));
      }
    }
  }
  return std::nullopt;
}

std::string DescribeBadValue(const CLI::Option& option, const Words& words) {
  const std::string name = NameAsTyped(option, words);
  const std::string value = absl::StrJoin(option.results(), ",");
  if (IsFlag(option)) return absl::StrCat(name, " takes no value, but \"", value, "\" was given");
  const Words type = absl::StrSplit(option.get_type_name(), absl::MaxSplits(':', 1));
  std::string wanted = absl::StrCat("a value of the form ", type[0]);
  if (type[0] == "FLOAT") wanted = "a number";
  if (type[0] == "UINT") wanted = "a whole number of at least 0";
  if (type[0] == "INT" || type[0] == "N") wanted = "a whole number";
  const std::string digits = WithoutDashes(value);
  if (absl::StartsWith(wanted, "a whole number") && !(type[0] == "UINT" && digits != value) &&
      !digits.empty() && std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    wanted = "of a size that is possible";
  }
  return absl::StrCat(name, ": \"", value, "\" is not ", wanted, "; ", HelpOf(option));
}

std::string DescribeWrongCount(const CLI::Option& option, const Words& words) {
  const std::string name = NameAsTyped(option, words);
  const Words& given = option.results();
  if (static_cast<int>(given.size()) <= option.get_items_expected_max()) {
    return absl::StrCat(name, ": its value is missing; ", HelpOf(option));
  }
  return absl::StrCat(name, " was given ", given.size(), " times, as \"",
                      absl::StrJoin(given, "\" and \""), "\"; give it once");
}

// What was the option in whose name the library complains, and what does that mean? The errors
// carry only a text, so the text is made again for each option.
class Translator {
 public:
  Translator(const std::vector<const CLI::App*>& reached, const Words& words,
             const CLI::ParseError& error)
      : reached_(reached), words_(words), error_(error), text_(error.what()) {}

  std::string Describe() const {
    switch (static_cast<CLI::ExitCodes>(error_.get_exit_code())) {
      case CLI::ExitCodes::ConversionError:
        return DescribeOption(
            [&](const CLI::Option& option) {
              return text_ == CLI::ConversionError(option.get_name(), option.results()).what() ||
                     text_ == CLI::ConversionError::TrueFalse(option.get_name()).what();
            },
            [&](const CLI::Option& option) { return DescribeBadValue(option, words_); });
      case CLI::ExitCodes::ValidationError:
        return DescribeOption([&](const CLI::Option& option) { return Begins(option, ": "); },
                              [&](const CLI::Option& option) {
                                return absl::StrCat(NameAsTyped(option, words_),
                                                    text_.substr(option.get_name().size()));
                              });
      case CLI::ExitCodes::ArgumentMismatch:
        return DescribeOption(
            [&](const CLI::Option& option) { return Begins(option, ": "); },
            [&](const CLI::Option& option) { return DescribeWrongCount(option, words_); });
      case CLI::ExitCodes::RequiredError:
        return DescribeMissing();
      case CLI::ExitCodes::ExcludesError:
        return DescribePair<CLI::ExcludesError>(" and ",
                                                " cannot be given together; leave one out");
      case CLI::ExitCodes::RequiresError:
        return DescribePair<CLI::RequiresError>(" is of use only with ", "; give both");
      default:
        return text_;
    }
  }

 private:
  using Matches = std::function<bool(const CLI::Option&)>;
  using Describes = std::function<std::string(const CLI::Option&)>;

  bool Begins(const CLI::Option& option, absl::string_view then) const {
    return absl::StartsWith(text_, absl::StrCat(option.get_name(), then));
  }

  std::string DescribeOption(const Matches& matches, const Describes& describe) const {
    for (auto command = reached_.rbegin(); command != reached_.rend(); ++command) {
      for (const CLI::Option* option : Options(**command)) {
        if (matches(*option)) return describe(*option);
      }
    }
    return text_;
  }

  std::string DescribeMissing() const {
    const CLI::App& command = *reached_.back();
    if (text_ == CLI::RequiredError::Subcommand(1).what()) {
      return absl::StrCat(
          "which command? ",
          absl::StrJoin(Commands(command), ", ", [](std::string* out, const CLI::App* each) {
            absl::StrAppend(out, each->get_name());
          }));
    }
    return DescribeOption(
        [&](const CLI::Option& option) {
          return text_ == CLI::RequiredError(option.get_name()).what();
        },
        [&](const CLI::Option& option) {
          return absl::StrCat(NameAsTyped(option, words_), " is missing; ", HelpOf(option));
        });
  }

  template <typename PairError>
  std::string DescribePair(absl::string_view between, absl::string_view after) const {
    for (const CLI::App* command : reached_) {
      for (const CLI::Option* one : Options(*command)) {
        for (const CLI::Option* other : Options(*command)) {
          if (text_ != PairError(one->get_name(), other->get_name()).what()) continue;
          return absl::StrCat(NameAsTyped(*one, words_), between, NameAsTyped(*other, words_),
                              after);
        }
      }
    }
    return text_;
  }

  const std::vector<const CLI::App*>& reached_;
  const Words& words_;
  const CLI::ParseError& error_;
  const std::string text_;
};

}  // namespace

UsageMessage DescribeUsageError(const CLI::App& app, const std::vector<std::string>& words,
                                const CLI::ParseError& error) {
  const std::vector<const CLI::App*> reached = Reached(app);
  const CLI::App& command = *reached.back();
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  std::optional<std::string> text = OptionTakenForValue(reached, words);
  // What seems to be missing may be there, mistyped.
  if (!text.has_value() &&
      (code == CLI::ExitCodes::ExtrasError || code == CLI::ExitCodes::RequiredError)) {
    text = Unexpected(reached, words);
    if (text.has_value()) return {.command = CommandName(command), .text = *std::move(text)};
  }
  if (!text.has_value()) text = Translator(reached, words, error).Describe();
  return {.command = CommandName(command), .text = absl::StrCat(*text, "; ", SeeHelp(command))};
}

absl::Status CheckWordsLeft(const CLI::App& command) {
  const Words words = command.remaining();
  if (words.empty() || !LooksLikeOption(words[0])) return absl::OkStatus();
  return absl::InvalidArgumentError(DescribeNoSuchOption(command, words[0]));
}

int EditDistance(absl::string_view a, absl::string_view b) {
  // distance[i][j]: between the first i letters of `a` and the first j of `b`.
  std::vector<std::vector<int>> distance(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) distance[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) distance[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int changed = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({changed, distance[i - 1][j] + 1, distance[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace syncopate::tools
