/* Copies of memory that changes meanwhile. Under ThreadSanitizer this also shows that they are no data race. */
#include <pthread.h>

#include "base/testing.h"
#include "net/shared_copy.h"

#define BYTES 4099 /* no multiple of a word */
#define READERS 2
#define VALUES 2000

/* Every alignment and every small size, with guards on both sides. */
static void test_every_alignment_and_size_is_copied(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 71, 130, 1000};
  uint8_t from[1100], shared[1100], to[1100];
  for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(i * 7 + 1);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t at = 0; at < 17; at++)
      for (size_t other = 0; other < 17; other++) {
        size_t size = sizes[i];
        memset(shared, 0xa5, sizeof shared);
        memset(to, 0x5a, sizeof to);
        pwi_shared_write(shared + 8 + at, from + other, size);
        assert_memory_equal(shared + 8 + at, from + other, size);
        assert_int_equal(shared[7 + at], 0xa5);
        assert_int_equal(shared[8 + at + size], 0xa5);
        pwi_shared_read(to + 8 + other, shared + 8 + at, size);
        assert_memory_equal(to + 8 + other, from + other, size);
        assert_int_equal(to[7 + other], 0x5a);
        assert_int_equal(to[8 + other + size], 0x5a);
      }
}

static struct {
  uint64_t sequence;
  uint8_t value[BYTES + 1];
  atomic_bool is_over;
} scene;

/* Copies until the writer has ended; returns the number of the first copy that was mixed, or NULL. */
static void *read_on(void *argument) {
  static uint8_t copies[READERS][BYTES];
  uint8_t *copy = copies[*(const size_t *)argument];
  bool is_mixed = false;
  uint64_t count = 0;
  while (!is_mixed && (!atomic_load(&scene.is_over) || count == 0)) {
    uint64_t seen = pwi_sequence_read(&scene.sequence);
    pwi_shared_read(copy, scene.value + 1, BYTES); /* not aligned */
    if (!pwi_sequence_held(&scene.sequence, seen)) continue;
    count++;
    for (size_t i = 0; i < BYTES; i++) is_mixed |= copy[i] != (uint8_t)(seen / 2);
  }
  return is_mixed ? copy : NULL;
}

static void test_a_copy_under_a_sequence_number_is_of_one_value(void **state) {
  (void)state;
  pthread_t threads[READERS];
  static const size_t numbers[READERS] = {0, 1};
  static uint8_t value[BYTES];
  for (size_t i = 0; i < READERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, read_on, (void *)(uintptr_t)&numbers[i]), 0);
  for (uint64_t i = 1; i <= VALUES; i++) {
    memset(value, (uint8_t)i, BYTES);
    pwi_sequence_write(&scene.sequence);
    pwi_shared_write(scene.value + 1, value, BYTES);
    pwi_sequence_written(&scene.sequence);
  }
  atomic_store(&scene.is_over, true);
  for (size_t i = 0; i < READERS; i++) {
    void *mixed;
    assert_int_equal(pthread_join(threads[i], &mixed), 0);
    assert_null(mixed);
  }
  assert_int_equal(scene.sequence, 2 * VALUES);
}

static void test_a_value_that_is_being_written_is_not_held(void **state) {
  (void)state;
  uint64_t sequence = 0;
  uint64_t seen = pwi_sequence_read(&sequence);
  assert_true(pwi_sequence_held(&sequence, seen));
  pwi_sequence_write(&sequence);
  assert_false(pwi_sequence_held(&sequence, seen));
  seen = pwi_sequence_read(&sequence);
  assert_false(pwi_sequence_held(&sequence, seen));
  pwi_sequence_written(&sequence);
  assert_false(pwi_sequence_held(&sequence, seen));
  assert_true(pwi_sequence_held(&sequence, pwi_sequence_read(&sequence)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_alignment_and_size_is_copied),
      cmocka_unit_test(test_a_copy_under_a_sequence_number_is_of_one_value),
      cmocka_unit_test(test_a_value_that_is_being_written_is_not_held),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
