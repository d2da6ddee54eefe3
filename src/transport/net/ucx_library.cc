#include "transport/net/ucx_library.h"

#include <dlfcn.h>

#include <csignal>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace syncopate::transport::net {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

UcxLibrary library;

absl::Status Load() {
  struct sigaction before[std::size(kSignals)];
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], nullptr, &before[i]);
  void* const ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  void* const ucs = ucp == nullptr ? nullptr : dlopen("libucs.so.0", RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
  if (ucp == nullptr || ucs == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "UCX cannot be loaded: ", dlerror(), "; install libucx0, or use SYNCOPATE_TRANSPORT=tcp"));
  }
  const char* missing = nullptr;
#define SYNCOPATE_FIND(name)                                                         \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(ucp, "ucp_" #name)); \
  if (library.name == nullptr) missing = "ucp_" #name;
  SYNCOPATE_UCP_FUNCTIONS(SYNCOPATE_FIND)
#undef SYNCOPATE_FIND
  library.status_string =
      reinterpret_cast<decltype(library.status_string)>(dlsym(ucs, "ucs_status_string"));
  if (library.status_string == nullptr) missing = "ucs_status_string";
  if (missing == nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("this UCX has no ", missing,
                                             "; install another version, or use "
                                             "SYNCOPATE_TRANSPORT=tcp"));
}

}  // namespace

absl::StatusOr<const UcxLibrary*> LoadUcx() {
  static const absl::Status status = Load();
  if (!status.ok()) return status;
  return &library;
}

const UcxLibrary& Ucx() { return library; }

}  // namespace syncopate::transport::net
