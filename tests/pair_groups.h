// For tests: a service that pairs workers that ask for a group at about the same time. One that finds nobody
// soon goes on alone, so that nobody waits for a worker that has come to its end.
#ifndef SYNCOPATE_TESTS_PAIR_GROUPS_H_
#define SYNCOPATE_TESTS_PAIR_GROUPS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "model/strategy_message.h"
#include "strategy/sample_strategies_testing.h"
#include "syncopate/service.h"

namespace syncopate {

class PairGroups : public Service {
 public:
  absl::string_view name() const override { return strategy::AskedGroups::kService; }

  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override {
    ServiceStep step;
    if (const auto* departed = std::get_if<ServiceDeparted>(&event)) {
      if (waits_ && departed->rank == from_) waits_ = 0;
    } else if (const auto* asked = std::get_if<ServiceAsked>(&event)) {
      uint64_t version = 0;
      if (const auto message = DecodeStrategyMessage(asked->request, limits::kWorkersMax);
          message.ok() && std::holds_alternative<WantGroup>(*message)) {
        total_ += std::get<WantGroup>(*message).samples;
        version = std::get<WantGroup>(*message).version;
      }
      if (waits_ && asked->from != from_) {
        waits_ = 0;
        ++number_;
        const std::vector<int> pair = {std::min(from_, asked->from), std::max(from_, asked->from)};
        // Versions only grow, so whoever may plan by one may plan by those before it.
        const uint64_t both = std::min(version, version_);
        Give(from_, ticket_, pair, both, step);
        Give(asked->from, asked->ticket, pair, both, step);
      } else {
        waits_ = 1;
        from_ = asked->from;
        ticket_ = asked->ticket;
        version_ = version;
        until_ns_ = context.now_ns + kPatienceNs;
      }
    } else if (waits_ && context.now_ns >= until_ns_) {
      waits_ = 0;
      Give(from_, ticket_, {from_}, version_, step);
    }
    return step;
  }
  int64_t NextDeadlineNs() const override { return waits_ ? until_ns_ : INT64_MAX; }

  std::string State() const override {
    return absl::StrCat(waits_, " ", from_, " ", ticket_, " ", until_ns_, " ", number_, " ", total_,
                        " ", version_);
  }
  absl::Status Load(absl::string_view state) override {
    const std::vector<absl::string_view> words = absl::StrSplit(state, ' ');
    const bool read = words.size() == 7 && absl::SimpleAtoi(words[0], &waits_) &&
                      absl::SimpleAtoi(words[1], &from_) && absl::SimpleAtoi(words[2], &ticket_) &&
                      absl::SimpleAtoi(words[3], &until_ns_) &&
                      absl::SimpleAtoi(words[4], &number_) && absl::SimpleAtoi(words[5], &total_) &&
                      absl::SimpleAtoi(words[6], &version_);
    return read ? absl::OkStatus() : absl::DataLossError("no state of pairs");
  }
  // Pairs are numbered on. The one that waited is another worker by now, and samples are counted from
  // where the job went on.
  bool CanResume() const override { return true; }
  absl::Status Resume(absl::string_view state, const std::vector<int>& /*ranks*/) override {
    PairGroups before;
    if (const absl::Status read = before.Load(state); !read.ok()) return read;
    number_ = before.number_;
    return absl::OkStatus();
  }
  uint64_t number() const { return number_; }

 private:
  static constexpr int64_t kPatienceNs = 5'000'000;

  void Give(int to, uint64_t ticket, const std::vector<int>& members, uint64_t version,
            ServiceStep& step) const {
    const GroupGiven given = {.key = {.maker = 1, .number = number_},
                              .members = members,
                              .version = version,
                              .total_samples = total_};
    step.answers.push_back({.to = to, .ticket = ticket, .bytes = Encode(StrategyMessage(given))});
  }

  int waits_ = 0;  // whether one waits
  int from_ = -1;
  uint64_t ticket_ = 0;
  uint64_t version_ = 0;  // of the network, that the one that waits may plan by
  int64_t until_ns_ = 0;
  uint64_t number_ = 0;  // of the last pair
  uint64_t total_ = 0;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_PAIR_GROUPS_H_
