/* Section OPERAND and the values beside it: any bytes. What is accepted has the rows that a plain sum gives.
 *
 * covers: src/shard/expand.c
 *
 * The first bytes choose the vector and the head of the section; the rest is the body of the message: the operand, then
 * the values.
 */
#include "fuzz.h"

#include <stdio.h>

#include "server/reading.h"
#include "shard/shard.h"

enum { WIDTH = 3, SIZE = 40, HEAD = 8 };

static struct pwi_reading reading;
static struct pwi_shard *shard;
static struct pwi_membership membership;

static void open_shard(void) {
  struct pwi_shard_config config = {.memory_max = UINT64_MAX};
  pawl_status status = pwi_shard_create(&config, &shard);
  if (!status) status = pwi_shard_hold(shard, (struct pawl_range){0, PWI_RING_END});
  pwi_shard_set_membership(shard, &membership);
  for (uint64_t type = PAWL_F32; type <= PAWL_U64; type++) {
    struct pwi_entry entry = {.id = {type}, .kind = PWI_ENTRY_VECTOR};
    entry.is = (struct pawl_vector_options){.type = (enum pawl_type)type,
                                            .width = WIDTH,
                                            .size = SIZE,
                                            .function = PAWL_ADD,
                                            .placement = PAWL_PLACE_ORDERED,
                                            .layout = PAWL_LAYOUT_DENSE};
    snprintf(entry.name, sizeof entry.name, "fuzz/v%u", (unsigned)type);
    if (!status) status = pwi_shard_open(shard, &entry);
  }
  assert(status == PAWL_OK);
}

/* Integers wrap around, so that any order of additions gives the same. */
static void check_integers(const struct pwi_request *before, const uint64_t *values, const struct pwi_request *after) {
  const uint64_t *operand = before->operand, *rows = after->values->iov_base;
  size_t pairs = before->operand_count / WIDTH;
  for (size_t i = 0; i < before->terms.rows; i++)
    for (size_t j = 0; j < WIDTH; j++) {
      uint64_t sum = 0;
      for (size_t k = 0; k < pairs; k++) sum += values[i * pairs + k] * operand[k * WIDTH + j];
      assert(rows[i * WIDTH + j] == sum);
    }
}

static void try_push(struct pwi_request *request, const uint8_t *body, size_t size) {
  static uint64_t values[1 << 16];
  size_t split = size / 3;
  struct iovec parts[2] = {{(void *)(uintptr_t)body, split}, {(void *)(uintptr_t)(body + split), size - split}};
  request->values = parts;
  request->value_parts = 2;
  const struct pwi_request before = *request;
  if (pwi_shard_inspect(shard, request) != PAWL_OK) return;
  pawl_status expanded = pwi_shard_expand(shard, request);
  assert(expanded == PAWL_OK && !request->operand);
  if (!before.operand) return;
  size_t bytes = request->value_parts ? request->values->iov_len : 0;
  assert(bytes == request->terms.rows * WIDTH * pawl_type_size((enum pawl_type)request->value_type));
  if (request->terms.rows == 0 || before.value_type < PAWL_I64 || size > sizeof values) return;
  memcpy(values, body, size);
  check_integers(&before, values, request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!shard) open_shard();
  if (size < HEAD) return 0;
  uint8_t type = (uint8_t)(1 + data[0] % 5), operand_type = data[1] & 0x80 ? data[1] & 7 : type;
  size_t body = size - HEAD, length = (size_t)(data[3] | data[4] << 8);
  if (length > body) length = body;
  struct pwi_section section = {.type = PWI_SECTION_OPERAND,
                                .codec = data[2] & 0x80 ? data[2] & 0x7f : PWI_CODEC_RAW,
                                .value_type = operand_type,
                                .count = (uint32_t)(data[5] | data[6] << 8),
                                .length = length};
  bool is_raw = section.codec == PWI_CODEC_RAW && operand_type >= 1 && operand_type <= 5;
  if (is_raw) { /* the table of a message has been checked */
    section.count = (uint32_t)(length / pawl_type_size((enum pawl_type)operand_type));
    section.length = length = section.count * pawl_type_size((enum pawl_type)operand_type);
  }
  struct pwi_sections sections = {.items = {section}, .count = 1};
  struct pwi_inbox inbox = {.span_count = 1, .body_size = body};
  inbox.spans[0] = (struct iovec){(void *)(uintptr_t)(data + HEAD), body};
  struct pwi_request request = {.terms = {.kind = data[1] & 0x40 ? PWI_REQUEST_RESTORE : PWI_REQUEST_PUSH,
                                          .vector = {type},
                                          .number = 1,
                                          .rows = data[7] % (SIZE + 2),
                                          .claim = {0, SIZE},
                                          .range = {0, data[7] % SIZE + 1}},
                                .sender = {1},
                                .task = 1,
                                .value_type = type};
  request.terms.range.end = request.terms.rows > 0 && request.terms.rows <= SIZE ? request.terms.rows : 1;
  if (operand_type > 5 || (!is_raw && (section.codec == PWI_CODEC_RAW || section.codec > PWI_CODEC_FIXED))) return 0;
  if (pwi_reading_operand(&reading, &inbox, &sections, &request) != PAWL_OK) return 0;
  try_push(&request, data + HEAD + length, body - length);
  return 0;
}
