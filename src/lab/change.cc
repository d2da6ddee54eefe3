#include "lab/change.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/forwarding.h"

namespace syncopate::lab {
namespace {

using Words = std::vector<std::string>;

constexpr char kLinkForm[] = "link A B rate 50mbit [--one-way]";
constexpr char kCutForm[] = "cut A [B] [--one-way in|out]";
constexpr char kFlowForm[] = "flow add A B [--udp] [--rate RATE] [--seconds S]";
constexpr char kSlowForm[] = "slow HOST 5x [--cores C]";

absl::Status WrongForm(absl::string_view form) {
  return absl::InvalidArgumentError(absl::StrCat("write it as ", form));
}

bool TakeFlag(Words& words, absl::string_view flag) {
  const auto found = std::find(words.begin(), words.end(), flag);
  if (found == words.end()) return false;
  words.erase(found);
  return true;
}

std::string Neighbours(const Spec& spec, int node) {
  std::vector<std::string> names;
  for (const Link& link : spec.links) {
    if (link.a == node || link.b == node) names.push_back(spec.nodes[OtherEnd(link, node)].name);
  }
  return absl::StrJoin(names, ", ");
}

absl::Status NoLink(const Spec& spec, int a, int b) {
  return absl::InvalidArgumentError(
      absl::StrCat("there is no link between ", spec.nodes[a].name, " and ", spec.nodes[b].name,
                   "; ", spec.nodes[a].name, " is joined to ", Neighbours(spec, a)));
}

absl::StatusOr<Change> ParseLink(const Spec& spec, Words words) {
  Change change;
  change.kind = ChangeKind::kRate;
  change.back = !TakeFlag(words, "--one-way");
  if (words.size() != 4 || words[2] != "rate") return WrongForm(kLinkForm);
  SYNCOPATE_ASSIGN_OR_RETURN(change.a, FindNode(spec, words[0]));
  SYNCOPATE_ASSIGN_OR_RETURN(change.b, FindNode(spec, words[1]));
  SYNCOPATE_ASSIGN_OR_RETURN(change.rate, ParseLinkRate(words[3]));
  if (FindLink(spec, change.a, change.b) < 0) return NoLink(spec, change.a, change.b);
  return change;
}

absl::StatusOr<Change> ParseCut(const Spec& spec, Words words) {
  Change change;
  change.kind = ChangeKind::kCut;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string way, TakeOption(words, "--one-way"));
  if (!way.empty() && way != "in" && way != "out") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--one-way: \"", way, "\" is neither in (nothing reaches A) nor out (nothing leaves A)"));
  }
  change.forward = way != "in";
  change.back = way != "out";
  if (words.empty() || words.size() > 2) return WrongForm(kCutForm);
  SYNCOPATE_ASSIGN_OR_RETURN(change.a, FindNode(spec, words[0]));
  if (words.size() == 1) return change;
  SYNCOPATE_ASSIGN_OR_RETURN(change.b, FindNode(spec, words[1]));
  const bool hosts = spec.nodes[change.a].is_host && spec.nodes[change.b].is_host;
  if (change.a == change.b) return WrongForm(kCutForm);
  if (!hosts && FindLink(spec, change.a, change.b) < 0) return NoLink(spec, change.a, change.b);
  return change;
}

absl::StatusOr<Change> ParseFlow(const Spec& spec, Words words) {
  Change change;
  change.kind = ChangeKind::kFlow;
  change.udp = TakeFlag(words, "--udp");
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string rate, TakeOption(words, "--rate"));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string seconds, TakeOption(words, "--seconds"));
  if (words.size() != 3 || words[0] != "add" || words[1] == words[2]) return WrongForm(kFlowForm);
  SYNCOPATE_ASSIGN_OR_RETURN(change.a, FindHost(spec, words[1]));
  SYNCOPATE_ASSIGN_OR_RETURN(change.b, FindHost(spec, words[2]));
  if (!rate.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(change.rate, ParseLinkRate(rate));
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckFlowRate(change.udp, change.rate));
  if (!seconds.empty()) {
    const absl::StatusOr<int64_t> number = ParseInt(seconds, 1, kFlowSecondsMax);
    if (!number.ok()) return At("--seconds", number.status());
    change.seconds = static_cast<int>(*number);
  }
  return change;
}

absl::StatusOr<Change> ParseSlow(const Spec& spec, Words words) {
  Change change;
  change.kind = ChangeKind::kSlow;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string cores, TakeOption(words, "--cores"));
  if (words.size() != 2) return WrongForm(kSlowForm);
  SYNCOPATE_ASSIGN_OR_RETURN(change.a, FindHost(spec, words[0]));
  absl::string_view factor = words[1];
  if (!absl::ConsumeSuffix(&factor, "x")) return WrongForm(kSlowForm);
  const absl::StatusOr<double> number = ParseDouble(factor, 1, kSlowFactorMax);
  if (!number.ok()) return At(absl::StrCat("factor \"", words[1], "\""), number.status());
  change.factor = *number;
  if (!cores.empty()) {
    const absl::StatusOr<double> value = ParseDouble(cores, 0.01, 4096);
    if (!value.ok()) return At("--cores", value.status());
    change.cores = *value;
  }
  return change;
}

}  // namespace

absl::StatusOr<std::string> TakeOption(std::vector<std::string>& words, absl::string_view flag) {
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (absl::ConsumePrefix(&word, absl::StrCat(flag, "="))) {
      std::string value(word);
      words.erase(words.begin() + static_cast<ptrdiff_t>(i));
      return value;
    }
    if (words[i] != flag) continue;
    if (i + 1 == words.size()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": its value is missing"));
    }
    std::string value = words[i + 1];
    words.erase(words.begin() + static_cast<ptrdiff_t>(i),
                words.begin() + static_cast<ptrdiff_t>(i) + 2);
    return value;
  }
  return std::string();
}

absl::StatusOr<Change> ParseChange(const Spec& spec, std::vector<std::string> words) {
  const std::string verb = words.empty() ? "" : words[0];
  Words rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  absl::StatusOr<Change> change =
      verb == "link"   ? ParseLink(spec, std::move(rest))
      : verb == "cut"  ? ParseCut(spec, std::move(rest))
      : verb == "flow" ? ParseFlow(spec, std::move(rest))
      : verb == "slow" ? ParseSlow(spec, std::move(rest))
                       : absl::InvalidArgumentError(absl::StrCat("this is no change; possible are ",
                                                                 kLinkForm, "; ", kCutForm, "; ",
                                                                 kFlowForm, "; ", kSlowForm));
  if (!change.ok()) return At(absl::StrCat("\"", absl::StrJoin(words, " "), "\""), change.status());
  return change;
}

std::string ToWords(const Spec& spec, const Change& change) {
  const std::string& a = spec.nodes[change.a].name;
  const std::string b = change.b < 0 ? "" : spec.nodes[change.b].name;
  switch (change.kind) {
    case ChangeKind::kRate:
      return absl::StrCat("link ", a, " ", b, " rate ", FormatLinkRate(change.rate),
                          change.back ? "" : " --one-way");
    case ChangeKind::kCut:
      return absl::StrCat("cut ", a, b.empty() ? "" : " ", b,
                          !change.back      ? " --one-way out"
                          : !change.forward ? " --one-way in"
                                            : "");
    case ChangeKind::kFlow:
      return absl::StrCat("flow add ", a, " ", b, change.udp ? " --udp" : "", " --rate ",
                          FormatLinkRate(change.rate), " --seconds ", change.seconds);
    case ChangeKind::kSlow:
      return absl::StrCat("slow ", a, " ", change.factor, "x",
                          change.cores > 0 ? absl::StrCat(" --cores ", change.cores) : "");
  }
  std::abort();
}

Settings Effective(const Spec& spec, const std::vector<Change>& changes) {
  Settings settings;
  for (const Link& link : spec.links) {
    settings.links.push_back({Setting{link.rate_forward, false}, Setting{link.rate_back, false}});
  }
  // Whether the change holds for that direction (0: a to b) of that link, which it is about.
  const auto holds = [&](const Change& change, const Link& link, int direction) {
    const bool from_first = (link.a == change.a) == (direction == 0);
    return from_first ? change.forward : change.back;
  };
  for (const Change& change : changes) {
    if (change.kind != ChangeKind::kRate && change.kind != ChangeKind::kCut) continue;
    const int only = change.b < 0 ? -1 : FindLink(spec, change.a, change.b);
    if (change.b >= 0 && only < 0) {  // a cut between hosts that have no link of their own
      if (change.forward) settings.blocked.insert({change.a, change.b});
      if (change.back) settings.blocked.insert({change.b, change.a});
      continue;
    }
    for (size_t i = 0; i < spec.links.size(); ++i) {
      const Link& link = spec.links[i];
      const bool touched =
          only >= 0 ? static_cast<int>(i) == only : link.a == change.a || link.b == change.a;
      for (const int direction : {0, 1}) {
        if (!touched || !holds(change, link, direction)) continue;
        if (change.kind == ChangeKind::kRate) settings.links[i][direction].rate = change.rate;
        if (change.kind == ChangeKind::kCut) settings.links[i][direction].cut = true;
      }
    }
  }
  return settings;
}

}  // namespace syncopate::lab
