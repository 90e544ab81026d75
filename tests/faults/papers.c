/* Makes certificates with OpenSSL. */
#include "papers.h"

#include <stdio.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define DAY (24L * 3600)

static void extend(X509 *certificate, int kind, const char *value) {
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
  kit_must(extension && X509_add_ext(certificate, extension, -1) == 1, "extend a certificate");
  X509_EXTENSION_free(extension);
}

static void save(const struct paper *paper) {
  FILE *file = fopen(paper->certificate_path, "we");
  kit_must(file && PEM_write_X509(file, paper->certificate) == 1, "write a certificate");
  fclose(file);
  file = fopen(paper->key_path, "we");
  kit_must(file && PEM_write_PrivateKey(file, paper->key, NULL, NULL, 0, NULL, NULL) == 1, "write a private key");
  fclose(file);
}

static void begin(struct paper *paper, const char *folder, const char *name, long from, long until) {
  static long serial;
  *paper = (struct paper){.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
  kit_must(paper->certificate && paper->key, "make a certificate");
  snprintf(paper->certificate_path, sizeof paper->certificate_path, "%s/%s.crt", folder, name);
  snprintf(paper->key_path, sizeof paper->key_path, "%s/%s.key", folder, name);
  X509 *certificate = paper->certificate;
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, paper->key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                             -1, 0);
}

static void sign(struct paper *paper, const struct paper *authority) {
  X509_set_issuer_name(paper->certificate, X509_get_subject_name(authority->certificate));
  kit_must(X509_sign(paper->certificate, authority->key, EVP_sha256()) > 0, "sign a certificate");
  save(paper);
}

void paper_make_authority(struct paper *paper, const char *folder, const char *name) {
  begin(paper, folder, name, -DAY, 30 * DAY);
  extend(paper->certificate, NID_basic_constraints, "critical,CA:TRUE");
  sign(paper, paper);
}

void paper_make_node(struct paper *paper, const char *folder, const char *name, const struct paper *authority,
                     const char *ip, int days) {
  char alternative[64];
  begin(paper, folder, name, -30 * DAY, days * DAY);
  snprintf(alternative, sizeof alternative, "IP:%s", ip);
  extend(paper->certificate, NID_subject_alt_name, alternative);
  sign(paper, authority);
}

void paper_forget(struct paper *paper) {
  X509_free(paper->certificate);
  EVP_PKEY_free(paper->key);
}
