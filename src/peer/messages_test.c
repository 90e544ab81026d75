/* PEER messages: every step survives encoding, and any bytes are accepted. */
#include "peer/messages.h"

#include "base/cursor.h"
#include "base/random.h"
#include "base/testing.h"

static const struct pwi_peer_message samples[] = {
    {.step = PWI_PEER_STEP_LINK, .target = 7, .attempt = UINT64_C(1) << 40},
    {.step = PWI_PEER_STEP_WANT, .wants = true},
    {.step = PWI_PEER_STEP_WANT},
    {.step = PWI_PEER_STEP_OPEN, .slot = 3, .group = {9}, .name = "reduce/gradients", .bytes = "4x5", .size = 3},
    {.step = PWI_PEER_STEP_OPEN, .slot = 65535, .group = {1}, .name = "x", .bytes = "", .size = 0},
    {.step = PWI_PEER_STEP_PAIR, .other = 2, .slot = 65535},
    {.step = PWI_PEER_STEP_CLOSE, .slot = 1},
    {.step = PWI_PEER_STEP_LEFT, .slot = 65535},
    {.step = PWI_PEER_STEP_REGION,
     .slot = 5,
     .tag = UINT64_MAX,
     .region_size = UINT64_C(1) << 33,
     .bytes = "token",
     .size = 5},
    {.step = PWI_PEER_STEP_SAY, .slot = 8, .kind = 77, .bytes = "any bytes", .size = 9},
    {.step = PWI_PEER_STEP_SAY, .slot = 8, .kind = 0, .bytes = "", .size = 0},
};

#define SAMPLES (sizeof samples / sizeof *samples)

static void assert_same(const struct pwi_peer_message *a, const struct pwi_peer_message *b) {
  assert_int_equal(a->step, b->step);
  assert_int_equal(a->slot, b->slot);
  assert_int_equal(a->other, b->other);
  assert_int_equal(a->wants, b->wants);
  assert_int_equal(a->kind, b->kind);
  assert_true(a->target == b->target && a->attempt == b->attempt && a->group.id == b->group.id);
  assert_true(a->tag == b->tag && a->region_size == b->region_size);
  assert_string_equal(a->name, b->name);
  assert_int_equal(a->size, b->size);
  if (a->size > 0) assert_memory_equal(a->bytes, b->bytes, a->size);
}

static void test_every_step_survives_encoding(void **state) {
  (void)state;
  for (size_t i = 0; i < SAMPLES; i++) {
    struct pwi_writer writer = {0};
    struct pwi_peer_message back;
    pwi_peer_message_encode(&samples[i], &writer);
    assert_int_equal(writer.status, PAWL_OK);
    assert_int_equal(pwi_peer_message_decode(writer.data, writer.size, &back), PAWL_OK);
    assert_same(&samples[i], &back);
    pwi_writer_fini(&writer);
  }
}

static pawl_status decode_bytes(const void *bytes, size_t size) {
  struct pwi_peer_message back;
  return pwi_peer_message_decode(bytes, size, &back);
}

static void test_cut_messages_are_rejected(void **state) {
  (void)state;
  for (size_t i = 0; i < SAMPLES; i++) {
    struct pwi_writer writer = {0};
    pwi_peer_message_encode(&samples[i], &writer);
    bool is_open_ended = samples[i].step == PWI_PEER_STEP_SAY;
    size_t least = is_open_ended ? writer.size - samples[i].size : writer.size;
    for (size_t size = 0; size < least; size++) assert_int_not_equal(decode_bytes(writer.data, size), PAWL_OK);
    pwi_write_u8(&writer, 0);
    assert_int_equal(decode_bytes(writer.data, writer.size) == PAWL_OK, is_open_ended);
    pwi_writer_fini(&writer);
  }
}

static void test_values_that_no_node_sends_are_rejected(void **state) {
  (void)state;
  static const struct pwi_peer_message bad[] = {
      {.step = PWI_PEER_STEP_LINK, .target = 0, .attempt = 1},
      {.step = PWI_PEER_STEP_LINK, .target = 1, .attempt = 0},
      {.step = PWI_PEER_STEP_OPEN, .slot = 0, .group = {1}, .name = "x"},
      {.step = PWI_PEER_STEP_OPEN, .slot = 1, .group = {0}, .name = "x"},
      {.step = PWI_PEER_STEP_OPEN, .slot = 1, .group = {1}, .name = ""},
      {.step = PWI_PEER_STEP_OPEN, .slot = 1, .group = {1}, .name = "no name"},
      {.step = PWI_PEER_STEP_PAIR, .other = 0, .slot = 1},
      {.step = PWI_PEER_STEP_PAIR, .other = 1, .slot = 0},
      {.step = PWI_PEER_STEP_CLOSE, .slot = 0},
      {.step = PWI_PEER_STEP_LEFT, .slot = 0},
      {.step = PWI_PEER_STEP_REGION, .slot = 0},
      {.step = PWI_PEER_STEP_SAY, .slot = 0},
      {.step = (enum pwi_peer_step)0},
      {.step = (enum pwi_peer_step)8},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct pwi_writer writer = {0};
    pwi_peer_message_encode(&bad[i], &writer);
    assert_int_not_equal(decode_bytes(writer.data, writer.size), PAWL_OK);
    pwi_writer_fini(&writer);
  }
  assert_int_not_equal(decode_bytes("\2\2", 2), PAWL_OK); /* WANT is neither 0 nor 1 */
}

static void test_sizes_beyond_the_limits_are_rejected(void **state) {
  (void)state;
  static uint8_t zeros[PWI_CHANNEL_MESSAGE_MAX + 1];
  struct pwi_peer_message large[] = {
      {.step = PWI_PEER_STEP_OPEN, .slot = 1, .group = {1}, .name = "x", .size = PWI_CHANNEL_DESCRIPTION_MAX},
      {.step = PWI_PEER_STEP_REGION, .slot = 1, .size = PWI_NET_TOKEN_MAX},
      {.step = PWI_PEER_STEP_SAY, .slot = 1, .size = PWI_CHANNEL_MESSAGE_MAX},
  };
  for (size_t i = 0; i < 3; i++) {
    for (size_t more = 0; more < 2; more++) {
      struct pwi_writer writer = {0};
      large[i].bytes = zeros;
      large[i].size += more;
      pwi_peer_message_encode(&large[i], &writer);
      assert_int_equal(decode_bytes(writer.data, writer.size) == PAWL_OK, more == 0);
      assert_true(more > 0 || writer.size + 256 <= PWI_PEER_BODY_MAX);
      pwi_writer_fini(&writer);
    }
  }
}

/* Accepted bytes are in canonical form. */
static void test_any_bytes_are_accepted(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 5, 0);
  size_t accepted = 0;
  for (int i = 0; i < 100000; i++) {
    uint8_t bytes[64];
    size_t size = pwi_random_below(&random, sizeof bytes);
    struct pwi_peer_message message;
    for (size_t j = 0; j < size; j++) bytes[j] = (uint8_t)pwi_random_below(&random, j == 0 ? 9 : 4);
    if (pwi_peer_message_decode(bytes, size, &message)) continue;
    struct pwi_writer writer = {0};
    pwi_peer_message_encode(&message, &writer);
    assert_int_equal(writer.size, size);
    assert_memory_equal(writer.data, bytes, size);
    pwi_writer_fini(&writer);
    accepted++;
  }
  assert_true(accepted > 1000);
}

static void test_names_of_channels_are_words(void **state) {
  (void)state;
  char longest[PWI_CHANNEL_NAME_MAX + 2];
  memset(longest, 'x', sizeof longest);
  longest[PWI_CHANNEL_NAME_MAX + 1] = 0;
  assert_int_equal(pwi_channel_name_check(longest), PAWL_TOO_LARGE);
  longest[PWI_CHANNEL_NAME_MAX] = 0;
  assert_int_equal(pwi_channel_name_check(longest), PAWL_OK);
  assert_int_equal(pwi_channel_name_check("reduce/g_1"), PAWL_OK);
  assert_int_equal(pwi_channel_name_check("a//b"), PAWL_INVALID);
  assert_int_equal(pwi_channel_name_check(""), PAWL_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_step_survives_encoding),
      cmocka_unit_test(test_cut_messages_are_rejected),
      cmocka_unit_test(test_values_that_no_node_sends_are_rejected),
      cmocka_unit_test(test_sizes_beyond_the_limits_are_rejected),
      cmocka_unit_test(test_any_bytes_are_accepted),
      cmocka_unit_test(test_names_of_channels_are_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
