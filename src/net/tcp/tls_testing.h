/* Helpers for the tests of TLS: two ends of a socket pair, driven in turn by one thread. Include it after
 * cmocka. */
#ifndef PWI_NET_TCP_TLS_TESTING_H
#define PWI_NET_TCP_TLS_TESTING_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tcp/tls.h"

#define KEY_A "pawl1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "pawl1-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C "pawl1-cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ROUNDS 1000 /* of a handshake, which takes a few */

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

struct end {
  struct pwi_tls_context *context;
  struct pwi_keyring *keys;
  struct pwi_tls *tls;
  int socket;
  pawl_status status; /* of the handshake */
  bool finished;
};

static struct end connector, acceptor;

/* Up to three keys, NULL at the end. */
static void use_keys(struct end *end, const char *first, const char *second, const char *third) {
  const char *texts[] = {first, second, third}, *why = NULL;
  assert_int_equal(pwi_keyring_create(&end->keys), PAWL_OK);
  for (size_t i = 0; i < 3 && texts[i]; i++) assert_int_equal(pwi_keyring_add(end->keys, texts[i]), PAWL_OK);
  assert_int_equal(pwi_tls_context_create(end->keys, NULL, NULL, NULL, &end->context, &why), PAWL_OK);
}

static void join_ends(const char *host) {
  int sockets[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  connector.socket = sockets[0];
  acceptor.socket = sockets[1];
  assert_int_equal(pwi_tls_create(connector.context, connector.socket, false, host, &connector.tls), PAWL_OK);
  assert_int_equal(pwi_tls_create(acceptor.context, acceptor.socket, true, NULL, &acceptor.tls), PAWL_OK);
}

static void shake_one(struct end *end) {
  if (end->finished || end->status != PAWL_OK) return;
  end->status = pwi_tls_handshake(end->tls, &end->finished);
}

static void shake(void) {
  for (int i = 0; i < ROUNDS; i++) {
    shake_one(&connector);
    shake_one(&acceptor);
  }
}

static void assert_joined(void) {
  shake();
  assert_int_equal(connector.status, PAWL_OK);
  assert_int_equal(acceptor.status, PAWL_OK);
  assert_true(connector.finished && acceptor.finished);
}

static void clear_end(struct end *end) {
  pwi_tls_destroy(end->tls);
  pwi_tls_context_destroy(end->context);
  pwi_keyring_destroy(end->keys);
  if (end->socket >= 0) close(end->socket);
  *end = (struct end){.socket = -1};
}

static int set_up(void **state) {
  (void)state;
  connector = acceptor = (struct end){.socket = -1};
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  clear_end(&connector);
  clear_end(&acceptor);
  return 0;
}

static void write_all(struct end *end, const void *bytes, size_t size) {
  size_t moved;
  bool empty;
  assert_int_equal(pwi_tls_write(end->tls, bytes, size, &moved), PAWL_OK);
  assert_int_equal(moved, size);
  assert_int_equal(pwi_tls_flush(end->tls, &empty), PAWL_OK);
  assert_true(empty);
}

static void assert_reads(struct end *end, const char *text) {
  char bytes[64] = {0};
  size_t moved;
  assert_int_equal(pwi_tls_read(end->tls, bytes, sizeof bytes, &moved), PAWL_OK);
  assert_int_equal(moved, strlen(text));
  assert_string_equal(bytes, text);
}

/* The final status of reading, including the alert of a late refusal. */
static pawl_status read_to_the_end(struct end *end) {
  char byte;
  size_t moved;
  pawl_status status = PAWL_OK;
  for (int i = 0; i < ROUNDS && status == PAWL_OK; i++) status = pwi_tls_read(end->tls, &byte, 1, &moved);
  return status;
}

#endif
