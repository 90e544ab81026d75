#include "net/tcp/tls.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/memory.h"
#include "net/net.h"

#define RECORD_MAX 16384
#define RECORD_OVERHEAD 256
/* Encrypted bytes collected for one write, and read at once; small enough for the cache. */
#define GATHER (2 * (RECORD_MAX + RECORD_OVERHEAD))
#define RECORDS_MAX 16 /* records of one read; a record has up to 16 KiB */
#define OUT_MAX (8 * GATHER)
#define READ_AHEAD (2 * (RECORD_MAX + RECORD_OVERHEAD))
#define IDENTITY_PREFIX "pawl:"
#define IDENTITY_PREFIX_SIZE (sizeof IDENTITY_PREFIX - 1)

static const unsigned char suite[2] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */

struct pwi_tls_context {
  SSL_CTX *ssl;
  BIO_METHOD *bio_method;
  const struct pwi_keyring *keys;
};

struct pwi_tls {
  SSL *ssl;
  struct pwi_tls_context *context;
  int socket;
  unsigned char *out; /* encrypted and not yet written: [out_begin, out_end) */
  size_t out_begin, out_end, out_capacity;
  bool ended; /* the peer closed its side */
  bool broken;
  bool has_stopped_early; /* the last read ended after RECORDS_MAX records, and there may be more */
  char error[128];
  char peer[PWI_NET_IDENTITY_MAX];
};

/* The lowest layer of OpenSSL: reads go directly to the socket, writes into the output buffer. */

static int bottom_read(BIO *bio, char *into, int size) {
  struct pwi_tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  ssize_t moved;
  do moved = recv(tls->socket, into, (size_t)size, MSG_DONTWAIT);
  while (moved < 0 && errno == EINTR);
  if (moved > 0) return (int)moved;
  if (moved == 0) {
    tls->ended = true;
    return 0;
  }
  if (errno == EAGAIN)
    BIO_set_retry_read(bio);
  else
    tls->broken = true;
  return -1;
}

static bool make_room(struct pwi_tls *tls, size_t size) {
  if (tls->out_begin == tls->out_end) tls->out_begin = tls->out_end = 0;
  if (tls->out_capacity - tls->out_end >= size) return true;
  if (tls->out_begin > 0) {
    memmove(tls->out, tls->out + tls->out_begin, tls->out_end - tls->out_begin);
    tls->out_end -= tls->out_begin;
    tls->out_begin = 0;
    if (tls->out_capacity - tls->out_end >= size) return true;
  }
  size_t capacity = tls->out_capacity ? tls->out_capacity : 4096;
  while (capacity - tls->out_end < size) capacity *= 2;
  unsigned char *out = pwi_resize(tls->out, capacity);
  if (!out) return false;
  tls->out = out;
  tls->out_capacity = capacity;
  return true;
}

/* The library itself writes at most GATHER and one record at a time. More can only be answers of OpenSSL to
 * requests for new keys: a peer that sends requests but does not read should cost little. */
static int bottom_write(BIO *bio, const char *from, int size) {
  struct pwi_tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (tls->out_end - tls->out_begin + (size_t)size > OUT_MAX) {
    tls->broken = true;
    return -1;
  }
  if (!make_room(tls, (size_t)size)) return -1;
  memcpy(tls->out + tls->out_end, from, (size_t)size);
  tls->out_end += (size_t)size;
  return size;
}

static long bottom_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static int bottom_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

static BIO_METHOD *make_bottom(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "pawl");
  if (!method) return NULL;
  BIO_meth_set_create(method, bottom_create);
  BIO_meth_set_read(method, bottom_read);
  BIO_meth_set_write(method, bottom_write);
  BIO_meth_set_ctrl(method, bottom_control);
  return method;
}

/* Pre-shared keys (RFC 8446, 2.2). The identity is the public name of the key, by which the acceptor finds
 * its key. */

static SSL_SESSION *session_of(SSL *ssl, const struct pwi_key *key) {
  const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite);
  SSL_SESSION *session = SSL_SESSION_new();
  if (session && cipher && SSL_SESSION_set1_master_key(session, key->secret, sizeof key->secret) &&
      SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
    return session;
  SSL_SESSION_free(session);
  return NULL;
}

static void note_peer(struct pwi_tls *tls, const char *kind, const char *name) {
  BIO_snprintf(tls->peer, sizeof tls->peer, "%s:%s", kind, name);
}

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity_out, size_t *size_out,
                     SSL_SESSION **session_out) {
  (void)digest;
  struct pwi_tls *tls = SSL_get_app_data(ssl);
  static _Thread_local char identity[IDENTITY_PREFIX_SIZE + PWI_KEY_NAME_SIZE + 1];
  struct pwi_key key;
  if (!pwi_keyring_copy_first(tls->context->keys, &key)) return 0;
  SSL_SESSION *session = session_of(ssl, &key);
  OPENSSL_cleanse(key.secret, sizeof key.secret);
  if (!session) return 0;
  memcpy(identity, IDENTITY_PREFIX, IDENTITY_PREFIX_SIZE);
  memcpy(identity + IDENTITY_PREFIX_SIZE, key.name, PWI_KEY_NAME_SIZE + 1);
  *identity_out = (const unsigned char *)identity;
  *size_out = IDENTITY_PREFIX_SIZE + PWI_KEY_NAME_SIZE;
  *session_out = session;
  note_peer(tls, "key", key.name);
  return 1;
}

static int find_key(SSL *ssl, const unsigned char *identity, size_t size, SSL_SESSION **session_out) {
  struct pwi_tls *tls = SSL_get_app_data(ssl);
  *session_out = NULL; /* an unknown identity: the handshake continues, and fails for lack of a certificate */
  if (size <= IDENTITY_PREFIX_SIZE || memcmp(identity, IDENTITY_PREFIX, IDENTITY_PREFIX_SIZE) != 0) return 1;
  const char *name = (const char *)identity + IDENTITY_PREFIX_SIZE;
  struct pwi_key key;
  if (!pwi_keyring_copy(tls->context->keys, name, size - IDENTITY_PREFIX_SIZE, &key)) return 1;
  *session_out = session_of(ssl, &key);
  OPENSSL_cleanse(key.secret, sizeof key.secret);
  note_peer(tls, "key", key.name);
  return *session_out != NULL;
}

static bool load_certificates(SSL_CTX *ssl, const char *certificate, const char *private_key, const char *authority) {
  if (SSL_CTX_use_certificate_chain_file(ssl, certificate) != 1) return false;
  if (SSL_CTX_use_PrivateKey_file(ssl, private_key, SSL_FILETYPE_PEM) != 1) return false;
  if (SSL_CTX_check_private_key(ssl) != 1) return false;
  if (SSL_CTX_load_verify_file(ssl, authority) != 1) return false;
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  return true;
}

/* OpenSSL frees its memory when the process exits, even while threads use it. The first user of OpenSSL in a
 * process decides whether it does, so this call comes before any other. (If another library was first,
 * api/parking.c keeps our threads away from OpenSSL at exit.) */
__attribute__((constructor)) static void keep_until_the_end(void) {
  (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

pawl_status pwi_tls_context_create(const struct pwi_keyring *keys, const char *certificate, const char *private_key,
                                   const char *authority, struct pwi_tls_context **context_out, const char **why_out) {
  struct pwi_tls_context *context = pwi_alloc_zero(1, sizeof *context);
  if (!context) return PAWL_NO_MEMORY;
  context->keys = keys;
  context->ssl = SSL_CTX_new(TLS_method());
  context->bio_method = make_bottom();
  if (!context->ssl || !context->bio_method) {
    pwi_tls_context_destroy(context);
    return PAWL_NO_MEMORY;
  }
  SSL_CTX *ssl = context->ssl;
  SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ssl, 0);
  SSL_CTX_set_read_ahead(ssl, 1);
  SSL_CTX_set_default_read_buffer_len(ssl, READ_AHEAD);
  if (keys) {
    SSL_CTX_set_psk_use_session_callback(ssl, offer_key);
    SSL_CTX_set_psk_find_session_callback(ssl, find_key);
  } else if (!load_certificates(ssl, certificate, private_key, authority)) {
    *why_out = ERR_reason_error_string(ERR_get_error());
    if (!*why_out) *why_out = "the files cannot be read";
    ERR_clear_error();
    pwi_tls_context_destroy(context);
    return PAWL_LINK_KEY;
  }
  *context_out = context;
  return PAWL_OK;
}

void pwi_tls_context_destroy(struct pwi_tls_context *context) {
  if (!context) return;
  SSL_CTX_free(context->ssl);
  BIO_meth_free(context->bio_method);
  pwi_free(context);
}

pawl_status pwi_tls_create(struct pwi_tls_context *context, int socket, bool accepting, const char *host,
                           struct pwi_tls **tls_out) {
  struct pwi_tls *tls = pwi_alloc_zero(1, sizeof *tls);
  if (!tls) return PAWL_NO_MEMORY;
  tls->context = context;
  tls->socket = socket;
  tls->ssl = SSL_new(context->ssl);
  BIO *bio = BIO_new(context->bio_method);
  if (!tls->ssl || !bio) {
    BIO_free(bio);
    pwi_tls_destroy(tls);
    return PAWL_NO_MEMORY;
  }
  BIO_set_data(bio, tls);
  SSL_set_bio(tls->ssl, bio, bio);
  SSL_set_app_data(tls->ssl, tls);
  if (accepting)
    SSL_set_accept_state(tls->ssl);
  else
    SSL_set_connect_state(tls->ssl);
  if (!accepting && host && !context->keys) SSL_set1_host(tls->ssl, host);
  /* With keys no node has a certificate; an acceptor that presents one instead of knowing the key is
   * refused. */
  if (!accepting && context->keys) SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, NULL);
  *tls_out = tls;
  return PAWL_OK;
}

void pwi_tls_destroy(struct pwi_tls *tls) {
  if (!tls) return;
  SSL_free(tls->ssl);
  pwi_free(tls->out);
  pwi_free(tls);
}

/* True if the last alert of the peer refuses our identity. In TLS 1.3 it arrives after the handshake of this
 * side. */
static bool is_about_identity(int reason) {
  switch (reason - SSL_AD_REASON_OFFSET) {
  case SSL_AD_BAD_CERTIFICATE:
  case SSL_AD_UNSUPPORTED_CERTIFICATE:
  case SSL_AD_CERTIFICATE_REVOKED:
  case SSL_AD_CERTIFICATE_EXPIRED:
  case SSL_AD_CERTIFICATE_UNKNOWN:
  case SSL_AD_UNKNOWN_CA:
  case SSL_AD_ACCESS_DENIED:
  case SSL_AD_DECRYPT_ERROR:
  case SSL_AD_UNKNOWN_PSK_IDENTITY:
  case SSL_AD_CERTIFICATE_REQUIRED:
    return true;
  default:
    return false;
  }
}

/* Converts the result of OpenSSL to a status; PAWL_OK means that it only waits for the socket. */
static pawl_status judge(struct pwi_tls *tls, int result, bool handshaking) {
  int error = SSL_get_error(tls->ssl, result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return PAWL_OK;
  unsigned long code = ERR_get_error();
  const char *reason = code ? ERR_reason_error_string(code) : NULL;
  ERR_clear_error();
  BIO_snprintf(tls->error, sizeof tls->error, "%s", reason ? reason : "connection lost");
  if (tls->broken) return PAWL_LINK_RESET;
  if (error == SSL_ERROR_ZERO_RETURN || (tls->ended && error != SSL_ERROR_SSL)) return PAWL_LINK_CLOSED;
  int kind = ERR_GET_REASON(code);
  if (kind == SSL_R_WRONG_VERSION_NUMBER || kind == SSL_R_HTTP_REQUEST || kind == SSL_R_UNSUPPORTED_PROTOCOL ||
      kind == SSL_R_BAD_RECORD_TYPE || kind == SSL_R_UNEXPECTED_MESSAGE)
    return PAWL_LINK_PROTOCOL;
  return handshaking || is_about_identity(kind) ? PAWL_LINK_KEY : PAWL_LINK_PROTOCOL;
}

/* A name must be a single word: the authority chooses it, and must not be able to make two names of one. */
static bool is_name_byte(unsigned char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         (byte != '\0' && strchr("._-:/@*+=", byte));
}

static bool has_name(const struct pwi_tls *tls, const unsigned char *name, size_t size) {
  for (const char *at = tls->peer + sizeof "cert:" - 1; *at; at += *at == ',') {
    size_t here = strcspn(at, ",");
    if (here == size && memcmp(at, name, size) == 0) return true;
    at += here;
  }
  return false;
}

/* A name that does not fit, is a duplicate, or is not a word is omitted. */
static void add_name(struct pwi_tls *tls, const unsigned char *name, int size) {
  size_t at = strlen(tls->peer);
  if (size <= 0 || at + (size_t)size + 2 > sizeof tls->peer) return;
  for (int i = 0; i < size; i++)
    if (!is_name_byte(name[i])) return;
  if (has_name(tls, name, (size_t)size)) return;
  if (at > sizeof "cert:" - 1) tls->peer[at++] = ',';
  memcpy(tls->peer + at, name, (size_t)size);
  tls->peer[at + (size_t)size] = '\0';
}

static void add_string(struct pwi_tls *tls, const ASN1_STRING *text) {
  unsigned char *plain = NULL;
  int size = ASN1_STRING_to_UTF8(&plain, text);
  if (size > 0) add_name(tls, plain, size);
  OPENSSL_free(plain);
}

static void add_alternatives(struct pwi_tls *tls, X509 *certificate) {
  GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    int type;
    const ASN1_STRING *text = GENERAL_NAME_get0_value(name, &type);
    if (type == GEN_DNS || type == GEN_URI || type == GEN_EMAIL) add_string(tls, text);
  }
  GENERAL_NAMES_free(names);
}

/* The subject's common names first, then its alternative names. */
static void note_certificate(struct pwi_tls *tls) {
  X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
  if (!certificate) return;
  const X509_NAME *subject = X509_get_subject_name(certificate);
  note_peer(tls, "cert", "");
  for (int at = -1; (at = X509_NAME_get_index_by_NID((X509_NAME *)(uintptr_t)subject, NID_commonName, at)) >= 0;)
    add_string(tls, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  add_alternatives(tls, certificate);
}

/* The key is not needed after the handshake, so OpenSSL's copy of it is erased early. */
static void forget_key(struct pwi_tls *tls) {
  static const unsigned char nothing[PWI_KEY_SIZE];
  SSL_SESSION *session = SSL_get_session(tls->ssl);
  if (session) SSL_SESSION_set1_master_key(session, nothing, sizeof nothing);
}

pawl_status pwi_tls_handshake(struct pwi_tls *tls, bool *finished_out) {
  ERR_clear_error();
  int result = SSL_do_handshake(tls->ssl);
  bool empty;
  pawl_status flushed = pwi_tls_flush(tls, &empty); /* also after a failure, so that the peer gets the
                                                       alert */
  if (result == 1) {
    if (flushed != PAWL_OK) return flushed;
    if (tls->context->keys && !SSL_session_reused(tls->ssl)) { /* the handshake succeeded, but without the
                                                                  key */
      BIO_snprintf(tls->error, sizeof tls->error, "the peer did not use a key");
      return PAWL_LINK_KEY;
    }
    note_certificate(tls);
    if (tls->context->keys) forget_key(tls);
    *finished_out = true;
    return PAWL_OK;
  }
  pawl_status status = judge(tls, result, true);
  if (status == PAWL_OK) status = flushed;
  if (status == PAWL_OK) *finished_out = false;
  return status;
}

pawl_status pwi_tls_read(struct pwi_tls *tls, void *into, size_t size, size_t *moved_out) {
  size_t moved = 0;
  tls->has_stopped_early = false;
  for (int records = 0; moved < size && records < RECORDS_MAX; records++) {
    size_t step;
    ERR_clear_error();
    int result = SSL_read_ex(tls->ssl, (char *)into + moved, size - moved, &step);
    if (result == 1) {
      moved += step;
      continue;
    }
    pawl_status status = judge(tls, result, false);
    if (status != PAWL_OK && moved == 0) return status;
    *moved_out = moved;
    return PAWL_OK; /* the next call reports the failure, with nothing moved */
  }
  tls->has_stopped_early = moved < size;
  *moved_out = moved;
  return PAWL_OK;
}

pawl_status pwi_tls_write(struct pwi_tls *tls, const void *from, size_t size, size_t *moved_out) {
  size_t moved = 0;
  while (moved < size && tls->out_end - tls->out_begin < GATHER) {
    size_t step;
    ERR_clear_error();
    int result = SSL_write_ex(tls->ssl, (const char *)from + moved, size - moved, &step);
    if (result != 1) {
      pawl_status status = judge(tls, result, false);
      if (status != PAWL_OK) return status;
      break;
    }
    moved += step;
  }
  *moved_out = moved;
  return PAWL_OK;
}

pawl_status pwi_tls_flush(struct pwi_tls *tls, bool *empty_out) {
  while (tls->out_begin < tls->out_end) {
    ssize_t moved =
        send(tls->socket, tls->out + tls->out_begin, tls->out_end - tls->out_begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EAGAIN) {
      *empty_out = false;
      return PAWL_OK;
    }
    if (moved < 0) return PAWL_LINK_RESET;
    tls->out_begin += (size_t)moved;
  }
  *empty_out = true;
  return PAWL_OK;
}

bool pwi_tls_has_pending(const struct pwi_tls *tls) { return tls->has_stopped_early || SSL_has_pending(tls->ssl) == 1; }

const char *pwi_tls_error(const struct pwi_tls *tls) { return tls->error; }

const char *pwi_tls_peer(const struct pwi_tls *tls) { return tls->peer; }

pawl_status pwi_tls_export(struct pwi_tls *tls, const char *label, void *into, size_t size) {
  int made = SSL_export_keying_material(tls->ssl, into, size, label, strlen(label), NULL, 0, 0);
  return made == 1 ? PAWL_OK : PAWL_LINK_KEY;
}
