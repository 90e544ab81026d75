/* The memory that a role reserves for messages that are being received, and for answers that are not read. */
#ifndef PWI_HOST_RUN_INBOUND_H
#define PWI_HOST_RUN_INBOUND_H

#include <stdint.h>

#define PWI_RUN_INBOUND_MAX ((uint64_t)512 << 20)

/* An eighth of `memory` bytes (UINT64_MAX: no cap), but at least 16 MiB (or half of `memory`, if that is
 * less) and at most PWI_RUN_INBOUND_MAX. */
uint64_t pwi_run_inbound(uint64_t memory);

/* Bytes for answers that clients have not taken: as pwi_run_inbound, or a quarter of `memory` if that is
 * less. */
uint64_t pwi_run_answers(uint64_t memory);

#endif
