#include "train/ledger/ledger.h"

#include <algorithm>
#include <utility>

#include "train/ledger/ledger_json.h"

namespace syncopate::train {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerTally::Report, iteration, loss, batch, rate,
                                                bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerTally, gone, gone_line, iteration, samples,
                                                bytes, promise, finished, last, reports, meets,
                                                parts, listens, ticket, listen_ticket, heard, ok,
                                                writer)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LedgerState, workers, unowned_samples,
                                                unowned_bytes, step, news, groups, last_line, lines,
                                                reported, orders, ordered, order, failures,
                                                order_failed, stopping, reached, written, stop_at,
                                                ended)

Ledger::Ledger(LedgerOptions options) : options_(std::move(options)) {
  state_.workers.resize(static_cast<size_t>(options_.size));
  state_.unowned_samples = options_.first_samples;
  state_.reported = state_.ordered = options_.first_iteration;
}

std::vector<int> Ledger::LiveRanks() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (Lives(rank)) ranks.push_back(rank);
  }
  return ranks;
}

int Ledger::Writer() const {
  for (const int rank : options_.order) {
    if (Lives(rank)) return rank;
  }
  return -1;
}

uint64_t Ledger::TotalSamples() const {
  uint64_t total = state_.unowned_samples;
  for (const WorkerTally& worker : state_.workers) total += worker.samples;
  return total;
}

uint64_t Ledger::TotalBytes() const {
  uint64_t total = state_.unowned_bytes;
  for (const WorkerTally& worker : state_.workers) total += worker.bytes;
  return total;
}

int64_t Ledger::Position() const {
  return static_cast<int64_t>(TotalSamples() / static_cast<uint64_t>(options_.batch));
}

GroupKey Ledger::NextKey(const ServiceContext& context) {
  return {.maker = kKeyMaker | context.incarnation, .number = ++state_.groups};
}

ServiceStep Ledger::Step(const ServiceContext& context, const ServiceEvent& event) {
  ++state_.step;
  now_ns_ = context.now_ns;
  ServiceStep step;
  if (const auto* gone = std::get_if<ServiceDeparted>(&event)) {
    Depart(gone->rank, gone->in_good_order);
  }
  const auto* asked = std::get_if<ServiceAsked>(&event);
  bool at_once = false;
  if (asked != nullptr) {
    const absl::StatusOr<LedgerReport> report = DecodeLedgerReport(asked->request);
    if (!report.ok()) {
      step.answers.push_back(Refusal(asked->from, asked->ticket, report.status()));
      return step;
    }
    Note(asked->from, *report);
    WorkerTally& worker = state_.workers[static_cast<size_t>(asked->from)];
    if (report->kind == LedgerReport::Kind::kMeet ||
        report->kind == LedgerReport::Kind::kFarewell) {
      worker.meets = report->kind == LedgerReport::Kind::kMeet;
      worker.parts = !worker.meets;
      worker.ticket = asked->ticket;
      worker.ok = report->ok;
      worker.writer = report->writer;
    } else if (report->kind == LedgerReport::Kind::kListen) {
      worker.listens = true;
      worker.listen_ticket = asked->ticket;
      worker.heard = report->heard;
    } else {
      at_once = true;
    }
  }
  Advance(context);
  if (at_once) {
    step.answers.push_back({.to = asked->from,
                            .ticket = asked->ticket,
                            .bytes = Encode(StandingFor(context, asked->from))});
  }
  Settle(context, step);
  return step;
}

void Ledger::Note(int from, const LedgerReport& report) {
  WorkerTally& worker = state_.workers[static_cast<size_t>(from)];
  worker.iteration = std::max(worker.iteration, report.iteration);
  worker.samples = std::max(worker.samples, report.samples);
  worker.bytes = std::max(worker.bytes, report.bytes_sent);
  worker.promise = std::max(worker.promise, report.promise);
  if (report.finished) {
    worker.finished = true;
    worker.promise = std::max(worker.promise, report.iteration);
  }
  if (report.batch > 0) {
    worker.last = {report.iteration, report.loss, report.batch, report.rate, report.bytes_sent};
    if (options_.lockstep) worker.reports.push_back(worker.last);
    if (worker.reports.size() > kReportsMax) worker.reports.erase(worker.reports.begin());
  }
  if (!report.event.empty()) {
    AddLine(
        {.kind = LedgerLine::Kind::kEvent, .iteration = report.iteration, .text = report.event});
  }
  const EvaluationNote& evaluation = report.evaluation;
  // One of an order that is not wanted any more was told twice, and so is the last one if its writer is lost.
  if (evaluation.iteration >= 0 && !(evaluation.last && state_.ended) &&
      (evaluation.number == 0 || evaluation.number == state_.order.number)) {
    AddLine({.kind = LedgerLine::Kind::kEvaluate,
             .iteration = evaluation.iteration,
             .seconds = evaluation.seconds,
             .loss = evaluation.loss,
             .accuracy = evaluation.accuracy});
    if (evaluation.number != 0) state_.order = {};
    state_.ended = state_.ended || evaluation.last;
    state_.reached = state_.reached || evaluation.reached;
  }
  if (from == Writer()) {
    if (report.failed_order != 0 && report.failed_order == state_.order.number &&
        report.failed_attempt == state_.order.attempt) {
      state_.order_failed = true;
    }
    std::erase_if(state_.lines,
                  [&](const LedgerLine& line) { return line.number <= report.written; });
    if (report.kind == LedgerReport::Kind::kWritten) state_.written = true;
  }
}

void Ledger::Depart(int rank, bool in_good_order) {
  WorkerTally& worker = state_.workers[static_cast<size_t>(rank)];
  if (worker.gone) return;
  worker.gone = true;
  worker.meets = worker.parts = worker.listens = false;
  worker.reports.clear();
  AddLineOfGone(rank, in_good_order);
}

void Ledger::AddLineOfGone(int rank, bool in_good_order) {
  if (state_.written) return;
  WorkerTally& worker = state_.workers[static_cast<size_t>(rank)];
  AddLine({.kind = LedgerLine::Kind::kEvent,
           .iteration = worker.iteration,
           .text = absl::StrCat("rank ", rank, in_good_order ? " has left" : " is lost")});
  worker.gone_line = state_.last_line;
}

void Ledger::AddLine(LedgerLine line) {
  line.number = ++state_.last_line;
  line.at_ns = now_ns_;
  state_.lines.push_back(std::move(line));
  if (state_.lines.size() > kLinesMax) state_.lines.erase(state_.lines.begin());
}

// The next line is of the iteration that all live workers have reported. The sum goes by rank, so that
// it has the same bits whoever was first.
void Ledger::AddLinesInStep() {
  for (;;) {
    int64_t iteration = INT64_MAX;
    for (const WorkerTally& worker : state_.workers) {
      if (worker.gone) continue;
      if (worker.reports.empty()) return;
      iteration = std::min(iteration, worker.reports.front().iteration);
    }
    if (iteration == INT64_MAX) return;
    LedgerLine line = {.iteration = iteration, .bytes = state_.unowned_bytes};
    double loss = 0, samples = 0;
    for (WorkerTally& worker : state_.workers) {
      if (worker.gone || worker.reports.front().iteration != iteration) {
        line.bytes += worker.bytes;
        continue;
      }
      const WorkerTally::Report report = worker.reports.front();
      line.bytes += report.bytes;
      worker.reports.erase(worker.reports.begin());
      loss += report.loss * static_cast<double>(report.batch);
      samples += static_cast<double>(report.batch);
      if (line.rate == 0) line.rate = report.rate;
    }
    line.loss = loss / samples;
    state_.reported = iteration;
    AddLine(std::move(line));
  }
}

// Of what each live worker reported last.
void Ledger::AddLineOfAll() {
  LedgerLine line = {.iteration = Position(), .bytes = TotalBytes()};
  double loss = 0, samples = 0;
  for (const WorkerTally& worker : state_.workers) {
    if (worker.gone) continue;
    loss += worker.last.loss * static_cast<double>(worker.last.batch);
    samples += static_cast<double>(worker.last.batch);
    if (line.rate == 0) line.rate = worker.last.rate;
  }
  state_.reported = line.iteration;
  if (samples == 0) return;
  line.loss = loss / samples;
  AddLine(std::move(line));
}

bool Ledger::OrderGoesOn(bool anyone_finished) {
  if (state_.order_failed && ++state_.failures >= kFailuresMax) {
    AddLine({.kind = LedgerLine::Kind::kEvent,
             .iteration = state_.order.iteration,
             .text = absl::StrCat("the evaluation at iteration ", state_.order.iteration,
                                  " is given up: its mean has failed ", kFailuresMax, " times")});
    return false;
  }
  return !anyone_finished;
}

// One evaluation at a time: marks that pass meanwhile get none. Once a worker has ended there are no
// more, since it would not take part.
void Ledger::Order(const ServiceContext& context) {
  const bool anyone_finished = std::any_of(state_.workers.begin(), state_.workers.end(),
                                           [](const WorkerTally& w) { return w.finished; });
  EvaluationOrder& order = state_.order;
  if (order.number > 0) {
    const bool broken = std::any_of(order.members.begin(), order.members.end(),
                                    [this](int rank) { return !Lives(rank); });
    if (!broken && !state_.order_failed) return;
    const bool goes_on = OrderGoesOn(anyone_finished);
    state_.order_failed = false;
    if (!goes_on) {
      order = {};
      return;
    }
    ++order.attempt;
  } else {
    const int64_t mark = Position() / std::max<int64_t>(1, options_.evaluate_every);
    if (options_.evaluate_every == 0 || anyone_finished || state_.stopping ||
        mark <= state_.ordered / options_.evaluate_every) {
      return;
    }
    order = {.number = ++state_.orders, .attempt = 0, .iteration = Position()};
    state_.ordered = order.iteration;
    state_.failures = 0;
  }
  order.key = NextKey(context);
  order.members = LiveRanks();
  ++state_.news;
}

void Ledger::Advance(const ServiceContext& context) {
  if (options_.lockstep) {
    AddLinesInStep();
  } else if (Position() / options_.report_every > state_.reported / options_.report_every) {
    AddLineOfAll();
  }
  const bool enough = options_.samples_max > 0 && TotalSamples() >= options_.samples_max;
  if (!state_.stopping && (enough || state_.reached)) {
    state_.stopping = true;
    if (!options_.ends_together) state_.stop_at = 0;
    ++state_.news;
  }
  Order(context);
  if (!state_.stopping || state_.stop_at >= 0) return;
  int64_t last = -1;
  for (const WorkerTally& worker : state_.workers) {
    if (worker.gone) continue;
    if (worker.promise < 0) return;
    last = std::max(last, worker.promise);
  }
  state_.stop_at = last;
  if (last >= 0) ++state_.news;
}

Standing Ledger::StandingFor(const ServiceContext& context, int rank) const {
  Standing standing = {.incarnation = context.incarnation,
                       .step = state_.step,
                       .news = state_.news,
                       .writer = Writer(),
                       .total_samples = TotalSamples(),
                       .total_bytes = TotalBytes(),
                       .stopping = state_.stopping,
                       .stop_at = state_.stop_at,
                       .reached = state_.reached,
                       .written = state_.written,
                       .order = state_.order,
                       .orders = state_.orders};
  const uint64_t written = state_.lines.empty() ? UINT64_MAX : state_.lines.front().number - 1;
  for (int other = 0; other < options_.size; ++other) {
    const WorkerTally& worker = state_.workers[static_cast<size_t>(other)];
    if (worker.gone && worker.gone_line <= written) standing.gone.push_back(other);
  }
  if (rank == standing.writer) {
    const size_t lines = std::min(state_.lines.size(), kLinesAnswered);
    standing.lines.assign(state_.lines.begin(),
                          state_.lines.begin() + static_cast<std::ptrdiff_t>(lines));
  }
  return standing;
}

void Ledger::Settle(const ServiceContext& context, ServiceStep& step) {
  const auto answer = [&](int rank, uint64_t ticket, const Standing& standing) {
    step.answers.push_back({.to = rank, .ticket = ticket, .bytes = Encode(standing)});
  };
  const std::vector<int> live = LiveRanks();
  if (!live.empty() && std::all_of(live.begin(), live.end(), [this](int rank) {
        return state_.workers[static_cast<size_t>(rank)].meets;
      })) {
    // What was reported since the last line.
    if (!options_.lockstep && Position() > state_.reported) AddLineOfAll();
    const GroupKey key = NextKey(context);
    int failed = -1;
    for (const int rank : live) {
      if (failed < 0 && !state_.workers[static_cast<size_t>(rank)].ok) failed = rank;
    }
    for (const int rank : live) {
      WorkerTally& worker = state_.workers[static_cast<size_t>(rank)];
      worker.meets = false;
      Standing standing = StandingFor(context, rank);
      standing.members = live;
      standing.key = key;
      standing.failed = failed;
      answer(rank, worker.ticket, standing);
    }
  }
  for (const int rank : live) {
    WorkerTally& worker = state_.workers[static_cast<size_t>(rank)];
    if (worker.listens && state_.news > worker.heard) {
      worker.listens = false;
      answer(rank, worker.listen_ticket, StandingFor(context, rank));
    }
    if (worker.parts && (state_.written || worker.writer != Writer())) {
      worker.parts = false;
      answer(rank, worker.ticket, StandingFor(context, rank));
    }
  }
}

std::string Ledger::State() const { return ToJsonText(state_); }

absl::Status Ledger::Load(absl::string_view state) {
  absl::StatusOr<LedgerState> loaded = FromJsonText<LedgerState>(state, "the ledger's state");
  if (!loaded.ok()) return loaded.status();
  if (loaded->workers.size() != static_cast<size_t>(options_.size)) {
    return absl::DataLossError("the ledger's state is of another number of workers");
  }
  state_ = *std::move(loaded);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Ledger::Rebuild(const ServiceContext& context,
                                            const std::vector<ServiceReport>& reports) {
  now_ns_ = context.now_ns;
  HeardOfJob heard;  // by anybody
  for (WorkerTally& worker : state_.workers) worker.gone = true;
  for (const ServiceReport& report : reports) {
    absl::StatusOr<LedgerReport> last = DecodeLedgerReport(report.bytes);
    if (!last.ok()) return last.status();
    state_.workers[static_cast<size_t>(report.from)].gone = false;
    last->evaluation = {};
    last->event.clear();
    state_.last_line = std::max(state_.last_line, last->written);
    state_.news = std::max(state_.news, last->heard);
    Note(report.from, *last);
    state_.workers[static_cast<size_t>(report.from)].reports.clear();
    const HeardOfJob& one = last->job;
    heard.total_samples = std::max(heard.total_samples, one.total_samples);
    heard.total_bytes = std::max(heard.total_bytes, one.total_bytes);
    heard.orders = std::max(heard.orders, one.orders);
    heard.stop_at = std::max(heard.stop_at, one.stop_at);
    heard.stopping = heard.stopping || one.stopping;
    heard.reached = heard.reached || one.reached;
    heard.written = heard.written || one.written;
    heard.gone.insert(heard.gone.end(), one.gone.begin(), one.gone.end());
  }
  // All of this only grows, so the largest that was heard is the newest.
  state_.unowned_samples += heard.total_samples - std::min(heard.total_samples, TotalSamples());
  state_.unowned_bytes += heard.total_bytes - std::min(heard.total_bytes, TotalBytes());
  state_.orders = heard.orders;
  state_.stopping = heard.stopping;
  state_.stop_at = heard.stop_at;
  state_.reached = heard.reached;
  state_.written = heard.written;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (Lives(rank)) continue;
    const bool told = std::find(heard.gone.begin(), heard.gone.end(), rank) != heard.gone.end();
    if (!told) AddLineOfGone(rank, /*in_good_order=*/false);
  }
  state_.reported = state_.ordered = std::max(options_.first_iteration, Position());
  ++state_.news;
  return "lines, an evaluation and some samples of lost workers that were under way may be missing";
}

}  // namespace syncopate::train
