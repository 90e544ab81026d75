/* The mark of packets (DSCP) on every socket of a net: those that listen, connect and are accepted. */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing.h"
#include "net/tcp/tcp.h"

#define FILES 256

static size_t ups;

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self, (void)link, (void)info;
  ups++;
}

static const struct pwi_actor actor = {.link_up = link_up};

static struct pwi_net *make(unsigned dscp) {
  struct pwi_tcp_config config;
  struct pwi_net *net = NULL;
  pwi_tcp_config_init(&config);
  config.plane = PWI_PLANE_OFF;
  config.dscp = dscp;
  assert_int_equal(pwi_tcp_create(&config, &actor, NULL, &net), PAWL_OK);
  return net;
}

/* The number of sockets of the family in this process, all of which must have the mark. */
static size_t count_marked(int family, int level, int option, int mark) {
  size_t count = 0;
  for (int file = 0; file < FILES; file++) {
    int domain = 0, protocol = 0, value = -1;
    socklen_t size = sizeof domain;
    if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != family) continue;
    if (getsockopt(file, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) continue;
    assert_int_equal(getsockopt(file, level, option, &value, &size), 0);
    assert_int_equal(value, mark);
    count++;
  }
  return count;
}

static void check(const char *address, unsigned dscp, int family, int level, int option) {
  struct pwi_net *here = make(dscp), *there = make(dscp);
  struct pwi_link link;
  if (pwi_net_listen(there, address) == PAWL_OK) { /* a machine may have no IPv6 */
    ups = 0;
    assert_int_equal(pwi_net_connect(here, pwi_net_address(there), &link), PAWL_OK);
    while (ups < 2) {
      (void)pwi_net_poll(here, 0);
      (void)pwi_net_poll(there, 0);
    }
    assert_int_equal(count_marked(family, level, option, (int)dscp << 2), 3);
  }
  pwi_net_destroy(here);
  pwi_net_destroy(there);
}

static void test_every_socket_has_the_mark(void **state) {
  (void)state;
  check("127.0.0.1:0", 46, AF_INET, IPPROTO_IP, IP_TOS);
  check("127.0.0.1:0", 63, AF_INET, IPPROTO_IP, IP_TOS);
  check("[::1]:0", 10, AF_INET6, IPPROTO_IPV6, IPV6_TCLASS);
}

static void test_without_a_mark_sockets_are_left_alone(void **state) {
  (void)state;
  check("127.0.0.1:0", 0, AF_INET, IPPROTO_IP, IP_TOS);
}

static void test_a_mark_has_six_bits(void **state) {
  (void)state;
  struct pwi_tcp_config config;
  struct pwi_net *net = NULL;
  pwi_tcp_config_init(&config);
  config.dscp = PWI_DSCP_MAX + 1;
  assert_int_equal(pwi_tcp_create(&config, &actor, NULL, &net), PAWL_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_socket_has_the_mark),
      cmocka_unit_test(test_without_a_mark_sockets_are_left_alone),
      cmocka_unit_test(test_a_mark_has_six_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
