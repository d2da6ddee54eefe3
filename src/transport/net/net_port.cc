#include "transport/net/net_port.h"

#include <algorithm>
#include <utility>

#include "transport/net/net_session.h"

namespace syncopate::transport::net {
namespace {

// The operations of a group that may be under way. Those that only wait for others to finish count.
constexpr size_t kOperationsMax = 64;

}  // namespace

NetPort::NetPort(CoreTransport& transport, uint64_t key, int self, std::unique_ptr<GroupPort> local,
                 std::vector<int> local_index)
    : transport_(transport),
      key_(key),
      self_(self),
      local_(std::move(local)),
      local_index_(std::move(local_index)) {}

NetPort::~NetPort() {
  MutexLock lock(&transport_.mutex());
  transport_.core().CloseGroup(key_);
}

void NetPort::Hurry() {
  MutexLock lock(&transport_.mutex());
  transport_.core().Hurry(key_);
}

absl::StatusOr<std::unique_ptr<Session>> NetPort::Open(const SessionSpec& spec) {
  {
    MutexLock lock(&transport_.mutex());
    NetGroup& group = transport_.core().group(key_);
    const auto begun = std::count_if(group.operations.begin(), group.operations.end(),
                                     [](const auto& entry) { return entry.second->opened; });
    if (static_cast<size_t>(begun) >= kOperationsMax) {
      transport_.core().FlushAll();
      return absl::UnavailableError("too many operations of the group are under way");
    }
  }
  std::unique_ptr<Session> local;
  if (local_ != nullptr) {
    absl::StatusOr<std::unique_ptr<Session>> opened = local_->Open(spec);
    if (!opened.ok()) {
      transport_.Flush();  // what holds the place may only wait for a word
      return opened.status();
    }
    local = *std::move(opened);
  }
  MutexLock lock(&transport_.mutex());
  NetGroup& group = transport_.core().group(key_);
  NetOperation& operation = transport_.core().Begin(group, spec, self_);
  return std::make_unique<NetSession>(*this, group, operation, std::move(local),
                                      transport_.core().limits().prompt_bytes);
}

}  // namespace syncopate::transport::net
