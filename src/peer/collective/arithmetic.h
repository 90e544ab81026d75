/* Loops over the values of collectives. Values need not be aligned. Threads: pure. */
#ifndef PWI_PEER_COLLECTIVE_ARITHMETIC_H
#define PWI_PEER_COLLECTIVE_ARITHMETIC_H

#include <stddef.h>

#include <pawl/collective.h>

/* The bits of every NaN that is a result. */
#define COLLECTIVE_NAN_32 UINT32_C(0x7fc00000)
#define COLLECTIVE_NAN_64 UINT64_C(0x7ff8000000000000)

/* into = first (operator) second, one by one. `into` may be `first` or `second`; otherwise nothing overlaps. The
 * minimum and the maximum of a NaN and anything is NaN; of equal values, such as 0 and -0, they are the first. */
void pwi_collective_combine(enum pawl_collective_operator operator_, enum pawl_type type, void *into, const void *first,
                            const void *second, size_t count);

#endif
