/* Messages of a reduce as bytes. */
#include "peer/reduce/messages.h"

#include "base/bytes.h"
#include "base/hash.h"

void pwi_reduce_message_encode(const struct reduce_message *message, unsigned char bytes[REDUCE_MESSAGE_SIZE]) {
  pwi_put_u64(bytes, message->epoch.number);
  pwi_put_u32(bytes + 8, message->epoch.round);
  pwi_put_u64(bytes + 12, message->epoch.caller);
  pwi_put_u64(bytes + 20, message->version);
  pwi_put_u64(bytes + 28, message->tag);
  pwi_put_u64(bytes + 36, message->size);
}

uint64_t pwi_reduce_epoch_mark(struct reduce_epoch epoch) {
  unsigned char bytes[20];
  pwi_put_u64(bytes, epoch.number);
  pwi_put_u32(bytes + 8, epoch.round);
  pwi_put_u64(bytes + 12, epoch.caller);
  return pwi_hash(bytes, sizeof bytes, 0);
}

static void read_head(struct pwi_reader *reader, struct reduce_message *message) {
  message->epoch.number = pwi_read_u64(reader);
  message->epoch.round = pwi_read_u32(reader);
  message->epoch.caller = pwi_read_u64(reader);
  message->version = pwi_read_u64(reader);
  if (message->version > REDUCE_VERSION_MAX) pwi_reader_fail(reader, PAWL_CORRUPT);
  message->tag = pwi_read_u64(reader);
  message->size = pwi_read_u64(reader);
}

pawl_status pwi_reduce_message_decode(const void *bytes, size_t size, struct reduce_message *message_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  read_head(&reader, message_out);
  return pwi_reader_end(&reader);
}

uint64_t pwi_reduce_go_id(const unsigned char *list, uint32_t index) { return pwi_get_u64(list + 8 * (size_t)index); }

static const unsigned char *read_list(struct pwi_reader *reader, uint32_t *count_out) {
  uint32_t count = pwi_read_count(reader, 8);
  const unsigned char *list = pwi_read_bytes(reader, 8 * (size_t)count);
  uint64_t last = 0;
  for (uint32_t i = 0; list && i < count; i++) {
    if (pwi_reduce_go_id(list, i) <= last) pwi_reader_fail(reader, PAWL_CORRUPT);
    last = pwi_reduce_go_id(list, i);
  }
  *count_out = reader->status ? 0 : count;
  return list;
}

pawl_status pwi_reduce_go_decode(const void *bytes, size_t size, struct reduce_go *go_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  read_head(&reader, &go_out->head);
  go_out->donor = pwi_read_u64(&reader);
  pwi_read_text(&reader, go_out->graph, sizeof go_out->graph);
  go_out->ins = read_list(&reader, &go_out->in_count);
  go_out->outs = read_list(&reader, &go_out->out_count);
  go_out->serves = read_list(&reader, &go_out->serve_count);
  return pwi_reader_end(&reader);
}

void pwi_reduce_header_encode(const struct reduce_header *header, unsigned char bytes[REDUCE_HEADER_SIZE]) {
  memset(bytes, 0, REDUCE_HEADER_SIZE);
  pwi_put_u64(bytes, header->version);
  pwi_put_u64(bytes + 8, header->size);
  pwi_put_u32(bytes + 16, header->kind);
}

void pwi_reduce_header_decode(const unsigned char bytes[REDUCE_HEADER_SIZE], struct reduce_header *header_out) {
  *header_out = (struct reduce_header){pwi_get_u64(bytes), pwi_get_u64(bytes + 8), pwi_get_u32(bytes + 16)};
}
