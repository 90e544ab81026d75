/* The contributors of an aggregate: any bytes; accepted bytes are in canonical form.
 *
 * covers: src/protocol/contributors.c
 */
#include "fuzz.h"

#include "base/memory.h"
#include "protocol/contributors.h"

static struct pwi_writer writer;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pwi_contributor *all;
  size_t count;
  uint32_t hops;
  if (pwi_contributors_decode(data, size, &all, &count, &hops) != PAWL_OK) return 0;
  assert(count >= 1 && count <= PWI_CONTRIBUTORS_MAX);
  for (size_t i = 1; i < count; i++) assert(all[i - 1].sender.id < all[i].sender.id);
  pwi_writer_reset(&writer);
  pwi_contributors_encode(all, count, hops, &writer);
  assert(writer.status == PAWL_OK && writer.size == size && memcmp(writer.data, data, size) == 0);
  pwi_free(all);
  return 0;
}
