// What a program asks of a topology: which messages it sends over which resources, and what its
// steps draw on them. Nothing here knows of time; cost/program_cost.cc plays the messages.
//
// The resources of the flow network are, in this order: the links, the capacities, the time of each
// device by node, and, if the topology says that devices share cores, all cores together.
#ifndef SYNCOPATE_COST_PROGRAM_FLOWS_H_
#define SYNCOPATE_COST_PROGRAM_FLOWS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cost/flow_network.h"
#include "model/program.h"
#include "model/topology.h"
#include "model/topology_routes.h"

namespace syncopate::cost {

// Memory traffic, in bytes for each byte of the step (docs/topology.md).
inline constexpr double kSenderReads = 1;
inline constexpr double kReceiveWrites = 1;
inline constexpr double kReceiveReduceReadsAndWrites = 2;
inline constexpr double kCopyReadsAndWrites = 2;
inline constexpr double kReduceReadsAndWrites = 3;

// Refers to a step of a worker. Worker -1 means that there is no such step.
struct StepRef {
  int worker = -1;
  uint32_t step = 0;
};

// What all messages from one worker to another have in common. They flow one after the other.
struct Channel {
  std::vector<int> route;  // links
  double latency = 0;
  double bytes = 0;  // of all its messages
  // What one byte draws from the resources, by the kind of step that receives it.
  std::vector<FlowNetwork::Draw> receive_draws;
  std::vector<FlowNetwork::Draw> receive_reduce_draws;
  // Seconds per message.
  double sender_overhead = 0;
  double receiver_overhead = 0;
  // Both in program order; the k-th send matches the k-th receive.
  std::vector<StepRef> sends;
  std::vector<StepRef> receives;
};

struct Message {
  StepRef send;
  StepRef receive;
  int channel = 0;
  double bytes = 0;
};

// An amount of bytes, each of which draws on resources. A flow without draws takes no time.
struct Flow {
  double amount = 0;
  std::vector<FlowNetwork::Draw> draws;
};

class ProgramFlows {
 public:
  // What is passed must outlive this. `program` must be well-formed and `placement` fit it.
  ProgramFlows(const Program& program, const Topology& topology, absl::Span<const int> placement,
               double bytes_per_element);

  // Pairs up sends and receives; to be called once, before channels() and messages() are asked for.
  // FailedPrecondition if a message has one end only or ends of different sizes.
  absl::Status Match();

  const std::vector<double>& bandwidths() const { return bandwidths_; }  // by resource
  const std::vector<Channel>& channels() const { return channels_; }
  const std::vector<Message>& messages() const { return messages_; }

  // What a message, and a copy or reduction within a worker, draws on while it runs.
  Flow FlowOf(const Message& message) const;
  Flow FlowOfLocal(StepRef ref) const;

 private:
  int CapacityResource(int capacity) const {
    return static_cast<int>(topology_.links.size()) + capacity;
  }
  int DeviceResource(int node) const {
    return CapacityResource(static_cast<int>(topology_.capacities.size())) + node;
  }
  int SharedCores() const { return DeviceResource(static_cast<int>(topology_.nodes.size())); }
  const Step& StepAt(StepRef ref) const { return program_.steps[ref.worker][ref.step]; }
  std::vector<double> Bandwidths() const;
  absl::StatusOr<int> ChannelBetween(int from, int to);
  void AddMemory(int worker, double weight, std::vector<FlowNetwork::Draw>& draws) const;
  absl::Status AddMessages(int channel);

  const Program& program_;
  const Topology& topology_;
  const absl::Span<const int> placement_;
  const double bytes_per_element_;
  Routes routes_;
  const std::vector<double> bandwidths_;
  absl::flat_hash_map<std::pair<int, int>, int> channel_by_pair_;
  std::vector<Channel> channels_;
  std::vector<Message> messages_;
};

}  // namespace syncopate::cost

#endif  // SYNCOPATE_COST_PROGRAM_FLOWS_H_
