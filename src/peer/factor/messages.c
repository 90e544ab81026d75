/* Messages of factors as bytes. */
#include "peer/factor/messages.h"

#include "base/bytes.h"

static void write_epoch(struct pwi_writer *writer, struct factor_epoch epoch) {
  pwi_write_u64(writer, epoch.number);
  pwi_write_u32(writer, epoch.round);
  pwi_write_u64(writer, epoch.caller);
}

static struct factor_epoch read_epoch(struct pwi_reader *reader) {
  struct factor_epoch epoch;
  epoch.number = pwi_read_u64(reader);
  epoch.round = pwi_read_u32(reader);
  epoch.caller = pwi_read_u64(reader);
  return epoch;
}

static void write_line(struct pwi_writer *writer, const struct factor_line *line) {
  pwi_write_u64(writer, line->id);
  pwi_write_u64(writer, line->life);
  pwi_write_u64(writer, line->base);
  pwi_write_u64(writer, line->clock);
  pwi_write_u64(writer, line->final);
  pwi_write_u64(writer, line->received);
  pwi_write_u64(writer, line->applied);
  pwi_write_u32(writer, line->part);
}

void pwi_factor_message_encode(const struct factor_message *message, const struct factor_line *lines,
                               struct pwi_writer *writer) {
  write_epoch(writer, message->epoch);
  write_epoch(writer, message->own);
  pwi_write_u64(writer, message->life);
  pwi_write_u64(writer, message->number);
  pwi_write_u64(writer, message->size);
  pwi_write_u64(writer, message->offset);
  pwi_write_u64(writer, message->hash);
  pwi_write_u32(writer, message->flags);
  pwi_write_u32(writer, message->lines);
  for (uint32_t i = 0; i < message->lines; i++) write_line(writer, &lines[i]);
  if (message->bytes_size > 0) pwi_write_bytes(writer, message->bytes, message->bytes_size);
}

struct factor_line pwi_factor_line(const struct factor_message *message, uint32_t index) {
  const unsigned char *at = message->list + (size_t)index * FACTOR_LINE_SIZE;
  return (struct factor_line){.id = pwi_get_u64(at),
                              .life = pwi_get_u64(at + 8),
                              .base = pwi_get_u64(at + 16),
                              .clock = pwi_get_u64(at + 24),
                              .final = pwi_get_u64(at + 32),
                              .received = pwi_get_u64(at + 40),
                              .applied = pwi_get_u64(at + 48),
                              .part = pwi_get_u32(at + 56)};
}

#define NUMBER_MAX (UINT64_C(1) << 62) /* so that numbers can be added up */

static bool is_number(uint64_t number) { return number <= NUMBER_MAX; }

static bool is_line(const struct factor_line *line) {
  return line->life != 0 && is_number(line->base) && is_number(line->clock) && is_number(line->applied) &&
         (is_number(line->final) || line->final == FACTOR_NONE) &&
         (is_number(line->received) || line->received == FACTOR_NONE);
}

static bool do_ascend(const struct factor_message *message) {
  struct factor_line last = {0};
  for (uint32_t i = 0; i < message->lines; i++) {
    struct factor_line line = pwi_factor_line(message, i);
    if (!is_line(&line) || line.id < last.id || (line.id == last.id && line.life <= last.life)) return false;
    last = line;
  }
  return true;
}

pawl_status pwi_factor_message_decode(uint32_t kind, const void *bytes, size_t size,
                                      struct factor_message *message_out) {
  struct factor_message *message = message_out;
  struct pwi_reader reader;
  *message = (struct factor_message){0};
  pwi_reader_init(&reader, bytes, size);
  message->epoch = read_epoch(&reader);
  message->own = read_epoch(&reader);
  message->life = pwi_read_u64(&reader);
  message->number = pwi_read_u64(&reader);
  message->size = pwi_read_u64(&reader);
  message->offset = pwi_read_u64(&reader);
  message->hash = pwi_read_u64(&reader);
  message->flags = pwi_read_u32(&reader);
  message->lines = pwi_read_count(&reader, FACTOR_LINE_SIZE);
  message->list = pwi_read_bytes(&reader, (size_t)message->lines * FACTOR_LINE_SIZE);
  if (reader.status) return reader.status;
  if (!is_number(message->number) || !do_ascend(message)) return PAWL_CORRUPT;
  if (kind == FACTOR_PIECE || kind == FACTOR_VALUES || kind == FACTOR_HAVE || kind == FACTOR_MODEL) {
    message->bytes_size = (size_t)(reader.end - reader.at);
    message->bytes = pwi_read_bytes(&reader, message->bytes_size);
    if (message->size > (UINT64_C(1) << 48) || message->offset > (UINT64_C(1) << 48)) return PAWL_CORRUPT;
  }
  return pwi_reader_end(&reader);
}
