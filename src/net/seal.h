/* Seals: signatures by which a process shows that it is the one that it was (Ed25519, RFC 8032).
 *
 * The secret is 32 random bytes. Others know the public half, and can check a seal by it; they can make none. The same secret and
 * the same bytes give the same seal. Threads: any. */
#ifndef PWI_NET_SEAL_H
#define PWI_NET_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_SEAL_SECRET 32
#define PWI_SEAL_PUBLIC 32
#define PWI_SEAL_SIZE 64

/* From the system's random source. PAWL_IO if it has none. */
PAWL_MUST_USE pawl_status pwi_seal_draw(uint8_t secret_out[PWI_SEAL_SECRET]);

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_seal_public(const uint8_t secret[PWI_SEAL_SECRET], uint8_t public_out[PWI_SEAL_PUBLIC]);
PAWL_MUST_USE pawl_status pwi_seal_make(const uint8_t secret[PWI_SEAL_SECRET], const void *data, size_t size,
                                        uint8_t seal_out[PWI_SEAL_SIZE]);

/* False also for bytes that are no public half, and without memory. */
bool pwi_seal_check(const uint8_t public_half[PWI_SEAL_PUBLIC], const void *data, size_t size,
                    const uint8_t seal[PWI_SEAL_SIZE]);

#endif
