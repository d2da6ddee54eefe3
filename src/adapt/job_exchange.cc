#include "adapt/job_exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::adapt {
namespace {

template <typename T>
std::string Encode(absl::Span<const T> numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

template <typename T>
absl::StatusOr<std::vector<T>> Decode(absl::string_view text, size_t count) {
  if (text.size() != count * sizeof(T)) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.size(), " bytes instead of ", count, " numbers of ", sizeof(T)));
  }
  std::vector<T> numbers(count);
  if (count > 0) std::memcpy(numbers.data(), text.data(), text.size());
  return numbers;
}

// Folds in the order of the ranks, so that all workers round alike.
template <typename Fold>
absl::Status Combine(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers,
                     const Fold& fold) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      TextsOfAll(exchange, what, EncodeNumbers(absl::MakeConstSpan(numbers))));
  std::vector<double> all;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    absl::StatusOr<std::vector<double>> theirs = DecodeDoubles(texts[rank], numbers.size());
    if (!theirs.ok()) return At(absl::StrCat(what, ", worker ", rank), theirs.status());
    if (rank == 0) {
      all = *std::move(theirs);
      continue;
    }
    for (size_t i = 0; i < all.size(); ++i) all[i] = fold(all[i], (*theirs)[i]);
  }
  numbers = std::move(all);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TextsOfAll(JobExchange& exchange, absl::string_view what,
                                                    std::string text) {
  return exchange.Start({.what = std::string(what), .text = std::move(text)})->Wait();
}

absl::StatusOr<std::vector<std::string>> TextsAtRoot(JobExchange& exchange, absl::string_view what,
                                                     std::string text, int root) {
  if (exchange.rank() == root) {
    // The root keeps its own text: what it sends is the word that it has come.
    SYNCOPATE_ASSIGN_OR_RETURN(
        std::vector<std::string> texts,
        exchange.Start({.what = std::string(what), .text = "", .root = root})->Wait());
    texts[static_cast<size_t>(root)] = std::move(text);
    return texts;
  }
  SYNCOPATE_RETURN_IF_ERROR(
      exchange.Start({.what = std::string(what), .text = std::move(text), .root = root})
          ->Wait()
          .status());
  return std::vector<std::string>();
}

absl::StatusOr<std::string> TextOfRoot(JobExchange& exchange, absl::string_view what,
                                       std::string text, int root) {
  if (exchange.rank() != root) text.clear();
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<std::string> texts,
      exchange.Start({.what = std::string(what), .text = std::move(text), .root = root})->Wait());
  return std::move(texts[static_cast<size_t>(root)]);
}

absl::Status Largest(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers) {
  return Combine(exchange, what, numbers, [](double a, double b) { return std::max(a, b); });
}

absl::Status Smallest(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers) {
  return Combine(exchange, what, numbers, [](double a, double b) { return std::min(a, b); });
}

absl::Status Sum(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers) {
  return Combine(exchange, what, numbers, [](double a, double b) { return a + b; });
}

absl::Status CompareDigests(JobExchange& exchange, absl::string_view what,
                            absl::string_view digest) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      TextsOfAll(exchange, absl::StrCat("digest of the ", what), std::string(digest)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return absl::InternalError(absl::StrCat("the workers do not have the same ", what,
                                            ": rank 0 has ", all[0], ", rank ", rank, " has ",
                                            all[rank]));
  }
  return absl::OkStatus();
}

std::string EncodeNumbers(absl::Span<const int64_t> numbers) { return Encode(numbers); }
std::string EncodeNumbers(absl::Span<const double> numbers) { return Encode(numbers); }
absl::StatusOr<std::vector<int64_t>> DecodeIntegers(absl::string_view text, size_t count) {
  return Decode<int64_t>(text, count);
}
absl::StatusOr<std::vector<double>> DecodeDoubles(absl::string_view text, size_t count) {
  return Decode<double>(text, count);
}

}  // namespace syncopate::adapt
