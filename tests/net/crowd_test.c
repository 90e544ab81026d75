/* More links than a node has data planes for. The node that accepts them may open few files, so it has planes for CROWD_PLANES links only.
 * The others come up without one, and their puts, notifications and messages are the same. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/testing.h"
#include "net/tcp/tcp.h"

#define SECOND INT64_C(1000000000)
#define CROWD 80
#define CROWD_PLANES 65
#define FILES (16 * CROWD_PLANES) /* as net/ucx counts them */
#define SIZE ((size_t)6000)
#define FOREVER (600 * SECOND)

/* The first byte of the head; the value follows at 8. */
enum { SAY_TOKEN = 1, SAY_LANDED, SAY_STOP };

struct member {
  struct pwi_link link;
  struct pwi_region *region;
};

struct node {
  struct pwi_net *net;
  struct member members[CROWD];
  size_t ups, downs, landed, planes;
  bool must_stop;
  uint8_t head[PWI_NET_HEAD_SIZE], body[PWI_NET_TOKEN_MAX], from[CROWD][SIZE];
  size_t body_size;
};

static struct node node;

static void say(struct pwi_link link, uint8_t what, uint64_t value, const void *body, size_t size) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {what};
  struct iovec part = {(void *)(uintptr_t)body, size};
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = head, .body = &part, .body_count = 1};
  pwi_put_u64(head + 8, value);
  if (pwi_net_send(node.net, link, &send) != PAWL_OK) abort();
}

static struct member *find(struct pwi_link link) {
  for (size_t i = 0; i < CROWD; i++)
    if (node.members[i].link.id == link.id) return &node.members[i];
  abort();
}

/* The accepting node shares a region with each link. */
static void on_accepted(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct member *member = &node.members[node.ups++];
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size;
  (void)self, (void)info;
  member->link = link;
  if (pwi_net_region_open(node.net, SIZE, &member->region) != PAWL_OK ||
      pwi_net_region_share(node.net, member->region, link, PWI_ACCESS_WRITE, token, &size) != PAWL_OK)
    abort();
  say(link, SAY_TOKEN, 0, token, size);
}

static void on_connected(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self;
  node.members[node.ups++].link = link;
  node.planes += (info->can & PWI_LINK_IN_PLACE) != 0;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  (void)self, (void)link, (void)why;
  node.downs++;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  (void)self, (void)link;
  memcpy(node.head, message->head, sizeof node.head);
  node.body_size = message->body_size;
  return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = node.body};
}

static void put_into(struct pwi_link link) {
  struct pwi_remote remote;
  size_t number = (size_t)(find(link) - node.members);
  memset(node.from[number], (int)number + 1, SIZE);
  if (pwi_net_remote_open(node.net, link, node.body, node.body_size, &remote) != PAWL_OK ||
      pwi_net_put(node.net, link, remote, 0, node.from[number], SIZE, number + 1, 0) != PAWL_OK)
    abort();
}

static void on_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  (void)self, (void)context;
  if (status != PAWL_OK) return;
  if (node.head[0] == SAY_TOKEN) put_into(link);
  if (node.head[0] == SAY_LANDED) node.landed += pwi_get_u64(node.head + 8);
  if (node.head[0] == SAY_STOP) node.must_stop = true;
}

static void on_notified(void *self, struct pwi_link link, uint64_t value) {
  const uint8_t *bytes = pwi_net_region_memory(find(link)->region);
  bool is_right = true;
  (void)self;
  for (size_t i = 0; i < SIZE; i++) is_right &= bytes[i] == value;
  say(link, SAY_LANDED, is_right, NULL, 0);
}

static const struct pwi_actor acceptor = {.link_up = on_accepted,
                                          .link_down = on_down,
                                          .message = on_message,
                                          .message_end = on_end,
                                          .notified = on_notified};
static const struct pwi_actor connector = {
    .link_up = on_connected, .link_down = on_down, .message = on_message, .message_end = on_end};

static void open_net(const struct pwi_actor *actor) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = PWI_PLANE_AUTO;
  config.limits.silence_ns = config.limits.greet_ns = FOREVER;
  if (pwi_tcp_create(&config, actor, NULL, &node.net) != PAWL_OK) abort();
}

static int accept_all(int tell) {
  struct rlimit files = {FILES, FILES};
  char address[PWI_NET_ADDRESS_MAX] = {0};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
  open_net(&acceptor);
  if (pwi_net_listen(node.net, "tcp://127.0.0.1:0") != PAWL_OK) return 1;
  snprintf(address, sizeof address, "%s", pwi_net_address(node.net));
  if (write(tell, address, sizeof address) != (ssize_t)sizeof address) return 1;
  while (!node.must_stop && node.downs == 0) pwi_net_poll(node.net, PWI_NET_NEVER);
  pwi_net_destroy(node.net);
  return 0;
}

static void test_links_beyond_the_planes_of_a_node_are_served_by_their_sockets(void **state) {
  int tell[2], status;
  char address[PWI_NET_ADDRESS_MAX];
  (void)state;
  assert_int_equal(pipe(tell), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(accept_all(tell[1]));
  close(tell[1]);
  assert_int_equal(read(tell[0], address, sizeof address), sizeof address);
  close(tell[0]);
  open_net(&connector);
  for (size_t i = 0; i < CROWD; i++) {
    struct pwi_link link;
    assert_int_equal(pwi_net_connect(node.net, address, &link), PAWL_OK);
    while (node.ups == i && node.downs == 0) pwi_net_poll(node.net, PWI_NET_NEVER);
    assert_int_equal(node.downs, 0);
  }
  while (node.landed < CROWD && node.downs == 0) pwi_net_poll(node.net, PWI_NET_NEVER);
  assert_int_equal(node.downs, 0);
  print_message("%zu of %d links have a data plane\n", node.planes, CROWD);
  assert_in_range(node.planes, 0, CROWD_PLANES);
  bool available;
  pwi_tcp_plane_about(&available);
  if (available) assert_true(node.planes > 0);
  say(node.members[0].link, SAY_STOP, 0, NULL, 0);
  while (node.downs == 0) pwi_net_poll(node.net, PWI_NET_NEVER);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  pwi_net_destroy(node.net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_links_beyond_the_planes_of_a_node_are_served_by_their_sockets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
