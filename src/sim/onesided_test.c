/* One-sided operations: order, notification, fences, tokens, torn reads, and writes that land late. */
#include "base/memory.h"
#include "base/testing.h"
#include "sim/puppet.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define SIZE 65536

/* `a` accesses regions of `b`. */
static struct pwi_sim *sim;
static struct puppet a, b;
static struct pwi_region *region;
static struct pwi_remote remote;
static uint8_t token[PWI_NET_TOKEN_MAX];
static size_t token_size;

static void run_for(int64_t duration) {
  assert_int_equal(pwi_sim_run_until(sim, pwi_sim_now(sim) + duration), PAWL_OK);
}

static void share(unsigned access) {
  assert_int_equal(pwi_net_region_share(b.net, region, b.link, access, token, &token_size), PAWL_OK);
  assert_int_equal(pwi_net_remote_open(a.net, a.link, token, token_size, &remote), PAWL_OK);
}

static void begin_world(uint64_t seed, double plane_chance, unsigned access) {
  struct pwi_sim_config config;
  struct pwi_link link;
  pwi_sim_config_init(&config);
  config.seed = seed;
  config.plane_chance = plane_chance;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", NULL), PAWL_OK);
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(pwi_net_region_open(b.net, SIZE, &region), PAWL_OK);
  share(access);
}

static void finish_world(void) {
  assert_null(pwi_sim_failure(sim));
  pwi_sim_destroy(sim);
}

static uint8_t *memory(void) { return pwi_net_region_memory(region); }

static void test_puts_land_in_order_and_a_fence_waits_for_them(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_world(seed, 0.5, PWI_ACCESS_WRITE);
    static uint8_t large[SIZE];
    memset(large, 7, sizeof large);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, 0, large, SIZE, 0, 1), PAWL_OK);
    for (uint64_t i = 1; i <= 50; i++)
      assert_int_equal(pwi_net_put(a.net, a.link, remote, 64, &i, sizeof i, i, 0), PAWL_OK);
    assert_int_equal(pwi_net_fence(a.net, a.link, 99), PAWL_OK);
    while (puppet_count(&a, NOTE_DONE) == 0 || puppet_find(&a, NOTE_DONE, puppet_count(&a, NOTE_DONE) - 1)->value != 99)
      assert_int_equal(pwi_sim_step(sim), PAWL_OK);
    uint64_t last;
    memcpy(&last, memory() + 64, sizeof last);
    assert_int_equal(last, 50);
    assert_int_equal(memory()[SIZE - 1], 7);
    run_for(50 * MS);
    assert_int_equal(puppet_count(&b, NOTE_NOTIFIED), 50);
    finish_world();
  }
}

/* A notification comes after its put has landed. */
static void test_a_notification_follows_its_put(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_world(seed, 0.5, PWI_ACCESS_WRITE);
    for (uint64_t i = 1; i <= 20; i++)
      assert_int_equal(pwi_net_put(a.net, a.link, remote, 8 * i, &i, sizeof i, i, 0), PAWL_OK);
    while (puppet_count(&b, NOTE_NOTIFIED) < 20) {
      assert_int_equal(pwi_sim_step(sim), PAWL_OK);
      for (size_t i = 0; i < puppet_count(&b, NOTE_NOTIFIED); i++) {
        uint64_t value = puppet_find(&b, NOTE_NOTIFIED, i)->value, there;
        memcpy(&there, memory() + 8 * value, sizeof there);
        assert_int_equal(there, value);
      }
    }
    finish_world();
  }
}

static void test_a_get_reads_what_is_there_and_may_be_torn_by_a_put(void **state) {
  (void)state;
  size_t torn = 0;
  static uint8_t ones[4096], into[4096];
  memset(ones, 1, sizeof ones);
  for (uint64_t seed = 1; seed <= 300; seed++) {
    begin_world(seed, 1, PWI_ACCESS_READ | PWI_ACCESS_WRITE);
    memset(into, 9, sizeof into);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, 0, ones, sizeof ones, 0, 0), PAWL_OK);
    assert_int_equal(pwi_net_get(a.net, a.link, remote, 0, into, sizeof into, 5), PAWL_OK);
    run_for(50 * MS);
    assert_int_equal(puppet_find(&a, NOTE_DONE, 0)->status, PAWL_OK);
    size_t count = 0;
    for (size_t i = 0; i < sizeof into; i++) {
      assert_true(into[i] <= 1);
      count += into[i];
    }
    torn += count > 0 && count < sizeof into;
    assert_int_equal(pwi_net_get(a.net, a.link, remote, 0, into, sizeof into, 6), PAWL_OK);
    run_for(50 * MS);
    assert_memory_equal(into, ones, sizeof into);
    finish_world();
  }
  assert_true(torn > 0);
}

static void expect_protocol(void) {
  run_for(50 * MS);
  assert_int_equal(puppet_find(&a, NOTE_DOWN, 0)->status, PAWL_LINK_PROTOCOL);
  assert_int_equal(puppet_find(&b, NOTE_DOWN, 0)->status, PAWL_LINK_PROTOCOL);
  for (size_t i = 0; i < SIZE; i++) assert_int_equal(memory()[i], 0);
  finish_world();
}

static void test_reaching_too_far_or_without_leave_takes_the_link_down(void **state) {
  (void)state;
  uint64_t one = UINT64_MAX;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    begin_world(seed, 0.5, PWI_ACCESS_WRITE);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, SIZE - 7, &one, 8, 0, 1), PAWL_OK);
    expect_protocol();
    begin_world(seed, 0.5, PWI_ACCESS_WRITE);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, UINT64_MAX - 3, &one, 8, 0, 1), PAWL_OK);
    expect_protocol();
    begin_world(seed, 0.5, PWI_ACCESS_READ);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, 0, &one, 8, 0, 1), PAWL_OK);
    expect_protocol();
    begin_world(seed, 0.5, PWI_ACCESS_WRITE);
    assert_int_equal(pwi_net_get(a.net, a.link, remote, 0, &one, 8, 1), PAWL_OK);
    expect_protocol();
  }
}

static void test_a_region_is_shared_for_writing_with_one_link_only(void **state) {
  (void)state;
  begin_world(1, 1, PWI_ACCESS_WRITE);
  struct pwi_link first = b.link, second;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &second), PAWL_OK);
  run_for(50 * MS);
  assert_int_not_equal(b.link.id, first.id);
  assert_int_equal(pwi_net_region_share(b.net, region, b.link, PWI_ACCESS_WRITE, token, &token_size), PAWL_FORBIDDEN);
  assert_int_equal(pwi_net_region_share(b.net, region, b.link, PWI_ACCESS_READ, token, &token_size), PAWL_OK);
  assert_int_equal(pwi_net_region_share(b.net, region, first, PWI_ACCESS_WRITE, token, &token_size), PAWL_OK);
  finish_world();
}

static void test_tokens_that_were_damaged_or_came_elsewhere_are_refused(void **state) {
  (void)state;
  begin_world(1, 1, PWI_ACCESS_READ);
  struct pwi_remote ignored;
  for (size_t size = 0; size < token_size; size++)
    assert_int_equal(pwi_net_remote_open(a.net, a.link, token, size, &ignored), PAWL_CORRUPT);
  for (size_t i = 0; i < token_size * 8; i++) {
    token[i / 8] ^= (uint8_t)(1 << i % 8);
    assert_int_equal(pwi_net_remote_open(a.net, a.link, token, token_size, &ignored), PAWL_CORRUPT);
    token[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  struct pwi_link second;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &second), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(pwi_net_remote_open(a.net, second, token, token_size, &ignored), PAWL_CORRUPT);
  uint64_t value = 0;
  assert_int_equal(pwi_net_put(a.net, second, remote, 0, &value, 8, 0, 0), PAWL_INVALID);
  finish_world();
}

static void test_a_late_put_lands_in_its_own_region_or_nowhere(void **state) {
  (void)state;
  size_t late = 0, after_close = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    begin_world(seed, 1, PWI_ACCESS_WRITE);
    static uint8_t bytes[8192];
    memset(bytes, 0xee, sizeof bytes);
    for (uint64_t i = 0; i < 8; i++)
      assert_int_equal(pwi_net_put(a.net, a.link, remote, i * sizeof bytes, bytes, sizeof bytes, 0, i + 1), PAWL_OK);
    pwi_sim_kill(sim, a.node);
    memset(bytes, 0x11, sizeof bytes); /* the process is gone, and so is its memory */
    while (puppet_count(&b, NOTE_DOWN) == 0) assert_int_equal(pwi_sim_step(sim), PAWL_OK);
    size_t before = 0, after = 0;
    for (size_t i = 0; i < SIZE; i++) before += memory()[i] != 0;
    if (seed % 2) {
      run_for(10000 * MS);
      for (size_t i = 0; i < SIZE; i++) {
        assert_true(memory()[i] == 0 || memory()[i] == 0xee);
        after += memory()[i] != 0;
      }
      late += after > before;
    } else {
      pwi_net_region_close(b.net, region);
      /* in the same slot of the table */
      assert_int_equal(pwi_net_region_open(b.net, SIZE, &region), PAWL_OK);
      run_for(10000 * MS);
      for (size_t i = 0; i < SIZE; i++) after_close += memory()[i] != 0;
    }
    finish_world();
  }
  assert_true(late > 0);
  assert_int_equal(after_close, 0);
}

static void test_operations_on_a_closed_region_end(void **state) {
  (void)state;
  size_t broken = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_world(seed, 0.5, PWI_ACCESS_READ | PWI_ACCESS_WRITE);
    uint64_t value = 3;
    pwi_net_region_close(b.net, region);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, 0, &value, 8, 4, 1), PAWL_OK);
    assert_int_equal(pwi_net_get(a.net, a.link, remote, 0, &value, 8, 2), PAWL_OK);
    run_for(50 * MS);
    assert_int_equal(puppet_count(&a, NOTE_DONE), 2);
    assert_int_equal(value, 3);
    broken += puppet_count(&a, NOTE_DOWN);
    if (puppet_count(&a, NOTE_DOWN)) assert_int_equal(puppet_find(&a, NOTE_DOWN, 0)->status, PAWL_LINK_PROTOCOL);
    finish_world();
  }
  assert_true(broken > 0 && broken < 20); /* either may happen */
}

static void test_everything_ends_when_the_link_does(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_world(seed, 0.5, PWI_ACCESS_READ | PWI_ACCESS_WRITE);
    static uint8_t bytes[SIZE];
    for (uint64_t i = 0; i < 10; i++) {
      assert_int_equal(pwi_net_put(a.net, a.link, remote, 0, bytes, 8000, 0, 3 * i + 1), PAWL_OK);
      assert_int_equal(pwi_net_get(a.net, a.link, remote, 0, bytes + 8000, 8000, 3 * i + 2), PAWL_OK);
      assert_int_equal(pwi_net_fence(a.net, a.link, 3 * i + 3), PAWL_OK);
    }
    pwi_sim_break(sim, a.node, b.node);
    run_for(50 * MS);
    assert_int_equal(puppet_count(&a, NOTE_DONE), 30);
    assert_int_equal(a.notes[a.note_count - 1].kind, NOTE_DOWN);
    assert_int_equal(pwi_net_put(a.net, a.link, remote, 0, bytes, 8, 0, 1), PAWL_NOT_FOUND);
    finish_world();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_puts_land_in_order_and_a_fence_waits_for_them),
      cmocka_unit_test(test_a_notification_follows_its_put),
      cmocka_unit_test(test_a_get_reads_what_is_there_and_may_be_torn_by_a_put),
      cmocka_unit_test(test_reaching_too_far_or_without_leave_takes_the_link_down),
      cmocka_unit_test(test_a_region_is_shared_for_writing_with_one_link_only),
      cmocka_unit_test(test_tokens_that_were_damaged_or_came_elsewhere_are_refused),
      cmocka_unit_test(test_a_late_put_lands_in_its_own_region_or_nowhere),
      cmocka_unit_test(test_operations_on_a_closed_region_end),
      cmocka_unit_test(test_everything_ends_when_the_link_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
