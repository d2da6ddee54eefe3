#include "probe/live_oracle.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status.h"
#include "probe/experiment_layout.h"

namespace syncopate::probe {
namespace {

// About how long a piece is in flight. Rates are counted by pieces, so a piece must be short beside
// an experiment, and long beside what it costs a worker to send one.
constexpr double kPieceSeconds = 0.0025;
// The size of a flow's pieces before its rate is known.
constexpr uint32_t kPieceBytesFirst = 8 << 10;
constexpr uint32_t kPings = 16;

void LogRates(absl::Span<const Oracle::Flow> flows, const std::vector<double>& rates) {
  if (!LogEnabled(LogLevel::kTrace)) return;
  std::string line = "flows at once, MB/s:";
  for (size_t i = 0; i < flows.size(); ++i) {
    absl::StrAppendFormat(&line, " %d>%d %.2f", flows[i].from, flows[i].to, rates[i] * 1e-6);
  }
  LogLine(LogLevel::kTrace, line);
}

}  // namespace

LiveOracle::LiveOracle(Member& member, const Clock& clock, Idle idle)
    : member_(member),
      clock_(clock),
      idle_(std::move(idle)),
      began_ns_(clock.NowNs()),
      stolen_(static_cast<size_t>(member.size()), 0) {}

LiveOracle::~LiveOracle() { End().IgnoreError(); }

absl::StatusOr<std::unique_ptr<LiveOracle>> LiveOracle::Make(Member& member, const Clock& clock,
                                                             Idle idle) {
  std::unique_ptr<LiveOracle> oracle(new LiveOracle(member, clock, std::move(idle)));
  Instruction instruction;
  instruction.kind = Instruction::Kind::kName;
  SYNCOPATE_RETURN_IF_ERROR(oracle->Run(instruction));
  oracle->NameHosts(member.answers());
  return oracle;
}

void LiveOracle::NameHosts(const std::vector<std::string>& answers) {
  std::map<std::string, std::string> names;  // by machine
  std::set<std::string> taken;
  for (const std::string& answer : answers) {
    const std::string machine = answer.substr(0, 32);
    std::string& name = names[machine];
    if (name.empty()) {
      const std::string wanted = absl::StrCat(answer.c_str() + 32);
      name = wanted;
      for (int i = 2; !taken.insert(name).second; ++i) name = absl::StrCat(wanted, "-", i);
    }
    hosts_.push_back(name);
  }
}

absl::Status LiveOracle::End() {
  if (ended_) return absl::OkStatus();
  Instruction instruction;
  instruction.kind = Instruction::Kind::kEnd;
  const absl::Status status = Run(instruction);
  ended_ = true;
  return status;
}

absl::Status LiveOracle::Run(const Instruction& instruction) {
  if (ended_) return absl::FailedPreconditionError("the probe is over");
  SYNCOPATE_RETURN_IF_ERROR(member_.Begin(&instruction));
  WaitUntil([&] { return member_.done(); });
  if (!member_.status().ok()) ended_ = true;  // the others have given up as well
  return member_.status();
}

void LiveOracle::WaitUntil(const std::function<bool()>& condition, int64_t until_ns) {
  while (!condition()) {
    if (member_.Poll()) continue;
    if (idle_) {
      idle_();
    } else {
      member_.Park(until_ns);
    }
  }
}

void LiveOracle::Wait(double seconds) {
  const int64_t until_ns = clock_.NowNs() + static_cast<int64_t>(seconds * 1e9);
  WaitUntil([&] { return clock_.NowNs() >= until_ns || !member_.status().ok(); }, until_ns);
}

absl::StatusOr<double> LiveOracle::Latency(int from, int to) {
  // With no flow under way.
  WaitUntil([&] { return member_.drained() || !member_.status().ok(); });
  Instruction instruction;
  instruction.kind = Instruction::Kind::kPing;
  instruction.pieces = kPings;
  instruction.flows = {{static_cast<uint32_t>(from), static_cast<uint32_t>(to), kPieceBytesMin}};
  SYNCOPATE_RETURN_IF_ERROR(Run(instruction));
  double latency = 0;
  std::memcpy(&latency, member_.answers()[static_cast<size_t>(from)].data(), sizeof(latency));
  return latency;
}

absl::StatusOr<Instruction> LiveOracle::Plan(absl::Span<const Flow> flows, double seconds) const {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kFlows;
  instruction.seconds = seconds;
  std::vector<uint32_t> sends(static_cast<size_t>(size()), 0), receives = sends, count = sends;
  for (const Flow& flow : flows) {
    ++sends[static_cast<size_t>(flow.from)];
    ++receives[static_cast<size_t>(flow.to)];
    ++count[static_cast<size_t>(flow.from)];
    ++count[static_cast<size_t>(flow.to)];
  }
  for (const Flow& flow : flows) {
    const auto known = rates_.find(flow);
    double wanted = known == rates_.end() ? kPieceBytesFirst : known->second * kPieceSeconds;
    // It will share a NIC with these.
    wanted /=
        std::max(sends[static_cast<size_t>(flow.from)], receives[static_cast<size_t>(flow.to)]);
    // Whole KiB.
    const uint32_t piece_bytes =
        static_cast<uint32_t>(std::clamp<double>(wanted, kPieceBytesMin, kPieceBytesMax)) >>
        10 << 10;
    instruction.flows.push_back(
        {static_cast<uint32_t>(flow.from), static_cast<uint32_t>(flow.to), piece_bytes});
  }
  const uint32_t busiest = *std::max_element(count.begin(), count.end());
  const uint32_t steps = (kStepsMax - FirstStep(size())) / busiest;
  if (flows.size() > kFlowsMax || steps < 32) {
    return absl::InvalidArgumentError(
        absl::StrCat(flows.size(), " flows at once are too many for the probe"));
  }
  instruction.pieces = std::min(kPiecesMax, (steps - 4) * 2 / 3);
  return instruction;
}

absl::StatusOr<std::vector<double>> LiveOracle::Rates(absl::Span<const Flow> flows,
                                                      double seconds) {
  if (flows.empty()) return std::vector<double>();
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Instruction instruction, Plan(flows, seconds));
    SYNCOPATE_RETURN_IF_ERROR(Run(instruction));
    std::vector<FlowsAnswer> answers;
    stolen_.assign(static_cast<size_t>(size()), 0);
    for (int worker = 0; worker < size(); ++worker) {
      absl::StatusOr<FlowsAnswer> answer =
          DecodeAnswer(member_.answers()[static_cast<size_t>(worker)],
                       Received(instruction, static_cast<uint32_t>(worker)));
      if (!answer.ok()) return At(absl::StrCat("worker ", worker), answer.status());
      stolen_[static_cast<size_t>(worker)] = answer->stolen;
      answers.push_back(*std::move(answer));
    }
    std::vector<double> rates;
    std::vector<size_t> taken(static_cast<size_t>(size()), 0);  // of a worker's answer
    bool too_small = false;
    for (size_t i = 0; i < flows.size(); ++i) {
      const size_t to = static_cast<size_t>(flows[i].to);
      const auto [rate, ended] = answers[to].flows[taken[to]++];
      rates_[flows[i]] = std::max(rate, 1.0);
      rates.push_back(rate);
      // It ran out of pieces long before the end, and larger ones are possible.
      const uint32_t bytes = instruction.flows[i].piece_bytes;
      if (ended < 0.7 * seconds && bytes < kPieceBytesMax) {
        rates_[flows[i]] = std::max(rate, 8.0 * bytes / kPieceSeconds);
        too_small = true;
      }
    }
    LogRates(flows, rates);
    if (!too_small) return rates;
  }
}

double LiveOracle::Elapsed() const {
  return static_cast<double>(clock_.NowNs() - began_ns_) * 1e-9;
}

}  // namespace syncopate::probe
