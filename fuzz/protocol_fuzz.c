/* The records of protocol/protocol.h: any bytes; accepted bytes are in canonical form.
 *
 * covers: src/protocol/protocol.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "base/memory.h"
#include "ring/plan.h"
#include "protocol/protocol.h"

static struct pwi_writer writer;

static void check_same(const void *bytes, size_t size) {
  assert(writer.status == PAWL_OK && writer.size == size);
  assert(size == 0 || memcmp(writer.data, bytes, size) == 0);
}

static pawl_status try_terms(const uint8_t *data, size_t size) {
  struct pwi_terms terms;
  uint8_t again[PWI_TERMS_SIZE];
  pawl_status status = pwi_terms_decode(data, size, &terms);
  if (status != PAWL_OK) return status;
  assert(terms.number != 0 && terms.vector.id != 0);
  assert(!pawl_range_is_empty(terms.range) && pawl_range_contains(terms.claim, terms.range));
  pwi_terms_encode(&terms, again);
  assert(size == sizeof again && memcmp(again, data, size) == 0);
  return PAWL_OK;
}

static pawl_status try_operation(const uint8_t *data, size_t size) {
  struct pwi_operation operation;
  uint8_t again[PWI_OPERATION_SIZE];
  pawl_status status = pwi_operation_decode(data, size, &operation);
  if (status != PAWL_OK) return status;
  assert(pwi_linear_has_other(operation.kind) == (operation.other.id != 0));
  pwi_operation_encode(&operation, again);
  assert(size == sizeof again && memcmp(again, data, size) == 0);
  return PAWL_OK;
}

static pawl_status try_read_first(const uint8_t *data, size_t size) {
  struct pwi_read_first first;
  uint8_t again[PWI_READ_FIRST_SIZE];
  pawl_status status = pwi_read_first_decode(data, size, &first);
  if (status != PAWL_OK) return status;
  assert(first.vector.id != 0 && first.task != 0 && !pawl_range_is_empty(first.range));
  pwi_read_first_encode(&first, again);
  assert(size == sizeof again && memcmp(again, data, size) == 0);
  return PAWL_OK;
}

static pawl_status try_outcome(const uint8_t *data, size_t size) {
  struct pwi_outcome outcome;
  uint8_t again[PWI_OUTCOME_SIZE];
  pawl_status status = pwi_outcome_decode(data, size, &outcome);
  if (status != PAWL_OK) return status;
  assert(strcmp(pwi_code_text(outcome.code), "unknown") != 0);
  pwi_outcome_encode(&outcome, again);
  assert(size == sizeof again && memcmp(again, data, size) == 0);
  return PAWL_OK;
}

static pawl_status try_join(const uint8_t *data, size_t size) {
  struct pwi_join join;
  pawl_status status = pwi_join_decode(data, size, &join);
  if (status != PAWL_OK) return status;
  pwi_join_encode(&join, &writer);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_joined(const uint8_t *data, size_t size) {
  struct pwi_joined joined;
  pawl_status status = pwi_joined_decode(data, size, &joined);
  if (status != PAWL_OK) return status;
  pwi_joined_encode(&joined, &writer);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_move(const uint8_t *data, size_t size) {
  struct pwi_move move;
  size_t used = 0;
  pawl_status status = pwi_move_decode(data, size, &move, &used);
  if (status != PAWL_OK) return status;
  assert(used <= size);
  pwi_move_encode(&move, &writer);
  check_same(data, used);
  return PAWL_OK;
}

static pawl_status try_report(const uint8_t *data, size_t size) {
  struct pwi_report report;
  struct pwi_load *loads = NULL;
  size_t count = 0;
  pawl_status status = pwi_report_decode(data, size, &report, &loads, &count);
  if (status != PAWL_OK) {
    assert(!loads && count == 0);
    return status;
  }
  for (size_t i = 1; i < count; i++) assert(loads[i - 1].positions.end <= loads[i].positions.begin);
  pwi_report_encode(&report, loads, count, &writer);
  pwi_free(loads);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_chain_message(const uint8_t *data, size_t size) {
  struct pwi_chain_message message;
  uint8_t again[PWI_CHAIN_MESSAGE_SIZE];
  pawl_status status = pwi_chain_message_decode(data, size, &message);
  if (status != PAWL_OK) return status;
  assert(!pawl_range_is_empty(message.positions) && message.since != 0);
  pwi_chain_message_encode(&message, again);
  assert(size == sizeof again && memcmp(again, data, size) == 0);
  return PAWL_OK;
}

static pawl_status try_complaint(const uint8_t *data, size_t size) {
  struct pwi_complaint complaint;
  pawl_status status = pwi_complaint_decode(data, size, &complaint);
  if (status != PAWL_OK) return status;
  pwi_complaint_encode(&complaint, &writer);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_probe(const uint8_t *data, size_t size) {
  struct pwi_probe probe;
  pawl_status status = pwi_probe_decode(data, size, &probe);
  if (status != PAWL_OK) return status;
  pwi_probe_encode(&probe, &writer);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_settle(const uint8_t *data, size_t size) {
  struct pwi_settle senders[PWI_SETTLE_MAX];
  uint64_t number;
  size_t count;
  pawl_status status = pwi_settle_decode(data, size, &number, senders, &count);
  if (status != PAWL_OK) return status;
  pwi_settle_encode(number, senders, count, &writer);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_settled(const uint8_t *data, size_t size) {
  uint64_t number, senders[PWI_SETTLE_MAX];
  size_t count;
  pawl_status status = pwi_settled_decode(data, size, &number, senders, &count);
  if (status != PAWL_OK) return status;
  pwi_settled_encode(number, senders, count, &writer);
  check_same(data, size);
  return PAWL_OK;
}

static pawl_status try_spaces(const uint8_t *data, size_t size) {
  struct pwi_space_bytes spaces[PWI_SPACES_MAX];
  size_t count;
  pawl_status status = pwi_spaces_decode(data, size, spaces, &count);
  if (status != PAWL_OK) return status;
  pwi_spaces_encode(spaces, count, &writer);
  check_same(data, size);
  return PAWL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static pawl_status (*const tries[])(const uint8_t *, size_t) = {
      try_terms,     try_outcome,   try_join,  try_joined, try_move,    try_report, try_chain_message,
      try_complaint, try_operation, try_probe, try_settle, try_settled, try_spaces, try_read_first};
  struct input input = {data, size};
  size_t which = draw_u8(&input) % (sizeof tries / sizeof *tries);
  pwi_writer_reset(&writer);
  pawl_status status = tries[which](input.at, input.left);
  assert(status == PAWL_OK || status == PAWL_CORRUPT);
  return 0;
}
