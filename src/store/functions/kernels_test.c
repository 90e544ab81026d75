/* Every step against its formula in double precision, written value by value as docs/functions.md has it. */
#include "store/functions/kernels.h"

#include <math.h>

#include "base/random.h"
#include "base/testing.h"
#include "store/functions/functions.h"
#include "store/kernels.h"

#define SEED 20140
#define ROWS 67
#define WIDEST 64
#define MOST (ROWS * WIDEST)
#define STEPS 5

static const uint32_t widths[] = {1, 2, 3, 4, 7, 8, 9, 16, 33, 64};
#define WIDTHS (sizeof widths / sizeof *widths)

static const struct pwi_gradient_kernels *sets[2];
static size_t set_count;

static int collect_sets(void **state) {
  (void)state;
  sets[set_count++] = &pwi_gradient_kernels_plain;
#if defined(__x86_64__)
  if (pwi_row_kernels_avx2_runs()) sets[set_count++] = &pwi_gradient_kernels_avx2;
#endif
  return 0;
}

/* --- the formulas --------------------------------------------------------------------------------------- */

static double soft(double z, double least) { return z > least ? z - least : z < -least ? z + least : 0; }

static void one_adam(const double *p, double g, double *w, double *m, double *v, double t) {
  *m = p[1] * *m + (1 - p[1]) * g;
  *v = p[2] * *v + (1 - p[2]) * g * g;
  double mean = *m / (1 - pow(p[1], t)), square = *v / (1 - pow(p[2], t));
  *w -= p[0] * (mean / (sqrt(square) + p[3]) + p[4] * *w);
}

static void one_ftrl(const double *p, double g, double *w, double *z, double *n) {
  double sigma = (sqrt(*n + g * g) - sqrt(*n)) / p[0];
  *z += g - sigma * *w;
  *n += g * g;
  *w = fabs(*z) <= p[2] ? 0 : -(*z - copysign(p[2], *z)) / ((p[1] + sqrt(*n)) / p[0] + p[3]);
}

/* The least of g y + u (y - w)^2 / (2 rate) + l1 |y| + l2 y^2 / 2, by looking at each of the three places
 * where it can be. */
static double one_block(const double *p, double g, double u, double w) {
  double a = u / p[0] + p[3], best = 0, least = a * w * w / 2;
  for (int sign = -1; sign <= 1; sign += 2) {
    double y = (a * w - g - sign * p[1]) / (a + p[2]);
    double cost = g * y + a * (y - w) * (y - w) / 2 + p[1] * fabs(y) + p[2] * y * y / 2;
    if (y * sign <= 0 || cost >= least) continue;
    best = y;
    least = cost;
  }
  return best;
}

/* One row; `t` counts steps from 1. State as in the struct of each: only Adam's has a head of two values. */
static void reference(enum pwi_gradient_step step, const double *p, size_t width, const double *g, double *w, double *s,
                      double t) {
  double norm = 0;
  for (size_t i = 0; i < width; i++) {
    double to = w[i] - p[0] * g[i], h;
    switch (step) {
    case PWI_GRADIENT_sgd:
      w[i] = to;
      break;
    case PWI_GRADIENT_momentum:
      s[i] = p[1] * s[i] + g[i] + p[2] * w[i];
      w[i] -= p[0] * s[i];
      break;
    case PWI_GRADIENT_adagrad:
      h = g[i] + p[2] * w[i];
      s[i] += h * h;
      w[i] -= p[0] * h / (sqrt(s[i]) + p[1]);
      break;
    case PWI_GRADIENT_adam:
      one_adam(p, g[i], &w[i], &s[2 + 2 * i], &s[3 + 2 * i], t);
      s[0] = 1 - pow(p[1], t);
      s[1] = 1 - pow(p[2], t);
      break;
    case PWI_GRADIENT_ftrl:
      one_ftrl(p, g[i], &w[i], &s[2 * i], &s[2 * i + 1]);
      break;
    case PWI_GRADIENT_block_proximal:
      w[i] = one_block(p, g[2 * i], g[2 * i + 1], w[i]);
      break;
    case PWI_GRADIENT_block_newton:
      w[2 * i] = one_block((const double[]){1, p[0], p[1], p[2]}, g[2 * i], g[2 * i + 1], w[2 * i]);
      w[2 * i + 1] = g[2 * i];
      break;
    case PWI_GRADIENT_prox_l1:
      w[i] = soft(to, p[0] * p[1]);
      break;
    case PWI_GRADIENT_prox_l2:
      w[i] = to / (1 + p[0] * p[1]);
      break;
    case PWI_GRADIENT_prox_elastic:
      w[i] = soft(to, p[0] * p[1]) / (1 + p[0] * p[2]);
      break;
    case PWI_GRADIENT_prox_box:
      w[i] = fmin(fmax(to, p[1]), p[2]);
      break;
    case PWI_GRADIENT_prox_ball:
      w[i] = to;
      norm += to * to;
      break;
    case PWI_GRADIENT_prox_nonnegative:
      w[i] = fmax(to, 0);
      break;
    case PWI_GRADIENT_COUNT:
      break;
    }
  }
  if (step == PWI_GRADIENT_prox_ball && sqrt(norm) > p[1])
    for (size_t i = 0; i < width; i++) w[i] *= p[1] / sqrt(norm);
}

/* --- what is compared ----------------------------------------------------------------------------------- */

/* Parameters that leave no term out. */
static const struct {
  const char *text;
  size_t pushed, state, head;
  size_t more; /* stored for each value, besides it */
} cases[PWI_GRADIENT_COUNT] = {
    [PWI_GRADIENT_sgd] = {"sgd rate=0.1", 1, 0, 0, 0},
    [PWI_GRADIENT_momentum] = {"momentum rate=0.1 momentum=0.8 decay=0.02", 1, 1, 0, 0},
    [PWI_GRADIENT_adagrad] = {"adagrad rate=0.3 eps=1e-3 decay=0.05", 1, 1, 0, 0},
    [PWI_GRADIENT_adam] = {"adam rate=0.05 beta1=0.8 beta2=0.95 eps=1e-4 decay=0.03", 1, 2, 2, 0},
    [PWI_GRADIENT_ftrl] = {"ftrl rate=0.5 beta=0.7 l1=0.9 l2=0.2", 1, 2, 0, 0},
    [PWI_GRADIENT_block_proximal] = {"block_proximal rate=0.6 l1=0.4 l2=0.3 eps=0.01", 2, 0, 0, 0},
    [PWI_GRADIENT_block_newton] = {"block_newton l1=0.4 l2=0.3 eps=0.01", 2, 0, 0, 1},
    [PWI_GRADIENT_prox_l1] = {"prox_l1 rate=0.5 l1=0.3", 1, 0, 0, 0},
    [PWI_GRADIENT_prox_l2] = {"prox_l2 rate=0.5 l2=0.4", 1, 0, 0, 0},
    [PWI_GRADIENT_prox_elastic] = {"prox_elastic rate=0.5 l1=0.3 l2=0.4", 1, 0, 0, 0},
    [PWI_GRADIENT_prox_box] = {"prox_box rate=0.5 low=-0.4 high=0.7", 1, 0, 0, 0},
    [PWI_GRADIENT_prox_ball] = {"prox_ball rate=0.5 radius=0.8", 1, 0, 0, 0},
    [PWI_GRADIENT_prox_nonnegative] = {"prox_nonnegative rate=0.5", 1, 0, 0, 0},
};

static double expected[2 * MOST], expected_state[2 * MOST + 2 * ROWS], pushed[2 * MOST];

/* A place for values of either type. */
static union {
  float narrow[2 * MOST + 2 * ROWS];
  double wide[2 * MOST + 2 * ROWS];
} found[2], found_state[2], found_pushed;

static void draw_push(struct pwi_random *random, enum pwi_gradient_step step, enum pawl_type type, size_t count) {
  for (size_t i = 0; i < count; i++) {
    double value = pwi_random_unit(random) * 4 - 2;
    if (pwi_random_chance(random, 0.1)) value = 0;
    if (cases[step].pushed == 2 && i % 2) value = fabs(value);
    pushed[i] = (double)(float)value;
    if (type == PAWL_F32)
      found_pushed.narrow[i] = (float)value;
    else
      found_pushed.wide[i] = pushed[i];
  }
}

static double value_of(enum pawl_type type, size_t s, bool state, size_t i) {
  if (type == PAWL_F32) return (double)(state ? found_state[s].narrow[i] : found[s].narrow[i]);
  return state ? found_state[s].wide[i] : found[s].wide[i];
}

static void compare(enum pwi_gradient_step step, enum pawl_type type, uint32_t width, bool state, const double *wanted,
                    size_t count) {
  double allowed = type == PAWL_F32 ? 2e-5 : 1e-13;
  for (size_t i = 0; i < count; i++) {
    double is = value_of(type, 0, state, i);
    if (fabs(is - wanted[i]) > allowed * (1 + fabs(wanted[i])))
      fail_msg("%s type=%d width=%u state=%d value %zu: %.17g, not %.17g", cases[step].text, (int)type, width, state, i,
               is, wanted[i]);
  }
}

static void check_step(enum pwi_gradient_step step, enum pawl_type type, uint32_t width, size_t rows) {
  struct pwi_random random;
  struct pwi_rule rule;
  struct pwi_function_problem problem;
  size_t state = cases[step].state * width + cases[step].head, more = cases[step].pushed * width;
  size_t stored = (1 + cases[step].more) * width;
  pwi_random_init(&random, SEED, (uint64_t)step * 1000 + width);
  assert_int_equal(pwi_rule_parse(NULL, cases[step].text, &rule, &problem), PAWL_OK);
  memset(expected, 0, sizeof expected);
  memset(expected_state, 0, sizeof expected_state);
  memset(found, 0, sizeof found);
  memset(found_state, 0, sizeof found_state);
  for (int t = 1; t <= STEPS; t++) {
    draw_push(&random, step, type, rows * more);
    for (size_t i = 0; i < rows; i++)
      reference(step, rule.parameters, width, pushed + i * more, expected + i * stored, expected_state + i * state, t);
    for (size_t s = 0; s < set_count; s++) {
      struct pawl_function_call call = {.size = sizeof call,
                                        .type = type,
                                        .width = width,
                                        .count = rows,
                                        .pushed = &found_pushed,
                                        .stored = &found[s],
                                        .state = &found_state[s],
                                        .parameters = rule.parameters};
      sets[s]->apply[step][type - 1](&call);
    }
    compare(step, type, width, false, expected, rows * stored);
    compare(step, type, width, true, expected_state, rows * state);
    for (size_t s = 1; s < set_count; s++) {
      assert_memory_equal(&found[s], &found[0], sizeof found[0]);
      assert_memory_equal(&found_state[s], &found_state[0], sizeof found_state[0]);
    }
  }
}

static void test_steps_follow_their_formulas_and_sets_agree_bit_for_bit(void **state) {
  (void)state;
  for (int step = 0; step < PWI_GRADIENT_COUNT; step++)
    for (int type = PAWL_F32; type <= PAWL_F64; type++)
      for (size_t w = 0; w < WIDTHS; w++)
        for (size_t rows = 1; rows <= ROWS; rows += 1 + rows / 3)
          check_step((enum pwi_gradient_step)step, (enum pawl_type)type, widths[w], rows);
}

static void test_a_weight_that_shrinks_to_nothing_is_zero_in_every_bit(void **state) {
  (void)state;
  static const enum pwi_gradient_step steps[] = {PWI_GRADIENT_ftrl, PWI_GRADIENT_block_proximal, PWI_GRADIENT_prox_l1};
  static const char *const texts[] = {"ftrl l1=100", "block_proximal l1=100", "prox_l1 l1=100"};
  for (size_t i = 0; i < 3; i++) {
    float g[8] = {-1, 1, -2, 1, 3, 1, -0.5f, 1}, w[4] = {0}, z[8] = {0}, zeros[4] = {0};
    struct pwi_rule rule;
    struct pwi_function_problem problem;
    assert_int_equal(pwi_rule_parse(NULL, texts[i], &rule, &problem), PAWL_OK);
    struct pawl_function_call call = {sizeof call, PAWL_F32, 1, 1, 1, 2, 4, g, w, z, rule.parameters, NULL, 0};
    for (size_t s = 0; s < set_count; s++) sets[s]->apply[steps[i]][0](&call);
    assert_memory_equal(w, zeros, sizeof w);
  }
}

/* The only divisor of FTRL that can be zero: no beta, no l2, and a gradient whose square is none. */
static void test_ftrl_divides_by_nothing(void **state) {
  (void)state;
  float g[1] = {1e-30f}, w[1] = {0}, z[2] = {0};
  double parameters[] = {0.1, 0, 0, 0};
  struct pawl_function_call call = {sizeof call, PAWL_F32, 1, 1, 1, 2, 1, g, w, z, parameters, NULL, 0};
  for (size_t s = 0; s < set_count; s++) {
    sets[s]->apply[PWI_GRADIENT_ftrl][0](&call);
    assert_true(w[0] == 0 && z[1] == 0);
  }
}

static void test_the_ball_takes_rows_whose_squares_overflow_or_vanish(void **state) {
  (void)state;
  double zeros[3] = {0}, parameters[] = {1, 1};
  for (size_t s = 0; s < set_count; s++) {
    double large[3] = {3e200, -4e200, 0}, small[3] = {3e-200, 4e-200, 0};
    struct pawl_function_call call = {sizeof call, PAWL_F64, 3, 3, 3, 0, 1, zeros, large, NULL, parameters, NULL, 0};
    sets[s]->apply[PWI_GRADIENT_prox_ball][1](&call);
    assert_true(fabs(large[0] - 0.6) < 1e-15 && fabs(large[1] + 0.8) < 1e-15 && large[2] == 0);
    parameters[1] = 1e-200;
    call.stored = small;
    sets[s]->apply[PWI_GRADIENT_prox_ball][1](&call);
    assert_true(fabs(small[0] - 0.6e-200) < 1e-215 && fabs(small[1] - 0.8e-200) < 1e-215);
    parameters[1] = 0;
    sets[s]->apply[PWI_GRADIENT_prox_ball][1](&call);
    assert_true(small[0] == 0 && small[1] == 0);
    parameters[1] = 1;
  }
}

static void test_a_single_value_that_is_not_finite_is_seen_wherever_it_is(void **state) {
  (void)state;
  static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
  char room[72 * 8 + 3], *narrow = room + 1, *wide = room + 3;
  for (size_t s = 0; s < set_count; s++) {
    for (size_t count = 0; count < 71; count++) {
      memset(room, 0x7e, sizeof room); /* large, and finite */
      assert_true(sets[s]->finite[0](narrow, count) && sets[s]->finite[1](wide, count));
      if (count == 0) continue;
      float value = bad[count % 4];
      double other = (double)value;
      size_t at = count % 3 ? count - 1 : count / 2;
      memcpy(narrow + at * 4, &value, 4);
      assert_false(sets[s]->finite[0](narrow, count));
      assert_true(sets[s]->finite[0](narrow, at));
      memset(room, 0x7e, sizeof room);
      memcpy(wide + at * 8, &other, 8);
      assert_false(sets[s]->finite[1](wide, count));
      assert_true(sets[s]->finite[1](wide, at));
    }
  }
}

static void test_a_negative_curvature_is_seen_wherever_it_is(void **state) {
  (void)state;
  for (size_t s = 0; s < set_count; s++) {
    for (size_t at = 0; at < 33; at++) {
      float narrow[66];
      double wide[66];
      for (size_t i = 0; i < 66; i++) wide[i] = narrow[i] = i % 2 ? 0 : -1;
      assert_true(sets[s]->curved[0](narrow, 33) && sets[s]->curved[1](wide, 33));
      wide[2 * at + 1] = narrow[2 * at + 1] = -1e-30f;
      assert_false(sets[s]->curved[0](narrow, 33));
      assert_false(sets[s]->curved[1](wide, 33));
    }
  }
}

/* For any number of rows of the operand, and of values in a row; values of 0 hide what they are multiplied with. */
static void test_products_are_added_in_order_and_sets_agree_bit_for_bit(void **state) {
  (void)state;
  enum { ROWS_MOST = 3, PAIRS_MOST = 13, WIDTH_MOST = 35 };
  double u[ROWS_MOST * PAIRS_MOST], v[PAIRS_MOST * WIDTH_MOST], wide[ROWS_MOST * WIDTH_MOST];
  float narrow_u[ROWS_MOST * PAIRS_MOST], narrow_v[PAIRS_MOST * WIDTH_MOST], narrow[ROWS_MOST * WIDTH_MOST];
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (uint32_t pairs = 1; pairs <= PAIRS_MOST; pairs++)
    for (uint32_t width = 1; width <= WIDTH_MOST; width += 1 + width / 4) {
      for (size_t i = 0; i < ROWS_MOST * PAIRS_MOST; i++)
        narrow_u[i] = (float)(u[i] = pwi_random_chance(&random, 0.3) ? 0 : pwi_random_unit(&random) - 0.5);
      for (size_t i = 0; i < PAIRS_MOST * WIDTH_MOST; i++) narrow_v[i] = (float)(v[i] = pwi_random_unit(&random) - 0.5);
      for (size_t s = 0; s < set_count; s++) {
        struct pawl_function_call call = {sizeof call, PAWL_F64, width, width, width, 0,    ROWS_MOST,
                                          u,           wide,     NULL,  NULL,  v,     pairs};
        memset(wide, 0xff, sizeof wide);
        memset(narrow, 0xff, sizeof narrow);
        sets[s]->expand[1](&call);
        call.pushed = narrow_u;
        call.operand = narrow_v;
        call.stored = narrow;
        sets[s]->expand[0](&call);
        for (size_t i = 0; i < (size_t)ROWS_MOST * width; i++) {
          double sum = 0;
          float narrow_sum = 0;
          for (size_t k = 0; k < pairs; k++) {
            volatile double product = u[i / width * pairs + k] * v[k * width + i % width];
            volatile float narrow_product = narrow_u[i / width * pairs + k] * narrow_v[k * width + i % width];
            sum += product;
            narrow_sum += narrow_product;
          }
          assert_true(wide[i] == sum && narrow[i] == narrow_sum);
        }
      }
    }
}

/* Adam's two weights are 1 - beta^t without a power; in f32 they must stay close to it however many steps
 * there are. */
static void test_the_weights_of_adam_stay_right_for_many_steps(void **state) {
  (void)state;
  float g[1] = {0}, w[1] = {0}, kept[4] = {0};
  double parameters[] = {0.001, 0.9, 0.999, 1e-8, 0};
  struct pawl_function_call call = {sizeof call, PAWL_F32, 1, 1, 1, 4, 1, g, w, kept, parameters, NULL, 0};
  for (int t = 1; t <= 20000; t++) {
    pwi_gradient_kernels_best()->apply[PWI_GRADIENT_adam][0](&call);
    double wanted = 1 - pow((double)0.999f, t);
    assert_true(fabs((double)kept[1] - wanted) <= 6e-5 * wanted);
  }
}

int main(void) {
  print_message("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps_follow_their_formulas_and_sets_agree_bit_for_bit),
      cmocka_unit_test(test_a_weight_that_shrinks_to_nothing_is_zero_in_every_bit),
      cmocka_unit_test(test_ftrl_divides_by_nothing),
      cmocka_unit_test(test_the_ball_takes_rows_whose_squares_overflow_or_vanish),
      cmocka_unit_test(test_a_single_value_that_is_not_finite_is_seen_wherever_it_is),
      cmocka_unit_test(test_a_negative_curvature_is_seen_wherever_it_is),
      cmocka_unit_test(test_products_are_added_in_order_and_sets_agree_bit_for_bit),
      cmocka_unit_test(test_the_weights_of_adam_stay_right_for_many_steps),
  };
  return cmocka_run_group_tests_name("store.functions.kernels", tests, collect_sets, NULL);
}
