// Sleeping until a moment, for what plays computing in experiments. Nothing else sleeps: it waits for something.
#ifndef SYNCOPATE_BASE_SLEEP_H_
#define SYNCOPATE_BASE_SLEEP_H_

#include <cstdint>

namespace syncopate {

// Until that moment of MonotonicClock().
void SleepUntil(int64_t at_ns);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_SLEEP_H_
