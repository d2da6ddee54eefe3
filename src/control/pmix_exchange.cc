#include "control/pmix_exchange.h"

#include <dlfcn.h>
#include <pmix.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"

namespace syncopate::control {
namespace {

constexpr char kLibrary[] = "libpmix.so.2";
constexpr size_t kTextBytesMax = 4096;

// The functions of libpmix that we use. It stays loaded: its threads may run still.
struct Pmix {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence_nb) fence = nullptr;
  decltype(&PMIx_Get_nb) get = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;

  absl::Status Check(absl::string_view what, pmix_status_t status) const {
    if (status == PMIX_SUCCESS) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("PMIx cannot ", what, ": ", error_string(status)));
  }
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

absl::StatusOr<Pmix> Load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "the launcher offers PMIx, but ", kLibrary, " cannot be loaded (", dlerror(),
        "); install it (Debian: libpmix2), or start the workers with syncopate launch"));
  }
  Pmix pmix;
  if (!Find(library, "PMIx_Init", pmix.init) || !Find(library, "PMIx_Finalize", pmix.finalize) ||
      !Find(library, "PMIx_Put", pmix.put) || !Find(library, "PMIx_Commit", pmix.commit) ||
      !Find(library, "PMIx_Fence_nb", pmix.fence) || !Find(library, "PMIx_Get_nb", pmix.get) ||
      !Find(library, "PMIx_Error_string", pmix.error_string)) {
    return absl::NotFoundError(absl::StrCat(kLibrary, " lacks a function: ", dlerror()));
  }
  return pmix;
}

// The answer to a call that PMIx makes in the background. It outlives us if we stop waiting.
struct Answer {
  Mutex mutex;
  CondVar changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
  pmix_status_t status ABSL_GUARDED_BY(mutex) = PMIX_SUCCESS;
  std::string text ABSL_GUARDED_BY(mutex);

  void Set(pmix_status_t new_status, std::string new_text) {
    MutexLock lock(&mutex);
    status = new_status;
    text = std::move(new_text);
    done = true;
    changed.SignalAll();
  }
};
using SharedAnswer = std::shared_ptr<Answer>;

// `data` is a SharedAnswer of its own that the callback frees.
void OnFence(pmix_status_t status, void* data) {
  const std::unique_ptr<SharedAnswer> answer(static_cast<SharedAnswer*>(data));
  (*answer)->Set(status, "");
}
void OnGet(pmix_status_t status, pmix_value_t* value, void* data) {
  const std::unique_ptr<SharedAnswer> answer(static_cast<SharedAnswer*>(data));
  std::string text;
  if (status == PMIX_SUCCESS && value != nullptr && value->type == PMIX_STRING &&
      value->data.string != nullptr) {
    text.assign(value->data.string, strnlen(value->data.string, kTextBytesMax));
  }
  (*answer)->Set(status, std::move(text));
}

absl::StatusOr<std::string> Await(const Pmix& pmix, absl::string_view what, Answer& answer,
                                  const Clock& clock, int64_t deadline_ns) {
  MutexLock lock(&answer.mutex);
  while (!answer.done) {
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("PMIx could not ", what, " in time; do all workers of the job run?"));
    }
    answer.changed.WaitFor(&answer.mutex, std::chrono::nanoseconds(left_ns));
  }
  SYNCOPATE_RETURN_IF_ERROR(pmix.Check(what, answer.status));
  return answer.text;
}

absl::StatusOr<std::string> ShareWith(const Pmix& pmix, const pmix_proc_t& self,
                                      const std::string& name, int rank, const std::string& text,
                                      const Clock& clock, int64_t deadline_ns) {
  if (rank == 0) {
    pmix_value_t value;
    std::memset(&value, 0, sizeof(value));
    value.type = PMIX_STRING;
    value.data.string = const_cast<char*>(text.c_str());  // it is copied
    SYNCOPATE_RETURN_IF_ERROR(
        pmix.Check("take a value", pmix.put(PMIX_GLOBAL, name.c_str(), &value)));
  }
  SYNCOPATE_RETURN_IF_ERROR(pmix.Check("publish", pmix.commit()));

  pmix_info_t collect;
  std::memset(&collect, 0, sizeof(collect));
  std::strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
  collect.value.type = PMIX_BOOL;
  collect.value.data.flag = true;
  auto fenced = std::make_shared<Answer>();
  auto fence_data = std::make_unique<SharedAnswer>(fenced);
  SYNCOPATE_RETURN_IF_ERROR(pmix.Check(
      "gather the workers", pmix.fence(nullptr, 0, &collect, 1, OnFence, fence_data.get())));
  (void)fence_data.release();  // the callback's now
  SYNCOPATE_RETURN_IF_ERROR(
      Await(pmix, "gather the workers", *fenced, clock, deadline_ns).status());
  if (rank == 0) return text;

  pmix_proc_t root = self;
  root.rank = 0;
  auto got = std::make_shared<Answer>();
  auto get_data = std::make_unique<SharedAnswer>(got);
  SYNCOPATE_RETURN_IF_ERROR(pmix.Check(
      "ask for rank 0's value", pmix.get(&root, name.c_str(), nullptr, 0, OnGet, get_data.get())));
  (void)get_data.release();
  return Await(pmix, "ask for rank 0's value", *got, clock, deadline_ns);
}

// PMIx stays up until this process exits: it cannot be started again once it has ended, and an MPI
// library may want it later. It counts its users, so theirs is not disturbed by our end.
struct Session {
  Pmix pmix;
  pmix_proc_t self;
  pid_t process = -1;
};

const Session* open_session = nullptr;  // for the end; set once

void CloseSession() {
  if (getpid() == open_session->process) open_session->pmix.finalize(nullptr, 0);
}

absl::StatusOr<const Session*> OpenSession() {
  auto session = std::make_unique<Session>();
  SYNCOPATE_ASSIGN_OR_RETURN(session->pmix, Load());
  std::memset(&session->self, 0, sizeof(session->self));
  SYNCOPATE_RETURN_IF_ERROR(
      session->pmix.Check("start", session->pmix.init(&session->self, nullptr, 0)));
  session->process = getpid();
  open_session = session.release();
  std::atexit(CloseSession);
  return open_session;
}

// The one try to open the session that is under way, or has succeeded.
struct Opening {
  Mutex mutex;
  CondVar changed;
  bool under_way ABSL_GUARDED_BY(mutex) = false;
  absl::StatusOr<const Session*> session ABSL_GUARDED_BY(mutex) = absl::UnknownError("not opened");
};

// PMIx_Init() waits for the launcher's server without a deadline, so it is called by a thread that
// is left to itself at `deadline_ns`.
absl::StatusOr<const Session*> AwaitSession(const Clock& clock, int64_t deadline_ns) {
  static Opening* const opening = new Opening;
  MutexLock lock(&opening->mutex);
  if (!opening->session.ok() && !opening->under_way) {
    opening->under_way = true;
    std::thread([] {
      absl::StatusOr<const Session*> session = OpenSession();
      MutexLock done(&opening->mutex);
      opening->session = std::move(session);
      opening->under_way = false;
      opening->changed.SignalAll();
    }).detach();
  }
  while (opening->under_way) {
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) {
      return absl::DeadlineExceededError(
          "PMIx could not start in time; does the launcher still run, and answer?");
    }
    opening->changed.WaitFor(&opening->mutex, std::chrono::nanoseconds(left_ns));
  }
  return opening->session;
}

}  // namespace

absl::StatusOr<std::string> ShareByPmix(const std::string& name, int rank, const std::string& text,
                                        const Clock& clock, int64_t deadline_ns) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Session* session, AwaitSession(clock, deadline_ns));
  return ShareWith(session->pmix, session->self, name, rank, text, clock, deadline_ns);
}

}  // namespace syncopate::control
