/* cost: 18
 *
 * The explorer: two orders with one hash are one state; small scopes are explored completely; the replay of a
 * list of choices. */
#include "base/testing.h"
#include "ring/place.h"
#include "sim/explore/inside.h"
#include "sim/explore/scopes_testing.h"

/* --- states --------------------------------------------------------------------------------------------- */

static struct scene one, other;
static struct choice choices[CHOICES_MAX], same[CHOICES_MAX];

/* The same choice in another order of the past. */
static size_t find(const struct choice *wanted, const struct choice *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (list[i].kind == wanted->kind && list[i].node == wanted->node && list[i].from == wanted->from &&
        list[i].which == wanted->which && list[i].due.hash == wanted->due.hash)
      return i;
  fail_msg("a choice at node %u is missing after the other order", wanted->node);
  return 0;
}

/* Nothing is left to choose once all calls have ended, even if messages are in flight. */
static void choose_same(struct scene *scene, const struct choice *wanted) {
  size_t count = pwi_scene_choices(scene, same);
  if (count == 0) return;
  assert_int_equal(pwi_scene_choose(scene, same, count, find(wanted, same, count)), PAWL_OK);
}

static void choose_in_both(const struct choice *wanted) {
  struct choice chosen = *wanted;
  choose_same(&one, &chosen);
  choose_same(&other, &chosen);
}

static uint64_t digest(const struct scene *scene, size_t server) {
  const struct pwi_server *is = scene->cluster.servers[server].server;
  return is ? pwi_server_digest(is, pawl_range_of(0, PWI_RING_END), pwi_server_membership(is)) : 0;
}

static void assert_equal(void) {
  assert_int_equal(pwi_past_hash(&one.past), pwi_past_hash(&other.past));
  if (one.config->merge) assert_int_equal(pwi_scene_effects(&one), pwi_scene_effects(&other));
  assert_int_equal(one.past.time, pwi_sim_now(one.cluster.sim));
  for (size_t i = 0; i < one.config->servers; i++) assert_int_equal(digest(&one, i), digest(&other, i));
  assert_int_equal(pwi_scene_choices(&one, choices), pwi_scene_choices(&other, same));
}

/* A node that loses a link takes back its attempt to connect. */
static bool may_end(const struct choice *one_event, const struct choice *attempt) {
  return strcmp(attempt->due.kind, "connect") == 0 && attempt->from == one_event->node;
}

/* Two of the choices that are events at different nodes; false if there are none. */
static bool draw_pair(size_t count, struct pwi_random *random, struct choice pair[2]) {
  for (int tries = 0; tries < 20; tries++) {
    pair[0] = choices[pwi_random_below(random, count)];
    pair[1] = choices[pwi_random_below(random, count)];
    if (pair[0].kind != CHOICE_EVENT || pair[1].kind != CHOICE_EVENT || pair[0].node == pair[1].node) continue;
    if (!may_end(&pair[0], &pair[1]) && !may_end(&pair[1], &pair[0])) return true;
  }
  return false;
}

/* Takes random choices in both, and now and then two of them in opposite orders. Returns how often. */
static size_t walk(const struct pwi_explore_config *config, uint64_t seed) {
  struct pwi_random random;
  size_t count, swaps = 0;
  pwi_random_init(&random, seed, 1);
  assert_int_equal(pwi_scene_open(&one, config), PAWL_OK);
  assert_int_equal(pwi_scene_open(&other, config), PAWL_OK);
  while ((count = pwi_scene_choices(&one, choices)) > 0) {
    struct choice pair[2];
    if (draw_pair(count, &random, pair)) {
      choose_same(&one, &pair[0]);
      choose_same(&one, &pair[1]);
      choose_same(&other, &pair[1]);
      choose_same(&other, &pair[0]);
      swaps++;
    } else {
      choose_in_both(&choices[pwi_random_below(&random, count)]);
    }
    if (pwi_scene_choices(&one, choices) == 0 || pwi_scene_choices(&other, same) == 0) break;
    assert_equal();
  }
  pwi_scene_check_end(&one);
  assert_null(pwi_sim_failure(one.cluster.sim));
  pwi_scene_close(&one);
  pwi_scene_close(&other);
  return swaps;
}

static void test_two_orders_with_one_hash_are_one_state(void **state) {
  (void)state;
  for (int scenario = 0; scenario < PWI_EXPLORE_SCENARIOS; scenario++)
    for (uint64_t seed = 1; seed <= 8; seed++) {
      struct pwi_explore_config config;
      pwi_explore_config_init(&config, (enum pwi_explore_scenario)scenario, seed % 2);
      config.resets = seed % 4 == 2;
      config.early = (uint32_t)(seed % 3);
      config.merge = seed > 4;
      assert_true(walk(&config, seed) > 3);
    }
}

static void test_the_order_of_events_at_one_node_is_a_difference(void **state) {
  struct pwi_explore_config config;
  uint64_t hashes[2];
  (void)state;
  pwi_explore_config_init(&config, PWI_EXPLORE_HANDOVER, 0);
  for (int way = 0; way < 2; way++) {
    assert_int_equal(pwi_scene_open(&one, &config), PAWL_OK);
    size_t count = pwi_scene_choices(&one, choices);
    struct choice pair[2] = {choices[0], choices[0]};
    for (size_t i = 0; i < count; i++) /* two first messages at one server */
      for (size_t k = 0; k < i; k++)
        if (choices[i].kind == CHOICE_EVENT && choices[k].kind == CHOICE_EVENT && choices[i].node == choices[k].node)
          pair[0] = choices[k], pair[1] = choices[i];
    assert_int_equal(pair[0].node, pair[1].node);
    assert_true(pair[0].due.hash != pair[1].due.hash);
    choose_same(&one, &pair[way]);
    choose_same(&one, &pair[1 - way]);
    hashes[way] = pwi_past_hash(&one.past);
    pwi_scene_close(&one);
  }
  assert_true(hashes[0] != hashes[1]);
}

/* --- scopes --------------------------------------------------------------------------------------------- */

static void test_the_smallest_scopes_hold_in_every_order(void **state) {
  static const struct scope scopes[] = {
      {PWI_EXPLORE_HANDOVER, 1, 1, 0, 0, 0, true, 8000, true},
      {PWI_EXPLORE_RETIRE, 1, 1, 0, 0, 0, true, 8000, true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) explore_scope(&scopes[i]);
}

static void test_larger_scopes_hold_in_the_simplest_orders(void **state) {
  static const struct scope scopes[] = {
      {PWI_EXPLORE_HANDOVER, 2, 3, 1, 0, 0, false, 4000, false},
      {PWI_EXPLORE_HANDOVER, 2, 3, 0, 1, 0, false, 4000, false},
      {PWI_EXPLORE_MOVE, 2, 3, 0, 0, 0, false, 4000, false},
      {PWI_EXPLORE_MOVE, 1, 2, 1, 0, 0, false, 4000, false},
      {PWI_EXPLORE_FILL, 2, 3, 0, 0, 0, false, 4000, false},
      {PWI_EXPLORE_FILL, 1, 1, 1, 0, 0, false, 20000, false},
      {PWI_EXPLORE_RETIRE, 2, 3, 1, 0, 0, false, 4000, false},
      {PWI_EXPLORE_RETIRE, 2, 3, 0, 1, 0, false, 4000, false},
      {PWI_EXPLORE_BARRIER, 2, 2, 1, 0, 0, false, 4000, false},
      {PWI_EXPLORE_BARRIER, 2, 2, 0, 1, 1, false, 4000, false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) explore_scope(&scopes[i]);
}

/* --- lists of choices ----------------------------------------------------------------------------------- */

static void count_lines(void *context, const char *line) {
  (void)line;
  ++*(uint32_t *)context;
}

static void test_a_list_of_choices_is_replayed(void **state) {
  static struct pwi_explore_result result;
  struct pwi_explore_config config;
  uint8_t path[PWI_EXPLORE_STEPS];
  uint32_t size, lines = 0;
  char text[64];
  (void)state;
  pwi_explore_config_init(&config, PWI_EXPLORE_HANDOVER, 0);
  assert_true(pwi_explore_path_read("2,0,1,0,0", path, &size));
  assert_int_equal(size, 5);
  assert_int_equal(pwi_explore_replay(&config, path, size, count_lines, &lines, &result), PAWL_OK);
  assert_false(result.has_failed);
  assert_true(lines > 30);
  assert_int_equal(result.path_size, lines);
  pwi_explore_path_text(result.path, result.path_size, text, sizeof text);
  assert_string_equal(text, "2,0,1"); /* zeros follow by themselves */
  assert_int_equal(pwi_explore_replay(&config, (const uint8_t[]){63}, 1, count_lines, &lines, &result), PAWL_INVALID);
  assert_true(pwi_explore_path_read("", path, &size));
  assert_int_equal(size, 0);
  assert_false(pwi_explore_path_read("1,", path, &size));
  assert_false(pwi_explore_path_read(",1", path, &size));
  assert_false(pwi_explore_path_read("64", path, &size));
  assert_false(pwi_explore_path_read("1;2", path, &size));
}

static void test_scopes_that_do_not_fit_are_refused(void **state) {
  static struct pwi_explore_result result;
  struct pwi_explore_config config;
  (void)state;
  pwi_explore_config_init(&config, PWI_EXPLORE_MOVE, 0);
  config.crashes = 1; /* and no replica */
  assert_int_equal(pwi_explore(&config, &result), PAWL_INVALID);
  pwi_explore_config_init(&config, PWI_EXPLORE_FILL, 0);
  config.servers = 2;
  assert_int_equal(pwi_explore(&config, &result), PAWL_INVALID);
  pwi_explore_config_init(&config, PWI_EXPLORE_BARRIER, 0);
  config.clients = 1;
  assert_int_equal(pwi_explore(&config, &result), PAWL_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_orders_with_one_hash_are_one_state),
      cmocka_unit_test(test_the_order_of_events_at_one_node_is_a_difference),
      cmocka_unit_test(test_a_list_of_choices_is_replayed),
      cmocka_unit_test(test_scopes_that_do_not_fit_are_refused),
      cmocka_unit_test(test_the_smallest_scopes_hold_in_every_order),
      cmocka_unit_test(test_larger_scopes_hold_in_the_simplest_orders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
