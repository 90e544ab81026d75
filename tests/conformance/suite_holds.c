/* Holds: a data lane that is held delivers nothing and loses nothing, and all else goes on. */
#include "share.h"
#include "suite.h"

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)

/* `there` holds the data lane of `here`, or ends the hold. */
static void hold(struct pair *pair, bool is_on) {
  assert_status(PARTY_CALL(pair->there, pwi_net_hold(pair->there->net, pair->theirs->link, is_on)), PAWL_OK);
}

static void send(struct pair *pair, const struct packet *packet) {
  assert_status(party_send(pair->here, pair->ours, packet), PAWL_OK);
}

/* From here on no message begins: the peer has answered a message that was sent after the hold. */
static void settle(struct scene *scene, struct pair *pair) {
  uint64_t ours = pair->ours->in[PWI_LANE_LINK].whole, theirs = pair->theirs->in[PWI_LANE_LINK].whole;
  struct packet packet = {.lane = PWI_LANE_LINK, .size = 100};
  assert_status(party_send(pair->there, pair->theirs, &packet), PAWL_OK);
  SCENE_UNTIL(scene, pair->ours->in[PWI_LANE_LINK].whole == ours + 1);
  send(pair, &packet);
  SCENE_UNTIL(scene, pair->theirs->in[PWI_LANE_LINK].whole == theirs + 1 && !pair->theirs->in[PWI_LANE_DATA].open);
}

static uint64_t arrived(const struct pair *pair) { return pair->theirs->in[PWI_LANE_DATA].whole; }

/* Messages of all kinds: copied, borrowed, in pieces and whole, with and without spare memory. */
static void send_some(struct pair *pair, unsigned count) {
  static const size_t sizes[] = {0, 10, 4 * KB, 5 * KB, 60 * KB, 1000};
  for (unsigned i = 0; i < count; i++) {
    struct packet packet = {.lane = PWI_LANE_DATA,
                            .how = i % 2 ? PWI_RECEIVE_WHOLE : PWI_RECEIVE_PIECES,
                            .size = sizes[i % 6],
                            .spared = i % 5 == 4,
                            .quiet = i % 7 == 6};
    send(pair, &packet);
  }
}

static void test_a_held_lane_delivers_nothing_and_loses_nothing(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  send_some(&pair, 20);
  hold(&pair, true);
  settle(scene, &pair);
  assert_true(pair.ours->is_held);
  uint64_t before = arrived(&pair);
  send_some(&pair, 60);
  scene_idle(scene, 20 * WORLD_MS);
  settle(scene, &pair);
  assert_int_equal(arrived(&pair), before);
  assert_false(pair.theirs->in[PWI_LANE_DATA].open);
  hold(&pair, false);
  SCENE_UNTIL(scene, arrived(&pair) == 80 && pair.ours->outstanding == 0 && !pair.ours->is_held);
}

static void test_a_hold_before_the_first_message_stops_it(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  hold(&pair, true);
  settle(scene, &pair);
  send_some(&pair, 12);
  scene_idle(scene, 10 * WORLD_MS);
  assert_int_equal(arrived(&pair), 0);
  hold(&pair, false);
  SCENE_UNTIL(scene, arrived(&pair) == 12 && pair.ours->outstanding == 0);
}

/* Neither side takes the other for silent, although the sender's queue is full; the link lane has room. */
static void test_the_link_lane_and_heartbeats_go_on(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.silence_ns = 1000 * WORLD_MS;
  limits.queue_bytes = MB;
  struct pair pair = scene_pair(scene, &limits);
  hold(&pair, true);
  settle(scene, &pair);
  struct packet packet = {.lane = PWI_LANE_DATA, .size = 50 * KB};
  uint64_t taken = 0;
  while (party_send(pair.here, pair.ours, &packet) == PAWL_OK) taken++;
  assert_in_range(taken, 1, 100);
  assert_status(party_send(pair.here, pair.ours, &packet), PAWL_QUEUE_FULL);
  for (int i = 0; i < 5; i++) {
    scene_idle(scene, 500 * WORLD_MS);
    settle(scene, &pair);
  }
  assert_int_equal(arrived(&pair), 0);
  assert_int_equal(pair.ours->writables, 0);
  hold(&pair, false);
  SCENE_UNTIL(scene, arrived(&pair) == taken && pair.ours->writables == 1 && pair.ours->outstanding == 0);
}

static void test_the_other_direction_goes_on(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  hold(&pair, true);
  settle(scene, &pair);
  send_some(&pair, 3);
  struct packet packet = {.lane = PWI_LANE_DATA, .size = 50 * KB};
  for (int i = 0; i < 10; i++) assert_status(party_send(pair.there, pair.theirs, &packet), PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->in[PWI_LANE_DATA].whole == 10 && pair.theirs->outstanding == 0);
  assert_int_equal(arrived(&pair), 0);
  assert_status(PARTY_CALL(pair.here, pwi_net_hold(pair.here->net, pair.ours->link, true)), PAWL_OK);
  SCENE_UNTIL(scene, pair.theirs->is_held);
  hold(&pair, false);
  SCENE_UNTIL(scene, arrived(&pair) == 3 && pair.ours->outstanding == 0);
  assert_true(pair.theirs->is_held);
}

static void hold_in_callback(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  if (event != *(enum party_event *)party->context || value != 77) return;
  party->inside_callback = false;
  pawl_status status = PARTY_CALL(party, pwi_net_hold(party->net, link->link, true));
  party->inside_callback = true;
  if (status) party_fault(party, "a hold inside a callback failed");
}

/* The message that is arriving continues to its end; those behind it wait. */
static void test_a_hold_in_the_middle_of_a_message(void **state) {
  struct scene *scene = *state;
  static enum party_event moments[] = {PARTY_ON_MESSAGE, PARTY_ON_PIECE, PARTY_ON_END};
  struct pair pair = scene_pair(scene, NULL);
  for (size_t i = 0; i < 3; i++) {
    pair.there->context = &moments[i];
    pair.there->hook = hold_in_callback;
    uint64_t before = arrived(&pair);
    struct packet packet = {.lane = PWI_LANE_DATA, .how = PWI_RECEIVE_PIECES, .size = 3 * MB, .value = 77};
    send(&pair, &packet);
    SCENE_UNTIL(scene, pair.ours->is_held);
    pair.there->hook = NULL;
    settle(scene, &pair);
    SCENE_UNTIL(scene, arrived(&pair) == before + 1);
    send_some(&pair, 5);
    settle(scene, &pair);
    assert_int_equal(arrived(&pair), before + 1);
    hold(&pair, false);
    SCENE_UNTIL(scene, arrived(&pair) == before + 6 && pair.ours->outstanding == 0 && !pair.ours->is_held);
  }
}

static void test_one_sided_operations_go_on(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, MB, PWI_ACCESS_WRITE | PWI_ACCESS_READ);
  static uint8_t into[1000];
  pawl_status status;
  assert_true(share_put(&pair, &share, 1, 0, MB, 5, &status));
  hold(&pair, true); /* in the middle of the put */
  settle(scene, &pair);
  assert_true(share_put(&pair, &share, 2, 0, MB, 6, &status));
  share_fence(&pair);
  send_some(&pair, 2);
  share_get(&pair, &share, 0, into, sizeof into);
  SCENE_UNTIL(scene, share_holds(&share, 2, 0, MB) && pair.theirs->in[PWI_LANE_DATA].whole == 0);
  hold(&pair, false);
  SCENE_UNTIL(scene, pair.theirs->notifications == 2 && arrived(&pair) == 2 && pair.ours->outstanding == 0);
  share_close(&pair, &share);
}

/* Holds in any rhythm, while messages of any size are under way. */
static void test_holds_at_any_moment_keep_the_order(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  bool is_on = false;
  uint64_t sent = 0;
  for (int i = 0; i < 150; i++) {
    unsigned choice = (unsigned)pwi_random_below(&pair.here->random, 4);
    if (choice == 0) hold(&pair, is_on = !is_on);
    if (choice == 1) {
      send(&pair, &(struct packet){.lane = PWI_LANE_DATA, .how = PWI_RECEIVE_PIECES, .size = 300 * KB});
      sent++;
    }
    if (choice == 2) {
      send_some(&pair, 5);
      sent += 5;
    }
    scene_step(scene, scene_now(scene) + SCENE_PATIENCE, "steps");
  }
  hold(&pair, false);
  SCENE_UNTIL(scene, arrived(&pair) == sent && pair.ours->outstanding == 0);
}

static void test_what_is_held_arrives_before_the_sender_closes(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  send_some(&pair, 10);
  hold(&pair, true);
  settle(scene, &pair);
  send_some(&pair, 30);
  party_close(pair.here, pair.ours, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  assert_int_equal(arrived(&pair), 40);
  assert_status(pair.theirs->why, PAWL_LINK_CLOSED);
  assert_int_equal(pair.ours->outstanding, 0);
}

static void test_the_side_that_holds_may_close(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  hold(&pair, true);
  settle(scene, &pair);
  send_some(&pair, 30);
  party_close(pair.there, pair.theirs, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  assert_int_equal(arrived(&pair), 0);
  assert_int_equal(pair.ours->outstanding, 0);
}

static void test_a_hold_ends_with_the_link(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  hold(&pair, true);
  settle(scene, &pair);
  send_some(&pair, 30);
  party_kill(pair.there);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
  assert_int_equal(pair.ours->outstanding, 0);
  assert_status(PARTY_CALL(pair.here, pwi_net_hold(pair.here->net, pair.ours->link, true)), PAWL_NOT_FOUND);
}

/* As for any body that is still to be sent: net.h says what becomes of the link. */
static void test_a_region_with_a_held_body_may_be_closed(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_region *region = NULL;
  assert_status(PARTY_CALL(pair.here, pwi_net_region_open(pair.here->net, MB, &region)), PAWL_OK);
  hold(&pair, true);
  settle(scene, &pair);
  send(&pair, &(struct packet){.lane = PWI_LANE_DATA, .size = 100 * KB, .region = region});
  party_call_begin(pair.here);
  pwi_net_region_close(pair.here->net, region);
  party_call_end(pair.here, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  assert_status(pair.ours->why, PAWL_CANCELLED);
  assert_int_equal(pair.ours->outstanding, 0);
}

static void test_the_same_hold_twice_is_one(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  hold(&pair, false);
  hold(&pair, true);
  hold(&pair, true);
  settle(scene, &pair);
  assert_int_equal(pair.ours->holds, 1);
  hold(&pair, false);
  SCENE_UNTIL(scene, !pair.ours->is_held);
  assert_int_equal(pair.ours->holds, 1);
  struct pwi_link nobody = {.id = pair.theirs->link.id + 12345};
  assert_status(PARTY_CALL(pair.there, pwi_net_hold(pair.there->net, nobody, true)), PAWL_NOT_FOUND);
}

int suite_holds(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_held_lane_delivers_nothing_and_loses_nothing),
      SCENE_TEST(test_a_hold_before_the_first_message_stops_it),
      SCENE_TEST(test_the_link_lane_and_heartbeats_go_on),
      SCENE_TEST(test_the_other_direction_goes_on),
      SCENE_TEST(test_a_hold_in_the_middle_of_a_message),
      SCENE_TEST(test_one_sided_operations_go_on),
      SCENE_TEST(test_holds_at_any_moment_keep_the_order),
      SCENE_TEST(test_what_is_held_arrives_before_the_sender_closes),
      SCENE_TEST(test_the_side_that_holds_may_close),
      SCENE_TEST(test_a_hold_ends_with_the_link),
      SCENE_TEST(test_a_region_with_a_held_body_may_be_closed),
      SCENE_TEST(test_the_same_hold_twice_is_one),
  };
  return cmocka_run_group_tests_name("holds", tests, NULL, NULL);
}
