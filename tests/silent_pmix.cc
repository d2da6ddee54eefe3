// A libpmix.so.2 whose server never answers: PMIx_Init() does not return.
#include <unistd.h>

extern "C" {

int silent_pmix_calls = 0;

int PMIx_Init(void* /*process*/, void* /*info*/, size_t /*infos*/) {
  ++silent_pmix_calls;
  while (true) pause();
}

// They are looked for, and never reached.
int PMIx_Finalize() { return -1; }
int PMIx_Put() { return -1; }
int PMIx_Commit() { return -1; }
int PMIx_Fence_nb() { return -1; }
int PMIx_Get_nb() { return -1; }
const char* PMIx_Error_string(int /*status*/) { return "silent"; }
}
