/* Content that can be checked at any offset: byte `i` is a function of a seed and `i`. */
#ifndef PWI_CONFORMANCE_PATTERN_H
#define PWI_CONFORMANCE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Write the bytes [offset, offset + size) of the pattern. */
void pattern_fill(uint64_t seed, uint64_t offset, void *to, size_t size);

/* How many bytes, from the first, are those of the pattern: `size` if all are. Reads each byte once. */
size_t pattern_check(uint64_t seed, uint64_t offset, const void *data, size_t size);

#endif
