/* Messages and headers of a collective as bytes. */
#include "peer/collective/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* --- calls ---------------------------------------------------------------------------------------------- */

bool pwi_collective_is_same(const struct collective_call *a, const struct collective_call *b) {
  return a->kind == b->kind && a->type == b->type && a->operator_ == b->operator_ && a->root == b->root &&
         a->count == b->count;
}

void pwi_collective_describe_call(const struct collective_call *call, char text[COLLECTIVE_CALL_TEXT]) {
  static const char *const kinds[] = {"", "barrier", "broadcast", "all-gather", "all-reduce", "reduce-scatter"};
  static const char *const operators[] = {"sum", "min", "max"};
  const char *type = call->type == PAWL_F32 ? "float" : "double";
  if (call->kind == COLLECTIVE_BARRIER)
    snprintf(text, COLLECTIVE_CALL_TEXT, "barrier");
  else if (call->kind == COLLECTIVE_BROADCAST)
    snprintf(text, COLLECTIVE_CALL_TEXT, "broadcast of %" PRIu64 " %s from rank %" PRIu32, call->count, type,
             call->root);
  else if (call->kind == COLLECTIVE_ALL_GATHER)
    snprintf(text, COLLECTIVE_CALL_TEXT, "all-gather of %" PRIu64 " %s", call->count, type);
  else
    snprintf(text, COLLECTIVE_CALL_TEXT, "%s of %" PRIu64 " %s, %s", kinds[call->kind], call->count, type,
             operators[call->operator_]);
}

/* --- pieces --------------------------------------------------------------------------------------------- */

void pwi_collective_head_encode(const struct collective_head *head, unsigned char bytes[COLLECTIVE_HEAD_SIZE]) {
  pwi_put_u64(bytes, head->position);
  pwi_put_u64(bytes + 8, head->epoch.number);
  pwi_put_u64(bytes + 16, head->sequence);
  pwi_put_u64(bytes + 24, head->call.count);
  pwi_put_u64(bytes + 32, head->offset);
  pwi_put_u32(bytes + 40, head->epoch.round);
  pwi_put_u32(bytes + 44, head->call.root);
  pwi_put_u32(bytes + 48, head->transfer);
  pwi_put_u32(bytes + 52, head->size);
  bytes[56] = (unsigned char)head->call.kind;
  bytes[57] = (unsigned char)head->call.type;
  bytes[58] = (unsigned char)head->call.operator_;
  memset(bytes + 59, 0, COLLECTIVE_HEAD_SIZE - 59);
}

static bool is_call(const struct collective_call *call) {
  if (call->kind < COLLECTIVE_BARRIER || call->kind > COLLECTIVE_REDUCE_SCATTER) return false;
  if (call->type != PAWL_F32 && call->type != PAWL_F64) return false;
  return (unsigned)call->operator_ <= PAWL_COLLECTIVE_MAX;
}

pawl_status pwi_collective_head_decode(const unsigned char bytes[COLLECTIVE_HEAD_SIZE],
                                       struct collective_head *head_out) {
  *head_out = (struct collective_head){.position = pwi_get_u64(bytes),
                                       .epoch = {pwi_get_u64(bytes + 8), pwi_get_u32(bytes + 40)},
                                       .sequence = pwi_get_u64(bytes + 16),
                                       .call = {.kind = (enum collective_kind)bytes[56],
                                                .type = (enum pawl_type)bytes[57],
                                                .operator_ = (enum pawl_collective_operator)bytes[58],
                                                .root = pwi_get_u32(bytes + 44),
                                                .count = pwi_get_u64(bytes + 24)},
                                       .transfer = pwi_get_u32(bytes + 48),
                                       .offset = pwi_get_u64(bytes + 32),
                                       .size = pwi_get_u32(bytes + 52)};
  for (size_t i = 59; i < COLLECTIVE_HEAD_SIZE; i++)
    if (bytes[i] != 0) return PAWL_CORRUPT;
  return is_call(&head_out->call) && head_out->size <= COLLECTIVE_PIECE ? PAWL_OK : PAWL_CORRUPT;
}

/* --- messages ------------------------------------------------------------------------------------------- */

void pwi_collective_message_encode(const struct collective_message *message,
                                   unsigned char bytes[COLLECTIVE_MESSAGE_SIZE]) {
  pwi_put_u64(bytes, message->epoch.number);
  pwi_put_u32(bytes + 8, message->epoch.round);
  pwi_put_u64(bytes + 12, message->position);
  pwi_put_u32(bytes + 20, (uint32_t)-message->status);
  pwi_put_u64(bytes + 24, message->culprit);
  pwi_put_u64(bytes + 32, message->other);
}

static bool may_abort(pawl_status status) {
  return status == PAWL_MISMATCH || status == PAWL_NODE_GONE || status == PAWL_CANCELLED || status == PAWL_CORRUPT ||
         status == PAWL_NO_MEMORY;
}

pawl_status pwi_collective_message_decode(uint32_t kind, const void *bytes, size_t size,
                                          struct collective_message *message_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  message_out->epoch.number = pwi_read_u64(&reader);
  message_out->epoch.round = pwi_read_u32(&reader);
  message_out->position = pwi_read_u64(&reader);
  uint32_t status = pwi_read_u32(&reader);
  message_out->status = status <= 1000 ? (pawl_status) - (int)status : PAWL_CORRUPT;
  if (status > 1000 || (kind == COLLECTIVE_ABORT && !may_abort(message_out->status)))
    pwi_reader_fail(&reader, PAWL_CORRUPT);
  message_out->culprit = pwi_read_u64(&reader);
  message_out->other = pwi_read_u64(&reader);
  return pwi_reader_end(&reader);
}

uint64_t pwi_collective_go_id(const struct collective_go *go, uint32_t index) {
  return pwi_get_u64(go->ids + 8 * (size_t)index);
}

uint64_t pwi_collective_go_life(const struct collective_go *go, uint32_t index) {
  return pwi_get_u64(go->lives + 8 * (size_t)index);
}

void pwi_collective_go_encode(struct collective_epoch epoch, const uint64_t *members, uint32_t count,
                              struct pwi_writer *writer) {
  pwi_writer_reset(writer);
  pwi_write_u64(writer, epoch.number);
  pwi_write_u32(writer, epoch.round);
  pwi_write_u32(writer, count);
  for (size_t i = 0; i < 2 * (size_t)count; i++) pwi_write_u64(writer, members[i]);
}

pawl_status pwi_collective_go_decode(const void *bytes, size_t size, struct collective_go *go_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  go_out->epoch.number = pwi_read_u64(&reader);
  go_out->epoch.round = pwi_read_u32(&reader);
  go_out->count = pwi_read_count(&reader, 16);
  go_out->ids = pwi_read_bytes(&reader, 8 * (size_t)go_out->count);
  go_out->lives = pwi_read_bytes(&reader, 8 * (size_t)go_out->count);
  if (go_out->count == 0) pwi_reader_fail(&reader, PAWL_CORRUPT);
  for (uint32_t i = 0; !reader.status && i < go_out->count; i++)
    if (pwi_collective_go_id(go_out, i) <= (i ? pwi_collective_go_id(go_out, i - 1) : 0) ||
        pwi_collective_go_life(go_out, i) == 0)
      pwi_reader_fail(&reader, PAWL_CORRUPT);
  return pwi_reader_end(&reader);
}
