/* Receiving: messages that are ready, and bodies that are split between two places. That a ready message keeps its
 * promises is checked by the party's actor, here as in every other suite. */
#include "scene.h"
#include "suite.h"

#define MB ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct pwi_region *open_region(struct pair *pair, size_t size) {
  struct pwi_region *region;
  assert_status(PARTY_CALL(pair->here, pwi_net_region_open(pair->here->net, size, &region)), PAWL_OK);
  return region;
}

/* One message, from beginning to end; its memory is free again. */
static void send_one(struct scene *scene, struct pair *pair, const struct packet *packet) {
  const struct party_stream *in = &pair->theirs->in[packet->lane];
  uint64_t whole = in->whole, bytes = in->bytes;
  assert_status(party_send(pair->here, pair->ours, packet), PAWL_OK);
  SCENE_UNTIL(scene, in->whole == whole + 1 && pair->ours->outstanding == 0);
  assert_int_equal(in->bytes, bytes + packet->size);
}

/* The simulator decides by the seed. On sockets what can be ready always is. */
static void check_readies(const struct pair *pair, uint64_t could) {
  uint64_t readies = pair->theirs->in[PWI_LANE_DATA].readies;
  if (scene_kind->traits & WORLD_POLLED)
    assert_int_equal(readies, could);
  else
    assert_true(readies > 0 && readies < could);
}

static void test_a_body_in_a_region_is_ready(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  if (!(pair.theirs->can & PWI_LINK_IN_PLACE)) skip();
  struct pwi_region *region = open_region(&pair, 13 * MB);
  static const size_t sizes[] = {4097, 5000, 65536, 100001, MB, 3 * MB + 17, 12 * MB}; /* also more than a turn's */
  uint64_t sent = 0;
  for (unsigned parts = 1; parts <= PWI_NET_IOV_MAX; parts += 5)
    for (size_t i = 0; i < COUNT(sizes); i++, sent++) {
      struct packet packet = {.lane = PWI_LANE_DATA, .how = PWI_RECEIVE_PIECES, .size = sizes[i], .parts = parts};
      packet.region = region;
      packet.region_offset = 7 * i; /* most begin at an odd address */
      send_one(scene, &pair, &packet);
    }
  check_readies(&pair, sent);
  pwi_net_region_close(pair.here->net, region);
}

static void test_a_small_message_of_a_plane_is_ready(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  if (!(pair.theirs->can & PWI_LINK_HAS_PLANE)) skip();
  uint64_t sent = 0;
  for (size_t size = 0; size <= PWI_NET_COPY_MAX; size += 64, sent++) {
    struct packet packet = {.lane = PWI_LANE_DATA, .how = PWI_RECEIVE_PIECES, .size = size, .parts = 3};
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  }
  SCENE_UNTIL(scene, pair.theirs->in[PWI_LANE_DATA].whole == sent);
  check_readies(&pair, sent);
}

/* So many of them that what is read at once ends in the middle of one, now and then: that one is not ready. */
static void test_a_burst_of_small_messages_is_cut_anywhere(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_count = 50000;
  struct pair pair = scene_pair(scene, &limits);
  for (int lane = 0; lane < 2; lane++) {
    for (size_t i = 0; i < 20000; i++) {
      struct packet packet = {.lane = (enum pwi_lane)lane, .how = PWI_RECEIVE_PIECES, .size = i * 7 % 300};
      packet.quiet = true;
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    }
    SCENE_UNTIL(scene, pair.theirs->in[lane].whole == 20000);
  }
}

/* A table, terms, encoded keys: they come along, and the rest stays in its region. */
static void test_a_little_ordinary_memory_does_not_keep_a_body_waiting(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  if (!(pair.theirs->can & PWI_LINK_IN_PLACE)) skip();
  struct pwi_region *region = open_region(&pair, MB);
  static const size_t aparts[] = {1, 100, 1024, 1025, 2000, 4095, 4096};
  uint64_t sent = 0;
  for (unsigned parts = 1; parts <= PWI_NET_IOV_MAX; parts += 5)
    for (size_t i = 0; i < COUNT(aparts); i++, sent++) {
      struct packet packet = {.lane = PWI_LANE_DATA, .size = 100000 + aparts[i], .parts = parts, .apart = aparts[i]};
      packet.region = region;
      packet.region_offset = i;
      send_one(scene, &pair, &packet);
    }
  check_readies(&pair, sent);
  pwi_net_region_close(pair.here->net, region);
}

static void test_a_body_may_lie_partly_in_a_region(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_region *region = open_region(&pair, 2 * MB);
  static const enum pwi_receive_how hows[] = {PWI_RECEIVE_PIECES, PWI_RECEIVE_WHOLE, PWI_RECEIVE_INTO,
                                              PWI_RECEIVE_SPLIT, PWI_RECEIVE_DROP};
  static const size_t aparts[] = {1, 1000, 4097, 70001, MB};
  for (size_t how = 0; how < COUNT(hows); how++)
    for (size_t i = 0; i < 2 * COUNT(aparts); i++) {
      size_t apart = aparts[i / 2];
      struct packet packet = {.lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, .how = hows[how]};
      packet.size = apart + (i % 3 ? MB + 3 : 6000);
      packet.prefix = apart + (i % 4 ? 77 : 0); /* in the region, or where it begins */
      packet.parts = (unsigned)(1 + i % 5);
      packet.region = region;
      packet.region_offset = 16 * i + how;
      packet.apart = apart;
      send_one(scene, &pair, &packet);
    }
  pwi_net_region_close(pair.here->net, region);
}

/* Every size with a prefix of nothing, a little, nearly all, all, and more than there is. */
static void split_each_size(struct scene *scene, struct pair *pair, struct pwi_region *region) {
  static const size_t sizes[] = {0, 1, 63, 65, 1000, 4096, 4097, 65537, 300001, 3 * MB + 5};
  for (size_t i = 0; i < COUNT(sizes); i++) {
    size_t size = sizes[i];
    size_t prefixes[] = {0, 1, 100, size / 2, size - 1, size, size + 1, size + 5000, SIZE_MAX};
    for (size_t j = 0; j < COUNT(prefixes); j++) {
      struct packet packet = {.how = PWI_RECEIVE_SPLIT, .size = size, .prefix = prefixes[j], .region = region};
      packet.lane = PWI_LANE_LINK;
      packet.parts = (unsigned)(1 + j % 4);
      packet.region_offset = region ? j : 0;
      send_one(scene, pair, &packet);
      packet.lane = PWI_LANE_DATA;
      send_one(scene, pair, &packet);
    }
  }
}

static void test_a_split_body_goes_to_two_places(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  split_each_size(scene, &pair, NULL);
}

static void test_a_split_body_may_come_from_a_region(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_region *region = open_region(&pair, 4 * MB);
  split_each_size(scene, &pair, region);
  pwi_net_region_close(pair.here->net, region);
}

/* The actor frees both places at the end of the message: whatever is written later is written into freed memory. */
static void test_a_split_body_cut_short_ends_with_an_error(void **state) {
  struct scene *scene = *state;
  static const size_t prefixes[] = {0, 100, 8 * MB, 24 * MB};
  for (size_t round = 0; round < 2 * COUNT(prefixes); round++) {
    struct pair pair = scene_pair(scene, NULL);
    struct packet packet = {.size = 24 * MB, .how = PWI_RECEIVE_SPLIT, .prefix = prefixes[round / 2]};
    packet.lane = round % 2 ? PWI_LANE_DATA : PWI_LANE_LINK;
    struct party_stream *in = &pair.theirs->in[packet.lane];
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    SCENE_UNTIL(scene, in->open || in->whole == 1);
    uint64_t whole = in->whole;
    party_kill(pair.here);
    SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN);
    assert_int_equal(in->whole + in->broken, 1);
    assert_true(in->whole >= whole);
  }
}

/* Whoever dies, and whenever: the actor sees to it that what was ready is whole. */
static void test_a_ready_message_is_whole_though_its_sender_dies(void **state) {
  struct scene *scene = *state;
  uint64_t ended = 0;
  for (int steps = 1; steps <= 8; steps++) {
    struct pair pair = scene_pair(scene, NULL);
    struct pwi_region *region = open_region(&pair, 8 * MB);
    struct packet packet = {.lane = PWI_LANE_DATA, .how = PWI_RECEIVE_PIECES, .size = 100000, .parts = 4};
    packet.region = region;
    for (size_t i = 0; i < 70; i++) { /* each body has its own part of the region */
      packet.region_offset = i * 110001;
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    }
    for (int i = 0; i < steps; i++) scene_step(scene, INT64_MAX, "");
    party_kill(pair.here);
    SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN);
    ended += pair.theirs->in[PWI_LANE_DATA].whole;
  }
  assert_true(ended > 0);
}

static void close_in(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)value;
  const enum party_event *when = party->context;
  if (event == *when && !link->closing) party_close(party, link, PAWL_OK);
}

static void test_a_link_may_be_closed_in_the_middle_of_a_ready_message(void **state) {
  struct scene *scene = *state;
  static enum party_event moments[] = {PARTY_ON_MESSAGE, PARTY_ON_PIECE, PARTY_ON_END};
  for (size_t i = 0; i < 4 * COUNT(moments); i++) { /* several times: not every message is ready in every world */
    struct pair pair = scene_pair(scene, NULL);
    struct pwi_region *region = open_region(&pair, MB);
    pair.there->context = &moments[i % COUNT(moments)];
    pair.there->hook = close_in;
    struct packet packet = {.lane = PWI_LANE_DATA, .size = 500000, .parts = 5, .region = region};
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
    struct party_stream *in = &pair.theirs->in[PWI_LANE_DATA];
    assert_int_equal(in->whole + in->broken, 1);
    pair.there->hook = NULL;
    pwi_net_region_close(pair.here->net, region);
  }
}

int suite_receiving(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_body_in_a_region_is_ready),
      SCENE_TEST(test_a_small_message_of_a_plane_is_ready),
      SCENE_TEST(test_a_burst_of_small_messages_is_cut_anywhere),
      SCENE_TEST(test_a_little_ordinary_memory_does_not_keep_a_body_waiting),
      SCENE_TEST(test_a_body_may_lie_partly_in_a_region),
      SCENE_TEST(test_a_split_body_goes_to_two_places),
      SCENE_TEST(test_a_split_body_may_come_from_a_region),
      SCENE_TEST(test_a_split_body_cut_short_ends_with_an_error),
      SCENE_TEST(test_a_ready_message_is_whole_though_its_sender_dies),
      SCENE_TEST(test_a_link_may_be_closed_in_the_middle_of_a_ready_message),
  };
  return cmocka_run_group_tests_name("receiving", tests, NULL, NULL);
}
