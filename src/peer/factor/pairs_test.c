/* Commits against a naive sum of outer products, and any bytes. */
#include "base/testing.h"

#include <math.h>

#include "base/bytes.h"
#include "base/random.h"
#include "peer/factor/factor.h"
#include "peer/factor/multiply.h"
#include "peer/factor/values.h"

#define ROWS 23
#define COLUMNS 41

struct scene {
  struct factor_shape shape;
  struct factor_batch batch;
  struct factor_scratch scratch;
  double expected[ROWS * COLUMNS], double_matrix[ROWS * COLUMNS];
  float float_matrix[ROWS * COLUMNS];
  struct pwi_random random;
};

static struct scene scene;
static char problem[FACTOR_PROBLEM_MAX];

static void *matrix(void) { return scene.shape.is_double ? (void *)scene.double_matrix : (void *)scene.float_matrix; }

static void open_scene(bool is_double, enum factor_code code, uint64_t seed) {
  memset(&scene, 0, sizeof scene);
  scene.shape = scene.batch.shape = (struct factor_shape){ROWS, COLUMNS, is_double, code};
  pwi_random_init(&scene.random, seed, 1);
  assert_int_equal(pwi_factor_scratch_init(&scene.scratch, &scene.shape), PAWL_OK);
}

static void close_scene(void) {
  pwi_factor_batch_fini(&scene.batch);
  pwi_factor_scratch_fini(&scene.scratch);
}

/* A vector of which a part of the values is not 0, dense or with indices; `full` has all values. */
struct drawn {
  double doubles[COLUMNS], full[COLUMNS];
  float floats[COLUMNS];
  uint32_t indices[COLUMNS];
  struct pawl_factor_vector vector;
};

static void draw(struct drawn *drawn, size_t length, double share, bool has_indices) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) {
    double value = pwi_random_unit(&scene.random) < share ? pwi_random_unit(&scene.random) * 4 - 2 : 0;
    if (!scene.shape.is_double) value = (double)(float)value;
    drawn->full[i] = pwi_factor_narrowed(scene.shape.code, value);
    if (has_indices && value == 0 && pwi_random_unit(&scene.random) < 0.8) continue;
    drawn->indices[count] = (uint32_t)i;
    drawn->doubles[count] = value;
    drawn->floats[count++] = (float)value;
  }
  drawn->vector = (struct pawl_factor_vector){scene.shape.is_double ? (void *)drawn->doubles : (void *)drawn->floats,
                                              has_indices ? drawn->indices : NULL, count};
}

static void add_expected(const struct drawn *u, const struct drawn *v, double scale) {
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < COLUMNS; j++) {
      double *to = &scene.expected[i * COLUMNS + j];
      if (scene.shape.is_double)
        *to = fma(scale * u->full[i], v->full[j], *to);
      else
        *to = (double)fmaf((float)(scale * u->full[i]), (float)v->full[j], (float)*to);
    }
}

static void check_matrix(void) {
  for (size_t i = 0; i < ROWS * COLUMNS; i++) {
    double value = scene.shape.is_double ? scene.double_matrix[i] : (double)scene.float_matrix[i];
    assert_true(value == scene.expected[i]);
  }
}

static void add_drawn(size_t pairs, double scale) {
  static const double shares[] = {1, 0.1, 0, 0.7};
  for (size_t i = 0; i < pairs; i++) {
    struct drawn u, v;
    draw(&u, ROWS, shares[pwi_random_below(&scene.random, 4)], pwi_random_below(&scene.random, 2));
    draw(&v, COLUMNS, shares[pwi_random_below(&scene.random, 4)], pwi_random_below(&scene.random, 2));
    assert_int_equal(pwi_factor_batch_add(&scene.batch, &u.vector, &v.vector, problem), PAWL_OK);
    add_expected(&u, &v, scale);
  }
}

static void apply_batch(double scale) {
  double step = 0;
  assert_int_equal(pwi_factor_batch_seal(&scene.batch, scale, 0.25, problem), PAWL_OK);
  assert_int_equal(pwi_factor_check(&scene.scratch, scene.batch.bytes, scene.batch.size, &step), PAWL_OK);
  assert_true(step == 0.25);
  assert_int_equal(pwi_factor_apply(&scene.scratch, scene.batch.bytes, scene.batch.size, matrix()), PAWL_OK);
}

static void test_commits_change_the_matrix_bit_by_bit_as_pair_after_pair(void **state) {
  static const struct {
    bool is_double;
    enum factor_code code;
  } kinds[] = {{true, FACTOR_F64}, {true, FACTOR_F32}, {true, FACTOR_BF16}, {false, FACTOR_F32}, {false, FACTOR_F16}};
  (void)state;
  for (size_t kind = 0; kind < 5; kind++)
    for (uint64_t seed = 1; seed <= 40; seed++) {
      open_scene(kinds[kind].is_double, kinds[kind].code, seed);
      for (int commit = 0; commit < 3; commit++) {
        double scale = commit == 0 ? 1 : -0.37;
        pwi_factor_batch_clear(&scene.batch);
        add_drawn(seed % 90, scale);
        apply_batch(scale);
        check_matrix();
      }
      close_scene();
    }
}

static void test_vector_instructions_do_not_change_a_bit(void **state) {
  static float u[70 * 45], v[70 * 600], one[45 * 600], two[45 * 600];
  static double du[70 * 45], dv[70 * 600], d_one[45 * 600], d_two[45 * 600];
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, 9, 1);
  for (size_t i = 0; i < 70 * 45; i++) du[i] = (double)(u[i] = (float)pwi_random_normal(&random));
  for (size_t i = 0; i < 70 * 600; i++) dv[i] = (double)(v[i] = (float)pwi_random_normal(&random));
  static const size_t shapes[][3] = {{45, 600, 70}, {1, 1, 1},    {4, 16, 32}, {5, 17, 3},
                                     {3, 300, 33},  {44, 259, 1}, {6, 64, 32}, {12, 320, 40}};
  for (enum pwi_factor_set set = PWI_FACTOR_PLAIN; set <= pwi_factor_set(); set++) {
    memset(one, 0, sizeof one);
    memset(two, 0, sizeof two);
    memset(d_one, 0, sizeof d_one);
    memset(d_two, 0, sizeof d_two);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      size_t rows = shapes[i][0], columns = shapes[i][1], pairs = shapes[i][2];
      pwi_factor_multiply_by_f32(set, rows, columns, pairs, u, v, one);
      pwi_factor_multiply_by_f64(set, rows, columns, pairs, du, dv, d_one);
      for (size_t pair = 0; pair < pairs; pair++)
        for (size_t k = 0; k < rows * columns; k++) {
          size_t left = pair * rows + k / columns, right = pair * columns + k % columns;
          two[k] = fmaf(u[left], v[right], two[k]);
          d_two[k] = fma(du[left], dv[right], d_two[k]);
        }
      assert_memory_equal(one, two, sizeof one);
      assert_memory_equal(d_one, d_two, sizeof d_one);
    }
  }
}

static void naive(void *context, size_t rows, size_t columns, size_t pairs, const void *u, const void *v,
                  void *matrix_) {
  ++*(int *)context;
  for (size_t p = 0; p < pairs; p++)
    for (size_t i = 0; i < rows; i++)
      for (size_t j = 0; j < columns; j++) {
        double *to = (double *)matrix_ + i * columns + j;
        *to = fma(((const double *)u)[p * rows + i], ((const double *)v)[p * columns + j], *to);
      }
}

static void test_a_program_can_multiply_dense_pairs_itself(void **state) {
  int calls = 0;
  (void)state;
  open_scene(true, FACTOR_F64, 5);
  scene.scratch.multiply = naive;
  scene.scratch.context = &calls;
  add_drawn(200, 0.5);
  apply_batch(0.5);
  check_matrix();
  assert_true(calls > 0);
  close_scene();
}

/* Dense and sparse pairs, of any rows; and the hashes of the parts add up. */
static void check_part(uint32_t part, uint32_t parts, uint64_t *hash) {
  struct pawl_range rows = pwi_factor_rows_of(ROWS, part, parts);
  struct factor_scratch scratch;
  double wide[ROWS * COLUMNS] = {0}, step;
  float narrow[ROWS * COLUMNS] = {0};
  size_t each = pwi_factor_value_size(&scene.shape), row = COLUMNS * each, held = (size_t)pawl_range_size(rows);
  void *some = scene.shape.is_double ? (void *)wide : narrow;
  assert_int_equal(pwi_factor_scratch_init(&scratch, &scene.shape), PAWL_OK);
  scratch.first = (size_t)rows.begin;
  scratch.held = held;
  assert_int_equal(pwi_factor_check(&scratch, scene.batch.bytes, scene.batch.size, &step), PAWL_OK);
  assert_int_equal(pwi_factor_apply(&scratch, scene.batch.bytes, scene.batch.size, some), PAWL_OK);
  assert_memory_equal(some, (char *)matrix() + rows.begin * row, held * row);
  for (size_t i = held * COLUMNS; i < ROWS * COLUMNS; i++) assert_true(wide[i] == 0 && narrow[i] == 0);
  *hash += pwi_factor_matrix_hash(&scene.shape, rows, some);
  pwi_factor_scratch_fini(&scratch);
}

static void test_a_part_of_the_rows_changes_as_in_the_whole(void **state) {
  (void)state;
  for (uint32_t parts = 1; parts <= ROWS; parts += 1 + parts / 3) {
    uint64_t sum = 0;
    open_scene(parts % 2, parts % 2 ? FACTOR_F64 : FACTOR_F32, parts);
    add_drawn(150, 0.5);
    apply_batch(0.5);
    for (uint32_t part = 0; part < parts; part++) check_part(part, parts, &sum);
    assert_true(sum == pwi_factor_matrix_hash(&scene.shape, pwi_factor_rows_of(ROWS, 0, 0), matrix()));
    close_scene();
  }
}

static void test_a_vector_takes_its_shorter_form(void **state) {
  (void)state;
  open_scene(false, FACTOR_F32, 3);
  for (int i = 0; i < 200; i++) {
    struct drawn u, v;
    size_t nonzeros[2] = {0};
    draw(&u, ROWS, pwi_random_unit(&scene.random), i % 2);
    draw(&v, COLUMNS, pwi_random_unit(&scene.random), i % 3 == 0);
    for (size_t k = 0; k < ROWS; k++) nonzeros[0] += u.full[k] != 0;
    for (size_t k = 0; k < COLUMNS; k++) nonzeros[1] += v.full[k] != 0;
    size_t before = scene.batch.size ? scene.batch.size : FACTOR_HEAD_SIZE;
    uint64_t counted = scene.batch.nonzeros;
    assert_int_equal(pwi_factor_batch_add(&scene.batch, &u.vector, &v.vector, problem), PAWL_OK);
    assert_int_equal(scene.batch.nonzeros - counted, nonzeros[0] + nonzeros[1]);
    assert_int_equal(scene.batch.size - before, pwi_factor_vector_bytes(&scene.shape, ROWS, nonzeros[0]) +
                                                    pwi_factor_vector_bytes(&scene.shape, COLUMNS, nonzeros[1]));
  }
  close_scene();
}

static void refuses(const struct pawl_factor_vector *u, const struct pawl_factor_vector *v, pawl_status status,
                    const char *words) {
  struct factor_batch before = scene.batch;
  assert_int_equal(pwi_factor_batch_add(&scene.batch, u, v, problem), status);
  assert_non_null(strstr(problem, words));
  assert_int_equal(scene.batch.size, before.size);
  assert_int_equal(scene.batch.pairs, before.pairs);
}

static void test_pairs_that_do_not_fit_are_refused_with_a_reason(void **state) {
  float values[COLUMNS] = {1, 2, 3}, nan_values[COLUMNS] = {1, NAN}, large[COLUMNS] = {1e6F};
  const uint32_t rising[] = {0, 5, 22}, falling[] = {5, 5}, beyond[] = {0, 23};
  const struct pawl_factor_vector u = {values, NULL, ROWS}, v = {values, NULL, COLUMNS};
  (void)state;
  open_scene(false, FACTOR_F16, 1);
  assert_int_equal(pwi_factor_batch_add(&scene.batch, &u, &v, problem), PAWL_OK);
  refuses(&v, &u, PAWL_INVALID, "u is dense and has 41 values, but its length is 23");
  refuses(&u, &u, PAWL_INVALID, "v is dense and has 23 values, but its length is 41");
  refuses(&(struct pawl_factor_vector){values, falling, 2}, &v, PAWL_INVALID, "do not rise");
  refuses(&(struct pawl_factor_vector){values, beyond, 2}, &v, PAWL_INVALID, "index 23");
  refuses(&(struct pawl_factor_vector){NULL, rising, 3}, &v, PAWL_INVALID, "NULL");
  refuses(&u, NULL, PAWL_INVALID, "NULL");
  refuses(&u, &(struct pawl_factor_vector){nan_values, NULL, COLUMNS}, PAWL_DIVERGED, "NaN");
  refuses(&u, &(struct pawl_factor_vector){large, NULL, COLUMNS}, PAWL_OVERFLOW, "too large to be narrowed");
  assert_int_equal(pwi_factor_batch_add(&scene.batch, &(struct pawl_factor_vector){values, rising, 3}, &v, problem),
                   PAWL_OK);
  assert_int_equal(pwi_factor_batch_seal(&scene.batch, (double)NAN, 1, problem), PAWL_DIVERGED);
  assert_int_equal(pwi_factor_batch_seal(&scene.batch, 1e38, 1, problem), PAWL_DIVERGED);
  assert_int_equal(pwi_factor_batch_seal(&scene.batch, 1, (double)INFINITY, problem), PAWL_DIVERGED);
  assert_int_equal(pwi_factor_batch_seal(&scene.batch, 1e30, 1, problem), PAWL_OK);
  close_scene();
}

/* Whatever passes the check can be applied; nothing else is. */
static void try_bytes(const unsigned char *bytes, size_t size) {
  double step;
  if (!pwi_factor_check(&scene.scratch, bytes, size, &step))
    assert_int_equal(pwi_factor_apply(&scene.scratch, bytes, size, matrix()), PAWL_OK);
  else
    (void)!pwi_factor_apply(&scene.scratch, bytes, size, matrix());
}

static void test_damaged_commits_never_reach_beyond_the_matrix(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    open_scene(seed % 2, seed % 2 ? FACTOR_F64 : FACTOR_F32, seed);
    add_drawn(6, 1);
    assert_int_equal(pwi_factor_batch_seal(&scene.batch, 1, 1, problem), PAWL_OK);
    unsigned char *bytes = scene.batch.bytes;
    for (int i = 0; i < 500; i++) {
      size_t at = pwi_random_below(&scene.random, scene.batch.size);
      unsigned char old = bytes[at];
      bytes[at] = (unsigned char)pwi_random_below(&scene.random, 256);
      try_bytes(bytes, scene.batch.size);
      bytes[at] = old;
      try_bytes(bytes, pwi_random_below(&scene.random, scene.batch.size));
    }
    close_scene();
  }
}

static void test_commits_of_another_shape_or_with_nan_are_corrupt(void **state) {
  double step;
  (void)state;
  open_scene(false, FACTOR_F32, 2);
  add_drawn(3, 1);
  assert_int_equal(pwi_factor_batch_seal(&scene.batch, 1, 1, problem), PAWL_OK);
  struct factor_shape other = scene.shape;
  other.columns--;
  struct factor_scratch scratch;
  assert_int_equal(pwi_factor_scratch_init(&scratch, &other), PAWL_OK);
  assert_int_not_equal(pwi_factor_check(&scratch, scene.batch.bytes, scene.batch.size, &step), PAWL_OK);
  pwi_factor_scratch_fini(&scratch);
  assert_int_equal(pwi_factor_check(&scene.scratch, scene.batch.bytes, scene.batch.size - 1, &step), PAWL_TRUNCATED);
  pwi_put_u32(scene.batch.bytes + 4, FACTOR_F16);
  assert_int_equal(pwi_factor_check(&scene.scratch, scene.batch.bytes, scene.batch.size, &step), PAWL_CORRUPT);
  pwi_put_u32(scene.batch.bytes + 4, FACTOR_F32);
  pwi_put_u64(scene.batch.bytes + 8, pwi_double_bits((double)NAN));
  assert_int_equal(pwi_factor_check(&scene.scratch, scene.batch.bytes, scene.batch.size, &step), PAWL_CORRUPT);
  close_scene();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_commits_change_the_matrix_bit_by_bit_as_pair_after_pair),
      cmocka_unit_test(test_vector_instructions_do_not_change_a_bit),
      cmocka_unit_test(test_a_program_can_multiply_dense_pairs_itself),
      cmocka_unit_test(test_a_part_of_the_rows_changes_as_in_the_whole),
      cmocka_unit_test(test_a_vector_takes_its_shorter_form),
      cmocka_unit_test(test_pairs_that_do_not_fit_are_refused_with_a_reason),
      cmocka_unit_test(test_damaged_commits_never_reach_beyond_the_matrix),
      cmocka_unit_test(test_commits_of_another_shape_or_with_nan_are_corrupt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
