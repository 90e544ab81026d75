/* Server functions from shared objects: those of examples/functions, loaded, taken in and put to work on tables. */
#include <dlfcn.h>

#include "base/random.h"
#include "base/testing.h"
#include "store/functions/apply.h"

#define SEED 3
#define ROWS 3000

typedef const struct pawl_server_function *const *exported(uint32_t *count_out);

static struct pwi_function_set set;
static struct pwi_function_problem problem;

static void load(const char *name) {
  char path[4096];
  exported *functions;
  uint32_t count = 0;
  const char *build = getenv("PAWL_BUILD");
  assert_non_null(build);
  snprintf(path, sizeof path, "%s/examples/functions/%s.so", build, name);
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays for as long as the program */
  if (!object) fail_msg("%s", dlerror());
  *(void **)&functions = dlsym(object, "pawl_functions");
  assert_non_null(functions);
  const struct pawl_server_function *const *list = functions(&count);
  assert_int_equal(count, 1);
  if (pwi_function_set_add(&set, list[0], &problem) != PAWL_OK) fail_msg("%s", problem.text);
}

static int load_all(void **state) {
  (void)state;
  load("block_proximal");
  load("countmin");
  return 0;
}

static int unload(void **state) {
  (void)state;
  pwi_function_set_fini(&set);
  return 0;
}

static struct pwi_applying applying_of(const char *text, enum pwi_scalar type, uint32_t width) {
  struct pwi_applying applying;
  struct pwi_rule rule;
  if (pwi_rule_parse(&set, text, &rule, &problem) != PAWL_OK) fail_msg("%s", problem.text);
  assert_int_equal(pwi_applying_init(&applying, &rule, type, width), PAWL_OK);
  return applying;
}

static struct pwi_table *table_for(const struct pwi_applying *is) {
  struct pwi_table_options options = {is->type, is->shape.stored, is->shape.state, {0, ROWS}, false};
  struct pwi_table *table = NULL;
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  return table;
}

static void test_algorithm_3_from_outside_is_the_one_from_inside(void **state) {
  (void)state;
  static double pairs[4 * ROWS], found[2 * ROWS], wanted[2 * ROWS];
  struct pwi_applying ours = applying_of("block_proximal rate=0.7 l1=0.3 eps=0.01", PWI_SCALAR_F64, 2);
  struct pwi_applying theirs = applying_of("example_proximal rate=0.7 l1=0.3 eps=0.01", PWI_SCALAR_F64, 2);
  struct pwi_table *inside = table_for(&ours), *outside = table_for(&theirs);
  struct pwi_rows_named all = {.count = ROWS};
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 5; round++) {
    for (size_t i = 0; i < 4 * ROWS; i++) pairs[i] = pwi_random_unit(&random) - (i % 2 ? 0 : 0.5);
    assert_int_equal(pwi_applying_push(&ours, inside, all, pairs, wanted), PAWL_OK);
    assert_int_equal(pwi_applying_push(&theirs, outside, all, pairs, found), PAWL_OK);
    assert_memory_equal(found, wanted, sizeof wanted);
  }
  pairs[4 * ROWS - 1] = -1;
  assert_int_equal(pwi_applying_push(&theirs, outside, all, pairs, NULL), PAWL_REFUSED);
  assert_int_equal(pwi_table_range_read(outside, 0, 0, 2 * ROWS, found), PAWL_OK);
  assert_memory_equal(found, wanted, sizeof wanted);
  pwi_table_destroy(inside);
  pwi_table_destroy(outside);
  pwi_applying_fini(&ours);
  pwi_applying_fini(&theirs);
}

static void test_countmin_refuses_to_overflow(void **state) {
  (void)state;
  static uint64_t more[ROWS], cells[ROWS];
  struct pwi_applying is = applying_of("countmin", PWI_SCALAR_U64, 1);
  struct pwi_table *table = table_for(&is);
  struct pwi_rows_named all = {.count = ROWS};
  for (size_t i = 0; i < ROWS; i++) more[i] = i;
  more[ROWS - 1] = UINT64_MAX;
  assert_int_equal(pwi_applying_push(&is, table, all, more, NULL), PAWL_OK);
  more[ROWS - 1] = 1;
  assert_int_equal(pwi_applying_push(&is, table, all, more, NULL), PAWL_OVERFLOW);
  more[ROWS - 1] = 0;
  assert_int_equal(pwi_applying_push(&is, table, all, more, cells), PAWL_OK);
  for (size_t i = 0; i + 1 < ROWS; i++) assert_int_equal(cells[i], 2 * i);
  assert_true(cells[ROWS - 1] == UINT64_MAX);
  pwi_table_destroy(table);
  pwi_applying_fini(&is);
}

static void test_a_loaded_name_cannot_be_taken_twice(void **state) {
  (void)state;
  assert_int_equal(pwi_function_set_add(&set, pwi_function_named(&set, "countmin"), &problem), PAWL_EXISTS);
  assert_int_equal(set.count, 2);
}

int main(void) {
  print_message("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_algorithm_3_from_outside_is_the_one_from_inside),
      cmocka_unit_test(test_countmin_refuses_to_overflow),
      cmocka_unit_test(test_a_loaded_name_cannot_be_taken_twice),
  };
  return cmocka_run_group_tests(tests, load_all, unload);
}
