/* How much memory a role sets aside for messages that are being received, and for those that are not taken. */
#ifndef PWI_HOST_RUN_INBOUND_H
#define PWI_HOST_RUN_INBOUND_H

#include <stdint.h>

#define PWI_RUN_INBOUND_MAX ((uint64_t)512 << 20)

/* Of `memory` bytes, UINT64_MAX if there is no cap: an eighth, but at least 16 MiB (or half, if that is less) and at most
 * PWI_RUN_INBOUND_MAX. */
uint64_t pwi_run_inbound(uint64_t memory);

/* And for answers that clients have not taken: the same, or a quarter of the memory if that is less. */
uint64_t pwi_run_answers(uint64_t memory);

#endif
