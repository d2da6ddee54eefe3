// Services that answer some time after they were asked, for the sample strategies
// (strategy/sample_strategies_testing.h). For tests.
#ifndef SYNCOPATE_SIM_SAMPLE_SERVICES_TESTING_H_
#define SYNCOPATE_SIM_SAMPLE_SERVICES_TESTING_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "model/strategy_message.h"
#include "strategy/sample_strategies_testing.h"
#include "syncopate/service.h"

namespace syncopate::sim {

// What it answers is decided when it is asked, and said `DelayNs()` later.
class LateAnswers : public Service {
 public:
  explicit LateAnswers(std::string name) : name_(std::move(name)) {}
  absl::string_view name() const override { return name_; }

  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override {
    ServiceStep step;
    if (const auto* asked = std::get_if<ServiceAsked>(&event)) {
      const auto message = DecodeStrategyMessage(asked->request, limits::kWorkersMax);
      if (!message.ok()) {
        step.answers.push_back(Refusal(asked->from, asked->ticket, message.status()));
      } else {
        due_.emplace(std::pair(context.now_ns + DelayNs(asked->from), ++number_),
                     Due{asked->from, asked->ticket, Encode(AnswerTo(asked->from, *message))});
      }
    }
    if (const auto* departed = std::get_if<ServiceDeparted>(&event)) {
      std::erase_if(due_, [&](const auto& due) { return due.second.to == departed->rank; });
    }
    while (!due_.empty() && due_.begin()->first.first <= context.now_ns) {
      const Due& due = due_.begin()->second;
      step.answers.push_back({.to = due.to, .ticket = due.ticket, .bytes = due.bytes});
      due_.erase(due_.begin());
    }
    return step;
  }
  int64_t NextDeadlineNs() const override {
    return due_.empty() ? INT64_MAX : due_.begin()->first.first;
  }

  std::string State() const override {
    std::string out;
    Append(out, number_);
    Append(out, total_);
    for (const auto& [when, due] : due_) {
      Append(out, when.first);
      Append(out, when.second);
      Append(out, due.to);
      Append(out, due.ticket);
      Append(out, static_cast<uint32_t>(due.bytes.size()));
      out += due.bytes;
    }
    return out;
  }
  absl::Status Load(absl::string_view state) override {
    ByteReader reader(state);
    number_ = reader.Read<uint64_t>();
    total_ = reader.Read<uint64_t>();
    due_.clear();
    while (reader.ok() && !reader.AtEnd()) {
      const auto when = reader.Read<int64_t>();
      const auto number = reader.Read<uint64_t>();
      Due due;
      due.to = reader.Read<int>();
      due.ticket = reader.Read<uint64_t>();
      const auto bytes = reader.Read<uint32_t>();
      due.bytes = std::string(reader.ReadBytes(bytes));
      due_.emplace(std::pair(when, number), std::move(due));
    }
    return reader.AtEnd() ? absl::OkStatus() : absl::DataLossError("no state of late answers");
  }

 protected:
  virtual int64_t DelayNs(int rank) const = 0;
  virtual StrategyMessage AnswerTo(int rank, const StrategyMessage& request) = 0;

  uint64_t total_ = 0;  // samples that were told

 private:
  struct Due {
    int to = -1;
    uint64_t ticket = 0;
    std::string bytes;
  };

  const std::string name_;
  std::map<std::pair<int64_t, uint64_t>, Due> due_;  // by when, and the number of the request
  uint64_t number_ = 0;
};

// Gives every worker its turn, higher ranks a little later.
class LateTurns : public LateAnswers {
 public:
  LateTurns() : LateAnswers(strategy::PermittedServer::kService) {}

 protected:
  int64_t DelayNs(int rank) const override { return 1'000'000 * rank; }
  StrategyMessage AnswerTo(int /*rank*/, const StrategyMessage& /*request*/) override {
    return TurnGiven{.samples = 8};
  }
};

// Gives a worker its neighbour of the round.
class LateGroups : public LateAnswers {
 public:
  explicit LateGroups(int workers)
      : LateAnswers(strategy::AskedGroups::kService), workers_(workers) {}

 protected:
  int64_t DelayNs(int /*rank*/) const override { return 1'000'000; }
  StrategyMessage AnswerTo(int rank, const StrategyMessage& request) override {
    const auto& want = std::get<WantGroup>(request);
    total_ += want.samples;
    GroupGiven given{.members = strategy::NeighboursOf(rank, workers_, want.iteration, {}),
                     .total_samples = total_};
    given.key = {
        .maker = 1,
        .number = static_cast<uint64_t>(want.iteration * workers_ + given.members.front())};
    return given;
  }

 private:
  const int workers_;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_SAMPLE_SERVICES_TESTING_H_
