// The mail (transport/mail.h) between this worker and all others, as frames. Messages are control
// frames: these keep their order and go ahead of data. Parcels travel as data, in parts that may
// overtake each other.
//
// A receiver says how much it has taken, and a sender sends no more than may wait there: so what a
// worker holds of mail that nobody takes is bounded, whatever the network buffers. Of parcels, one at a
// time travels from a worker to another.
//
// Not thread-safe: the Core that owns it is guarded.
#ifndef SYNCOPATE_TRANSPORT_NET_POST_OFFICE_H_
#define SYNCOPATE_TRANSPORT_NET_POST_OFFICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/mail.h"
#include "transport/net/frame.h"

namespace syncopate::transport::net {

class PostOffice {
 public:
  // What the office needs of the wire.
  class Carrier {
   public:
    virtual ~Carrier() = default;
    // Sends one control frame; the bytes are copied.
    virtual void SendMail(int to, FrameType type, uint64_t sequence, absl::string_view bytes) = 0;
    // Sends a parcel in as many frames as it takes. `bytes` must not change before Detach(cookie).
    virtual void SendParcel(int to, uint64_t sequence, const std::string& bytes,
                            uint64_t cookie) = 0;
    // Wire::Detach() and Wire::Abandon().
    virtual void Detach(uint64_t cookie) = 0;
    virtual void Abandon(const std::string& memory) = 0;
  };

  // `queued_bytes_max`: what may wait of messages from one worker to another, the same on all.
  PostOffice(int rank, int size, uint64_t queued_bytes_max, Carrier& carrier);

  // See Transport::Post(); `to` is in the job and the mail passes CheckMail().
  absl::Status Post(int to, MailKind kind, std::string bytes);
  // Appends what has come, and tells the senders that it was taken.
  void Take(std::vector<Mail>& mail);
  bool empty() const { return inbox_.empty(); }

  // Cookies of the office have this bit, others do not. Nothing is done when such frames are sent.
  static constexpr uint64_t kCookieBit = uint64_t{1} << 63;

  // Frames that have come from `from`. False or null: nobody expects it, so no worker of ours sent it.
  bool MessageArrived(int from, std::string bytes);
  std::byte* PlaceParcel(int from, const FrameHeader& header);
  void ParcelArrived(int from, const FrameHeader& header);
  bool MessagesTaken(int from, const FrameHeader& header);
  bool ParcelTaken(int from, const FrameHeader& header);

  // A worker is lost or left, as `last` says; nothing more comes from it. The first word counts.
  void Lose(Mail last);

 private:
  struct Peer {
    bool gone = false;
    // To it. Of messages, the cost of all that were ever posted and of those that it has taken.
    uint64_t posted = 0;
    uint64_t posted_taken = 0;
    std::deque<std::string> parcels;  // the first one is under way
    uint64_t parcels_cost = 0;
    uint64_t parcel_cookie = 0;  // of the first one
    uint64_t parcels_taken = 0;  // how many of them
    // From it. Of messages, the cost of all that came, of those taken here, and of what it was told.
    uint64_t came = 0;
    uint64_t taken = 0;
    uint64_t told = 0;
    std::unique_ptr<std::string> coming;  // the parcel of which parts have come
    uint64_t coming_got = 0;              // bytes
    int coming_under_way = 0;             // frames that are being read into it
    bool parcel_waits = false;            // one is whole and not taken
    uint64_t parcels_come = 0;            // that were taken
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  void SendFirstParcel(int to);
  void Tell(int from);

  const int rank_;
  const uint64_t queued_bytes_max_;
  Carrier& carrier_;
  std::vector<Peer> peers_;
  std::vector<Mail> inbox_;
  uint64_t next_cookie_ = 0;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_POST_OFFICE_H_
