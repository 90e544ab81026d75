/* A node that applies deltas has the same membership as a node that receives it whole. */
#include "base/cursor.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "protocol/membership_delta.h"

#define OK(call) assert_int_equal((call), PAWL_OK)
#define STEPS 400

/* --- a history at random -------------------------------------------------------------------------------- */

static struct pwi_random dice;

static struct pwi_membership_step draw_step(const struct pwi_membership *membership) {
  struct pwi_membership_step step = {.kind = (enum pwi_membership_step_kind)(1 + pwi_random_below(&dice, 6))};
  size_t at = membership->sender_count ? pwi_random_below(&dice, membership->sender_count) : 0;
  step.sender.sender.id = membership->sender_count ? membership->senders[at].sender.id : 1;
  step.group.id = 1 + pwi_random_below(&dice, 3);
  step.size = step.group.id == 1 ? 3 : 0;
  if (step.kind == PWI_MEMBERSHIP_STEP_ADD) {
    step.sender.sender.id = membership->last + 1 + pwi_random_below(&dice, 3);
    snprintf(step.sender.job, sizeof step.sender.job, "job%u", (unsigned)pwi_random_below(&dice, 4));
    snprintf(step.sender.host, sizeof step.sender.host, "host%u", (unsigned)pwi_random_below(&dice, 4));
    if (pwi_random_below(&dice, 2)) memcpy(step.sender.rack, "rack", 5);
  }
  if (step.kind == PWI_MEMBERSHIP_STEP_ADDRESS || (step.kind == PWI_MEMBERSHIP_STEP_ADD && pwi_random_below(&dice, 2)))
    snprintf(step.sender.address, sizeof step.sender.address, "host:%u", (unsigned)pwi_random_below(&dice, 9));
  return step;
}

/* Makes a valid step and applies it. */
static struct pwi_membership_step make_step(struct pwi_membership *membership) {
  for (;;) {
    struct pwi_membership_step step = draw_step(membership);
    bool is_about_nobody = pwi_membership_has_forgotten(membership, step.sender.sender);
    if (step.kind != PWI_MEMBERSHIP_STEP_ADD && is_about_nobody) continue;
    pawl_status status = pwi_membership_step(membership, &step);
    if (!status) return step;
    assert_int_equal(status, PAWL_CORRUPT);
  }
}

static struct pwi_writer delta_of(const struct pwi_membership_step *steps, uint64_t since, uint64_t until) {
  struct pwi_writer writer = {0};
  pwi_delta_begin(since, (uint32_t)(until - since), &writer);
  for (uint64_t i = since; i < until; i++) pwi_membership_step_encode(&steps[i], &writer);
  OK(writer.status);
  return writer;
}

static void assert_same(const struct pwi_membership *a, const struct pwi_membership *b,
                        void (*encode)(const struct pwi_membership *, struct pwi_writer *)) {
  struct pwi_writer first = {0}, second = {0};
  encode(a, &first);
  encode(b, &second);
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  pwi_writer_fini(&first);
  pwi_writer_fini(&second);
}

static struct pwi_membership copy_of(const struct pwi_membership *membership,
                                     void (*encode)(const struct pwi_membership *, struct pwi_writer *)) {
  struct pwi_writer writer = {0};
  struct pwi_membership copy;
  encode(membership, &writer);
  OK(pwi_membership_decode(writer.data, writer.size, &copy));
  pwi_writer_fini(&writer);
  return copy;
}

/* Begins with the whole membership of some number and applies deltas, which may overlap. */
static void follow(uint64_t seed, void (*encode)(const struct pwi_membership *, struct pwi_writer *)) {
  static struct pwi_membership_step steps[STEPS];
  struct pwi_membership membership = {0}, other = {0};
  pwi_random_init(&dice, seed, 1);
  uint64_t begin = pwi_random_below(&dice, STEPS);
  for (uint64_t i = 0; i < STEPS; i++) {
    if (i == begin) other = copy_of(&membership, encode);
    steps[i] = make_step(&membership);
    assert_int_equal(membership.number, i + 1);
    if (i < begin || pwi_random_below(&dice, 4) > 0) continue;
    uint64_t since = other.number - (other.number > begin ? pwi_random_below(&dice, 2) : 0);
    struct pwi_writer delta = delta_of(steps, since, membership.number);
    OK(pwi_membership_apply_delta(&other, delta.data, delta.size, NULL, NULL));
    pwi_writer_fini(&delta);
    assert_same(&membership, &other,
                encode == pwi_membership_encode ? pwi_membership_encode : pwi_membership_encode_live);
  }
  pwi_membership_fini(&membership);
  pwi_membership_fini(&other);
}

static void test_deltas_are_as_good_as_the_whole(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 100; seed++) follow(seed, pwi_membership_encode);
}

/* A node that comes later knows only the retired senders that were retired since. */
static void test_deltas_follow_a_membership_without_retired_senders(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 100; seed++) follow(seed, pwi_membership_encode_live);
}

/* --- what is not a delta -------------------------------------------------------------------------------- */

static struct pwi_membership_step add_of(uint64_t id) {
  return (struct pwi_membership_step){.kind = PWI_MEMBERSHIP_STEP_ADD, .sender = {.sender = {id}, .job = "job"}};
}

static struct pwi_membership_step about(enum pwi_membership_step_kind kind, uint64_t id) {
  return (struct pwi_membership_step){.kind = kind, .sender = {.sender = {id}}};
}

static size_t forgotten;
static void note_forgotten(void *context, struct pwi_sender sender) {
  (void)context;
  assert_int_equal(sender.id, 7);
  forgotten++;
}

static void test_forgotten_senders_are_reported(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  struct pwi_membership_step steps[] = {add_of(7), add_of(8), about(PWI_MEMBERSHIP_STEP_RETIRE, 7),
                                        about(PWI_MEMBERSHIP_STEP_FORGET, 7)};
  struct pwi_writer delta = delta_of(steps, 0, 4);
  forgotten = 0;
  OK(pwi_membership_apply_delta(&membership, delta.data, delta.size, note_forgotten, NULL));
  OK(pwi_membership_apply_delta(&membership, delta.data, delta.size, note_forgotten, NULL));
  assert_int_equal(forgotten, 1);
  assert_int_equal(membership.number, 4);
  assert_true(pwi_membership_has_forgotten(&membership, (struct pwi_sender){7}));
  assert_false(pwi_membership_has_forgotten(&membership, (struct pwi_sender){8}));
  /* it may be newer than this membership */
  assert_false(pwi_membership_has_forgotten(&membership, (struct pwi_sender){9}));
  pwi_writer_fini(&delta);
  pwi_membership_fini(&membership);
}

static void test_a_gap_is_not_jumped(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  struct pwi_membership_step steps[] = {add_of(7), add_of(8)};
  struct pwi_writer delta = delta_of(steps, 1, 2);
  assert_int_equal(pwi_membership_apply_delta(&membership, delta.data, delta.size, NULL, NULL), PAWL_CORRUPT);
  assert_int_equal(membership.number, 0);
  pwi_writer_fini(&delta);
}

static void test_bytes_that_are_no_delta_change_nothing(void **state) {
  (void)state;
  struct pwi_membership_step steps[] = {add_of(7), add_of(8), about(PWI_MEMBERSHIP_STEP_RETIRE, 7)};
  struct pwi_writer delta = delta_of(steps, 0, 3);
  for (size_t size = 0; size < delta.size; size++) {
    struct pwi_membership membership = {0};
    unsigned char *exact = pwi_alloc(size + 1);
    memcpy(exact, delta.data, size);
    assert_int_not_equal(pwi_membership_apply_delta(&membership, exact, size, NULL, NULL), PAWL_OK);
    assert_int_equal(membership.number, 0);
    pwi_free(exact);
  }
  struct pwi_membership membership = {0};
  ((unsigned char *)delta.data)[0] = 3;
  assert_int_equal(pwi_membership_apply_delta(&membership, delta.data, delta.size, NULL, NULL), PAWL_UNSUPPORTED);
  ((unsigned char *)delta.data)[0] = 2;
  ((unsigned char *)delta.data)[13] = 7; /* an unknown kind of step */
  assert_int_equal(pwi_membership_apply_delta(&membership, delta.data, delta.size, NULL, NULL), PAWL_CORRUPT);
  assert_int_equal(membership.number, 0);
  pwi_writer_fini(&delta);
}

/* A delta of version 1, as the managers of earlier versions send it: the sender has no host and rack. */
static void test_a_delta_of_version_1_is_read(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  struct pwi_membership_step joins = {
      .kind = PWI_MEMBERSHIP_STEP_JOIN, .sender = {.sender = {7}}, .group = {3}, .size = 2};
  struct pwi_writer delta = {0};
  unsigned char key[32] = {0};
  pwi_write_u8(&delta, 1);
  pwi_write_u64(&delta, 0);
  pwi_write_u32(&delta, 2);
  pwi_write_u8(&delta, PWI_MEMBERSHIP_STEP_ADD);
  pwi_write_u64(&delta, 7);
  pwi_write_u8(&delta, 0);
  pwi_write_text(&delta, "job");
  pwi_write_text(&delta, "h:1");
  pwi_write_bytes(&delta, key, sizeof key);
  pwi_membership_step_encode(&joins, &delta);
  OK(pwi_membership_apply_delta(&membership, delta.data, delta.size, NULL, NULL));
  assert_string_equal(membership.senders[0].address, "h:1");
  assert_string_equal(membership.senders[0].host, "");
  assert_int_equal(membership.groups[0].changed, 2);
  pwi_writer_fini(&delta);
  pwi_membership_fini(&membership);
}

static void test_a_step_that_cannot_follow_ends_it_there(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  struct pwi_membership_step steps[] = {add_of(7), about(PWI_MEMBERSHIP_STEP_RETIRE, 6), add_of(8)};
  struct pwi_writer delta = delta_of(steps, 0, 3);
  assert_int_equal(pwi_membership_apply_delta(&membership, delta.data, delta.size, NULL, NULL), PAWL_CORRUPT);
  assert_int_equal(membership.number, 1);
  assert_true(pwi_membership_is_live(&membership, (struct pwi_sender){7}));
  pwi_writer_fini(&delta);
  pwi_membership_fini(&membership);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deltas_are_as_good_as_the_whole),
      cmocka_unit_test(test_deltas_follow_a_membership_without_retired_senders),
      cmocka_unit_test(test_forgotten_senders_are_reported),
      cmocka_unit_test(test_a_gap_is_not_jumped),
      cmocka_unit_test(test_bytes_that_are_no_delta_change_nothing),
      cmocka_unit_test(test_a_delta_of_version_1_is_read),
      cmocka_unit_test(test_a_step_that_cannot_follow_ends_it_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
