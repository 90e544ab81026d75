/* Decides who may see the pages of an HTTP endpoint that other machines can reach: clients with a token or
 * a certificate.
 *
 * A token file has one token per line; blank lines and lines that begin with # are skipped. A token has at
 * least PWI_HTTP_TOKEN_MIN characters without blanks. It must not be a cluster key, because it may travel
 * unencrypted. Like a key file, a token file must be inaccessible to everybody but its owner. Several
 * tokens are accepted at once, so that they can be replaced one by one.
 *
 * With certificates an endpoint that other machines can reach speaks TLS, and a client that presents a
 * certificate of the same authority needs no token.
 *
 * Threads: one thread may reload tokens while others compare.
 */
#ifndef PWI_HOST_HTTP_HTTP_GUARD_H
#define PWI_HOST_HTTP_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#include "host/run/problem.h"

#define PWI_HTTP_TOKEN_MIN 16
#define PWI_HTTP_TOKEN_MAX 256
#define PWI_HTTP_TOKENS 16 /* most tokens in one file */

/* Every field may be NULL. The certificates are those of pawl_tcp_config: all three or none. */
struct pwi_http_guard_config {
  const char *token_file;
  const char *certificate, *private_key, *authority;
};

/* PEM texts for TLS. */
struct pwi_http_papers {
  char *certificate, *private_key, *authority;
};

struct pwi_http_guard;

/* Reads the files. If none is given `*guard_out` is NULL. On failure `problem` names the file and what to
 * do. */
PAWL_MUST_USE pawl_status pwi_http_guard_open(const struct pwi_http_guard_config *config,
                                              struct pwi_http_guard **guard_out, struct pwi_run_problem *problem);
void pwi_http_guard_close(struct pwi_http_guard *guard); /* overwrites secrets; NULL is fine */

/* Reads the token file again. On failure the tokens stay as they were. */
PAWL_MUST_USE pawl_status pwi_http_guard_reload(struct pwi_http_guard *guard, struct pwi_run_problem *problem);

bool pwi_http_guard_has_tokens(struct pwi_http_guard *guard);
const struct pwi_http_papers *pwi_http_guard_papers(const struct pwi_http_guard *guard); /* NULL: none */

/* Whether the header "Authorization: Bearer TOKEN" carries a valid token; `authorization` is its value,
 * NULL if there is none. Takes the same time for every token. */
bool pwi_http_guard_knows(struct pwi_http_guard *guard, const char *authorization);

#endif
