/* The versions of the libraries and of the compiler, and the features of the processor. */
#include "cli/parts.h"

#include <stdio.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <jansson.h>
#include <lz4.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <xxhash.h>
#include <zstd.h>
#if PAWL_HAS_UCX
#include <ucp/api/ucp.h>
#endif

#include "host/etcd/curl.h"

static const char *ucx_version(void) {
#if PAWL_HAS_UCX
  return ucp_get_version_string();
#else
  return "";
#endif
}

static const char *version_of_curl(void) {
  return pwi_curl_load() ? "" : pwi_curl.version_info(CURLVERSION_NOW)->version;
}

void pwi_parts(struct pwi_build_part parts_out[PWI_PARTS]) {
  unsigned hash = XXH_versionNumber();
  char xxhash[32];
  snprintf(xxhash, sizeof xxhash, "%u.%u.%u", hash / 10000, hash / 100 % 100, hash % 100);
  const char *const facts[PWI_PARTS][2] = {
      {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"ucx", ucx_version()},
      {"xxhash", xxhash},
      {"lz4", LZ4_versionString()},
      {"zstd", ZSTD_versionString()},
      {"jansson", jansson_version_str()},
      {"microhttpd", MHD_get_version()},
      {"curl", version_of_curl()},
  };
  for (size_t i = 0; i < PWI_PARTS; i++) {
    parts_out[i].name = facts[i][0];
    snprintf(parts_out[i].version, sizeof parts_out[i].version, "%s", facts[i][1]);
  }
}

const char *pwi_parts_compiler(void) {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

const char *pwi_parts_architecture(void) {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "other";
#endif
}

bool pwi_parts_has_aes(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes");
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

/* The kernels of wire/ choose between them at run time. */
static bool has_avx2(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

static bool has_neon(void) {
#if defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

static bool is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

void pwi_parts_features(struct pwi_feature features_out[PWI_FEATURES]) {
  features_out[0] = (struct pwi_feature){"ucx", PAWL_HAS_UCX != 0};
  features_out[1] = (struct pwi_feature){"aes", pwi_parts_has_aes()};
  features_out[2] = (struct pwi_feature){"avx2", has_avx2()};
  features_out[3] = (struct pwi_feature){"neon", has_neon()};
  features_out[4] = (struct pwi_feature){"sanitizers", is_sanitized()};
}
