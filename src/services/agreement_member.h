// A worker's side of the agreement service (agreement.h), as a pure state machine: it listens, brings
// values to their users, and says how far the worker may go.
//
//   loop: if position > member.Limit(kind), wait; use the values that Adopt said from `from` on.
//
// A worker has a position for each kind: two kinds may count different things, such as the iterations
// of two models.
//
// Not thread-safe.
#ifndef SYNCOPATE_SERVICES_AGREEMENT_MEMBER_H_
#define SYNCOPATE_SERVICES_AGREEMENT_MEMBER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/agreement_message.h"

namespace syncopate::services {

class AgreementMember {
 public:
  // What the caller has to do.
  // Ask the service, and call Answered() with the tag.
  struct Ask {
    uint64_t tag = 0;
    std::string bytes;
  };
  // Read the value, compute its digest and call Checked(), soon: others wait at the end of their margin.
  struct Check {
    ServiceId round;
    ValueTitle title;
    std::string value;
  };
  // Use the value from position `from` on. Comes before Limit() allows that position.
  struct Adopt {
    ValueTitle title;
    std::string value;
    int64_t from = 0;
  };
  // What became of a proposal of this worker.
  struct Decided {
    uint64_t proposal = 0;
    absl::Status status;
    int64_t from = 0;
  };
  using Command = std::variant<Ask, Check, Adopt, Decided>;

  AgreementMember() { Listen(); }

  // The number of the proposal. `title.bytes` is filled in.
  absl::StatusOr<uint64_t> Propose(ValueTitle title, std::string value);
  // The worker is at `position` now, as this kind counts. Never goes back.
  void Reached(absl::string_view kind, int64_t position);
  // The worker uses values of the kind no more, and answers no questions about it. The service is told when
  // what this worker has proposed of it is decided.
  void Release(absl::string_view kind);
  bool Released(absl::string_view kind) const { return released_.contains(kind); }
  // The last position to which the worker may go before something else happens here.
  int64_t Limit(absl::string_view kind) const;
  // The digest that this worker computes for the value of a Check, or why it cannot use the value.
  void Checked(const ServiceId& round, const absl::StatusOr<Digest>& digest);
  // Instead of it, if the kind has been let go of since.
  void CheckedTooLate(const ServiceId& round);
  void Answered(uint64_t tag, absl::StatusCode code, absl::string_view bytes);

  std::vector<Command> TakeCommands();

  // For ReportWanted, with the values' bytes: the one that rebuilds may have let go of them, or not have them yet.
  std::string Report() const;

  // Not OK: the service refuses this worker, and it hears of no more values. A limit that it has promised
  // stays for ever.
  const absl::Status& status() const { return status_; }

 private:
  struct Held {
    ValueTitle title;
    std::string value;
    int64_t from = 0;
  };
  struct Asked {
    ServiceId round;
    ValueTitle title;
    std::optional<std::string> value;
    std::optional<int64_t> limit;  // once the position is told
  };

  void Listen();
  void AskService(uint64_t tag, const AgreementRequest& request);
  void On(struct Settled&& answer, uint64_t tag);
  void On(struct Question&& answer, uint64_t tag);
  void On(struct Outcome&& answer, uint64_t tag);
  void On(struct Welcome&& answer, uint64_t tag);
  void On(struct Value&& answer, uint64_t tag);
  void Refused(uint64_t tag, const absl::Status& status);
  // Tells the service of kinds that were let go of, some at a time.
  void ReleaseNext();
  bool Releases(absl::string_view kind) const;
  bool HasProposed(absl::string_view kind) const;
  void TakeOver(const ValueTitle& title, int64_t from, const std::optional<Asked>& asked);
  void Use(Held value);
  void HaveValue(std::string value);
  const std::string* OwnValue(const ValueTitle& title) const;

  std::vector<Command> commands_;
  ServiceId seen_;
  std::map<std::string, int64_t, std::less<>> positions_;  // by kind
  std::map<std::string, Held> in_force_;                   // by kind
  std::map<std::string, Held> missing_;     // in force, by kind; bytes are being fetched
  std::optional<Asked> asked_;              // the round that is under way
  std::map<uint64_t, Held> proposals_;      // own ones, by number
  std::map<uint64_t, ValueTitle> fetches_;  // by tag
  // Kinds that were let go of: those that are remembered, also in their order; those that the service is to be
  // told of; and those that it is being told of, by tag.
  std::set<std::string, std::less<>> released_;
  std::deque<std::string> remembered_;
  std::deque<std::string> to_release_;
  std::map<uint64_t, std::string> releasing_;
  uint64_t next_ = 0;
  absl::Status status_;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_AGREEMENT_MEMBER_H_
