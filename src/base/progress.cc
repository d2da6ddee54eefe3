#include "base/progress.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate {
namespace {

constexpr int64_t kRedrawNs = 1'000'000'000;
constexpr double kWorthSayingSeconds = 5;
// Before this part of the work is done, what it took says too little about the rest.
constexpr double kPartMin = 0.02;
constexpr char kOff[] = "off";
constexpr char kEraseLine[] = "\r\033[K";

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

absl::StatusOr<ProgressOptions> ProgressOptionsFor(const Environment& environment, bool terminal) {
  ProgressOptions options;
  options.style = terminal ? ProgressOptions::Style::kRedrawn : ProgressOptions::Style::kLines;
  const std::string wish = environment(kProgressVariable).value_or("");
  if (wish == kOff) {
    options.style = ProgressOptions::Style::kSilent;
  } else if (!wish.empty()) {
    const absl::StatusOr<int64_t> period_ns = ParseDurationNs(wish);
    if (!period_ns.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kProgressVariable, ": \"", wish, "\" is neither a time, as 30s, nor off"));
    }
    options.style = ProgressOptions::Style::kLines;
    options.period_ns = *period_ns;
  }
  return options;
}

std::string FormatAbout(double seconds) {
  const auto rounded = [](double value, int64_t unit) {
    return static_cast<int64_t>(std::llround(value / static_cast<double>(unit))) * unit;
  };
  if (!(seconds < 86'400.0 * 365)) return "more than a year";
  if (seconds < 19.5) return absl::StrCat(std::max<int64_t>(1, rounded(seconds, 1)), " s");
  if (seconds < 57.5) return absl::StrCat(rounded(seconds, 5), " s");
  if (seconds < 595) {
    const int64_t all = rounded(seconds, 10);
    if (all % 60 == 0) return absl::StrCat(all / 60, " min");
    return absl::StrCat(all / 60, " min ", all % 60, " s");
  }
  if (seconds < 3570) return absl::StrCat(rounded(seconds / 60, 1), " min");
  const int64_t minutes = rounded(seconds / 60, 10);
  if (minutes % 60 == 0) return absl::StrCat(minutes / 60, " h");
  return absl::StrCat(minutes / 60, " h ", minutes % 60, " min");
}

Progress::Progress(std::string command, ProgressOptions options, const Clock& clock,
                   std::ostream& err)
    : command_(std::move(command)),
      options_(options),
      clock_(clock),
      begin_ns_(clock.NowNs()),
      err_(err),
      spoken_ns_(begin_ns_) {}

Progress::~Progress() {
  Clear();
  std::thread thread;
  {
    const MutexLock lock(&mutex_);
    ends_ = true;
    ended_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Progress::Announce(double seconds, absl::string_view why) {
  const MutexLock lock(&mutex_);
  announced_ = Seconds(clock_.NowNs() - begin_ns_) + seconds;
  if (options_.style == ProgressOptions::Style::kSilent) return;
  if (seconds >= kWorthSayingSeconds) {
    SayLocked(absl::StrCat("about ", FormatAbout(seconds),
                           why.empty() ? "" : absl::StrCat(" (", why, ")")));
  }
  StartThread();
}

void Progress::Say(absl::string_view line) {
  const MutexLock lock(&mutex_);
  if (options_.style != ProgressOptions::Style::kSilent) SayLocked(line);
}

void Progress::SayLocked(absl::string_view line) {
  err_ << absl::StrCat(drawn_ ? kEraseLine : "", command_, ": ", line, "\n") << std::flush;
  drawn_ = false;
  spoken_ns_ = clock_.NowNs();
}

void Progress::Show(absl::string_view what, double part) { Set(what, part, std::nullopt); }
void Progress::Show(absl::string_view what) { Set(what, std::nullopt, std::nullopt); }
void Progress::ShowTimed(absl::string_view what, double seconds) { Set(what, 0, seconds); }

void Progress::Set(absl::string_view what, std::optional<double> part,
                   std::optional<double> seconds) {
  const MutexLock lock(&mutex_);
  if (options_.style == ProgressOptions::Style::kSilent) return;
  const int64_t now_ns = clock_.NowNs();
  // Work of another kind, or again from its beginning.
  if (part && (!part_ || timed_ || seconds || *part < *part_)) work_ns_ = now_ns;
  what_ = std::string(what);
  part_ = part;
  timed_ = seconds;
  shown_ns_ = now_ns;
  if (redrawn() || now_ns - spoken_ns_ >= options_.period_ns) Speak(now_ns);
  StartThread();
}

void Progress::Clear() {
  const MutexLock lock(&mutex_);
  if (drawn_) err_ << kEraseLine << std::flush;
  drawn_ = false;
  if (redrawn()) what_.clear();
}

void Progress::Tick() {
  const MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.NowNs();
  if (what_.empty()) return;
  if (now_ns - spoken_ns_ >= (redrawn() ? kRedrawNs : options_.period_ns)) Speak(now_ns);
}

void Progress::Speak(int64_t now_ns) {
  err_ << (redrawn() ? absl::StrCat(kEraseLine, Line(now_ns)) : absl::StrCat(Line(now_ns), "\n"))
       << std::flush;
  drawn_ = redrawn();
  spoken_ns_ = now_ns;
}

std::optional<double> Progress::Part(int64_t now_ns) const {
  if (timed_) return std::min(0.99, Seconds(now_ns - work_ns_) / *timed_);
  return part_;
}

std::optional<double> Progress::Left(int64_t now_ns) const {
  if (timed_) return std::max(0.0, *timed_ - Seconds(now_ns - work_ns_));
  if (part_ && *part_ >= kPartMin) {
    const double left = Seconds(shown_ns_ - work_ns_) * (1 - *part_) / *part_;
    return std::max(0.0, left - Seconds(now_ns - shown_ns_));
  }
  if (announced_) return std::max(0.0, *announced_ - Seconds(now_ns - begin_ns_));
  return std::nullopt;
}

std::string Progress::Line(int64_t now_ns) const {
  std::string line = absl::StrCat(command_, ": ");
  if (const std::optional<double> part = Part(now_ns)) {
    absl::StrAppend(&line, absl::StrFormat("%.0f %%, ", std::floor(*part * 100)));
  }
  absl::StrAppend(&line, FormatAbout(Seconds(now_ns - begin_ns_)), " so far");
  if (const std::optional<double> left = Left(now_ns); left && *left >= 0.5) {
    absl::StrAppend(&line, ", about ", FormatAbout(*left), " left");
  }
  absl::StrAppend(&line, ": ", what_);
  return line;
}

void Progress::StartThread() {
  if (!options_.thread || thread_.joinable() || ends_) return;
  // Signals are for the thread that can clean up.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Progress::Run() {
  // Looks often enough that no line is late by more than a tenth.
  const std::chrono::nanoseconds look(
      std::max<int64_t>(1'000'000, (redrawn() ? kRedrawNs : options_.period_ns) / 10));
  while (true) {
    {
      const MutexLock lock(&mutex_);
      if (ends_) return;
      ended_.WaitFor(&mutex_, look);
      if (ends_) return;
    }
    Tick();
  }
}

}  // namespace syncopate
