#include "strategy/strategy.h"

#include "absl/strings/str_cat.h"
#include "base/parse.h"

namespace syncopate::strategy {
namespace {

// One function for each alternative of a variant.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

const char* Name(Movement movement) {
  switch (movement) {
    case Movement::kAverage:
      return "average";
    case Movement::kPush:
      return "push";
    case Movement::kPull:
      return "pull";
  }
  return "";
}

const char* Name(Update update) {
  switch (update) {
    case Update::kStepAveraged:
      return "step-averaged";
    case Update::kStepLocal:
      return "step-local";
    case Update::kAdopt:
      return "adopt";
  }
  return "";
}

const char* Name(Request request) {
  switch (request) {
    case Request::kGroup:
      return "group";
    case Request::kPermission:
      return "permission";
    case Request::kGroupDone:
      return "group-done";
  }
  return "";
}

}  // namespace

std::string ToText(const Event& event) {
  return std::visit(
      Overloaded{
          [](const IterationBegan& e) {
            return absl::StrCat("iteration-began ", e.iteration, " samples ", e.samples, " of ",
                                e.all_samples);
          },
          [](const ForwardNeeds& e) { return absl::StrCat("forward-needs ", e.tensor); },
          [](const GradientReady& e) { return absl::StrCat("gradient-ready ", e.tensor); },
          [](const BackwardEnded&) { return std::string("backward-ended"); },
          [](const TransferDone& e) { return absl::StrCat("transfer-done ", e.transfer); },
          [](const GroupAssigned& e) {
            return absl::StrCat("group-assigned ", e.ticket, " ", FormatRanks(e.members));
          },
          [](const PermissionGranted& e) {
            return absl::StrCat("permission-granted ", e.ticket, " samples ", e.samples);
          },
          [](const WorkerLost& e) { return absl::StrCat("worker-lost ", e.rank); },
          [](const NewSchedule& e) {
            return absl::StrCat("new-schedule of ", e.schedule->transfers.size(), " from ", e.from);
          },
          [](const LinkMeasured& e) {
            return absl::StrCat("link-measured ", e.rank, " ", e.bandwidth);
          },
          [](const TimePassed&) { return std::string("time-passed"); },
          [](const Drain&) { return std::string("drain"); },
      },
      event);
}

std::string ToText(const Command& command) {
  return std::visit(
      Overloaded{
          [](const StartTransfer& c) {
            std::string text =
                absl::StrCat("start ", c.transfer, ": ", Name(c.movement),
                             c.content == Content::kGradients ? " gradients " : " parameters ",
                             c.first, "-", c.last);
            if (!c.members.empty()) absl::StrAppend(&text, " among ", FormatRanks(c.members));
            if (c.target >= 0) absl::StrAppend(&text, " with ", c.target);
            absl::StrAppend(&text, " weight ", c.weight);
            if (c.priority != 0) absl::StrAppend(&text, " priority ", c.priority);
            return text;
          },
          [](const ApplyUpdate& c) {
            return absl::StrCat("apply ", Name(c.update), " ", c.first, "-", c.last, " of ",
                                c.transfer);
          },
          [](const Proceed& c) { return absl::StrCat("proceed ", c.tensor); },
          [](const AskService& c) {
            return absl::StrCat("ask ", Name(c.request), " ", c.ticket, " iteration ", c.iteration);
          },
          [](const SetBatch& c) { return absl::StrCat("set-batch ", c.samples); },
          [](const WakeAt& c) { return absl::StrCat("wake-at ", c.seconds); },
          [](const Drained&) { return std::string("drained"); },
          [](const Fail& c) { return absl::StrCat("fail ", c.status.ToString()); },
      },
      command);
}

}  // namespace syncopate::strategy
