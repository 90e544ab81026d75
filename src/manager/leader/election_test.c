/* Campaigns, leases and terms in the simulator: leaders that are killed, stopped and cut off. */
#include "base/random.h"
#include "base/testing.h"
#include "sim/meta.h"
#include "sim/sim.h"
#include "manager/leader/meta_testing.h"

static void test_one_leads_and_the_others_know_where(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 1, 3);
  run_for(&scene, 1000 * MS);
  struct seat *leader = leader_of(&scene);
  assert_non_null(leader);
  assert_int_equal(leader->election.term, 1);
  for (size_t i = 0; i < SEATS; i++) {
    if (&scene.seats[i] == leader) continue;
    assert_int_equal(scene.seats[i].election.state, PWI_ELECTION_BEHIND);
    assert_string_equal(scene.seats[i].election.leader, leader->address);
    assert_int_equal(scene.seats[i].election.term, 1);
  }
  scene_close(&scene);
}

static void test_a_killed_leader_is_replaced_within_three_seconds(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 2, 2);
  run_for(&scene, 1000 * MS);
  for (uint64_t term = 1; term < 6; term++) {
    struct seat *leader = leader_of(&scene);
    assert_non_null(leader);
    assert_int_equal(leader->election.term, term);
    pwi_sim_kill(scene.sim, leader->node);
    run_for(&scene, 1400 * MS); /* the lease was renewed half a second ago at most */
    assert_null(leader_of(&scene));
    run_for(&scene, 1600 * MS);
    assert_non_null(leader_of(&scene));
    OK(pwi_sim_start(scene.sim, leader->node));
  }
  scene_close(&scene);
}

static void test_a_stopped_leader_finds_that_it_was_replaced(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 3, 2);
  run_for(&scene, 1000 * MS);
  struct seat *old = leader_of(&scene);
  pwi_sim_pause(scene.sim, old->node, 4000 * MS);
  run_for(&scene, 3500 * MS);
  struct seat *fresh = old == &scene.seats[0] ? &scene.seats[1] : &scene.seats[0];
  assert_int_equal(fresh->election.state, PWI_ELECTION_LEADING);
  assert_int_equal(fresh->election.term, 2);
  run_for(&scene, 600 * MS);
  assert_int_equal(old->election.state, PWI_ELECTION_LOST);
  assert_int_equal(old->election.trouble, PAWL_NODE_DEPOSED);
  scene_close(&scene);
}

static void test_a_leader_survives_a_store_that_is_away_for_less_than_its_lease(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 4, 2);
  run_for(&scene, 1000 * MS);
  struct seat *leader = leader_of(&scene);
  for (int i = 0; i < 20; i++) {
    pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, true);
    run_for(&scene, 1200 * MS);
    pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, false);
    run_for(&scene, 700 * MS);
    assert_ptr_equal(leader_of(&scene), leader);
  }
  assert_int_equal(leader->election.term, 1);
  assert_int_equal(leader->election.trouble, PAWL_OK);
  scene_close(&scene);
}

/* Another leader is elected meanwhile. Both believe that they lead, which the fence makes harmless. */
static void test_a_leader_that_is_cut_off_gives_up_in_the_end(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 5, 2);
  run_for(&scene, 1000 * MS);
  struct seat *old = leader_of(&scene);
  struct seat *fresh = old == &scene.seats[0] ? &scene.seats[1] : &scene.seats[0];
  pwi_sim_meta_cut(scene.store, old->node, true);
  run_for(&scene, 2400 * MS);
  assert_int_equal(old->election.state, PWI_ELECTION_LEADING);
  assert_int_not_equal(old->election.trouble, PAWL_OK);
  run_for(&scene, 700 * MS);
  assert_int_equal(fresh->election.term, 2);
  assert_int_equal(old->election.state, PWI_ELECTION_LOST);
  assert_ptr_equal(leader_of(&scene), fresh);
  scene_close(&scene);
}

static int64_t asked_before;

static bool has_not_asked(void *context) { return ((struct seat *)context)->election.asked_at == asked_before; }

/* The store counts from the moment at which the leader asked, or later. The answer reaches the leader late. */
static void test_a_lease_counts_from_the_moment_at_which_it_was_asked_for(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 9, 2);
  run_for(&scene, 1000 * MS);
  struct seat *old = leader_of(&scene);
  asked_before = old->election.asked_at;
  OK(pwi_sim_run_while(scene.sim, has_not_asked, old, pwi_sim_now(scene.sim) + 5000 * MS));
  pwi_sim_pause(scene.sim, old->node, 900 * MS);
  run_for(&scene, 100 * MS);
  pwi_sim_meta_cut(scene.store, old->node, true);
  run_for(&scene, 3000 * MS);
  assert_int_equal(old->election.state, PWI_ELECTION_LOST);
  scene_close(&scene);
}

static void test_a_leader_that_resigns_is_succeeded_at_once(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 6, 2);
  run_for(&scene, 1000 * MS);
  struct seat *old = leader_of(&scene);
  pwi_election_resign(&old->election);
  run_for(&scene, 400 * MS);
  assert_int_equal(old->election.state, PWI_ELECTION_LOST);
  assert_int_equal(old->election.trouble, PAWL_OK);
  assert_non_null(leader_of(&scene));
  assert_ptr_not_equal(leader_of(&scene), old);
  scene_close(&scene);
}

static void test_resigning_without_a_store_takes_a_second(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 7, 1);
  run_for(&scene, 1000 * MS);
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, true);
  pwi_election_resign(&scene.seats[0].election);
  run_for(&scene, 1200 * MS);
  assert_int_equal(scene.seats[0].election.state, PWI_ELECTION_LOST);
  scene_close(&scene);
}

static void test_a_store_that_comes_late_is_waited_for(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 8, 2);
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, true);
  run_for(&scene, 30000 * MS);
  assert_null(leader_of(&scene));
  assert_int_equal(scene.seats[0].election.trouble, PAWL_TIMED_OUT);
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, false);
  run_for(&scene, 2000 * MS);
  assert_non_null(leader_of(&scene));
  scene_close(&scene);
}

/* --- what is not ours ----------------------------------------------------------------------------------- */

static void put(struct scene *scene, const char *key, const char *value) {
  plant(&scene->seats[0], key, value, strlen(value), true);
}

static void test_malformed_keys_of_the_store_are_left_alone(void **state) {
  (void)state;
  static const char *const terms[] = {"", "x", "-1", "1x", "01", "0", "99999999999999999999", " 1"};
  static const char *const leaders[] = {"", "1", "1 ", "x y", "1 a b", "0 a:1", "1\ta:1", "1 a:1\n", "2 a:1"};
  struct scene scene;
  for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
    scene_open(&scene, 10 + i, 1);
    put(&scene, PREFIX "/term", terms[i]);
    run_for(&scene, 3000 * MS);
    assert_int_equal(scene.seats[0].election.state, PWI_ELECTION_FAILED);
    assert_int_equal(scene.seats[0].election.trouble, PAWL_CORRUPT);
    scene_close(&scene);
  }
  for (size_t i = 0; i < sizeof leaders / sizeof *leaders; i++) {
    scene_open(&scene, 30 + i, 1);
    put(&scene, PREFIX "/leader", leaders[i]);
    put(&scene, PREFIX "/term", "1");
    run_for(&scene, 3000 * MS);
    assert_int_equal(scene.seats[0].election.state, PWI_ELECTION_FAILED);
    scene_close(&scene);
  }
}

static void test_a_leaders_value_has_one_form(void **state) {
  (void)state;
  uint64_t term = 0;
  char address[PWI_NET_ADDRESS_MAX], line[400];
  OK(pwi_leader_decode("17 tcp://h:1", 12, &term, address));
  assert_int_equal(term, 17);
  assert_string_equal(address, "tcp://h:1");
  for (size_t size = 0; size < 4; size++)
    assert_int_equal(pwi_leader_decode("17 tcp", size, &term, address), size < 4 ? PAWL_CORRUPT : PAWL_OK);
  memset(line, 'a', sizeof line);
  memcpy(line, "1 ", 2);
  assert_int_equal(pwi_leader_decode(line, sizeof line, &term, address), PAWL_CORRUPT);
  assert_int_equal(pwi_leader_decode("18446744073709551616 a", 22, &term, address), PAWL_CORRUPT);
  assert_int_equal(pwi_leader_decode("1 a\0b", 5, &term, address), PAWL_CORRUPT);
  assert_int_equal(term, 17);
}

/* --- whatever happens ----------------------------------------------------------------------------------- */

/* Seats are killed, stopped and cut off at random. note_win checks that no term is won twice. At the end,
 * without faults, one seat leads. */
static void run_seed(uint64_t seed, uint64_t *terms) {
  struct scene scene;
  struct pwi_random random;
  scene_open(&scene, seed, 3);
  pwi_sim_stream(scene.sim, 5, &random);
  for (int i = 0; i < 60; i++) {
    struct seat *seat = &scene.seats[pwi_random_below(&random, SEATS)];
    switch (pwi_random_below(&random, 6)) {
    case 0:
      if (seat->net) pwi_sim_kill(scene.sim, seat->node);
      break;
    case 1:
      pwi_sim_pause(scene.sim, seat->node, (int64_t)pwi_random_below(&random, 5000) * MS);
      break;
    case 2:
    case 3:
      pwi_sim_meta_cut(scene.store, seat->node, pwi_random_chance(&random, 0.5));
      break;
    case 4:
      pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, pwi_random_chance(&random, 0.3));
      break;
    default:
      if (seat->net) pwi_election_resign(&seat->election);
      break;
    }
    run_for(&scene, (int64_t)pwi_random_below(&random, 2000) * MS);
    for (size_t s = 0; s < SEATS; s++) {
      if (scene.seats[s].net && scene.seats[s].election.state == PWI_ELECTION_LOST)
        pwi_sim_kill(scene.sim, scene.seats[s].node);
      if (!scene.seats[s].net) OK(pwi_sim_start(scene.sim, scene.seats[s].node));
    }
  }
  for (size_t s = 0; s < SEATS; s++) pwi_sim_meta_cut(scene.store, scene.seats[s].node, false);
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, false);
  run_for(&scene, 20000 * MS);
  if (!leader_of(&scene)) fail_msg("seed %llu: no seat leads", (unsigned long long)seed);
  size_t size;
  const char *value = pwi_sim_meta_get(scene.store, PREFIX "/term", &size);
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)scene.highest);
  assert_true(size == strlen(text) && memcmp(value, text, size) == 0);
  *terms += scene.highest;
  scene_close(&scene);
}

static void test_no_term_is_won_twice_whatever_happens(void **state) {
  (void)state;
  uint64_t terms = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) run_seed(seed, &terms);
  printf("%llu terms in 200 seeds\n", (unsigned long long)terms);
  assert_true(terms > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_leads_and_the_others_know_where),
      cmocka_unit_test(test_a_killed_leader_is_replaced_within_three_seconds),
      cmocka_unit_test(test_a_stopped_leader_finds_that_it_was_replaced),
      cmocka_unit_test(test_a_leader_survives_a_store_that_is_away_for_less_than_its_lease),
      cmocka_unit_test(test_a_leader_that_is_cut_off_gives_up_in_the_end),
      cmocka_unit_test(test_a_lease_counts_from_the_moment_at_which_it_was_asked_for),
      cmocka_unit_test(test_a_leader_that_resigns_is_succeeded_at_once),
      cmocka_unit_test(test_resigning_without_a_store_takes_a_second),
      cmocka_unit_test(test_a_store_that_comes_late_is_waited_for),
      cmocka_unit_test(test_malformed_keys_of_the_store_are_left_alone),
      cmocka_unit_test(test_a_leaders_value_has_one_form),
      cmocka_unit_test(test_no_term_is_won_twice_whatever_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
