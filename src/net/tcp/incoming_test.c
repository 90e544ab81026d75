

#include "base/memory.h"
#include "base/testing.h"
#include "net/tcp/incoming.h"

#define KEPT ((size_t)1 << 20) /* a gathering buffer above this is given back */

/* The answers of the actor, and its callbacks. */
static struct {
  struct pwi_receive plan;
  unsigned messages, pieces, ends;
  size_t body_size, offset;
  const void *data;
  char bytes[64];
  size_t size;
  pawl_status status;
} heard;

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *what) {
  (void)self;
  assert_int_equal(link.id, 5);
  assert_int_equal(what->lane, PWI_LANE_DATA);
  assert_int_equal(what->head[0], 'h');
  assert_false(what->ready);
  heard.messages++;
  heard.body_size = what->body_size;
  return heard.plan;
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  (void)self;
  assert_int_equal(link.id, 5);
  assert_ptr_equal(context, &heard);
  heard.pieces++;
  heard.offset = offset;
  heard.data = data;
  heard.size = size;
  if (size <= sizeof heard.bytes) memcpy(heard.bytes, data, size);
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  (void)self;
  assert_int_equal(link.id, 5);
  assert_ptr_equal(context, &heard);
  heard.ends++;
  heard.status = status;
}

static const struct pwi_actor actor = {.message = message, .piece = piece, .message_end = message_end};
static struct pwi_net net;
static struct pwi_incoming incoming;
static const struct pwi_link a_link = {5};

static int make_incoming(void **state) {
  (void)state;
  memset(&heard, 0, sizeof heard);
  heard.status = PAWL_IO;
  net = (struct pwi_net){.actor = &actor};
  incoming = (struct pwi_incoming){0};
  return 0;
}

static int drop_incoming(void **state) {
  (void)state;
  pwi_incoming_fini(&incoming, &net);
  return 0;
}

static bool begin(enum pwi_receive_how how, void *into, size_t body_size, pawl_status *why_out) {
  static const uint8_t head[PWI_NET_HEAD_SIZE] = {'h'};
  const struct pwi_message about = {.head = head, .body_size = body_size, .lane = PWI_LANE_DATA};
  heard.plan = (struct pwi_receive){.how = how, .into = into, .context = &heard};
  return pwi_incoming_begin(&incoming, &net, a_link, &about, why_out);
}

static void end(pawl_status status) { pwi_incoming_end(&incoming, &net, a_link, status); }

static void test_pieces_are_handed_on_with_their_place(void **state) {
  (void)state;
  pawl_status why;
  assert_true(begin(PWI_RECEIVE_PIECES, NULL, 10, &why));
  assert_int_equal(heard.body_size, 10);
  assert_null(pwi_incoming_places(&incoming));
  pwi_incoming_piece(&incoming, &net, a_link, "abcdef", 6);
  assert_int_equal(heard.offset, 0);
  pwi_incoming_piece(&incoming, &net, a_link, "", 0); /* an empty piece is not delivered */
  pwi_incoming_piece(&incoming, &net, a_link, "ghij", 4);
  assert_int_equal(heard.pieces, 2);
  assert_int_equal(heard.offset, 6);
  assert_memory_equal(heard.bytes, "ghij", 4);
  end(PAWL_OK);
  end(PAWL_OK);
  assert_int_equal(heard.ends, 1);
  assert_int_equal(heard.status, PAWL_OK);
  assert_int_equal(net.counts.messages_received, 1);
  assert_int_equal(net.counts.bytes_received, PWI_NET_HEAD_SIZE + 10);
}

static void test_a_whole_body_is_one_piece(void **state) {
  (void)state;
  pawl_status why;
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, 8, &why));
  pwi_places_write(pwi_incoming_places(&incoming), "abc", 3);
  pwi_places_write(pwi_incoming_places(&incoming), "defgh", 5);
  assert_int_equal(heard.pieces, 0);
  end(PAWL_OK);
  assert_int_equal(heard.pieces, 1);
  assert_int_equal(heard.size, 8);
  assert_memory_equal(heard.bytes, "abcdefgh", 8);
}

/* Found by fuzzing: the piece of an empty body was a null pointer. */
static void test_an_empty_whole_body_is_one_piece_of_no_bytes(void **state) {
  (void)state;
  pawl_status why;
  for (unsigned i = 1; i <= 3; i++) {
    assert_true(begin(PWI_RECEIVE_WHOLE, NULL, 0, &why));
    heard.size = 99;
    heard.data = NULL;
    end(PAWL_OK);
    assert_int_equal(heard.pieces, i);
    assert_int_equal(heard.size, 0);
    assert_non_null(heard.data);
    assert_int_equal((uintptr_t)heard.data % PWI_NET_PIECE_ALIGN, 0);
  }
}

static void test_a_broken_whole_body_is_not_shown(void **state) {
  (void)state;
  pawl_status why;
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, 8, &why));
  end(PAWL_LINK_RESET);
  assert_int_equal(heard.pieces, 0);
  assert_int_equal(heard.status, PAWL_LINK_RESET);
  assert_int_equal(net.counts.messages_received, 0); /* nor counted */
  assert_int_equal(net.counts.bytes_received, 0);
}

static void test_an_actor_that_wants_no_messages_gets_none(void **state) {
  (void)state;
  static const struct pwi_actor deaf = {0};
  pawl_status why;
  net.actor = &deaf;
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, 8, &why));
  assert_null(pwi_incoming_places(&incoming));
  pwi_incoming_piece(&incoming, &net, a_link, "abcdefgh", 8);
  end(PAWL_OK);
  assert_int_equal(heard.messages + heard.pieces + heard.ends, 0);
}

static void test_a_body_goes_where_the_actor_wants_it(void **state) {
  (void)state;
  pawl_status why;
  char into[8];
  assert_true(begin(PWI_RECEIVE_INTO, into, sizeof into, &why));
  pwi_places_write(pwi_incoming_places(&incoming), "abcde", 5);
  pwi_places_write(pwi_incoming_places(&incoming), "fgh", 3);
  assert_memory_equal(into, "abcdefgh", 8);
  end(PAWL_OK);
  assert_int_equal(heard.pieces, 0);
  assert_int_equal(heard.status, PAWL_OK);
}

static void test_a_split_body_goes_to_two_places(void **state) {
  (void)state;
  static const uint8_t head[PWI_NET_HEAD_SIZE] = {'h'};
  const struct pwi_message about = {.head = head, .body_size = 8, .lane = PWI_LANE_DATA};
  pawl_status why;
  const char *body = "abcdefgh";
  char into[9], rest[9];
  for (size_t prefix = 0; prefix < 12; prefix++) {
    size_t first = prefix < 8 ? prefix : 8;
    memset(into, '.', sizeof into);
    memset(rest, '.', sizeof rest);
    heard.plan =
        (struct pwi_receive){.how = PWI_RECEIVE_SPLIT, .into = into, .prefix = prefix, .rest = rest, .context = &heard};
    assert_true(pwi_incoming_begin(&incoming, &net, a_link, &about, &why));
    pwi_places_write(pwi_incoming_places(&incoming), "abcde", 5);
    pwi_places_write(pwi_incoming_places(&incoming), "fgh", 3);
    end(PAWL_OK);
    assert_memory_equal(into, body, first);
    assert_memory_equal(rest, body + first, 8 - first);
    assert_int_equal(into[first], '.');
    assert_int_equal(rest[8 - first], '.');
  }
  assert_int_equal(heard.pieces, 0);
}

static void test_a_dropped_body_is_not_shown(void **state) {
  (void)state;
  pawl_status why;
  assert_true(begin(PWI_RECEIVE_DROP, NULL, 8, &why));
  assert_null(pwi_incoming_places(&incoming));
  pwi_incoming_piece(&incoming, &net, a_link, "abcdefgh", 8);
  end(PAWL_OK);
  assert_int_equal(heard.pieces, 0);
  assert_int_equal(heard.ends, 1);
}

static void test_a_refused_message_still_ends(void **state) {
  (void)state;
  pawl_status why = PAWL_OK;
  assert_false(begin(PWI_RECEIVE_REFUSE, NULL, 8, &why));
  assert_int_equal(why, PAWL_LINK_PROTOCOL);
  end(PAWL_LINK_PROTOCOL);
  assert_int_equal(heard.ends, 1);
}

static void test_no_memory_to_gather_refuses_the_message(void **state) {
  (void)state;
  pawl_status why = PAWL_OK;
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, 100, &why));
  end(PAWL_OK);
  pwi_memory_fail_after(0);
  assert_false(begin(PWI_RECEIVE_WHOLE, NULL, 1000, &why));
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_int_equal(why, PAWL_NO_MEMORY);
  end(why);
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, 10, &why)); /* and the old buffer is not believed to be there */
  pwi_places_write(pwi_incoming_places(&incoming), "xxxxxxxxxx", 10);
  end(PAWL_OK);
  assert_int_equal(heard.ends, 3);
}

static void test_a_buffer_is_kept_unless_it_is_large(void **state) {
  (void)state;
  pawl_status why;
  uint64_t live = pwi_memory_counts().live;
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, KEPT, &why));
  end(PAWL_OK);
  uint64_t allocations = pwi_memory_counts().allocations;
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, KEPT - 1, &why));
  end(PAWL_OK);
  assert_int_equal(pwi_memory_counts().allocations, allocations);
  assert_true(begin(PWI_RECEIVE_WHOLE, NULL, KEPT + 1, &why));
  end(PAWL_OK);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_pieces_are_handed_on_with_their_place, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_whole_body_is_one_piece, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_an_empty_whole_body_is_one_piece_of_no_bytes, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_broken_whole_body_is_not_shown, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_an_actor_that_wants_no_messages_gets_none, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_body_goes_where_the_actor_wants_it, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_split_body_goes_to_two_places, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_dropped_body_is_not_shown, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_refused_message_still_ends, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_no_memory_to_gather_refuses_the_message, make_incoming, drop_incoming),
      cmocka_unit_test_setup_teardown(test_a_buffer_is_kept_unless_it_is_large, make_incoming, drop_incoming),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
