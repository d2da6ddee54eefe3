#include "services/counter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace syncopate::services {

std::string Counter::Add(uint32_t amount) {
  std::string out;
  Append(out, amount);
  return out;
}

absl::StatusOr<Counter::Sum> Counter::Read(absl::string_view answer) {
  ByteReader reader(answer);
  Sum sum;
  sum.id = ReadId(reader);
  sum.total = reader.Read<uint64_t>();
  if (!reader.AtEnd()) return absl::InvalidArgumentError("the counter's answer cannot be read");
  return sum;
}

std::string Counter::Report(uint64_t total) {
  std::string out;
  Append(out, total);
  return out;
}

ServiceStep Counter::Step(const ServiceContext& context, const ServiceEvent& event) {
  const auto* asked = std::get_if<Asked>(&event);
  if (asked == nullptr) return {};
  ByteReader reader(asked->request);
  const auto amount = reader.Read<uint32_t>();
  if (!reader.AtEnd()) {
    return {.answers = {Refusal(asked->from, asked->ticket,
                                absl::InvalidArgumentError("an addition is a number of 4 bytes"))},
            .reason = ""};
  }
  total_ += amount;
  Answer answer = {.to = asked->from, .ticket = asked->ticket};
  AppendId(answer.bytes, {context.incarnation, ++additions_});
  Append(answer.bytes, total_);
  return {.answers = {std::move(answer)},
          .reason = absl::StrCat("rank ", asked->from, " adds ", amount, ": ", total_)};
}

std::string Counter::State() const {
  std::string out;
  Append(out, total_);
  Append(out, additions_);
  return out;
}

absl::Status Counter::Load(absl::string_view state) {
  ByteReader reader(state);
  total_ = reader.Read<uint64_t>();
  additions_ = reader.Read<uint64_t>();
  if (!reader.AtEnd()) return absl::DataLossError("the counter's state cannot be read");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Counter::Rebuild(const ServiceContext& /*context*/,
                                             const std::vector<ServiceReport>& reports) {
  for (const ServiceReport& report : reports) {
    ByteReader reader(report.bytes);
    const auto total = reader.Read<uint64_t>();
    if (!reader.AtEnd()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", report.from, " reports what is no sum"));
    }
    total_ = std::max(total_, total);
  }
  return absl::StrCat("sums after ", total_, " may be given again");
}

}  // namespace syncopate::services
