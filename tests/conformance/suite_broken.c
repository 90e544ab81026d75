/* One-sided operations that are broken off: a link that is closed or lost, a node that dies, a region that is closed.
 * Every operation ends once, and no memory changes except the region that was put to. */
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "share.h"
#include "suite.h"

#define MB ((size_t)1 << 20)
#define SIZE (12 * MB)
#define BOTH (PWI_ACCESS_READ | PWI_ACCESS_WRITE)

static bool is_zero(const uint8_t *bytes, size_t size) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static struct pwi_region *open_region(struct party *party, size_t size) {
  struct pwi_region *region;
  assert_status(PARTY_CALL(party, pwi_net_region_open(party->net, size, &region)), PAWL_OK);
  return region;
}

static void close_region(struct party *party, struct pwi_region *region) {
  party_call_begin(party);
  pwi_net_region_close(party->net, region);
  party_call_end(party, PAWL_OK);
}

/* A region between two others, as memory is mapped, and puts and gets of it under way. */
struct attack {
  struct pair pair;
  struct share share;
  struct pwi_region *below, *above;
  uint8_t *into;
  uint64_t begun;
};

static void begin_attack(struct scene *scene, struct attack *attack, int steps) {
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_bytes = 256 * MB;
  *attack = (struct attack){.pair = scene_pair(scene, &limits), .into = malloc(SIZE)};
  struct pair *pair = &attack->pair;
  attack->below = open_region(pair->there, SIZE);
  attack->share = share_open(pair, SIZE, BOTH);
  attack->above = open_region(pair->there, SIZE);
  memset(attack->into, 0, SIZE);
  pawl_status status;
  for (uint64_t i = 0; i < 4; i++) {
    assert_int_not_equal(share_put(pair, &attack->share, 7, 0, i % 2 ? SIZE : 3000, i + 1, &status), 0);
    share_get(pair, &attack->share, 0, attack->into, SIZE);
  }
  share_fence(pair);
  attack->begun = pair->ours->done + pair->ours->outstanding;
  for (int i = 0; i < steps; i++) scene_step(scene, INT64_MAX, "");
}

/* True if each byte is either as it was or as it was put. */
static bool is_partly_put(const uint8_t *bytes) {
  static uint8_t expected[SIZE];
  pattern_fill(7, 0, expected, SIZE);
  for (size_t i = 0; i < SIZE; i++)
    if (bytes[i] != 0 && bytes[i] != expected[i]) return false;
  return true;
}

static void check_and_close(struct attack *attack) {
  struct party *there = attack->pair.there;
  if (there->net) {
    assert_true(is_zero(pwi_net_region_memory(attack->below), SIZE));
    assert_true(is_zero(pwi_net_region_memory(attack->above), SIZE));
    if (attack->share.region) {
      assert_true(is_partly_put(attack->share.memory));
      close_region(there, attack->share.region);
    }
    close_region(there, attack->below);
    close_region(there, attack->above);
  }
  free(attack->into);
}

static bool all_ended(const struct attack *attack) {
  const struct party_link *link = attack->pair.ours;
  return link->outstanding == 0 && link->done + link->failed == attack->begun;
}

static void test_closing_the_link_ends_puts_and_gets(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 6; steps++) {
    struct attack attack;
    begin_attack(scene, &attack, steps);
    struct pair *pair = &attack.pair;
    bool by_writer = steps % 2 == 0;
    party_close(by_writer ? pair->here : pair->there, by_writer ? pair->ours : pair->theirs, PAWL_OK);
    SCENE_UNTIL(scene, pair->ours->state == PARTY_DOWN && pair->theirs->state == PARTY_DOWN);
    assert_true(all_ended(&attack));
    if (by_writer) { /* a graceful close delivers everything that was queued */
      assert_int_equal(pair->theirs->notifications, 4);
      assert_true(share_holds(&attack.share, 7, 0, SIZE));
    }
    check_and_close(&attack);
  }
}

/* Notifications are not lost if a graceful close follows at once. */
static void test_a_graceful_close_delivers_all_notifications(void **state) {
  struct scene *scene = *state;
  for (int round = 0; round < 20; round++) {
    struct pair pair = scene_pair(scene, NULL);
    struct share share = share_open(&pair, 64, PWI_ACCESS_WRITE);
    pawl_status status;
    for (uint64_t i = 1; i <= 30; i++) assert_int_not_equal(share_put(&pair, &share, i, 0, 64, i, &status), 0);
    party_close(pair.here, pair.ours, PAWL_OK);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
    assert_int_equal(pair.theirs->notifications, 30);
    assert_int_equal(pair.theirs->last_notified, 30);
    share_close(&pair, &share);
  }
}

static void test_the_death_of_the_writer_touches_no_other_memory(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 5; steps++) {
    struct attack attack;
    begin_attack(scene, &attack, steps);
    party_kill(attack.pair.here);
    SCENE_UNTIL(scene, attack.pair.theirs->state == PARTY_DOWN);
    scene_idle(scene, 5 * WORLD_MS); /* for late writes */
    attack.pair.ours = NULL;
    check_and_close(&attack);
  }
}

static void test_the_death_of_the_owner_ends_puts_and_gets(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 5; steps++) {
    struct attack attack;
    begin_attack(scene, &attack, steps);
    party_kill(attack.pair.there);
    SCENE_UNTIL(scene, attack.pair.ours->state == PARTY_DOWN);
    assert_true(all_ended(&attack));
    for (size_t i = 0; i < SIZE; i += 4096) assert_true(attack.into[i] == 0 || pattern_check(7, i, &attack.into[i], 1));
    check_and_close(&attack);
    party_kill(&scene->parties[0]);
  }
}

/* The region is closed under puts and gets, and another of the same size takes its place. */
static void test_closing_a_region_under_puts_and_gets_spares_its_successor(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 6; steps++) {
    struct attack attack;
    begin_attack(scene, &attack, steps);
    close_region(attack.pair.there, attack.share.region);
    attack.share.region = NULL;
    struct pwi_region *successor = open_region(attack.pair.there, SIZE);
    SCENE_UNTIL(scene, all_ended(&attack));
    scene_idle(scene, 5 * WORLD_MS);
    assert_true(is_zero(pwi_net_region_memory(successor), SIZE));
    close_region(attack.pair.there, successor);
    party_close(attack.pair.here, attack.pair.ours, PAWL_OK);
    SCENE_UNTIL(scene, attack.pair.ours->state == PARTY_DOWN && attack.pair.theirs->state == PARTY_DOWN);
    check_and_close(&attack);
  }
}

/* A get may fill a region, and that may be closed while the answer is on its way. */
static void test_closing_the_region_that_a_get_fills_ends_the_get(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 6; steps++) {
    struct pair pair = scene_pair(scene, NULL);
    struct share share = share_open(&pair, SIZE, PWI_ACCESS_READ);
    pattern_fill(7, 0, share.memory, SIZE);
    struct pwi_region *filled = open_region(pair.here, SIZE);
    for (size_t i = 0; i < 3; i++)
      share_get(&pair, &share, i * SIZE / 3, (uint8_t *)pwi_net_region_memory(filled) + i * SIZE / 3, SIZE / 3);
    for (int i = 0; i < steps; i++) scene_step(scene, INT64_MAX, "");
    bool were_under_way = pair.ours->outstanding > 0;
    close_region(pair.here, filled);
    struct pwi_region *successor = open_region(pair.here, SIZE);
    SCENE_UNTIL(scene, pair.ours->outstanding == 0);
    scene_idle(scene, 5 * WORLD_MS);
    assert_true(is_zero(pwi_net_region_memory(successor), SIZE));
    if (!were_under_way) assert_int_equal(pair.ours->state, PARTY_UP);
    close_region(pair.here, successor);
    party_close(pair.here, pair.ours, PAWL_OK);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
    share_close(&pair, &share);
  }
}

/* A put may read a region, as a message may. */
static void test_closing_the_region_that_a_put_reads_cancels_it(void **state) {
  struct scene *scene = *state;
  for (int steps = 0; steps < 4; steps++) {
    struct pair pair = scene_pair(scene, NULL);
    struct share share = share_open(&pair, SIZE, PWI_ACCESS_WRITE);
    struct pwi_region *source = open_region(pair.here, SIZE);
    uint8_t *from = pwi_net_region_memory(source);
    pattern_fill(7, 0, from, SIZE);
    uint64_t cookie = party_op_begin(pair.here, pair.ours, NULL);
    assert_status(
        PARTY_CALL(pair.here, pwi_net_put(pair.here->net, pair.ours->link, share.remote, 0, from, SIZE, 1, cookie)),
        PAWL_OK);
    for (int i = 0; i < steps; i++) scene_step(scene, INT64_MAX, "");
    close_region(pair.here, source);
    SCENE_UNTIL(scene, pair.ours->outstanding == 0);
    if (party_op(pair.here, cookie)->status == PAWL_OK)
      SCENE_UNTIL(scene, pair.theirs->notifications == 1);
    else
      SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
    if (pair.theirs->notifications == 1) assert_true(share_holds(&share, 7, 0, SIZE));
    party_close(pair.here, pair.ours, PAWL_OK);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
    assert_true(is_partly_put(share.memory));
    share_close(&pair, &share);
  }
}

int suite_broken(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_closing_the_link_ends_puts_and_gets),
      SCENE_TEST(test_a_graceful_close_delivers_all_notifications),
      SCENE_TEST(test_the_death_of_the_writer_touches_no_other_memory),
      SCENE_TEST(test_the_death_of_the_owner_ends_puts_and_gets),
      SCENE_TEST(test_closing_a_region_under_puts_and_gets_spares_its_successor),
      SCENE_TEST(test_closing_the_region_that_a_get_fills_ends_the_get),
      SCENE_TEST(test_closing_the_region_that_a_put_reads_cancels_it),
  };
  return cmocka_run_group_tests_name("broken", tests, NULL, NULL);
}
