/* Closing and dying: what still arrives, what fails, in which order. */
#include <string.h>

#include "share.h"
#include "suite.h"

#define MB ((size_t)1 << 20)

static void send_mix(struct pair *pair, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct packet packet = {
        .lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK,
        .size = i % 7 == 0 ? 300000 : i * 53,
        .how = (enum pwi_receive_how)(i % 4),
        .parts = (unsigned)(i % 5),
    };
    assert_status(party_send(pair->here, pair->ours, &packet), PAWL_OK);
  }
}

static bool both_down(const struct pair *pair) {
  return pair->ours->state == PARTY_DOWN && pair->theirs->state == PARTY_DOWN;
}

static void test_a_graceful_close_delivers_all_that_was_queued(void **state) {
  struct scene *scene = *state;
  for (int closing = 0; closing < 2; closing++) { /* once by the one that connected, once by the one that accepted */
    struct pair pair = scene_pair(scene, NULL);
    if (closing == 1)
      pair = (struct pair){.here = pair.there, .there = pair.here, .ours = pair.theirs, .theirs = pair.ours};
    send_mix(&pair, 300);
    party_close(pair.here, pair.ours, PAWL_OK);
    SCENE_UNTIL(scene, both_down(&pair));
    assert_status(pair.ours->why, PAWL_OK);
    assert_status(pair.theirs->why, PAWL_LINK_CLOSED);
    assert_int_equal(pair.theirs->in[PWI_LANE_LINK].whole, 150);
    assert_int_equal(pair.theirs->in[PWI_LANE_DATA].whole, 150);
    assert_int_equal(pair.ours->done, 300);
    assert_int_equal(pair.ours->failed, 0);
  }
}

static void test_a_graceful_close_lets_puts_land(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 4 * MB, PWI_ACCESS_WRITE);
  pawl_status status;
  for (uint64_t i = 0; i < 4; i++) {
    share_put(&pair, &share, 11, i * MB, MB, i + 1, &status);
    assert_status(status, PAWL_OK);
  }
  party_close(pair.here, pair.ours, PAWL_OK);
  SCENE_UNTIL(scene, both_down(&pair));
  assert_int_equal(pair.ours->done, 4);
  assert_int_equal(pair.theirs->notifications, 4);
  assert_true(share_holds(&share, 11, 0, 4 * MB));
  share_close(&pair, &share);
}

static void test_the_peer_is_told_why(void **state) {
  struct scene *scene = *state;
  static const pawl_status reasons[] = {PAWL_NODE_STOPPED, PAWL_FORBIDDEN, PAWL_LINK_VERSION, PAWL_CANCELLED};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    struct pair pair = scene_pair(scene, NULL);
    send_mix(&pair, 20);
    party_close(pair.here, pair.ours, reasons[i]);
    SCENE_UNTIL(scene, both_down(&pair));
    assert_status(pair.theirs->why, reasons[i]);
    assert_status(pair.ours->why, PAWL_OK);
    assert_int_equal(pair.theirs->in[0].whole + pair.theirs->in[1].whole, 20);
  }
}

static void test_nothing_can_be_sent_after_closing(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct packet packet = {.size = 100000};
  assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  party_close(pair.here, pair.ours, PAWL_OK);
  assert_status(party_send(pair.here, pair.ours, &packet), PAWL_NOT_FOUND);
  party_close(pair.here, pair.ours, PAWL_FORBIDDEN); /* the first counts */
  SCENE_UNTIL(scene, both_down(&pair));
  assert_status(pair.theirs->why, PAWL_LINK_CLOSED);
  assert_int_equal(pair.theirs->in[0].whole, 1);
}

static void test_what_arrives_after_closing_is_dropped(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pair back = {.here = pair.there, .there = pair.here, .ours = pair.theirs, .theirs = pair.ours};
  send_mix(&back, 200);
  SCENE_UNTIL(scene, pair.ours->in[0].whole + pair.ours->in[1].whole > 0);
  party_close(pair.here, pair.ours, PAWL_OK); /* the actor would fault on another message */
  SCENE_UNTIL(scene, both_down(&pair));
  assert_status(pair.ours->why, PAWL_OK);
}

static void test_both_may_close_at_once(void **state) {
  struct scene *scene = *state;
  for (int i = 0; i < 10; i++) {
    struct pair pair = scene_pair(scene, NULL);
    send_mix(&pair, (size_t)i);
    party_close(pair.here, pair.ours, PAWL_OK);
    party_close(pair.there, pair.theirs, PAWL_OK);
    SCENE_UNTIL(scene, both_down(&pair));
    if (pair.ours->why != PAWL_LINK_CLOSED) assert_status(pair.ours->why, PAWL_OK);
    if (pair.theirs->why != PAWL_LINK_CLOSED) assert_status(pair.theirs->why, PAWL_OK);
  }
}

static void test_a_link_may_be_closed_before_it_is_up(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  struct party_link *link;
  for (int steps = 0; steps < 6; steps++) {
    assert_status(party_connect(here, there->address, &link), PAWL_OK);
    for (int i = 0; i < steps; i++) scene_step(scene, INT64_MAX, "");
    party_close(here, link, PAWL_OK);
    SCENE_UNTIL(scene, link->state == PARTY_DOWN && party_up_count(there) == 0);
    if (!link->was_up) assert_status(link->why, PAWL_OK);
  }
  scene_idle(scene, 20 * WORLD_MS);
  assert_int_equal(party_up_count(there), 0);
}

static void close_in(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)value;
  enum party_event *when = party->context;
  if (event == *when && link && link->state == PARTY_UP && !link->closing) party_close(party, link, PAWL_OK);
}

static void test_a_link_may_be_closed_inside_any_callback(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  static enum party_event moments[] = {PARTY_ON_UP,  PARTY_ON_MESSAGE, PARTY_ON_PIECE,
                                       PARTY_ON_END, PARTY_ON_DONE,    PARTY_ON_NOTIFIED};
  for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
    struct party *closer = moments[i] == PARTY_ON_DONE ? here : there;
    struct pair pair;
    if (moments[i] != PARTY_ON_UP) pair = scene_join(scene, here, there);
    closer->context = &moments[i];
    closer->hook = close_in;
    if (moments[i] == PARTY_ON_UP) {
      pair.here = here;
      assert_status(party_connect(here, there->address, &pair.ours), PAWL_OK);
    } else if (moments[i] == PARTY_ON_NOTIFIED) {
      struct share share = share_open(&pair, 10, PWI_ACCESS_WRITE);
      pawl_status status;
      share_put(&pair, &share, 1, 0, 10, 1, &status);
    } else {
      struct packet packet = {.lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, .size = 400000};
      for (int n = 0; n < 5; n++) assert_status(party_send(here, pair.ours, &packet), PAWL_OK);
    }
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && party_up_count(there) == 0);
    closer->hook = NULL;
  }
}

static void test_a_graceful_close_does_not_wait_for_ever(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.linger_ns = 100 * WORLD_MS;
  struct pair pair = scene_pair(scene, &limits);
  struct packet packet = {.size = 48 * MB, .how = PWI_RECEIVE_DROP};
  assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  scene_kind->pause(scene->world, 1, true);
  party_close(pair.here, pair.ours, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
  assert_int_not_equal(pair.ours->why, PAWL_OK);
  assert_int_equal(pair.ours->failed, 1);
  scene_kind->pause(scene->world, 1, false);
  SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN);
}

static void test_when_the_peer_dies_all_that_is_outstanding_fails_first(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 4 * MB, PWI_ACCESS_READ | PWI_ACCESS_WRITE);
  static uint8_t into[MB];
  pawl_status status;
  for (int i = 0; i < 20; i++) {
    struct packet packet = {.lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, .size = 2 * MB};
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    share_put(&pair, &share, 1, 0, MB, 0, &status);
    assert_status(status, PAWL_OK);
  }
  share_get(&pair, &share, 0, into, sizeof into);
  share_fence(&pair);
  for (int i = 0; i < 3; i++) scene_step(scene, INT64_MAX, "");
  uint64_t begun = pair.ours->done + pair.ours->outstanding;
  party_kill(pair.there);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN); /* the actor checks the order */
  assert_int_equal(pair.ours->done + pair.ours->failed, begun);
  assert_true(pair.ours->failed > 0);
  assert_string_equal(pawl_status_group(pair.ours->why), "link");
  assert_int_not_equal(pair.ours->why, PAWL_LINK_CLOSED);
}

static void test_a_message_cut_short_by_death_ends_with_an_error(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = 256 * MB;
  struct pair pair = scene_pair(scene, &limits);
  for (int round = 0; round < 4; round++) {
    struct packet packet = {
        .lane = round % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, .size = 64 * MB, .how = PWI_RECEIVE_PIECES};
    struct party_stream *in = &pair.theirs->in[packet.lane];
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    if (round < 2)
      SCENE_UNTIL(scene, in->open || in->whole == 1);
    else
      SCENE_UNTIL(scene, in->offset > 0 || in->whole == 1);
    uint64_t whole = in->whole;
    party_kill(pair.here);
    SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN);
    assert_int_equal(in->whole + in->broken, 1);
    assert_true(in->whole >= whole);
    pair = scene_pair(scene, &limits);
  }
}

static void test_destroying_a_net_with_everything_under_way_is_clean(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 8; steps++) {
    struct pair pair = scene_pair(scene, NULL);
    struct pair back = {.here = pair.there, .there = pair.here, .ours = pair.theirs, .theirs = pair.ours};
    struct share share = share_open(&pair, MB, PWI_ACCESS_READ | PWI_ACCESS_WRITE);
    pawl_status status;
    struct pwi_timer timer;
    struct party_link *link;
    assert_status(pwi_net_timer_set(pair.here->net, pwi_net_now(pair.here->net) + WORLD_MS, 1, &timer), PAWL_OK);
    assert_status(party_connect(pair.here, pair.there->address, &link), PAWL_OK);
    share_put(&pair, &share, 5, 0, MB, 5, &status);
    assert_status(status, PAWL_OK);
    send_mix(&pair, 50);
    send_mix(&back, 50);
    if (steps % 2) party_close(pair.here, pair.ours, PAWL_OK);
    for (int i = 0; i < steps; i++) scene_step(scene, INT64_MAX, "");
    if (steps % 3 == 2) party_kill(pair.there);
    party_kill(pair.here);
    if (pair.there->net) SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN && party_up_count(pair.there) == 0);
    party_kill(pair.there);
  }
}

static void stream_on(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)value;
  if (event != PARTY_ON_UP && event != PARTY_ON_DONE) return;
  while (link->state == PARTY_UP && link->outstanding < 4) {
    struct packet packet = {.lane = link->sent[0] > link->sent[1] ? PWI_LANE_DATA : PWI_LANE_LINK, .size = MB};
    if (party_send(party, link, &packet) != PAWL_OK) return;
  }
}

static void test_a_restarted_peer_can_be_reached_at_once(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  here->hook = stream_on;
  for (int round = 0; round < 10; round++) {
    there->hook = stream_on;
    struct pair pair = scene_join(scene, here, there);
    SCENE_UNTIL(scene, pair.theirs->in[0].whole > 2 && pair.ours->in[0].whole > 2);
    char address[PWI_NET_ADDRESS_MAX];
    memcpy(address, there->address, sizeof address);
    party_kill(there);
    assert_status(party_open(there, scene->world, 1, NULL, &party_actor), PAWL_OK);
    assert_status(party_listen(there, 0, address), PAWL_OK);
    assert_string_equal(there->address, address);
    if (round % 2) SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
  }
  SCENE_UNTIL(scene, party_up_count(here) == 0);
}

static void test_a_close_by_a_killed_peers_survivor_ends_in_any_case(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  send_mix(&pair, 50);
  party_kill(pair.there);
  party_close(pair.here, pair.ours, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
}

int suite_closing(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_graceful_close_delivers_all_that_was_queued),
      SCENE_TEST(test_a_graceful_close_lets_puts_land),
      SCENE_TEST(test_the_peer_is_told_why),
      SCENE_TEST(test_nothing_can_be_sent_after_closing),
      SCENE_TEST(test_what_arrives_after_closing_is_dropped),
      SCENE_TEST(test_both_may_close_at_once),
      SCENE_TEST(test_a_link_may_be_closed_before_it_is_up),
      SCENE_TEST(test_a_link_may_be_closed_inside_any_callback),
      SCENE_TEST(test_a_graceful_close_does_not_wait_for_ever),
      SCENE_TEST(test_when_the_peer_dies_all_that_is_outstanding_fails_first),
      SCENE_TEST(test_a_message_cut_short_by_death_ends_with_an_error),
      SCENE_TEST(test_destroying_a_net_with_everything_under_way_is_clean),
      SCENE_TEST(test_a_restarted_peer_can_be_reached_at_once),
      SCENE_TEST(test_a_close_by_a_killed_peers_survivor_ends_in_any_case),
  };
  return cmocka_run_group_tests_name("closing", tests, NULL, NULL);
}
