/* The queue against a plain array that removes its first element by moving all others. */
#include "base/fifo.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

#define SEED UINT64_C(20140806)
#define MODEL_MAX 300

static uint64_t number_at(const struct pwi_fifo *fifo, size_t index) {
  uint64_t number;
  memcpy(&number, pwi_fifo_at(fifo, index), sizeof number);
  return number;
}

static void push_number(struct pwi_fifo *fifo, uint64_t number) {
  void *place = pwi_fifo_push(fifo);
  assert_non_null(place);
  memcpy(place, &number, sizeof number);
}

static void check_all(const struct pwi_fifo *fifo, const uint64_t *model, size_t count) {
  assert_int_equal(pwi_fifo_count(fifo), count);
  for (size_t i = 0; i < count; i++) assert_int_equal(number_at(fifo, i), model[i]);
}

/* `element` is at least 8: a number stands at its beginning. */
static void run_against_array(size_t element, uint64_t stream, double push_chance) {
  static uint64_t model[MODEL_MAX];
  size_t count = 0;
  struct pwi_fifo fifo;
  struct pwi_random random;
  pwi_fifo_init(&fifo, element);
  pwi_random_init(&random, SEED, stream);
  for (size_t step = 0; step < 4000; step++) {
    if (pwi_random_chance(&random, push_chance) && count < MODEL_MAX) {
      model[count++] = pwi_random_u64(&random);
      push_number(&fifo, model[count - 1]);
    } else if (count > 0) {
      pwi_fifo_pop(&fifo);
      memmove(model, model + 1, --count * sizeof *model);
    }
    if (step % 16 == 0) check_all(&fifo, model, count);
    if (count) assert_int_equal(number_at(&fifo, count - 1), model[count - 1]);
    if (step % 500 == 0) assert_int_equal(pwi_fifo_reserve(&fifo, count + step % 7), PAWL_OK);
  }
  check_all(&fifo, model, count);
  pwi_fifo_fini(&fifo);
}

static void test_the_queue_does_what_an_array_does(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  static const size_t elements[] = {8, 24, 40};
  static const double chances[] = {0.45, 0.5, 0.55, 0.7};
  for (size_t e = 0; e < 3; e++)
    for (size_t c = 0; c < 4; c++) run_against_array(elements[e], e * 4 + c, chances[c]);
}

static void test_it_goes_round_without_growing(void **state) {
  (void)state;
  struct pwi_fifo fifo;
  pwi_fifo_init(&fifo, sizeof(uint64_t));
  for (uint64_t i = 0; i < 5; i++) push_number(&fifo, i);
  uint64_t allocations = pwi_memory_counts().allocations;
  for (uint64_t i = 5; i < 1000; i++) {
    assert_int_equal(number_at(&fifo, 0), i - 5);
    pwi_fifo_pop(&fifo);
    push_number(&fifo, i);
    assert_int_equal(number_at(&fifo, 4), i);
  }
  assert_int_equal(pwi_memory_counts().allocations, allocations);
  pwi_fifo_fini(&fifo);
}

/* Wherever the first element stands in the ring when it grows. */
static void test_growing_keeps_the_order_from_every_position(void **state) {
  (void)state;
  for (uint64_t turned = 0; turned < 20; turned++) {
    for (uint64_t held = 0; held <= 8; held++) {
      struct pwi_fifo fifo;
      uint64_t next = 0, first = 0;
      pwi_fifo_init(&fifo, sizeof(uint64_t));
      push_number(&fifo, next++);
      for (uint64_t i = 0; i < turned; i++) { /* never empty, or it would begin at the front again */
        push_number(&fifo, next++);
        pwi_fifo_pop(&fifo);
        first++;
      }
      while (next - first < held) push_number(&fifo, next++);
      size_t count = pwi_fifo_count(&fifo);
      assert_int_equal(pwi_fifo_reserve(&fifo, 100), PAWL_OK);
      assert_int_equal(pwi_fifo_count(&fifo), count);
      for (size_t i = 0; i < count; i++) assert_int_equal(number_at(&fifo, i), first + i);
      pwi_fifo_fini(&fifo);
    }
  }
}

static void test_pushing_into_reserved_memory_cannot_fail(void **state) {
  (void)state;
  static const size_t reserved[] = {1, 7, 8, 9, 100, 1000};
  for (size_t r = 0; r < sizeof reserved / sizeof *reserved; r++) {
    struct pwi_fifo fifo;
    pwi_fifo_init(&fifo, 24);
    for (uint64_t i = 0; i < 5; i++) push_number(&fifo, i);
    for (int i = 0; i < 3; i++) pwi_fifo_pop(&fifo);
    assert_int_equal(pwi_fifo_reserve(&fifo, 2 + reserved[r]), PAWL_OK);
    pwi_memory_fail_after(0);
    for (uint64_t i = 0; i < reserved[r]; i++) push_number(&fifo, 5 + i);
    assert_int_equal(pwi_memory_fail_cancel(), 0); /* it was not even tried */
    for (uint64_t i = 0; i < reserved[r] + 2; i++) assert_int_equal(number_at(&fifo, (size_t)i), 3 + i);
    pwi_fifo_fini(&fifo);
  }
}

static void test_no_memory_changes_nothing(void **state) {
  (void)state;
  struct pwi_fifo fifo;
  pwi_fifo_init(&fifo, sizeof(uint64_t));
  pwi_memory_fail_after(0);
  assert_null(pwi_fifo_push(&fifo));
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_int_equal(pwi_fifo_count(&fifo), 0);
  for (uint64_t i = 0; i < 8; i++) push_number(&fifo, i);
  for (int again = 0; again < 2; again++) {
    pwi_memory_fail_after(0);
    if (again)
      assert_int_equal(pwi_fifo_reserve(&fifo, 9), PAWL_NO_MEMORY);
    else
      assert_null(pwi_fifo_push(&fifo));
    assert_int_equal(pwi_memory_fail_cancel(), 1);
    assert_int_equal(pwi_fifo_count(&fifo), 8);
    for (uint64_t i = 0; i < 8; i++) assert_int_equal(number_at(&fifo, (size_t)i), i);
  }
  push_number(&fifo, 8);
  assert_int_equal(number_at(&fifo, 8), 8);
  pwi_fifo_fini(&fifo);
}

static void test_sizes_that_do_not_fit_are_no_memory(void **state) {
  (void)state;
  struct pwi_fifo fifo;
  pwi_fifo_init(&fifo, 16);
  push_number(&fifo, 42);
  assert_int_equal(pwi_fifo_reserve(&fifo, SIZE_MAX), PAWL_NO_MEMORY);
  assert_int_equal(pwi_fifo_reserve(&fifo, SIZE_MAX / 2), PAWL_NO_MEMORY);
  assert_int_equal(pwi_fifo_reserve(&fifo, SIZE_MAX / 16 + 1), PAWL_NO_MEMORY);
  assert_int_equal(number_at(&fifo, 0), 42);
  pwi_fifo_fini(&fifo);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_queue_does_what_an_array_does),
      cmocka_unit_test(test_it_goes_round_without_growing),
      cmocka_unit_test(test_growing_keeps_the_order_from_every_position),
      cmocka_unit_test(test_pushing_into_reserved_memory_cannot_fail),
      cmocka_unit_test(test_no_memory_changes_nothing),
      cmocka_unit_test(test_sizes_that_do_not_fit_are_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
