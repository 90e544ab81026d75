/* Seals in a simulation. Ed25519 took more than half of the time of a campaign, and a simulation cannot show anything
 * about it. The public half is a hash of the secret, and a seal is a hash of the public half and the data. Whoever knows
 * the public half could forge such a seal. But a role that uses the wrong secret, or seals the wrong data, fails here as
 * with Ed25519. */
#include <string.h>

#include "base/hash.h"
#include "net/seal.h"
#include "sim/world.h"

static _Thread_local size_t simulations; /* of this thread that have seals of this kind */

static void derive(const uint8_t secret[PWI_SEAL_SECRET], uint8_t public_out[PWI_SEAL_PUBLIC]) {
  uint64_t words[PWI_SEAL_PUBLIC / 8];
  for (size_t i = 0; i < PWI_SEAL_PUBLIC / 8; i++) words[i] = pwi_hash(secret, PWI_SEAL_SECRET, i + 1);
  memcpy(public_out, words, sizeof words);
}

static void seal(const uint8_t public_half[PWI_SEAL_PUBLIC], const void *data, size_t size,
                 uint8_t seal_out[PWI_SEAL_SIZE]) {
  uint64_t word = pwi_hash(public_half, PWI_SEAL_PUBLIC, pwi_hash(data, size, 0)), words[PWI_SEAL_SIZE / 8];
  for (size_t i = 0; i < PWI_SEAL_SIZE / 8; i++) words[i] = pwi_mix64(word + i);
  memcpy(seal_out, words, sizeof words);
}

static void make(const uint8_t secret[PWI_SEAL_SECRET], const void *data, size_t size,
                 uint8_t seal_out[PWI_SEAL_SIZE]) {
  uint8_t public_half[PWI_SEAL_PUBLIC];
  derive(secret, public_half);
  seal(public_half, data, size, seal_out);
}

static bool check(const uint8_t public_half[PWI_SEAL_PUBLIC], const void *data, size_t size,
                  const uint8_t shown[PWI_SEAL_SIZE]) {
  uint8_t expected[PWI_SEAL_SIZE];
  seal(public_half, data, size, expected);
  return memcmp(expected, shown, sizeof expected) == 0;
}

static const struct pwi_seal_scheme scheme = {derive, make, check};

void pwi_sim_seals_begin(const struct pwi_sim *sim) {
  if (!sim->config.real_seals && simulations++ == 0) pwi_seal_replace(&scheme);
}

void pwi_sim_seals_end(const struct pwi_sim *sim) {
  if (!sim->config.real_seals && --simulations == 0) pwi_seal_replace(NULL);
}
