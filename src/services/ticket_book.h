// Which requests the services have seen, so that one that is sent again to a new host is not stepped
// twice, and its answer is there as long as the asker may lack it.
#ifndef SYNCOPATE_SERVICES_TICKET_BOOK_H_
#define SYNCOPATE_SERVICES_TICKET_BOOK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/service.h"

namespace syncopate::services {

class TicketBook {
 public:
  enum class Found {
    kNew,       // now open: step it
    kOpen,      // its service will answer
    kAnswered,  // kept() is the answer
    kOld,       // the asker has said that it has the answer, or it has too many tickets
  };

  // A request of `from`. `open` are the tickets that the asker waits for, growing, this one among
  // them: kept answers of others up to the last of them are let go.
  Found Enter(int from, uint64_t ticket, uint16_t service, const std::vector<uint64_t>& open);
  // The last answer that Enter() found.
  const Answer& kept() const { return *kept_; }

  // A service has answered. False if the ticket is not open: nobody waits for it.
  bool Close(uint16_t service, const Answer& answer);

  void Forget(int rank) { askers_.erase(rank); }
  void Clear() { askers_.clear(); }

  void AppendTo(std::string& out) const;
  absl::Status Load(ByteReader& reader);

 private:
  struct Entry {
    uint16_t service = 0;
    bool answered = false;
    Answer answer;
  };
  struct Asker {
    uint64_t floor = 0;  // all tickets below are done with
    std::map<uint64_t, Entry> entries;
  };

  std::map<int, Asker> askers_;
  const Answer* kept_ = nullptr;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_TICKET_BOOK_H_
