#include "observe/prometheus.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace syncopate::observe {
namespace {

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.9g", value);
}

}  // namespace

std::string ToPrometheus(const RunState& state) {
  const std::string run =
      absl::StrReplaceAll(state.run, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
  std::string text;
  const auto one = [&](const char* name, const char* type, const char* help,
                       const std::string& value) {
    absl::StrAppend(&text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name,
                    "{run=\"", run, "\"} ", value, "\n");
  };
  one("syncopate_workers", "gauge", "Workers of the run.", absl::StrCat(state.workers));
  one("syncopate_iterations_total", "counter", "Iterations done.", absl::StrCat(state.iterations));
  one("syncopate_bytes_sent_total", "counter", "Bytes that all workers sent.",
      absl::StrCat(state.bytes_sent));
  one("syncopate_run_seconds", "gauge", "Seconds since the run began.", Number(state.seconds));
  if (state.iteration_seconds) {
    one("syncopate_iteration_seconds", "gauge",
        "Mean seconds of an iteration, without evaluation, checkpoints and measuring, since the "
        "sample before.",
        Number(*state.iteration_seconds));
  }
  if (state.loss) one("syncopate_loss", "gauge", "The last loss.", Number(*state.loss));
  if (state.accuracy) {
    one("syncopate_accuracy", "gauge", "The last accuracy, from 0 to 1.", Number(*state.accuracy));
  }
  return text;
}

}  // namespace syncopate::observe
