/* Messages: order, content, the ways of receiving, and whose memory a body is. */
#include "base/memory.h"
#include "scene.h"
#include "suite.h"

#define MB ((size_t)1 << 20)

static size_t any_size(struct pwi_random *random) {
  static const size_t tops[] = {0, 1, 64, 500, 4096, 4097, 20000, 20000, 65536, 65536, 300000};
  size_t top = tops[pwi_random_below(random, sizeof tops / sizeof *tops)];
  if (pwi_random_chance(random, 0.01)) top = 3 * MB;
  return (size_t)pwi_random_below(random, top + 1);
}

static struct packet any_packet(struct pwi_random *random) {
  static const enum pwi_receive_how hows[] = {PWI_RECEIVE_PIECES, PWI_RECEIVE_WHOLE, PWI_RECEIVE_INTO,
                                              PWI_RECEIVE_SPLIT, PWI_RECEIVE_DROP};
  return (struct packet){
      .lane = pwi_random_chance(random, 0.5) ? PWI_LANE_DATA : PWI_LANE_LINK,
      .how = hows[pwi_random_below(random, sizeof hows / sizeof *hows)],
      .size = any_size(random),
      .parts = (unsigned)pwi_random_below(random, PWI_NET_IOV_MAX + 1),
      .prefix = any_size(random),
      .spared = pwi_random_chance(random, 0.2),
  };
}

/* Sends until `total` messages are given away or the queue is full. */
static void send_some(struct party *party, struct party_link *link, uint64_t total) {
  while (link->sent[0] + link->sent[1] < total) {
    struct pwi_random before = party->random;
    struct packet packet = any_packet(&party->random);
    pawl_status status = party_send(party, link, &packet);
    if (status == PAWL_OK) continue;
    party->random = before; /* the same packet again, later */
    if (status != PAWL_QUEUE_FULL) party_fault(party, "send: %s", pawl_status_name(status));
    return;
  }
}

#define STREAM 1500

static void stream_on(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)value;
  if (event == PARTY_ON_WRITABLE) send_some(party, link, STREAM);
}

static void test_messages_keep_their_order_and_content_while_both_sides_stream(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = 4 * MB; /* both queues are full most of the time: nobody may wait for the other */
  struct pair pair = scene_pair(scene, &limits);
  pair.here->hook = pair.there->hook = stream_on;
  send_some(pair.here, pair.ours, STREAM);
  send_some(pair.there, pair.theirs, STREAM);
  SCENE_UNTIL(scene, pair.ours->in[0].whole + pair.ours->in[1].whole == STREAM &&
                         pair.theirs->in[0].whole + pair.theirs->in[1].whole == STREAM && pair.ours->outstanding == 0 &&
                         pair.theirs->outstanding == 0);
  assert_true(pair.ours->writables > 0 && pair.theirs->writables > 0);
  assert_int_equal(pair.ours->failed + pair.theirs->failed, 0);
  for (int lane = 0; lane < 2; lane++) {
    assert_int_equal(pair.theirs->in[lane].whole, pair.ours->sent[lane]);
    assert_int_equal(pair.ours->in[lane].whole, pair.theirs->sent[lane]);
  }
}

static void receive_each_size(struct scene *scene, enum pwi_receive_how how) {
  static const size_t sizes[] = {0,    1,    15,   16,   63,    64,    65,    100,    1000,   4032,
                                 4095, 4096, 4097, 8191, 65535, 65536, 65537, 262145, MB - 1, 3 * MB + 5};
  struct pair pair = scene_pair(scene, NULL);
  size_t count = sizeof sizes / sizeof *sizes, bytes = 0;
  for (int lane = 0; lane < 2; lane++) {
    for (size_t i = 0; i < count; i++) {
      struct packet packet = {.lane = (enum pwi_lane)lane, .how = how, .size = sizes[i]};
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
      bytes += lane == 0 ? sizes[i] : 0;
    }
  }
  SCENE_UNTIL(scene,
              pair.theirs->in[0].whole == count && pair.theirs->in[1].whole == count && pair.ours->outstanding == 0);
  assert_int_equal(pair.theirs->in[0].bytes, bytes);
  assert_int_equal(pair.theirs->in[1].bytes, bytes);
}

/* The actor checks what the names say; see check_piece, check_whole and check_place there. */
static void test_pieces_are_aligned_contiguous_and_complete(void **state) {
  receive_each_size(*state, PWI_RECEIVE_PIECES);
}

static void test_a_whole_body_is_one_piece(void **state) { receive_each_size(*state, PWI_RECEIVE_WHOLE); }

static void test_a_body_is_written_where_it_is_wanted(void **state) { receive_each_size(*state, PWI_RECEIVE_INTO); }

static void test_a_dropped_body_shows_no_piece(void **state) { receive_each_size(*state, PWI_RECEIVE_DROP); }

static void refuse_on(struct scene *scene, enum pwi_lane lane, size_t size) {
  struct pair pair = scene_pair(scene, NULL);
  struct packet good = {.lane = lane, .size = 3000}, bad = {.lane = lane, .size = size, .how = PWI_RECEIVE_REFUSE};
  assert_status(party_send(pair.here, pair.ours, &good), PAWL_OK);
  assert_status(party_send(pair.here, pair.ours, &bad), PAWL_OK);
  assert_status(party_send(pair.here, pair.ours, &good), PAWL_OK);
  SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN && pair.ours->state == PARTY_DOWN);
  assert_status(pair.theirs->why, PAWL_LINK_PROTOCOL);
  if (pair.ours->why != PAWL_LINK_RESET) assert_status(pair.ours->why, PAWL_LINK_PROTOCOL);
  assert_int_equal(pair.theirs->in[lane].whole, 1);
  assert_int_equal(pair.theirs->in[lane].next, 2); /* the third was not delivered */
}

static void test_a_refused_message_takes_the_link_down(void **state) {
  static const size_t sizes[] = {0, 100, 5000, 2 * MB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int lane = 0; lane < 2; lane++) refuse_on(*state, (enum pwi_lane)lane, sizes[i]);
}

static void test_a_scatter_list_has_up_to_sixteen_parts(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  uint64_t sent = 0;
  for (unsigned parts = 0; parts <= PWI_NET_IOV_MAX; parts++) {
    static const size_t sizes[] = {0, 3, 1000, 4096, 4097, 100001, MB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, sent += 2) {
      struct packet packet = {.size = sizes[i], .parts = parts, .how = PWI_RECEIVE_PIECES};
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
      packet.lane = PWI_LANE_DATA;
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    }
  }
  SCENE_UNTIL(scene, pair.theirs->in[0].whole + pair.theirs->in[1].whole == sent && pair.ours->outstanding == 0);

  uint8_t head[PWI_NET_HEAD_SIZE] = {0}, byte = 0;
  struct iovec too_many[PWI_NET_IOV_MAX + 1];
  for (size_t i = 0; i <= PWI_NET_IOV_MAX; i++) too_many[i] = (struct iovec){&byte, 1};
  struct pwi_send send = {.head = head, .body = too_many, .body_count = PWI_NET_IOV_MAX + 1};
  assert_status(PARTY_CALL(pair.here, pwi_net_send(pair.here->net, pair.ours->link, &send)), PAWL_INVALID);
}

/* party_send overwrites the last part at once. Together the messages are more than a socket takes. */
static void test_the_last_part_may_change_at_once_if_it_has_spare_memory(void **state) {
  static const size_t sizes[] = {4097, 100001, MB, 3 * MB + 5};
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  uint64_t sent = 0;
  for (unsigned parts = 0; parts <= 3; parts += 3) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, sent += 4) {
      struct packet packet = {.size = sizes[i], .parts = parts, .how = PWI_RECEIVE_PIECES, .spared = true};
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
      packet.lane = PWI_LANE_DATA;
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
      packet.spared = false;
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
      packet.lane = PWI_LANE_LINK;
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    }
  }
  SCENE_UNTIL(scene, pair.theirs->in[0].whole + pair.theirs->in[1].whole == sent && pair.ours->outstanding == 0);
}

static void test_every_cookie_is_done_once_and_none_without_one(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  uint64_t with = 0;
  for (unsigned i = 0; i < 200; i++) {
    struct packet packet = {.lane = i & 1 ? PWI_LANE_DATA : PWI_LANE_LINK, .quiet = i & 2, .size = 61 * (i / 4 * 4)};
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    with += !packet.quiet;
  }
  SCENE_UNTIL(scene, pair.theirs->in[0].whole + pair.theirs->in[1].whole == 200 && pair.ours->outstanding == 0);
  scene_idle(scene, 20 * WORLD_MS); /* the actor would fault on another done */
  assert_int_equal(pair.ours->done, with);
}

static void send_when_up(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)value;
  if (event != PARTY_ON_UP) return;
  for (int lane = 0; lane < 2; lane++) {
    for (size_t i = 0; i < 20; i++) {
      struct packet packet = {.lane = (enum pwi_lane)lane, .size = i * 997};
      if (party_send(party, link, &packet) != PAWL_OK) party_fault(party, "cannot send in link_up");
    }
  }
}

static void test_a_link_may_be_used_as_soon_as_it_is_up(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  here->hook = there->hook = send_when_up;
  struct pair pair = scene_join(scene, here, there);
  SCENE_UNTIL(scene, pair.ours->in[0].whole == 20 && pair.ours->in[1].whole == 20 && pair.theirs->in[0].whole == 20 &&
                         pair.theirs->in[1].whole == 20);
}

/* Answers each message of value n > 0 with one of n - 1. */
static void answer(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  if (event != PARTY_ON_END || value == 0) return;
  struct packet packet = {
      .lane = value % 2 ? PWI_LANE_LINK : PWI_LANE_DATA,
      .size = value % 8 < 2 ? 100000 : value % 8,
      .how = (enum pwi_receive_how)(value / 8 % 2), /* in pieces or whole */
      .value = value - 1,
  };
  if (party_send(party, link, &packet) != PAWL_OK) party_fault(party, "cannot answer in message_end");
}

static void play(struct scene *scene, struct pair *pair, uint64_t rounds) {
  struct packet first = {.value = rounds};
  uint64_t end = pair->ours->sent[0] + pair->ours->sent[1] + pair->theirs->sent[0] + pair->theirs->sent[1] + rounds + 1;
  assert_status(party_send(pair->here, pair->ours, &first), PAWL_OK);
  SCENE_UNTIL(
      scene,
      pair->ours->in[0].whole + pair->ours->in[1].whole + pair->theirs->in[0].whole + pair->theirs->in[1].whole == end);
}

static void test_a_message_may_be_answered_from_inside_the_callback(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  pair.here->hook = pair.there->hook = answer;
  play(scene, &pair, 500);
}

static void test_once_warm_sending_and_receiving_allocate_nothing(void **state) {
  struct scene *scene = *state;
  if (!(scene_kind->traits & WORLD_STEADY)) skip();
  struct pair pair = scene_pair(scene, NULL);
  pair.here->hook = pair.there->hook = answer;
  play(scene, &pair, 1000);
  uint64_t before = pwi_memory_counts().allocations;
  play(scene, &pair, 1000);
  assert_int_equal(pwi_memory_counts().allocations - before, 0);
}

static void test_once_warm_streaming_allocates_nothing(void **state) {
  struct scene *scene = *state;
  if (!(scene_kind->traits & WORLD_STEADY)) skip();
  struct pair pair = scene_pair(scene, NULL);
  uint64_t before = 0;
  for (int round = 0; round < 4; round++) {
    if (round == 2) before = pwi_memory_counts().allocations;
    for (size_t i = 0; i < 100; i++) {
      struct packet packet = {.lane = i % 2 ? PWI_LANE_LINK : PWI_LANE_DATA, .size = i % 10 ? 50 * i : MB, .parts = 3};
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    }
    SCENE_UNTIL(scene, pair.theirs->in[0].whole + pair.theirs->in[1].whole == 100 * (uint64_t)(round + 1) &&
                           pair.ours->outstanding == 0);
  }
  assert_int_equal(pwi_memory_counts().allocations - before, 0);
}

static void test_three_nodes_talk_in_a_ring(void **state) {
  struct scene *scene = *state;
  struct party *nodes[3];
  struct pair pairs[3];
  for (unsigned i = 0; i < 3; i++) nodes[i] = scene_listener(scene, i, NULL);
  for (unsigned i = 0; i < 3; i++) pairs[i] = scene_join(scene, nodes[i], nodes[(i + 1) % 3]);
  for (unsigned i = 0; i < 3; i++) send_some(nodes[i], pairs[i].ours, 200);
  for (unsigned i = 0; i < 3; i++)
    SCENE_UNTIL(scene, pairs[i].theirs->in[0].whole + pairs[i].theirs->in[1].whole ==
                           pairs[i].ours->sent[0] + pairs[i].ours->sent[1]);
}

int suite_messages(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_messages_keep_their_order_and_content_while_both_sides_stream),
      SCENE_TEST(test_pieces_are_aligned_contiguous_and_complete),
      SCENE_TEST(test_a_whole_body_is_one_piece),
      SCENE_TEST(test_a_body_is_written_where_it_is_wanted),
      SCENE_TEST(test_a_dropped_body_shows_no_piece),
      SCENE_TEST(test_a_refused_message_takes_the_link_down),
      SCENE_TEST(test_a_scatter_list_has_up_to_sixteen_parts),
      SCENE_TEST(test_the_last_part_may_change_at_once_if_it_has_spare_memory),
      SCENE_TEST(test_every_cookie_is_done_once_and_none_without_one),
      SCENE_TEST(test_a_link_may_be_used_as_soon_as_it_is_up),
      SCENE_TEST(test_a_message_may_be_answered_from_inside_the_callback),
      SCENE_TEST(test_once_warm_sending_and_receiving_allocate_nothing),
      SCENE_TEST(test_once_warm_streaming_allocates_nothing),
      SCENE_TEST(test_three_nodes_talk_in_a_ring),
  };
  return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
