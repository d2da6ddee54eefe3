// Serves the workers that push to this one and pull from it, whatever its training thread does.
//
// A worker that pushes or pulls makes the group of the pair, sends a request by mail and starts a
// send-receive for each type of element. Here the request starts the other half of these, with memory
// of its own: what was pushed is applied to the store when all of it has come, and what is pulled is
// read from the store when the transfer starts. Requests of one worker are started in their order,
// and a pull only when the pushes of that worker before it have been applied, so that it sees them.
// Requests of different workers run beside each other.
//
// A push of which not all came, because its worker was lost, changes nothing.
//
// All of it but Open() and Close() runs on the worker's control thread, so that the store is used by one thread
// at a time: requests come there as mail, and the store's work is done piece by piece (sync/long_work.h). What is
// left of that when the synchronizer ends is done by the thread that ends it (sync/control_tasks.h).
#ifndef SYNCOPATE_SYNC_SERVING_H_
#define SYNCOPATE_SYNC_SERVING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/tensor_layout.h"
#include "sync/call_queue.h"
#include "sync/control_tasks.h"
#include "sync/long_work.h"
#include "sync/pair_groups.h"
#include "sync/parameter_store.h"
#include "sync/serve_request.h"
#include "sync/staging_memory.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

class Serving {
 public:
  // The topic of requests to the synchronizer of this number; all workers make theirs in the same
  // order.
  static std::string Topic(int number);

  // `store`: null if this worker serves nobody, in which case a request is an error. `fail` is told
  // errors with which this worker cannot go on. `timeout`: of calls that are held (CallQueue). All of them must outlive it.
  Serving(Worker& worker, std::string topic, const TensorLayout& layout, int tensors,
          ParameterStore* store, ControlTasks& tasks, LongWork& work, absl::Duration timeout,
          std::function<void(const absl::Status&)> fail);
  // Waits for what is under way, within its timeouts. No task may run any more.
  ~Serving();
  Serving(const Serving&) = delete;

  // From now on requests are taken, also those that have come before; and no more of them.
  absl::Status Open();
  void Close();

 private:
  struct Served {
    uint64_t number = 0;
    ServeRequest request = {};
    std::vector<TensorLayout::Range> ranges = {};
    std::vector<size_t> places = {};  // of the ranges in the memory
    std::optional<StagingMemory> memory = {};
    std::vector<std::shared_ptr<CallQueue::Started>> calls = {};
    size_t calls_left = 0;
    absl::Status status = {};  // the first error of a call
    enum class Stage : uint8_t { kWaits, kPrepares, kMoves, kOver } stage = Stage::kWaits;
  };

  void Came(int from, const std::string& bytes);
  // Starts what may start, and lets go of what is over.
  void Advance(int from);
  // Its memory may have to be taken from the system, piece by piece.
  void Start(int from, Served& served);
  void StartIn(int from, Served& served, size_t bytes);
  // What is pulled is read piece by piece; then its calls start.
  void Read(int from, Served& served);
  void StartCalls(int from, Served& served);
  absl::Status TryStartCalls(int from, Served& served);
  void CallEnded(int from, uint64_t number, const absl::Status& status);
  // All of a push has come: it is applied piece by piece.
  void ApplyPush(int from, Served& served);
  void End(int from, Served& served);

  Worker& worker_;
  const std::string topic_;
  const TensorLayout& layout_;
  const int tensors_;
  ParameterStore* const store_;
  ControlTasks& tasks_;
  LongWork& work_;
  const std::function<void(const absl::Status&)> fail_;
  bool open_ = false;
  PairGroups groups_;
  CallQueue calls_;
  std::map<int, std::list<Served>> queues_;  // by the worker that is served
  uint64_t numbers_ = 0;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SERVING_H_
