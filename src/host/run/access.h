/* Who may do what in this process, and reading that anew: from the limits in a key file (net/key.h) and in a file of rights
 * for certificates to the rights that roles ask for.
 *
 * RIGHTS FOR CERTIFICATES. A line has a name, as it stands in a certificate (its subject's common name, or a DNS name, URI or
 * mail address among its alternative names), and limits as behind a key:
 *
 *   ads-trainer     space=ads memory=4G
 *   dashboard       read-only
 *   ops.example.org operator
 *   node-1.pawl
 *   *               none
 *
 * The first line counts that names one of the certificate's names, `*` being anybody's. `none` lets nobody in, and so does a
 * file that does not name them. Blank lines and lines that begin with # are skipped. The file is no secret, but nobody else
 * may write to it.
 *
 * Threads: read anew in one thread while others ask.
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
  struct pwi_keyring *keys;     /* that the net uses; borrowed. NULL: none */
  struct pwi_key_source source; /* where they come from, to read them anew; nothing: they stay as they are */
  const char *rights_file;      /* NULL: every certificate that the authority signed may do everything */
  bool is_server;               /* the first key must have no limits */
};

/* Strings are copied. `problem` says which file is at fault, and what to do. */
PAWL_MUST_USE pawl_status pwi_run_access_open(const struct pwi_run_access_config *config,
                                              struct pwi_run_access **access_out, struct pwi_run_problem *problem);
void pwi_run_access_close(struct pwi_run_access *access); /* NULL is fine */

/* Reads the files anew: all of them are good, or everything stays as it was. Then have the roles review their links. */
PAWL_MUST_USE pawl_status pwi_run_access_reload(struct pwi_run_access *access, struct pwi_run_problem *problem);

/* A pwi_rights_of; the context is the access. "key:NAME" has what the limits of that key leave; "cert:NAME,…" what the file of
 * rights leaves. Who is not listed is nobody. Every other identity ("user:…", "") may do everything: how its link came up was
 * enough. */
struct pwi_rights pwi_run_access_rights(void *access, const char *identity);

/* True if the first key, the one that a node shows when it connects, has limits. */
bool pwi_run_access_is_limited(const struct pwi_keyring *keys);

#endif
