#include "net/seal.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

static _Thread_local const struct pwi_seal_scheme *replacement;

void pwi_seal_replace(const struct pwi_seal_scheme *scheme) { replacement = scheme; }

pawl_status pwi_seal_draw(uint8_t secret_out[PWI_SEAL_SECRET]) {
  return RAND_priv_bytes(secret_out, PWI_SEAL_SECRET) == 1 ? PAWL_OK : PAWL_IO;
}

pawl_status pwi_seal_public(const uint8_t secret[PWI_SEAL_SECRET], uint8_t public_out[PWI_SEAL_PUBLIC]) {
  if (replacement) {
    replacement->derive(secret, public_out);
    return PAWL_OK;
  }
  size_t size = PWI_SEAL_PUBLIC;
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, PWI_SEAL_SECRET);
  bool is_made = key && EVP_PKEY_get_raw_public_key(key, public_out, &size) == 1 && size == PWI_SEAL_PUBLIC;
  EVP_PKEY_free(key);
  return is_made ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status pwi_seal_make(const uint8_t secret[PWI_SEAL_SECRET], const void *data, size_t size,
                          uint8_t seal_out[PWI_SEAL_SIZE]) {
  if (replacement) {
    replacement->make(secret, data, size, seal_out);
    return PAWL_OK;
  }
  size_t length = PWI_SEAL_SIZE;
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, PWI_SEAL_SECRET);
  EVP_MD_CTX *context = key ? EVP_MD_CTX_new() : NULL;
  bool is_made = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                 EVP_DigestSign(context, seal_out, &length, data, size) == 1 && length == PWI_SEAL_SIZE;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  return is_made ? PAWL_OK : PAWL_NO_MEMORY;
}

/* A public half of zeros means that none was given; such seals can be forged. */
static bool is_zero(const uint8_t public_half[PWI_SEAL_PUBLIC]) {
  uint8_t bits = 0;
  for (size_t i = 0; i < PWI_SEAL_PUBLIC; i++) bits |= public_half[i];
  return bits == 0;
}

bool pwi_seal_check(const uint8_t public_half[PWI_SEAL_PUBLIC], const void *data, size_t size,
                    const uint8_t seal[PWI_SEAL_SIZE]) {
  if (is_zero(public_half)) return false;
  if (replacement) return replacement->check(public_half, data, size, seal);
  EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_half, PWI_SEAL_PUBLIC);
  EVP_MD_CTX *context = key ? EVP_MD_CTX_new() : NULL;
  bool is_true = context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
                 EVP_DigestVerify(context, seal, PWI_SEAL_SIZE, data, size) == 1;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  return is_true;
}
