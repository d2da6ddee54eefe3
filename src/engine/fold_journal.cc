#include "engine/fold_journal.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace syncopate::engine {

absl::StatusOr<uint64_t> ReplayJournal(FoldJournal* journal, DataType type,
                                       absl::Span<void* const> destinations, uint64_t elements,
                                       uint64_t journal_origin) {
  const uint64_t state = journal->state.load(std::memory_order_acquire);
  const uint64_t position = FoldJournal::Position(state);
  const uint64_t pending = FoldJournal::Pending(state);
  const size_t size = SizeOf(type);
  if (position < journal_origin || position - journal_origin > elements ||
      pending > elements - (position - journal_origin) ||
      pending * size > FoldJournal::kHalfBytes) {
    return absl::DataLossError(absl::StrCat("fold journal: position ", position, " with ", pending,
                                            " ", Name(type), " elements pending does not lie in [",
                                            journal_origin, ", ", journal_origin, " + ", elements,
                                            ")"));
  }
  const uint64_t index = position - journal_origin;
  const std::byte* results = journal->half(FoldJournal::Half(state));
  for (void* destination : destinations) {
    std::memcpy(static_cast<std::byte*>(destination) + index * size, results, pending * size);
  }
  journal->state.store(FoldJournal::Pack(position + pending, 0, 0), std::memory_order_release);
  return index + pending;
}

}  // namespace syncopate::engine
