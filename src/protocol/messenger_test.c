/* Bodies that a messenger keeps until the net has sent them, ended in any order. */
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "net/stub_testing.h"
#include "protocol/messenger.h"

#define BODIES 200
#define SIZE (2 * PWI_NET_COPY_MAX)

static struct stub_net stub;

static uint64_t live_blocks(void) { return pwi_memory_counts().live; }

static void send(struct pwi_messenger *messenger, pawl_status expected) {
  static const char body[SIZE] = "body";
  struct pwi_message_terms terms = {.body_max = PWI_MESSENGER_MAX, .unpacked_max = PWI_MESSENGER_MAX, .version = 1};
  struct pwi_message_head head = {.kind = PWI_SAY_NEWS};
  struct pwi_enclosure enclosure = {PWI_SECTION_PAYLOAD, body, sizeof body};
  assert_int_equal(pwi_messenger_send(messenger, (struct pwi_link){1}, &terms, &head, &enclosure, 1), expected);
}

static void test_bodies_end_in_any_order(void **state) {
  (void)state;
  struct pwi_messenger messenger;
  struct pwi_random random;
  stub_start(&stub, NULL, NULL);
  pwi_messenger_init(&messenger, &stub.net);
  pwi_random_init(&random, 1, 0);
  uint64_t blocks = live_blocks(), cookies[BODIES];
  size_t count = 0;
  for (int round = 0; round < 2000; round++) {
    if (count < BODIES && pwi_random_chance(&random, count < BODIES / 2 ? 0.7 : 0.4)) {
      send(&messenger, PAWL_OK);
      cookies[count] = stub.sent[stub.sent_count - 1].cookie;
      assert_true(cookies[count] & PWI_MESSENGER_COOKIE);
      for (size_t i = 0; i < count; i++) assert_true(cookies[i] != cookies[count]);
      count++;
      stub_clear(&stub);
    } else if (count > 0) {
      size_t which = (size_t)pwi_random_below(&random, count);
      assert_true(pwi_messenger_done(&messenger, cookies[which]));
      cookies[which] = cookies[--count];
    }
  }
  while (count > 0) assert_true(pwi_messenger_done(&messenger, cookies[--count]));
  assert_false(pwi_messenger_done(&messenger, 5)); /* of somebody else */
  send(&messenger, PAWL_OK);                       /* its body is freed with the messenger */
  stub_clear(&stub);
  pwi_messenger_fini(&messenger);
  assert_int_equal(live_blocks(), blocks);
}

static void test_a_body_that_the_net_refuses_is_freed(void **state) {
  (void)state;
  struct pwi_messenger messenger;
  stub_start(&stub, NULL, NULL);
  pwi_messenger_init(&messenger, &stub.net);
  uint64_t blocks = live_blocks();
  stub.send_status = PAWL_QUEUE_FULL;
  for (int i = 0; i < 3; i++) send(&messenger, PAWL_QUEUE_FULL);
  assert_int_equal(stub.closed_count, 3);
  stub_clear(&stub);
  pwi_messenger_fini(&messenger);
  assert_int_equal(live_blocks(), blocks);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bodies_end_in_any_order),
      cmocka_unit_test(test_a_body_that_the_net_refuses_is_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
