/* Limits: bounded queues and back-pressure, sizes, numbers of links. */
#include "share.h"
#include "suite.h"

#define MB ((size_t)1 << 20)
#define KB ((size_t)1 << 10)

/* Send without letting the world move until the queue is full; returns how many were taken. Sockets may take some at
 * once and do not count. */
static uint64_t fill_queue(struct pair *pair, const struct packet *packet, uint64_t at_most) {
  for (uint64_t taken = 0; taken < at_most; taken++) {
    pawl_status status = party_send(pair->here, pair->ours, packet);
    if (status == PAWL_OK) continue;
    assert_status(status, PAWL_QUEUE_FULL);
    return taken;
  }
  fail_msg("the queue was not full after %llu messages", (unsigned long long)at_most);
  return 0;
}

/* A full queue refuses, changes nothing, says `writable` once, and loses nothing: the receiver checks the numbers. */
static void fill_and_drain(struct scene *scene, const struct pwi_net_limits *limits, const struct packet *packet) {
  struct pair pair = scene_pair(scene, limits);
  uint64_t sent = 0;
  for (int round = 0; round < 3; round++) {
    sent += fill_queue(&pair, packet, 100000);
    assert_status(party_send(pair.here, pair.ours, packet), PAWL_QUEUE_FULL);
    SCENE_UNTIL(scene, pair.ours->writables == (uint64_t)round + 1);
    assert_status(party_send(pair.here, pair.ours, packet), PAWL_OK);
    sent++;
    SCENE_UNTIL(scene, pair.theirs->in[packet->lane].whole == sent && pair.ours->outstanding == 0);
    scene_idle(scene, 5 * WORLD_MS);
    assert_int_equal(pair.ours->writables, round + 1);
  }
  assert_int_equal(pair.ours->done, sent);
}

static void test_a_queue_is_bounded_in_bytes(void **state) {
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = MB;
  for (int lane = 0; lane < 2; lane++)
    fill_and_drain(*state, &limits, &(struct packet){.lane = (enum pwi_lane)lane, .size = 50 * KB});
}

static void test_a_queue_is_bounded_in_operations(void **state) {
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_count = 10;
  for (int lane = 0; lane < 2; lane++)
    fill_and_drain(*state, &limits, &(struct packet){.lane = (enum pwi_lane)lane, .size = 100 * KB});
}

static void test_small_bodies_count_too(void **state) {
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = 256 * KB;
  limits.queue_count = 300;
  for (int lane = 0; lane < 2; lane++)
    fill_and_drain(*state, &limits, &(struct packet){.lane = (enum pwi_lane)lane, .size = 4 * KB});
}

static void test_a_body_larger_than_the_queue_may_stand_alone(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = 64 * KB;
  struct pair pair = scene_pair(scene, &limits);
  for (int lane = 0; lane < 2; lane++) {
    struct packet packet = {.lane = (enum pwi_lane)lane, .size = 32 * MB};
    uint64_t writables = pair.ours->writables;
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_QUEUE_FULL);
    packet.size = 10;
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_QUEUE_FULL);
    SCENE_UNTIL(scene, pair.theirs->in[lane].whole == 1 && pair.ours->writables == writables + 1);
    SCENE_UNTIL(scene, pair.ours->outstanding == 0);
  }
}

static void test_puts_are_bounded_too(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = MB;
  limits.queue_count = 50;
  struct pair pair = scene_pair(scene, &limits);
  struct share share = share_open(&pair, 256 * KB, PWI_ACCESS_WRITE);
  pawl_status status = PAWL_OK;
  uint64_t taken = 0;
  while (taken < 100000 && share_put(&pair, &share, 1, 0, 256 * KB, taken + 1, &status)) taken++;
  assert_status(status, PAWL_QUEUE_FULL);
  SCENE_UNTIL(scene, pair.ours->writables == 1 && pair.theirs->notifications == taken && pair.ours->outstanding == 0);
  assert_int_equal(pair.theirs->last_notified, taken);
  assert_true(share_holds(&share, 1, 0, 256 * KB));
  share_close(&pair, &share);
}

static void test_a_full_queue_of_one_link_leaves_the_others_alone(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = MB;
  struct pair full = scene_pair(scene, &limits), other = scene_join(scene, full.here, full.there);
  struct packet packet = {.size = 100 * KB}, small = {.size = 10};
  uint64_t taken = fill_queue(&full, &packet, 100000);
  assert_status(party_send(other.here, other.ours, &small), PAWL_OK);
  SCENE_UNTIL(scene, other.theirs->in[0].whole == 1 && full.theirs->in[0].whole == taken);
}

static void test_a_message_over_the_limit_is_refused_and_others_go_on(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.message_max = 100000;
  struct pair pair = scene_pair(scene, &limits);
  for (int lane = 0; lane < 2; lane++) {
    struct packet largest = {.lane = (enum pwi_lane)lane, .size = 100000, .parts = 5};
    struct packet larger = {.lane = (enum pwi_lane)lane, .size = 100001, .parts = 5};
    assert_status(party_send(pair.here, pair.ours, &largest), PAWL_OK);
    assert_status(party_send(pair.here, pair.ours, &larger), PAWL_TOO_LARGE);
    assert_status(party_send(pair.here, pair.ours, &largest), PAWL_OK);
  }
  uint8_t head[PWI_NET_HEAD_SIZE] = {0};
  struct iovec endless[2] = {{head, SIZE_MAX}, {head, 2}}; /* the sum overflows */
  struct pwi_send send = {.head = head, .body = endless, .body_count = 2};
  assert_status(PARTY_CALL(pair.here, pwi_net_send(pair.here->net, pair.ours->link, &send)), PAWL_TOO_LARGE);
  SCENE_UNTIL(scene, pair.theirs->in[0].whole == 2 && pair.theirs->in[1].whole == 2);
}

static void fault_if_large(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)value;
  if (event != PARTY_ON_MESSAGE) return;
  for (int lane = 0; lane < 2; lane++)
    if (link->in[lane].open && link->in[lane].size > 100000) party_fault(party, "a message over the limit was shown");
}

/* The sender may know the receiver's limit, or the link goes down; the receiver's actor is never bothered. */
static void test_a_message_over_the_receivers_limit_never_begins(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.message_max = 100000;
  struct party *there = scene_listener(scene, 1, &limits), *here = scene_party(scene, 0, NULL);
  there->hook = fault_if_large;
  for (int lane = 0; lane < 2; lane++) {
    struct pair pair = scene_join(scene, here, there);
    struct packet packet = {.lane = (enum pwi_lane)lane, .size = 200000};
    pawl_status status = party_send(here, pair.ours, &packet);
    if (status == PAWL_TOO_LARGE) continue;
    assert_status(status, PAWL_OK);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
    assert_int_not_equal(pair.theirs->why, PAWL_OK);
  }
}

static void test_a_connector_has_a_limit_of_links(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.links = 3;
  struct party *here = scene_party(scene, 0, &limits), *there = scene_listener(scene, 1, NULL);
  struct pair pairs[3];
  for (int i = 0; i < 3; i++) pairs[i] = scene_join(scene, here, there);
  struct party_link *link;
  assert_status(party_connect(here, there->address, &link), PAWL_NODE_LIMIT);
  party_close(here, pairs[0].ours, PAWL_OK);
  SCENE_UNTIL(scene, pairs[0].ours->state == PARTY_DOWN);
  scene_join(scene, here, there);
}

static void test_an_acceptor_has_a_limit_of_links(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.links = 3;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, &limits);
  struct pair pairs[3];
  for (int i = 0; i < 3; i++) pairs[i] = scene_join(scene, here, there);
  struct party_link *link;
  assert_status(party_connect(here, there->address, &link), PAWL_OK);
  SCENE_UNTIL(scene, link->state == PARTY_DOWN);
  assert_int_not_equal(link->why, PAWL_OK);
  assert_int_equal(party_up_count(there), 3);
  party_close(here, pairs[0].ours, PAWL_OK);
  SCENE_UNTIL(scene, pairs[0].ours->state == PARTY_DOWN && pairs[0].theirs->state == PARTY_DOWN);
  scene_join(scene, here, there);
}

#define CROWD 80

/* Each link of many has all that a pair can do, a data plane included. */
static void test_eighty_links_of_a_node_have_all_that_one_has(void **state) {
  struct scene *scene = *state;
  struct party *there = scene_listener(scene, 1, NULL);
  struct party *others[3] = {scene_party(scene, 0, NULL), scene_party(scene, 2, NULL), scene_party(scene, 3, NULL)};
  static struct pair pairs[CROWD];
  static struct share shares[CROWD];
  static const unsigned wanted[] = {WORLD_PLANE, PWI_LINK_HAS_PLANE, WORLD_IN_PLACE, PWI_LINK_IN_PLACE};
  for (size_t i = 0; i < CROWD; i++) {
    pairs[i] = scene_join(scene, others[i < CROWD - 10 ? 0 : 1 + i % 2], there); /* one of them has 70 links, too */
    for (size_t n = 0; n < 4; n += 2)
      assert_int_equal(!!(pairs[i].ours->can & wanted[n + 1]), !!(scene_kind->traits & wanted[n]));
    shares[i] = share_open(&pairs[i], 10 * KB, PWI_ACCESS_WRITE);
  }
  for (size_t round = 1; round <= 3; round++) {
    for (size_t i = 0; i < CROWD; i++) {
      pawl_status status;
      assert_int_not_equal(share_put(&pairs[i], &shares[i], i + round, 0, 10 * KB, round, &status), 0);
      struct packet packet = {.lane = PWI_LANE_DATA, .size = i % 2 ? 100 : 9 * KB};
      assert_status(party_send(pairs[i].here, pairs[i].ours, &packet), PAWL_OK);
    }
    for (size_t i = 0; i < CROWD; i++) {
      SCENE_UNTIL(scene, pairs[i].theirs->notifications == round && pairs[i].theirs->in[PWI_LANE_DATA].whole == round);
      assert_true(share_holds(&shares[i], i + round, 0, 10 * KB));
    }
  }
}

static void test_the_defaults_are_those_of_the_header(void **state) {
  (void)state;
  struct pwi_net_limits limits;
  pwi_net_limits_init(&limits);
  assert_int_equal(limits.message_max, 1024 * MB);
  assert_int_equal(limits.queue_bytes, 64 * MB);
  assert_int_equal(limits.queue_count, 4096);
  assert_int_equal(limits.links, 16384);
  assert_int_equal(limits.strangers, 1024);
  assert_int_equal(limits.greet_ns, 5000 * WORLD_MS);
  assert_int_equal(limits.beat_ns, 50 * WORLD_MS);
  assert_int_equal(limits.silence_ns, 250 * WORLD_MS);
  assert_int_equal(limits.linger_ns, 1000 * WORLD_MS);
}

int suite_limits(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_queue_is_bounded_in_bytes),
      SCENE_TEST(test_a_queue_is_bounded_in_operations),
      SCENE_TEST(test_small_bodies_count_too),
      SCENE_TEST(test_a_body_larger_than_the_queue_may_stand_alone),
      SCENE_TEST(test_puts_are_bounded_too),
      SCENE_TEST(test_a_full_queue_of_one_link_leaves_the_others_alone),
      SCENE_TEST(test_a_message_over_the_limit_is_refused_and_others_go_on),
      SCENE_TEST(test_a_message_over_the_receivers_limit_never_begins),
      SCENE_TEST(test_a_connector_has_a_limit_of_links),
      SCENE_TEST(test_an_acceptor_has_a_limit_of_links),
      SCENE_TEST(test_eighty_links_of_a_node_have_all_that_one_has),
      SCENE_TEST(test_the_defaults_are_those_of_the_header),
  };
  return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
