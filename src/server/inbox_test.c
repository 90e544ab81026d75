/* Receiving messages: whole, in pieces cut anywhere, without memory, and malformed. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "server/inbox.h"

#define SMALL 24
#define BODY_MAX ((size_t)40 << 20)

static const struct pwi_message_terms terms = {.body_max = BODY_MAX, .unpacked_max = BODY_MAX, .version = 1};

/* A message of a small section and a large one. */
struct sample {
  uint8_t head[PWI_MESSAGE_HEAD_SIZE];
  uint8_t *body, *large;
  size_t body_size, large_size;
  uint8_t small[SMALL];
};

static void make_sample(struct sample *sample, size_t large_size) {
  struct pwi_message_builder builder;
  struct pwi_message_head about = {.kind = 17, .sender = 3, .task = 4};
  struct pwi_section small = {.type = 22, .count = 1, .length = SMALL};
  struct pwi_section large = {.type = 18, .count = (uint32_t)large_size, .length = large_size};
  sample->large_size = large_size;
  sample->large = test_malloc(large_size + 1);
  for (size_t i = 0; i < large_size; i++) sample->large[i] = (uint8_t)(i * 7 + i / 255);
  for (size_t i = 0; i < SMALL; i++) sample->small[i] = (uint8_t)(200 + i);
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_copy(&builder, &small, sample->small), PAWL_OK);
  if (large_size > 0) assert_int_equal(pwi_message_add(&builder, &large, sample->large), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  memcpy(sample->head, builder.head, sizeof sample->head);
  sample->body = test_malloc(builder.body_size + 1);
  sample->body_size = 0;
  for (size_t i = 0; i < builder.part_count; i++) {
    memcpy(sample->body + sample->body_size, builder.parts[i].iov_base, builder.parts[i].iov_len);
    sample->body_size += builder.parts[i].iov_len;
  }
  assert_int_equal(sample->body_size, builder.body_size);
}

static void free_sample(struct sample *sample) {
  test_free(sample->body);
  test_free(sample->large);
}

static struct pwi_receive begin(struct pwi_inbox *inbox, const struct sample *sample, bool is_ready) {
  struct pwi_message message = {.head = sample->head, .body_size = sample->body_size, .ready = is_ready};
  struct pwi_receive receive = pwi_inbox_begin(inbox, &message, &terms, inbox);
  assert_ptr_equal(receive.context, inbox);
  return receive;
}

/* Delivers a body that stays in the sender's memory, in `count` pieces cut anywhere. */
static void give_pieces(struct pwi_inbox *inbox, const struct sample *sample, size_t count, struct pwi_random *random) {
  assert_int_equal(begin(inbox, sample, true).how, PWI_RECEIVE_PIECES);
  size_t at = 0;
  for (size_t i = 0; i < count && at < sample->body_size; i++) {
    size_t left = sample->body_size - at;
    size_t step = i + 1 == count ? left : 1 + (size_t)pwi_random_below(random, left < 200 ? left : left / 4);
    pwi_inbox_piece(inbox, at, sample->body + at, step);
    at += step;
  }
}

/* Both sections are unchanged, read by pwi_inbox_at and as parts. */
static void assert_content(struct pwi_inbox *inbox, const struct sample *sample) {
  struct pwi_sections sections;
  struct iovec parts[PWI_NET_READY_PIECES];
  uint8_t scratch[SMALL];
  assert_int_equal(pwi_inbox_check(inbox, &sections), PAWL_OK);
  const struct pwi_section *small = pwi_sections_find(&sections, 22), *large = pwi_sections_find(&sections, 18);
  assert_memory_equal(pwi_inbox_at(inbox, small->offset, SMALL, scratch), sample->small, SMALL);
  if (!large) return;
  uint8_t *room = test_malloc(sample->large_size);
  assert_memory_equal(pwi_inbox_at(inbox, large->offset, large->length, room), sample->large, large->length);
  size_t count = pwi_inbox_parts(inbox, large->offset, large->length, parts), at = 0;
  assert_true(count > 0 && count <= PWI_NET_READY_PIECES);
  for (size_t i = 0; i < count; i++) {
    assert_true(parts[i].iov_len > 0);
    assert_memory_equal(parts[i].iov_base, sample->large + at, parts[i].iov_len);
    at += parts[i].iov_len;
  }
  assert_int_equal(at, sample->large_size);
  test_free(room);
}

static void test_a_body_is_received_into_memory_that_is_kept(void **state) {
  (void)state;
  struct pwi_inbox inbox = {0};
  struct sample sample;
  make_sample(&sample, 5000);
  for (int i = 0; i < 3; i++) {
    struct pwi_memory_counts before = pwi_memory_counts();
    struct pwi_receive receive = begin(&inbox, &sample, false);
    assert_int_equal(receive.how, PWI_RECEIVE_INTO);
    if (i > 0) assert_int_equal(pwi_memory_counts().allocations, before.allocations);
    memcpy(receive.into, sample.body, sample.body_size);
    assert_content(&inbox, &sample);
    assert_int_equal(inbox.head.sender, 3);
    pwi_inbox_end(&inbox);
  }
  free_sample(&sample);
  pwi_inbox_fini(&inbox);
}

static void test_much_memory_is_given_back_after_use(void **state) {
  (void)state;
  struct pwi_inbox inbox = {0};
  struct sample sample;
  make_sample(&sample, (size_t)33 << 20);
  struct pwi_receive receive = begin(&inbox, &sample, false);
  memcpy(receive.into, sample.body, sample.body_size);
  assert_content(&inbox, &sample);
  pwi_inbox_end(&inbox);
  assert_int_equal(inbox.staging.size, 0);
  free_sample(&sample);
  pwi_inbox_fini(&inbox);
}

/* An idle link keeps no memory, even if it has received a large message. */
static void test_idle_inboxes_share_the_kept_memory(void **state) {
  (void)state;
  struct pwi_staging staging = {0};
  struct pwi_inbox inboxes[20] = {{.shared = &staging}};
  struct sample sample;
  make_sample(&sample, (size_t)4 << 20);
  for (size_t i = 0; i < 20; i++) inboxes[i].shared = &staging;
  for (int round = 0; round < 3; round++) {
    struct pwi_memory_counts before = pwi_memory_counts();
    for (size_t i = 0; i < 20; i++) { /* one after the other: all use the same memory */
      struct pwi_receive receive = begin(&inboxes[i], &sample, false);
      memcpy(receive.into, sample.body, sample.body_size);
      assert_content(&inboxes[i], &sample);
      pwi_inbox_end(&inboxes[i]);
      assert_int_equal(inboxes[i].staging.size, 0);
    }
    if (round > 0) assert_int_equal(pwi_memory_counts().live, before.live);
  }
  assert_true(staging.bytes > 0 && staging.bytes <= (size_t)16 << 20);
  for (size_t i = 0; i < 20; i++) (void)begin(&inboxes[i], &sample, false); /* all at once */
  for (size_t i = 0; i < 20; i++) pwi_inbox_end(&inboxes[i]);
  assert_true(staging.bytes <= PWI_STAGING_MAX);
  size_t kept = 0;
  for (size_t i = 0; i < PWI_STAGING_SLOTS; i++) kept += staging.spare[i].size;
  assert_int_equal(kept, staging.bytes);
  for (size_t i = 0; i < 20; i++) pwi_inbox_fini(&inboxes[i]);
  pwi_staging_fini(&staging);
  free_sample(&sample);
}

static void test_a_body_that_lies_with_its_sender_is_read_there(void **state) {
  (void)state;
  struct pwi_random random;
  struct pwi_inbox inbox = {0};
  pwi_random_init(&random, 3, 0);
  for (int round = 0; round < 300; round++) {
    static const size_t sizes[] = {0, 1, 63, 64, 500, 9000};
    struct sample sample;
    make_sample(&sample, sizes[round % 6]);
    give_pieces(&inbox, &sample, 1 + (size_t)pwi_random_below(&random, PWI_NET_READY_PIECES), &random);
    assert_content(&inbox, &sample);
    assert_int_equal(inbox.staging.size, 0);
    pwi_inbox_end(&inbox);
    free_sample(&sample);
  }
  pwi_inbox_fini(&inbox);
}

/* Reads every byte range over every cut. */
static void test_bytes_are_found_whatever_the_cut(void **state) {
  (void)state;
  struct sample sample;
  struct pwi_inbox inbox = {0};
  struct iovec parts[PWI_NET_READY_PIECES];
  uint8_t scratch[64];
  make_sample(&sample, 0);
  size_t size = sample.body_size;
  for (size_t one = 1; one < size; one += 5)
    for (size_t two = one + 1; two < size; two += 7) {
      begin(&inbox, &sample, true);
      pwi_inbox_piece(&inbox, 0, sample.body, one);
      pwi_inbox_piece(&inbox, one, sample.body + one, two - one);
      pwi_inbox_piece(&inbox, two, sample.body + two, size - two);
      for (size_t from = 0; from < size; from++) {
        size_t length = size - from < sizeof scratch ? size - from : sizeof scratch;
        const void *found = pwi_inbox_at(&inbox, from, length, scratch);
        assert_memory_equal(found, sample.body + from, length);
        bool is_whole = (from >= two) || (from + length <= one) || (from >= one && from + length <= two);
        assert_int_equal(found != scratch, is_whole); /* a range within one piece is not copied */
        size_t count = pwi_inbox_parts(&inbox, from, length, parts), sum = 0;
        for (size_t i = 0; i < count; i++) sum += parts[i].iov_len;
        assert_int_equal(sum, length);
      }
    }
  free_sample(&sample);
  pwi_inbox_fini(&inbox);
}

static void test_a_body_that_is_not_the_senders_is_not_taken(void **state) {
  (void)state;
  struct pwi_random random;
  struct pwi_inbox inbox = {0};
  struct pwi_sections sections;
  struct sample sample;
  make_sample(&sample, 300);
  pwi_random_init(&random, 4, 0);
  for (size_t i = 0; i < sample.body_size * 8; i++) {
    sample.body[i / 8] ^= (uint8_t)(1 << i % 8);
    give_pieces(&inbox, &sample, 1 + i % 9, &random);
    assert_int_not_equal(pwi_inbox_check(&inbox, &sections), PAWL_OK);
    sample.body[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  for (size_t i = 0; i < sizeof sample.head * 8; i++) {
    sample.head[i / 8] ^= (uint8_t)(1 << i % 8);
    if (begin(&inbox, &sample, true).how != PWI_RECEIVE_REFUSE) {
      pwi_inbox_piece(&inbox, 0, sample.body, sample.body_size);
      assert_int_not_equal(pwi_inbox_check(&inbox, &sections), PAWL_OK);
    }
    sample.head[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  /* Fewer bytes than were announced. */
  assert_int_equal(begin(&inbox, &sample, true).how, PWI_RECEIVE_PIECES);
  pwi_inbox_piece(&inbox, 0, sample.body, sample.body_size - 1);
  assert_int_equal(pwi_inbox_check(&inbox, &sections), PAWL_TRUNCATED);
  give_pieces(&inbox, &sample, 3, &random);
  assert_content(&inbox, &sample);
  free_sample(&sample);
  pwi_inbox_fini(&inbox);
}

/* The kept beginning suffices to refuse the request. */
static void test_the_beginning_of_a_body_is_kept_if_there_is_no_memory_for_it(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 100, 320, 100000};
  for (int i = 0; i < 4; i++) {
    struct pwi_inbox inbox = {0};
    struct pwi_sections sections;
    struct sample sample;
    uint8_t scratch[SMALL];
    make_sample(&sample, sizes[i]);
    pwi_memory_fail_after(0);
    struct pwi_receive receive = begin(&inbox, &sample, false);
    assert_int_equal(pwi_memory_fail_cancel(), 1);
    assert_int_equal(receive.how, PWI_RECEIVE_PIECES);
    assert_true(inbox.is_dropped);
    for (size_t at = 0, step; at < sample.body_size; at += step) {
      step = sample.body_size - at < 192 ? sample.body_size - at : 192;
      pwi_inbox_piece(&inbox, at, sample.body + at, step);
    }
    assert_int_equal(pwi_inbox_check(&inbox, &sections), PAWL_OK);
    const struct pwi_section *small = pwi_sections_find(&sections, 22), *large = pwi_sections_find(&sections, 18);
    assert_memory_equal(pwi_inbox_at(&inbox, small->offset, SMALL, scratch), sample.small, SMALL);
    assert_int_equal(large != NULL, sample.large_size > 0 && sample.body_size <= PWI_INBOX_BEGINNING);
    pwi_inbox_end(&inbox);
    receive = begin(&inbox, &sample, false); /* there is memory for the next message */
    assert_int_equal(receive.how, PWI_RECEIVE_INTO);
    memcpy(receive.into, sample.body, sample.body_size);
    assert_content(&inbox, &sample);
    free_sample(&sample);
    pwi_inbox_fini(&inbox);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_body_is_received_into_memory_that_is_kept),
      cmocka_unit_test(test_much_memory_is_given_back_after_use),
      cmocka_unit_test(test_idle_inboxes_share_the_kept_memory),
      cmocka_unit_test(test_a_body_that_lies_with_its_sender_is_read_there),
      cmocka_unit_test(test_bytes_are_found_whatever_the_cut),
      cmocka_unit_test(test_a_body_that_is_not_the_senders_is_not_taken),
      cmocka_unit_test(test_the_beginning_of_a_body_is_kept_if_there_is_no_memory_for_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
