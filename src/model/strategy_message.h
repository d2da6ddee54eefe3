// What strategies say to services and to each other beside transfers: typed messages of a bounded
// size, which travel as bytes in one message of the mailbox.
//
// A message is a struct with a name and with its fields, by which it is written as bytes, as text
// and as JSON. A new kind of message is a new struct in the variant at the end; its place there is
// its number on the wire.
#ifndef SYNCOPATE_MODEL_STRATEGY_MESSAGE_H_
#define SYNCOPATE_MODEL_STRATEGY_MESSAGE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "syncopate/group_key.h"

namespace syncopate {

namespace limits {
// So that every message fits kMailBytesMax.
inline constexpr uint64_t kMessageRanksMax = 1024;
inline constexpr uint64_t kMessageTextBytesMax = 512;
}  // namespace limits

// ---- to a service

// This worker is ready to average with others.
struct WantGroup {
  int64_t iteration = 0;    // the worker's own
  uint64_t samples = 0;     // computed since it asked last
  double busy_seconds = 0;  // computing since it was answered last, waiting left out
  uint64_t version = 0;     // the newest of the network that it may plan by; 0: the job's first

  static constexpr absl::string_view kName = "want-group";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("iteration", m.iteration);
    field("samples", m.samples);
    field("busy_seconds", m.busy_seconds);
    field("version", m.version, uint64_t{0});
  }
  friend bool operator==(const WantGroup&, const WantGroup&) = default;
};
// This worker's part in the group is over.
struct GroupDone {
  GroupKey key = {};

  static constexpr absl::string_view kName = "group-done";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("key", m.key);
  }
  friend bool operator==(const GroupDone&, const GroupDone&) = default;
};
// This worker wants to go on: to push, to pull or to begin its next iteration.
struct WantTurn {
  int64_t iteration = 0;
  uint64_t samples = 0;
  double busy_seconds = 0;

  static constexpr absl::string_view kName = "want-turn";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("iteration", m.iteration);
    field("samples", m.samples);
    field("busy_seconds", m.busy_seconds);
  }
  friend bool operator==(const WantTurn&, const WantTurn&) = default;
};

// ---- from a service

// These workers average together; this worker alone among them goes on by itself.
struct GroupGiven {
  GroupKey key = {};
  std::vector<int> members = {};  // sorted
  // Of the network, for all members alike; so one that all of them may plan by.
  uint64_t version = 0;
  uint64_t total_samples = 0;  // of the job so far
  bool stop = false;           // the job has come to its end

  static constexpr absl::string_view kName = "group-given";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("key", m.key);
    field("members", m.members);
    field("version", m.version, uint64_t{0});
    field("total_samples", m.total_samples);
    field("stop", m.stop);
  }
  friend bool operator==(const GroupGiven&, const GroupGiven&) = default;
};
// This worker may go on.
struct TurnGiven {
  uint64_t turn = 0;
  uint64_t samples = 0;       // of its next batches; 0: as before
  uint64_t first_sample = 0;  // of the epoch
  uint64_t total_samples = 0;
  bool stop = false;

  static constexpr absl::string_view kName = "turn-given";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("turn", m.turn);
    field("samples", m.samples);
    field("first_sample", m.first_sample);
    field("total_samples", m.total_samples);
    field("stop", m.stop);
  }
  friend bool operator==(const TurnGiven&, const TurnGiven&) = default;
};
// There was nothing to decide.
struct Noted {
  static constexpr absl::string_view kName = "noted";
  template <typename Self, typename Field>
  static void Fields(Self&, const Field&) {}
  friend bool operator==(const Noted&, const Noted&) = default;
};
// The service does not do it.
struct Refused {
  std::string why = {};  // at most limits::kMessageTextBytesMax

  static constexpr absl::string_view kName = "refused";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("why", m.why);
  }
  friend bool operator==(const Refused&, const Refused&) = default;
};

// ---- between workers

// How far an average moved this worker's parameters.
struct Distance {
  int64_t iteration = 0;
  double squared = 0;

  static constexpr absl::string_view kName = "distance";
  template <typename Self, typename Field>
  static void Fields(Self& m, const Field& field) {
    field("iteration", m.iteration);
    field("squared", m.squared);
  }
  friend bool operator==(const Distance&, const Distance&) = default;
};

using StrategyMessage =
    std::variant<WantGroup, GroupDone, WantTurn, GroupGiven, TurnGiven, Noted, Refused, Distance>;

// A valid message has numbers that are finite and not negative, ranks that ascend and are less than
// `workers`, and at most as many ranks and as long a text as the limits allow. It then fits one
// message of the mailbox.
absl::Status Validate(const StrategyMessage& message, int workers);

// The bytes that travel; Decode(Encode(m)) == m for every valid m. Decode validates.
std::string Encode(const StrategyMessage& message);
absl::StatusOr<StrategyMessage> DecodeStrategyMessage(absl::string_view bytes, int workers);

// What a strategy gets for its ticket: the answer of a service, or Refused if that is an error. An
// answer that cannot be read is as good as none.
StrategyMessage MessageOfAnswer(const absl::StatusOr<std::string>& answer, int workers);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_STRATEGY_MESSAGE_H_
