/* Certificates made for a test: authorities, and nodes that they certify. */
#ifndef PWI_TESTS_FAULTS_PAPERS_H
#define PWI_TESTS_FAULTS_PAPERS_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "kit.h"

struct paper {
  X509 *certificate;
  EVP_PKEY *key;
  char certificate_path[128]; /* the same as files */
  char key_path[128];
};

/* Makes an authority, which signs itself, and writes it to `folder` under `name`. */
void paper_make_authority(struct paper *paper, const char *folder, const char *name);

/* Makes a node's certificate for the address `ip`, valid until `days` from now (negative: expired). */
void paper_make_node(struct paper *paper, const char *folder, const char *name, const struct paper *authority,
                     const char *ip, int days);
void paper_forget(struct paper *paper);

#endif
