/* When a peer that says nothing is taken for lost. On a busy machine everybody runs late, so the net waits longer for its peers if it
 * was late itself, or if they were (net/tcp/delay.h); and what this node does not read says nothing about the peer that has sent it.
 *
 * Nodes are run in turns, and stand still in between. On a busy machine they stand still longer, which makes the net more patient and
 * no test fail. */
#include <time.h>

#include "base/testing.h"
#include "net/tcp/tcp.h"

#define MILLISECOND INT64_C(1000000)
#define MB ((size_t)1 << 20)
#define BEAT (5 * MILLISECOND)
#define SILENCE (150 * MILLISECOND)
#define LATE (120 * MILLISECOND)
#define MOMENT (4 * MILLISECOND)       /* far less than silence */
#define ALLOWED (100 * MILLISECOND)    /* the least that a net allows that was so late, when it is spent */
#define PATIENCE (60000 * MILLISECOND) /* of the tests */

struct node {
  struct pwi_net *net;
  struct pwi_link link; /* the last one that came up */
  unsigned ups, downs;
  bool has_plane;
  pawl_status why;
  unsigned ended; /* messages and operations */
  struct pwi_region *region;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t token_size;
  char *into; /* for bodies; NULL: they are dropped */
};

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  node->link = link;
  node->has_plane = (info->can & PWI_LINK_HAS_PLANE) != 0;
  node->ups++;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  struct node *node = self;
  (void)link;
  node->downs++;
  node->why = why;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct node *node = self;
  (void)link;
  if (!node->into) return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = node->into + message->head[0] * message->body_size};
}

static void on_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct node *node = self;
  (void)link, (void)context;
  node->ended += status == PAWL_OK;
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  on_end(self, link, NULL, status);
  (void)cookie;
}

static const struct pwi_actor actor = {
    .link_up = on_up, .link_down = on_down, .message = on_message, .message_end = on_end, .done = on_done};

static void open_node_with(struct node *node, enum pwi_tcp_plane plane, size_t inbound, size_t queue) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = plane;
  config.limits.beat_ns = BEAT;
  config.limits.silence_ns = SILENCE;
  config.limits.inbound_bytes = inbound;
  config.limits.queue_count = queue;
  *node = (struct node){0};
  assert_int_equal(pwi_tcp_create(&config, &actor, node, &node->net), PAWL_OK);
}

static void open_node(struct node *node, size_t inbound, size_t queue) {
  open_node_with(node, PWI_PLANE_OFF, inbound, queue);
}

static void stand_still(int64_t time) {
  struct timespec pause = {.tv_nsec = time};
  nanosleep(&pause, NULL);
}

static void take_turn(struct node *node) {
  while (pwi_net_poll(node->net, 0) == PAWL_OK) {
  }
}

static void join(struct node *from, struct node *to) {
  unsigned ups = from->ups + 1, theirs = to->ups + 1;
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(from->net, pwi_net_address(to->net), &link), PAWL_OK);
  while (from->ups < ups || to->ups < theirs) take_turn(from), take_turn(to);
}

static void open_pair(struct node *from, struct node *to) {
  open_node(from, SIZE_MAX, 4096);
  open_node(to, SIZE_MAX, 4096);
  assert_int_equal(pwi_net_listen(to->net, "127.0.0.1:0"), PAWL_OK);
  join(from, to);
}

static void close_nodes(struct node *from, struct node *to) {
  pwi_net_destroy(from->net);
  pwi_net_destroy(to->net);
}

/* The time from `since`, before which `node` has heard nothing, until it takes its peer for lost. */
static int64_t time_to_suspect(struct node *node, int64_t since) {
  while (node->downs == 0) (void)pwi_net_poll(node->net, pwi_net_now(node->net) + MILLISECOND);
  assert_int_equal(node->why, PAWL_LINK_SILENT);
  return pwi_net_now(node->net) - since;
}

static void test_a_node_that_was_late_itself_waits_longer(void **state) {
  struct node from, to;
  int64_t since = 0;
  (void)state;
  open_pair(&from, &to);
  for (int tries = 0; pwi_net_allowance(from.net) < 2 * ALLOWED;
       tries++) { /* a node that was stopped longer was not late */
    assert_true(tries < 100);
    stand_still(LATE);
    take_turn(&from); /* hears nothing: what `to` has sent was read before, and it stood still, too */
    since = pwi_net_now(from.net);
    take_turn(&to);
    take_turn(&from);
  }
  assert_int_equal(from.downs + to.downs, 0);
  assert_true(time_to_suspect(&from, since) >= SILENCE + ALLOWED);
  close_nodes(&from, &to);
}

/* Runs `from` while `to` stands still, and then `to`. False: `from` has taken it for lost, because the machine is busy. */
static bool be_late(struct node *from, struct node *to, int64_t *since_out) {
  int64_t until = pwi_net_now(from->net) + LATE;
  while (pwi_net_now(from->net) < until) (void)pwi_net_poll(from->net, until);
  *since_out = pwi_net_now(from->net);
  take_turn(to);
  take_turn(from);
  return from->downs + to->downs == 0;
}

static void test_a_peer_that_was_late_gets_more_time(void **state) {
  struct node from, to;
  int64_t since = 0;
  (void)state;
  open_pair(&from, &to);
  for (int tries = 0; pwi_net_allowance(from.net) < 2 * ALLOWED; tries++) {
    assert_true(tries < 100);
    if (be_late(&from, &to, &since)) continue;
    close_nodes(&from, &to);
    open_pair(&from, &to);
  }
  assert_true(time_to_suspect(&from, since) >= SILENCE + ALLOWED);
  close_nodes(&from, &to);
}

/* Nobody looks at a net that has nothing to do. */
static void test_a_node_without_links_is_never_late(void **state) {
  struct node node;
  (void)state;
  open_node(&node, SIZE_MAX, 4096);
  for (int i = 0; i < 3; i++) {
    take_turn(&node);
    stand_still(LATE);
  }
  take_turn(&node);
  assert_int_equal(pwi_net_allowance(node.net), 0);
  pwi_net_destroy(node.net);
}

/* An actor that is blocked for long sends heartbeats all the same (pwi_net_beat). */
static void test_heartbeats_of_a_node_that_does_not_poll_are_heard(void **state) {
  struct node from, to;
  (void)state;
  open_pair(&from, &to);
  for (int64_t until = pwi_net_now(from.net) + 3 * SILENCE; pwi_net_now(from.net) < until;) {
    pwi_net_beat(to.net);
    (void)pwi_net_poll(from.net, pwi_net_now(from.net) + MILLISECOND);
    assert_int_equal(from.downs, 0);
  }
  take_turn(&to); /* it has not listened meanwhile, so nobody was silent */
  assert_int_equal(to.downs, 0);
  close_nodes(&from, &to);
}

#define PAIRS 6 /* more than a link needs turns until it tries a data plane */

static void poll_for(struct node *node, int64_t time) {
  for (int64_t until = pwi_net_now(node->net) + time; pwi_net_now(node->net) < until;)
    (void)pwi_net_poll(node->net, pwi_net_now(node->net) + MILLISECOND);
}

/* One of the pairs is just trying a data plane when the acceptors fall still. Its link is up without one after a while, and a
 * link that has just come up is not silent. */
static void test_a_link_that_waited_for_a_data_plane_is_not_silent(void **state) {
  struct node from[PAIRS], to[PAIRS];
  struct pwi_link link;
  bool is_available;
  int late = 0;
  (void)state;
  pwi_tcp_plane_about(&is_available);
  if (!is_available) skip();
  for (int i = 0; i < PAIRS; i++) {
    open_node_with(&from[i], PWI_PLANE_AUTO, SIZE_MAX, 4096);
    open_node_with(&to[i], PWI_PLANE_AUTO, SIZE_MAX, 4096);
    assert_int_equal(pwi_net_listen(to[i].net, "127.0.0.1:0"), PAWL_OK);
    assert_int_equal(pwi_net_connect(from[i].net, pwi_net_address(to[i].net), &link), PAWL_OK);
    for (int turn = 0; turn < i; turn++) take_turn(&from[i]), take_turn(&to[i]);
  }
  for (int64_t limit = pwi_net_now(from[0].net) + PATIENCE; late == 0 && pwi_net_now(from[0].net) < limit;) {
    for (int i = 0; i < PAIRS; i++) {
      unsigned ups = from[i].ups;
      (void)pwi_net_poll(from[i].net, pwi_net_now(from[i].net) + MILLISECOND);
      if (from[i].ups == ups || from[i].has_plane) continue;
      poll_for(&from[i], SILENCE / 3); /* time in which it does not get the processor does not count */
      assert_int_equal(from[i].downs, 0);
      late++;
    }
  }
  assert_true(late > 0);
  for (int i = 0; i < PAIRS; i++) close_nodes(&from[i], &to[i]);
}

static void send(struct node *node, struct pwi_link link, uint8_t number, const char *body, size_t size) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {number};
  struct iovec part = {(void *)(uintptr_t)body, size};
  struct pwi_send message = {.lane = PWI_LANE_LINK, .head = head, .body = &part, .body_count = 1};
  assert_int_equal(pwi_net_send(node->net, link, &message), PAWL_OK);
}

#define LONG (64 * MB) /* a turn reads 1 MB: longer than silence */

/* No heartbeat can come in the middle of a message. */
static void test_a_message_that_takes_long_is_no_silence(void **state) {
  struct node from, to;
  char *body = test_calloc(1, LONG);
  (void)state;
  open_pair(&from, &to);
  send(&from, from.link, 0, body, LONG);
  for (int64_t limit = pwi_net_now(to.net) + PATIENCE; to.ended == 0 && pwi_net_now(to.net) < limit;) {
    take_turn(&from);
    (void)pwi_net_poll(to.net, 0);
    stand_still(MOMENT);
    assert_int_equal(from.downs + to.downs, 0);
  }
  assert_int_equal(to.ended, 1);
  close_nodes(&from, &to);
  test_free(body);
}

#define GETS 80
#define GET_SIZE (2 * MB)

/* A node whose peer takes its answers slowly reads no more requests of it meanwhile, and so none of its heartbeats. */
static void test_a_peer_that_takes_answers_slowly_is_not_silent(void **state) {
  struct node from, to;
  struct pwi_remote remote;
  char *into = test_calloc(1, GET_SIZE);
  (void)state;
  open_node(&from, SIZE_MAX, 4096);
  open_node(&to, SIZE_MAX, 4); /* so it answers few requests at a time */
  assert_int_equal(pwi_net_listen(to.net, "127.0.0.1:0"), PAWL_OK);
  join(&from, &to);
  assert_int_equal(pwi_net_region_open(to.net, GET_SIZE, &to.region), PAWL_OK);
  assert_int_equal(pwi_net_region_share(to.net, to.region, to.link, PWI_ACCESS_READ, to.token, &to.token_size),
                   PAWL_OK);
  assert_int_equal(pwi_net_remote_open(from.net, from.link, to.token, to.token_size, &remote), PAWL_OK);
  for (int i = 0; i < GETS; i++)
    assert_int_equal(pwi_net_get(from.net, from.link, remote, 0, into, GET_SIZE, 1), PAWL_OK);
  for (int64_t limit = pwi_net_now(to.net) + PATIENCE; from.ended < GETS && pwi_net_now(to.net) < limit;) {
    take_turn(&to);
    (void)pwi_net_poll(from.net, 0);
    stand_still(MOMENT);
    assert_int_equal(from.downs + to.downs, 0);
  }
  assert_int_equal(from.ended, GETS);
  pwi_net_region_close(to.net, to.region);
  close_nodes(&from, &to);
  test_free(into);
}

#define INBOUND (4 * MB)

/* One body has all memory, and comes slowly. The link with the other body is not read, and so are its heartbeats. */
static void test_a_peer_whose_body_waits_for_memory_is_not_silent(void **state) {
  struct node from[2], to;
  char *body = test_calloc(1, LONG);
  (void)state;
  open_node(&to, INBOUND, 4096);
  to.into = test_malloc(2 * LONG);
  assert_int_equal(pwi_net_listen(to.net, "127.0.0.1:0"), PAWL_OK);
  for (int i = 0; i < 2; i++) {
    open_node(&from[i], SIZE_MAX, 4096);
    join(&from[i], &to);
    take_turn(&to);
  }
  for (uint8_t i = 0; i < 2; i++) send(&from[i], from[i].link, i, body, LONG);
  for (int64_t limit = pwi_net_now(to.net) + PATIENCE; to.ended < 2 && pwi_net_now(to.net) < limit;) {
    for (int i = 0; i < 2; i++) take_turn(&from[i]);
    (void)pwi_net_poll(to.net, 0);
    stand_still(MOMENT);
    assert_int_equal(from[0].downs + from[1].downs + to.downs, 0);
  }
  assert_int_equal(to.ended, 2);
  close_nodes(&from[0], &from[1]);
  pwi_net_destroy(to.net);
  test_free(to.into);
  test_free(body);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_node_that_was_late_itself_waits_longer),
      cmocka_unit_test(test_a_peer_that_was_late_gets_more_time),
      cmocka_unit_test(test_a_node_without_links_is_never_late),
      cmocka_unit_test(test_heartbeats_of_a_node_that_does_not_poll_are_heard),
      cmocka_unit_test(test_a_link_that_waited_for_a_data_plane_is_not_silent),
      cmocka_unit_test(test_a_message_that_takes_long_is_no_silence),
      cmocka_unit_test(test_a_peer_that_takes_answers_slowly_is_not_silent),
      cmocka_unit_test(test_a_peer_whose_body_waits_for_memory_is_not_silent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
