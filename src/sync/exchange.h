// How whoever trains on a worker tells the other workers something beside collectives: in rounds of
// texts (adapt/job_exchange.h), which all workers start in the same order.
#ifndef SYNCOPATE_SYNC_EXCHANGE_H_
#define SYNCOPATE_SYNC_EXCHANGE_H_

#include "adapt/job_exchange.h"
#include "syncopate/syncopate.h"
#include "worker/mail_exchange.h"

namespace syncopate::sync {

// It lives as long as the worker.
inline adapt::JobExchange& ExchangeOf(Worker& worker) { return worker::ExchangeOf(worker); }

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_EXCHANGE_H_
