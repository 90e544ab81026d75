/* Chunks of moving positions: any bytes, given to a shard that has the other half of the ring.
 *
 * The input is a sequence of chunks, each preceded by its length. Whatever they contain, the shard's own
 * half stays unchanged. If all of them are accepted, the positions are adopted and moved on to a third
 * shard, which then has the same.
 *
 * covers: src/shard/move.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "shard/shard.h"

#define HALF (PWI_RING_END / 2 + 1)
#define DENSE 64   /* keys */
#define SPARSE 500 /* keys, of width 2 */

static const struct pawl_range lower = {0, HALF}, upper = {HALF, PWI_RING_END};
static struct pwi_shard *first, *second;
static struct pwi_membership membership;
static int32_t dense_rows[DENSE], dense_again[DENSE];
static uint64_t sparse_rows[2 * SPARSE], sparse_again[2 * SPARSE];

static void open_vector(struct pwi_shard *shard, uint64_t id, bool group) {
  struct pwi_entry entry = {.id = {id}, .kind = group ? PWI_ENTRY_GROUP : PWI_ENTRY_VECTOR, .name = "f/.g"};
  entry.is = (struct pawl_vector_options){.type = PAWL_U64,
                                          .width = 1,
                                          .size = PAWL_KEY_END,
                                          .function = PAWL_ADD,
                                          .placement = PAWL_PLACE_ORDERED,
                                          .layout = PAWL_LAYOUT_SPARSE};
  if (id == 1) entry.is.type = PAWL_I32, entry.is.size = DENSE, entry.is.layout = PAWL_LAYOUT_DENSE;
  if (id == 2) entry.is.width = 2, entry.is.size = SPARSE;
  pawl_status status = pwi_shard_open(shard, &entry);
  assert(status == PAWL_OK);
}

static enum pwi_code ask(struct pwi_shard *shard, enum pwi_request_kind kind, uint64_t vector, struct pawl_range keys,
                         void *rows, size_t size) {
  struct iovec values = {rows, size};
  struct pwi_served served;
  struct pwi_request request = {
      .terms = {.kind = kind, .vector = {vector}, .number = 1, .rows = pawl_range_size(keys), .claim = keys},
      .sender = {1},
      .task = 1,
      .values = &values,
      .value_parts = 1,
      .value_type = vector == 1 ? PAWL_I32 : PAWL_U64,
  };
  request.terms.range = keys;
  pwi_shard_serve(shard, &request, rows, &served);
  return served.outcome.code;
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  struct pwi_shard_config config = {.memory_max = 1 << 20};
  struct pwi_membership_sender sender = {.sender = {1}, .job = "fuzz"};
  pawl_status status = pwi_shard_create(&config, &first);
  if (status == PAWL_OK) status = pwi_shard_create(&config, &second);
  if (status == PAWL_OK) status = pwi_membership_add(&membership, &sender);
  if (status == PAWL_OK) status = pwi_shard_hold(first, upper);
  assert(status == PAWL_OK);
  for (uint64_t id = 1; id <= 3; id++) {
    open_vector(first, id, id == 3);
    open_vector(second, id, id == 3);
  }
  pwi_shard_set_membership(first, &membership);
  pwi_shard_set_membership(second, &membership);
  for (size_t i = 0; i < DENSE; i++) dense_rows[i] = 7;
  for (size_t i = 0; i < 2 * SPARSE; i++) sparse_rows[i] = 7;
  enum pwi_code code = ask(first, PWI_REQUEST_PUSH, 1, pawl_range_of(DENSE / 2, DENSE), dense_rows, DENSE / 2 * 4);
  assert(code == PWI_CODE_OK);
  code = ask(first, PWI_REQUEST_PUSH, 2, pawl_range_of(SPARSE / 2, SPARSE), sparse_rows, SPARSE / 2 * 16);
  assert(code == PWI_CODE_OK);
  return 0;
}

/* The upper half is unchanged. */
UNTRACED static void check_held(void) {
  enum pwi_code code = ask(first, PWI_REQUEST_PULL, 1, pawl_range_of(DENSE / 2, DENSE), dense_rows, 0);
  assert(code == PWI_CODE_OK);
  code = ask(first, PWI_REQUEST_PULL, 2, pawl_range_of(SPARSE / 2, SPARSE), sparse_rows, 0);
  assert(code == PWI_CODE_OK);
  for (size_t i = 0; i < DENSE / 2; i++) assert(dense_rows[i] == 7);
  for (size_t i = 0; i < SPARSE; i++) assert(sparse_rows[i] == 7);
}

static void read_lower(struct pwi_shard *shard, int32_t *dense, uint64_t *sparse) {
  enum pwi_code code = ask(shard, PWI_REQUEST_PULL, 1, pawl_range_of(0, DENSE / 2), dense, 0);
  assert(code == PWI_CODE_OK);
  code = ask(shard, PWI_REQUEST_PULL, 2, pawl_range_of(0, SPARSE / 2), sparse, 0);
  assert(code == PWI_CODE_OK);
}

/* Moves chunk by chunk to the other shard, which must accept all of them. */
static void move_on(size_t size) {
  static struct pwi_writer writer;
  struct pwi_copying copying;
  bool more = true;
  pwi_copying_init(&copying, lower);
  while (more) {
    pwi_writer_reset(&writer);
    pawl_status status = pwi_shard_copy(first, &copying, size, &writer, &more);
    assert(status == PAWL_OK);
    if (more) status = pwi_shard_take(second, writer.data, writer.size);
    assert(status == PAWL_OK);
  }
}

static void check_move(size_t size) {
  pawl_status status = pwi_shard_adopt(first, lower);
  assert(status == PAWL_OK);
  move_on(size);
  status = pwi_shard_adopt(second, lower);
  assert(status == PAWL_OK);
  read_lower(first, dense_rows, sparse_rows);
  read_lower(second, dense_again, sparse_again);
  assert(memcmp(dense_rows, dense_again, DENSE / 2 * sizeof *dense_rows) == 0);
  assert(memcmp(sparse_rows, sparse_again, SPARSE * sizeof *sparse_rows) == 0);
  status = pwi_shard_drop(second, lower);
  assert(status == PAWL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  size_t chunk_size = draw_u16(&input);
  pawl_status status = PAWL_OK;
  while (input.left > 0 && status == PAWL_OK) {
    size_t length = draw_u16(&input);
    if (length > input.left) length = input.left;
    status = pwi_shard_take(first, input.at, length);
    assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_INVALID || status == PAWL_NODE_FULL ||
           status == PAWL_CANCELLED);
    input.at += length;
    input.left -= length;
  }
  check_held();
  if (status == PAWL_OK) check_move(chunk_size);
  status = pwi_shard_drop(first, lower);
  assert(status == PAWL_OK);
  return 0;
}
