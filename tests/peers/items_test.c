/* Items in the simulator, scene by scene. */
#include "base/testing.h"
#include "sharers.h"

static struct club club;

static void begin_with(uint32_t second, uint32_t count, enum pawl_items_variant variant, bool is_conservative,
                       bool is_shared) {
  struct pwi_cluster_config config = {
      .seed = 7, .shared_hosts = is_shared, .checked_hosts = !is_shared, .client_grace_ns = 100 * MS};
  memset(&club, 0, sizeof club);
  club.count = count;
  club.second = second;
  club.variant = variant;
  club.is_conservative = is_conservative;
  club.compute_max = 4 * MS;
  for (uint32_t i = 0; i < count; i++) club.is_still[i] = second > 0;
  club_open(&club, &config);
  cluster_run_while(&club.cluster, club_is_opening, &club, 5 * PWI_SIM_SECOND);
}

static void begin(uint32_t count, enum pawl_items_variant variant, bool is_conservative, bool is_shared) {
  begin_with(0, count, variant, is_conservative, is_shared);
}

struct goal {
  uint64_t clock;
  uint32_t except; /* a member that need not reach it */
};

static bool is_before(void *context) {
  const struct goal *goal = context;
  for (uint32_t i = 0; i < club.count; i++)
    if (i != goal->except && club.sharers[i].clock < goal->clock) return true;
  return false;
}

static void run_until(uint64_t clock, uint32_t except) {
  struct goal goal = {clock, except};
  cluster_run_while(&club.cluster, is_before, &goal, 20 * PWI_SIM_SECOND);
}

static const struct {
  enum pawl_items_variant variant;
  bool is_conservative, is_shared;
} kinds[] = {{PAWL_ITEMS_PUSH, false, true},  {PAWL_ITEMS_PUSH, false, false}, {PAWL_ITEMS_PULL, false, true},
             {PAWL_ITEMS_PULL, false, false}, {PAWL_ITEMS_PUSH, true, true},   {PAWL_ITEMS_PUSH, true, false}};

#define KINDS (sizeof kinds / sizeof *kinds)

static void test_members_advance_together(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    struct pawl_items_state about;
    begin(4, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    run_until(30, UINT32_MAX);
    for (uint32_t i = 0; i < 4; i++) {
      pwi_items_state(club.sharers[i].engine, &about);
      assert_true(kinds[k].is_shared ? about.near > 0 : about.near == 0); /* there are several shared hosts */
      assert_int_equal(about.item_bytes, 64);                             /* 40, padded to 48, and 16 */
      assert_int_equal(about.memory_bytes, 64 * SHARED_KEYS * (4 - about.near));
      assert_true(about.metadata_bytes < 20000 && about.orphans == 0);
      if (!kinds[k].is_shared) assert_true(kinds[k].variant == PAWL_ITEMS_PUSH ? about.puts > 0 : about.fetches > 0);
    }
    club_close(&club);
  }
}

/* The versions of a producer that is gone stay; its items have no producer, until it is back. */
static void test_a_killed_producer_is_replaced(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    begin(3, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    run_until(10, UINT32_MAX);
    struct sharer *other = &club.sharers[0];
    uint64_t clock = 0;
    bool has_any = sharer_try(other, 1, 1, &clock) == PWI_ITEMS_FRESH;
    pwi_sim_kill(club.cluster.sim, club.sharers[1].client.node);
    cluster_run_for(&club.cluster, 2 * PWI_SIM_SECOND);
    assert_false(pwi_items_has_producer(other->engine, 1));
    assert_true(pwi_items_has_producer(other->engine, 2));
    if (has_any) assert_int_equal(sharer_try(other, 1, clock + 1, NULL), PWI_ITEMS_FRESH);
    assert_int_equal(sharer_try(other, 1, club.high + 2, NULL), PWI_ITEMS_STALE);
    assert_int_equal(pwi_sim_start(club.cluster.sim, club.sharers[1].client.node), PAWL_OK);
    run_until(club.high + 20, UINT32_MAX);
    assert_true(pwi_items_has_producer(other->engine, 1));
    assert_int_equal(sharer_try(other, 1, 1, NULL), PWI_ITEMS_FRESH);
    club_close(&club);
  }
}

static void count_wake(void *context) { ++*(int *)context; }

/* A thread looks at an item, and then its producer's last version comes, and the producer is lost: nobody will answer when
 * the thread asks. */
static void test_a_wait_for_the_last_version_of_a_lost_producer_ends(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    begin(3, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    run_until(10, UINT32_MAX);
    for (uint32_t i = 0; i < 3; i++) club.is_still[i] = true;
    struct sharer *other = &club.sharers[0];
    uint64_t clock = 0;
    int wakes = 0;
    pwi_sim_kill(club.cluster.sim, club.sharers[1].client.node);
    cluster_run_for(&club.cluster, 2 * PWI_SIM_SECOND);
    assert_int_equal(sharer_try(other, 1, 1, &clock), PWI_ITEMS_FRESH);
    struct pwi_items_wait wait = {.key = 1, .need = clock + 1, .wake = count_wake, .context = &wakes};
    pwi_items_wait_begin(other->engine, &wait);
    assert_int_equal(pwi_items_ask(other->engine, &wait), PAWL_OK);
    assert_int_equal(wakes, 1);
    wait.need = clock + 2;
    assert_int_equal(pwi_items_ask(other->engine, &wait), PAWL_OK);
    assert_int_equal(wakes, 1);
    pwi_items_wait_end(other->engine, &wait);
    club_close(&club);
  }
}

/* NULL: it reads no other member in place. */
static struct sharer *find_near(const struct sharer *reader) {
  for (const struct item_peer *peer = reader->engine->peers; peer; peer = peer->next)
    if (peer->how == ITEM_NEAR) return &club.sharers[club.owners[peer->sender.id] - 1];
  return NULL;
}

/* The thread sleeps already, and the producer dies after it has set the version, and before it has told anybody. */
static void test_the_last_version_of_a_lost_producer_wakes_those_that_wait(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k += 2) {
    begin(4, kinds[k].variant, kinds[k].is_conservative, true);
    run_until(10, UINT32_MAX);
    for (uint32_t i = 0; i < 4; i++) club.is_still[i] = true;
    cluster_run_for(&club.cluster, 200 * MS);
    struct sharer *reader = &club.sharers[0], *lost = find_near(reader);
    uint64_t clock = 0;
    int wakes = 0;
    assert_non_null(lost);
    assert_int_equal(sharer_try(reader, lost->index, 1, &clock), PWI_ITEMS_FRESH);
    struct pwi_items_wait wait = {.key = lost->index, .need = clock + 2, .wake = count_wake, .context = &wakes};
    pwi_items_wait_begin(reader->engine, &wait);
    assert_int_equal(pwi_items_ask(reader->engine, &wait), PAWL_OK);
    cluster_run_for(&club.cluster, 100 * MS);
    assert_int_equal(wakes, 0);
    club.is_mute = true;
    sharer_set(lost, lost->index, clock + 1);
    pwi_sim_kill(club.cluster.sim, lost->client.node);
    cluster_run_for(&club.cluster, 2 * PWI_SIM_SECOND);
    assert_true(wakes > 0);
    assert_int_equal(sharer_try(reader, lost->index, clock + 2, NULL), PWI_ITEMS_FRESH);
    pwi_items_wait_end(reader->engine, &wait);
    club_close(&club);
  }
}

/* --- items with two producers --------------------------------------------------------------------------- */

#define TWICE 1 /* the key that members 1 and 2 produce; nobody sets anything but the test */

/* Member 0 in the place of a thread that gets the item. */
struct sleeper {
  struct pwi_items_wait wait;
  int wakes;
};

static bool is_asleep(void *context) { return ((struct sleeper *)context)->wakes == 0; }

static void count_sleeper_wake(void *context) { ((struct sleeper *)context)->wakes++; }

static void fall_asleep(struct sleeper *sleeper, uint64_t need) {
  *sleeper = (struct sleeper){.wait = {.key = TWICE, .need = need, .wake = count_sleeper_wake, .context = sleeper}};
  pwi_items_wait_begin(club.sharers[0].engine, &sleeper->wait);
  assert_int_equal(pwi_items_ask(club.sharers[0].engine, &sleeper->wait), PAWL_OK);
}

/* As a get: after a wake that did not help it asks again. */
static void sleep_until_fresh(struct sleeper *sleeper) {
  struct sharer *reader = &club.sharers[0];
  while (sharer_try(reader, TWICE, sleeper->wait.need, NULL) != PWI_ITEMS_FRESH) {
    sleeper->wakes = 0;
    assert_int_equal(pwi_items_ask(reader->engine, &sleeper->wait), PAWL_OK);
    cluster_run_while(&club.cluster, is_asleep, sleeper, 5 * PWI_SIM_SECOND);
  }
  pwi_items_wait_end(reader->engine, &sleeper->wait);
}

/* Of two processes the checker takes the later one for the successor, so that one sets last. */
static void name_producers(struct sharer **first_out, struct sharer **last_out) {
  bool is_later = club.sharers[1].process > club.sharers[2].process;
  *first_out = &club.sharers[is_later ? 2 : 1];
  *last_out = &club.sharers[is_later ? 1 : 2];
}

static void test_either_producer_of_an_item_wakes_those_that_wait(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    struct sleeper early, late;
    struct sharer *first, *last;
    begin_with(2, 3, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    name_producers(&first, &last);
    fall_asleep(&late, 2);
    fall_asleep(&early, 1); /* although this member waits for a later clock already */
    cluster_run_for(&club.cluster, 100 * MS);
    assert_int_equal(early.wakes + late.wakes, 0);
    sharer_set(first, TWICE, 0);
    cluster_run_while(&club.cluster, is_asleep, &early, 5 * PWI_SIM_SECOND);
    sleep_until_fresh(&early);
    late.wakes = 0;
    assert_int_equal(pwi_items_ask(club.sharers[0].engine, &late.wait), PAWL_OK);
    sharer_set(last, TWICE, 1);
    cluster_run_while(&club.cluster, is_asleep, &late, 5 * PWI_SIM_SECOND);
    sleep_until_fresh(&late);
    club_close(&club);
  }
}

/* The last version of one producer comes, and it is lost, after the thread has looked and before it waits. The other
 * producer lives, is asked, and will not answer. */
static void test_a_wait_for_the_last_version_of_one_of_two_producers_ends(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    struct sleeper sleeper;
    struct sharer *lost, *other;
    begin_with(2, 3, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    name_producers(&lost, &other);
    sharer_set(lost, TWICE, 0);
    fall_asleep(&sleeper, 1);
    sleep_until_fresh(&sleeper);
    pwi_sim_kill(club.cluster.sim, lost->client.node);
    cluster_run_for(&club.cluster, 2 * PWI_SIM_SECOND);
    assert_true(pwi_items_has_producer(club.sharers[0].engine, TWICE));
    fall_asleep(&sleeper, 1);
    assert_int_equal(sleeper.wakes, 1);
    sleep_until_fresh(&sleeper);
    fall_asleep(&sleeper, 2);
    cluster_run_for(&club.cluster, 100 * MS);
    assert_int_equal(sleeper.wakes, 0);
    sharer_set(other, TWICE, 1);
    cluster_run_while(&club.cluster, is_asleep, &sleeper, 5 * PWI_SIM_SECOND);
    sleep_until_fresh(&sleeper);
    club_close(&club);
  }
}

/* --- sets that meet the engine -------------------------------------------------------------------------- */

/* Another thread sets the item between the engine's look at its clock and at its waits. */
struct setting_wake {
  struct pwi_items_wait wait;
  bool has_set, must_tell;
};

static void set_in_wake(void *context) {
  struct setting_wake *wake = context;
  unsigned char value[VALUE_MAX] = {0};
  if (wake->has_set) return;
  wake->has_set = true;
  assert_int_equal(pwi_items_set(club.sharers[0].engine, wake->wait.key, value, wake->wait.need, &wake->must_tell),
                   PAWL_OK);
}

static void test_a_set_while_the_engine_looks_at_the_waits_of_the_item_is_noticed(void **state) {
  (void)state;
  begin(1, PAWL_ITEMS_PUSH, false, true); /* nobody else must be told */
  run_until(5, UINT32_MAX);
  club.is_still[0] = true;
  cluster_run_for(&club.cluster, PWI_SIM_SECOND);
  struct pwi_items *engine = club.sharers[0].engine;
  unsigned char value[VALUE_MAX] = {0};
  uint64_t clock = club.high + 10;
  bool must_tell;
  int wakes = 0;
  struct setting_wake early = {.wait = {.key = 0, .need = clock + 1, .wake = set_in_wake, .context = &early}};
  struct pwi_items_wait late = {.key = 0, .need = clock + 2, .wake = count_wake, .context = &wakes};
  engine->config.between = (struct item_between){0}; /* the values are none of the checker's */
  pwi_items_wait_begin(engine, &early.wait);
  pwi_items_wait_begin(engine, &late);
  assert_int_equal(pwi_items_ask(engine, &late), PAWL_OK);
  assert_int_equal(pwi_items_set(engine, 0, value, clock, &must_tell), PAWL_OK);
  assert_true(must_tell);
  pwi_items_tell(engine, 0, 1);
  assert_true(early.has_set && !early.must_tell); /* nobody tells of that set, so the engine has to see it */
  assert_true(wakes > 0);
  pwi_items_wait_end(engine, &late);
  pwi_items_wait_end(engine, &early.wait);
  club_close(&club);
}

/* It sets on, and nobody sees that; the checker would say so. Then it is a member again. */
static void test_a_producer_that_was_declared_dead_is_not_heard(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    begin(3, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    club.slack = 1000;
    run_until(10, UINT32_MAX);
    pwi_sim_pause(club.cluster.sim, club.sharers[2].client.node, 1500 * MS);
    cluster_run_for(&club.cluster, 1200 * MS);
    assert_false(pwi_items_has_producer(club.sharers[0].engine, 2));
    uint64_t clock = club.begun[2]; /* in its memory, which near consumers could read */
    for (uint64_t key = 2; key < 3 * SHARED_KEYS; key += 3) sharer_set(&club.sharers[2], key, clock + 5);
    assert_int_equal(sharer_try(&club.sharers[0], 2, clock + 6, NULL), PWI_ITEMS_STALE);
    (void)sharer_try(&club.sharers[1], 2, 1, NULL);
    club.sharers[2].clock = clock + 6;
    run_until(club.high + 20, UINT32_MAX);
    assert_true(pwi_items_has_producer(club.sharers[0].engine, 2));
    club_close(&club);
  }
}

/* A member that opens the context while nobody produces some of its keys waits for them. */
static void test_opening_waits_for_a_producer_that_is_being_replaced(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    begin(3, kinds[k].variant, kinds[k].is_conservative, kinds[k].is_shared);
    run_until(5, UINT32_MAX);
    pwi_sim_kill(club.cluster.sim, club.sharers[1].client.node);
    cluster_run_for(&club.cluster, 2 * PWI_SIM_SECOND);
    assert_int_equal(pwi_sim_restart(club.cluster.sim, club.sharers[2].client.node), PAWL_OK);
    cluster_run_for(&club.cluster, 2 * PWI_SIM_SECOND);
    const struct pwi_items *waiting = club.sharers[2].engine;
    char text[128];
    assert_true(waiting && !pwi_items_is_open(waiting) && !pwi_items_failure(waiting));
    assert_int_equal(pwi_items_explain(waiting, text, sizeof text), PAWL_NOT_FOUND);
    assert_string_equal(text, "key 1 has no producer");
    assert_int_equal(pwi_sim_start(club.cluster.sim, club.sharers[1].client.node), PAWL_OK);
    run_until(club.high + 5, UINT32_MAX);
    club_close(&club);
  }
}

/* The pump meets the lock of a thread that sets an item. Whatever that set returns, it must tell, because nobody else
 * pumps again. */
static void test_a_set_that_has_held_up_the_pump_tells(void **state) {
  bool must_tell;
  (void)state;
  begin(2, PAWL_ITEMS_PUSH, false, false);
  run_until(5, UINT32_MAX);
  struct sharer *sharer = &club.sharers[0];
  for (uint32_t i = 0; i < 2; i++) club.is_still[i] = true;
  cluster_run_for(&club.cluster, PWI_SIM_SECOND);
  unsigned char value[VALUE_MAX] = {0};
  atomic_store(&sharer->engine->stripes[0], true); /* as if another thread wrote the first item */
  pwi_items_tell(sharer->engine, 0, 1);
  assert_int_equal(sharer->engine->peers->dirty.count, 1);
  atomic_store(&sharer->engine->stripes[0], false);
  assert_int_equal(pwi_items_set(sharer->engine, 0, value, 0, &must_tell), PAWL_INVALID); /* the clock goes back */
  assert_true(must_tell);
  pwi_items_tell(sharer->engine, 0, 1);
  assert_int_equal(sharer->engine->peers->dirty.count, 0);
  assert_int_equal(pwi_items_set(sharer->engine, 0, value, 0, &must_tell), PAWL_INVALID);
  assert_false(must_tell);
  club_close(&club);
}

/* Member 1 has asked for two items of member 0, of which one lies between them. */
static bool lacks_a_version(void *context) {
  (void)context;
  return sharer_try(&club.sharers[1], 0, 100, NULL) != PWI_ITEMS_FRESH ||
         sharer_try(&club.sharers[1], 4, 100, NULL) != PWI_ITEMS_FRESH;
}

static void test_a_prefetch_brings_items_that_are_set_later_and_those_between_them(void **state) {
  struct pawl_items_state before, after;
  const struct pawl_items_keys two = {0, 2, 4};
  (void)state;
  begin(2, PAWL_ITEMS_PULL, false, false);
  run_until(5, UINT32_MAX);
  club.is_still[0] = club.is_still[1] = true;
  club.compute_max = 3600 * PWI_SIM_SECOND; /* neither makes another step */
  cluster_run_for(&club.cluster, 200 * MS);
  for (uint64_t key = 0; key < 6; key += 2) sharer_set(&club.sharers[0], key, 50);
  cluster_run_for(&club.cluster, 200 * MS);
  pwi_items_state(club.sharers[1].engine, &before);
  assert_int_equal(pwi_items_prefetch(club.sharers[1].engine, &two, 1, 99, 0), PAWL_OK);
  cluster_run_for(&club.cluster, 200 * MS);
  pwi_items_state(club.sharers[1].engine, &after);
  assert_int_equal(after.fetches - before.fetches, 3); /* by one get */
  assert_int_equal(sharer_try(&club.sharers[1], 2, 51, NULL), PWI_ITEMS_FRESH);
  assert_true(lacks_a_version(NULL));
  for (uint64_t key = 0; key < 6; key += 2) sharer_set(&club.sharers[0], key, 99);
  cluster_run_while(&club.cluster, lacks_a_version, NULL, PWI_SIM_SECOND);
  club_close(&club);
}

static void test_members_with_other_sizes_fail(void **state) {
  struct pwi_cluster_config config = {.seed = 3};
  (void)state;
  memset(&club, 0, sizeof club);
  club.count = 2;
  club.other_size[1] = 48;
  club_open(&club, &config);
  cluster_run_while(&club.cluster, club_is_opening, &club, 5 * PWI_SIM_SECOND);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(pwi_items_failure(club.sharers[i].engine), PAWL_MISMATCH);
    assert_non_null(strstr(pwi_items_problem(club.sharers[i].engine), "items have"));
  }
  club_close(&club);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_members_advance_together),
      cmocka_unit_test(test_a_killed_producer_is_replaced),
      cmocka_unit_test(test_a_wait_for_the_last_version_of_a_lost_producer_ends),
      cmocka_unit_test(test_the_last_version_of_a_lost_producer_wakes_those_that_wait),
      cmocka_unit_test(test_either_producer_of_an_item_wakes_those_that_wait),
      cmocka_unit_test(test_a_wait_for_the_last_version_of_one_of_two_producers_ends),
      cmocka_unit_test(test_a_set_while_the_engine_looks_at_the_waits_of_the_item_is_noticed),
      cmocka_unit_test(test_a_producer_that_was_declared_dead_is_not_heard),
      cmocka_unit_test(test_opening_waits_for_a_producer_that_is_being_replaced),
      cmocka_unit_test(test_a_set_that_has_held_up_the_pump_tells),
      cmocka_unit_test(test_a_prefetch_brings_items_that_are_set_later_and_those_between_them),
      cmocka_unit_test(test_members_with_other_sizes_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
