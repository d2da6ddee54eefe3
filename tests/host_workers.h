// For tests: the workers of one job on several hosts, each a process of its own: on the hosts of an
// emulated cluster, or on "hosts" that are only names and meet on the loopback.
#ifndef SYNCOPATE_TESTS_HOST_WORKERS_H_
#define SYNCOPATE_TESTS_HOST_WORKERS_H_

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lab/change.h"
#include "lab/lab.h"
#include "syncopate/syncopate.h"
#include "tests/forked.h"
#include "tests/worker_processes.h"

namespace syncopate {

class HostWorkers : public Forked {
 public:
  using Body = std::function<int(Worker&)>;

  // `slots` workers on each host of the lab, or on the first `hosts` of them; each starts, runs `body`
  // and ends with what that returns.
  static std::unique_ptr<HostWorkers> InLab(const lab::Lab& lab, int slots, const Body& body,
                                            int hosts = INT_MAX) {
    std::vector<std::string> names;
    for (const lab::HostAddress& host : lab.hosts()) names.push_back(host.name);
    if (names.size() > static_cast<size_t>(hosts)) names.resize(static_cast<size_t>(hosts));
    return std::unique_ptr<HostWorkers>(new HostWorkers(
        names, slots, lab.hosts()[0].address,
        [&](const std::string& host) { return lab::BecomeHost(lab.name(), host); }, body));
  }
  // The same on this machine: workers share memory only with those of the same "host".
  static std::unique_ptr<HostWorkers> OnLoopback(int hosts, int slots, const Body& body) {
    std::vector<std::string> names;
    for (int host = 0; host < hosts; ++host) names.push_back("host" + std::to_string(host));
    return std::unique_ptr<HostWorkers>(new HostWorkers(
        names, slots, "127.0.0.1",
        [](const std::string& host) {
          setenv("SYNCOPATE_SOCKET_IFNAME", "lo", 1);
          setenv("SYNCOPATE_MACHINE", host.c_str(), 1);
          return absl::OkStatus();
        },
        body));
  }

 private:
  // The workers meet as under torchrun.
  HostWorkers(const std::vector<std::string>& hosts, int slots, const std::string& master,
              const std::function<absl::Status(const std::string&)>& place, const Body& body) {
    static int jobs = 0;
    const int size = static_cast<int>(hosts.size()) * slots;
    const std::string port = std::to_string(20000 + (getpid() * 7 + ++jobs * 31) % 20000);
    for (int rank = 0; rank < size; ++rank) {
      Fork([&] {
        const std::string& host = hosts[static_cast<size_t>(rank / slots)];
        if (const absl::Status placed = place(host); !placed.ok()) {
          std::fprintf(stderr, "rank %d: %s\n", rank, placed.ToString().c_str());
          return 97;
        }
        const auto set = [](const char* name, const std::string& value) {
          setenv(name, value.c_str(), 1);
        };
        set("RANK", std::to_string(rank));
        set("WORLD_SIZE", std::to_string(size));
        set("LOCAL_RANK", std::to_string(rank % slots));
        set("LOCAL_WORLD_SIZE", std::to_string(slots));
        set("MASTER_ADDR", master);
        set("MASTER_PORT", port);
        set("TORCHELASTIC_RUN_ID", "test-" + port);
        set("SYNCOPATE_HOST", host);
        set("SYNCOPATE_TIMEOUT", "30s");
        return RunAsWorker({}, body);
      });
    }
  }
};

// Makes a change of the lab, as `syncopate lab` does, and returns its name.
inline std::string ChangeLab(lab::Lab& lab, const std::vector<std::string>& words) {
  absl::StatusOr<lab::Change> change = lab::ParseChange(lab.plan().spec, words);
  EXPECT_TRUE(change.ok()) << change.status();
  absl::StatusOr<std::string> name = lab.Apply(*change, "");
  EXPECT_TRUE(name.ok()) << name.status();
  return name.ok() ? *name : "";
}

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_HOST_WORKERS_H_
