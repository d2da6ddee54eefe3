// The exchange of records among all workers by the engine, beside the job's own collectives.
#ifndef SYNCOPATE_WORKER_ENGINE_EXCHANGE_H_
#define SYNCOPATE_WORKER_ENGINE_EXCHANGE_H_

#include <memory>

#include "adapt/record_exchange.h"
#include "engine/engine.h"
#include "worker/program_cache.h"

namespace syncopate::worker {

// `group` has all workers and is used for nothing else. The engine and the programs must be there
// as long as records are exchanged. The memory of records under way must outlive the engine, so the
// owner of the exchange destroys the engine first.
std::unique_ptr<adapt::RecordExchange> MakeEngineExchange(
    engine::Engine& engine, ProgramCache& programs, std::shared_ptr<engine::EngineGroup> group,
    int64_t timeout_ns);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_ENGINE_EXCHANGE_H_
