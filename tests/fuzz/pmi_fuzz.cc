// What a process manager answers on PMI_FD: an answer or an error, and never a wait.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "control/pmi_exchange.h"
#include "control/sockets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  if (size > 60'000) return 0;  // more than a socket takes at once
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const UniqueFd worker(ends[0]), manager(ends[1]);
  if (write(manager.get(), data, size) != static_cast<ssize_t>(size)) std::abort();
  shutdown(manager.get(), SHUT_WR);
  const Clock& clock = MonotonicClock();
  const auto text =
      control::ShareByPmi(worker.get(), "name", 1, "", clock, clock.NowNs() + 5'000'000'000);
  if (text.ok() && text->size() > 4096) std::abort();
  (void)control::SplitAddress(absl::string_view(reinterpret_cast<const char*>(data), size)).ok();
  return 0;
}
