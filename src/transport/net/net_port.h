// This worker's port to a group that spans several hosts.
#ifndef SYNCOPATE_TRANSPORT_NET_NET_PORT_H_
#define SYNCOPATE_TRANSPORT_NET_NET_PORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/net/core_transport.h"
#include "transport/transport.h"

namespace syncopate::transport::net {

class NetPort final : public GroupPort {
 public:
  // `local` is the port of the members on this host, or null if there are no others here.
  // `local_index` has each member's index in it, -1 for members on other hosts. The transport must
  // outlive the port.
  NetPort(CoreTransport& transport, uint64_t key, int self, std::unique_ptr<GroupPort> local,
          std::vector<int> local_index);
  ~NetPort() override;

  bool direct() const override { return false; }
  bool optimistic() const override { return true; }
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionSpec& spec) override;
  void Hurry() override;

  CoreTransport& transport() const { return transport_; }
  int self() const { return self_; }  // this worker's index among the members
  size_t size() const { return local_index_.size(); }
  int LocalIndex(int member) const { return local_index_[static_cast<size_t>(member)]; }

 private:
  CoreTransport& transport_;
  const uint64_t key_;
  const int self_;
  const std::unique_ptr<GroupPort> local_;
  const std::vector<int> local_index_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_NET_PORT_H_
