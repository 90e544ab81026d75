/* Where a node can be reached: IPv4 and IPv6, names, port ranges, advertised addresses, and what it does not try. And
 * whether both sides know that nothing lies between them. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing.h"
#include "net/tcp/tcp.h"

#define PATIENCE (INT64_C(100) * 1000 * 1000 * 1000)

struct node {
  struct pwi_net *net;
  bool is_up, is_down;
  pawl_status why;
  unsigned can;
  char identity[64];
};

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  (void)link;
  node->is_up = true;
  node->can = info->can;
  snprintf(node->identity, sizeof node->identity, "%s", info->identity);
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  struct node *node = self;
  (void)link;
  node->is_down = true;
  node->why = why;
}

static const struct pwi_actor actor = {.link_up = on_up, .link_down = on_down};

static pawl_status open_node(struct node *node, const char *advertise, const struct pwi_keyring *keys) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = PWI_PLANE_OFF;
  config.advertise = advertise;
  config.keys = keys;
  *node = (struct node){0};
  return pwi_tcp_create(&config, &actor, node, &node->net);
}

/* Passes the bytes of one connection on in both directions, as a proxy does. */
struct proxy {
  int listener, ends[2]; /* -1: none */
  struct sockaddr_in to;
};

static void pass_on(int from, int to) {
  char bytes[4096];
  ssize_t size = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (size > 0) assert_int_equal(send(to, bytes, (size_t)size, MSG_NOSIGNAL), size);
}

static void run_proxy(struct proxy *proxy) {
  if (proxy->ends[0] < 0) {
    proxy->ends[0] = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (proxy->ends[0] < 0) return;
    proxy->ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(proxy->ends[1], (struct sockaddr *)&proxy->to, sizeof proxy->to), 0);
  }
  pass_on(proxy->ends[0], proxy->ends[1]);
  pass_on(proxy->ends[1], proxy->ends[0]);
}

/* Polls both until the link of `from` is up or down. `proxy` may be NULL. */
static void run_through(struct node *from, struct node *to, struct proxy *proxy) {
  int64_t limit = pwi_net_now(from->net) + PATIENCE;
  while (!from->is_down && !(from->is_up && (!to || to->is_up)) && pwi_net_now(from->net) < limit) {
    pwi_net_poll(from->net, pwi_net_now(from->net) + 1000000);
    if (to) pwi_net_poll(to->net, pwi_net_now(to->net));
    if (proxy) run_proxy(proxy);
  }
}

static void run(struct node *from, struct node *to) { run_through(from, to, NULL); }

static void check_joins(const char *listen, const char *connect_host) {
  struct node here, there;
  struct pwi_link link;
  char address[PWI_NET_ADDRESS_MAX];
  assert_int_equal(open_node(&here, NULL, NULL), PAWL_OK);
  assert_int_equal(open_node(&there, NULL, NULL), PAWL_OK);
  assert_int_equal(pwi_net_listen(there.net, listen), PAWL_OK);
  const char *told = pwi_net_address(there.net);
  snprintf(address, sizeof address, connect_host ? "%s%s" : "%s", connect_host ? connect_host : told,
           strrchr(told, ':'));
  assert_int_equal(pwi_net_connect(here.net, address, &link), PAWL_OK);
  run(&here, &there);
  assert_true(here.is_up && there.is_up);
  assert_true((here.can & PWI_LINK_LOCAL) && (there.can & PWI_LINK_LOCAL));
  pwi_net_destroy(here.net);
  pwi_net_destroy(there.net);
}

static bool has_ipv6(void) {
  int handle = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  bool works = handle >= 0 && bind(handle, (struct sockaddr *)&address, sizeof address) == 0;
  if (handle >= 0) close(handle);
  return works;
}

static void test_ipv4_joins(void **state) {
  (void)state;
  check_joins("tcp://127.0.0.1:0", NULL);
}

static void test_ipv6_joins(void **state) {
  (void)state;
  if (!has_ipv6()) skip();
  check_joins("tcp://[::1]:0", NULL);
}

static void test_a_host_name_joins(void **state) {
  (void)state;
  check_joins("tcp://127.0.0.1:0", "tcp://localhost");
}

static void test_a_unix_socket_joins(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-reach-XXXXXX", address[64];
  assert_non_null(mkdtemp(folder));
  snprintf(address, sizeof address, "unix:%s/socket", folder);
  check_joins(address, NULL);
  rmdir(folder);
}

/* Both sides see a loopback connection, but the bytes between them pass through another process, and perhaps
 * over a network. So messages keep their checksums. */
static void test_a_connection_through_a_proxy_is_not_local(void **state) {
  (void)state;
  struct node here, there;
  struct pwi_link link;
  unsigned port;
  char address[PWI_NET_ADDRESS_MAX];
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof own;
  struct proxy proxy = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), {-1, -1}, own};
  assert_int_equal(bind(proxy.listener, (struct sockaddr *)&own, sizeof own), 0);
  assert_int_equal(listen(proxy.listener, 1), 0);
  assert_int_equal(getsockname(proxy.listener, (struct sockaddr *)&own, &size), 0);
  assert_int_equal(open_node(&here, NULL, NULL), PAWL_OK);
  assert_int_equal(open_node(&there, NULL, NULL), PAWL_OK);
  assert_int_equal(pwi_net_listen(there.net, "tcp://127.0.0.1:0"), PAWL_OK);
  assert_int_equal(sscanf(pwi_net_address(there.net), "tcp://127.0.0.1:%u", &port), 1);
  proxy.to.sin_port = htons((uint16_t)port);
  snprintf(address, sizeof address, "tcp://127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
  assert_int_equal(pwi_net_connect(here.net, address, &link), PAWL_OK);
  run_through(&here, &there, &proxy);
  assert_true(here.is_up && there.is_up);
  assert_false((here.can & PWI_LINK_LOCAL) || (there.can & PWI_LINK_LOCAL));
  pwi_net_destroy(here.net);
  pwi_net_destroy(there.net);
  close(proxy.listener);
  for (size_t i = 0; i < 2; i++) close(proxy.ends[i]);
}

static void test_a_name_that_nobody_has_is_reported(void **state) {
  (void)state;
  struct node node;
  struct pwi_link link;
  assert_int_equal(open_node(&node, NULL, NULL), PAWL_OK);
  assert_int_equal(pwi_net_connect(node.net, "tcp://a..b:1", &link), PAWL_OK); /* no name, so nobody is asked */
  run(&node, NULL);
  assert_true(node.is_down);
  assert_int_equal(node.why, PAWL_LINK_RESOLVE);
  pwi_net_destroy(node.net);
}

static void test_a_range_of_ports_gives_the_first_that_is_free(void **state) {
  (void)state;
  struct node first, second;
  struct pwi_link link;
  unsigned port;
  char range[PWI_NET_ADDRESS_MAX];
  assert_int_equal(open_node(&first, NULL, NULL), PAWL_OK);
  assert_int_equal(open_node(&second, NULL, NULL), PAWL_OK);
  assert_int_equal(pwi_net_listen(first.net, "tcp://127.0.0.1:0"), PAWL_OK);
  assert_int_equal(sscanf(pwi_net_address(first.net), "tcp://127.0.0.1:%u", &port), 1);
  unsigned last = port + 50 > 65535 ? 65535 : port + 50;
  snprintf(range, sizeof range, "tcp://127.0.0.1:%u-%u", port, last);
  assert_int_equal(pwi_net_listen(second.net, range), PAWL_OK);
  unsigned found;
  assert_int_equal(sscanf(pwi_net_address(second.net), "tcp://127.0.0.1:%u", &found), 1);
  assert_true(found > port && found <= last);
  assert_int_equal(pwi_net_connect(first.net, pwi_net_address(second.net), &link), PAWL_OK);
  run(&first, &second);
  assert_true(first.is_up);
  snprintf(range, sizeof range, "tcp://127.0.0.1:%u-%u", port, port);
  assert_int_equal(pwi_net_listen(second.net, range), PAWL_NODE_ADDRESS); /* the only one is taken */
  pwi_net_destroy(first.net);
  pwi_net_destroy(second.net);
}

/* What others are told, given what is advertised; "PORT" stands for the one that was found. */
static void check_advertised(const char *advertise, const char *expected) {
  struct node node;
  char text[PWI_NET_ADDRESS_MAX];
  assert_int_equal(open_node(&node, advertise, NULL), PAWL_OK);
  assert_int_equal(pwi_net_listen(node.net, "tcp://127.0.0.1:0"), PAWL_OK);
  const char *told = pwi_net_address(node.net);
  size_t size = strlen(expected);
  snprintf(text, sizeof text, "%s", expected);
  if (size > 4 && strcmp(expected + size - 4, "PORT") == 0) {
    assert_int_equal(strncmp(told, expected, size - 4), 0);
    assert_true(strlen(told) > size - 4 && strcmp(told + size - 4, "0") != 0);
  } else {
    assert_string_equal(told, text);
  }
  pwi_net_destroy(node.net);
}

static void test_an_advertised_address_is_what_others_are_told(void **state) {
  (void)state;
  check_advertised("node7", "tcp://node7:PORT");
  check_advertised("node7:4000", "tcp://node7:4000");
  check_advertised("[fe80::7]", "tcp://[fe80::7]:PORT");
  check_advertised("[fe80::7]:4000", "tcp://[fe80::7]:4000");
  struct node node;
  assert_int_equal(open_node(&node, "bad host", NULL), PAWL_INVALID);
  assert_int_equal(open_node(&node, "node7:port", NULL), PAWL_INVALID);
}

static void test_without_a_key_another_machine_is_not_spoken_to(void **state) {
  (void)state;
  struct node node;
  struct pwi_link link;
  assert_int_equal(open_node(&node, NULL, NULL), PAWL_OK);
  assert_int_equal(pwi_net_connect(node.net, "tcp://192.0.2.1:9", &link), PAWL_OK);
  run(&node, NULL);
  assert_true(node.is_down);
  assert_int_equal(node.why, PAWL_FORBIDDEN);
  pwi_net_destroy(node.net);
}

static void test_an_actor_learns_which_key_let_the_peer_in(void **state) {
  (void)state;
  struct node here, there;
  struct pwi_link link;
  struct pwi_keyring *keys;
  char text[PWI_KEY_TEXT_MAX], expected[64];
  assert_int_equal(pwi_key_new(text), PAWL_OK);
  assert_int_equal(pwi_keyring_create(&keys), PAWL_OK);
  assert_int_equal(pwi_keyring_add(keys, text), PAWL_OK);
  snprintf(expected, sizeof expected, "key:%s", pwi_keyring_first(keys)->name);
  assert_int_equal(open_node(&here, NULL, keys), PAWL_OK);
  assert_int_equal(open_node(&there, NULL, keys), PAWL_OK);
  assert_int_equal(pwi_net_listen(there.net, "tcp://127.0.0.1:0"), PAWL_OK);
  assert_int_equal(pwi_net_connect(here.net, pwi_net_address(there.net), &link), PAWL_OK);
  run(&here, &there);
  assert_true(here.is_up && there.is_up);
  assert_string_equal(there.identity, expected);
  pwi_net_destroy(here.net);
  pwi_net_destroy(there.net);
  pwi_keyring_destroy(keys);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ipv4_joins),
      cmocka_unit_test(test_ipv6_joins),
      cmocka_unit_test(test_a_host_name_joins),
      cmocka_unit_test(test_a_unix_socket_joins),
      cmocka_unit_test(test_a_connection_through_a_proxy_is_not_local),
      cmocka_unit_test(test_a_name_that_nobody_has_is_reported),
      cmocka_unit_test(test_a_range_of_ports_gives_the_first_that_is_free),
      cmocka_unit_test(test_an_advertised_address_is_what_others_are_told),
      cmocka_unit_test(test_without_a_key_another_machine_is_not_spoken_to),
      cmocka_unit_test(test_an_actor_learns_which_key_let_the_peer_in),
  };
  return cmocka_run_group_tests_name("net.reach", tests, NULL, NULL);
}
