#include "sim/virtual_service.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"
#include "base/status.h"
#include "syncopate/service.h"

namespace syncopate::sim {
namespace {

using services::Change;

// The service of one worker, made when the worker first has to step it: of very many workers only those
// that host or stand by ever do.
class LateService : public Service {
 public:
  LateService(std::string name, int rank, const VirtualOptions& options)
      : name_(std::move(name)), rank_(rank), options_(options) {}

  absl::string_view name() const override { return name_; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override {
    return Made().Step(context, event);
  }
  int64_t NextDeadlineNs() const override { return Made().NextDeadlineNs(); }
  std::string State() const override { return Made().State(); }
  absl::Status Load(absl::string_view state) override { return Made().Load(state); }
  bool CanRebuild() const override { return Made().CanRebuild(); }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override {
    return Made().Rebuild(context, reports);
  }

 private:
  Service& Made() const {
    if (made_ == nullptr) made_ = options_.make_service(rank_);
    return *made_;
  }

  const std::string name_;
  const int rank_;
  const VirtualOptions& options_;
  mutable std::unique_ptr<Service> made_;
};

// The first moment that is not before `ns`.
double SecondsAt(int64_t ns) {
  double seconds = static_cast<double>(ns) * 1e-9;
  while (std::llround(seconds * 1e9) < ns) {
    seconds = std::nextafter(seconds, std::numeric_limits<double>::infinity());
  }
  return seconds;
}

}  // namespace

VirtualService::VirtualService(const VirtualOptions& options, const double& now, EventQueue& queue,
                               Listener listener)
    : options_(options),
      now_(now),
      queue_(queue),
      listener_(std::move(listener)),
      delay_(options.message_delay.value_or(0)),
      parts_(static_cast<size_t>(options.workers)) {}

int64_t VirtualService::NowNs() const { return std::llround(now_ * 1e9); }

absl::Status VirtualService::Begin() {
  std::set<int> absent;
  for (const VirtualOptions::Join& join : options_.joins) absent.insert(join.rank);
  std::vector<int> candidates = options_.service_ranks;
  const bool workers_other_than_servers =
      options_.servers.size() < static_cast<size_t>(options_.workers);
  for (int rank = 0; rank < options_.workers && options_.service_ranks.empty(); ++rank) {
    const bool serves =
        workers_other_than_servers &&
        std::find(options_.servers.begin(), options_.servers.end(), rank) != options_.servers.end();
    if (options_.Trains(rank) && !serves) candidates.push_back(rank);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      order_, services::HostOrder::Make(options_.workers, std::move(candidates),
                                        std::vector<int>(absent.begin(), absent.end())));
  const std::unique_ptr<Service> example = options_.make_service(0);
  if (example == nullptr) return absl::InvalidArgumentError("there is no service to simulate");
  name_ = std::string(example->name());
  for (int rank = 0; rank < options_.workers; ++rank) {
    if (!absent.contains(rank)) SYNCOPATE_RETURN_IF_ERROR(Start(rank));
  }
  return absl::OkStatus();
}

absl::Status VirtualService::Start(int rank) {
  Part& part = PartOf(rank);
  services::Services list;
  list.push_back(std::make_unique<LateService>(name_, rank, options_));
  services::ServiceHostOptions options = {
      .rank = rank, .size = options_.workers, .candidates = {}, .history = changes_};
  options.order = order_;
  SYNCOPATE_ASSIGN_OR_RETURN(
      part.host, services::ServiceHost::Make(std::move(options), std::move(list), NowNs()));
  part.runs = true;
  part.known = changes_.size();
  part.joined = changes_.size();
  Drain(rank);
  return absl::OkStatus();
}

absl::Status VirtualService::Ask(int rank, uint64_t tag, std::string request) {
  Part& part = PartOf(rank);
  SYNCOPATE_RETURN_IF_ERROR(part.ended);
  const absl::StatusOr<uint64_t> ticket = part.host->Ask(0, tag, std::move(request), NowNs());
  if (!ticket.ok()) return At(absl::StrCat("service ", name_), ticket.status());
  part.open.insert(tag);
  Drain(rank);
  return absl::OkStatus();
}

void VirtualService::Leave(int rank) {
  Part& part = PartOf(rank);
  if (!part.ended.ok()) return listener_.may_leave(rank);
  part.leaving = true;
  part.host->Leave(NowNs());
  Drain(rank);
}

void VirtualService::Depart(int rank, bool in_good_order) {
  PartOf(rank).runs = false;
  changes_.push_back({.kind = in_good_order ? Change::Kind::kLeft : Change::Kind::kLost,
                      .rank = rank,
                      .order = changes_.size() + 1});
}

absl::Status VirtualService::Join(int rank) {
  changes_.push_back({.kind = Change::Kind::kJoined,
                      .rank = rank,
                      .order = changes_.size() + 1,
                      .may_host = true});
  return Start(rank);
}

void VirtualService::Learn(int rank, uint64_t change) {
  Part& part = PartOf(rank);
  if (!part.runs) return;
  while (part.known < change) {
    const Change& next = changes_[part.known++];
    part.host->Changed(next, NowNs());
    if (next.kind != Change::Kind::kJoined) continue;
    const auto others =
        std::stable_partition(part.early.begin(), part.early.end(),
                              [&](const auto& letter) { return letter.first == next.rank; });
    for (auto letter = part.early.begin(); letter != others; ++letter) {
      part.host->Arrived(letter->first, letter->second, NowNs());
    }
    part.early.erase(part.early.begin(), others);
  }
  Drain(rank);
}

void VirtualService::Drain(int rank) {
  services::ServiceHost& host = *PartOf(rank).host;
  for (std::vector<services::ServiceCommand> commands = host.TakeCommands(); !commands.empty();
       commands = host.TakeCommands()) {
    for (services::ServiceCommand& command : commands) {
      std::visit([&](auto& what) { Carry(rank, what); }, command);
    }
  }
  TickLater(rank);
}

void VirtualService::TickLater(int rank) {
  Part& part = PartOf(rank);
  const int64_t next_ns = part.host->NextTickNs();
  if (!part.runs || next_ns >= part.tick_at_ns) return;
  part.tick_at_ns = next_ns;
  ++timers_;
  queue_.Call(std::max(now_, SecondsAt(next_ns)), -1, [this, rank] {
    --timers_;
    Part& its = PartOf(rank);
    its.tick_at_ns = INT64_MAX;
    if (!its.runs) return;
    its.host->Tick(NowNs());
    Drain(rank);
  });
}

// Mail between two workers arrives in its order; that of a worker that dies is still under way.
void VirtualService::Post(int from, int to, std::string bytes) {
  Letters& letters = mail_[{from, to}];
  if (letters == nullptr) letters = std::make_shared<std::queue<std::string>>();
  letters->push(std::move(bytes));
  queue_.Call(now_ + delay_, -1, [this, letters, from, to] {
    std::string letter = std::move(letters->front());
    letters->pop();
    Deliver(from, to, std::move(letter));
  });
}

void VirtualService::Deliver(int from, int to, std::string bytes) {
  Part& part = PartOf(to);
  if (!part.runs) return;
  if (part.known < PartOf(from).joined) {
    part.early.emplace_back(from, std::move(bytes));
    return;
  }
  part.host->Arrived(from, bytes, NowNs());
  Drain(to);
}

void VirtualService::Carry(int rank, services::Send& command) {
  Post(rank, command.to, std::move(command.bytes));
}

void VirtualService::Carry(int rank, services::SendParcel& command) {
  Post(rank, command.to, std::move(command.bytes));
}

void VirtualService::Carry(int rank, services::Answered& command) {
  PartOf(rank).open.erase(command.tag);
  if (command.code == absl::StatusCode::kOk) {
    return listener_.answered(rank, command.tag, std::move(command.bytes));
  }
  listener_.answered(
      rank, command.tag,
      At(absl::StrCat("service ", name_), absl::Status(command.code, command.bytes)));
}

// A strategy's service is told nothing by its workers, live as well.
void VirtualService::Carry(int rank, services::ReportWanted& command) {
  PartOf(rank).host->GiveReports(command.incarnation, {std::string()}, NowNs());
}

void VirtualService::Carry(int rank, services::MayLeave& /*command*/) {
  if (std::exchange(PartOf(rank).leaving, false)) listener_.may_leave(rank);
}

void VirtualService::Carry(int rank, services::EndJob& command) {
  Part& part = PartOf(rank);
  part.ended = WithBlast(At(absl::StrCat("service ", name_), command.status), BlastRadius::kJob);
  for (const uint64_t tag : std::exchange(part.open, {})) {
    listener_.answered(rank, tag, part.ended);
  }
  if (std::exchange(part.leaving, false)) listener_.may_leave(rank);
}

void VirtualService::Carry(int /*rank*/, services::Remark& /*command*/) {}

}  // namespace syncopate::sim
