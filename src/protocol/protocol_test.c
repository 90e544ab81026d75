/* Records that roles exchange: each decodes to its input, and invalid bytes are rejected. */
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/memory.h"
#include "base/testing.h"
#include "ring/plan.h"
#include "protocol/protocol.h"
#include "wire/hello.h"

static struct pwi_terms some_terms(void) {
  return (struct pwi_terms){
      .kind = PWI_REQUEST_PUSHPULL,
      .keys = PWI_KEYS_LIST,
      .keep = true,
      .vector = {7},
      .number = 8,
      .prior = 9,
      .settled = 10,
      .other = 11,
      .rows = 12,
      .claim = {100, 200},
      .range = {150, 160},
      .codecs = 0x42,
  };
}

static void test_terms_lie_where_the_header_says(void **state) {
  (void)state;
  struct pwi_terms terms = some_terms();
  uint8_t bytes[PWI_TERMS_SIZE], start[8] = {3, 1, 1, 0x42};
  static const uint64_t words[11] = {7, 8, 9, 10, 11, 12, 100, 200, 150, 160, 0};
  pwi_terms_encode(&terms, bytes);
  assert_memory_equal(bytes, start, sizeof start);
  for (size_t i = 0; i < 11; i++) assert_int_equal(pwi_get_u64(bytes + 8 + 8 * i), words[i]);
}

static void test_terms_come_back(void **state) {
  (void)state;
  struct pwi_terms terms = some_terms(), back;
  uint8_t bytes[PWI_TERMS_SIZE], again[PWI_TERMS_SIZE];
  for (int kind = PWI_REQUEST_PUSH; kind <= PWI_REQUEST_FOLD; kind++) {
    terms.kind = (enum pwi_request_kind)kind;
    pwi_terms_encode(&terms, bytes);
    assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_OK);
    pwi_terms_encode(&back, again);
    assert_memory_equal(again, bytes, sizeof bytes);
    assert_int_equal(back.kind, kind);
    assert_int_equal(back.range.end, 160);
    assert_int_equal(back.codecs, 0x42);
  }
}

static void test_the_staleness_of_a_pull_of_a_group_comes_back(void **state) {
  (void)state;
  struct pwi_terms terms = some_terms(), back;
  uint8_t bytes[PWI_TERMS_SIZE], start[8] = {2, 1, 1, 0x42, 4, 3, 2, 1};
  terms.kind = PWI_REQUEST_PULL;
  terms.staleness = 0x01020304;
  pwi_terms_encode(&terms, bytes);
  assert_memory_equal(bytes, start, sizeof start);
  assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_OK);
  assert_int_equal(back.staleness, 0x01020304);
}

static void assert_no_terms(struct pwi_terms terms) {
  struct pwi_terms back = {.number = 77};
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
  assert_int_equal(back.number, 77);
}

static void test_terms_that_say_nothing_sensible_are_corrupt(void **state) {
  (void)state;
  struct pwi_terms terms = some_terms(), back;
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  for (size_t size = 0; size < sizeof bytes; size++)
    assert_int_equal(pwi_terms_decode(bytes, size, &back), PAWL_CORRUPT);
  static const size_t reserved[] = {4, 5, 6, 7, 92, 95};
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
    bytes[reserved[i]] = 1;
    assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
    bytes[reserved[i]] = 0;
  }
  bytes[2] = 4;
  assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
  bytes[2] = 2;
  assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_OK);
  assert_true(back.clocks && !back.keep);
  bytes[2] = 1;
  assert_int_equal(pwi_terms_decode(bytes, sizeof bytes, &back), PAWL_OK);
  assert_true(back.keep && !back.clocks);

#define ASSERT_NO_TERMS(change) (terms = some_terms(), (change), assert_no_terms(terms))
  ASSERT_NO_TERMS(terms.kind = (enum pwi_request_kind)0);
  ASSERT_NO_TERMS(terms.kind = (enum pwi_request_kind)12);
  ASSERT_NO_TERMS(terms.keys = (enum pwi_request_keys)3);
  ASSERT_NO_TERMS(terms.number = 0);
  ASSERT_NO_TERMS(terms.codecs = 1); /* RAW needs no asking for */
  ASSERT_NO_TERMS(terms.vector.id = 0);
  ASSERT_NO_TERMS(terms.claim.end = 100);
  ASSERT_NO_TERMS(terms.range.end = 150);
  ASSERT_NO_TERMS(terms.range.begin = 99);
  ASSERT_NO_TERMS(terms.range.end = 201);
  ASSERT_NO_TERMS(terms.staleness = 1); /* no pull */
  ASSERT_NO_TERMS((terms.staleness = 1, terms.kind = PWI_REQUEST_PULL, terms.other = 0));
}

static void test_operations_lie_where_the_header_says_and_come_back(void **state) {
  (void)state;
  for (unsigned kind = PWI_LINEAR_FILL; kind <= PWI_LINEAR_COUNT; kind++) {
    struct pwi_operation operation = {.kind = (enum pwi_linear)kind}, back;
    uint8_t bytes[PWI_OPERATION_SIZE], again[PWI_OPERATION_SIZE];
    bool has_other = pwi_linear_has_other(operation.kind), has_scalar = pwi_linear_has_scalar(operation.kind);
    if (has_scalar) operation.scalar = -2.5;
    if (has_other) operation.other.id = 7, operation.incarnation = 8, operation.prior = 9;
    if (pwi_linear_has_column(operation.kind)) operation.column = 4;
    pwi_operation_encode(&operation, bytes);
    const uint64_t words[] = {kind | (uint64_t)operation.column << 32, has_scalar ? UINT64_C(0xc004000000000000) : 0,
                              has_other ? 7 : 0, has_other ? 8 : 0, has_other ? 9 : 0};
    for (size_t i = 0; i < 5; i++) assert_true(pwi_get_u64(bytes + 8 * i) == words[i]);
    assert_int_equal(pwi_operation_decode(bytes, sizeof bytes, &back), PAWL_OK);
    pwi_operation_encode(&back, again);
    assert_memory_equal(again, bytes, sizeof bytes);
  }
}

static void assert_no_operation(struct pwi_operation operation, size_t place, uint8_t value) {
  struct pwi_operation back = {.prior = 77};
  uint8_t bytes[PWI_OPERATION_SIZE];
  pwi_operation_encode(&operation, bytes);
  if (place < sizeof bytes) bytes[place] = value;
  assert_int_equal(pwi_operation_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
  assert_int_equal(back.prior, 77);
}

static void test_operations_that_say_nothing_sensible_are_corrupt(void **state) {
  (void)state;
  struct pwi_operation fill = {.kind = PWI_LINEAR_FILL, .scalar = 1}, back;
  struct pwi_operation copy = {.kind = PWI_LINEAR_COPY, .other = {3}, .prior = 2};
  uint8_t bytes[PWI_OPERATION_SIZE];
  pwi_operation_encode(&fill, bytes);
  for (size_t size = 0; size < sizeof bytes; size++)
    assert_int_equal(pwi_operation_decode(bytes, size, &back), PAWL_CORRUPT);
  assert_no_operation(fill, 0, 0);
  assert_no_operation(fill, 0, PWI_LINEAR_COUNT + 1);
  for (size_t place = 1; place < 8; place++) assert_no_operation(fill, place, 1); /* zeros, and a column */
  assert_no_operation(fill, 16, 1);                                               /* another vector, */
  assert_no_operation(fill, 24, 1);
  assert_no_operation(fill, 32, 1);
  assert_no_operation(copy, 16, 0); /* or none */
  assert_no_operation(copy, 28, 1); /* an incarnation of more than 32 bits */
  assert_no_operation(copy, 15, 64);
}

static void test_what_reads_first_comes_back_and_the_rest_is_corrupt(void **state) {
  (void)state;
  const struct pwi_read_first first = {{7}, 8, {9, 10}};
  struct pwi_read_first back;
  uint8_t bytes[PWI_READ_FIRST_SIZE];
  pwi_read_first_encode(&first, bytes);
  for (size_t i = 0; i < 4; i++) assert_true(pwi_get_u64(bytes + 8 * i) == 7 + i);
  assert_int_equal(pwi_read_first_decode(bytes, sizeof bytes, &back), PAWL_OK);
  assert_true(back.vector.id == 7 && back.task == 8 && back.range.begin == 9 && back.range.end == 10);
  for (size_t size = 0; size < sizeof bytes; size++)
    assert_int_equal(pwi_read_first_decode(bytes, size, &back), PAWL_CORRUPT);
  for (size_t place = 0; place < sizeof bytes; place += 8) {
    pwi_read_first_encode(&first, bytes);
    bytes[place] = place == 16 ? 10 : 0; /* no vector, no task, an empty range, one that ends before it begins */
    assert_int_equal(pwi_read_first_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
  }
}

static void test_outcomes_come_back_and_others_are_corrupt(void **state) {
  (void)state;
  struct pwi_outcome outcome = {PWI_CODE_REFUSED, PAWL_NODE_FULL, 5, 6, 7}, back;
  uint8_t bytes[PWI_OUTCOME_SIZE];
  pwi_outcome_encode(&outcome, bytes);
  assert_int_equal(pwi_outcome_decode(bytes, sizeof bytes, &back), PAWL_OK);
  assert_int_equal(back.code, PWI_CODE_REFUSED);
  assert_int_equal(back.status, PAWL_NODE_FULL);
  assert_int_equal(back.found, 5);
  assert_int_equal(back.next, 6);
  assert_int_equal(back.version, 7);
  assert_int_equal(pwi_outcome_decode(bytes, sizeof bytes - 1, &back), PAWL_CORRUPT);
  bytes[0] = PWI_CODE_DIRECT + 1;
  assert_int_equal(pwi_outcome_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
  bytes[0] = 1;
  pwi_put_u32(bytes + 4, 1);
  assert_int_equal(pwi_outcome_decode(bytes, sizeof bytes, &back), PAWL_CORRUPT);
}

static void test_every_code_has_a_text(void **state) {
  (void)state;
  assert_string_equal(pwi_code_text(PWI_CODE_NOT_HERE), "not here");
  assert_string_equal(pwi_code_text((enum pwi_code)99), "unknown");
}

/* --- records that are written field by field ------------------------------------------------------------ */

/* Encodes again what was decoded, for comparison. */
typedef pawl_status again(const void *bytes, size_t size, struct pwi_writer *writer);

static pawl_status join_again(const void *bytes, size_t size, struct pwi_writer *writer) {
  struct pwi_join join;
  pawl_status status = pwi_join_decode(bytes, size, &join);
  if (status == PAWL_OK) pwi_join_encode(&join, writer);
  return status;
}

static pawl_status joined_again(const void *bytes, size_t size, struct pwi_writer *writer) {
  struct pwi_joined joined;
  pawl_status status = pwi_joined_decode(bytes, size, &joined);
  if (status == PAWL_OK) pwi_joined_encode(&joined, writer);
  return status;
}

static pawl_status move_again(const void *bytes, size_t size, struct pwi_writer *writer) {
  struct pwi_move move;
  size_t used;
  pawl_status status = pwi_move_decode(bytes, size, &move, &used);
  if (status == PAWL_OK) {
    pwi_move_encode(&move, writer);
    assert_int_equal(used, writer->size); /* what follows is no part of it */
  }
  return status;
}

static pawl_status report_again(const void *bytes, size_t size, struct pwi_writer *writer) {
  struct pwi_report report;
  struct pwi_load *loads;
  size_t count;
  pawl_status status = pwi_report_decode(bytes, size, &report, &loads, &count);
  if (status == PAWL_OK) {
    pwi_report_encode(&report, loads, count, writer);
    pwi_free(loads);
  }
  return status;
}

/* The record decodes to its input. Truncated, it is corrupt. With one byte changed, it is corrupt or encodes
 * to the same bytes. */
static void assert_one_form(struct pwi_writer *written, again *decode) {
  struct pwi_writer back = {0};
  assert_int_equal(written->status, PAWL_OK);
  assert_int_equal(decode(written->data, written->size, &back), PAWL_OK);
  assert_int_equal(back.size, written->size);
  assert_memory_equal(back.data, written->data, back.size);
  for (size_t size = 0; size < written->size; size++)
    assert_int_equal(decode(written->data, size, &back), PAWL_CORRUPT);
  for (size_t i = 0; i < written->size * 8; i++) {
    written->data[i / 8] ^= (unsigned char)(1 << i % 8);
    pwi_writer_reset(&back);
    pawl_status status = decode(written->data, written->size, &back);
    if (status == PAWL_OK)
      assert_memory_equal(back.data, written->data, back.size);
    else
      assert_int_equal(status, PAWL_CORRUPT);
    written->data[i / 8] ^= (unsigned char)(1 << i % 8);
  }
  pwi_writer_fini(&back);
  pwi_writer_fini(written);
}

static void test_join_has_one_form(void **state) {
  (void)state;
  struct pwi_join join = {
      .role = PWI_ROLE_SERVER,
      .id = 1,
      .secret = 2,
      .address = "[::1]:7000",
      .host = "h",
      .rack = "",
      .process = 3,
      .shard = 4,
      .shard_count = 5,
      .weight = 6,
      .memory_max = UINT64_MAX,
      .job = "lda",
      .reader = true,
      .retired = 7,
  };
  struct pwi_writer writer = {0};
  struct pwi_join back;
  pwi_join_encode(&join, &writer);
  assert_int_equal(pwi_join_decode(writer.data, writer.size, &back), PAWL_OK);
  assert_string_equal(back.address, "[::1]:7000");
  assert_int_equal(back.retired, 7);
  assert_one_form(&writer, join_again);
  join.role = PWI_ROLE_MANAGER;
  pwi_join_encode(&join, &writer);
  assert_int_equal(pwi_join_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static pawl_status settle_again(const void *bytes, size_t size, struct pwi_writer *writer) {
  struct pwi_settle senders[PWI_SETTLE_MAX];
  uint64_t number;
  size_t count;
  pawl_status status = pwi_settle_decode(bytes, size, &number, senders, &count);
  if (status == PAWL_OK) pwi_settle_encode(number, senders, count, writer);
  return status;
}

static pawl_status settled_again(const void *bytes, size_t size, struct pwi_writer *writer) {
  uint64_t number, senders[PWI_SETTLE_MAX];
  size_t count;
  pawl_status status = pwi_settled_decode(bytes, size, &number, senders, &count);
  if (status == PAWL_OK) pwi_settled_encode(number, senders, count, writer);
  return status;
}

static void test_settle_and_settled_have_one_form(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  pwi_settle_encode(3, (struct pwi_settle[]){{4, 0}, {9, 77}}, 2, &writer);
  assert_one_form(&writer, settle_again);
  pwi_settled_encode(3, (uint64_t[]){4, 9, UINT64_MAX}, 3, &writer);
  assert_one_form(&writer, settled_again);
}

static void test_joined_has_one_form(void **state) {
  (void)state;
  struct pwi_joined joined = {PAWL_NODE_RETIRED, 1, 2, 3, true, false, "space", "host:1"};
  struct pwi_writer writer = {0};
  pwi_joined_encode(&joined, &writer);
  assert_one_form(&writer, joined_again);
}

static void test_move_has_one_form_and_something_may_follow(void **state) {
  (void)state;
  struct pwi_move move = {1, 2, {3, 4}, 5, 6, PWI_MOVE_FILL, true, PAWL_NODE_FULL, "host:1"}, back;
  struct pwi_writer writer = {0};
  pwi_move_encode(&move, &writer);
  size_t size = writer.size, used;
  pwi_write_u64(&writer, 99);
  assert_int_equal(pwi_move_decode(writer.data, writer.size, &back, &used), PAWL_OK);
  assert_int_equal(used, size);
  assert_int_equal(back.positions.end, 4);
  assert_string_equal(back.address, "host:1");
  pwi_writer_reset(&writer);
  pwi_move_encode(&move, &writer);
  assert_one_form(&writer, move_again);
}

static void test_report_has_one_form(void **state) {
  (void)state;
  struct pwi_report report = {.rows = 1, .memory_max = 3, .cached_bytes = 14};
  struct pwi_load loads[] = {{{0, 10}, 5, 6, false}, {{10, 11}, 0, 7, true}, {{20, 30}, 8, 9, false}}, *back;
  struct pwi_writer writer = {0};
  size_t count;
  pwi_report_encode(&report, loads, 3, &writer);
  assert_int_equal(pwi_report_decode(writer.data, writer.size, &report, &back, &count), PAWL_OK);
  assert_int_equal(count, 3);
  assert_int_equal(report.cached_bytes, 14);
  assert_true(back[1].whole && back[2].requests == 9);
  pwi_free(back);
  assert_one_form(&writer, report_again);
  pwi_report_encode(&report, NULL, 0, &writer);
  assert_int_equal(pwi_report_decode(writer.data, writer.size, &report, &back, &count), PAWL_OK);
  assert_true(back == NULL && count == 0);
  pwi_writer_fini(&writer);
}

static void test_loads_out_of_order_are_corrupt(void **state) {
  (void)state;
  struct pwi_report report = {0};
  struct pwi_load loads[] = {{{0, 10}, 5, 6, false}, {{9, 11}, 0, 7, true}}, *back;
  struct pwi_writer writer = {0};
  size_t count;
  uint64_t live = pwi_memory_counts().live;
  pwi_report_encode(&report, loads, 2, &writer);
  assert_int_equal(pwi_report_decode(writer.data, writer.size, &report, &back, &count), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
  assert_int_equal(pwi_memory_counts().live, live);
}

static void test_a_report_without_memory_for_its_loads_says_so(void **state) {
  (void)state;
  struct pwi_report report = {0};
  struct pwi_load load = {{0, 10}, 5, 6, false}, *back;
  struct pwi_writer writer = {0};
  size_t count;
  pwi_report_encode(&report, &load, 1, &writer);
  pwi_memory_fail_after(0);
  pawl_status status = pwi_report_decode(writer.data, writer.size, &report, &back, &count);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_int_equal(status, PAWL_NO_MEMORY);
  pwi_writer_fini(&writer);
}

static void test_a_note_has_one_form(void **state) {
  (void)state;
  struct pwi_chain_message message = {.kind = PWI_CHAIN_UPDATE,
                                      .effect = PWI_EFFECT_REFUSAL,
                                      .full = true,
                                      .status = PAWL_NODE_FULL,
                                      .positions = {5, 6},
                                      .since = 3,
                                      .version = 9,
                                      .prior = 8,
                                      .other = 7};
  struct pwi_chain_message back;
  uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE], twice[PWI_CHAIN_MESSAGE_SIZE];
  pwi_chain_message_encode(&message, bytes);
  for (size_t size = 0; size < sizeof bytes; size++)
    assert_int_equal(pwi_chain_message_decode(bytes, size, &back), PAWL_CORRUPT);
  assert_int_equal(pwi_chain_message_decode(bytes, sizeof bytes, &back), PAWL_OK);
  assert_true(back.kind == message.kind && back.effect == message.effect && back.full && back.status == message.status);
  assert_true(back.positions.begin == 5 && back.positions.end == 6 && back.since == 3);
  assert_true(back.version == 9 && back.prior == 8 && back.other == 7);
  for (size_t i = 0; i < sizeof bytes * 8; i++) {
    bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    if (pwi_chain_message_decode(bytes, sizeof bytes, &back) == PAWL_OK) {
      pwi_chain_message_encode(&back, twice);
      assert_memory_equal(twice, bytes, sizeof bytes);
      assert_true(back.since != 0 && !pawl_range_is_empty(back.positions));
    }
    bytes[i / 8] ^= (uint8_t)(1 << i % 8);
  }
}

static void test_a_probe_has_one_form(void **state) {
  (void)state;
  struct pwi_probe probe = {.node = 3, .number = 9, .patience_ms = 100, .verdict = PWI_VERDICT_SILENT}, back;
  struct pwi_writer writer = {0};
  pwi_probe_encode(&probe, &writer);
  for (size_t size = 0; size < writer.size; size++)
    assert_int_equal(pwi_probe_decode(writer.data, size, &back), PAWL_CORRUPT);
  assert_int_equal(pwi_probe_decode(writer.data, writer.size, &back), PAWL_OK);
  assert_true(back.node == 3 && back.number == 9 && back.patience_ms == 100 && back.verdict == PWI_VERDICT_SILENT);
  ((uint8_t *)writer.data)[writer.size - 1] = 4;
  assert_int_equal(pwi_probe_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  probe.node = 0;
  pwi_writer_reset(&writer);
  pwi_probe_encode(&probe, &writer);
  assert_int_equal(pwi_probe_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static void test_a_complaint_has_one_form(void **state) {
  (void)state;
  struct pwi_complaint complaint = {.positions = {5, 6}, .node = 3, .status = PAWL_LINK_SILENT}, back;
  struct pwi_writer writer = {0};
  pwi_complaint_encode(&complaint, &writer);
  for (size_t size = 0; size < writer.size; size++)
    assert_int_equal(pwi_complaint_decode(writer.data, size, &back), PAWL_CORRUPT);
  assert_int_equal(pwi_complaint_decode(writer.data, writer.size, &back), PAWL_OK);
  assert_true(back.positions.begin == 5 && back.positions.end == 6 && back.node == 3);
  assert_int_equal(back.status, PAWL_LINK_SILENT);
  pwi_write_u8(&writer, 0);
  assert_int_equal(pwi_complaint_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  complaint.node = 0;
  pwi_writer_reset(&writer);
  pwi_complaint_encode(&complaint, &writer);
  assert_int_equal(pwi_complaint_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_terms_lie_where_the_header_says),
      cmocka_unit_test(test_terms_come_back),
      cmocka_unit_test(test_the_staleness_of_a_pull_of_a_group_comes_back),
      cmocka_unit_test(test_terms_that_say_nothing_sensible_are_corrupt),
      cmocka_unit_test(test_operations_lie_where_the_header_says_and_come_back),
      cmocka_unit_test(test_operations_that_say_nothing_sensible_are_corrupt),
      cmocka_unit_test(test_what_reads_first_comes_back_and_the_rest_is_corrupt),
      cmocka_unit_test(test_outcomes_come_back_and_others_are_corrupt),
      cmocka_unit_test(test_every_code_has_a_text),
      cmocka_unit_test(test_join_has_one_form),
      cmocka_unit_test(test_joined_has_one_form),
      cmocka_unit_test(test_settle_and_settled_have_one_form),
      cmocka_unit_test(test_move_has_one_form_and_something_may_follow),
      cmocka_unit_test(test_a_note_has_one_form),
      cmocka_unit_test(test_a_complaint_has_one_form),
      cmocka_unit_test(test_a_probe_has_one_form),
      cmocka_unit_test(test_report_has_one_form),
      cmocka_unit_test(test_loads_out_of_order_are_corrupt),
      cmocka_unit_test(test_a_report_without_memory_for_its_loads_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
