// Changes to a lab that is up, one by one or by a scenario.
#include <poll.h>

#include <cerrno>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/lab.h"
#include "lab/scenario.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "tools/lab/actions.h"

namespace syncopate::tools::labtool {
namespace {

struct Made {
  std::string lab;
  std::string name;
};

absl::StatusOr<Made> Make(const Arguments& arguments) {
  // These two may stand anywhere among the words.
  std::vector<std::string> words = arguments.words;
  SYNCOPATE_ASSIGN_OR_RETURN(std::string name, lab::TakeOption(words, "--lab"));
  SYNCOPATE_ASSIGN_OR_RETURN(std::string as, lab::TakeOption(words, "--as"));
  if (name.empty()) name = arguments.lab;
  if (as.empty()) as = arguments.as;
  SYNCOPATE_ASSIGN_OR_RETURN(lab::Lab chosen, lab::Lab::Open(name, MonotonicClock()));
  SYNCOPATE_ASSIGN_OR_RETURN(lab::Change change,
                             lab::ParseChange(chosen.plan().spec, std::move(words)));
  SYNCOPATE_ASSIGN_OR_RETURN(std::string given, chosen.Apply(std::move(change), as));
  return Made{chosen.name(), given};
}

// False if it was interrupted before that time.
bool WaitUntil(int64_t at_ns, const Clock& clock, int interrupt_fd) {
  while (true) {
    const int64_t left_ns = at_ns - clock.NowNs();
    pollfd watched = {interrupt_fd, POLLIN, 0};
    constexpr int64_t kLongestMs = 60'000;
    const int64_t wait_ms =
        std::min(kLongestMs, std::max<int64_t>(0, (left_ns + 999'999) / 1'000'000));
    const int ready = poll(&watched, 1, static_cast<int>(wait_ms));
    if (ready > 0) return false;
    if (ready == 0 && clock.NowNs() >= at_ns) return true;
  }
}

absl::Status Play(lab::Lab& chosen, const std::vector<lab::Event>& events, bool keep) {
  const Clock& clock = MonotonicClock();
  const InterruptScope interrupt;
  const int64_t begin_ns = clock.NowNs();
  std::vector<std::string> standing;
  absl::Status status;
  for (const lab::Event& event : events) {
    if (!WaitUntil(begin_ns + event.at_ns, clock, interrupt.fd())) {
      status = Interrupted("what the scenario had changed is undone");
      break;
    }
    std::cout << absl::StrFormat("%8.2f s  %s\n",
                                 static_cast<double>(clock.NowNs() - begin_ns) * 1e-9, event.text)
              << std::flush;
    if (event.undo) {
      status = chosen.Undo(event.name);
      standing.erase(std::remove(standing.begin(), standing.end(), event.name), standing.end());
    } else {
      status = chosen.Apply(event.change, event.name).status();
      if (status.ok()) standing.push_back(event.name);
    }
    if (!status.ok()) {
      status = At(event.text, status);
      break;
    }
  }
  if (status.ok() && keep) return status;
  for (const std::string& name : standing) chosen.Undo(name).IgnoreError();
  return status;
}

}  // namespace

int MakeChange(const Arguments& arguments) {
  const absl::StatusOr<Made> made = Make(arguments);
  const std::string command = absl::StrCat("lab ", arguments.words[0]);
  if (!made.ok()) return Complain(command, made.status());
  std::cout << absl::StrCat(made->name, "  (undo: syncopate lab undo --lab ", made->lab, " ",
                            made->name, ")\n");
  return kDone;
}

int Undo(const Arguments& arguments) {
  absl::StatusOr<lab::Lab> chosen = lab::Lab::Open(arguments.lab, MonotonicClock());
  if (!chosen.ok()) return Complain("lab undo", chosen.status());
  const absl::Status undone = chosen->Undo(arguments.name);
  if (!undone.ok()) return Complain("lab undo", undone);
  return kDone;
}

int PlayScenario(const Arguments& arguments) {
  absl::StatusOr<lab::Lab> chosen = lab::Lab::Open(arguments.lab, MonotonicClock());
  if (!chosen.ok()) return Complain("lab scenario", chosen.status());
  const absl::StatusOr<std::string> text = ReadFile(arguments.file, lab::kFileBytesMax);
  if (!text.ok()) return Complain("lab scenario", text.status());
  const absl::StatusOr<std::vector<lab::Event>> events =
      lab::ParseScenario(chosen->plan().spec, *text, arguments.file);
  if (!events.ok()) return Complain("lab scenario", events.status());
  const absl::Status played = Play(*chosen, *events, arguments.keep);
  if (!played.ok()) return Complain("lab scenario", played);
  return kDone;
}

}  // namespace syncopate::tools::labtool
