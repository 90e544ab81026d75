/* Requests: what a client may read, requests that this server cannot serve now, and pushes that do not fit. */
#include "base/cursor.h"
#include "server/handler_testing.h"

struct asked {
  struct pwi_terms terms;
  struct pwi_operation operation; /* without a kind: none */
  const float *values;            /* one for each row; NULL: none */
  uint64_t task, tick;
  uint64_t catalogue; /* the number that the client knows; 0: the server's */
};

/* Sender 1 sends a request. */
static void ask(struct scene *s, size_t link, const struct asked *asked) {
  static uint8_t body[4096];
  uint8_t bytes[PWI_TERMS_SIZE], operation[PWI_OPERATION_SIZE];
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST, .sender = 1, .task = asked->task, .tick = asked->tick};
  size_t at = 0;
  head.catalogue = (uint32_t)(asked->catalogue ? asked->catalogue : s->catalogue.number);
  pwi_message_begin(&builder, &terms, &head);
  pwi_terms_encode(&asked->terms, bytes);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  assert_int_equal(pwi_message_copy(&builder, &section, bytes), PAWL_OK);
  if (asked->operation.kind) {
    pwi_operation_encode(&asked->operation, operation);
    section = (struct pwi_section){.type = PWI_SECTION_OPERATION, .count = 1, .length = sizeof operation};
    assert_int_equal(pwi_message_copy(&builder, &section, operation), PAWL_OK);
  }
  if (asked->values) {
    section = (struct pwi_section){.type = PWI_SECTION_VALUES,
                                   .value_type = PAWL_F32,
                                   .count = (uint32_t)asked->terms.rows,
                                   .length = asked->terms.rows * sizeof(float)};
    assert_int_equal(pwi_message_add(&builder, &section, asked->values), PAWL_OK);
  }
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  assert_true(builder.body_size <= sizeof body);
  for (size_t i = 0; i < builder.part_count; at += builder.parts[i++].iov_len)
    memcpy(body + at, builder.parts[i].iov_base, builder.parts[i].iov_len);
  struct pwi_message message = {.head = builder.head, .body_size = builder.body_size, .lane = PWI_LANE_DATA};
  struct pwi_receive receive = pwi_handler_message(s->links[link], &message);
  assert_int_equal(receive.how, PWI_RECEIVE_INTO);
  memcpy(receive.into, body, builder.body_size);
  pwi_handler_message_end(s->links[link], PAWL_OK);
  assert_int_equal(s->net.closed_count, 0);
}

/* The last answer; every request so far has one. */
static void assert_answered(const struct scene *s, size_t count, enum pwi_code code, pawl_status status) {
  struct pwi_outcome outcome;
  assert_int_equal(s->net.sent_count, count);
  answer_of(s, count - 1, &outcome);
  assert_string_equal(pwi_code_text(outcome.code), pwi_code_text(code));
  assert_string_equal(pawl_status_name(outcome.status), pawl_status_name(status));
}

/* Both links may push as sender 1, which is also the only member of the group. */
static void start_pushing(struct scene *s) {
  start_scene(s);
  open_group(s);
  for (size_t i = 0; i < 2; i++) {
    s->links[i]->rights.write = true;
    s->links[i]->shown.bound = 1;
  }
}

/* --- operations that read another vector ---------------------------------------------------------------- */

#define OWN 5
#define SECRET 6

static void open_dense(struct scene *s, uint64_t id, const char *name) {
  struct pwi_entry entry = {.id = {id}, .is = vector.is};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  entry.is.size = 100;
  entry.is.layout = PAWL_LAYOUT_DENSE;
  assert_int_equal(pwi_catalogue_add(&s->catalogue, &entry), PAWL_OK);
  assert_int_equal(pwi_shard_open(s->shard, &entry), PAWL_OK);
}

static struct asked operation_of(enum pwi_request_kind kind, enum pwi_linear what, uint64_t other) {
  return (struct asked){
      .terms = {.kind = kind, .vector = {OWN}, .number = 11, .rows = 100, .claim = {0, 100}, .range = {0, 100}},
      .operation = {.kind = what, .other = {other}},
      .task = kind == PWI_REQUEST_LINEAR ? 1 : 0};
}

/* Its key permits one space. Whether the vector of the other space exists is not told either. */
static void test_an_operation_reads_no_vector_of_another_space(void **state) {
  (void)state;
  struct scene s;
  struct asked dot = operation_of(PWI_REQUEST_FOLD, PWI_LINEAR_DOT, SECRET);
  struct asked copy = operation_of(PWI_REQUEST_LINEAR, PWI_LINEAR_COPY, SECRET);
  start_pushing(&s);
  open_dense(&s, OWN, "own/y");
  open_dense(&s, SECRET, "secret/x");
  ask(&s, 1, &dot);
  assert_answered(&s, 1, PWI_CODE_OK, PAWL_OK); /* the key of this link permits all spaces */
  strcpy(s.links[0]->rights.space, "own");
  ask(&s, 0, &dot);
  assert_answered(&s, 2, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  ask(&s, 0, &copy);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 1);
  assert_answered(&s, 3, PWI_CODE_REFUSED, PAWL_NOT_FOUND); /* and its number is used up */
  stop_scene(&s);
}

/* Another server may know the vector. Otherwise the operation would fail. */
static void test_an_operation_waits_for_the_catalogue_that_has_the_other_vector(void **state) {
  (void)state;
  struct scene s;
  struct asked dot = operation_of(PWI_REQUEST_FOLD, PWI_LINEAR_DOT, 99);
  start_pushing(&s);
  open_dense(&s, OWN, "own/y");
  dot.catalogue = s.catalogue.number + 1;
  ask(&s, 0, &dot);
  assert_answered(&s, 1, PWI_CODE_NOT_HERE, PAWL_OK);
  dot.catalogue = s.catalogue.number;
  ask(&s, 0, &dot);
  assert_answered(&s, 2, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  stop_scene(&s);
}

/* --- pushes that do not fit ----------------------------------------------------------------------------- */

/* The client has to read its earlier answers first, and then sends the push again. It is not refused, and takes no
 * place in the log meanwhile. */
static void test_a_push_whose_answer_has_no_room_has_no_effect(void **state) {
  (void)state;
  struct scene s;
  static const float values[4] = {1, 2, 3, 4};
  struct pwi_handler_buffer unread = {.size = (size_t)128 << 20};
  struct asked push = {
      .terms = {.kind = PWI_REQUEST_PUSHPULL, .vector = {1}, .number = 11, .rows = 4, .claim = {0, 4}, .range = {0, 4}},
      .values = values,
      .task = 1};
  start_pushing(&s);
  pwi_handler_charge(s.links[0], unread.size);
  ask(&s, 0, &push);
  assert_answered(&s, 1, PWI_CODE_NOT_HERE, PAWL_OK);
  assert_int_equal(chain_of(&s)->version, 0);
  assert_int_equal(s.member.log_entries.bytes, 0);
  pwi_handler_discharge(s.links[0], &unread);
  ask(&s, 0, &push);
  assert_int_equal(chain_of(&s)->version, 1);
  assert_true(s.member.log_entries.bytes > 0);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 1);
  assert_answered(&s, 2, PWI_CODE_OK, PAWL_OK);
  stop_scene(&s);
}

/* Otherwise the client would send it again for ever, and nothing after it. */
static void test_a_push_of_a_sum_that_does_not_fit_uses_up_its_number(void **state) {
  (void)state;
  struct scene s;
  static const float values[400] = {1};
  struct asked push = {.terms = {.kind = PWI_REQUEST_PUSH,
                                 .vector = {1},
                                 .other = 3,
                                 .number = 11,
                                 .rows = 400,
                                 .claim = {0, 400},
                                 .range = {0, 400}},
                       .values = values,
                       .task = 1,
                       .tick = 1};
  start_pushing(&s);
  assert_int_equal(pwi_shard_set_quota(s.shard, "a", 1), PAWL_OK);
  ask(&s, 0, &push);
  assert_answered(&s, 1, PWI_CODE_NOT_HERE, PAWL_OK); /* each push of the sum is decided by itself */
  ask(&s, 0, &push);
  assert_int_equal(chain_of(&s)->version, 1);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 1);
  assert_answered(&s, 2, PWI_CODE_REFUSED, PAWL_QUOTA_MEMORY);
  stop_scene(&s);
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* Rows of the other vector have another width. */
static void test_each_vector_has_filters_of_its_own(void **state) {
  (void)state;
  struct scene s;
  struct pwi_filter_list list;
  struct pwi_writer writer = {0};
  struct pawl_filters *narrow, *broad, *again;
  start_scene(&s);
  assert_int_equal(pwi_filter_list_parse("fixed(bits=3,on=pull)", NULL, 0, &list), PAWL_OK);
  pwi_filter_list_write(&writer, &list);
  struct pwi_request request = {.terms = {.vector = vector.id}, .filters = writer.data, .filters_size = writer.size};
  assert_int_equal(pwi_handler_find_filters(s.handler, &request, &vector, &narrow), PAWL_OK);
  request.terms.vector = wide.id;
  assert_int_equal(pwi_handler_find_filters(s.handler, &request, &wide, &broad), PAWL_OK);
  assert_ptr_not_equal(narrow, broad);
  request.terms.vector = vector.id;
  assert_int_equal(pwi_handler_find_filters(s.handler, &request, &vector, &again), PAWL_OK);
  assert_ptr_equal(narrow, again);
  pwi_writer_fini(&writer);
  stop_scene(&s);
}

static void test_values_that_no_filter_has_rounded_are_sent_as_they_are(void **state) {
  (void)state;
  struct scene s;
  struct pwi_request request = {.terms = {.vector = vector.id, .codecs = (uint8_t)pwi_codecs_lossy()}};
  start_scene(&s);
  s.links[0]->peering.codecs = UINT8_MAX;
  assert_true(pwi_handler_leaves_values(s.links[0], &request, NULL));
  request.terms.codecs = UINT8_MAX;
  assert_false(pwi_handler_leaves_values(s.links[0], &request, NULL));
  stop_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_operation_reads_no_vector_of_another_space),
      cmocka_unit_test(test_an_operation_waits_for_the_catalogue_that_has_the_other_vector),
      cmocka_unit_test(test_a_push_whose_answer_has_no_room_has_no_effect),
      cmocka_unit_test(test_a_push_of_a_sum_that_does_not_fit_uses_up_its_number),
      cmocka_unit_test(test_each_vector_has_filters_of_its_own),
      cmocka_unit_test(test_values_that_no_filter_has_rounded_are_sent_as_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
