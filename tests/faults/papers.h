/* Certificates, made on the spot: authorities, and nodes that they vouch for. */
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

/* Written to `folder` under `name`. An authority signs itself. */
void paper_make_authority(struct paper *paper, const char *folder, const char *name);

/* A node's, good for connections to the address `ip`, until `days` from now (negative: expired). */
void paper_make_node(struct paper *paper, const char *folder, const char *name, const struct paper *authority,
                     const char *ip, int days);
void paper_forget(struct paper *paper);

#endif
