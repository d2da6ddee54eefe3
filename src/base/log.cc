#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace syncopate {
namespace {
spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("syncopate",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::warn);
    made->set_pattern("syncopate %H:%M:%S.%e %l: %v");
    return made;
  }();
  return *logger;
}
}  // namespace

absl::Status SetUpLog(absl::string_view name, absl::string_view who) {
  LogLevel level = LogLevel::kWarn;
  if (name == "TRACE") {
    level = LogLevel::kTrace;
  } else if (name == "INFO") {
    level = LogLevel::kInfo;
  } else if (name == "OFF") {
    level = LogLevel::kOff;
  } else if (!name.empty() && name != "WARN") {
    return absl::InvalidArgumentError(
        absl::StrCat("SYNCOPATE_DEBUG is \"", name, "\"; set it to WARN, INFO, TRACE or OFF"));
  }
  Logger().set_level(ToSpdlog(level));
  Logger().set_pattern(who.empty() ? "syncopate %H:%M:%S.%e %l: %v"
                                   : absl::StrCat("syncopate %H:%M:%S.%e [", who, "] %l: %v"));
  return absl::OkStatus();
}

bool LogEnabled(LogLevel level) { return Logger().should_log(ToSpdlog(level)); }

void LogLine(LogLevel level, absl::string_view line) {
  Logger().log(ToSpdlog(level), std::string_view(line.data(), line.size()));
}

}  // namespace syncopate
