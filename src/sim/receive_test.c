/* Ready messages in the simulator: which messages are ready, that they come at once, and that none is
 * delivered in part. The puppet checks the promises about their pieces. */
#include "base/testing.h"
#include "sim/puppet.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define LARGE ((size_t)200000)

static struct pwi_sim *sim;
static struct puppet a, b;
static uint8_t body[LARGE];

static void begin_world(uint64_t seed, double ready_chance, bool one_host) {
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.seed = seed;
  config.ready_chance = ready_chance;
  config.plane_chance = 1;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  for (size_t i = 0; i < sizeof body; i++) body[i] = (uint8_t)(i * 7 + i / 255 + seed);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", "here"), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", one_host ? "here" : "there"), PAWL_OK);
}

static void run_for(int64_t duration) {
  assert_int_equal(pwi_sim_run_until(sim, pwi_sim_now(sim) + duration), PAWL_OK);
}

static void connect_them(void) {
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  b.note_count = 0;
}

static const struct note *send_one(enum pwi_lane lane, size_t size) {
  b.note_count = 0;
  memset(b.body, 0, sizeof b.body);
  assert_int_equal(puppet_send(&a, lane, 1, body, size, 1), PAWL_OK);
  run_for(200 * MS);
  const struct note *note = puppet_find(&b, NOTE_MESSAGE, 0);
  assert_true(note->ended && !note->badly_cut);
  assert_int_equal(note->status, PAWL_OK);
  assert_memory_equal(b.body, body, size);
  return note;
}

static void test_a_ready_body_comes_whole_or_in_odd_pieces(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 2, 64, 1000, 4097, 65536, LARGE};
  size_t whole = 0, cut = 0, odd = 0, most = 0;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin_world(seed, 1, true);
    connect_them();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const struct note *note = send_one(PWI_LANE_DATA, sizes[i]);
      assert_true(note->ready);
      if (sizes[i] == 0) assert_int_equal(note->pieces, 0);
      whole += note->pieces == 1;
      cut += note->pieces > 1;
      if (note->pieces > most) most = note->pieces;
      for (size_t p = 0; p < note->pieces; p++) odd += (uintptr_t)b.pieces[p] % 2;
    }
    pwi_sim_destroy(sim);
  }
  assert_true(whole > 0 && cut > 0 && odd > 0);
  assert_in_range(most, 2, PWI_NET_READY_PIECES);
}

static void test_only_small_bodies_are_ready_beyond_one_host(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++)
    for (int one_host = 0; one_host < 2; one_host++) {
      begin_world(seed, 1, one_host);
      connect_them();
      assert_true(send_one(PWI_LANE_LINK, 1000)->ready);
      assert_true(send_one(PWI_LANE_DATA, 1000)->ready);
      assert_false(send_one(PWI_LANE_LINK, LARGE)->ready);
      assert_int_equal(send_one(PWI_LANE_DATA, LARGE)->ready, one_host);
      pwi_sim_destroy(sim);
      begin_world(seed, 0, one_host);
      connect_them();
      assert_false(send_one(PWI_LANE_LINK, 1000)->ready);
      assert_false(send_one(PWI_LANE_DATA, LARGE)->ready);
      pwi_sim_destroy(sim);
    }
}

/* Also a message whose sender failed: it may be damaged, which the receiver's checksum must detect, but it
 * is complete. */
static void test_a_ready_message_never_ends_half_way(void **state) {
  (void)state;
  size_t ready = 0, broken = 0, garbled = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    begin_world(seed, 0.5, true);
    connect_them();
    for (uint64_t i = 0; i < 6; i++) assert_int_equal(puppet_send(&a, PWI_LANE_DATA, i, body, LARGE, i + 1), PAWL_OK);
    run_for((int64_t)(seed % 20) * 20 * PWI_SIM_MICROSECOND);
    if (seed % 2)
      pwi_sim_break(sim, a.node, b.node);
    else
      pwi_sim_kill(sim, a.node);
    run_for(100 * MS);
    for (size_t i = 0; i < puppet_count(&b, NOTE_MESSAGE); i++) {
      const struct note *note = puppet_find(&b, NOTE_MESSAGE, i);
      assert_true(note->ended && !note->badly_cut);
      if (note->ready) assert_int_equal(note->status, PAWL_OK);
      ready += note->ready;
      broken += note->status != PAWL_OK;
    }
    const struct note *last = puppet_find(&b, NOTE_MESSAGE, puppet_count(&b, NOTE_MESSAGE) - 1);
    garbled += last && last->ready && memcmp(b.body, body, LARGE) != 0;
    pwi_sim_destroy(sim);
  }
  assert_true(ready > 0 && broken > 0 && garbled > 0);
}

static uint64_t run_once(uint64_t seed, double ready_chance) {
  begin_world(seed, ready_chance, true);
  connect_them();
  for (uint64_t i = 0; i < 50; i++) {
    pawl_status status = puppet_send(&a, i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, i, body, 1000 * (size_t)i, i + 1);
    assert_int_equal(status, PAWL_OK);
    if (i == 30) run_for(MS);
  }
  run_for(100 * MS);
  uint64_t hash = pwi_sim_trace_hash(sim);
  pwi_sim_destroy(sim);
  return hash;
}

static void test_the_seed_decides_what_is_ready(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    assert_int_equal(run_once(seed, 0.5), run_once(seed, 0.5));
    assert_int_not_equal(run_once(seed, 0.5), run_once(seed + 50, 0.5));
    assert_int_not_equal(run_once(seed, 0.5), run_once(seed, 0));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_ready_body_comes_whole_or_in_odd_pieces),
      cmocka_unit_test(test_only_small_bodies_are_ready_beyond_one_host),
      cmocka_unit_test(test_a_ready_message_never_ends_half_way),
      cmocka_unit_test(test_the_seed_decides_what_is_ready),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
