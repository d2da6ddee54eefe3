#include "transport/mail.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "transport/transport.h"

namespace syncopate::transport {

Mail LastMailOf(const Loss& loss) {
  return {.from = loss.rank,
          .kind = loss.left ? MailKind::kLeft : MailKind::kLost,
          .bytes = loss.cause,
          .order = loss.order};
}

absl::Status CheckMail(int to, int size, MailKind kind, absl::string_view bytes) {
  if (to < 0 || to >= size) {
    return WithBlast(absl::InvalidArgumentError(
                         absl::StrCat("mail to ", to, ", which is not a rank of a job of ", size)),
                     BlastRadius::kOperation);
  }
  if (kind != MailKind::kMessage && kind != MailKind::kParcel) {
    return WithBlast(absl::InvalidArgumentError("only messages and parcels can be posted"),
                     BlastRadius::kOperation);
  }
  if (bytes.empty() || bytes.size() > MailBytesMax(kind)) {
    return WithBlast(
        absl::InvalidArgumentError(absl::StrCat(
            "a ", kind == MailKind::kMessage ? "message" : "parcel", " of ", bytes.size(),
            " bytes to worker ", to, "; it may have 1 to ", MailBytesMax(kind))),
        BlastRadius::kOperation);
  }
  return absl::OkStatus();
}

absl::Status MailQueueFull(int to, MailKind kind) {
  return WithBlast(absl::ResourceExhaustedError(absl::StrCat(
                       MailQueueBytesMax(kind), " bytes of ",
                       kind == MailKind::kMessage ? "messages" : "parcels", " wait for worker ", to,
                       ", which does not take them as quickly as they are sent")),
                   BlastRadius::kOperation, to);
}

absl::Status NobodyThere(int to) {
  return WithBlast(
      absl::UnavailableError(absl::StrCat("worker ", to, " is not in the job any more")),
      BlastRadius::kOperation, to);
}

absl::Status NotInTheJob(int rank) {
  return WithBlast(
      absl::AbortedError(absl::StrCat("worker ", rank, ", this one, is not in the job any more")),
      BlastRadius::kJob, rank);
}

}  // namespace syncopate::transport
