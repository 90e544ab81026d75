/* Seals by a hash: only in the thread of a simulation, and only while there is one. */
#include <threads.h>

#include "base/testing.h"
#include "net/seal.h"
#include "sim/sim.h"

static const uint8_t secret[PWI_SEAL_SECRET] = {1, 2, 3}, other_secret[PWI_SEAL_SECRET] = {1, 2, 4};

static struct pwi_sim *create(bool has_real_seals) {
  struct pwi_sim_config config;
  struct pwi_sim *sim = NULL;
  pwi_sim_config_init(&config);
  config.real_seals = has_real_seals;
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  return sim;
}

static uint64_t beginning(void) {
  uint8_t seal[PWI_SEAL_SIZE];
  uint64_t word = 0;
  if (pwi_seal_make(secret, "text", 4, seal) == PAWL_OK) memcpy(&word, seal, sizeof word);
  return word;
}

static int begin_elsewhere(void *word) {
  *(uint64_t *)word = beginning();
  return 0;
}

static void test_nothing_else_is_a_seal(void **state) {
  uint8_t public_half[PWI_SEAL_PUBLIC], of_other[PWI_SEAL_PUBLIC], seal[PWI_SEAL_SIZE];
  struct pwi_sim *sim = create(false);
  (void)state;
  assert_int_equal(pwi_seal_public(secret, public_half), PAWL_OK);
  assert_int_equal(pwi_seal_public(other_secret, of_other), PAWL_OK);
  assert_int_equal(pwi_seal_make(secret, "text", 4, seal), PAWL_OK);
  assert_true(pwi_seal_check(public_half, "text", 4, seal));
  assert_false(pwi_seal_check(of_other, "text", 4, seal));
  assert_false(pwi_seal_check(public_half, "texT", 4, seal));
  assert_false(pwi_seal_check(public_half, "text", 3, seal));
  for (size_t i = 0; i < sizeof seal; i++) {
    seal[i] ^= 1;
    assert_false(pwi_seal_check(public_half, "text", 4, seal));
    seal[i] ^= 1;
  }
  assert_int_equal(pwi_seal_make(other_secret, "text", 4, seal), PAWL_OK);
  assert_false(pwi_seal_check(public_half, "text", 4, seal));
  memset(public_half, 0, sizeof public_half);
  assert_false(pwi_seal_check(public_half, "text", 4, seal));
  pwi_sim_destroy(sim);
}

static void test_the_algorithm_is_replaced_while_there_is_a_simulation(void **state) {
  (void)state;
  uint64_t real = beginning();
  struct pwi_sim *first = create(false);
  uint64_t simulated = beginning();
  assert_true(simulated != real);
  struct pwi_sim *second = create(false);
  pwi_sim_destroy(first);
  assert_true(beginning() == simulated);
  pwi_sim_destroy(second);
  assert_true(beginning() == real);
  first = create(true);
  assert_true(beginning() == real);
  pwi_sim_destroy(first);
}

static void test_other_threads_are_not_affected(void **state) {
  (void)state;
  uint64_t real = beginning(), elsewhere = 0;
  struct pwi_sim *sim = create(false);
  thrd_t thread;
  assert_int_equal(thrd_create(&thread, begin_elsewhere, &elsewhere), thrd_success);
  assert_int_equal(thrd_join(thread, NULL), thrd_success);
  assert_true(elsewhere == real && beginning() != real);
  pwi_sim_destroy(sim);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_else_is_a_seal),
      cmocka_unit_test(test_the_algorithm_is_replaced_while_there_is_a_simulation),
      cmocka_unit_test(test_other_threads_are_not_affected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
