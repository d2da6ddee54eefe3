// The driver of Gloo: TCP over loopback, as Gloo has no shared memory, or between hosts. All-reduce
// takes the quickest of Gloo's algorithms at each size (ring, bcube, halving-doubling) unless one
// is named.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

// Gloo's headers compare signed with unsigned and shadow names.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/alltoall.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/gather.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/scatter.h"
#include "gloo/transport/tcp/device.h"
#pragma GCC diagnostic pop

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/parse.h"
#include "base/status.h"
#include "driver.h"

namespace syncopate::peers {
namespace {

using CallFunction = std::function<void()>;
constexpr const char* kAlgorithms[] = {"ring", "bcube", "halving-doubling"};

// Gloo reports errors by exceptions.
absl::Status Guarded(const CallFunction& function) {
  try {
    function();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

template <typename T>
struct Reduction {
  gloo::AllreduceOptions::Func fold;                // the newer interface
  const gloo::ReductionFunction<T>* function = {};  // the older one
};

template <typename T>
absl::StatusOr<Reduction<T>> ReductionOf(ReduceOp op) {
  using Fold = void (*)(void*, const void*, const void*, size_t);
  switch (op) {
    case ReduceOp::kSum:
      return Reduction<T>{Fold(&gloo::sum<T>), gloo::ReductionFunction<T>::sum};
    case ReduceOp::kProduct:
      return Reduction<T>{Fold(&gloo::product<T>), gloo::ReductionFunction<T>::product};
    case ReduceOp::kMin:
      return Reduction<T>{Fold(&gloo::min<T>), gloo::ReductionFunction<T>::min};
    case ReduceOp::kMax:
      return Reduction<T>{Fold(&gloo::max<T>), gloo::ReductionFunction<T>::max};
    default:
      return absl::UnimplementedError(absl::StrCat("Gloo has no ", Name(op)));
  }
}

class GlooContestant final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const DriverOptions& options, int rank) {
    if (!options.algorithm.empty() && std::find(std::begin(kAlgorithms), std::end(kAlgorithms),
                                                options.algorithm) == std::end(kAlgorithms)) {
      return absl::InvalidArgumentError(absl::StrCat("Gloo has no algorithm \"", options.algorithm,
                                                     "\"; choose ring, bcube or halving-doubling"));
    }
    auto contestant = std::unique_ptr<GlooContestant>(new GlooContestant(options, rank));
    SYNCOPATE_ASSIGN_OR_RETURN(contestant->data_, TouchedMemory(options.bytes_max));
    SYNCOPATE_RETURN_IF_ERROR(Guarded(
        [&] { contestant->everybody_ = contestant->Connect("all", rank, options.workers); }));
    SYNCOPATE_RETURN_IF_ERROR(contestant->Choose({}));
    return contestant;
  }

  int rank() const override { return rank_; }
  int size() const override { return options_.workers; }
  std::byte* data() override { return data_; }
  const std::byte* result() override {
    return request_.collective == Collective::kAllToAll ? second_ : data_;
  }
  // Gloo's reduce-scatter leaves the block at the buffer's start.
  const std::byte* ResultBlock(uint64_t) override { return data_; }

  absl::Status Prepare(const tools::bench::RunRequest& request) override {
    if (request.bytes / SizeOf(request.type) > INT_MAX) {
      return absl::UnimplementedError("Gloo counts elements in an int");
    }
    if (request.active != request_.active) SYNCOPATE_RETURN_IF_ERROR(Choose(request));
    request_ = request;
    if (!TakesPart(request)) return absl::OkStatus();
    if (request.collective == Collective::kAllToAll && second_ == nullptr) {
      SYNCOPATE_ASSIGN_OR_RETURN(second_, TouchedMemory(options_.bytes_max));
    }
    switch (request.type) {
      case DataType::kFloat32:
        return PrepareFor<float>();
      case DataType::kFloat64:
        return PrepareFor<double>();
      case DataType::kInt32:
        return PrepareFor<int32_t>();
      case DataType::kInt64:
        return PrepareFor<int64_t>();
      default:
        return absl::UnimplementedError(
            absl::StrCat("this driver has no ", Name(request.type), " for Gloo"));
    }
  }

  absl::Status Call() override { return Guarded(call_); }

  absl::Status Barrier() override {
    return Guarded([this] { gloo::barrier(*barrier_); });
  }

 private:
  GlooContestant(const DriverOptions& options, int rank) : options_(options), rank_(rank) {}

  // Calls are among the active ranks alone, in their order.
  absl::Status Choose(const tools::bench::RunRequest& request) {
    call_ = nullptr;
    chosen_.clear();
    if (!request.IsActive(rank_)) return absl::OkStatus();
    return Guarded([&] {
      const auto place = std::find(request.active.begin(), request.active.end(), rank_);
      context_ = request.active.empty() ? everybody_
                                        : Connect(FormatRanks(request.active),
                                                  static_cast<int>(place - request.active.begin()),
                                                  static_cast<int>(request.active.size()));
      barrier_ = std::make_unique<gloo::BarrierOptions>(context_);
    });
  }

  // `name` tells contexts apart where ranks find each other.
  std::shared_ptr<gloo::Context> Connect(const std::string& name, int rank, int size) {
    gloo::transport::tcp::attr attributes;
    // A rank on a host of its own is reached by the host's name.
    attributes.hostname = options_.rank_from.empty() ? "127.0.0.1" : HostName();
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto files = gloo::rendezvous::FileStore(options_.directory);
    auto store = gloo::rendezvous::PrefixStore(name, files);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(std::chrono::milliseconds(absl::ToInt64Milliseconds(options_.timeout)));
    context->connectFullMesh(store, device);
    return context;
  }

  template <typename T>
  absl::Status PrepareFor() {
    Reduction<T> reduction;
    if (Reduces(request_.collective)) {
      SYNCOPATE_ASSIGN_OR_RETURN(reduction, ReductionOf<T>(request_.op));
    }
    call_ = nullptr;  // the last call's buffers go before new ones come
    if (request_.collective != Collective::kAllReduce) {
      return Guarded([&] { call_ = MakeCall<T>(reduction); });
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string algorithm, ChooseAlgorithm<T>(reduction));
    return Guarded([&] { call_ = MakeAllReduce<T>(reduction, algorithm); });
  }

  // The named one, or the quickest of a short trial; all ranks see the same times.
  template <typename T>
  absl::StatusOr<std::string> ChooseAlgorithm(const Reduction<T>& reduction) {
    if (!options_.algorithm.empty()) return options_.algorithm;
    std::string& chosen = chosen_[{request_.bytes, request_.type, request_.op}];
    if (!chosen.empty()) return chosen;
    double best = 0;
    for (const char* algorithm : kAlgorithms) {
      double seconds = 0;
      SYNCOPATE_RETURN_IF_ERROR(Guarded([&] {
        const CallFunction call = MakeAllReduce<T>(reduction, algorithm);
        seconds = Trial(call);
      }));
      if (chosen.empty() || seconds < best) {
        best = seconds;
        chosen = algorithm;
      }
    }
    return chosen;
  }

  // The sum over all ranks of each rank's quickest call.
  double Trial(const CallFunction& call) {
    constexpr int kCalls = 5;
    double best = 0;
    for (int i = 0; i < kCalls; ++i) {
      const int64_t start = MonotonicClock().NowNs();
      call();
      const double seconds = static_cast<double>(MonotonicClock().NowNs() - start) * 1e-9;
      if (i == 0 || seconds < best) best = seconds;
    }
    gloo::AllreduceOptions options(context_);
    options.setOutput(&best, 1);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<double>));
    gloo::allreduce(options);
    gloo::barrier(*barrier_);  // nobody drops the call's buffers while another one sends to them
    return best;
  }

  template <typename T>
  CallFunction MakeAllReduce(const Reduction<T>& reduction, absl::string_view algorithm) {
    const size_t elements = request_.bytes / sizeof(T);
    if (algorithm == "halving-doubling") {
      auto run = std::make_shared<gloo::AllreduceHalvingDoubling<T>>(
          context_, std::vector<T*>{Data<T>()}, static_cast<int>(elements), reduction.function);
      return [run] { run->run(); };
    }
    auto options = std::make_shared<gloo::AllreduceOptions>(context_);
    options->setAlgorithm(algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                               : gloo::AllreduceOptions::Algorithm::RING);
    options->setOutput(Data<T>(), elements);
    options->setReduceFunction(reduction.fold);
    return [options] { gloo::allreduce(*options); };
  }

  template <typename T>
  CallFunction MakeCall(const Reduction<T>& reduction) {
    const size_t elements = request_.bytes / sizeof(T);
    const size_t block = elements / static_cast<size_t>(size());
    T* const data = Data<T>();
    T* const own = data + static_cast<size_t>(rank_) * block;
    switch (request_.collective) {
      case Collective::kReduce: {
        auto options = std::make_shared<gloo::ReduceOptions>(context_);
        options->setOutput(data, elements);
        options->setRoot(kRoot);
        options->setReduceFunction(reduction.fold);
        return [options] { gloo::reduce(*options); };
      }
      case Collective::kBroadcast: {
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        options->setOutput(data, elements);
        options->setRoot(kRoot);
        return [options] { gloo::broadcast(*options); };
      }
      case Collective::kAllGather: {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        options->setOutput(data, elements);
        return [options] { gloo::allgather(*options); };
      }
      case Collective::kReduceScatter: {
        auto run = std::make_shared<gloo::ReduceScatterHalvingDoubling<T>>(
            context_, std::vector<T*>{data}, static_cast<int>(elements),
            std::vector<int>(static_cast<size_t>(size()), static_cast<int>(block)),
            reduction.function);
        return [run] { run->run(); };
      }
      case Collective::kGather: {
        auto options = std::make_shared<gloo::GatherOptions>(context_);
        options->setInput(own, block);
        if (rank_ == kRoot) options->setOutput(data, elements);
        options->setRoot(kRoot);
        return [options] { gloo::gather(*options); };
      }
      case Collective::kScatter: {
        auto options = std::make_shared<gloo::ScatterOptions>(context_);
        if (rank_ == kRoot) {
          std::vector<T*> blocks;
          for (int r = 0; r < size(); ++r) blocks.push_back(data + static_cast<size_t>(r) * block);
          options->setInputs(blocks, block);
        }
        options->setOutput(own, block);
        options->setRoot(kRoot);
        return [options] { gloo::scatter(*options); };
      }
      case Collective::kAllToAll: {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(data, elements);
        options->setOutput(reinterpret_cast<T*>(second_), elements);
        return [options] { gloo::alltoall(*options); };
      }
      case Collective::kSendReceive:
        return MakeSendReceive();
      default:
        return [this] { gloo::barrier(*barrier_); };
    }
  }

  CallFunction MakeSendReceive() {
    constexpr uint64_t kSlot = 1;
    const int target = Target(size());
    if (size() == 1 || (rank_ != kRoot && rank_ != target)) return [] {};
    std::shared_ptr<gloo::transport::UnboundBuffer> buffer =
        context_->createUnboundBuffer(data_, request_.bytes);
    if (rank_ == kRoot) {
      return [buffer, target] {
        buffer->send(target, kSlot);
        buffer->waitSend();
      };
    }
    return [buffer] {
      buffer->recv(kRoot, kSlot);
      buffer->waitRecv();
    };
  }

  template <typename T>
  T* Data() {
    return reinterpret_cast<T*>(data_);
  }

  const DriverOptions options_;
  const int rank_;
  std::byte* data_ = nullptr;
  std::byte* second_ = nullptr;  // made at first use
  std::shared_ptr<gloo::Context> everybody_;
  std::shared_ptr<gloo::Context> context_;  // of the ranks that take part
  std::unique_ptr<gloo::BarrierOptions> barrier_;
  tools::bench::RunRequest request_;
  CallFunction call_;
  std::map<std::tuple<uint64_t, DataType, ReduceOp>, std::string> chosen_;
};

}  // namespace
}  // namespace syncopate::peers

int main(int argc, char** argv) {
  // Without exit handlers: Gloo's threads may still run.
  _exit(syncopate::peers::ForkedMain(argc, argv, syncopate::peers::GlooContestant::Make));
}
