// Bytes of two peers through TCP's wire and the core of one worker, in pieces that keep to no frame,
// while groups are opened and closed and operations begun and ended in between. The data of an
// operation is freed when it ends, and the pool of receive buffers is small and poisoned, so that
// the address sanitizer reports whatever is written after it was given back.
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "transport/net/core.h"
#include "transport/net/gate_message.h"
#include "transport/net/tcp_wire.h"

namespace syncopate::transport::net {
namespace {

constexpr int kSize = 3;
constexpr int kLanes = 2;
constexpr uint32_t kJob = 7;
constexpr uint64_t kDigest = 99;
constexpr size_t kGroups = 3;

// One operation that this worker has begun.
struct Operation {
  std::vector<std::byte> data;
  std::vector<uint64_t> incoming;
  NetOperation* core = nullptr;
  bool entered[2] = {false, false};  // gates
};

class Job {
 public:
  explicit Job(FuzzedDataProvider& input) : input_(input) {
    Core::Options options = {.rank = 0, .size = kSize, .job = kJob, .hosts = {}, .consensus = {}};
    options.consensus.size = kSize;
    options.limits.fragment_bytes = 1024;
    options.limits.early_bytes = 4096;
    options.limits.unopened_bytes_max = 64 << 10;
    options.limits.kept_bytes_max = 8 << 10;
    options.limits.prompt_bytes = 4096;
    options.limits.mail_queued_bytes = 8192;
    core_ = std::make_unique<Core>(options, clock_);
    std::vector<std::vector<UniqueFd>> sockets(kSize);
    ends_.resize(kSize);
    for (size_t peer = 1; peer < kSize; ++peer) {
      for (int lane = 0; lane < kLanes; ++lane) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
          std::abort();
        }
        sockets[peer].emplace_back(pair[0]);
        ends_[peer].emplace_back(pair[1]);
      }
    }
    auto wire = TcpWire::Make(std::move(sockets), *core_);
    if (!wire.ok()) std::abort();
    core_->Attach(*std::move(wire));
  }

  void Run() {
    while (input_.remaining_bytes() > 0) {
      Step();
      for (int i = 0; i < 4 && core_->Progress(); ++i) {
      }
    }
    // Its peers die, so all that is under way ends.
    for (auto& lanes : ends_) lanes.clear();
    bool all_closed = false;
    for (int i = 0; i < 100 && !all_closed; ++i) {
      Settle();
      clock_.AdvanceNs(200'000'000);
      core_->Tick(clock_.NowNs());
      all_closed = true;
      for (const uint64_t key : std::vector<uint64_t>(keys_)) all_closed &= Close(key);
    }
    if (!all_closed) std::abort();  // something would wait for ever
    TakeMail();
  }

 private:
  void Step() {
    const uint64_t key = keys_[input_.ConsumeIntegralInRange<size_t>(0, kGroups - 1)];
    switch (input_.ConsumeIntegralInRange<int>(0, 13)) {
      case 0:
        return Write(input_.ConsumeRandomLengthString(512));
      case 1:
      case 2:
        return Write(Frame(key));
      case 3:
        return WritePiece();
      case 4:
        return groups_.count(key) > 0 ? Begin(key) : Open(key);
      case 5:
        return End(key);
      case 6:
        return Use(key);
      case 7:
        return Drain();
      case 8:
        if (input_.ConsumeIntegralInRange<int>(0, 7) == 0) (void)Close(key);
        return;
      case 9:
        if (input_.ConsumeIntegralInRange<int>(0, 15) == 0) {
          ends_[Peer()].clear();
        }
        return;
      case 10:
        clock_.AdvanceNs(input_.ConsumeIntegralInRange<int64_t>(0, 400'000'000));
        return core_->Tick(clock_.NowNs());
      case 11:
        return Post();
      case 12:
        return TakeMail();
      default:
        return Settle();
    }
  }

  size_t Peer() { return input_.ConsumeIntegralInRange<size_t>(1, kSize - 1); }

  // A frame whose fields are near to what the worker may expect.
  std::string Frame(uint64_t key) {
    FrameHeader header;
    header.type = static_cast<FrameType>(input_.ConsumeIntegralInRange<int>(1, 10));
    header.job = input_.ConsumeIntegralInRange<int>(0, 31) == 0 ? 1 : kJob;
    header.group = key;
    header.sequence = input_.ConsumeIntegralInRange<uint64_t>(0, 4);
    header.step = input_.ConsumeIntegralInRange<uint32_t>(0, 2);
    header.total = input_.ConsumeIntegralInRange<uint64_t>(0, 4096);
    header.offset = input_.ConsumeIntegralInRange<uint64_t>(0, 3) * 1024;
    header.digest = kDigest - input_.ConsumeIntegralInRange<uint64_t>(0, 15) / 15;
    std::string payload(input_.ConsumeIntegralInRange<size_t>(0, 1100), 'p');
    if (header.type == FrameType::kGate && input_.ConsumeBool()) payload = Encode(Message());
    if (!CarriesData(header.type)) header.total = payload.size();
    header.payload_bytes = static_cast<uint32_t>(payload.size());
    const EncodedHeader encoded = Encode(header);
    return std::string(reinterpret_cast<const char*>(encoded.data()), encoded.size()) + payload;
  }

  GateMessage Message() {
    GateMessage message;
    message.kind = static_cast<GateMessage::Kind>(input_.ConsumeIntegralInRange<int>(1, 6));
    message.round = input_.ConsumeIntegralInRange<uint64_t>(0, 3);
    if (input_.ConsumeBool()) message.ranks = {0, 1, 2};
    for (int i = input_.ConsumeIntegralInRange<int>(0, 3); i > 0; --i) {
      GateMessage::Item item;
      item.sequence = input_.ConsumeIntegralInRange<uint64_t>(0, 4);
      item.start = input_.ConsumeIntegralInRange<uint8_t>(0, 3);
      item.finish = input_.ConsumeIntegralInRange<uint8_t>(0, 3);
      message.items.push_back(item);
    }
    return message;
  }

  // Its first part goes now, the rest comes before what is written next on the lane.
  void Write(std::string bytes) {
    const size_t peer = Peer();
    const size_t lane = input_.ConsumeIntegralInRange<size_t>(0, kLanes - 1);
    unsent_[{peer, lane}] += bytes;
    Push(peer, lane, input_.ConsumeBool() ? SIZE_MAX : input_.ConsumeIntegral<uint8_t>());
  }
  void WritePiece() {
    Push(Peer(), input_.ConsumeIntegralInRange<size_t>(0, kLanes - 1),
         input_.ConsumeIntegralInRange<size_t>(1, 1200));
  }
  void Push(size_t peer, size_t lane, size_t most) {
    std::string& bytes = unsent_[{peer, lane}];
    if (ends_[peer].empty()) return bytes.clear();
    const ssize_t sent = send(ends_[peer][lane].get(), bytes.data(), std::min(most, bytes.size()),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes.erase(0, static_cast<size_t>(sent));
  }

  void Open(uint64_t key) {
    const std::vector<std::vector<int>> members = {{0, 1, 2}, {0, 1}, {1, 0}, {2, 1, 0}};
    if (!core_->OpenGroup(key, members[input_.ConsumeIntegralInRange<size_t>(0, 3)]).ok()) return;
    groups_[key].clear();
    next_[key] = 0;
  }
  void Begin(uint64_t key) {
    auto& operations = groups_[key];
    if (operations.size() > 4) return;
    NetGroup& group = core_->group(key);
    auto operation = std::make_unique<Operation>();
    operation->data.resize(input_.ConsumeIntegralInRange<size_t>(0, 4096));
    operation->incoming.assign(group.members.size(), operation->data.size());
    const uint64_t sequence = next_[key]++;
    SessionSpec spec = {.sequence = sequence, .digest = kDigest};
    spec.ending = input_.ConsumeBool() ? Ending::kShared : Ending::kAwaited;
    spec.awaits_start = input_.ConsumeBool();
    if (input_.ConsumeBool()) spec.incoming = &operation->incoming;
    spec.data = operation->data.data();
    spec.data_bytes = operation->data.size();
    operation->core = &core_->Begin(group, spec, group.MemberOf(0));
    operations[sequence] = std::move(operation);
  }
  // Any of those that are under way.
  uint64_t Some(uint64_t key) {
    auto& operations = groups_[key];
    auto at = operations.begin();
    std::advance(at, input_.ConsumeIntegralInRange<size_t>(0, operations.size() - 1));
    return at->first;
  }
  // Whether it may end: its finish gate has passed, or a gate is broken.
  bool IsOver(uint64_t key, uint64_t sequence) {
    const GateProtocol& gates = *core_->group(key).gates;
    return gates.State(sequence, Gate::kFinish) != GateState::kOpen ||
           gates.State(sequence, Gate::kStart) == GateState::kBroken;
  }
  void End(uint64_t key) {
    if (groups_.count(key) == 0 || groups_[key].empty()) return;
    const uint64_t sequence = Some(key);
    if (!IsOver(key, sequence)) return;
    core_->End(core_->group(key), sequence);
    groups_[key].erase(sequence);
  }
  // Ends what is over; true if that was all, and the group is closed.
  bool Close(uint64_t key) {
    if (groups_.count(key) == 0) return true;
    std::erase_if(groups_[key], [&](const auto& entry) {
      if (!IsOver(key, entry.first)) return false;
      core_->End(core_->group(key), entry.first);
      return true;
    });
    if (!groups_[key].empty()) return false;
    core_->CloseGroup(key);
    groups_.erase(key);
    keys_[key % kGroups] += kGroups;  // no two groups of a job have the same key
    return true;
  }
  // What the engine does with an operation.
  void Use(uint64_t key) {
    if (groups_.count(key) == 0 || groups_[key].empty()) return;
    const uint64_t sequence = Some(key);
    Operation& operation = *groups_[key][sequence];
    NetGroup& group = core_->group(key);
    const auto member =
        input_.ConsumeIntegralInRange<int>(0, static_cast<int>(group.members.size()) - 1);
    const auto step = input_.ConsumeIntegralInRange<uint32_t>(0, 2);
    const bool self = group.members[static_cast<size_t>(member)] == 0;
    switch (input_.ConsumeIntegralInRange<int>(0, 5)) {
      case 0:
        if (self ||
            operation.core->cookies.contains({group.members[static_cast<size_t>(member)], step})) {
          return;
        }
        return core_->Offer(group, *operation.core, step, member, operation.data.data(),
                            operation.data.size());
      case 1: {
        if (self) return;
        const uint64_t bytes = input_.ConsumeIntegralInRange<uint64_t>(0, 4096);
        const std::byte* at = core_->Arrived(group, *operation.core, member, step, bytes);
        for (uint64_t i = 0; at != nullptr && i < bytes; ++i) sum_ = sum_ + static_cast<int>(at[i]);
        return;
      }
      case 2:
        return core_->Consume(*operation.core, group.members[static_cast<size_t>(member)], step);
      case 3:
        return Enter(group, operation, sequence, Gate::kStart);
      case 4:
        if (!operation.entered[static_cast<size_t>(Gate::kStart)]) return;
        return Enter(group, operation, sequence, Gate::kFinish);
      default:
        if (group.gates->State(sequence, Gate::kFinish) != GateState::kOpen) return;
        group.gates->Ask(sequence);
        return core_->Pump(group);
    }
  }

  void Enter(NetGroup& group, Operation& operation, uint64_t sequence, Gate gate) {
    bool& entered = operation.entered[static_cast<size_t>(gate)];
    if (!entered) entered = group.gates->Enter(sequence, gate, input_.ConsumeBool());
    core_->Pump(group);
  }

  void Post() {
    const auto to = input_.ConsumeIntegralInRange<int>(0, kSize - 1);
    const MailKind kind = input_.ConsumeBool() ? MailKind::kParcel : MailKind::kMessage;
    (void)core_->Post(to, kind, std::string(input_.ConsumeIntegralInRange<size_t>(0, 4300), 'm'));
  }
  // After the last word of a worker nothing comes from it.
  void TakeMail() {
    std::vector<Mail> all;
    core_->TakeMail(all);
    for (const Mail& mail : all) {
      if (gone_[static_cast<size_t>(mail.from)]) std::abort();
      if (mail.kind == MailKind::kLost || mail.kind == MailKind::kLeft) {
        gone_[static_cast<size_t>(mail.from)] = true;
      } else if (mail.bytes.empty() || mail.bytes.size() > MailBytesMax(mail.kind)) {
        std::abort();
      }
      for (const char byte : mail.bytes) sum_ = sum_ + byte;
    }
  }

  void Drain() {
    char buffer[4096];
    for (const auto& lanes : ends_) {
      for (const UniqueFd& end : lanes) {
        while (recv(end.get(), buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {
        }
      }
    }
  }
  void Settle() {
    for (int i = 0; i < 1000 && core_->Progress(); ++i) Drain();
  }

  FuzzedDataProvider& input_;
  ManualClock clock_;
  std::unique_ptr<Core> core_;
  std::vector<std::vector<UniqueFd>> ends_;  // the peers', by rank and lane
  std::map<std::pair<size_t, size_t>, std::string> unsent_;
  std::map<uint64_t, std::map<uint64_t, std::unique_ptr<Operation>>> groups_;
  std::vector<uint64_t> keys_ = {kGroups, kGroups + 1, kGroups + 2};  // of the groups in use
  std::map<uint64_t, uint64_t> next_;                                 // sequence, by key
  bool gone_[kSize] = {};
  volatile int sum_ = 0;
};

}  // namespace
}  // namespace syncopate::transport::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  syncopate::transport::net::Job(input).Run();
  return 0;
}
