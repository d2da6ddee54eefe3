// Transfers are put into classes of about one size and one number at once, of which medians remain. Classes
// that went alone give a and b, the others gamma(k). A class is believed as far as its values agree.
#include "cost/transfer_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/limits.h"
#include "base/median.h"

namespace syncopate::cost {
namespace {

// Classes reach from one power of this to the next.
constexpr double kClassWidth = 1.25;
// A mean number at once that is further from a whole number belongs to no class.
constexpr double kAtOnceOff = 0.2;
// Two sizes tell a and b apart if one is this many times the other ...
constexpr double kSizesApart = 4;
// ... and only what is at least this part of some class's time.
constexpr double kPartLeast = 0.3;
// A deviation of a median from another that noise may explain, in standard errors.
constexpr double kErrors = 3;
// Medians of medians' deviations, as a part of a normal distribution's standard deviation.
constexpr double kDeviationPerSigma = 0.6745;

// Transfers of one kind.
struct TransferClass {
  double bytes = 0;    // the median
  double seconds = 0;  // the median
  double error = 0;    // of that, as a part of it: one standard error
  int at_once = 1;
};

TransferClass SumUp(const std::vector<TransferTime>& times, int at_once) {
  std::vector<double> seconds, bytes, off;
  for (const TransferTime& time : times) {
    seconds.push_back(time.seconds);
    bytes.push_back(static_cast<double>(time.bytes));
  }
  TransferClass sum{.bytes = MedianOf(bytes), .seconds = MedianOf(seconds), .at_once = at_once};
  for (const double value : seconds) off.push_back(std::abs(value / sum.seconds - 1));
  sum.error = MedianOf(off) / kDeviationPerSigma / std::sqrt(static_cast<double>(times.size()));
  return sum;
}

std::vector<TransferClass> ClassesOf(absl::Span<const TransferTime> transfers) {
  std::map<std::pair<int, int>, std::vector<TransferTime>> by_kind;
  for (const TransferTime& time : transfers) {
    if (!(time.seconds > 0) || !std::isfinite(time.seconds) || time.bytes == 0) continue;
    if (!(time.at_once >= 1 - kAtOnceOff) || time.at_once > limits::kBesideMax + 1) continue;
    const int at_once = static_cast<int>(std::lround(time.at_once));
    if (std::abs(time.at_once - at_once) > kAtOnceOff) continue;
    const int size = static_cast<int>(
        std::floor(std::log(static_cast<double>(time.bytes)) / std::log(kClassWidth)));
    by_kind[{at_once, size}].push_back(time);
  }
  std::vector<TransferClass> classes;
  for (const auto& [kind, times] : by_kind) {
    if (static_cast<int>(times.size()) < kTransfersLeast) continue;
    classes.push_back(SumUp(times, kind.first));
  }
  return classes;
}

// The median, in which values count by their weights.
double WeightedMedian(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double all = 0, so_far = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    so_far += weight;
    if (so_far >= all / 2) return value;
  }
  return values.back().first;
}

// a and b of a line through classes that went alone: the median of the slopes between sizes that are
// far enough apart (Theil and Sen), and of what is left then. A class that is wrong moves them little.
// Nothing: no two sizes are far enough apart.
struct LeastLine {
  double a = 0;
  double b = 0;
};
std::optional<LeastLine> LineThrough(const std::vector<TransferClass>& alone) {
  std::vector<std::pair<double, double>> slopes, rests;
  for (const TransferClass& small : alone) {
    for (const TransferClass& large : alone) {
      if (large.bytes < kSizesApart * small.bytes) continue;
      slopes.emplace_back((large.seconds - small.seconds) / (large.bytes - small.bytes),
                          large.bytes - small.bytes);
    }
  }
  if (slopes.empty()) return std::nullopt;
  LeastLine line;
  line.b = std::max(0.0, WeightedMedian(std::move(slopes)));
  // What is left of a small one is known better.
  for (const TransferClass& one : alone) {
    rests.emplace_back(one.seconds - line.b * one.bytes, 1 / one.bytes);
  }
  line.a = std::max(0.0, WeightedMedian(std::move(rests)));
  return line;
}

// b from all classes, by times the bytes of which matter, for a start-up of `a`.
std::optional<double> BytesBeside(const std::vector<TransferClass>& alone, double a) {
  std::vector<std::pair<double, double>> values;
  for (const TransferClass& one : alone) {
    const double rest = one.seconds - a;
    if (rest >= kPartLeast * one.seconds) values.emplace_back(rest / one.bytes, one.bytes);
  }
  if (values.empty()) return std::nullopt;
  return WeightedMedian(std::move(values));
}

// a from classes in which it matters, if a byte takes `b`.
std::optional<double> StartUpBeside(const std::vector<TransferClass>& alone, double b) {
  std::vector<std::pair<double, double>> values;
  for (const TransferClass& one : alone) {
    const double rest = one.seconds - b * one.bytes;
    if (rest >= kPartLeast * one.seconds) values.emplace_back(rest, 1 / one.bytes);
  }
  if (values.empty()) return std::nullopt;
  return WeightedMedian(std::move(values));
}

void TellA(KnownCosts& known, double a, double now) {
  known.costs.a = a;
  known.a_told = now;
}

void TellB(KnownCosts& known, double b, double now) {
  known.costs.b = b;
  known.b_told = now;
}

// One size, or several that are alike, cannot tell a and b apart: the one that takes more of the time, by
// what was known, is corrected, and the other one keeps its value.
void ReadOneSize(const std::vector<TransferClass>& alone, double now, KnownCosts& known) {
  const TransferClass& one = alone.back();
  const double bytes_part = known.costs.b * one.bytes;
  const bool bytes = known.b_told == KnownCosts::kNever || bytes_part >= known.costs.a;
  // A start-up cannot take longer than the whole.
  known.costs.a = std::min(known.costs.a, alone.front().seconds);
  if (bytes) {
    if (const auto b = BytesBeside(alone, known.costs.a)) return TellB(known, *b, now);
  }
  if (const auto a = StartUpBeside(alone, known.costs.b)) TellA(known, *a, now);
}

void ReadAlone(const std::vector<TransferClass>& alone, double now, KnownCosts& known) {
  if (alone.empty()) return;
  const std::optional<LeastLine> line = LineThrough(alone);
  if (!line) return ReadOneSize(alone, now, known);
  const auto matters = [&](const std::function<double(const TransferClass&)>& part) {
    return std::any_of(alone.begin(), alone.end(), [&](const TransferClass& one) {
      return part(one) >= kPartLeast * one.seconds;
    });
  };
  const bool a_matters = matters([&](const TransferClass&) { return line->a; });
  const bool b_matters = matters([&](const TransferClass& one) { return line->b * one.bytes; });
  if (a_matters) TellA(known, line->a, now);
  if (b_matters) TellB(known, line->b, now);
  if (a_matters && b_matters) return;
  // The one that shows is fitted to the other, which stays.
  known.costs.a = std::min(known.costs.a, alone.front().seconds);
  if (b_matters) {
    if (const auto b = BytesBeside(alone, known.costs.a)) TellB(known, *b, now);
  } else if (a_matters) {
    if (const auto a = StartUpBeside(alone, known.costs.b)) TellA(known, *a, now);
  }
}

// gamma(k), k > 1, by classes whose bytes take longer than the start-up.
void ReadTogether(const std::vector<TransferClass>& together, double now, KnownCosts& known) {
  if (known.b_told == KnownCosts::kNever) return;
  std::map<int, std::vector<std::pair<double, double>>> values;
  for (const TransferClass& one : together) {
    const double bytes = known.costs.b * one.bytes;
    if (bytes <= 0 || bytes < known.costs.a) continue;
    const double gamma = (one.seconds - known.costs.a) / bytes;
    values[one.at_once].emplace_back(std::clamp(gamma, 1.0, kGammaMax), one.bytes);
  }
  for (auto& [k, found] : values) {
    const size_t count = static_cast<size_t>(k);
    while (known.costs.gamma.size() < count) {
      known.costs.gamma.push_back(
          known.costs.Gamma(static_cast<int>(known.costs.gamma.size()) + 1));
    }
    if (known.gamma_told.size() < count) known.gamma_told.resize(count, KnownCosts::kNever);
    known.costs.gamma[count - 1] = WeightedMedian(std::move(found));
    known.gamma_told[count - 1] = now;
  }
  // What was told now stays; of its neighbours those give way that are older.
  std::vector<double>& gamma = known.costs.gamma;
  for (size_t i = gamma.size(); i-- > 1;) {
    const bool told = i < known.gamma_told.size() && known.gamma_told[i] == now;
    if (told && !values.contains(static_cast<int>(i)))
      gamma[i - 1] = std::min(gamma[i - 1], gamma[i]);
  }
  known.costs = WithRisingGamma(std::move(known.costs));
}

// How far the class is from what was known, beyond noise.
double ChangeOfClass(const KnownCosts& before, const TransferClass& one) {
  const size_t k = static_cast<size_t>(one.at_once);
  if (before.a_told == KnownCosts::kNever || before.b_told == KnownCosts::kNever) return 0;
  if (k > 1 && (before.gamma_told.size() < k || before.gamma_told[k - 1] == KnownCosts::kNever)) {
    return 0;
  }
  const double known =
      before.costs.a + before.costs.Gamma(one.at_once) * before.costs.b * one.bytes;
  if (known <= 0) return 0;
  const double off = std::abs(one.seconds - known) / std::min(one.seconds, known);
  return std::max(0.0, off - kErrors * one.error);
}

std::string Age(double told, double now) {
  if (told == KnownCosts::kNever) return "assumed";
  return told >= now ? "new" : absl::StrFormat("%.0f s old", now - told);
}

}  // namespace

KnownCosts KnownCosts::Measured(CommunicationCosts measured, double now) {
  KnownCosts known;
  known.gamma_told.assign(measured.gamma.size(), now);
  known.costs = std::move(measured);
  known.a_told = known.b_told = now;
  return known;
}

bool KnownCosts::Complete(int at_once) const {
  if (a_told == kNever || b_told == kNever) return false;
  for (size_t k = 2; k <= static_cast<size_t>(at_once); ++k) {
    if (gamma_told.size() < k || gamma_told[k - 1] == kNever) return false;
  }
  return true;
}

CommunicationCosts KnownCosts::ForPlanning(int at_once) const {
  CommunicationCosts planned = costs;
  for (int k = 2; k <= at_once; ++k) {
    const size_t i = static_cast<size_t>(k - 1);
    if (planned.gamma.size() <= i) planned.gamma.push_back(planned.Gamma(k));
    const bool told = i < gamma_told.size() && gamma_told[i] != kNever;
    if (!told) planned.gamma[i] = std::max<double>(planned.gamma[i], k);
  }
  return WithRisingGamma(std::move(planned));
}

std::string KnownCosts::ToText(double now) const {
  std::string text = absl::StrFormat("a %.3g ms (%s), b %.3g ns (%s)", costs.a * 1e3,
                                     Age(a_told, now), costs.b * 1e9, Age(b_told, now));
  for (size_t i = 1; i < costs.gamma.size(); ++i) {
    absl::StrAppend(&text,
                    absl::StrFormat(", γ(%d) %.3g (%s)", i + 1, costs.gamma[i],
                                    Age(i < gamma_told.size() ? gamma_told[i] : kNever, now)));
  }
  return text;
}

TransferReading ReadTransfers(const KnownCosts& before, absl::Span<const TransferTime> transfers,
                              double now) {
  TransferReading reading{.known = before};
  std::vector<TransferClass> alone, together;
  for (const TransferClass& one : ClassesOf(transfers)) {
    reading.change = std::max(reading.change, ChangeOfClass(before, one));
    (one.at_once == 1 ? alone : together).push_back(one);
  }
  std::sort(alone.begin(), alone.end(),
            [](const TransferClass& x, const TransferClass& y) { return x.bytes < y.bytes; });
  ReadAlone(alone, now, reading.known);
  ReadTogether(together, now, reading.known);
  return reading;
}

}  // namespace syncopate::cost
