// Links whose rate is kept by token buckets, as those of a lab are, in virtual time.
//
// A bucket holds at most `burst` bytes and gets as many a second as the link's rate. What crosses the link
// takes its bytes out. So after a pause a link is as quick as its line until it has made up for the pause,
// at most for burst / rate seconds; then it is as quick as its rate again. In fluids:
//
//     d tokens / dt = rate - usage,  0 <= tokens <= burst,
//     usage <= line_rate  while there are tokens,  usage <= rate  while there are none.
#ifndef SYNCOPATE_SIM_TOKEN_BUCKETS_H_
#define SYNCOPATE_SIM_TOKEN_BUCKETS_H_

#include <cstddef>
#include <vector>

#include "cost/flow_network.h"
#include "model/topology.h"

namespace syncopate::sim {

// Of a capacity of a topology, such as that of a link's one direction. Its bandwidth is the bucket's rate.
struct CapacityBucket {
  int capacity = -1;
  double burst = 0;      // bytes; positive
  double line_rate = 0;  // bytes a second, while there are tokens; at least the bandwidth
};

// The arithmetic of one bucket, which is full at time 0. Time never goes back.
class TokenBucket {
 public:
  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), tokens_(burst) {}

  // To `now`, if as much a second was used since the last call as was said then.
  void Advance(double now);
  // From now on.
  void SetUsage(double usage) { usage_ = usage; }

  double tokens() const { return tokens_; }
  // When it is empty if more is used than comes in, which may be now; else infinity.
  double EmptyAt() const;

 private:
  double rate_;
  double burst_;
  double tokens_;
  double usage_ = 0;
  double now_ = 0;
};

// The buckets of a network, which change its capacities. Not thread-safe.
class TokenBuckets {
 public:
  // The resources of the network are the links of `topology`, then its capacities, and others.
  TokenBuckets(const std::vector<CapacityBucket>& buckets, const Topology& topology);

  // Sets the capacities that hold at `now`, when flows of the network have changed or a bucket is empty.
  // Returns when the next bucket will be empty if no flow changes.
  double Settle(double now, cost::FlowNetwork& network);

  // Seconds a byte of a flow that moves `bytes` and takes `b` seconds a byte alone where no bucket has
  // tokens, if all are full. By what it draws on most: bytes for which that has tokens take as long as
  // on the line, the others `b`.
  double QuickestSeconds(double b, double bytes,
                         const std::vector<cost::FlowNetwork::Draw>& draws) const;

 private:
  struct Shaped {
    TokenBucket bucket;
    double rate = 0;
    double burst = 0;
    double line_rate = 0;
    int resource = -1;
    bool open = false;  // as quick as the line
  };

  std::vector<Shaped> shaped_;
  std::vector<int> of_resource_;  // of links and capacities: its place in shaped_; -1: none
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_TOKEN_BUCKETS_H_
