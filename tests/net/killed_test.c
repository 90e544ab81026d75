/* A process is killed in the middle of a put. Bytes of the put may be in the region, but no other memory has changed; every operation of the
 * survivor ends once, and the next process is served. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/testing.h"
#include "net/tcp/tcp.h"

#define SECOND INT64_C(1000000000)
#define SIZE ((size_t)8 << 20)
#define ROUNDS 4
#define FOREVER (600 * SECOND)
#define FIRST 0x71 /* the byte that puts write; it changes from put to put */
#define BYTES 8

struct node {
  struct pwi_net *net;
  struct pwi_link link;
  struct pwi_region *region;
  bool is_up, is_down;
  uint64_t begun, ended; /* gets of the survivor */
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t token_size;
  struct pwi_remote remote;
  bool has_remote;
};

static void share(struct node *node, struct pwi_link link) {
  uint8_t token[PWI_NET_TOKEN_MAX], head[PWI_NET_HEAD_SIZE] = {0};
  struct iovec body = {token, 0};
  struct pwi_send send = {.head = head, .body = &body, .body_count = 1};
  if (pwi_net_region_share(node->net, node->region, link, PWI_ACCESS_READ | PWI_ACCESS_WRITE, token, &body.iov_len) !=
          PAWL_OK ||
      pwi_net_send(node->net, link, &send) != PAWL_OK)
    abort();
}

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  (void)info;
  node->link = link;
  node->is_up = true;
  share(node, link);
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  (void)link, (void)why;
  ((struct node *)self)->is_down = true;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct node *node = self;
  (void)link;
  node->token_size = message->body_size;
  return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = node->token};
}

static void on_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct node *node = self;
  (void)context;
  node->has_remote = status == PAWL_OK &&
                     pwi_net_remote_open(node->net, link, node->token, node->token_size, &node->remote) == PAWL_OK;
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)link, (void)cookie, (void)status;
  ((struct node *)self)->ended++;
}

static const struct pwi_actor actor = {
    .link_up = on_up, .link_down = on_down, .message = on_message, .message_end = on_end, .done = on_done};

static void open_node(struct node *node, bool has_plane) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = has_plane ? PWI_PLANE_MUST : PWI_PLANE_OFF;
  config.limits.silence_ns = config.limits.greet_ns = FOREVER;
  *node = (struct node){0};
  if (pwi_tcp_create(&config, &actor, node, &node->net) != PAWL_OK) abort();
}

/* The process to be killed: puts as long as it lives. */
static int put_for_ever(const char *address, bool has_plane) {
  static uint8_t from[SIZE];
  struct node node;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  open_node(&node, has_plane);
  if (pwi_net_region_open(node.net, SIZE, &node.region) != PAWL_OK) return 1;
  if (pwi_net_connect(node.net, address, &node.link) != PAWL_OK) return 1;
  while (!node.has_remote && !node.is_down) pwi_net_poll(node.net, PWI_NET_NEVER);
  for (int i = 0; !node.is_down; i++) {
    uint64_t ended = node.ended;
    memset(from, FIRST + i % BYTES, SIZE);
    if (pwi_net_put(node.net, node.link, node.remote, 0, from, SIZE, 0, 1) != PAWL_OK) return 1;
    while (node.ended == ended && !node.is_down) pwi_net_poll(node.net, PWI_NET_NEVER);
  }
  return 1;
}

static bool is_zero(struct pwi_region *region) {
  const uint8_t *bytes = pwi_net_region_memory(region);
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, SIZE - 1) == 0;
}

static bool is_put(const struct pwi_region *region) {
  const uint8_t *bytes = pwi_net_region_memory(region);
  for (size_t i = 0; i < SIZE; i++)
    if (bytes[i] != 0 && (bytes[i] < FIRST || bytes[i] >= FIRST + BYTES)) return false;
  return true;
}

/* Kills a process after some of its bytes have come, at another moment in each round. */
static void kill_once(struct node *node, const char *address, bool has_plane, int round) {
  static uint8_t into[SIZE];
  struct pwi_region *below, *above;
  assert_int_equal(pwi_net_region_open(node->net, SIZE, &below), PAWL_OK);
  assert_int_equal(pwi_net_region_open(node->net, SIZE, &node->region), PAWL_OK);
  assert_int_equal(pwi_net_region_open(node->net, SIZE, &above), PAWL_OK);
  node->is_up = node->is_down = node->has_remote = false;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(put_for_ever(address, has_plane));
  volatile uint8_t *bytes = pwi_net_region_memory(node->region);
  while (!node->has_remote || bytes[(SIZE - 1) / ROUNDS * (size_t)round] == 0)
    pwi_net_poll(node->net, pwi_net_now(node->net) + SECOND / 1000);
  for (int i = 0; i < 3; i++)
    node->begun += pwi_net_get(node->net, node->link, node->remote, 0, into, SIZE, 1) == PAWL_OK;
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  while (!node->is_down) pwi_net_poll(node->net, PWI_NET_NEVER);
  assert_int_equal(node->ended, node->begun);
  assert_true(is_zero(below));
  assert_true(is_zero(above));
  assert_true(is_put(node->region));
  pwi_net_region_close(node->net, node->region);
  pwi_net_region_close(node->net, above);
  pwi_net_region_close(node->net, below);
}

static void kill_writers(const char *listen, bool has_plane) {
  struct node node;
  open_node(&node, has_plane);
  assert_int_equal(pwi_net_listen(node.net, listen), PAWL_OK);
  for (int round = 0; round < ROUNDS; round++) kill_once(&node, pwi_net_address(node.net), has_plane, round);
  pwi_net_destroy(node.net);
}

static void test_killed_in_a_put_over_tcp(void **state) {
  (void)state;
  kill_writers("tcp://127.0.0.1:0", false);
}

static void test_killed_in_a_put_over_a_unix_socket(void **state) {
  char folder[] = "/tmp/pawl-killed-XXXXXX", address[64];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(address, sizeof address, "unix:%s/s", folder);
  kill_writers(address, false);
  unlink(address + 5);
  rmdir(folder);
}

static void test_killed_in_a_put_over_the_data_plane(void **state) {
  (void)state;
  bool available;
  pwi_tcp_plane_about(&available);
  if (!available) skip();
  kill_writers("tcp://127.0.0.1:0", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_killed_in_a_put_over_tcp),
      cmocka_unit_test(test_killed_in_a_put_over_a_unix_socket),
      cmocka_unit_test(test_killed_in_a_put_over_the_data_plane),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
