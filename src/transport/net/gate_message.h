// What the members of a group tell each other about the gates of its operations (gate_protocol.h),
// and its bytes.
#ifndef SYNCOPATE_TRANSPORT_NET_GATE_MESSAGE_H_
#define SYNCOPATE_TRANSPORT_NET_GATE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/net/frame.h"
#include "transport/transport.h"

namespace syncopate::transport::net {

// The most items that a message tells, and the most bytes that it takes.
inline constexpr size_t kGateItemsMax = 1024;
inline constexpr size_t kGateMessageBytesMax = kControlBytesMax;

// One message about a group's gates. Which fields mean something depends on the kind.
struct GateMessage {
  enum class Kind : uint8_t {
    kEnter = 1,   // to the arbiter: the sender has entered `gate` of `items`
    kPassed = 2,  // from the arbiter: `gate` of `items` has passed; start: with all hellos
    kAsk = 3,     // to the arbiter: settle `items`
    // From the arbiter: hold still and say what you know (of `items`; of all if `all`).
    kQuery = 4,
    kReport = 5,    // the answer to a query
    kDecision = 6,  // from the arbiter: what became of `items`
  };
  // How an operation ends.
  enum class Mode : uint8_t {
    kLoose,    // nothing to undo: each member ends for itself
    kAwaited,  // nobody takes its result before all have it
    kShared,   // every member's result is the whole result: one that has it can provide it
  };
  struct Item {
    uint64_t sequence = 0;
    uint8_t start = 0;    // GateState
    uint8_t finish = 0;   // GateState
    bool opened = false;  // report: the sender has begun it
    bool entered_start = false;
    bool entered_finish = false;
    // Ask: the sender knows of a lost member. Decision, and the report of one: it broke for a loss, and
    // not because time was up.
    bool for_loss = false;
    uint8_t mode = 0;         // report: Mode
    int32_t provider = -1;    // decision: the member that provides the result, while some lack it
    uint64_t digest = 0;      // enter, report: of the operation
    uint64_t digest_odd = 0;  // ask, decision: a digest that is different, 0 if there is none
    int32_t member_odd = -1;  // ask, decision: the member whose digest that is
    double weight = 0;        // enter
    bool staged = false;      // enter
    // Decision, and the report of one: members.
    std::vector<int32_t> not_opened = {};
    std::vector<int32_t> not_finished = {};  // with a provider: those to which it gives the result

    friend bool operator==(const Item&, const Item&) = default;
  };

  Kind kind = Kind::kEnter;
  Gate gate = Gate::kStart;
  bool all = false;
  uint64_t round = 0;  // query, report, decision
  std::vector<Item> items = {};
  std::vector<Hello> hellos = {};   // passed, start gate: by member
  std::vector<int32_t> ranks = {};  // ask, query: the members, for one that has not made the group

  friend bool operator==(const GateMessage& a, const GateMessage& b);
};

std::string Encode(const GateMessage& message);
// The same message in parts, each with some of its items, that keep both limits. The lists of members
// in the items are what can make it long.
std::vector<GateMessage> Split(GateMessage message);
absl::StatusOr<GateMessage> DecodeGateMessage(absl::string_view bytes);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_GATE_MESSAGE_H_
