// Our own driver: one process a worker, through the public interface only.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "driver.h"
#include "syncopate/syncopate.h"

namespace syncopate::peers {
namespace {

// Beyond the benchmark's buffer: alignment and the allocator's own needs.
constexpr uint64_t kArenaSlackBytes = uint64_t{4} << 20;

// Sets the variables as `syncopate launch` does, so that what is measured is a worker that starts
// from its environment.
void SetPlace(const DriverOptions& options, int rank) {
  const std::string rank_text = absl::StrCat(rank);
  const std::string size_text = absl::StrCat(options.workers);
  setenv("SYNCOPATE_JOB", absl::StrCat("bench-", rank == 0 ? getpid() : getppid()).c_str(), 1);
  setenv("SYNCOPATE_RANK", rank_text.c_str(), 1);
  setenv("SYNCOPATE_SIZE", size_text.c_str(), 1);
  setenv("SYNCOPATE_LOCAL_RANK", rank_text.c_str(), 1);
  setenv("SYNCOPATE_LOCAL_SIZE", size_text.c_str(), 1);
}

class Ours final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const DriverOptions& options, int rank) {
    if (options.rank_from.empty()) SetPlace(options, rank);
    auto contestant = std::unique_ptr<Ours>(new Ours(options));
    Options start;
    start.timeout = options.timeout;
    start.arena_bytes = options.bytes_max + kArenaSlackBytes;
    // Between hosts, several workers of one may need room for what comes from the others.
    if (!options.rank_from.empty()) *start.arena_bytes += 2 * options.bytes_max;
    SYNCOPATE_ASSIGN_OR_RETURN(contestant->worker_, Worker::Start(start));
    if (options.memory == "heap") {
      SYNCOPATE_ASSIGN_OR_RETURN(contestant->data_, TouchedMemory(options.bytes_max));
    } else {
      SYNCOPATE_ASSIGN_OR_RETURN(Buffer buffer, contestant->worker_->Allocate(options.bytes_max));
      std::memset(buffer.data(), 1, buffer.bytes());
      contestant->data_ = buffer.as<std::byte>();
      contestant->buffer_.emplace(std::move(buffer));
    }
    return contestant;
  }

  int rank() const override { return worker_->rank(); }
  int size() const override { return worker_->size(); }
  std::byte* data() override { return data_; }

  absl::Status Prepare(const tools::bench::RunRequest& request) override {
    call_ = {};
    call_.collective = request.collective;
    call_.op = request.op;
    call_.weight = Weight(rank());
    call_.root = kRoot;
    call_.target = Target(size());
    call_.algorithm = algorithm_;
    call_.active = request.active;
    if (request.collective != Collective::kBarrier) {
      call_.data = {data_, request.bytes / SizeOf(request.type), request.type};
    }
    // Not the first calls of a job are measured, but those that follow.
    return worker_->world().AwaitPlan(call_);
  }
  bool TakesPart(const tools::bench::RunRequest&) const override {
    return true;
  }  // as a relay at least
  absl::Status Call() override { return worker_->world().Run(call_); }
  absl::Status Barrier() override { return worker_->world().Barrier(); }

 private:
  explicit Ours(const DriverOptions& options) : algorithm_(options.algorithm) {}

  const std::string algorithm_;
  std::unique_ptr<Worker> worker_;
  std::optional<Buffer> buffer_;  // goes before its worker
  std::byte* data_ = nullptr;
  syncopate::Call call_;
};

}  // namespace
}  // namespace syncopate::peers

int main(int argc, char** argv) {
  return syncopate::peers::ForkedMain(argc, argv, syncopate::peers::Ours::Make);
}
