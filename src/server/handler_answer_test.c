/* Deferred replies: they wait for the chain, and outlive neither their link nor the handler. Answers to requests for
 * which there is no memory. */
#include "shard/inside.h"

#include "server/handler_testing.h"

/* The head changes something, and defers the reply of this number. */
static pawl_status defer(struct scene *s, size_t link, uint64_t number) {
  struct pwi_reply reply = {.link = s->links[link], .number = number, .value_size = 1};
  chain_of(s)->version++;
  return pwi_handler_defer(chain_of(s), pawl_range_of(0, QUARTER), &reply);
}

static void test_a_deferred_reply_is_sent_when_its_version_is_confirmed(void **state) {
  (void)state;
  struct scene s;
  enum pwi_code code;
  start_scene(&s);
  assert_int_equal(defer(&s, 0, 11), PAWL_OK);
  assert_int_equal(defer(&s, 1, 12), PAWL_OK);
  assert_int_equal(s.links[0]->deferred_count, 1);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 1);
  assert_true(s.net.sent_count >= 1);
  assert_int_equal(head_of(&s, 0, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_OK);
  assert_int_equal(s.links[0]->deferred_count, 0);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 2);
  assert_int_equal(s.net.sent_count, 2);
  assert_int_equal(s.net.sent[1].link, 2);
  stop_scene(&s);
}

/* Rows of the table change before the chain has confirmed what the answer has seen. */
static void test_a_deferred_reply_keeps_the_values_that_it_viewed(void **state) {
  (void)state;
  struct scene s;
  float rows[2048], found;
  struct pwi_reply reply = {.number = 11, .value_type = PAWL_F32, .value_size = sizeof *rows};
  start_scene(&s);
  reply.link = s.links[0];
  for (size_t i = 0; i < 2048; i++) rows[i] = 3;
  char *values;
  assert_int_equal(pwi_handler_make_room(s.links[0], sizeof rows, true, &reply.buffer, &values), PAWL_OK);
  reply.values = values;
  reply.served = (struct pwi_served){.value_bytes = sizeof rows, .view = rows};
  chain_of(&s)->version++;
  assert_int_equal(pwi_handler_defer(chain_of(&s), pawl_range_of(0, QUARTER), &reply), PAWL_OK);
  for (size_t i = 0; i < 2048; i++) rows[i] = 4;
  pwi_chain_heard(&s.member.chains, chain_of(&s), 1);
  assert_int_equal(s.net.sent_count, 1);
  memcpy(&found, s.net.sent[0].body + s.net.sent[0].body_size - sizeof found, sizeof found);
  assert_true(found == 3);
  stop_scene(&s);
}

static void test_a_reply_that_is_lost_says_so(void **state) {
  (void)state;
  struct scene s;
  enum pwi_code code;
  struct pwi_arc arc = arc_of(0, 2, "21");
  start_scene(&s);
  assert_int_equal(defer(&s, 0, 11), PAWL_OK);
  see_view(&s.member, &arc, 1);
  assert_int_equal(s.net.sent_count, 1);
  assert_int_equal(head_of(&s, 0, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_NOT_HERE);
  stop_scene(&s);
}

/* The push of the only member of a group, to one key of the first quarter, which it claims. Its reply is deferred. */
static void push_in_a_group(struct scene *s, uint64_t number) {
  static const uint64_t key = 5;
  float value = 1;
  struct iovec part = {&value, sizeof value};
  struct pwi_served served;
  struct pwi_request request = {.terms = {.kind = PWI_REQUEST_PUSH,
                                          .keys = PWI_KEYS_LIST,
                                          .vector = vector.id,
                                          .other = group.id.id,
                                          .rows = 1,
                                          .claim = pawl_range_of(0, QUARTER),
                                          .range = pawl_range_of(0, QUARTER)},
                                .sender = {1},
                                .task = 1,
                                .tick = 1,
                                .arc = pawl_range_of(0, PAWL_KEY_END),
                                .waiter = {.owner = 1, .number = number, .vector = vector.id},
                                .keys = &key,
                                .encoded = &key,
                                .encoded_as = {.type = PWI_SECTION_KEYS, .count = 1, .length = sizeof key},
                                .values = &part,
                                .value_parts = 1,
                                .value_type = PAWL_F32};
  open_group(s);
  pwi_shard_serve(s->shard, &request, NULL, &served);
  assert_true(served.is_deferred);
  pwi_handler_settle_sums(s->handler);
  assert_int_equal(s->net.sent_count, 0);
  assert_int_equal(s->links[0]->deferred_count, 1);
}

/* The sum of a tick is applied range by range if its pushes claim less than the arc. Its replies concern all of these
 * ranges: here the change is in the quarter that gets another head, which may lack it. */
static void test_the_reply_about_a_sum_is_lost_with_any_part_of_the_arc(void **state) {
  (void)state;
  struct scene s;
  enum pwi_code code;
  struct pwi_arc arcs[] = {arc_of(0, 2, "23"), arc_of(QUARTER, 2, "12")};
  start_scene(&s);
  push_in_a_group(&s, 11);
  see_view(&s.member, arcs, 2);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 9);
  assert_int_equal(s.net.sent_count, 1);
  assert_int_equal(head_of(&s, 0, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_NOT_HERE);
  stop_scene(&s);
}

/* A member released the request before the group got another head, which may lack that member's tick. */
static void test_an_awaited_tick_is_not_reported_by_a_former_head(void **state) {
  (void)state;
  struct scene s;
  enum pwi_code code;
  struct pwi_arc arc = arc_of(0, 2, "21");
  start_scene(&s);
  open_group(&s);
  pwi_handler_answer(s.handler, (struct pwi_waiter){.owner = 1, .number = 11, .vector = group.id},
                     &(struct pwi_outcome){.code = PWI_CODE_OK, .found = 1});
  assert_int_equal(s.net.sent_count, 0);
  see_view(&s.member, &arc, 1);
  pwi_handler_settle_sums(s.handler);
  assert_int_equal(s.net.sent_count, 1);
  assert_int_equal(head_of(&s, 0, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_NOT_HERE);
  stop_scene(&s);
}

static void test_replies_of_a_lost_link_are_forgotten(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s);
  assert_int_equal(defer(&s, 0, 11), PAWL_OK);
  assert_int_equal(defer(&s, 1, 12), PAWL_OK);
  pwi_handler_link_down(s.links[0]);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 2);
  assert_int_equal(s.net.sent_count, 1);
  assert_int_equal(s.net.sent[0].link, 2);
  stop_scene(&s);
}

/* A client that comes back over link after link leaves nothing behind. */
static void test_requests_that_wait_in_the_shard_end_with_their_link(void **state) {
  (void)state;
  struct scene s;
  struct pwi_served served;
  struct pwi_request await = {.terms = {.kind = PWI_REQUEST_AWAIT, .vector = group.id},
                              .tick = 5,
                              .waiter = {.owner = 1, .number = 11, .vector = group.id}};
  start_scene(&s);
  open_group(&s);
  uint64_t key = pwi_group_key(group.name);
  await.terms.claim = await.terms.range = pawl_range_of(key, key + 1);
  pwi_shard_serve(s.shard, &await, NULL, &served);
  assert_true(served.is_deferred);
  assert_int_equal(s.shard->waiting_count, 1);
  pwi_handler_link_down(s.links[0]);
  s.links[0] = NULL;
  assert_int_equal(s.shard->waiting_count, 0);
  stop_scene(&s);
}

static void test_the_memory_of_replies_is_used_again(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s);
  assert_int_equal(defer(&s, 0, 1), PAWL_OK);
  pwi_chain_heard(&s.member.chains, chain_of(&s), 1);
  pwi_memory_fail_after(0);
  for (uint64_t i = 2; i < 100; i++) {
    assert_int_equal(defer(&s, 0, i), PAWL_OK);
    pwi_chain_heard(&s.member.chains, chain_of(&s), i);
  }
  assert_false(pwi_memory_fail_cancel());
  pwi_memory_fail_after(0);
  assert_int_equal(defer(&s, 0, 100), PAWL_OK);
  assert_int_equal(defer(&s, 0, 101), PAWL_NO_MEMORY);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(s.links[0]->deferred_count, 1);
  stop_scene(&s);
}

/* A client asks for the values of 4096 keys, and there is no memory for its message. */
static void pull_without_memory(struct scene *s, const struct pwi_entry *entry) {
  static uint8_t body[64 << 10];
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST, .sender = 7, .catalogue = (uint32_t)s->catalogue.number};
  struct pwi_terms pull = {.kind = PWI_REQUEST_PULL,
                           .keys = PWI_KEYS_LIST,
                           .vector = entry->id,
                           .number = 11,
                           .rows = 4096,
                           .claim = pawl_range_of(0, 4096),
                           .range = pawl_range_of(0, 4096)};
  uint8_t bytes[PWI_TERMS_SIZE];
  static uint64_t keys[4096];
  size_t at = 0;
  for (uint64_t i = 0; i < 4096; i++) keys[i] = i;
  pwi_terms_encode(&pull, bytes);
  pwi_message_begin(&builder, &terms, &head);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  assert_int_equal(pwi_message_copy(&builder, &section, bytes), PAWL_OK);
  section = (struct pwi_section){.type = PWI_SECTION_KEYS, .count = 4096, .length = sizeof keys};
  assert_int_equal(pwi_message_add(&builder, &section, keys), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  assert_true(builder.body_size <= sizeof body);
  for (size_t i = 0; i < builder.part_count; at += builder.parts[i++].iov_len)
    memcpy(body + at, builder.parts[i].iov_base, builder.parts[i].iov_len);
  struct pwi_message message = {.head = builder.head, .body_size = builder.body_size, .lane = PWI_LANE_DATA};
  pwi_memory_fail_after(0);
  struct pwi_receive receive = pwi_handler_message(s->links[0], &message);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(receive.how, PWI_RECEIVE_PIECES);
  pwi_inbox_piece(&s->links[0]->inbox, 0, body, builder.body_size);
  pwi_handler_message_end(s->links[0], PAWL_OK);
}

/* The client's view is old, and the new head has memory: NO_MEMORY would be the end of the client's call. */
static void test_a_server_without_memory_that_is_not_the_head_says_so(void **state) {
  (void)state;
  struct scene s;
  enum pwi_code code;
  struct pwi_arc arc = arc_of(0, 2, "23");
  start_scene(&s);
  pull_without_memory(&s, &vector); /* the head: the following member takes its place */
  assert_int_equal(head_of(&s, 0, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_NOT_HERE);
  see_view(&s.member, &arc, 1);
  pull_without_memory(&s, &vector);
  assert_int_equal(s.net.sent_count, 2);
  assert_int_equal(head_of(&s, 1, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_NOT_HERE);
  stop_scene(&s);
}

/* The answer to the second request would have 16 MiB. If it deposed the head, any client could do so. */
static void test_only_a_modest_request_deposes_a_head_without_memory(void **state) {
  (void)state;
  struct scene s;
  enum pwi_code code;
  start_scene(&s);
  pull_without_memory(&s, &vector);
  assert_int_equal(starved, 1);
  assert_int_equal(head_of(&s, 0, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_NOT_HERE);
  pull_without_memory(&s, &wide);
  assert_int_equal(starved, 1);
  assert_int_equal(head_of(&s, 1, &code).tick, 11);
  assert_int_equal(code, PWI_CODE_FAILED);
  stop_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_deferred_reply_is_sent_when_its_version_is_confirmed),
      cmocka_unit_test(test_a_deferred_reply_keeps_the_values_that_it_viewed),
      cmocka_unit_test(test_a_reply_that_is_lost_says_so),
      cmocka_unit_test(test_the_reply_about_a_sum_is_lost_with_any_part_of_the_arc),
      cmocka_unit_test(test_an_awaited_tick_is_not_reported_by_a_former_head),
      cmocka_unit_test(test_replies_of_a_lost_link_are_forgotten),
      cmocka_unit_test(test_requests_that_wait_in_the_shard_end_with_their_link),
      cmocka_unit_test(test_the_memory_of_replies_is_used_again),
      cmocka_unit_test(test_a_server_without_memory_that_is_not_the_head_says_so),
      cmocka_unit_test(test_only_a_modest_request_deposes_a_head_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
