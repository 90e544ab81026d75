/* Encoding and decoding of contributors. */
#include "protocol/contributors.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

void pwi_contributors_encode(const struct pwi_contributor *contributors, size_t count, uint32_t hops,
                             struct pwi_writer *writer) {
  assert(count >= 1 && count <= PWI_CONTRIBUTORS_MAX);
  pwi_write_u32(writer, hops);
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    const struct pwi_contributor *it = &contributors[i];
    pwi_write_u64(writer, it->sender.id);
    pwi_write_u64(writer, it->task);
    pwi_write_u64(writer, it->prior);
    pwi_write_u64(writer, it->settled);
    pwi_write_u64(writer, it->relay);
    pwi_write_bytes(writer, it->seal, sizeof it->seal);
  }
}

/* Returns false for a contributor that cannot follow one with the id `before`. */
static bool read_one(struct pwi_reader *reader, uint64_t before, struct pwi_contributor *it) {
  it->sender.id = pwi_read_u64(reader);
  it->task = pwi_read_u64(reader);
  it->prior = pwi_read_u64(reader);
  it->settled = pwi_read_u64(reader);
  it->relay = pwi_read_u64(reader);
  const void *seal = pwi_read_bytes(reader, sizeof it->seal);
  if (!seal) return false;
  memcpy(it->seal, seal, sizeof it->seal);
  return it->sender.id > before && it->task != 0 && it->prior < it->task && it->relay != 0;
}

pawl_status pwi_contributors_decode(const void *bytes, size_t size, struct pwi_contributor **contributors_out,
                                    size_t *count_out, uint32_t *hops_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  uint32_t hops = pwi_read_u32(&reader), count = pwi_read_count(&reader, PWI_CONTRIBUTOR_SIZE);
  if (reader.status || count == 0 || count > PWI_CONTRIBUTORS_MAX) return PAWL_CORRUPT;
  struct pwi_contributor *all = pwi_alloc_zero(count, sizeof *all);
  if (!all) return PAWL_NO_MEMORY;
  bool is_sound = true;
  for (uint32_t i = 0; i < count && is_sound; i++) is_sound = read_one(&reader, i ? all[i - 1].sender.id : 0, &all[i]);
  if (!is_sound || pwi_reader_end(&reader)) {
    pwi_free(all);
    return PAWL_CORRUPT;
  }
  *contributors_out = all;
  *count_out = count;
  *hops_out = hops;
  return PAWL_OK;
}
