/* One-sided: regions, put, get, notification, fence, and who may reach what. */
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "share.h"
#include "suite.h"

#define MB ((size_t)1 << 20)
#define BOTH (PWI_ACCESS_READ | PWI_ACCESS_WRITE)

static void put(struct pair *pair, struct share *share, uint64_t seed, uint64_t offset, size_t size, uint64_t notify) {
  pawl_status status;
  share_put(pair, share, seed, offset, size, notify, &status);
  assert_status(status, PAWL_OK);
}

static bool ended(const struct party *party, uint64_t cookie) { return party_op(party, cookie)->ended; }

/* What a call says of a remote that is not one of its link's: net.h leaves both open. */
static bool unknown(pawl_status status) { return status == PAWL_NOT_FOUND || status == PAWL_INVALID; }

static void test_a_region_is_zeroed_memory_of_the_size_asked_for(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  static const size_t sizes[] = {1, 100, 4096, 70000, 5 * MB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct pwi_region *region;
    assert_status(PARTY_CALL(here, pwi_net_region_open(here->net, sizes[i], &region)), PAWL_OK);
    assert_int_equal(pwi_net_region_size(region), sizes[i]);
    uint8_t *memory = pwi_net_region_memory(region);
    for (size_t at = 0; at < sizes[i]; at++) assert_int_equal(memory[at], 0);
    memset(memory, 0x5a, sizes[i]);
    pwi_net_region_close(here->net, region);
  }
  pwi_net_region_close(here->net, NULL);
  struct pwi_region *region;
  assert_status(PARTY_CALL(here, pwi_net_region_open(here->net, 0, &region)), PAWL_INVALID);
}

struct expectation {
  struct share *share;
  uint64_t seed;
  size_t size;
};

/* Value n is notified after the first n blocks of `size` bytes have been put. */
static void check_landed(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  struct expectation *expect = party->context;
  if (event == PARTY_ON_NOTIFIED && !share_holds(expect->share, expect->seed, 0, value * expect->size))
    party_fault(party, "notified before the puts had landed");
}

static void notify_after(struct scene *scene, struct pair *pair, size_t size, uint64_t count, uint64_t every) {
  struct share share = share_open(pair, size * count, PWI_ACCESS_WRITE);
  struct expectation expect = {.share = &share, .seed = size, .size = size};
  pair->there->context = &expect;
  pair->there->hook = check_landed;
  uint64_t before = pair->theirs->notifications;
  for (uint64_t i = 0; i < count; i++) put(pair, &share, expect.seed, i * size, size, (i + 1) % every == 0 ? i + 1 : 0);
  SCENE_UNTIL(scene, pair->theirs->notifications == before + count / every && pair->ours->outstanding == 0);
  assert_int_equal(pair->theirs->last_notified, count);
  assert_int_equal(pair->ours->failed, 0);
  pair->there->hook = NULL;
  share_close(pair, &share);
}

static void test_a_notification_comes_after_its_put_and_all_before_it(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  notify_after(scene, &pair, 1, 100, 1);
  notify_after(scene, &pair, 100, 200, 50);
  notify_after(scene, &pair, 4096, 64, 4);
  notify_after(scene, &pair, 4097, 64, 8);
  notify_after(scene, &pair, 300001, 32, 16);
  notify_after(scene, &pair, 3 * MB + 1, 4, 1);
}

static void test_puts_land_in_the_order_given(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, MB, BOTH);
  for (uint64_t i = 1; i <= 40; i++) put(&pair, &share, i, 0, i % 3 == 2 ? MB : i % 3 == 0 ? 50000 : 900, 0);
  uint64_t cookie = share_fence(&pair);
  SCENE_UNTIL(scene, ended(pair.here, cookie));
  assert_status(party_op(pair.here, cookie)->status, PAWL_OK);
  assert_true(share_holds(&share, 40, 0, 900));
  assert_true(share_holds(&share, 39, 900, 50000 - 900));
  assert_true(share_holds(&share, 38, 50000, MB - 50000));
  share_close(&pair, &share);
}

static void test_a_fence_is_done_when_all_puts_before_it_have_landed(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  static const size_t sizes[] = {1, 4096, 4097, 200000, 2 * MB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct share share = share_open(&pair, 2 * sizes[i], PWI_ACCESS_WRITE);
    put(&pair, &share, i, 0, sizes[i], 0);
    put(&pair, &share, i, sizes[i], sizes[i], 0);
    uint64_t cookie = share_fence(&pair);
    SCENE_UNTIL(scene, ended(pair.here, cookie));
    assert_status(party_op(pair.here, cookie)->status, PAWL_OK);
    assert_true(share_holds(&share, i, 0, 2 * sizes[i]));
    SCENE_UNTIL(scene, pair.ours->outstanding == 0);
    share_close(&pair, &share);
  }
}

static void test_a_fence_with_nothing_before_it_is_done_too(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  uint64_t first = share_fence(&pair), second = share_fence(&pair);
  SCENE_UNTIL(scene, ended(pair.here, first) && ended(pair.here, second));
  assert_status(party_op(pair.here, first)->status, PAWL_OK);
  assert_status(party_op(pair.here, second)->status, PAWL_OK);
}

static void test_a_get_reads_what_is_there(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 4 * MB, PWI_ACCESS_READ);
  pattern_fill(99, 0, share.memory, 4 * MB);
  static const struct {
    uint64_t offset;
    size_t size;
  } spans[] = {{0, 1}, {7, 1}, {3, 4095}, {64, 4096}, {1000, 5000}, {65535, 200003}, {0, 4 * MB}, {4 * MB - 1, 1}};
  for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
    uint8_t *into = malloc(spans[i].size);
    uint64_t cookie = share_get(&pair, &share, spans[i].offset, into, spans[i].size);
    SCENE_UNTIL(scene, ended(pair.here, cookie));
    assert_status(party_op(pair.here, cookie)->status, PAWL_OK);
    size_t good = pattern_check(99, spans[i].offset, into, spans[i].size);
    free(into);
    assert_int_equal(good, spans[i].size);
  }
  share_close(&pair, &share);
}

static void test_many_gets_and_puts_both_ways_at_once_do_not_stop_one_another(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pair back = {.here = pair.there, .there = pair.here, .ours = pair.theirs, .theirs = pair.ours};
  struct pair *sides[2] = {&pair, &back};
  struct share readable[2], writable[2];
  uint8_t *into = calloc(2 * 20, 200000);
  for (int side = 0; side < 2; side++) {
    readable[side] = share_open(sides[side], 20 * 200000, PWI_ACCESS_READ);
    writable[side] = share_open(sides[side], 20 * 200000, PWI_ACCESS_WRITE);
    pattern_fill(7, 0, readable[side].memory, 20 * 200000);
  }
  for (size_t i = 0; i < 20; i++) {
    for (int side = 0; side < 2; side++) {
      share_get(sides[side], &readable[side], i * 200000, into + ((size_t)side * 20 + i) * 200000, 200000);
      put(sides[side], &writable[side], 8, i * 200000, 200000, i + 1);
      struct packet packet = {.size = 150000, .lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK};
      assert_status(party_send(sides[side]->here, sides[side]->ours, &packet), PAWL_OK);
    }
  }
  SCENE_UNTIL(scene, pair.ours->outstanding == 0 && pair.theirs->outstanding == 0 && pair.ours->notifications == 20 &&
                         pair.theirs->notifications == 20);
  for (int side = 0; side < 2; side++) {
    assert_int_equal(pattern_check(7, 0, into + (size_t)side * 20 * 200000, 20 * 200000), 20 * 200000);
    assert_true(share_holds(&writable[side], 8, 0, 20 * 200000));
    share_close(sides[side], &readable[side]);
    share_close(sides[side], &writable[side]);
  }
  free(into);
}

static void test_a_put_of_nothing_may_notify(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 100, PWI_ACCESS_WRITE);
  put(&pair, &share, 0, 0, 0, 5);
  put(&pair, &share, 0, 100, 0, UINT64_MAX);
  SCENE_UNTIL(scene, pair.theirs->notifications == 2 && pair.ours->outstanding == 0);
  assert_true(pair.theirs->last_notified == UINT64_MAX);
  share_close(&pair, &share);
}

/* Try one access that must take the link down, and see that nothing was written. */
static void trespass(struct scene *scene, unsigned access, bool reading, uint64_t offset, size_t size) {
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 10000, access);
  uint8_t *into = calloc(1, size);
  pawl_status status;
  if (reading)
    share_get(&pair, &share, offset, into, size);
  else {
    share_put(&pair, &share, 3, offset, size, 1, &status);
    assert_status(status, PAWL_OK);
  }
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  free(into);
  assert_status(pair.ours->why, PAWL_LINK_PROTOCOL);
  assert_status(pair.theirs->why, PAWL_LINK_PROTOCOL);
  if (reading) assert_int_equal(pair.ours->failed, 1);
  assert_int_equal(pair.theirs->notifications, 0);
  for (size_t i = 0; i < 10000; i++) assert_int_equal(share.memory[i], 0);
  share_close(&pair, &share);
}

static void test_an_access_outside_the_region_takes_the_link_down(void **state) {
  for (int reading = 0; reading < 2; reading++) {
    trespass(*state, BOTH, reading, 10000, 1);
    trespass(*state, BOTH, reading, 9999, 2);
    trespass(*state, BOTH, reading, 1, 10000);
    trespass(*state, BOTH, reading, 0, 100000);
    trespass(*state, BOTH, reading, UINT64_MAX, 1);
    trespass(*state, BOTH, reading, UINT64_MAX - 7, 16);
    trespass(*state, BOTH, reading, (uint64_t)1 << 63, 5000);
  }
}

static void test_an_access_beyond_what_was_shared_takes_the_link_down(void **state) {
  trespass(*state, PWI_ACCESS_READ, false, 0, 8);
  trespass(*state, PWI_ACCESS_READ, false, 0, 9000);
  trespass(*state, PWI_ACCESS_WRITE, true, 0, 8);
  trespass(*state, PWI_ACCESS_WRITE, true, 0, 9000);
}

static void test_a_region_is_shared_for_writing_with_one_link_in_its_life(void **state) {
  struct scene *scene = *state;
  struct pair first = scene_pair(scene, NULL), second = scene_join(scene, first.here, first.there);
  struct share share = share_open(&first, 100, BOTH);
  struct pwi_net *net = first.there->net;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size;
  struct pwi_link other = second.theirs->link;
  assert_status(PARTY_CALL(first.there, pwi_net_region_share(net, share.region, other, PWI_ACCESS_WRITE, token, &size)),
                PAWL_FORBIDDEN);
  assert_status(PARTY_CALL(first.there, pwi_net_region_share(net, share.region, other, BOTH, token, &size)),
                PAWL_FORBIDDEN);
  assert_status(PARTY_CALL(first.there, pwi_net_region_share(net, share.region, other, PWI_ACCESS_READ, token, &size)),
                PAWL_OK);
  party_close(first.here, first.ours, PAWL_OK);
  SCENE_UNTIL(scene, first.theirs->state == PARTY_DOWN);
  assert_status(PARTY_CALL(first.there, pwi_net_region_share(net, share.region, other, PWI_ACCESS_WRITE, token, &size)),
                PAWL_FORBIDDEN);
  assert_status(PARTY_CALL(first.there, pwi_net_region_share(net, share.region, other, 0, token, &size)), PAWL_INVALID);
  share_close(&first, &share);
}

static void test_a_region_outlives_its_links(void **state) {
  struct scene *scene = *state;
  struct pair first = scene_pair(scene, NULL);
  struct share share = share_open(&first, 20000, BOTH);
  put(&first, &share, 4, 0, 20000, 1);
  SCENE_UNTIL(scene, first.theirs->notifications == 1 && first.ours->outstanding == 0);
  party_close(first.here, first.ours, PAWL_OK);
  SCENE_UNTIL(scene, first.theirs->state == PARTY_DOWN && first.ours->state == PARTY_DOWN);
  assert_true(share_holds(&share, 4, 0, 20000));

  struct pair second = scene_join(scene, first.here, first.there);
  uint8_t token[PWI_NET_TOKEN_MAX], into[20000];
  size_t size;
  struct pwi_remote old = share.remote;
  assert_status(
      pwi_net_region_share(second.there->net, share.region, second.theirs->link, PWI_ACCESS_READ, token, &size),
      PAWL_OK);
  assert_true(unknown(pwi_net_put(second.here->net, second.ours->link, old, 0, "x", 1, 0, 0)));
  assert_status(pwi_net_remote_open(second.here->net, second.ours->link, token, size, &share.remote), PAWL_OK);
  uint64_t cookie = share_get(&second, &share, 0, into, sizeof into);
  SCENE_UNTIL(scene, ended(second.here, cookie));
  assert_int_equal(pattern_check(4, 0, into, sizeof into), sizeof into);
  share_close(&second, &share);
}

static void test_a_region_may_be_read_by_several_links(void **state) {
  struct scene *scene = *state;
  struct pair pairs[3] = {scene_pair(scene, NULL)};
  pairs[1] = scene_join(scene, pairs[0].here, pairs[0].there);
  pairs[2] = scene_join(scene, scene_party(scene, 2, NULL), pairs[0].there);
  struct share share = share_open(&pairs[0], 50000, PWI_ACCESS_READ);
  pattern_fill(6, 0, share.memory, 50000);
  uint8_t *into = calloc(3, 50000);
  for (int i = 0; i < 3; i++) {
    uint8_t token[PWI_NET_TOKEN_MAX];
    size_t size;
    assert_status(
        pwi_net_region_share(pairs[i].there->net, share.region, pairs[i].theirs->link, PWI_ACCESS_READ, token, &size),
        PAWL_OK);
    assert_status(pwi_net_remote_open(pairs[i].here->net, pairs[i].ours->link, token, size, &share.remote), PAWL_OK);
    share_get(&pairs[i], &share, 0, into + i * 50000, 50000);
  }
  SCENE_UNTIL(scene, pairs[0].ours->done == 1 && pairs[1].ours->done == 1 && pairs[2].ours->done == 1);
  for (int i = 0; i < 3; i++) assert_int_equal(pattern_check(6, 0, into + i * 50000, 50000), 50000);
  free(into);
  share_close(&pairs[0], &share);
}

static void test_a_token_that_is_no_token_is_corrupt(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 100, PWI_ACCESS_READ);
  struct pwi_net *net = pair.here->net;
  struct pwi_remote remote;
  uint8_t token[PWI_NET_TOKEN_MAX], garbage[PWI_NET_TOKEN_MAX];
  size_t size;
  assert_status(pwi_net_region_share(pair.there->net, share.region, pair.theirs->link, PWI_ACCESS_READ, token, &size),
                PAWL_OK);
  for (size_t cut = 0; cut < size; cut++)
    assert_status(PARTY_CALL(pair.here, pwi_net_remote_open(net, pair.ours->link, token, cut, &remote)), PAWL_CORRUPT);
  memset(garbage, 0xff, sizeof garbage);
  assert_status(PARTY_CALL(pair.here, pwi_net_remote_open(net, pair.ours->link, garbage, sizeof garbage, &remote)),
                PAWL_CORRUPT);
  assert_status(PARTY_CALL(pair.here, pwi_net_remote_open(net, pair.ours->link, token, size, &remote)), PAWL_OK);
  share_close(&pair, &share);
}

static void test_a_body_in_a_region_arrives_as_any_other(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_region *region;
  assert_status(PARTY_CALL(pair.here, pwi_net_region_open(pair.here->net, 4 * MB, &region)), PAWL_OK);
  static const size_t sizes[] = {0, 1, 64, 4096, 4097, 100001, MB, 3 * MB + 17};
  uint64_t sent = 0;
  for (int how = PWI_RECEIVE_PIECES; how <= PWI_RECEIVE_DROP; how++) {
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
      struct packet packet = {
          .lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK,
          .how = (enum pwi_receive_how)how,
          .size = sizes[i / 2],
          .parts = (unsigned)i % 5,
          .region = region,
      };
      assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
      sent++;
      SCENE_UNTIL(scene, pair.theirs->in[0].whole + pair.theirs->in[1].whole == sent && pair.ours->outstanding == 0);
    }
  }
  pwi_net_region_close(pair.here->net, region);
}

static void close_under_a_body(struct scene *scene, enum pwi_lane lane) {
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_region *region;
  assert_status(PARTY_CALL(pair.here, pwi_net_region_open(pair.here->net, 48 * MB, &region)), PAWL_OK);
  struct packet packet = {.lane = lane, .size = 48 * MB, .region = region}; /* more than any kernel takes at once */
  assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  party_call_begin(pair.here);
  pwi_net_region_close(pair.here->net, region);
  party_call_end(pair.here, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  assert_int_equal(pair.ours->failed, 1);
  assert_status(party_op(pair.here, pair.here->op_count)->status, PAWL_CANCELLED);
  if (lane == PWI_LANE_LINK || !(pair.theirs->can & PWI_LINK_IN_PLACE))
    assert_int_equal(pair.theirs->in[lane].whole, 0);
  else /* the peer may read all of it in place before it notices the hang-up, and reads it as it was */
    assert_string_equal(pair.theirs->wrong, "");
}

static void test_closing_a_region_cancels_the_bodies_in_it_and_takes_their_link_down(void **state) {
  struct scene *scene = *state;
  struct pair other = scene_pair(scene, NULL);
  close_under_a_body(scene, PWI_LANE_LINK);
  close_under_a_body(scene, PWI_LANE_DATA);
  assert_int_equal(other.ours->state, PARTY_UP);
}

static void test_reaching_for_a_closed_region_ends_well_or_badly_but_ends(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 100000, BOTH);
  uint8_t *into = calloc(1, 100000);
  share_close(&pair, &share);
  pawl_status status;
  share_put(&pair, &share, 3, 0, 50000, 9, &status);
  share_get(&pair, &share, 0, into, 100000);
  share_fence(&pair);
  SCENE_UNTIL(scene, pair.ours->outstanding == 0);
  free(into);
  scene_idle(scene, 10 * WORLD_MS);
  assert_int_equal(pair.theirs->notifications, 0); /* of a put that did not land */
}

static void test_a_remote_that_was_never_opened_cannot_be_used(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_net *net = pair.here->net;
  struct pwi_remote nothing = {0}, stranger = {UINT64_MAX - 5};
  uint8_t bytes[8] = {0};
  assert_true(unknown(PARTY_CALL(pair.here, pwi_net_put(net, pair.ours->link, nothing, 0, bytes, 8, 0, 1))));
  assert_true(unknown(PARTY_CALL(pair.here, pwi_net_get(net, pair.ours->link, stranger, 0, bytes, 8, 1))));
  scene_idle(scene, 10 * WORLD_MS);
  assert_int_equal(pair.ours->state, PARTY_UP);
}

int suite_one_sided(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_region_is_zeroed_memory_of_the_size_asked_for),
      SCENE_TEST(test_a_notification_comes_after_its_put_and_all_before_it),
      SCENE_TEST(test_puts_land_in_the_order_given),
      SCENE_TEST(test_a_fence_is_done_when_all_puts_before_it_have_landed),
      SCENE_TEST(test_a_fence_with_nothing_before_it_is_done_too),
      SCENE_TEST(test_a_get_reads_what_is_there),
      SCENE_TEST(test_many_gets_and_puts_both_ways_at_once_do_not_stop_one_another),
      SCENE_TEST(test_a_put_of_nothing_may_notify),
      SCENE_TEST(test_an_access_outside_the_region_takes_the_link_down),
      SCENE_TEST(test_an_access_beyond_what_was_shared_takes_the_link_down),
      SCENE_TEST(test_a_region_is_shared_for_writing_with_one_link_in_its_life),
      SCENE_TEST(test_a_region_outlives_its_links),
      SCENE_TEST(test_a_region_may_be_read_by_several_links),
      SCENE_TEST(test_a_token_that_is_no_token_is_corrupt),
      SCENE_TEST(test_a_body_in_a_region_arrives_as_any_other),
      SCENE_TEST(test_closing_a_region_cancels_the_bodies_in_it_and_takes_their_link_down),
      SCENE_TEST(test_reaching_for_a_closed_region_ends_well_or_badly_but_ends),
      SCENE_TEST(test_a_remote_that_was_never_opened_cannot_be_used),
  };
  return cmocka_run_group_tests_name("one-sided", tests, NULL, NULL);
}
