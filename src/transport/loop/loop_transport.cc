#include "transport/loop/loop_transport.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncopate::transport {

namespace {

// Mail travels this quickly, and takes DelayTicks() besides.
constexpr uint64_t kBytesPerTick = 64 << 10;

constexpr std::byte kRubbish{0xEE};

}  // namespace

class LoopSession final : public Session {
 public:
  // `self` is the place in the group of worker `rank`.
  LoopSession(LoopNetwork& network, uint64_t key, std::shared_ptr<LoopNetwork::Operation> operation,
              int self, int rank)
      : network_(network),
        key_(key),
        operation_(std::move(operation)),
        self_(self),
        sent_(network.sent_[static_cast<size_t>(rank)]) {
    for (int64_t& lag : gate_lag_) lag = network.DelayTicks();
  }

  // A gate has broken, and a peer may not know it yet: it still reads what was offered, though the
  // memory is put to another use now. What it reads must not matter, so it reads rubbish.
  ~LoopSession() override {
    auto& messages = operation_->messages;
    const auto end = messages.lower_bound({self_ + 1, 0, 0});
    for (auto entry = messages.lower_bound({self_, 0, 0}); entry != end; ++entry) {
      LoopNetwork::Message& message = entry->second;
      if (message.buffered || message.consumed_tick >= 0) continue;
      message.copy.assign(message.size, kRubbish);
      message.buffered = true;
    }
  }

  bool Enter(Gate gate, int member) override {
    LoopNetwork::GateRecord& record = Record(gate);
    if (record.broken || record.entered[static_cast<size_t>(member)]) return true;
    record.entered[static_cast<size_t>(member)] = true;
    if (++record.entries == static_cast<int>(record.entered.size())) {
      record.decided_tick = network_.now_;
    }
    return true;
  }

  GateState State(Gate gate) override {
    const LoopNetwork::GateRecord& record = Record(gate);
    if (record.decided_tick < 0) return GateState::kOpen;
    if (network_.now_ < record.decided_tick + gate_lag_[static_cast<int>(gate)]) {
      return GateState::kOpen;  // decided, but the news is still on its way
    }
    return record.broken ? GateState::kBroken : GateState::kPassed;
  }

  GateState Break(Gate gate, BreakReason why) override {
    LoopNetwork::GateRecord& record = Record(gate);
    if (record.decided_tick < 0) {
      record.broken = true;
      Failure failure = {.for_loss = why == BreakReason::kLoss, .gate = gate};
      for (size_t member = 0; member < record.entered.size(); ++member) {
        if (!record.entered[member]) failure.missing.push_back(static_cast<int>(member));
      }
      network_.failures_.try_emplace(key_, std::move(failure));  // the first one stays
      record.decided_tick = network_.now_;
    }
    return record.broken ? GateState::kBroken : GateState::kPassed;
  }

  Failure WhyBroken(Gate) override { return network_.failures_[key_]; }

  bool Entered(Gate gate, int member) override {
    return Record(gate).entered[static_cast<size_t>(member)];
  }

  Hello HelloOf(int member) override { return operation_->hellos[static_cast<size_t>(member)]; }

  void Offer(uint32_t step, int to, const std::byte* bytes, Extent where) override {
    ++sent_.messages;
    sent_.bytes += where.bytes;
    LoopNetwork::Message message;
    message.arrives_tick = network_.now_ + network_.DelayTicks();
    message.buffered = network_.random_.Below(2) == 0;
    message.size = where.bytes;
    if (message.buffered) {
      message.copy.assign(bytes, bytes + where.bytes);
      message.consumed_tick = network_.now_ + network_.DelayTicks();
    } else {
      message.bytes = bytes;
    }
    operation_->messages[{self_, to, step}] = std::move(message);
  }

  const std::byte* Arrived(int from, uint32_t their_step, Extent) override {
    static constexpr std::byte kEmpty{};
    const auto found = operation_->messages.find({from, self_, their_step});
    if (found == operation_->messages.end() || found->second.arrives_tick > network_.now_) {
      return nullptr;
    }
    const LoopNetwork::Message& message = found->second;
    const std::byte* bytes = message.buffered ? message.copy.data() : message.bytes;
    return bytes == nullptr ? &kEmpty : bytes;
  }

  void Consume(uint32_t, int from, uint32_t their_step) override {
    LoopNetwork::Message& message = operation_->messages.at({from, self_, their_step});
    if (!message.buffered) message.consumed_tick = network_.now_ + network_.DelayTicks();
  }

  bool Consumed(int to, uint32_t step, uint32_t) override {
    const LoopNetwork::Message& message = operation_->messages.at({self_, to, step});
    return message.consumed_tick >= 0 && message.consumed_tick <= network_.now_;
  }

  std::byte* Memory(int, Space) override { return nullptr; }
  std::byte* Notes(int) override { return nullptr; }
  void Nudge() override {}

 private:
  LoopNetwork::GateRecord& Record(Gate gate) { return operation_->gates[static_cast<int>(gate)]; }

  LoopNetwork& network_;
  const uint64_t key_;
  const std::shared_ptr<LoopNetwork::Operation> operation_;
  const int self_;
  LoopNetwork::Traffic& sent_;
  int64_t gate_lag_[2];
};

class LoopTransport final : public Transport {
 public:
  LoopTransport(LoopNetwork& network, int rank) : network_(network), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return network_.size_; }
  Patience patience() const override { return {}; }

  absl::StatusOr<std::unique_ptr<GroupPort>> OpenGroup(uint64_t key,
                                                       const std::vector<int>& members) override {
    const auto self = std::find(members.begin(), members.end(), rank_);
    if (self == members.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank_, " is not a member of the group it makes"));
    }
    return std::make_unique<Port>(network_, key, static_cast<int>(self - members.begin()), rank_,
                                  members.size());
  }

  absl::StatusOr<std::byte*> Allocate(size_t bytes) override {
    return static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
  }
  void Free(std::byte* memory) override { std::free(memory); }
  bool Owns(const void*, size_t) const override { return true; }

  // One thread drives all workers: nobody sleeps.
  uint32_t PrepareToPark() override { return 0; }
  void Park(uint32_t, int64_t) override {}
  void CancelPark() override {}
  void Wake() override {}

  absl::Status Post(int to, MailKind kind, std::string bytes) override {
    return network_.Post(rank_, to, kind, std::move(bytes));
  }
  void TakeMail(std::vector<Mail>& mail) override { network_.TakeMail(rank_, mail); }

  uint64_t losses() const override { return network_.heard_[static_cast<size_t>(rank_)]; }
  std::vector<Loss> Lost() const override {
    return {network_.losses_.begin(), network_.losses_.begin() + static_cast<ptrdiff_t>(losses())};
  }
  void Expel(int rank) override { network_.Kill(rank); }

 private:
  class Port final : public GroupPort {
   public:
    Port(LoopNetwork& network, uint64_t key, int self, int rank, size_t members)
        : network_(network), key_(key), self_(self), rank_(rank), members_(members) {}

    bool direct() const override { return false; }
    bool Failed() override { return network_.failures_.contains(key_); }
    absl::StatusOr<std::unique_ptr<Session>> Open(const SessionSpec& spec) override {
      std::shared_ptr<LoopNetwork::Operation>& operation =
          network_.operations_[{key_, spec.sequence}];
      if (operation == nullptr) {
        operation = std::make_shared<LoopNetwork::Operation>();
        operation->hellos.resize(members_);
        for (LoopNetwork::GateRecord& gate : operation->gates) gate.entered.resize(members_);
      }
      operation->hellos[static_cast<size_t>(self_)] = {
          .digest = spec.digest, .weight = spec.weight, .staged = spec.staged};
      return std::make_unique<LoopSession>(network_, key_, operation, self_, rank_);
    }

   private:
    LoopNetwork& network_;
    const uint64_t key_;
    const int self_;
    const int rank_;
    const size_t members_;
  };

  LoopNetwork& network_;
  const int rank_;
};

LoopNetwork::LoopNetwork(int size, uint64_t seed, int delay_ticks_max)
    : size_(size),
      delay_ticks_max_(static_cast<uint64_t>(delay_ticks_max)),
      random_(seed),
      sent_(static_cast<size_t>(size)),
      heard_(static_cast<size_t>(size)),
      losses_told_(static_cast<size_t>(size)) {}

std::unique_ptr<Transport> LoopNetwork::Attach(int rank) {
  return std::make_unique<LoopTransport>(*this, rank);
}

void LoopNetwork::Tick() {
  ++now_;
  clock_.AdvanceNs(1000);
}

bool LoopNetwork::IsLost(int rank) const {
  return std::any_of(losses_.begin(), losses_.end(),
                     [&](const Loss& loss) { return loss.rank == rank; });
}

bool LoopNetwork::HasHeard(int rank, int lost) const {
  const auto end = losses_.begin() + static_cast<ptrdiff_t>(heard_[static_cast<size_t>(rank)]);
  return std::any_of(losses_.begin(), end, [&](const Loss& loss) { return loss.rank == lost; });
}

absl::Status LoopNetwork::Post(int from, int to, MailKind kind, std::string bytes) {
  if (const absl::Status fit = CheckMail(to, size_, kind, bytes); !fit.ok()) return fit;
  if (IsLost(from)) return NotInTheJob(from);
  if (HasHeard(from, to)) return NobodyThere(to);
  std::deque<Letter>& queue = letters_[{from, to}];
  uint64_t queued = MailCost(kind, bytes.size());
  int64_t arrives_tick = now_ + DelayTicks() + static_cast<int64_t>(bytes.size() / kBytesPerTick);
  for (const Letter& letter : queue) {
    if (letter.mail.kind != kind) continue;
    queued += MailCost(kind, letter.mail.bytes.size());
    // None overtakes another of its kind.
    arrives_tick = std::max(arrives_tick, letter.arrives_tick);
  }
  if (queued > MailQueueBytesMax(kind)) return MailQueueFull(to, kind);
  queue.push_back({{.from = from, .kind = kind, .bytes = std::move(bytes)}, arrives_tick});
  return absl::OkStatus();
}

void LoopNetwork::TakeMail(int rank, std::vector<Mail>& mail) {
  for (int from = 0; from < size_; ++from) {
    const auto queue = letters_.find({from, rank});
    if (queue == letters_.end()) continue;
    std::erase_if(queue->second, [&](Letter& letter) {
      if (letter.arrives_tick > now_) return false;
      mail.push_back(std::move(letter.mail));
      return true;
    });
  }
  size_t& told = losses_told_[static_cast<size_t>(rank)];
  for (; told < heard_[static_cast<size_t>(rank)]; ++told) {
    letters_.erase({losses_[told].rank, rank});
    letters_.erase({rank, losses_[told].rank});
    mail.push_back(LastMailOf(losses_[told]));
  }
}

void LoopNetwork::Kill(int rank) {
  KillHeardBy(rank, rank);
  std::fill(heard_.begin(), heard_.end(), losses_.size());
}

void LoopNetwork::KillHeardBy(int rank, int by) {
  if (!IsLost(rank)) {
    losses_.push_back(
        {.rank = rank, .order = losses_.size() + 1, .cause = "died (its process ended)"});
  }
  heard_[static_cast<size_t>(by)] = losses_.size();
}

}  // namespace syncopate::transport
