/* Encoding of clocks: the exact layout, and decoding of bytes that no encoder writes. */
#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/clock.h"

#define SEED UINT64_C(41)
#define BYTES 1024

static struct pwi_sender sender_of(uint64_t id) { return (struct pwi_sender){id}; }

static void set(struct pwi_clock *clock, uint64_t id, uint64_t begin, uint64_t end, uint64_t time) {
  assert_int_equal(pwi_clock_set(clock, sender_of(id), pawl_range_of(begin, end), time), PAWL_OK);
}

/* Two ranges, a sender of three steps and one of one. 0 comes first in any order: it is its own scramble. */
static size_t example(unsigned char *bytes) {
  const struct pawl_range ranges[2] = {{10, 20}, {30, 40}};
  struct pwi_clock clock;
  assert_int_equal(pwi_clock_init(&clock, ranges, 2), PAWL_OK);
  set(&clock, 0, 12, 20, 5);
  set(&clock, 0, 30, 40, 6);
  set(&clock, 9, 10, 20, 7);
  set(&clock, 9, 30, 40, 7);
  size_t size;
  assert_int_equal(pwi_clock_encode(&clock, bytes, BYTES, &size), PAWL_OK);
  pwi_clock_fini(&clock);
  return size;
}

/* Places in the example. */
enum {
  FORMAT = 0,
  RANGES = 4,
  SENDERS = 8,
  RANGE = 16,
  FIRST = 48,
  FIRST_STEPS = 56,
  STEP = 68,
  SECOND = 100,
  END = 120
};

static pawl_status decode(const unsigned char *bytes, size_t size) {
  struct pwi_clock clock;
  pawl_status status = pwi_clock_decode(bytes, size, &clock);
  if (!status) pwi_clock_fini(&clock);
  return status;
}

/* If the bytes are accepted, they are what the encoder writes. */
static void assert_safe(const unsigned char *bytes, size_t size) {
  static unsigned char again[BYTES];
  struct pwi_clock clock;
  size_t size_again;
  if (pwi_clock_decode(bytes, size, &clock)) return;
  assert_int_equal(pwi_clock_encode(&clock, again, sizeof again, &size_again), PAWL_OK);
  assert_int_equal(size_again, size);
  assert_memory_equal(again, bytes, size);
  pwi_clock_fini(&clock);
}

static void test_the_layout_is_the_documented_one(void **state) {
  (void)state;
  unsigned char bytes[BYTES];
  unsigned char wanted[END];
  assert_int_equal(example(bytes), END);
  pwi_put_u32(wanted + FORMAT, 1);
  pwi_put_u32(wanted + RANGES, 2);
  pwi_put_u64(wanted + SENDERS, 2);
  const uint64_t ranges[4] = {10, 20, 30, 40};
  for (size_t i = 0; i < 4; i++) pwi_put_u64(wanted + RANGE + 8 * i, ranges[i]);
  pwi_put_u64(wanted + FIRST, 0);
  pwi_put_u32(wanted + FIRST_STEPS, 3);
  const uint64_t steps[5] = {0, 12, 5, 30, 6};
  for (size_t i = 0; i < 5; i++) pwi_put_u64(wanted + STEP - 8 + 8 * i, steps[i]);
  pwi_put_u64(wanted + SECOND, 9);
  pwi_put_u32(wanted + SECOND + 8, 1);
  pwi_put_u64(wanted + SECOND + 12, 7);
  assert_memory_equal(bytes, wanted, END);
  assert_int_equal(decode(bytes, END), PAWL_OK);
}

static void test_a_buffer_that_is_too_small_is_refused(void **state) {
  (void)state;
  unsigned char bytes[BYTES];
  struct pwi_clock clock;
  size_t size = 12345;
  assert_int_equal(pwi_clock_decode(bytes, example(bytes), &clock), PAWL_OK);
  assert_int_equal(pwi_clock_encode(&clock, bytes, END - 1, &size), PAWL_TOO_LARGE);
  assert_int_equal(size, 12345);
  pwi_clock_fini(&clock);
}

static void test_an_empty_clock_has_bytes_too(void **state) {
  (void)state;
  unsigned char bytes[BYTES];
  struct pwi_clock clock = {0};
  size_t size;
  assert_int_equal(pwi_clock_encode(&clock, bytes, sizeof bytes, &size), PAWL_OK);
  assert_int_equal(size, 16);
  assert_int_equal(decode(bytes, size), PAWL_OK);
}

static void test_a_sender_for_whom_room_was_made_is_not_written(void **state) {
  (void)state;
  unsigned char bytes[BYTES];
  struct pwi_clock clock;
  assert_int_equal(pwi_clock_decode(bytes, example(bytes), &clock), PAWL_OK);
  assert_int_equal(pwi_clock_reserve(&clock, sender_of(3), pawl_range_of(30, 35)), PAWL_OK);
  assert_int_equal(pwi_clock_encoded_size(&clock), END);
  pwi_clock_fini(&clock);
}

static void test_a_clock_that_was_cut_off_is_truncated(void **state) {
  (void)state;
  unsigned char bytes[BYTES];
  size_t size = example(bytes);
  for (size_t n = 0; n < size; n++) assert_int_equal(decode(bytes, n), PAWL_TRUNCATED);
}

struct damage {
  size_t at;
  uint64_t value;
  size_t size;
  pawl_status status;
};

static void test_every_kind_of_damage_is_seen(void **state) {
  (void)state;
  const struct damage damages[] = {
      {FORMAT, 2, 4, PAWL_UNSUPPORTED},
      {RANGES, UINT32_MAX, 4, PAWL_TRUNCATED},
      {SENDERS, UINT64_MAX, 8, PAWL_TRUNCATED},
      {SENDERS, 1, 8, PAWL_CORRUPT},                     /* bytes left over */
      {RANGE, 20, 8, PAWL_CORRUPT},                      /* an empty range */
      {RANGE + 16, 20, 8, PAWL_CORRUPT},                 /* touching ranges */
      {RANGE + 16, 5, 8, PAWL_CORRUPT},                  /* ranges in disorder */
      {FIRST, 9, 8, PAWL_CORRUPT},                       /* a sender twice */
      {FIRST_STEPS, 0, 4, PAWL_CORRUPT},                 /* no steps */
      {FIRST_STEPS, UINT32_MAX, 4, PAWL_TRUNCATED},      /* more steps than bytes */
      {STEP, 10, 8, PAWL_CORRUPT},                       /* a step at the first held key */
      {STEP, 9, 8, PAWL_CORRUPT},                        /* before it */
      {STEP, 25, 8, PAWL_CORRUPT},                       /* in a hole */
      {STEP, 40, 8, PAWL_CORRUPT},                       /* behind it all */
      {STEP, 35, 8, PAWL_CORRUPT},                       /* not before the next */
      {STEP + 8, 0, 8, PAWL_CORRUPT},                    /* the same time as before */
      {STEP + 8, 6, 8, PAWL_CORRUPT},                    /* the same time as behind */
      {SECOND, 0, 8, PAWL_CORRUPT},                      /* senders in disorder */
      {SECOND + 12, 0, 8, PAWL_CORRUPT},                 /* a sender that never pushed */
      {FIRST, pwi_unmix64(UINT64_MAX), 8, PAWL_CORRUPT}, /* no sender can follow the greatest */
  };
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    unsigned char bytes[BYTES];
    size_t size = example(bytes);
    if (damages[i].size == 4)
      pwi_put_u32(bytes + damages[i].at, (uint32_t)damages[i].value);
    else
      pwi_put_u64(bytes + damages[i].at, damages[i].value);
    assert_int_equal(decode(bytes, size), damages[i].status);
  }
}

static void test_senders_of_no_keys_are_refused(void **state) {
  (void)state;
  unsigned char bytes[36] = {0};
  pwi_put_u32(bytes, PWI_CLOCK_FORMAT);
  pwi_put_u64(bytes + 8, 1);
  pwi_put_u32(bytes + 24, 1);
  pwi_put_u64(bytes + 28, 1);
  assert_int_equal(decode(bytes, sizeof bytes), PAWL_CORRUPT);
}

static void test_any_bytes_are_refused_or_are_what_the_encoder_writes(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  print_message("seed %llu\n", (unsigned long long)SEED);
  uint64_t live = pwi_memory_counts().live;
  for (size_t round = 0; round < 50000; round++) {
    unsigned char bytes[BYTES];
    size_t size = example(bytes);
    for (size_t changes = 1 + (size_t)pwi_random_below(&random, 3); changes > 0; changes--)
      bytes[pwi_random_below(&random, size)] ^= (unsigned char)(1 + pwi_random_below(&random, round % 2 ? 255 : 15));
    assert_safe(bytes, size);
  }
  for (size_t round = 0; round < 5000; round++) {
    unsigned char bytes[256];
    size_t size = (size_t)pwi_random_below(&random, sizeof bytes + 1);
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)pwi_random_below(&random, round % 2 ? 256 : 3);
    if (size >= 4) pwi_put_u32(bytes, PWI_CLOCK_FORMAT);
    assert_safe(bytes, size);
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

/* The mixing function is public. Ids chosen such that all belong at the end of the table only cause a long
 * table. */
static void test_ids_that_all_belong_in_one_place_cost_no_more_than_their_bytes(void **state) {
  (void)state;
  const size_t count = 20000;
  size_t size = 32 + 20 * count;
  unsigned char *bytes = pwi_alloc_zero(size, 1);
  assert_non_null(bytes);
  pwi_put_u32(bytes, PWI_CLOCK_FORMAT);
  pwi_put_u32(bytes + 4, 1);
  pwi_put_u64(bytes + 8, count);
  pwi_put_u64(bytes + 24, 100);
  for (size_t i = 0; i < count; i++) {
    unsigned char *sender = bytes + 32 + 20 * i;
    pwi_put_u64(sender, pwi_unmix64(UINT64_MAX - (count - 1) + i));
    pwi_put_u32(sender + 8, 1);
    pwi_put_u64(sender + 12, i + 1);
  }
  struct pwi_clock clock;
  assert_int_equal(pwi_clock_decode(bytes, size, &clock), PAWL_OK);
  assert_true(clock.room < 5 * count);
  uint64_t time;
  for (size_t i = 0; i < count; i += 997) {
    struct pwi_sender sender = sender_of(pwi_get_u64(bytes + 32 + 20 * i));
    assert_int_equal(pwi_clock_min(&clock, sender, pawl_range_of(0, 100), &time), PAWL_OK);
    assert_int_equal(time, i + 1);
    pwi_clock_retire(&clock, sender);
    assert_false(pwi_clock_has(&clock, sender));
    set(&clock, sender.id, 0, 100, i + 1);
  }
  assert_int_equal(pwi_clock_encoded_size(&clock), size);
  pwi_clock_fini(&clock);
  pwi_free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_layout_is_the_documented_one),
      cmocka_unit_test(test_a_buffer_that_is_too_small_is_refused),
      cmocka_unit_test(test_an_empty_clock_has_bytes_too),
      cmocka_unit_test(test_a_sender_for_whom_room_was_made_is_not_written),
      cmocka_unit_test(test_a_clock_that_was_cut_off_is_truncated),
      cmocka_unit_test(test_every_kind_of_damage_is_seen),
      cmocka_unit_test(test_senders_of_no_keys_are_refused),
      cmocka_unit_test(test_any_bytes_are_refused_or_are_what_the_encoder_writes),
      cmocka_unit_test(test_ids_that_all_belong_in_one_place_cost_no_more_than_their_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
