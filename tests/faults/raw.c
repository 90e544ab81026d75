/* A raw peer: sockets, TLS and frames without code of the library. */
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

static bool port_of(const char *address, unsigned *port_out) {
  return sscanf(address, "tcp://127.0.0.1:%u", port_out) == 1;
}

static struct sockaddr_in loopback(unsigned host, unsigned port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u | host)};
  address.sin_port = htons((uint16_t)port);
  return address;
}

bool raw_connect(struct raw *raw, const char *address, unsigned source) {
  unsigned port;
  *raw = (struct raw){.socket = -1};
  if (!port_of(address, &port)) return false;
  raw->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (raw->socket < 0) return false;
  struct timeval limit = {KIT_HANG_MS / 1000, 0};
  int yes = 1;
  setsockopt(raw->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(raw->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(raw->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  struct sockaddr_in from = loopback(source, 0), to = loopback(1, port);
  setsockopt(raw->socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  if (source && bind(raw->socket, (struct sockaddr *)&from, sizeof from) != 0) return false;
  return connect(raw->socket, (struct sockaddr *)&to, sizeof to) == 0;
}

void raw_close(struct raw *raw) {
  SSL_free(raw->ssl);
  SSL_CTX_free(raw->context);
  if (raw->socket >= 0) close(raw->socket);
  *raw = (struct raw){.socket = -1};
}

/* Uses OpenSSL directly, so that no code of the library is trusted. */

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity_out, size_t *size_out,
                     SSL_SESSION **session_out) {
  (void)digest;
  static char identity[64];
  const struct pwi_key *key = SSL_get_app_data(ssl);
  static const unsigned char suite[] = {0x13, 0x01};
  SSL_SESSION *session = SSL_SESSION_new();
  if (!key || !session || !SSL_SESSION_set1_master_key(session, key->secret, sizeof key->secret) ||
      !SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)) ||
      !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION)) {
    SSL_SESSION_free(session);
    return 0;
  }
  snprintf(identity, sizeof identity, "pawl:%s", key->name);
  *identity_out = (const unsigned char *)identity;
  *size_out = strlen(identity);
  *session_out = session;
  return 1;
}

static struct pwi_key key_of(const struct raw_proof *proof) {
  struct pwi_key key, other;
  kit_must(pwi_key_parse(proof->key, &key) == PAWL_OK, "read a key");
  if (!proof->key_claimed) return key;
  kit_must(pwi_key_parse(proof->key_claimed, &other) == PAWL_OK, "read a key");
  memcpy(key.name, other.name, sizeof key.name);
  return key;
}

bool raw_connect_tls(struct raw *raw, const char *address, const struct raw_proof *proof) {
  struct pwi_key key = {0};
  if (!raw_connect(raw, address, 0)) return false;
  raw->context = SSL_CTX_new(TLS_client_method());
  kit_must(raw->context != NULL, "set up TLS");
  if (proof->key) {
    key = key_of(proof);
    SSL_CTX_set_psk_use_session_callback(raw->context, offer_key);
  } else if (proof->certificate) {
    kit_must(SSL_CTX_use_certificate_chain_file(raw->context, proof->certificate) == 1 &&
                 SSL_CTX_use_PrivateKey_file(raw->context, proof->private_key, SSL_FILETYPE_PEM) == 1,
             "use a certificate");
  }
  raw->ssl = SSL_new(raw->context);
  kit_must(raw->ssl != NULL && SSL_set_fd(raw->ssl, raw->socket) == 1, "set up TLS");
  SSL_set_app_data(raw->ssl, proof->key ? &key : NULL);
  bool shaken = SSL_connect(raw->ssl) == 1;
  SSL_set_app_data(raw->ssl, NULL);
  return shaken;
}

/* Bytes. */

/* OpenSSL writes without MSG_NOSIGNAL. The signal is blocked in this thread only: in a thread of the library
 * it would be a fault. */
static ssize_t write_tls(struct raw *raw, const char *bytes, size_t size) {
  sigset_t broken_pipe, before;
  struct timespec none = {0};
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  ssize_t moved = SSL_write(raw->ssl, bytes, (int)size);
  sigtimedwait(&broken_pipe, NULL, &none);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return moved;
}

bool raw_send(struct raw *raw, const void *bytes, size_t size) {
  size_t sent = 0;
  while (sent < size) {
    const char *at = (const char *)bytes + sent;
    ssize_t moved = raw->ssl ? write_tls(raw, at, size - sent) : send(raw->socket, at, size - sent, MSG_NOSIGNAL);
    if (moved <= 0) return false;
    sent += (size_t)moved;
  }
  return true;
}

bool raw_receive(struct raw *raw, void *bytes, size_t size) {
  size_t got = 0;
  while (got < size) {
    char *at = (char *)bytes + got;
    ssize_t moved =
        raw->ssl ? (ssize_t)SSL_read(raw->ssl, at, (int)(size - got)) : recv(raw->socket, at, size - got, 0);
    if (moved <= 0) return false;
    got += (size_t)moved;
  }
  return true;
}

bool raw_is_closed(struct raw *raw) {
  char bytes[4096];
  int64_t end = kit_now() + KIT_HANG_MS * INT64_C(1000000);
  while (kit_now() < end) {
    ssize_t moved = recv(raw->socket, bytes, sizeof bytes, 0);
    if (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
  return false;
}

/* Frames. */

bool raw_open(struct raw *raw, uint16_t lowest, uint16_t highest) {
  struct pwi_opening ours = {.lowest = lowest, .highest = highest, .challenge = "challenge of me"};
  struct pwi_opening theirs;
  uint8_t bytes[PWI_OPENING_SIZE];
  pwi_opening_write(bytes, &ours);
  if (!raw_send(raw, bytes, sizeof bytes) || !raw_receive(raw, bytes, sizeof bytes)) return false;
  if (pwi_opening_read(bytes, &theirs) != PAWL_OK) return false;
  memcpy(raw->challenge, theirs.challenge, sizeof raw->challenge);
  return true;
}

bool raw_frame(struct raw *raw, enum pwi_frame_kind kind, const void *fields, uint64_t claimed, const void *body,
               size_t size) {
  static const char zeros[PWI_FRAME_ALIGN];
  uint8_t head[PWI_FRAME_HEAD_MAX] = {0};
  size_t field_size = pwi_frame_fields(kind);
  pwi_frame_write(head, kind, claimed);
  if (fields) memcpy(head + PWI_FRAME_PREFIX, fields, field_size);
  if (!raw_send(raw, head, PWI_FRAME_PREFIX + field_size)) return false;
  if (size > 0 && !raw_send(raw, body, size)) return false;
  return claimed != size || pwi_frame_padding(size) == 0 || raw_send(raw, zeros, pwi_frame_padding(size));
}

bool raw_next(struct raw *raw, struct pwi_frame *frame_out, uint8_t fields[PWI_FRAME_FIELDS_MAX], void *body,
              size_t capacity) {
  do {
    uint8_t prefix[PWI_FRAME_PREFIX], padding[PWI_FRAME_ALIGN];
    if (!raw_receive(raw, prefix, sizeof prefix)) return false;
    if (pwi_frame_read(prefix, capacity, frame_out) != PAWL_OK || frame_out->body_size > capacity) return false;
    if (!raw_receive(raw, fields, pwi_frame_fields(frame_out->kind))) return false;
    if (!raw_receive(raw, body, (size_t)frame_out->body_size)) return false;
    if (!raw_receive(raw, padding, pwi_frame_padding(frame_out->body_size))) return false;
  } while (frame_out->kind == PWI_FRAME_PING);
  return true;
}

bool raw_come_up(struct raw *raw) { return raw_come_up_as(raw, PWI_FRAME_VERSION); }

bool raw_come_up_as(struct raw *raw, uint16_t version) {
  struct pwi_frame frame;
  uint8_t fields[PWI_FRAME_FIELDS_MAX], body[4096];
  uint8_t offer[48] = {0};
  pwi_put_u32(offer, 1);
  if (!raw_open(raw, version, version)) return false;
  if (!raw_frame(raw, PWI_FRAME_HELLO, raw->challenge, 3, "raw", 3)) return false;
  if (!raw_next(raw, &frame, fields, body, sizeof body) || frame.kind != PWI_FRAME_HELLO) return false;
  if (!raw_frame(raw, PWI_FRAME_PLANE, offer, 0, NULL, 0)) return false;
  return raw_next(raw, &frame, fields, body, sizeof body) && frame.kind == PWI_FRAME_PLANE;
}
