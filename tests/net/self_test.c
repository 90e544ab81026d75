/* A port at which nobody listens: the kernel may connect a socket to itself there, if it chooses the same port for
 * both ends. A net must take such a connection for a refused one. In a network namespace of its own with few ports
 * the kernel does so often. Needs root. */
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing.h"
#include "net/tcp/tcp.h"

#define PORT 42000
#define TRIES 200

static size_t ups, downs, refused;

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self, (void)link, (void)info;
  ups++;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  (void)self, (void)link;
  downs++;
  refused += why == PAWL_LINK_REFUSED;
}

static const struct pwi_actor actor = {.link_up = on_up, .link_down = on_down};

static bool leave_few_ports(void) {
  char command[128];
  snprintf(command, sizeof command, "ip link set lo up && echo '%d %d' > /proc/sys/net/ipv4/ip_local_port_range", PORT,
           PORT + 3);
  return unshare(CLONE_NEWNET) == 0 && system(command) == 0;
}

static bool connects_to_itself(void) {
  struct sockaddr_in there = {
      .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(end >= 0);
  struct linger none = {.l_onoff = 1}; /* the port is free again at once */
  assert_int_equal(setsockopt(end, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  bool is_connected = connect(end, (struct sockaddr *)&there, sizeof there) == 0;
  close(end);
  return is_connected;
}

static void test_a_connection_to_itself_is_refused(void **state) {
  (void)state;
  if (!leave_few_ports()) skip();
  size_t own = 0;
  for (int i = 0; i < TRIES; i++) own += connects_to_itself();
  assert_true(own > 0); /* here the kernel does it */

  struct pwi_tcp_config config;
  struct pwi_net *net = NULL;
  struct pwi_link link;
  char address[32];
  pwi_tcp_config_init(&config);
  config.plane = PWI_PLANE_OFF;
  snprintf(address, sizeof address, "127.0.0.1:%d", PORT);
  assert_int_equal(pwi_tcp_create(&config, &actor, NULL, &net), PAWL_OK);
  for (size_t i = 1; i <= TRIES; i++) {
    assert_int_equal(pwi_net_connect(net, address, &link), PAWL_OK);
    while (downs + ups < i) (void)pwi_net_poll(net, PWI_NET_NEVER);
  }
  assert_int_equal(ups, 0);
  assert_int_equal(refused, TRIES);
  pwi_net_destroy(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_connection_to_itself_is_refused)};
  return cmocka_run_group_tests_name("net.self", tests, NULL, NULL);
}
