/* A poll in which something happened to the actor returns, and does not go on to sleep: whoever polls until his own work
 * is done would else wait for the next heartbeat. Seen with a body of several turns through shared memory: its last turn
 * ran the actor and told nobody. */
#include "base/testing.h"
#include "net/tcp/tcp.h"

#define MILLISECOND INT64_C(1000000)
#define PATIENCE (100000 * MILLISECOND)
#define BODY ((size_t)18 << 20) /* several turns of the plane */

struct node {
  struct pwi_net *net;
  struct pwi_link link;
  bool is_up, has_plane;
  char *body;
  enum pwi_receive_how how;
  uint64_t ends; /* messages that have ended */
  uint64_t dones, downs;
};

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  node->is_up = true;
  node->link = link;
  node->has_plane = (info->can & PWI_LINK_IN_PLACE) != 0;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  struct node *node = self;
  (void)link, (void)why;
  node->downs++;
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct node *node = self;
  (void)link, (void)cookie, (void)status;
  node->dones++;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct node *node = self;
  (void)link;
  assert_int_equal(message->body_size, BODY);
  return (struct pwi_receive){.how = node->how, .into = node->body};
}

static void on_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct node *node = self;
  (void)link, (void)context;
  assert_int_equal(status, PAWL_OK);
  node->ends++;
}

static const struct pwi_actor actor = {
    .link_up = on_up, .link_down = on_down, .message = on_message, .message_end = on_end, .done = on_done};

/* Heartbeats would return from a poll as well, and hide what is looked for: there are none. */
static void open_node(struct node *node, enum pwi_tcp_plane plane) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = plane;
  config.limits.beat_ns = 100 * PATIENCE;
  config.limits.silence_ns = 1000 * PATIENCE;
  *node = (struct node){0};
  assert_int_equal(pwi_tcp_create(&config, &actor, node, &node->net), PAWL_OK);
}

static pawl_status poll_briefly(struct node *node) {
  return pwi_net_poll(node->net, pwi_net_now(node->net) + 20 * MILLISECOND);
}

static void check_polls(enum pwi_tcp_plane plane, enum pwi_receive_how how) {
  struct node from, to;
  struct pwi_region *region;
  open_node(&from, plane);
  open_node(&to, plane);
  to.how = how;
  to.body = test_malloc(BODY);
  assert_int_equal(pwi_net_listen(to.net, "127.0.0.1:0"), PAWL_OK);
  assert_int_equal(pwi_net_connect(from.net, pwi_net_address(to.net), &from.link), PAWL_OK);
  int64_t limit = pwi_net_now(from.net) + PATIENCE;
  while (!(from.is_up && to.is_up) && pwi_net_now(from.net) < limit) poll_briefly(&from), poll_briefly(&to);
  assert_true(from.is_up && to.is_up);
  assert_int_equal(pwi_net_region_open(from.net, BODY, &region), PAWL_OK);
  uint8_t head[PWI_NET_HEAD_SIZE] = {1};
  struct iovec body = {pwi_net_region_memory(region), BODY};
  for (uint64_t round = 1; round <= 5; round++) {
    struct pwi_send send = {.lane = PWI_LANE_DATA, .head = head, .body = &body, .body_count = 1};
    assert_int_equal(pwi_net_send(from.net, from.link, &send), PAWL_OK);
    while (to.ends < round && pwi_net_now(from.net) < limit) {
      pwi_net_poll(from.net, 0);
      pawl_status status = poll_briefly(&to);
      if (to.ends == round) assert_int_equal(status, PAWL_OK);
    }
    assert_int_equal(to.ends, round);
  }
  pwi_net_destroy(to.net);
  pwi_net_destroy(from.net);
  test_free(to.body);
}

static void test_a_poll_in_which_a_message_ended_returns(void **state) {
  (void)state;
  static const enum pwi_receive_how hows[] = {PWI_RECEIVE_PIECES, PWI_RECEIVE_INTO, PWI_RECEIVE_WHOLE,
                                              PWI_RECEIVE_DROP};
  bool has_plane;
  pwi_tcp_plane_about(&has_plane);
  for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
    check_polls(PWI_PLANE_OFF, hows[i]);
    if (has_plane) check_polls(PWI_PLANE_AUTO, hows[i]);
  }
}

/* --- polls that must not sleep -------------------------------------------------------------------------- */

static void join(struct node *from, struct node *to) {
  open_node(from, PWI_PLANE_OFF);
  open_node(to, PWI_PLANE_OFF);
  assert_int_equal(pwi_net_listen(to->net, "127.0.0.1:0"), PAWL_OK);
  assert_int_equal(pwi_net_connect(from->net, pwi_net_address(to->net), &from->link), PAWL_OK);
  while (!(from->is_up && to->is_up)) poll_briefly(from), poll_briefly(to);
  while (pwi_net_poll(from->net, 0) == PAWL_OK || pwi_net_poll(to->net, 0) == PAWL_OK) {
  }
}

#define TIRED 32 /* after so many waits in vain the next 31 do not spin */

/* A net that spins before it sleeps finds what it has forgotten. */
static void tire(struct node *node) {
  struct pwi_timer timer;
  for (int i = 0; i < TIRED; i++) {
    assert_int_equal(pwi_net_timer_set(node->net, pwi_net_now(node->net) + MILLISECOND, 0, &timer), PAWL_OK);
    assert_int_equal(pwi_net_poll(node->net, PWI_NET_NEVER), PAWL_OK);
  }
}

/* Nothing comes from outside: a poll that sleeps ends at its deadline. */
static void poll_awake(struct node *node) {
  int64_t deadline = pwi_net_now(node->net) + 20000 * MILLISECOND;
  assert_int_equal(pwi_net_poll(node->net, deadline), PAWL_OK);
  assert_true(pwi_net_now(node->net) < deadline);
}

static void test_a_poll_reports_an_operation_that_ended_before_it(void **state) {
  struct node from, to;
  uint8_t head[PWI_NET_HEAD_SIZE] = {1};
  struct pwi_send send = {.head = head, .cookie = 1};
  (void)state;
  join(&from, &to);
  tire(&from);
  assert_int_equal(pwi_net_send(from.net, from.link, &send), PAWL_OK);
  poll_awake(&from);
  assert_int_equal(from.dones, 1);
  pwi_net_destroy(to.net);
  pwi_net_destroy(from.net);
}

static void test_a_poll_reports_a_link_that_failed_before_it(void **state) {
  struct node from, to;
  struct pwi_link link;
  (void)state;
  join(&from, &to);
  tire(&from);
  assert_int_equal(pwi_net_connect(from.net, "unix:/nobody/listens/here", &link), PAWL_OK);
  poll_awake(&from);
  assert_int_equal(from.downs, 1);
  pwi_net_destroy(to.net);
  pwi_net_destroy(from.net);
}

#define SHARE ((size_t)5 << 20) /* of a body: a turn reads 1 MB, and a socket may hold more */

static void test_a_poll_reads_on_where_the_last_one_has_stopped(void **state) {
  struct node from, to;
  uint8_t head[PWI_NET_HEAD_SIZE] = {1};
  char *bytes = test_calloc(1, BODY);
  struct iovec body = {bytes, BODY};
  struct pwi_send send = {.head = head, .body = &body, .body_count = 1};
  uint64_t polls = 0;
  (void)state;
  join(&from, &to);
  tire(&to);
  to.how = PWI_RECEIVE_DROP;
  assert_int_equal(pwi_net_send(from.net, from.link, &send), PAWL_OK);
  for (; to.ends == 0; polls++) {
    while (pwi_net_poll(from.net, 0) == PAWL_OK) {
    }
    poll_awake(&to);
  }
  assert_true(polls > BODY / SHARE);
  pwi_net_destroy(to.net);
  pwi_net_destroy(from.net);
  test_free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_poll_in_which_a_message_ended_returns),
      cmocka_unit_test(test_a_poll_reports_an_operation_that_ended_before_it),
      cmocka_unit_test(test_a_poll_reports_a_link_that_failed_before_it),
      cmocka_unit_test(test_a_poll_reads_on_where_the_last_one_has_stopped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
