// Every limit of the library, by name. A value from outside is compared with its limit before
// memory is allocated for it.
#ifndef SYNCOPATE_BASE_LIMITS_H_
#define SYNCOPATE_BASE_LIMITS_H_

#include <cstdint>

namespace syncopate::limits {

inline constexpr int kWorkersMax = 4096;     // in a job or a program
inline constexpr int kLocalWorkersMax = 48;  // of one job on one host: a gate is one word
// Keys of groups that a worker remembers, so that none is used twice and what comes late for one is
// dropped.
inline constexpr uint64_t kClosedGroupsMax = uint64_t{1} << 16;
inline constexpr uint64_t kElementsMax = uint64_t{1} << 40;        // in one buffer
inline constexpr uint64_t kChunksMax = uint64_t{1} << 20;          // in one space of a program
inline constexpr uint64_t kStepsPerWorkerMax = uint64_t{1} << 16;  // in a program
inline constexpr uint64_t kAlgorithmBytesMax = 256;  // the name of a planner in a program
// (worker, chunk) pairs, and accesses to chunks, in a proof; and bytes of its sets of
// contributions.
inline constexpr uint64_t kProofCellsMax = uint64_t{1} << 26;
inline constexpr uint64_t kProofBytesMax = uint64_t{1} << 30;
inline constexpr uint64_t kProgramTextBytesMax = uint64_t{256} << 20;
inline constexpr uint64_t kTopologyTextBytesMax = uint64_t{64} << 20;
inline constexpr uint64_t kTopologyNodesMax = uint64_t{1} << 17;
inline constexpr uint64_t kTopologyLinksMax = uint64_t{1} << 20;
inline constexpr uint64_t kTopologyCapacitiesMax = uint64_t{1} << 20;
inline constexpr uint64_t kTopologyRoutesMax = uint64_t{1} << 20;
inline constexpr uint64_t kTopologyNameBytesMax = 256;  // an id, a group, a source
inline constexpr double kTopologyLatencySecondsMax = 60;
inline constexpr uint64_t kTensorsMax = uint64_t{1} << 16;  // of a model
// A tensor table, a schedule, costs.
inline constexpr uint64_t kTensorTextBytesMax = uint64_t{64} << 20;
inline constexpr uint64_t kTensorNameBytesMax = 256;
inline constexpr double kTensorSecondsMax = 1e6;  // a tensor's forward or backward
inline constexpr int kBesideMax = 63;             // transfers that run beside one
inline constexpr uint64_t kEnvironmentValueBytesMax = 4096;
inline constexpr uint64_t kHostNameBytesMax = 255;
inline constexpr uint64_t kMeetingPayloadBytesMax = 8192;  // what a worker tells all others
inline constexpr uint64_t kHostFileBytesMax = uint64_t{1} << 20;
// Between workers beside collectives: a message, and a parcel for what is larger.
inline constexpr uint64_t kMailBytesMax = 4096;
inline constexpr uint64_t kParcelBytesMax = uint64_t{64} << 20;
inline constexpr uint64_t kMailTopicBytesMax = 64;
inline constexpr uint64_t kMailLabelBytesMax = 128;  // a topic and its length, with room to grow
// What waits from one worker to another. A message counts as kMailCostMin bytes at least, since its
// place in a queue takes memory too.
inline constexpr uint64_t kMailQueuedBytesMax = uint64_t{1} << 20;
inline constexpr uint64_t kParcelsQueuedBytesMax = uint64_t{128} << 20;
inline constexpr uint64_t kMailCostMin = 64;
inline constexpr uint64_t kServicesMax = 64;                           // of a job
inline constexpr uint64_t kServiceBytesMax = uint64_t{20} << 20;       // a request or an answer
inline constexpr uint64_t kServiceErrorBytesMax = 1024;                // the text of one
inline constexpr uint64_t kTicketsOpenMax = 64;                        // of one worker
inline constexpr uint64_t kReplicationBytesMax = uint64_t{512} << 10;  // on their way to a standby
inline constexpr uint64_t kAgreementKindBytesMax = 64;
inline constexpr uint64_t kAgreementKindsMax = 64;
inline constexpr uint64_t kAgreementQueueMax = 64;  // proposals that wait
inline constexpr uint64_t kAgreementValueBytesMax = uint64_t{16} << 20;
inline constexpr uint64_t kAgreementBytesMax = uint64_t{48} << 20;  // all values together
inline constexpr uint64_t kPositionMax = uint64_t{1} << 61;         // a call, an iteration, samples
inline constexpr uint64_t kSamplesMax = uint64_t{1} << 48;          // of a data set
inline constexpr uint64_t kEpochsMax = uint64_t{1} << 32;
inline constexpr uint64_t kRangesSaidMax = 64;                 // in one request
inline constexpr uint64_t kRangesGrantedMax = 16;              // in one answer
inline constexpr uint64_t kRangesHeldMax = uint64_t{1} << 16;  // by all workers
inline constexpr uint64_t kTraceSpansMax = uint64_t{1} << 20;  // in the trace of one worker

}  // namespace syncopate::limits

#endif  // SYNCOPATE_BASE_LIMITS_H_
