// The mail (transport/mail.h) of a worker whose whole job is on this host. For each pair there are two
// rings in the receiver's control memory, one for messages and one for parts of parcels, so that no
// message waits behind a parcel. What does not fit into a ring waits at the sender, which does not leave before
// it is in the ring, unless nobody reads there.
//
// Post() may be called from any thread, Take() by one thread at a time.
#ifndef SYNCOPATE_TRANSPORT_SHM_SHM_MAIL_H_
#define SYNCOPATE_TRANSPORT_SHM_SHM_MAIL_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "transport/mail.h"
#include "transport/shm/peers.h"

namespace syncopate::transport::shm {

class ShmMail {
 public:
  explicit ShmMail(Peers& peers);
  // Waits until all that was posted is in the rings, for half a second at most.
  ~ShmMail();
  ShmMail(const ShmMail&) = delete;

  absl::Status Post(int to, MailKind kind, std::string bytes);
  void Take(std::vector<Mail>& mail);

 private:
  struct Outgoing {
    bool ended = false;  // it is not in the job any more
    // By kind; unused for this worker itself.
    std::deque<std::string> waiting[kMailKinds];
    uint64_t waiting_cost[kMailKinds] = {};
    uint64_t sent_of_first = 0;  // bytes of the first parcel that are in the ring
  };
  struct Incoming {
    std::string parcel;         // what has come of the one that is under way
    uint64_t parcel_bytes = 0;  // all that will come of it
    bool ended = false;         // nothing more comes from it
  };

  // Moves what waits for `to` into its rings as far as it fits.
  void Fill(int to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FillMessages(int to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FillParcels(int to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills the rings of all; false: nothing waits any more.
  bool FillAll();
  // Takes all that is in the rings from `from`.
  void Empty(int from, std::vector<Mail>& mail);
  void TakeOwn(std::vector<Mail>& mail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeLosses(std::vector<Mail>& mail);

  Peers& peers_;
  Mutex mutex_;
  std::vector<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::vector<Mail> own_ ABSL_GUARDED_BY(mutex_);           // to this worker itself

  // Used by Take() alone.
  std::vector<Incoming> incoming_;  // by rank
  uint64_t losses_told_ = 0;
};

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_SHM_MAIL_H_
