#include "train/ledger/ledger_message.h"

#include "train/ledger/ledger_json.h"

namespace syncopate::train {

HeardOfJob HeardFrom(const Standing& standing) {
  return {.total_samples = standing.total_samples,
          .total_bytes = standing.total_bytes,
          .stopping = standing.stopping,
          .stop_at = standing.stop_at,
          .reached = standing.reached,
          .written = standing.written,
          .orders = standing.orders,
          .gone = standing.gone};
}

std::string Encode(const LedgerReport& report) { return ToJsonText(report); }
std::string Encode(const Standing& standing) { return ToJsonText(standing); }

absl::StatusOr<LedgerReport> DecodeLedgerReport(absl::string_view text) {
  absl::StatusOr<LedgerReport> report = FromJsonText<LedgerReport>(text, "a report to the ledger");
  if (report.ok() && (report->kind > LedgerReport::Kind::kWritten || report->iteration < 0)) {
    return absl::InvalidArgumentError("a report to the ledger: there is no such kind");
  }
  return report;
}

absl::StatusOr<Standing> DecodeStanding(absl::string_view text) {
  return FromJsonText<Standing>(text, "the ledger's answer");
}

}  // namespace syncopate::train
