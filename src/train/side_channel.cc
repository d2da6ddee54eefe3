#include "train/side_channel.h"

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

constexpr int kClockExchanges = 8;

}  // namespace

absl::StatusOr<SideChannel> SideChannel::Make(Worker& worker) {
  std::vector<int> everyone(static_cast<size_t>(worker.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, worker.NewGroup(everyone));
  return SideChannel(worker, std::move(group));
}

absl::StatusOr<std::vector<double>> SideChannel::Sum(std::vector<double> values) {
  SYNCOPATE_RETURN_IF_ERROR(adapt::Sum(exchange(), "sums", values));
  return values;
}

absl::Status SideChannel::Agree(const absl::Status& own) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<std::string> outcomes,
      adapt::TextsOfAll(exchange(), "outcome of a step", own.ok() ? "" : "failed"));
  for (int rank = 0; rank < worker_.size(); ++rank) {
    if (outcomes[static_cast<size_t>(rank)].empty()) continue;
    if (rank == worker_.rank()) return own;
    return absl::CancelledError(absl::StrCat("rank ", rank, " failed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<observe::ClockOffset> SideChannel::CompareClocks() {
  // The workers take turns, so that none of them is delayed by another's messages.
  observe::ClockOffset offset;
  for (int other = 1; other < worker_.size(); ++other) {
    if (worker_.rank() == 0 || worker_.rank() == other) {
      SYNCOPATE_ASSIGN_OR_RETURN(Group pair, worker_.NewGroup({0, other}));
      std::vector<observe::ClockExchange> exchanges;
      for (int i = 0; i < kClockExchanges; ++i) {
        observe::ClockExchange exchange;
        exchange.sent_ns = MonotonicClock().NowNs();
        int64_t there = 0;
        SYNCOPATE_RETURN_IF_ERROR(pair.SendReceive(Array::Of(&there, 1), 1, 0));
        there = MonotonicClock().NowNs();  // rank 0's counts
        SYNCOPATE_RETURN_IF_ERROR(pair.SendReceive(Array::Of(&there, 1), 0, 1));
        exchange.received_ns = exchange.answered_ns = there;
        exchange.returned_ns = MonotonicClock().NowNs();
        exchanges.push_back(exchange);
      }
      if (worker_.rank() == other) {
        SYNCOPATE_ASSIGN_OR_RETURN(offset, observe::EstimateClockOffset(exchanges));
      }
    }
    SYNCOPATE_RETURN_IF_ERROR(group_.Barrier());
  }
  return offset;
}

}  // namespace syncopate::train
