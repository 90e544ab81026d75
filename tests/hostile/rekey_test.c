/* A peer with a valid key that requests TLS key updates again and again and never reads the responses.
 * OpenSSL responds to each at once, and the node buffers what the socket does not accept. This memory must be
 * bounded. */
#include <sys/socket.h>

#include "base/testing.h"
#include "../faults/attack.h"

#define REQUESTS 400000 /* answers of 22 bytes and more: twice what sockets hold */
#define ALLOWED ((size_t)4 << 20)

static void test_requests_for_new_keys_cost_little(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  int least = 4096;
  scene_begin(&scene, true, NULL);
  scene_attack(&scene, &raw);
  setsockopt(raw.socket, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  assert_true(raw_come_up(&raw));
  assert_true(node_wait_ups(scene.host, 2));
  size_t before = kit_resident(), most = before;
  unsigned asked = 0;
  for (bool is_up = true; is_up && asked < REQUESTS; asked++) {
    is_up = SSL_key_update(raw.ssl, SSL_KEY_UPDATE_REQUESTED) == 1;
    /* A heartbeat, which carries the request along; it also shows that we are there. */
    is_up = is_up && raw_frame(&raw, PWI_FRAME_PING, NULL, 0, NULL, 0);
    if (asked % 1000 == 0 && kit_resident() > most) most = kit_resident();
  }
  printf("%u requests, %zu KB more\n", asked, (most - before) >> 10);
  assert_true(asked < REQUESTS); /* it was cut off, */
  assert_true(most - before <= ALLOWED);
  raw_close(&raw);
  assert_true(node_wait_downs(scene.host, 1));
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_requests_for_new_keys_cost_little),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
