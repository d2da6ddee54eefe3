#include "train/trace_desk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

constexpr absl::string_view kTraceTopic = "train/traces";

}  // namespace

absl::StatusOr<std::unique_ptr<TraceDesk>> TraceDesk::Open(Worker& worker) {
  std::unique_ptr<TraceDesk> desk(new TraceDesk(worker));
  SYNCOPATE_RETURN_IF_ERROR(worker.Receive(kTraceTopic, [desk = desk.get()](Mail mail) {
    MutexLock lock(&desk->mutex_);
    if (mail.kind == Mail::Kind::kParcel) {
      desk->texts_[mail.from] = std::move(mail.bytes);
    } else if (mail.kind != Mail::Kind::kMessage) {
      desk->gone_.insert(mail.from);
    }
    desk->changed_.SignalAll();
  }));
  return desk;
}

TraceDesk::~TraceDesk() { (void)worker_.Receive(kTraceTopic, nullptr); }

absl::Status TraceDesk::Send(int writer, const WorkerTrace& trace) {
  const absl::Status sent = worker_.SendParcel(writer, kTraceTopic, Encode(trace));
  return absl::IsUnavailable(sent) ? absl::OkStatus() : sent;
}

absl::StatusOr<std::vector<WorkerTrace>> TraceDesk::Gather(const std::vector<int>& members,
                                                           const WorkerTrace& own,
                                                           int64_t deadline_ns) {
  std::map<int, std::string> texts;
  {
    MutexLock lock(&mutex_);
    const auto missing = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find_if(members.begin(), members.end(), [&](int rank) {
        return rank != worker_.rank() && !texts_.contains(rank) && !gone_.contains(rank);
      });
    };
    while (missing() != members.end()) {
      const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
      if (left_ns <= 0) {
        return absl::DeadlineExceededError(
            absl::StrCat("rank ", *missing(), " did not send its trace in time"));
      }
      changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
    }
    texts = texts_;
  }
  std::vector<WorkerTrace> traces;
  for (const int rank : members) {
    if (rank == worker_.rank()) traces.push_back(own);
    const auto text = texts.find(rank);
    if (rank == worker_.rank() || text == texts.end()) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(WorkerTrace trace, DecodeTrace(text->second));
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace syncopate::train
