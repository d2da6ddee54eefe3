// Matching of sends and receives.
#include "model/program_steps.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/program_checks.h"

namespace syncopate {
namespace {

using Id = StepTable::Id;

// The sends of a program by whom they are for; those to one receiver by the sender's number, and in its
// order. It is sorted by counting: programs of many workers have very many steps, and are matched while a
// call waits.
class SendsByReceiver {
 public:
  SendsByReceiver(const StepTable& table, int workers) : begin_(static_cast<size_t>(workers) + 1) {
    for (Id id = 0; id < table.size(); ++id) {
      if (table[id].kind == StepKind::kSend) ++begin_[static_cast<size_t>(table[id].peer) + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    sends_.resize(begin_.back());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (Id id = 0; id < table.size(); ++id) {
      if (table[id].kind == StepKind::kSend) {
        sends_[next[static_cast<size_t>(table[id].peer)]++] = id;
      }
    }
  }

  absl::Span<const Id> To(int receiver) const {
    const size_t worker = static_cast<size_t>(receiver);
    return absl::MakeConstSpan(sends_).subspan(begin_[worker], begin_[worker + 1] - begin_[worker]);
  }

 private:
  std::vector<size_t> begin_;  // by receiver
  std::vector<Id> sends_;
};

// What one worker sends to another.
struct Channel {
  int receiver = -1;
  const Id* next = nullptr;  // the sends, one after the other
  size_t sends = 0;
  size_t received = 0;  // those that have their receive
};

}  // namespace

// Steps of all workers in one numbering: those of worker 0, then those of worker 1, and so on.
StepTable::StepTable(const Program& program) : program_(&program) {
  begin_.push_back(0);
  for (int worker = 0; worker < program.workers; ++worker) {
    begin_.push_back(begin_.back() + static_cast<Id>(program.steps[worker].size()));
    worker_.resize(begin_.back(), worker);
  }
  partner_.assign(worker_.size(), kNone);
}

absl::StatusOr<StepTable> StepTable::Make(const Program& program) {
  StepTable table(program);
  // The k-th send of a channel belongs to its k-th receive, in the order of the two programs. That
  // is what transports do, which keep the messages of a pair in order.
  const SendsByReceiver sends(table, program.workers);
  std::vector<Channel> from(static_cast<size_t>(program.workers));  // by sender, to one receiver
  for (int receiver = 0; receiver < program.workers; ++receiver) {
    for (const Id& send : sends.To(receiver)) {
      Channel& channel = from[static_cast<size_t>(table.worker(send))];
      if (channel.receiver != receiver) channel = {.receiver = receiver, .next = &send};
      ++channel.sends;
    }
    for (Id id = table.begin(receiver); id < table.begin(receiver + 1); ++id) {
      const Step& step = table[id];
      if (!IsMessage(step.kind) || step.kind == StepKind::kSend) continue;
      Channel& channel = from[static_cast<size_t>(step.peer)];
      if (channel.receiver != receiver) channel = {.receiver = receiver};
      if (channel.received == channel.sends) {
        return absl::FailedPreconditionError(
            absl::StrCat("receive without send: ", table.Place(id), " is receive number ",
                         channel.received + 1, " from worker ", step.peer, ", which sends only ",
                         channel.sends, " to worker ", receiver));
      }
      const Id send = channel.next[channel.received++];
      table.partner_[id] = send;
      table.partner_[send] = id;
    }
  }
  for (Id id = 0; id < table.size(); ++id) {
    if (table[id].kind == StepKind::kSend && table.partner(id) == kNone) {
      return absl::FailedPreconditionError(absl::StrCat("send without receive: ", table.Place(id),
                                                        ": worker ", table[id].peer,
                                                        " has no receive for it"));
    }
  }
  return table;
}

std::pair<Space, uint32_t> StepTable::Source(Id id) const {
  const Step& step = (*this)[id];
  if (!IsMessage(step.kind)) return {step.source_space, step.source_chunk};
  const Step& send = (*this)[partner(id)];
  return {send.space, send.chunk};
}

std::string StepTable::Place(Id id) const { return StepPlace(*program_, worker(id), index(id)); }

}  // namespace syncopate
