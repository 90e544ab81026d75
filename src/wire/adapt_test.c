/* The adaptive choice with a simulated link and simulated codecs of known speed. Sizes and speeds are those
 * of real machines: loopback at 6 GB/s, a 1 Gbit/s network at 100 MB/s, codecs as measured. */
#include "base/testing.h"
#include "wire/adapt.h"

#define MESSAGE ((size_t)1 << 20)
#define LOOPBACK 6.0 /* bytes per nanosecond */
#define SLOW 0.1

/* The performance of a codec on some kind of values: coded bytes per raw byte, raw bytes per nanosecond. */
struct figures {
  double ratio;
  double encode;
  double decode;
};

struct data {
  double zeros;
  struct figures codecs[PWI_CODEC_COUNT];
};

static const struct data dense = {
    0.0, {[PWI_CODEC_BITMAP] = {1.03, 12, 12}, [PWI_CODEC_LZ4] = {1.0, 10, 13}, [PWI_CODEC_ZSTD] = {0.93, 0.83, 0.88}}};

/* Counts, most of them zero: the rest are small numbers, which only a compressor makes use of. */
static const struct data counts = {0.9,
                                   {[PWI_CODEC_BITMAP] = {0.116, 17, 13},
                                    [PWI_CODEC_LZ4] = {0.079, 1.77, 3.4},
                                    [PWI_CODEC_ZSTD] = {0.0487, 0.97, 1.92}}};

/* Few zeros, but much repetition. */
static const struct data repeated = {
    0.02, {[PWI_CODEC_BITMAP] = {1.0, 10, 10}, [PWI_CODEC_LZ4] = {0.3, 0.7, 3.0}, [PWI_CODEC_ZSTD] = {0.15, 0.5, 1.2}}};

struct world {
  struct pwi_adapt adapt;
  struct pwi_adapt_link link;
  const struct data *data;
  double rate;
  double sample_bias; /* how much faster samples are than messages */
  double message_ns, trial_ns;
  unsigned trials;
  unsigned used[PWI_CODEC_COUNT];
};

static void start(struct world *world, const struct data *data, double rate) {
  *world = (struct world){.data = data, .rate = rate, .sample_bias = 1};
  pwi_adapt_init(&world->adapt, PWI_TYPE_I64);
  pwi_adapt_link_init(&world->link);
}

static void try_sample(struct world *world, const struct pwi_adapt_choice *choice, size_t message) {
  const struct figures *figures = &world->data->codecs[choice->trial];
  double raw = (double)choice->sample_size;
  double encode = raw / figures->encode / world->sample_bias, decode = raw / figures->decode / world->sample_bias;
  assert_true(choice->sample_size > 0 && choice->sample_size <= PWI_ADAPT_SAMPLE);
  assert_true(choice->sample_offset % 64 == 0 && choice->sample_offset + choice->sample_size <= message);
  assert_int_not_equal(choice->trial, choice->codec);
  pwi_adapt_report_codec(&world->adapt, choice->trial, choice->sample_size, (size_t)(raw * figures->ratio),
                         (int64_t)encode, (int64_t)decode);
  world->trials++;
  world->trial_ns += encode + decode;
}

/* One message through the whole cycle of the header. */
static enum pwi_value_codec send(struct world *world, size_t bytes) {
  struct pwi_adapt_choice choice = pwi_adapt_choose(&world->adapt, &world->link, bytes, world->data->zeros);
  if (choice.trial != PWI_CODEC_RAW) try_sample(world, &choice, bytes);
  double raw = (double)bytes, coded = raw;
  if (choice.codec != PWI_CODEC_RAW) {
    const struct figures *figures = &world->data->codecs[choice.codec];
    coded = raw * figures->ratio;
    pwi_adapt_report_codec(&world->adapt, choice.codec, bytes, (size_t)coded, (int64_t)(raw / figures->encode),
                           (int64_t)(raw / figures->decode));
    world->message_ns += raw / figures->encode + raw / figures->decode;
  }
  pwi_adapt_link_report(&world->link, (size_t)coded, (int64_t)(coded / world->rate));
  world->message_ns += coded / world->rate;
  world->used[choice.codec]++;
  return choice.codec;
}

static enum pwi_value_codec send_many(struct world *world, unsigned messages) {
  enum pwi_value_codec last = PWI_CODEC_RAW;
  for (unsigned i = 0; i < messages; i++) last = send(world, MESSAGE);
  return last;
}

static void test_dense_values_go_raw_over_loopback(void **state) {
  (void)state;
  struct world world;
  start(&world, &dense, LOOPBACK);
  send_many(&world, 5000);
  assert_int_equal(world.used[PWI_CODEC_RAW], 5000);
}

static void test_dense_values_go_raw_over_a_slow_link_too(void **state) {
  (void)state;
  struct world world;
  start(&world, &dense, SLOW);
  send_many(&world, 1000);
  assert_int_equal(world.used[PWI_CODEC_RAW], 1000);
}

static void test_mostly_zero_values_go_as_bitmap_over_loopback(void **state) {
  (void)state;
  struct world world;
  start(&world, &counts, LOOPBACK);
  assert_int_equal(send_many(&world, 1000), PWI_CODEC_BITMAP);
  assert_true(world.used[PWI_CODEC_BITMAP] > 990);
}

static void test_compression_wins_on_a_slow_link(void **state) {
  (void)state;
  struct world world;
  start(&world, &repeated, SLOW);
  assert_int_equal(send_many(&world, 1000), PWI_CODEC_ZSTD);
  assert_true(world.used[PWI_CODEC_ZSTD] > 990);
  start(&world, &counts, SLOW);
  /* 1.2 + 0.1 ns a byte; LZ4 0.8 + 0.9, ZSTD 0.5 + 1.6. */
  assert_int_equal(send_many(&world, 1000), PWI_CODEC_BITMAP);
  start(&world, &counts, SLOW / 10);
  assert_int_equal(send_many(&world, 1000), PWI_CODEC_ZSTD); /* now 11.6 + 0.1, 7.9 + 0.9, 4.9 + 1.6 */
}

static void test_the_choice_follows_the_link(void **state) {
  (void)state;
  struct world world;
  start(&world, &repeated, LOOPBACK);
  assert_int_equal(send_many(&world, 500), PWI_CODEC_RAW);
  world.rate = SLOW;
  assert_int_equal(send_many(&world, 20), PWI_CODEC_ZSTD);
  world.rate = LOOPBACK;
  assert_int_equal(send_many(&world, 40), PWI_CODEC_RAW);
}

static void test_the_choice_follows_the_zeros_at_once(void **state) {
  (void)state;
  struct world world;
  start(&world, &dense, 2.0);
  assert_int_equal(send_many(&world, 100), PWI_CODEC_RAW);
  world.data = &counts;
  assert_int_equal(send(&world, MESSAGE), PWI_CODEC_BITMAP);
  world.data = &dense;
  assert_int_equal(send(&world, MESSAGE), PWI_CODEC_RAW);
}

static void test_a_losing_codec_is_found_again_when_the_values_change(void **state) {
  (void)state;
  struct world world;
  struct data changed = dense;
  start(&world, &changed, SLOW);
  changed.codecs[PWI_CODEC_ZSTD].ratio = 1.0;
  assert_int_equal(send_many(&world, 20000), PWI_CODEC_RAW);
  changed = repeated;
  assert_int_equal(send_many(&world, 2 * PWI_ADAPT_GAP_MAX + 2), PWI_CODEC_ZSTD);
}

static void test_exploring_takes_a_small_share_of_the_time(void **state) {
  (void)state;
  struct world world;
  start(&world, &dense, LOOPBACK);
  send_many(&world, 2000);
  assert_true(world.trials < 40);
  assert_true(world.trial_ns < 0.01 * world.message_ns);
  unsigned trials = world.trials;
  send_many(&world, 20 * PWI_ADAPT_GAP_MAX);
  assert_true(world.trials - trials >= 3 * 18); /* it goes on */
  assert_true(world.trials - trials <= 3 * 21); /* at the lowest rate */
}

static void test_codecs_that_flatter_in_trials_are_not_believed_for_ever(void **state) {
  (void)state;
  struct world world;
  start(&world, &repeated, 2.0);
  world.sample_bias = 20; /* a trial promises what a message does not keep */
  send_many(&world, 20000);
  assert_true(world.used[PWI_CODEC_RAW] > 19000);
  assert_true(world.message_ns < 20000.0 * (double)MESSAGE / 2.0 * 1.1);
}

static void test_trials_without_a_report_become_rare(void **state) {
  (void)state;
  struct world world;
  unsigned trials = 0;
  start(&world, &dense, LOOPBACK);
  for (int i = 0; i < 10000; i++) {
    struct pwi_adapt_choice choice = pwi_adapt_choose(&world.adapt, &world.link, MESSAGE, 0.99);
    assert_int_equal(choice.codec, PWI_CODEC_RAW); /* nothing was ever measured */
    trials += choice.trial != PWI_CODEC_RAW;
  }
  assert_in_range(trials, 3, 60);
}

static void test_small_messages_go_raw_and_carry_no_trial(void **state) {
  (void)state;
  struct world world;
  start(&world, &repeated, SLOW);
  send_many(&world, 100);
  unsigned trials = world.trials;
  for (int i = 0; i < 1000; i++) assert_int_equal(send(&world, PWI_ADAPT_SMALL - 8), PWI_CODEC_RAW);
  assert_int_equal(send(&world, 0), PWI_CODEC_RAW);
  assert_int_equal(world.trials, trials);
}

static void test_samples_of_middling_messages_stay_inside(void **state) {
  (void)state;
  struct world world;
  start(&world, &dense, SLOW);
  for (size_t i = 0; i < 3000; i++) send(&world, PWI_ADAPT_SMALL + i * 40); /* try_sample checks */
  assert_true(world.trials > 0);
}

static void test_the_same_reports_give_the_same_choices(void **state) {
  (void)state;
  struct world one, two;
  start(&one, &repeated, 0.7);
  start(&two, &repeated, 0.7);
  for (int i = 0; i < 3000; i++) assert_int_equal(send(&one, MESSAGE), send(&two, MESSAGE));
  assert_int_equal(one.trials, two.trials);
}

static void test_empty_and_foreign_reports_change_nothing(void **state) {
  (void)state;
  struct world world;
  start(&world, &repeated, SLOW);
  send_many(&world, 50);
  double cost = pwi_adapt_link_cost(&world.link), ratio = world.adapt.codecs[2].ratio;
  pwi_adapt_link_report(&world.link, 0, 1000);
  pwi_adapt_link_report(&world.link, 1000, 0);
  pwi_adapt_link_report(&world.link, 1000, -5);
  pwi_adapt_report_codec(&world.adapt, PWI_CODEC_ZSTD, 0, 10, 10, 10);
  pwi_adapt_report_codec(&world.adapt, PWI_CODEC_F16, 100, 50, 10, 10);
  pwi_adapt_report_codec(&world.adapt, PWI_CODEC_RAW, 100, 100, 10, 10);
  assert_true(pwi_adapt_link_cost(&world.link) == cost && world.adapt.codecs[2].ratio == ratio);
  assert_int_equal(send(&world, MESSAGE), PWI_CODEC_ZSTD);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dense_values_go_raw_over_loopback),
      cmocka_unit_test(test_dense_values_go_raw_over_a_slow_link_too),
      cmocka_unit_test(test_mostly_zero_values_go_as_bitmap_over_loopback),
      cmocka_unit_test(test_compression_wins_on_a_slow_link),
      cmocka_unit_test(test_the_choice_follows_the_link),
      cmocka_unit_test(test_the_choice_follows_the_zeros_at_once),
      cmocka_unit_test(test_a_losing_codec_is_found_again_when_the_values_change),
      cmocka_unit_test(test_exploring_takes_a_small_share_of_the_time),
      cmocka_unit_test(test_codecs_that_flatter_in_trials_are_not_believed_for_ever),
      cmocka_unit_test(test_trials_without_a_report_become_rare),
      cmocka_unit_test(test_small_messages_go_raw_and_carry_no_trial),
      cmocka_unit_test(test_samples_of_middling_messages_stay_inside),
      cmocka_unit_test(test_the_same_reports_give_the_same_choices),
      cmocka_unit_test(test_empty_and_foreign_reports_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
