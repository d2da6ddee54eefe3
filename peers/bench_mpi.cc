// The driver of an MPI library, built once with Open MPI and once with MPICH. In place wherever MPI
// can do so quickly; reduce-scatter and all-to-all, which it cannot, get a second buffer.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <climits>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "driver.h"

namespace syncopate::peers {
namespace {

absl::StatusOr<MPI_Datatype> TypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    default:
      return absl::UnimplementedError(absl::StrCat("MPI has no ", Name(type)));
  }
}

absl::StatusOr<MPI_Op> OpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kMax:
      return MPI_MAX;
    case ReduceOp::kProduct:
      return MPI_PROD;
    default:
      return absl::UnimplementedError(absl::StrCat("MPI has no ", Name(op)));
  }
}

// MPI's errors end the whole job with a message, so codes need no checking.
class MpiContestant final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const DriverOptions& options) {
    MPI_Init(nullptr, nullptr);
    auto contestant = std::unique_ptr<MpiContestant>(new MpiContestant);
    if (!options.algorithm.empty()) {
      return absl::UnimplementedError("algorithms of MPI are chosen by its own settings");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &contestant->rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &contestant->size_);
#if defined(MPICH_VERSION)
    // MPICH's blocking calls spin to the end of their time slice, whatever its settings; with more
    // ranks than cores its other calls are many times quicker.
    contestant->yield_ = contestant->size_ > static_cast<int>(std::thread::hardware_concurrency());
#endif
    contestant->bytes_max_ = options.bytes_max;
    SYNCOPATE_ASSIGN_OR_RETURN(contestant->data_, TouchedMemory(options.bytes_max));
    return contestant;
  }
  ~MpiContestant() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::byte* data() override { return data_; }
  const std::byte* result() override { return NeedsSecondBuffer() ? second_ : data_; }

  absl::Status Prepare(const tools::bench::RunRequest& request) override {
    SYNCOPATE_ASSIGN_OR_RETURN(type_, TypeOf(request.type));
    if (Reduces(request.collective)) {
      SYNCOPATE_ASSIGN_OR_RETURN(op_, OpOf(request.op));
    }
    const uint64_t elements = request.bytes / SizeOf(request.type);
    if (elements > INT_MAX) return absl::UnimplementedError("MPI counts elements in an int");
    if (request.active != request_.active) MakeCommunicator(request);
    request_ = request;
    count_ = static_cast<int>(elements);
    block_ = count_ / size_;
    own_ = static_cast<size_t>(rank_) * static_cast<size_t>(block_) * SizeOf(request.type);
    if (NeedsSecondBuffer() && second_ == nullptr) {
      SYNCOPATE_ASSIGN_OR_RETURN(second_, TouchedMemory(bytes_max_));
    }
    return absl::OkStatus();
  }

  absl::Status Call() override {
    std::byte* const own = data_ + own_;
    const bool root = rank_ == kRoot;
    switch (request_.collective) {
      case Collective::kAllReduce:
        Do(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, data_, count_, type_, op_, comm_);
        break;
      case Collective::kReduce:
        Do(MPI_Reduce, MPI_Ireduce, root ? MPI_IN_PLACE : data_, data_, count_, type_, op_, kRoot,
           comm_);
        break;
      case Collective::kBroadcast:
        Do(MPI_Bcast, MPI_Ibcast, data_, count_, type_, kRoot, comm_);
        break;
      case Collective::kAllGather:
        Do(MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data_, block_, type_,
           comm_);
        break;
      case Collective::kReduceScatter:
        Do(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, data_, second_ + own_, block_,
           type_, op_, comm_);
        break;
      case Collective::kGather:
        Do(MPI_Gather, MPI_Igather, root ? MPI_IN_PLACE : own, block_, type_, data_, block_, type_,
           kRoot, comm_);
        break;
      case Collective::kScatter:
        Do(MPI_Scatter, MPI_Iscatter, data_, block_, type_, root ? MPI_IN_PLACE : own, block_,
           type_, kRoot, comm_);
        break;
      case Collective::kAllToAll:
        Do(MPI_Alltoall, MPI_Ialltoall, data_, block_, type_, second_, block_, type_, comm_);
        break;
      case Collective::kBarrier:
        return Barrier();
      case Collective::kSendReceive:
        SendReceive();
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Barrier() override {
    Do(MPI_Barrier, MPI_Ibarrier, comm_);
    return absl::OkStatus();
  }

 private:
  MpiContestant() = default;
  bool NeedsSecondBuffer() const {
    return request_.collective == Collective::kAllToAll ||
           request_.collective == Collective::kReduceScatter;
  }

  // A communicator of the active ranks alone, in their order.
  void MakeCommunicator(const tools::bench::RunRequest& request) {
    if (comm_ != MPI_COMM_WORLD) MPI_Comm_free(&comm_);
    comm_ = MPI_COMM_WORLD;
    if (request.active.empty() || !request.IsActive(rank_)) return;
    MPI_Group world, active;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(request.active.size()), request.active.data(), &active);
    MPI_Comm_create_group(MPI_COMM_WORLD, active, 0, &comm_);
    MPI_Group_free(&active);
    MPI_Group_free(&world);
  }

  // One call in its blocking form, or in its other form with a wait that yields.
  template <typename Blocking, typename Starting, typename... Arguments>
  void Do(Blocking blocking, Starting starting, Arguments... arguments) {
    if (!yield_) {
      blocking(arguments...);
      return;
    }
    MPI_Request request;
    starting(arguments..., &request);
    WaitYielding(&request);
  }

  void SendReceive() {
    if (size_ == 1) return;
    if (rank_ == kRoot) {
      Do(MPI_Send, MPI_Isend, data_, count_, type_, Target(size_), 0, comm_);
    } else if (rank_ == Target(size_)) {
      MPI_Request request;
      MPI_Irecv(data_, count_, type_, kRoot, 0, comm_, &request);
      if (yield_) {
        WaitYielding(&request);
      } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
    }
  }

  static void WaitYielding(MPI_Request* request) {
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), done == 0) sched_yield();
  }

  MPI_Comm comm_ = MPI_COMM_WORLD;  // of the ranks that take part
  int rank_ = 0;
  int size_ = 1;
  bool yield_ = false;
  uint64_t bytes_max_ = 0;
  std::byte* data_ = nullptr;
  std::byte* second_ = nullptr;  // made at first use
  tools::bench::RunRequest request_;
  MPI_Datatype type_ = MPI_FLOAT;
  MPI_Op op_ = MPI_SUM;
  int count_ = 0;
  int block_ = 0;
  size_t own_ = 0;  // where this rank's block starts, in bytes
};

}  // namespace
}  // namespace syncopate::peers

int main(int argc, char** argv) {
  // Without the libraries' exit handlers: what MPI leaves behind is not ours to report.
  _exit(syncopate::peers::RankMain(argc, argv, syncopate::peers::MpiContestant::Make));
}
