/* Messages of items as bytes. */
#include "peer/item/messages.h"

#include "base/bytes.h"

enum { FLAG_CONSERVATIVE = 1, FLAG_OPEN = 2, FLAG_LAST = 4, FLAG_CONSUMES = 8, FLAGS_ALL = 15 };

void pwi_item_meta_begin(struct pwi_writer *writer, const struct item_meta *meta) {
  const struct item_parameters *parameters = &meta->parameters;
  unsigned flags = (parameters->is_conservative ? FLAG_CONSERVATIVE : 0U) | (meta->is_open ? FLAG_OPEN : 0U) |
                   (meta->is_last ? FLAG_LAST : 0U) | (meta->is_consumed ? FLAG_CONSUMES : 0U);
  pwi_write_u8(writer, ITEM_FORMAT);
  pwi_write_u8(writer, parameters->variant);
  pwi_write_u8(writer, (uint8_t)flags);
  pwi_write_u64(writer, parameters->size);
  pwi_write_u64(writer, parameters->count);
  pwi_write_u32(writer, parameters->producers);
  pwi_write_u32(writer, parameters->work_per_clock);
  pwi_write_u64(writer, meta->incarnation);
  pwi_write_u32(writer, meta->runs);
}

void pwi_item_meta_run(struct pwi_writer *writer, const struct item_run *run) {
  pwi_write_u32(writer, run->start);
  pwi_write_u32(writer, run->count);
  pwi_write_u32(writer, run->stride);
}

pawl_status pwi_item_meta_decode(const void *bytes, size_t size, struct item_meta *meta_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  if (pwi_read_u8(&reader) != ITEM_FORMAT) return reader.status ? reader.status : PAWL_UNSUPPORTED;
  *meta_out = (struct item_meta){.parameters.variant = pwi_read_u8(&reader)};
  uint8_t flags = pwi_read_u8(&reader);
  if ((flags & ~FLAGS_ALL) != 0 || meta_out->parameters.variant > PAWL_ITEMS_PULL)
    pwi_reader_fail(&reader, PAWL_CORRUPT);
  meta_out->parameters.is_conservative = (flags & FLAG_CONSERVATIVE) != 0;
  meta_out->is_open = (flags & FLAG_OPEN) != 0;
  meta_out->is_last = (flags & FLAG_LAST) != 0;
  meta_out->is_consumed = (flags & FLAG_CONSUMES) != 0;
  meta_out->parameters.size = pwi_read_u64(&reader);
  meta_out->parameters.count = pwi_read_u64(&reader);
  meta_out->parameters.producers = pwi_read_u32(&reader);
  meta_out->parameters.work_per_clock = pwi_read_u32(&reader);
  meta_out->incarnation = pwi_read_u64(&reader);
  meta_out->runs = pwi_read_count(&reader, ITEM_RUN_SIZE);
  if (meta_out->runs > ITEM_META_RUNS || meta_out->parameters.count > PAWL_ITEMS_COUNT_MAX)
    pwi_reader_fail(&reader, PAWL_CORRUPT);
  meta_out->bytes = pwi_read_bytes(&reader, (size_t)meta_out->runs * ITEM_RUN_SIZE);
  return pwi_reader_end(&reader);
}

pawl_status pwi_item_meta_runs(const struct item_meta *meta, struct item_runs *runs) {
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < meta->runs && !status; i++) {
    const unsigned char *at = meta->bytes + (size_t)i * ITEM_RUN_SIZE;
    uint32_t stride = pwi_get_u32(at + 8);
    if (pwi_get_u32(at + 4) == 1 && stride != 1) return PAWL_CORRUPT;
    status = pwi_item_runs_append(runs, pwi_get_u32(at), pwi_get_u32(at + 4), stride, meta->parameters.count);
  }
  return status;
}

void pwi_item_ask_begin(struct pwi_writer *writer, uint64_t need, uint32_t pairs) {
  pwi_write_u64(writer, need);
  pwi_write_u32(writer, pairs);
}

void pwi_item_ask_pair(struct pwi_writer *writer, uint32_t first, uint32_t count) {
  pwi_write_u32(writer, first);
  pwi_write_u32(writer, count);
}

pawl_status pwi_item_ask_decode(const void *bytes, size_t size, struct item_ask *ask_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  ask_out->need = pwi_read_u64(&reader);
  ask_out->pairs = pwi_read_count(&reader, ITEM_PAIR_SIZE);
  if (ask_out->need == 0 || ask_out->pairs > ITEM_ASK_PAIRS) pwi_reader_fail(&reader, PAWL_CORRUPT);
  ask_out->bytes = pwi_read_bytes(&reader, (size_t)ask_out->pairs * ITEM_PAIR_SIZE);
  return pwi_reader_end(&reader);
}

void pwi_item_ask_at(const struct item_ask *ask, uint32_t index, uint32_t *first_out, uint32_t *count_out) {
  const unsigned char *at = ask->bytes + (size_t)index * ITEM_PAIR_SIZE;
  *first_out = pwi_get_u32(at);
  *count_out = pwi_get_u32(at + 4);
}

void pwi_item_number_encode(uint32_t number, unsigned char bytes[ITEM_NUMBER_SIZE]) { pwi_put_u32(bytes, number); }

pawl_status pwi_item_number_decode(const void *bytes, size_t size, uint32_t *number_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  *number_out = pwi_read_u32(&reader);
  return pwi_reader_end(&reader);
}
