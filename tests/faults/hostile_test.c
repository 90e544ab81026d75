/* Peers that misbehave before and after their link is up: garbage, false lengths, unexpected frames, silence.
 *
 * Each attack runs against a plain listener and again inside TLS with the right key, because the owner of a
 * key may be faulty too. An honest peer exchanges messages with the same listener all the time and must not
 * be disturbed.
 */
#include <sys/socket.h>
#include <sys/time.h>

#include "base/testing.h"
#include "attack.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"

#define SEED 2016
#define MESSAGE_MAX ((size_t)1 << 20)
#define SHARED_SIZE 4096

/* An attack; it is made on both kinds of listener. */
typedef void attack(struct scene *scene);

static void small_limits(struct node_plan *plan) {
  plan->config.limits.message_max = MESSAGE_MAX;
  plan->config.limits.greet_ns = INT64_C(700000000);
  plan->config.limits.queue_count = 256;
  plan->share = SHARED_SIZE;
}

static void run(bool is_secret, attack *do_wrong) {
  struct scene scene;
  scene_begin(&scene, is_secret, small_limits);
  do_wrong(&scene);
  scene_end(&scene);
}

#define BOTH(sentence, attack)                                                                                         \
  static void test_##sentence(void **state) {                                                                          \
    (void)state;                                                                                                       \
    run(false, attack);                                                                                                \
    run(true, attack);                                                                                                 \
  }

/* Before it is up. */

static void send_garbage(struct scene *scene) {
  struct raw raw;
  struct pwi_random random;
  uint8_t bytes[1500];
  pwi_random_init(&random, SEED, 1);
  for (int round = 0; round < 4; round++) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)pwi_random_u32(&random);
    bytes[0] = round % 2 ? 'p' : 0xff; /* the first byte of an opening, and another */
    scene_attack(scene, &raw);
    raw_send(&raw, bytes, sizeof bytes);
    scene_check_refused(scene, &raw, "not the opening of a link");
  }
}
BOTH(garbage_is_refused, send_garbage)

static void send_wrong_magic(struct scene *scene) {
  struct raw raw;
  uint8_t opening[PWI_OPENING_SIZE] = "pawlinX\n";
  scene_attack(scene, &raw);
  raw_send(&raw, opening, sizeof opening);
  scene_check_refused(scene, &raw, "not the opening of a link");
}
BOTH(a_wrong_magic_is_refused, send_wrong_magic)

static void send_wrong_version(struct scene *scene) {
  struct raw raw;
  scene_attack(scene, &raw);
  raw_open(&raw, PWI_FRAME_VERSION + 1, PWI_FRAME_VERSION + 9);
  scene_check_refused(scene, &raw, "other version of the framing");
}
BOTH(a_version_of_the_future_is_refused, send_wrong_version)

static void send_versions_upside_down(struct scene *scene) {
  struct raw raw;
  scene_attack(scene, &raw);
  raw_open(&raw, 9, 1);
  scene_check_refused(scene, &raw, "not the opening of a link");
}
BOTH(versions_upside_down_are_refused, send_versions_upside_down)

/* A valid connection is recorded and replayed, byte for byte. */
static void replay_hello(struct scene *scene) {
  struct raw first, second;
  uint8_t recorded[PWI_CHALLENGE_SIZE];
  scene_attack(scene, &first);
  assert_true(raw_come_up(&first));
  memcpy(recorded, first.challenge, sizeof recorded);
  scene_attack(scene, &second);
  assert_true(raw_open(&second, PWI_FRAME_VERSION, PWI_FRAME_VERSION));
  raw_frame(&second, PWI_FRAME_HELLO, recorded, 3, "raw", 3);
  scene_check_refused(scene, &second, "the hello repeats another challenge");
  raw_close(&first);
}
BOTH(a_recorded_hello_opens_no_door, replay_hello)

static void send_long_hello(struct scene *scene) {
  struct raw raw;
  uint8_t body[PWI_NET_HELLO_MAX + 1] = {0};
  scene_attack(scene, &raw);
  assert_true(raw_open(&raw, PWI_FRAME_VERSION, PWI_FRAME_VERSION));
  raw_frame(&raw, PWI_FRAME_HELLO, raw.challenge, sizeof body, body, sizeof body);
  scene_check_refused(scene, &raw, "frame too large");
}
BOTH(a_hello_that_is_too_long_is_refused, send_long_hello)

static void send_out_of_turn(struct scene *scene) {
  static const enum pwi_frame_kind kinds[] = {PWI_FRAME_MESSAGE, PWI_FRAME_PUT,    PWI_FRAME_GET,
                                              PWI_FRAME_PLANE,   PWI_FRAME_FENCED, PWI_FRAME_PING};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct raw raw;
    scene_attack(scene, &raw);
    assert_true(raw_open(&raw, PWI_FRAME_VERSION, PWI_FRAME_VERSION));
    raw_frame(&raw, kinds[i], NULL, 0, NULL, 0);
    scene_check_refused(scene, &raw, "unexpected kind of frame");
  }
  assert_int_equal(node_refused(scene->host), sizeof kinds / sizeof *kinds);
}
BOTH(frames_before_the_hello_are_refused, send_out_of_turn)

static void trickle_an_opening(struct scene *scene) {
  struct raw raw;
  const char opening[] = "pawlink\n";
  scene_attack(scene, &raw);
  for (size_t i = 0; i < 5; i++) {
    raw_send(&raw, opening + i, 1);
    kit_sleep_ms(100);
  }
  scene_check_refused(scene, &raw, "the link did not come up or close in time"); /* the limit is set to 700 ms here */
}
BOTH(a_trickled_opening_is_given_up, trickle_an_opening)

/* After it is up. */

static void come_up(struct scene *scene, struct raw *raw) {
  scene_attack(scene, raw);
  assert_true(raw_come_up(raw));
}

static void lie_about_lengths(struct scene *scene) {
  static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 79, UINT64_C(1) << 63, MESSAGE_MAX + 1};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    struct raw raw;
    uint8_t head[PWI_NET_HEAD_SIZE] = {0};
    come_up(scene, &raw);
    kit_log_begin();
    raw_frame(&raw, i % 2 ? PWI_FRAME_PUT : PWI_FRAME_MESSAGE, head, lengths[i], "x", 1);
    scene_check_refused(scene, &raw, "frame too large");
  }
}
BOTH(lengths_beyond_the_limit_are_refused_before_anything_is_allocated, lie_about_lengths)

static void end_in_mid_frame(struct scene *scene) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {0}, body[3000] = {0};
  static const size_t kept[] = {0, 1, 64, 2999};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    struct raw raw;
    unsigned downs = node_downs(scene->host);
    come_up(scene, &raw);
    raw_frame(&raw, PWI_FRAME_MESSAGE, head, sizeof body, body, kept[i]);
    raw_close(&raw);
    assert_true(node_wait_downs(scene->host, downs + 1));
    assert_int_equal(node_last_why(scene->host), PAWL_LINK_RESET);
  }
}
BOTH(a_frame_that_ends_early_takes_its_link_down, end_in_mid_frame)

static void end_in_mid_head(struct scene *scene) {
  uint8_t prefix[PWI_FRAME_PREFIX];
  struct raw raw;
  come_up(scene, &raw);
  pwi_frame_write(prefix, PWI_FRAME_MESSAGE, 100);
  raw_send(&raw, prefix, 7);
  raw_close(&raw);
  assert_true(node_wait_downs(scene->host, 1));
  assert_int_equal(node_last_why(scene->host), PAWL_LINK_RESET);
}
BOTH(half_a_prefix_takes_its_link_down, end_in_mid_head)

static void hold_wrongly(struct scene *scene) {
  struct raw raw;
  uint8_t fields[16] = {7};
  come_up(scene, &raw);
  raw_frame(&raw, PWI_FRAME_HOLD, fields, 0, NULL, 0);
  scene_check_refused(scene, &raw, "invalid HOLD frame");
}
BOTH(a_hold_of_an_unknown_kind_is_refused, hold_wrongly)

/* Version 1 of the framing has no holds. */
static void hold_too_early(struct scene *scene) {
  struct raw raw;
  scene_attack(scene, &raw);
  assert_true(raw_come_up_as(&raw, PWI_FRAME_HOLDS - 1));
  uint8_t fields[16] = {1};
  raw_frame(&raw, PWI_FRAME_HOLD, fields, 0, NULL, 0);
  scene_check_refused(scene, &raw, "unexpected kind of frame");
}
BOTH(a_hold_on_a_link_of_an_older_version_is_refused, hold_too_early)

static void lose_step(struct scene *scene) {
  struct raw raw;
  uint8_t head[PWI_FRAME_PREFIX + 64] = {0};
  come_up(scene, &raw);
  pwi_frame_write(head, PWI_FRAME_MESSAGE, 0);
  head[9] ^= 1; /* the length, which the check in the prefix covers */
  raw_send(&raw, head, sizeof head);
  scene_check_refused(scene, &raw, "not a frame");
}
BOTH(a_damaged_prefix_is_refused, lose_step)

static void say_hello_again(struct scene *scene) {
  struct raw raw;
  come_up(scene, &raw);
  raw_frame(&raw, PWI_FRAME_HELLO, raw.challenge, 3, "raw", 3);
  scene_check_refused(scene, &raw, "unexpected kind of frame");
}
BOTH(a_second_hello_is_refused, say_hello_again)

static void offer_again(struct scene *scene) {
  struct raw raw;
  uint8_t offer[48] = {0};
  come_up(scene, &raw);
  pwi_put_u32(offer, 1);
  raw_frame(&raw, PWI_FRAME_PLANE, offer, 0, NULL, 0);
  scene_check_refused(scene, &raw, "unexpected PLANE frame");
}
BOTH(a_second_offer_of_a_plane_is_refused, offer_again)

/* The host gives every link its own region and sends its number; no peer may get beyond it. */
static void come_up_with_region(struct scene *scene, struct raw *raw, uint64_t *region_out) {
  struct pwi_frame frame;
  uint8_t fields[PWI_FRAME_FIELDS_MAX], token[PWI_NET_TOKEN_MAX];
  come_up(scene, raw);
  assert_true(raw_next(raw, &frame, fields, token, sizeof token));
  assert_int_equal(frame.kind, PWI_FRAME_MESSAGE);
  assert_int_equal(pwi_get_u64(token + 8), SHARED_SIZE);
  *region_out = pwi_get_u64(token);
}

static void put_and_get(struct scene *scene, enum pwi_frame_kind kind, const char *detail) {
  enum whose { OURS, NEIGHBOURS, NOBODYS };
  static const struct {
    enum whose whose;
    uint64_t offset, size;
  } places[] = {
      {NOBODYS, 0, 64},
      {NEIGHBOURS, 0, 64},
      {OURS, SHARED_SIZE - 63, 64},           /* across the end */
      {OURS, UINT64_MAX - 63, 64},            /* the sum of both is 0 */
      {OURS, UINT64_C(1) << 63, SHARED_SIZE}, /* far away */
  };
  struct raw neighbour;
  uint64_t regions[3] = {0, 0, UINT64_C(1) << 40};
  come_up_with_region(scene, &neighbour, &regions[NEIGHBOURS]);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    struct raw raw;
    uint8_t fields[32] = {0}, body[SHARED_SIZE] = {0};
    raw_frame(&neighbour, PWI_FRAME_PING, NULL, 0, NULL, 0);
    come_up_with_region(scene, &raw, &regions[OURS]);
    kit_log_begin();
    pwi_put_u64(fields, regions[places[i].whose]);
    pwi_put_u64(fields + 8, places[i].offset);
    if (kind == PWI_FRAME_GET) pwi_put_u64(fields + 16, places[i].size);
    size_t size = kind == PWI_FRAME_PUT ? (size_t)places[i].size : 0;
    raw_frame(&raw, kind, fields, size, body, size);
    scene_check_refused(scene, &raw, detail);
  }
  raw_close(&neighbour);
}

static void put_outside(struct scene *scene) { put_and_get(scene, PWI_FRAME_PUT, "put outside of the shared regions"); }
BOTH(a_put_outside_what_was_shared_is_refused, put_outside)

static void get_outside(struct scene *scene) { put_and_get(scene, PWI_FRAME_GET, "get outside of the shared regions"); }
BOTH(a_get_outside_what_was_shared_is_refused, get_outside)

/* The peer sends more and more requests and never reads an answer. */
static void ask_without_end(struct scene *scene) {
  enum { ASKED = 1000000 };
  struct raw raw;
  uint64_t region;
  uint8_t question[PWI_FRAME_PREFIX + 32] = {0};
  struct timeval soon = {0, 300000};
  unsigned downs = node_downs(scene->host);
  come_up_with_region(scene, &raw, &region);
  size_t before = kit_resident();
  pwi_frame_write(question, PWI_FRAME_GET, 0);
  pwi_put_u64(question + PWI_FRAME_PREFIX, region);
  pwi_put_u64(question + PWI_FRAME_PREFIX + 16, SHARED_SIZE);
  setsockopt(raw.socket, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  size_t asked = 0;
  while (asked < ASKED && raw_send(&raw, question, sizeof question)) asked++;
  assert_true(asked < ASKED); /* at some point the host stops reading */
  size_t grown = kit_resident() > before ? kit_resident() - before : 0;
  printf("%zu questions, no answer read: %zu KB more\n", asked, grown >> 10);
  assert_true(grown < (size_t)16 << 20);
  raw_close(&raw); /* it may have been found silent already */
  assert_true(node_wait_downs(scene->host, downs + 1));
}
BOTH(a_peer_that_never_reads_its_answers_costs_little, ask_without_end)

static void answer_unasked(struct scene *scene) {
  struct raw raw;
  uint8_t fields[16] = {1}, body[64] = {0};
  come_up(scene, &raw);
  raw_frame(&raw, PWI_FRAME_GOT, fields, sizeof body, body, sizeof body);
  scene_check_refused(scene, &raw, "answer to a get that was not sent");
  come_up(scene, &raw);
  raw_frame(&raw, PWI_FRAME_FENCED, fields, 0, NULL, 0);
  scene_check_refused(scene, &raw, "answer to a fence that was not sent");
}
BOTH(answers_that_nobody_asked_for_are_refused, answer_unasked)

/* Bytes arrive all the time, but never a frame: this counts as silence. */
static void trickle_a_frame(struct scene *scene) {
  struct raw raw;
  unsigned downs = node_downs(scene->host);
  uint8_t bytes[500] = {0};
  size_t sent = 0;
  come_up(scene, &raw);
  pwi_frame_write(bytes, PWI_FRAME_MESSAGE, sizeof bytes);
  int64_t began = kit_now();
  while (sent < sizeof bytes && node_downs(scene->host) == downs) {
    raw_send(&raw, bytes + sent++, 1);
    kit_sleep_ms(20);
  }
  assert_true(sent < sizeof bytes); /* it did not wait for the end */
  assert_int_equal(node_last_why(scene->host), PAWL_LINK_SILENT);
  printf("a link that trickles is down after %.0f ms\n", (double)(kit_now() - began) / 1e6);
  scene_check_refused(scene, &raw, "LINK_SILENT");
}
BOTH(a_link_that_trickles_is_silent, trickle_a_frame)

static void come_up_and_say_nothing(struct scene *scene) {
  struct raw raw;
  come_up(scene, &raw);
  scene_check_refused(scene, &raw, "LINK_SILENT");
}
BOTH(a_link_without_heartbeats_is_silent, come_up_and_say_nothing)

/* A thousand bad connections: a few log lines, and the number of omitted ones. */
static void come_a_thousand_times(struct scene *scene) {
  struct pwi_memory_counts before = pwi_memory_counts();
  uint64_t most = 0;
  int64_t began = kit_now();
  for (int i = 0; i < 1000; i++) {
    struct raw raw;
    assert_true(raw_connect(&raw, node_address(scene->host), 0));
    raw_send(&raw, "GET / HTTP/1.1\r\n\r\n", 18);
    struct linger reset = {1, 0}; /* no thousand connections in TIME_WAIT */
    setsockopt(raw.socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    assert_true(raw_is_closed(&raw));
    raw_close(&raw);
    uint64_t live = pwi_memory_counts().live;
    if (live > most) most = live;
  }
  assert_true(node_wait_refused(scene->host, 1000));
  kit_sleep_ms(1100); /* the limit counts seconds: the next line says what was left out */
  struct raw last;
  assert_true(raw_connect(&last, node_address(scene->host), 0));
  raw_send(&last, "x", 1);
  assert_true(raw_is_closed(&last));
  raw_close(&last);
  assert_true(node_wait_refused(scene->host, 1001));
  size_t lines = kit_log_count("link.refused");
  uint64_t left_out = kit_log_sum("left_out=");
  printf("1001 bad connections: %zu lines, %llu left out, at most %llu blocks more than before\n", lines,
         (unsigned long long)left_out, (unsigned long long)(most - before.live));
  assert_int_equal(lines + left_out, 1001);
  /* At most ten lines a second: on a busy machine a thousand connections take many. */
  assert_true(lines <= (size_t)((kit_now() - began) / INT64_C(1000000000) + 2) * 10);
  assert_true(most < before.live + 500);
}
BOTH(a_thousand_bad_connections_give_few_lines, come_a_thousand_times)

int main(void) {
  printf("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_garbage_is_refused),
      cmocka_unit_test(test_a_wrong_magic_is_refused),
      cmocka_unit_test(test_a_version_of_the_future_is_refused),
      cmocka_unit_test(test_versions_upside_down_are_refused),
      cmocka_unit_test(test_a_recorded_hello_opens_no_door),
      cmocka_unit_test(test_a_hello_that_is_too_long_is_refused),
      cmocka_unit_test(test_frames_before_the_hello_are_refused),
      cmocka_unit_test(test_a_trickled_opening_is_given_up),
      cmocka_unit_test(test_lengths_beyond_the_limit_are_refused_before_anything_is_allocated),
      cmocka_unit_test(test_a_frame_that_ends_early_takes_its_link_down),
      cmocka_unit_test(test_half_a_prefix_takes_its_link_down),
      cmocka_unit_test(test_a_hold_of_an_unknown_kind_is_refused),
      cmocka_unit_test(test_a_hold_on_a_link_of_an_older_version_is_refused),
      cmocka_unit_test(test_a_damaged_prefix_is_refused),
      cmocka_unit_test(test_a_second_hello_is_refused),
      cmocka_unit_test(test_a_second_offer_of_a_plane_is_refused),
      cmocka_unit_test(test_a_put_outside_what_was_shared_is_refused),
      cmocka_unit_test(test_a_get_outside_what_was_shared_is_refused),
      cmocka_unit_test(test_a_peer_that_never_reads_its_answers_costs_little),
      cmocka_unit_test(test_answers_that_nobody_asked_for_are_refused),
      cmocka_unit_test(test_a_link_that_trickles_is_silent),
      cmocka_unit_test(test_a_link_without_heartbeats_is_silent),
      cmocka_unit_test(test_a_thousand_bad_connections_give_few_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
