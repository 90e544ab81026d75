/* TLS with certificates, which are made here with OpenSSL. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/testing.h"
#include "net/tcp/tls_testing.h"

static char folder[] = "/tmp/pawl-tls-XXXXXX";

/* An authority, or a node whose certificate it signed. */
struct identity {
  EVP_PKEY *key;
  X509 *certificate;
  char certificate_file[64], key_file[64];
};

static struct identity authority, stranger, node_a, node_b, foreign;

static void add_extension(X509 *certificate, int kind, const char *value) {
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
  assert_non_null(extension);
  assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
  X509_EXTENSION_free(extension);
}

static void write_pem(struct identity *identity, const char *name) {
  snprintf(identity->certificate_file, sizeof identity->certificate_file, "%s/%s.crt", folder, name);
  snprintf(identity->key_file, sizeof identity->key_file, "%s/%s.key", folder, name);
  FILE *file = fopen(identity->certificate_file, "w");
  assert_non_null(file);
  assert_int_equal(PEM_write_X509(file, identity->certificate), 1);
  fclose(file);
  file = fopen(identity->key_file, "w");
  assert_non_null(file);
  assert_int_equal(PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL), 1);
  fclose(file);
}

/* `by` signs it; NULL: it signs itself, and is an authority. */
static void make_identity(struct identity *identity, const char *name, const struct identity *by) {
  static long serial = 1;
  char names[80];
  identity->key = EVP_EC_gen("P-256");
  X509 *certificate = identity->certificate = X509_new();
  assert_true(identity->key && certificate);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, identity->key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                             -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(by ? by->certificate : certificate));
  add_extension(certificate, NID_basic_constraints, by ? "CA:FALSE" : "critical,CA:TRUE");
  snprintf(names, sizeof names, "DNS:%s", name);
  if (by) add_extension(certificate, NID_subject_alt_name, names);
  assert_true(X509_sign(certificate, by ? by->key : identity->key, EVP_sha256()) > 0);
  write_pem(identity, name);
}

static int make_identities(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  make_identity(&authority, "authority", NULL);
  make_identity(&stranger, "stranger", NULL);
  make_identity(&node_a, "node-a", &authority);
  make_identity(&node_b, "node-b", &authority);
  make_identity(&foreign, "node-x", &stranger);
  return 0;
}

static int remove_identities(void **state) {
  (void)state;
  struct identity *all[] = {&authority, &stranger, &node_a, &node_b, &foreign};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    unlink(all[i]->certificate_file);
    unlink(all[i]->key_file);
    X509_free(all[i]->certificate);
    EVP_PKEY_free(all[i]->key);
  }
  return rmdir(folder);
}

static void use_certificate(struct end *end, const struct identity *own, const struct identity *trusted) {
  const char *why = NULL;
  assert_int_equal(pwi_tls_context_create(NULL, own->certificate_file, own->key_file, trusted->certificate_file,
                                          &end->context, &why),
                   PAWL_OK);
}

static void test_certificates_of_one_authority_let_both_in(void **state) {
  (void)state;
  use_certificate(&connector, &node_a, &authority);
  use_certificate(&acceptor, &node_b, &authority);
  join_ends("node-b");
  assert_joined();
  write_all(&connector, "hello", 5);
  assert_reads(&acceptor, "hello");
  assert_string_equal(pwi_tls_peer(connector.tls), "cert:node-b");
  assert_string_equal(pwi_tls_peer(acceptor.tls), "cert:node-a");
}

static void test_a_certificate_is_good_for_its_own_host_only(void **state) {
  (void)state;
  use_certificate(&connector, &node_a, &authority);
  use_certificate(&acceptor, &node_b, &authority);
  join_ends("node-c");
  shake();
  assert_int_equal(connector.status, PAWL_LINK_KEY);
  assert_false(connector.finished);
  assert_int_equal(acceptor.status, PAWL_LINK_KEY);
}

static void test_an_acceptor_of_another_authority_is_refused(void **state) {
  (void)state;
  use_certificate(&connector, &node_a, &authority);
  use_certificate(&acceptor, &foreign, &authority);
  join_ends("node-x");
  shake();
  assert_int_equal(connector.status, PAWL_LINK_KEY);
  assert_int_equal(acceptor.status, PAWL_LINK_KEY);
}

/* The connector has finished its handshake by then, and gets the error when it reads: PAWL_LINK_KEY, not a
 * protocol error. */
static void test_a_connector_of_another_authority_is_refused(void **state) {
  (void)state;
  use_certificate(&connector, &foreign, &authority);
  use_certificate(&acceptor, &node_b, &authority);
  join_ends("node-b");
  shake();
  assert_int_equal(acceptor.status, PAWL_LINK_KEY);
  assert_false(acceptor.finished);
  assert_true(connector.finished);
  assert_int_equal(read_to_the_end(&connector), PAWL_LINK_KEY);
}

static void test_a_key_does_not_replace_a_certificate(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_certificate(&acceptor, &node_b, &authority);
  join_ends("node-b");
  shake();
  assert_false(acceptor.finished);
  assert_int_equal(acceptor.status, PAWL_LINK_KEY);
}

static void test_files_that_are_no_certificates_are_refused(void **state) {
  (void)state;
  struct pwi_tls_context *context = NULL;
  const char *why = NULL;
  const char *crt = node_a.certificate_file, *key = node_a.key_file, *ca = authority.certificate_file;
  const char *wrong[][3] = {
      {"/nonexistent", key, ca}, {crt, "/nonexistent", ca},  {crt, key, "/nonexistent"}, {key, key, ca}, {crt, crt, ca},
      {crt, key, key},           {crt, node_b.key_file, ca}, /* not the key of this certificate */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    why = NULL;
    pawl_status status = pwi_tls_context_create(NULL, wrong[i][0], wrong[i][1], wrong[i][2], &context, &why);
    assert_int_equal(status, PAWL_LINK_KEY);
    assert_null(context);
    assert_true(why && strlen(why) > 0);
  }
}

/* An impostor in place of a listening node, with a self-made certificate, that requires nothing from
 * clients. */
static void test_a_certificate_is_no_substitute_for_the_key(void **state) {
  (void)state;
  int sockets[2];
  use_keys(&connector, KEY_A, NULL, NULL);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  connector.socket = sockets[0];
  acceptor.socket = sockets[1];
  assert_int_equal(pwi_tls_create(connector.context, connector.socket, false, NULL, &connector.tls), PAWL_OK);
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  assert_non_null(context);
  assert_int_equal(SSL_CTX_use_certificate_chain_file(context, stranger.certificate_file), 1);
  assert_int_equal(SSL_CTX_use_PrivateKey_file(context, stranger.key_file, SSL_FILETYPE_PEM), 1);
  SSL *ssl = SSL_new(context);
  SSL_set_fd(ssl, acceptor.socket);
  SSL_set_accept_state(ssl);
  for (int i = 0; i < ROUNDS && connector.status == PAWL_OK && !connector.finished; i++) {
    shake_one(&connector);
    SSL_do_handshake(ssl);
  }
  assert_int_equal(connector.status, PAWL_LINK_KEY);
  assert_false(connector.finished);
  SSL_free(ssl);
  SSL_CTX_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_certificate_is_no_substitute_for_the_key),  TEST(test_certificates_of_one_authority_let_both_in),
      TEST(test_a_certificate_is_good_for_its_own_host_only), TEST(test_an_acceptor_of_another_authority_is_refused),
      TEST(test_a_connector_of_another_authority_is_refused), TEST(test_a_key_does_not_replace_a_certificate),
      TEST(test_files_that_are_no_certificates_are_refused),
  };
  return cmocka_run_group_tests(tests, make_identities, remove_identities);
}
