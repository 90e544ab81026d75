/* A process that gets no processor does not listen, and its peers cannot help it: the time in which it stood still counts neither
 * against links that are coming up nor against links that are up. Two nodes are run in turns, and between two turns both stand still
 * for longer than a link may take to come up. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/testing.h"
#include "net/key.h"
#include "net/tcp/tcp.h"

#define MILLISECOND INT64_C(1000000)
#define GREET (100 * MILLISECOND)
#define STOP (150 * MILLISECOND)
#define TURNS 40 /* a link needs about six */

struct node {
  struct pwi_net *net;
  bool is_up, is_down, has_plane;
  pawl_status why;
};

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)link;
  ((struct node *)self)->is_up = true;
  ((struct node *)self)->has_plane = (info->can & PWI_LINK_HAS_PLANE) != 0;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  struct node *node = self;
  (void)link;
  node->is_down = true;
  node->why = why;
}

static const struct pwi_actor actor = {.link_up = on_up, .link_down = on_down};

static void open_node(struct node *node, enum pwi_tcp_plane plane, const struct pwi_keyring *keys) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = plane;
  config.keys = keys;
  config.limits.greet_ns = GREET;
  config.limits.beat_ns = 10 * MILLISECOND;
  config.limits.silence_ns = GREET;
  *node = (struct node){0};
  assert_int_equal(pwi_tcp_create(&config, &actor, node, &node->net), PAWL_OK);
}

/* Does all that can be done now, and looks at its clock. */
static void take_turn(struct node *node) {
  while (pwi_net_poll(node->net, pwi_net_now(node->net)) == PAWL_OK) {
  }
}

static void stand_still(int64_t time) {
  struct timespec pause = {.tv_sec = time / (1000 * MILLISECOND), .tv_nsec = time % (1000 * MILLISECOND)};
  nanosleep(&pause, NULL);
}

static void check_comes_up(enum pwi_tcp_plane plane, const struct pwi_keyring *keys) {
  struct node from, to;
  struct pwi_link link;
  open_node(&from, plane, keys);
  open_node(&to, plane, keys);
  assert_int_equal(pwi_net_listen(to.net, "127.0.0.1:0"), PAWL_OK);
  assert_int_equal(pwi_net_connect(from.net, pwi_net_address(to.net), &link), PAWL_OK);
  int turns = 0;
  for (; turns < TURNS && !from.is_down && !(from.is_up && to.is_up); turns++) {
    take_turn(&from);
    take_turn(&to);
    stand_still(STOP);
  }
  if (from.is_down) fail_msg("down after %d turns: %s", turns, pawl_status_text(from.why));
  assert_true(from.is_up && to.is_up);
  for (int i = 0; i < 3; i++) { /* and stays up */
    stand_still(STOP);
    take_turn(&from);
    take_turn(&to);
  }
  assert_false(from.is_down || to.is_down);
  printf("up after %d turns\n", turns);
  pwi_net_destroy(from.net);
  pwi_net_destroy(to.net);
}

static void test_a_plain_link_comes_up_between_stops(void **state) {
  (void)state;
  check_comes_up(PWI_PLANE_OFF, NULL);
}

static void test_a_link_with_a_data_plane_comes_up_between_stops(void **state) {
  (void)state;
  check_comes_up(PWI_PLANE_AUTO, NULL);
}

static void test_a_tls_link_comes_up_between_stops(void **state) {
  struct pwi_keyring *keys;
  char key[PWI_KEY_TEXT_MAX];
  (void)state;
  assert_int_equal(pwi_key_new(key), PAWL_OK);
  assert_int_equal(pwi_keyring_create(&keys), PAWL_OK);
  assert_int_equal(pwi_keyring_add(keys, key), PAWL_OK);
  check_comes_up(PWI_PLANE_OFF, keys);
  check_comes_up(PWI_PLANE_AUTO, keys);
  pwi_keyring_destroy(keys);
}

#define PAIRS 8                         /* more than a link needs turns */
#define PLANE_STOP (2200 * MILLISECOND) /* longer than a connector waits for a data plane */

/* Each pair stands still at another moment of the negotiation, or after it, all of them at once. So long a stop is no delay
 * that the net would expect again: the stop itself must not count as silence. */
static void test_a_long_stop_costs_no_link_and_no_data_plane(void **state) {
  struct node from[PAIRS], to[PAIRS];
  struct pwi_link link;
  bool is_available;
  (void)state;
  pwi_tcp_plane_about(&is_available);
  for (int i = 0; i < PAIRS; i++) {
    open_node(&from[i], PWI_PLANE_AUTO, NULL);
    open_node(&to[i], PWI_PLANE_AUTO, NULL);
    assert_int_equal(pwi_net_listen(to[i].net, "127.0.0.1:0"), PAWL_OK);
    assert_int_equal(pwi_net_connect(from[i].net, pwi_net_address(to[i].net), &link), PAWL_OK);
    for (int turn = 0; turn < i; turn++) take_turn(&from[i]), take_turn(&to[i]);
  }
  stand_still(PLANE_STOP);
  for (int i = 0; i < PAIRS; i++) {
    for (int turn = 0; turn < TURNS; turn++) take_turn(&from[i]), take_turn(&to[i]);
    assert_true(from[i].is_up && to[i].is_up && !from[i].is_down && !to[i].is_down);
    assert_true(from[i].has_plane == is_available && to[i].has_plane == is_available);
    pwi_net_destroy(from[i].net);
    pwi_net_destroy(to[i].net);
  }
}

/* Time in which a node listens counts, also if it stands still now and then: a stranger that says nothing is not kept for ever. */
static void test_a_stranger_that_says_nothing_is_sent_away_all_the_same(void **state) {
  struct node to;
  struct pwi_net_counts counts = {0};
  (void)state;
  open_node(&to, PWI_PLANE_OFF, NULL);
  assert_int_equal(pwi_net_listen(to.net, "127.0.0.1:0"), PAWL_OK);
  unsigned port = 0;
  assert_int_equal(sscanf(pwi_net_address(to.net), "tcp://127.0.0.1:%u", &port), 1);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  at.sin_port = htons((uint16_t)port);
  int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(stranger, (struct sockaddr *)&at, sizeof at), 0);
  int64_t limit = pwi_net_now(to.net) + 100000 * MILLISECOND;
  for (int i = 0; counts.links_refused == 0 && pwi_net_now(to.net) < limit; i++) {
    (void)pwi_net_poll(to.net, pwi_net_now(to.net) + 5 * MILLISECOND);
    if (i % 10 == 9) stand_still(30 * MILLISECOND);
    pwi_net_counts(to.net, &counts);
  }
  assert_int_equal(counts.links_refused, 1);
  close(stranger);
  pwi_net_destroy(to.net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_plain_link_comes_up_between_stops),
      cmocka_unit_test(test_a_link_with_a_data_plane_comes_up_between_stops),
      cmocka_unit_test(test_a_tls_link_comes_up_between_stops),
      cmocka_unit_test(test_a_long_stop_costs_no_link_and_no_data_plane),
      cmocka_unit_test(test_a_stranger_that_says_nothing_is_sent_away_all_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
