// The requests of one worker that are not answered yet. Ticket numbers only grow, so an answer
// belongs to one request whatever host it comes from.
#ifndef SYNCOPATE_SERVICES_OPEN_TICKETS_H_
#define SYNCOPATE_SERVICES_OPEN_TICKETS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "services/service_message.h"

namespace syncopate::services {

class OpenTickets {
 public:
  struct Ticket {
    uint16_t service = 0;
    uint64_t tag = 0;  // the caller's
    std::string bytes;
  };

  // An error if the request is too long or too many tickets are open.
  absl::StatusOr<uint64_t> Open(Ticket ticket) {
    if (ticket.bytes.size() > limits::kServiceBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a request of ", ticket.bytes.size(), " bytes; the limit is ", limits::kServiceBytesMax));
    }
    if (open_.size() >= limits::kTicketsOpenMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat(open_.size(), " requests of this worker are not answered yet"));
    }
    open_.emplace(next_, std::move(ticket));
    return next_++;
  }

  // Nothing if it is not open: it was answered before.
  std::optional<Ticket> Close(uint64_t number) {
    const auto found = open_.find(number);
    if (found == open_.end()) return std::nullopt;
    Ticket ticket = std::move(found->second);
    open_.erase(found);
    return ticket;
  }

  std::vector<uint64_t> numbers() const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, ticket] : open_) numbers.push_back(number);
    return numbers;
  }

  // The request with an open number, as it is sent now.
  RequestMessage MessageOf(uint64_t number) const {
    const Ticket& ticket = open_.at(number);
    return {.ticket = number, .open = numbers(), .service = ticket.service, .bytes = ticket.bytes};
  }

 private:
  std::map<uint64_t, Ticket> open_;
  uint64_t next_ = 1;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_OPEN_TICKETS_H_
