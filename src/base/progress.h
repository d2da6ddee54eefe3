// What a command that takes long says on standard error: beforehand how long it will take, then how
// far it is. On a terminal that is one line that is drawn over and over; elsewhere (a log, a pipe) a
// line every half minute, also while a single piece of the work takes longer than that. Standard
// output stays the command's own.
//
// Thread-safe. A thread of its own speaks while the command works; it starts with the first word and
// takes no signals.
#ifndef SYNCOPATE_BASE_PROGRESS_H_
#define SYNCOPATE_BASE_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/mutex.h"

namespace syncopate {

struct ProgressOptions {
  enum class Style : uint8_t {
    kSilent,
    kRedrawn,  // one line of a terminal
    kLines,    // a line every `period_ns`
  };
  Style style = Style::kSilent;
  int64_t period_ns = 30'000'000'000;
  bool thread = true;  // false: nothing is said between calls, and the process may fork freely
};

// The environment variable that says how often; "off" means never.
inline constexpr char kProgressVariable[] = "SYNCOPATE_PROGRESS";

// How to speak on a standard error that is a terminal or not. SYNCOPATE_PROGRESS=10s asks for lines
// so often, wherever they go. InvalidArgument if it is neither a time nor "off".
absl::StatusOr<ProgressOptions> ProgressOptionsFor(const Environment& environment, bool terminal);

class Progress {
 public:
  // Lines begin with `command`, as "syncopate bench". The clock and the stream must outlive it.
  Progress(std::string command, ProgressOptions options, const Clock& clock, std::ostream& err);
  ~Progress();
  Progress(const Progress&) = delete;

  // Before the work: it will take about `seconds`, for the reasons given as "3 sizes, 5 rounds".
  // Not said if it is short. Called again, it replaces what was said.
  void Announce(double seconds, absl::string_view why);

  // One line, whatever else is shown.
  void Say(absl::string_view line);

  // What is done now, and the part of the work that is behind it (0 to 1). How long the rest takes
  // is judged by what was needed so far, counted from the first call that has a part. A part below
  // the one before begins anew.
  void Show(absl::string_view what, double part);
  // The same for preparations, of which no part is known.
  void Show(absl::string_view what);
  // The same for work that ends when a time is over.
  void ShowTimed(absl::string_view what, double seconds);

  // Takes the line off the terminal until the next Show(), so that something else can be written.
  void Clear();

  // Speaks if it is time to: what the thread does.
  void Tick();

 private:
  void Set(absl::string_view what, std::optional<double> part, std::optional<double> seconds);
  void SayLocked(absl::string_view line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Speak(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Line(int64_t now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Seconds; nothing where nothing can be said.
  std::optional<double> Left(int64_t now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<double> Part(int64_t now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  bool redrawn() const { return options_.style == ProgressOptions::Style::kRedrawn; }

  const std::string command_;
  const ProgressOptions options_;
  const Clock& clock_;
  const int64_t begin_ns_;
  std::ostream& err_;

  Mutex mutex_;
  CondVar ended_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  std::string what_ ABSL_GUARDED_BY(mutex_);                 // empty: there is nothing to show
  std::optional<double> part_ ABSL_GUARDED_BY(mutex_);       // of all work, when it was last shown
  std::optional<double> timed_ ABSL_GUARDED_BY(mutex_);      // seconds that all work takes
  std::optional<double> announced_ ABSL_GUARDED_BY(mutex_);  // seconds from begin_ns_ on
  int64_t work_ns_ ABSL_GUARDED_BY(mutex_) = 0;              // when the first part was shown
  int64_t shown_ns_ ABSL_GUARDED_BY(mutex_) = 0;             // when part_ was shown
  int64_t spoken_ns_ ABSL_GUARDED_BY(mutex_);                // when a line was last written
  bool drawn_ ABSL_GUARDED_BY(mutex_) = false;               // there is a line on the terminal
};

// As exactly as an estimate deserves: "8 s", "45 s", "2 min 10 s", "25 min", "3 h".
std::string FormatAbout(double seconds);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_PROGRESS_H_
