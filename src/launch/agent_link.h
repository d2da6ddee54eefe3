// The launcher's end of the way to one host: the agent's process and what goes through it.
#ifndef SYNCOPATE_LAUNCH_AGENT_LINK_H_
#define SYNCOPATE_LAUNCH_AGENT_LINK_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "launch/agent_frames.h"
#include "launch/heartbeat.h"
#include "launch/host_list.h"
#include "launch/line_tagger.h"
#include "launch/output_queue.h"
#include "launch/worker_process.h"

namespace syncopate::launch {

// Keeps the last part of an output. Not thread-safe.
class Tail {
 public:
  void Add(absl::string_view bytes);
  // The last few lines, each with `before` in front and a newline behind.
  std::string Lines(absl::string_view before) const;

 private:
  std::string bytes_;
};

// Not thread-safe.
class AgentLink {
 public:
  // `to_agent` is the writing end of the process's standard input, not blocking.
  AgentLink(HostRanks place, WorkerProcess process, UniqueFd to_agent, Heartbeat heartbeat);

  const HostRanks& place() const { return place_; }
  std::string Ranks() const;  // "4-7"
  std::string Name() const;   // "host node2 (ranks 4-7)"
  pid_t pid() const { return process_.pid; }
  int out() const { return out_open() ? process_.out.get() : -1; }
  int err() const { return process_.err.ok() ? process_.err.get() : -1; }
  bool out_open() const { return process_.out.ok(); }
  OutputQueue& to_agent() { return to_agent_; }
  const Tail& tail() const { return tail_; }

  void Send(FrameKind kind, int rank, absl::string_view bytes);
  // A sign of life, if one is due and nothing else is under way.
  void SendBeat(int64_t now_ns);
  // Reads what is there; at the end of the output (or if there is nothing and `drain`) closes it.
  // Returns the frames that are complete now. An error is not to be understood: the agent is lost.
  absl::StatusOr<std::vector<Frame>> ReadOut(bool drain);
  // What the agent itself says (ssh's errors), as lines for the user.
  void ReadErr(bool drain, std::string& lines);

  Heartbeat heartbeat;   // of the far side, once it has started
  bool running = true;   // the agent's process
  int wait_status = 0;   // once it does not run
  bool started = false;  // the ranks there are
  bool done = false;     // nothing of the job is left there
  bool judged = false;   // its end was dealt with

 private:
  // Takes away what comes before the mark, if the mark is there.
  bool PassMark();

  const HostRanks place_;
  WorkerProcess process_;
  UniqueFd to_agent_fd_;
  OutputQueue to_agent_;
  std::string before_mark_;
  bool marked_ = false;
  FrameReader reader_;
  LineTagger err_tagger_;
  Tail tail_;
};

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_AGENT_LINK_H_
