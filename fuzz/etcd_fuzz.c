/* Answers of etcd: any bytes, with any code. The first byte selects the request, the second the code.
 *
 * covers: src/host/etcd/etcd_read.c
 */
#include "fuzz.h"

#include "host/etcd/etcd_text.h"

static void check_pairs(const struct pwi_meta_answer *answer, size_t size) {
  for (size_t i = 0; i < answer->pair_count; i++) {
    const struct pwi_meta_pair *pair = &answer->pairs[i];
    size_t length = strlen(pair->key);
    assert(length > 0 && length < PWI_META_KEY_MAX && pair->size < size && pair->created != 0);
    volatile unsigned char sum = 0;
    for (size_t j = 0; j < pair->size; j++) sum = (unsigned char)(sum + ((const unsigned char *)pair->value)[j]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const long codes[] = {200, 404, 503};
  struct pwi_etcd_reply reply;
  if (size < 2) return 0;
  enum pwi_etcd_ask ask = (enum pwi_etcd_ask)(data[0] % 4);
  pwi_etcd_read(ask, codes[data[1] % 3], (const char *)data + 2, size - 2, &reply);
  assert(memchr(reply.message, '\0', sizeof reply.message));
  if (reply.status) assert(reply.answer.pair_count == 0 && !reply.pairs && !reply.memory);
  if (!reply.status && ask == PWI_ETCD_TXN) assert(reply.answer.revision != 0);
  if (!reply.status && ask == PWI_ETCD_GRANT) assert(reply.answer.lease != 0 && reply.answer.ttl_ns > 0);
  check_pairs(&reply.answer, size);
  pwi_etcd_reply_fini(&reply);
  return 0;
}
