/* Decodes chunks as a shard writes them. */
#include "shard/testing.h"

#include "checkpoint/chunk.h"

#define SIZE 1000

static void push(struct pwi_shard *shard, uint64_t vector, struct pawl_range keys) {
  static int64_t rows[SIZE];
  struct iovec values = {rows, pawl_range_size(keys) * sizeof *rows};
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, vector, SIZE);
  for (int64_t i = 0; i < SIZE; i++) rows[i] = (int64_t)keys.begin + i;
  request.terms.range = keys;
  request.terms.rows = pawl_range_size(keys);
  request.task = vector;
  request.values = &values;
  request.value_parts = 1;
  request.value_type = PAWL_I64;
  assert_served(shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
}

/* The value of every row is its key. */
static void check(const struct pwi_chunk *chunk, bool *seen) {
  assert_int_equal(chunk->row_bytes, 8);
  assert_int_equal(chunk->state_bytes, 0);
  for (size_t i = 0; i < chunk->count; i++) {
    uint64_t key = pwi_chunk_key(chunk, i), value = pwi_get_u64(chunk->values + 8 * i);
    assert_true(key < SIZE && !seen[key]);
    if (value != 0) assert_int_equal(value, key); /* rows that were never written may come as zeros */
    seen[key] = true;
  }
}

static void test_rows_are_read_as_a_shard_writes_them(void **state) {
  (void)state;
  for (size_t size = 1; size < 100000; size *= 6) {
    struct pwi_membership membership = membership_of(1);
    struct pwi_shard *shard = shard_of_all(&membership);
    struct pwi_copying copying;
    struct pwi_writer writer = {0};
    bool seen[2][SIZE] = {{false}}, more = true, clocks = false;
    open_vector(shard, entry_of(1, PAWL_I64, 1, SIZE, false));
    open_vector(shard, entry_of(2, PAWL_I64, 1, SIZE, true));
    open_vector(shard, group_of(3));
    push(shard, 1, pawl_range_of(0, SIZE));
    push(shard, 2, pawl_range_of(100, 300));
    pwi_copying_init(&copying, WHOLE_RING);
    while (more) {
      struct pwi_chunk chunk;
      pwi_writer_reset(&writer);
      assert_int_equal(pwi_shard_copy(shard, &copying, size, &writer, &more), PAWL_OK);
      if (!more) break;
      assert_int_equal(pwi_chunk_read(writer.data, writer.size, &chunk), PAWL_OK);
      if (chunk.has_rows) check(&chunk, seen[chunk.vector.id - 1]);
      clocks |= !chunk.has_rows;
    }
    assert_true(clocks);
    for (size_t i = 0; i < SIZE; i++) assert_true(seen[0][i] && seen[1][i] == (i >= 100 && i < 300));
    pwi_writer_fini(&writer);
    pwi_shard_destroy(shard);
    pwi_membership_fini(&membership);
  }
}

/* Offsets of the fields of a chunk. */
enum { VERSION = 0, WHAT = 1, COUNT = 10, ROW_BYTES = 14, CONSECUTIVE = 22, KEYS = 23, CHUNK = 23 + 3 * 8 + 3 * 4 };

/* Three rows of 4 bytes with the keys 5, 7 and 8. */
static void example(unsigned char *bytes) {
  static const uint64_t keys[] = {5, 7, 8};
  memset(bytes, 9, CHUNK);
  bytes[VERSION] = bytes[WHAT] = 1;
  pwi_put_u32(bytes + COUNT, 3);
  pwi_put_u32(bytes + ROW_BYTES, 4);
  pwi_put_u32(bytes + ROW_BYTES + 4, 0);
  bytes[CONSECUTIVE] = 0;
  for (size_t i = 0; i < 3; i++) pwi_put_u64(bytes + KEYS + 8 * i, keys[i]);
}

static pawl_status read_example(const unsigned char *bytes, size_t size) {
  struct pwi_chunk chunk;
  return pwi_chunk_read(bytes, size, &chunk);
}

static void test_bytes_that_are_no_chunk_are_refused(void **state) {
  (void)state;
  unsigned char bytes[CHUNK + 1] = {0};
  example(bytes);
  assert_int_equal(read_example(bytes, CHUNK), PAWL_OK);
  for (size_t size = 0; size < CHUNK; size++) assert_int_equal(read_example(bytes, size), PAWL_CORRUPT);
  assert_int_equal(read_example(bytes, CHUNK + 1), PAWL_CORRUPT);
  bytes[VERSION] = 2;
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  example(bytes), bytes[WHAT] = 0;
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  bytes[WHAT] = 5;
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  example(bytes), pwi_put_u32(bytes + COUNT, 0);
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  pwi_put_u32(bytes + COUNT, UINT32_MAX);
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  example(bytes), pwi_put_u32(bytes + ROW_BYTES, UINT32_MAX);
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  example(bytes), bytes[CONSECUTIVE] = 2;
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  example(bytes), pwi_put_u64(bytes + KEYS + 8, 5);
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
  example(bytes), pwi_put_u64(bytes + KEYS + 16, PAWL_KEY_END);
  assert_int_equal(read_example(bytes, CHUNK), PAWL_CORRUPT);
}

static void test_keys_in_a_row_end_before_the_last_one(void **state) {
  (void)state;
  unsigned char bytes[CHUNK - 16];
  struct pwi_chunk chunk;
  unsigned char whole[CHUNK];
  example(whole);
  memcpy(bytes, whole, KEYS);
  memcpy(bytes + KEYS + 8, whole + KEYS + 24, 12);
  bytes[CONSECUTIVE] = 1;
  pwi_put_u64(bytes + KEYS, PAWL_KEY_END - 3);
  assert_int_equal(pwi_chunk_read(bytes, sizeof bytes, &chunk), PAWL_OK);
  assert_true(pwi_chunk_key(&chunk, 2) == PAWL_KEY_END - 1);
  pwi_put_u64(bytes + KEYS, PAWL_KEY_END - 2);
  assert_int_equal(pwi_chunk_read(bytes, sizeof bytes, &chunk), PAWL_CORRUPT);
  pwi_put_u64(bytes + KEYS, PAWL_KEY_END);
  assert_int_equal(pwi_chunk_read(bytes, sizeof bytes, &chunk), PAWL_CORRUPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_are_read_as_a_shard_writes_them),
      cmocka_unit_test(test_bytes_that_are_no_chunk_are_refused),
      cmocka_unit_test(test_keys_in_a_row_end_before_the_last_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
