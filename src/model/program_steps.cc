// Matching of sends and receives.
#include "model/program_steps.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "model/program_checks.h"

namespace syncopate {
namespace {
// All messages from one worker to another, in one key.
uint64_t Channel(int from, int to) {
  return uint64_t{static_cast<uint32_t>(from)} << 32 | static_cast<uint32_t>(to);
}
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
  absl::flat_hash_map<uint64_t, std::vector<Id>> sends;
  absl::flat_hash_map<uint64_t, size_t> received;
  for (Id id = 0; id < table.size(); ++id) {
    if (table[id].kind == StepKind::kSend) {
      sends[Channel(table.worker(id), table[id].peer)].push_back(id);
    }
  }
  for (Id id = 0; id < table.size(); ++id) {
    const Step& step = table[id];
    if (!IsMessage(step.kind) || step.kind == StepKind::kSend) continue;
    const uint64_t channel = Channel(step.peer, table.worker(id));
    const size_t k = received[channel]++;
    const auto found = sends.find(channel);
    const size_t count = found == sends.end() ? 0 : found->second.size();
    if (k >= count) {
      return absl::FailedPreconditionError(absl::StrCat(
          "receive without send: ", table.Place(id), " is receive number ", k + 1, " from worker ",
          step.peer, ", which sends only ", count, " to worker ", table.worker(id)));
    }
    const Id send = found->second[k];
    table.partner_[id] = send;
    table.partner_[send] = id;
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
