// What a strategy answers with: what is to be done, in this order.
//
// Each command is a struct with a name and its fields, by which it is written as text and as JSON
// (record.h).
#ifndef SYNCOPATE_STRATEGY_COMMAND_H_
#define SYNCOPATE_STRATEGY_COMMAND_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/strategy_message.h"

namespace syncopate::strategy {

// Which value of a tensor a transfer moves.
enum class Content : uint8_t { kGradients, kParameters };

// What a transfer does with the values of its members.
enum class Movement : uint8_t {
  kAverage,  // all members get the mean of what they bring, weighted with `weight`
  kPush,     // `target` gets what this worker brings, and applies it
  kPull,     // this worker gets what `target` holds
  kExchange,  // sends to `to`; gets `weight` times its own plus those of `from`, each times its weight
};

// A worker that kExchange receives from.
struct Source {
  int rank = 0;
  double weight = 0;

  friend bool operator==(const Source&, const Source&) = default;
};

// Starts a transfer of tensors first..last, or of some bytes of the packed layout
// (model/tensor_layout.h). The members of an average (ranks of the job, sorted; empty: all live
// training ranks) start transfers with the same id for it, and transfers of the same content that
// have members in common in the same order. `key` names the group where one was made for it.
//
// `version` is that of the network by which the programs of the group are planned. All members name the
// same one for the same key; without a key, in the same order. So it comes from whoever decided on the
// group, never from what a worker happens to know when it starts the transfer: a rule of rounds names the
// one that counts for the round (NetworkVersions::At()), a service what it gave. The group of everybody
// without a key follows the network by itself.
struct StartTransfer {
  int64_t transfer = 0;  // not used before by this worker
  Movement movement = Movement::kAverage;
  Content content = Content::kGradients;
  int first = 0;
  int last = 0;
  // Bytes begin..end-1 of the packed layout instead of the tensors; end = 0: the tensors.
  uint64_t begin = 0;
  uint64_t end = 0;
  std::vector<int> members = {};
  GroupKey key = {};
  uint64_t version = 0;  // of the network; 0: the one that the job began with
  double weight = 1;     // of this worker's part; what runs it may divide by the known sum of all
  int target = -1;       // kPush, kPull
  std::vector<int> to = {};       // kExchange
  std::vector<Source> from = {};  // kExchange
  // Keep what is sent beside what comes, for Update::kAddChange.
  bool keep_sent = false;
  int priority = 0;  // higher goes first

  static constexpr absl::string_view kName = "start-transfer";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("transfer", c.transfer);
    field("movement", c.movement);
    field("content", c.content);
    field("first", c.first);
    field("last", c.last);
    field("begin", c.begin, uint64_t{0});
    field("end", c.end, uint64_t{0});
    field("members", c.members, std::vector<int>{});
    field("key", c.key, GroupKey{});
    field("version", c.version, uint64_t{0});
    field("weight", c.weight);
    field("target", c.target, -1);
    field("to", c.to, std::vector<int>{});
    field("from", c.from, std::vector<Source>{});
    field("keep_sent", c.keep_sent, false);
    field("priority", c.priority, 0);
  }
  friend bool operator==(const StartTransfer&, const StartTransfer&) = default;
};

enum class Update : uint8_t {
  kStepAveraged,  // the optimizer's step with the gradient that transfer `transfer` brought
  kStepLocal,     // the optimizer's step with this worker's own gradient
  kAdopt,         // the parameters become what transfer `transfer` brought
  kAddChange,     // the parameters += what transfer `transfer` brought - what was sent
};

// Updates the parameters of tensors first..last. Of a transfer of bytes the update takes tensors
// whose bytes have all come, by this transfer and others.
struct ApplyUpdate {
  Update update = Update::kStepAveraged;
  int first = 0;
  int last = 0;
  int64_t transfer = -1;
  double rate_factor = 1;  // steps: times the learning rate
  bool measure = false;    // Updated is wanted

  static constexpr absl::string_view kName = "apply-update";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("update", c.update);
    field("first", c.first);
    field("last", c.last);
    field("transfer", c.transfer, int64_t{-1});
    field("rate_factor", c.rate_factor, 1.0);
    field("measure", c.measure, false);
  }
  friend bool operator==(const ApplyUpdate&, const ApplyUpdate&) = default;
};

// The forward pass may use the tensor now. The command comes after the updates that it must see.
struct Proceed {
  int tensor = 0;

  static constexpr absl::string_view kName = "proceed";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("tensor", c.tensor);
  }
  friend bool operator==(const Proceed&, const Proceed&) = default;
};

// A request to the service of that name, which answers it once with `ticket` (Answered). A worker's
// tickets only grow.
struct AskService {
  std::string service = {};
  int64_t ticket = 0;
  StrategyMessage message = {};

  static constexpr absl::string_view kName = "ask-service";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("service", c.service);
    field("ticket", c.ticket);
    field("message", c.message);
  }
  friend bool operator==(const AskService&, const AskService&) = default;
};

// A message to another worker's strategy. One to a worker that is gone is dropped.
struct SendMessage {
  int to = 0;
  StrategyMessage message = {};

  static constexpr absl::string_view kName = "send-message";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("to", c.to);
    field("message", c.message);
  }
  friend bool operator==(const SendMessage&, const SendMessage&) = default;
};

// From the next batch on, each batch of this worker has this many samples; where samples are dealt out in
// step, from an iteration on that all workers agree on.
struct SetBatch {
  uint64_t samples = 0;

  static constexpr absl::string_view kName = "set-batch";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("samples", c.samples);
  }
  friend bool operator==(const SetBatch&, const SetBatch&) = default;
};

// How far the job has come, by which the learning rate goes; `stop`: no iteration begins after the
// one that runs.
struct SetProgress {
  uint64_t total_samples = 0;
  bool stop = false;

  static constexpr absl::string_view kName = "set-progress";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("total_samples", c.total_samples);
    field("stop", c.stop);
  }
  friend bool operator==(const SetProgress&, const SetProgress&) = default;
};

// TimePassed is wanted at this time (seconds, as `now` of Step).
struct WakeAt {
  double seconds = 0;

  static constexpr absl::string_view kName = "wake-at";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("seconds", c.seconds);
  }
  friend bool operator==(const WakeAt&, const WakeAt&) = default;
};

// The end of everything that Drain waited for.
struct Drained {
  static constexpr absl::string_view kName = "drained";
  template <typename Self, typename Field>
  static void Fields(Self&, const Field&) {}
  friend bool operator==(const Drained&, const Drained&) = default;
};

// The worker cannot go on.
struct Fail {
  absl::Status status = {};

  static constexpr absl::string_view kName = "fail";
  template <typename Self, typename Field>
  static void Fields(Self& c, const Field& field) {
    field("status", c.status);
  }
  friend bool operator==(const Fail&, const Fail&) = default;
};

using Command = std::variant<StartTransfer, ApplyUpdate, Proceed, AskService, SendMessage, SetBatch,
                             SetProgress, WakeAt, Drained, Fail>;

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_COMMAND_H_
