// The mail of a simulated job: workers send messages and parcels to each other and to themselves beside
// their calls, and compare what comes with what must come.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulation/simulation_run.h"
#include "syncopate/status.h"

namespace syncopate::simulation {
namespace {

using transport::Loss;
using transport::Mail;
using transport::MailKind;

absl::string_view Name(MailKind kind) { return kind == MailKind::kMessage ? "message" : "parcel"; }

// Both ends know what the mail with this number holds.
std::string TextOf(uint64_t seed, int from, int to, MailKind kind, uint64_t number) {
  std::string text = absl::StrCat(Name(kind), " ", number, " from ", from, " to ", to, " ");
  Random random(Mix(seed, DigestOf(reinterpret_cast<const std::byte*>(text.data()), text.size())));
  const uint64_t most = random.Below(5) != 0 ? 60 : kind == MailKind::kMessage ? 4000 : 12000;
  for (uint64_t left = random.Below(most); left > 0; --left) {
    text.push_back(static_cast<char>(random.Below(256)));
  }
  return text;
}

}  // namespace

void Simulation::PostMail(Worker& worker) {
  Mailbox& box = worker.mailbox;
  if (!posting_ || box.left == 0 || box.random.Below(3) != 0) return;
  // Several at once now and then, so that queues are filled.
  for (uint64_t i = box.random.Below(8) == 0 ? 6 : 1; i > 0 && box.left > 0; --i, --box.left) {
    const auto to = static_cast<int>(box.random.Below(Index(scenario_.size)));
    const MailKind kind = box.random.Below(6) == 0 ? MailKind::kParcel : MailKind::kMessage;
    uint64_t& posted = box.posted[{to, kind}];
    const absl::Status status =
        worker.transport->Post(to, kind, TextOf(scenario_.seed, worker.rank, to, kind, posted));
    Note("post ", worker.rank, " to ", to, " ", Name(kind), " ", posted, " ",
         status.ok() ? "" : std::string(status.message()));
    if (status.ok()) ++posted;
    const bool knows = worker.noticed_ns.contains(to);
    switch (status.code()) {
      case absl::StatusCode::kOk:
        ++report_.mail_posted;
        if (knows) Fail("worker ", worker.rank, " has sent mail to ", to, ", which is lost");
        break;
      case absl::StatusCode::kResourceExhausted:
        ++report_.mail_refused;
        if (GetSuspect(status) != to) Fail("a full queue without its worker: ", status.message());
        break;
      case absl::StatusCode::kUnavailable:
        if (GetSuspect(status) != to) Fail("mail to ", to, ": ", status.message());
        break;
      case absl::StatusCode::kAborted:
        if (!worker.out) Fail("worker ", worker.rank, " is not out: ", status.message());
        break;
      default:
        Fail("mail of worker ", worker.rank, ": ", status.ToString());
    }
  }
}

void Simulation::TakeMail(Worker& worker) {
  Mailbox& box = worker.mailbox;
  if (box.random.Below(3) == 0) return;  // it does something else
  std::vector<Mail> all;
  worker.transport->TakeMail(all);
  for (const Mail& mail : all) {
    const bool last = mail.kind == MailKind::kLost || mail.kind == MailKind::kLeft;
    if (worker.seat != nullptr && (last || SeatTransport::Wants(mail))) {
      worker.seat->transport.Give(mail);
      if (!last) continue;
    }
    const std::string what = absl::StrCat("worker ", worker.rank, ", mail from ", mail.from);
    Note("mail ", worker.rank, " from ", mail.from, " ", static_cast<int>(mail.kind), " ",
         mail.bytes.size());
    if (box.gone.contains(mail.from)) Fail(what, ", which is gone");
    if (mail.kind == MailKind::kLeft) Fail(what, ": it has not left");
    if (last) {
      box.gone.insert(mail.from);
      if (!worker.noticed_ns.contains(mail.from)) Fail(what, ": it is not lost");
      continue;
    }
    const uint64_t number = box.taken[{mail.from, mail.kind}]++;
    if (mail.bytes != TextOf(scenario_.seed, mail.from, worker.rank, mail.kind, number)) {
      Fail(what, ": ", Name(mail.kind), " ", number, " is wrong or out of order");
    }
  }
}

void Simulation::CheckMail(const std::vector<int>& survivors) {
  for (const int rank : survivors) {
    Mailbox& box = worker(rank).mailbox;
    std::set<int> lost;
    for (const Loss& loss : worker(rank).transport->Lost()) lost.insert(loss.rank);
    if (box.gone != lost) {
      Fail("worker ", rank, " has heard of ", absl::StrJoin(box.gone, ","), ", but lost are ",
           absl::StrJoin(lost, ","));
    }
    for (const int from : survivors) {
      for (const MailKind kind : {MailKind::kMessage, MailKind::kParcel}) {
        const uint64_t posted = worker(from).mailbox.posted[{rank, kind}];
        const uint64_t taken = box.taken[{from, kind}];
        if (posted == taken) continue;
        Fail("of ", posted, " ", Name(kind), "s from ", from, " to ", rank, " ", taken, " came");
      }
    }
  }
}

}  // namespace syncopate::simulation
