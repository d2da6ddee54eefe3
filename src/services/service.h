// What a service is (syncopate/service.h), in the words of this room, and the bytes of ids.
#ifndef SYNCOPATE_SERVICES_SERVICE_H_
#define SYNCOPATE_SERVICES_SERVICE_H_

#include <cstdint>
#include <string>

#include "services/fields.h"
#include "syncopate/service.h"

namespace syncopate::services {

using Asked = ServiceAsked;
using Departed = ServiceDeparted;
using Joined = ServiceJoined;
using TimePassed = ServiceTimePassed;
using Answer = ServiceAnswer;

inline void AppendId(std::string& out, const ServiceId& id) {
  Append(out, id.incarnation);
  Append(out, id.number);
}
inline ServiceId ReadId(ByteReader& reader) {
  ServiceId id;
  id.incarnation = reader.Read<uint64_t>();
  id.number = reader.Read<uint64_t>();
  return id;
}

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_H_
