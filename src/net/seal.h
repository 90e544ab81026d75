/* Seals: signatures by which a process proves that it is the same process as before (Ed25519, RFC 8032).
 *
 * The secret is 32 random bytes. Others know the public half, by which they can verify a seal but not create
 * one. The same secret and the same bytes give the same seal. Threads: any. */
#ifndef PWI_NET_SEAL_H
#define PWI_NET_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_SEAL_SECRET 32
#define PWI_SEAL_PUBLIC 32
#define PWI_SEAL_SIZE 64

/* Creates a secret from the random source of the system. PAWL_IO if there is none. */
PAWL_MUST_USE pawl_status pwi_seal_draw(uint8_t secret_out[PWI_SEAL_SECRET]);

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_seal_public(const uint8_t secret[PWI_SEAL_SECRET], uint8_t public_out[PWI_SEAL_PUBLIC]);
PAWL_MUST_USE pawl_status pwi_seal_make(const uint8_t secret[PWI_SEAL_SECRET], const void *data, size_t size,
                                        uint8_t seal_out[PWI_SEAL_SIZE]);

/* Also returns false for an invalid public half, and if there is no memory. */
bool pwi_seal_check(const uint8_t public_half[PWI_SEAL_PUBLIC], const void *data, size_t size,
                    const uint8_t seal[PWI_SEAL_SIZE]);

/* Another algorithm in place of Ed25519. The simulator has one that takes no time; libpawl has none. */
struct pwi_seal_scheme {
  void (*derive)(const uint8_t secret[PWI_SEAL_SECRET], uint8_t public_out[PWI_SEAL_PUBLIC]);
  void (*make)(const uint8_t secret[PWI_SEAL_SECRET], const void *data, size_t size, uint8_t seal_out[PWI_SEAL_SIZE]);
  bool (*check)(const uint8_t public_half[PWI_SEAL_PUBLIC], const void *data, size_t size,
                const uint8_t seal[PWI_SEAL_SIZE]);
};

/* Uses the scheme in the calling thread, and in no other, from now on. It is borrowed. NULL: Ed25519. */
void pwi_seal_replace(const struct pwi_seal_scheme *scheme);

#endif
