#include "lab/flow.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "lab/child_process.h"
#include "lab/netns.h"
#include "lab/proc_file.h"
#include "nlohmann/json.hpp"

namespace syncopate::lab {
namespace {

constexpr int64_t kListenWaitNs = 5'000'000'000;
constexpr int kMeasurePortFirst = 45'000;
// A server without a client ends after this.
constexpr int kIdleSeconds = 20;
// The interval of the figures. The first one is left out.
constexpr double kIntervalSeconds = 0.5;
// Flows of one trial do not begin at the same moment. This much is added to their time and left out
// of the figures at the end, when some are done and the others have more than their part.
constexpr double kTailSeconds = 1;

// Whether somebody listens on that TCP port in a namespace.
absl::StatusOr<bool> IsListening(const std::string& netns, int port) {
  SYNCOPATE_ASSIGN_OR_RETURN(const NamespaceVisit visit, NamespaceVisit::Enter(netns));
  const std::string local = absl::StrFormat(":%04X", port);
  for (const char* path : {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"}) {
    const absl::StatusOr<std::string> text = ReadProcFile(path);
    if (!text.ok()) continue;
    for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
      const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
      constexpr absl::string_view kListen = "0A";
      if (fields.size() > 3 && fields[3] == kListen && fields[1].size() > local.size() &&
          fields[1].substr(fields[1].size() - local.size()) == local) {
        return true;
      }
    }
  }
  return false;
}

absl::Status AwaitListener(const std::string& netns, int port, const Clock& clock) {
  const int64_t deadline_ns = clock.NowNs() + kListenWaitNs;
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const bool listening, IsListening(netns, port));
    if (listening) return absl::OkStatus();
    if (clock.NowNs() > deadline_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat("iperf3 does not listen on port ", port, " in ", netns, " after 5 s"));
    }
    const timespec pause = {0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
}

std::vector<std::string> ServerWords(const Plan& plan, int host, int port) {
  return {"iperf3",
          "-s",
          "-1",
          "-p",
          absl::StrCat(port),
          "-B",
          plan.address[host],
          "--idle-timeout",
          absl::StrCat(kIdleSeconds)};
}

std::vector<std::string> ClientWords(const Plan& plan, const Pair& pair, int port) {
  return {"iperf3",
          "-c",
          plan.address[pair.to],
          "-p",
          absl::StrCat(port),
          "-B",
          plan.address[pair.from],
          "--connect-timeout",
          "5000"};
}

// The receiver's rate between those two times after its own start.
absl::StatusOr<double> ReadRate(const std::string& json, double begin, double end) {
  try {
    const nlohmann::json parsed = nlohmann::json::parse(json);
    if (parsed.contains("error")) {
      return absl::InternalError(absl::StrCat("iperf3: ", parsed.at("error").get<std::string>()));
    }
    double bytes = 0;
    double seconds = 0;
    for (const nlohmann::json& interval : parsed.at("intervals")) {
      const nlohmann::json& sum = interval.at("sum");
      const double middle = (sum.at("start").get<double>() + sum.at("end").get<double>()) / 2;
      if (middle < begin || middle > end) continue;
      bytes += sum.at("bytes").get<double>();
      seconds += sum.at("seconds").get<double>();
    }
    if (seconds <= 0) return absl::InternalError("iperf3 gave no figures");
    return bytes * 8 / seconds;
  } catch (const nlohmann::json::exception& error) {
    return absl::InternalError(absl::StrCat("iperf3 gave no figures: ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::vector<ProcessId>> StartFlow(const Plan& plan, const Change& flow, int port,
                                                 const Clock& clock) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const ProcessId server,
      StartInBackground(ServerWords(plan, flow.b, port), plan.netns[flow.b]));
  absl::Status listening = AwaitListener(plan.netns[flow.b], port, clock);
  if (!listening.ok()) {
    EndProcess(server);
    return listening;
  }
  std::vector<std::string> words = ClientWords(plan, {flow.a, flow.b}, port);
  words.insert(words.end(), {"-t", absl::StrCat(flow.seconds)});
  if (flow.udp) words.push_back("-u");
  if (flow.rate > 0) words.insert(words.end(), {"-b", absl::StrCat(flow.rate)});
  const absl::StatusOr<ProcessId> client = StartInBackground(words, plan.netns[flow.a]);
  if (!client.ok()) {
    EndProcess(server);
    return client.status();
  }
  return std::vector<ProcessId>{*client, server};
}

absl::StatusOr<std::vector<double>> MeasureFlows(const Plan& plan, const std::vector<Pair>& pairs,
                                                 double seconds, int streams,
                                                 const std::string& congestion, const Clock& clock,
                                                 int cancel_fd) {
  seconds = std::max(1.0, std::ceil(seconds));
  const double whole = seconds + (pairs.size() > 1 ? kTailSeconds : 0);
  std::vector<ChildProcess> servers;
  std::vector<ChildProcess> clients;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int port = kMeasurePortFirst + static_cast<int>(i);
    std::vector<std::string> words = ServerWords(plan, pairs[i].to, port);
    words.insert(words.end(), {"-J", "-i", absl::StrCat(kIntervalSeconds)});
    SYNCOPATE_ASSIGN_OR_RETURN(ChildProcess server,
                               ChildProcess::Start(words, "", plan.netns[pairs[i].to]));
    servers.push_back(std::move(server));
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    SYNCOPATE_RETURN_IF_ERROR(
        AwaitListener(plan.netns[pairs[i].to], kMeasurePortFirst + static_cast<int>(i), clock));
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::vector<std::string> words =
        ClientWords(plan, pairs[i], kMeasurePortFirst + static_cast<int>(i));
    words.insert(words.end(),
                 {"-t", absl::StrCat(std::lround(whole)), "-P", absl::StrCat(streams)});
    if (!congestion.empty()) words.insert(words.end(), {"-C", congestion});
    SYNCOPATE_ASSIGN_OR_RETURN(ChildProcess client,
                               ChildProcess::Start(words, "", plan.netns[pairs[i].from]));
    clients.push_back(std::move(client));
  }
  std::vector<double> rates;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int64_t wait_ns = static_cast<int64_t>(seconds * 1e9) + kProgramDeadlineNs;
    SYNCOPATE_RETURN_IF_ERROR(clients[i].Wait(wait_ns, cancel_fd).status());
    SYNCOPATE_ASSIGN_OR_RETURN(const ProgramResult result, servers[i].Wait(wait_ns, cancel_fd));
    const absl::StatusOr<double> rate = ReadRate(result.out, kIntervalSeconds, seconds);
    if (!rate.ok()) {
      return At(absl::StrCat("flow ", plan.spec.nodes[pairs[i].from].name, " to ",
                             plan.spec.nodes[pairs[i].to].name),
                rate.status());
    }
    rates.push_back(*rate);
  }
  return rates;
}

}  // namespace syncopate::lab
