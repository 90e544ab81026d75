/* The rights of peers in this process, and reloading them: turns the limits in a key file (net/key.h) and
 * in a rights file for certificates into the rights that roles ask for.
 *
 * RIGHTS FOR CERTIFICATES. A line has a name, as in a certificate (its subject's common name, or a DNS
 * name, URI or mail address among its alternative names), and limits as after a key:
 *
 *   ads-trainer     space=ads memory=4G
 *   dashboard       read-only
 *   ops.example.org operator
 *   node-1.pawl
 *   *               none
 *
 * The first line that names one of the certificate's names counts; `*` matches every certificate. `none`
 * refuses access, and a certificate without a matching line is refused, too. Blank lines and lines that
 * begin with # are skipped. The file is not secret, but must not be writable by others.
 *
 * Threads: one thread may reload while others ask.
 */
#ifndef PWI_HOST_RUN_ACCESS_H
#define PWI_HOST_RUN_ACCESS_H

#include <stdbool.h>

#include "host/key_source.h"
#include "host/run/problem.h"
#include "net/key.h"
#include "protocol/rights.h"

struct pwi_run_access;

struct pwi_run_access_config {
  struct pwi_keyring *keys;     /* keys of the net; borrowed. NULL: none */
  struct pwi_key_source source; /* where to reload keys from; empty: keys are not reloaded */
  const char *rights_file;      /* NULL: every certificate that the authority signed has all rights */
  bool is_server;               /* requires that the first key has no limits */
};

/* Copies the strings. On failure `problem` names the file and what to do. */
PAWL_MUST_USE pawl_status pwi_run_access_open(const struct pwi_run_access_config *config,
                                              struct pwi_run_access **access_out, struct pwi_run_problem *problem);
void pwi_run_access_close(struct pwi_run_access *access); /* NULL is fine */

/* Reads the files again. If one of them has an error, everything stays as it was. After success have the
 * roles review their links. */
PAWL_MUST_USE pawl_status pwi_run_access_reload(struct pwi_run_access *access, struct pwi_run_problem *problem);

/* A pwi_rights_of whose context is the access. "key:NAME" has the rights that the limits of that key
 * leave; "cert:NAME,…" those that the rights file leaves. A name that is not listed has no rights. Every
 * other identity ("user:…", "") has all rights: the way in which its link was established is authorisation
 * enough. */
struct pwi_rights pwi_run_access_rights(void *access, const char *identity);

/* Whether the first key, which a node presents when it connects, has limits. */
bool pwi_run_access_is_limited(const struct pwi_keyring *keys);

#endif
