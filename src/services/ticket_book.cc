#include "services/ticket_book.h"

#include <algorithm>

namespace syncopate::services {

TicketBook::Found TicketBook::Enter(int from, uint64_t ticket, uint16_t service,
                                    const std::vector<uint64_t>& open) {
  Asker& asker = askers_[from];
  asker.floor = std::max(asker.floor, open.front());
  std::erase_if(asker.entries, [&](const auto& item) {
    return item.second.answered && item.first <= open.back() &&
           !std::binary_search(open.begin(), open.end(), item.first);
  });
  const auto found = asker.entries.find(ticket);
  if (found == asker.entries.end()) {
    if (ticket < asker.floor || asker.entries.size() >= 2 * limits::kTicketsOpenMax) {
      return Found::kOld;
    }
    asker.entries[ticket].service = service;
    return Found::kNew;
  }
  if (!found->second.answered) return Found::kOpen;
  kept_ = &found->second.answer;
  return Found::kAnswered;
}

bool TicketBook::Close(uint16_t service, const Answer& answer) {
  const auto asker = askers_.find(answer.to);
  if (asker == askers_.end()) return false;
  const auto found = asker->second.entries.find(answer.ticket);
  if (found == asker->second.entries.end()) return false;
  Entry& entry = found->second;
  if (entry.answered || entry.service != service) return false;
  if (answer.kept) {
    entry.answered = true;
    entry.answer = answer;
  } else {
    asker->second.entries.erase(found);
  }
  return true;
}

void TicketBook::AppendTo(std::string& out) const {
  Append(out, static_cast<uint32_t>(askers_.size()));
  for (const auto& [rank, asker] : askers_) {
    AppendRank(out, rank);
    Append(out, asker.floor);
    Append(out, static_cast<uint32_t>(asker.entries.size()));
    for (const auto& [ticket, entry] : asker.entries) {
      Append(out, ticket);
      Append(out, entry.service);
      Append(out, static_cast<uint8_t>(entry.answered));
      if (!entry.answered) continue;
      Append(out, static_cast<uint8_t>(entry.answer.code));
      AppendSized(out, entry.answer.bytes);
    }
  }
}

absl::Status TicketBook::Load(ByteReader& reader) {
  std::map<int, Asker> askers;
  const uint32_t count = ReadCount(reader, limits::kWorkersMax, 14);
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const int rank = ReadRank(reader);
    Asker& asker = askers[rank];
    asker.floor = reader.Read<uint64_t>();
    const uint32_t entries = ReadCount(reader, 2 * limits::kTicketsOpenMax, 11);
    for (uint32_t k = 0; k < entries && reader.ok(); ++k) {
      const auto ticket = reader.Read<uint64_t>();
      Entry& entry = asker.entries[ticket];
      entry.service = reader.Read<uint16_t>();
      entry.answered = ReadTruth(reader);
      if (!entry.answered) continue;
      entry.answer = {.to = rank, .ticket = ticket};
      entry.answer.code = static_cast<absl::StatusCode>(reader.Read<uint8_t>());
      entry.answer.bytes = ReadSized(reader, limits::kServiceBytesMax);
    }
  }
  if (!reader.ok()) return absl::DataLossError("the tickets in a service state cannot be read");
  askers_ = std::move(askers);
  return absl::OkStatus();
}

}  // namespace syncopate::services
