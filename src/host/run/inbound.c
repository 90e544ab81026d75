#include "host/run/inbound.h"

#define INBOUND_MIN ((uint64_t)16 << 20)

uint64_t pwi_run_inbound(uint64_t memory) {
  uint64_t most = memory / 8, least = memory / 2 < INBOUND_MIN ? memory / 2 : INBOUND_MIN;
  if (most < least) most = least;
  return most > PWI_RUN_INBOUND_MAX ? PWI_RUN_INBOUND_MAX : most;
}

uint64_t pwi_run_answers(uint64_t memory) {
  uint64_t most = pwi_run_inbound(memory), quarter = memory / 4;
  return most < quarter ? most : quarter;
}
