// The JSON of the ledger's messages, for the files of this folder alone.
#ifndef SYNCOPATE_TRAIN_LEDGER_LEDGER_JSON_H_
#define SYNCOPATE_TRAIN_LEDGER_LEDGER_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "train/ledger/ledger_message.h"

namespace syncopate {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(GroupKey, maker, number)
}  // namespace syncopate

namespace syncopate::train {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(EvaluationNote, number, iteration, seconds, loss,
                                                accuracy, reached, last)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HeardOfJob, total_samples, total_bytes, stopping,
                                                stop_at, reached, written, orders, gone)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LedgerReport, kind, iteration, samples, bytes_sent,
                                                batch, loss, rate, promise, finished, ok, event,
                                                evaluation, failed_order, failed_attempt, written,
                                                heard, writer, job)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(EvaluationOrder, number, attempt, iteration, key,
                                                members)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LedgerLine, number, kind, iteration, at_ns, seconds,
                                                loss, accuracy, rate, bytes, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Standing, incarnation, step, news, writer,
                                                total_samples, total_bytes, stopping, stop_at,
                                                reached, written, order, orders, gone, lines,
                                                members, key, failed)

template <typename T>
std::string ToJsonText(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

template <typename T>
absl::StatusOr<T> FromJsonText(absl::string_view text, absl::string_view what) {
  try {
    return nlohmann::json::parse(text.begin(), text.end()).get<T>();
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", error.what()));
  }
}

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_LEDGER_LEDGER_JSON_H_
