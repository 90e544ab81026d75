/* Who may look at the pages of an HTTP endpoint that other machines can reach: whoever shows a token, or a certificate.
 *
 * A token file has one token a line; blank lines and lines that begin with # are skipped. A token has at least
 * PWI_HTTP_TOKEN_MIN characters, none of them blank, and is no cluster key: it may travel in the clear. As a key file it
 * must be closed to everybody but its owner. Several tokens are accepted at once, so that they can be changed one by one.
 *
 * With certificates an endpoint speaks TLS wherever other machines reach it, and a client that shows a certificate of the
 * same authority needs no token.
 *
 * Threads: tokens may be read anew in one thread while others compare.
 */
#ifndef PWI_HOST_HTTP_HTTP_GUARD_H
#define PWI_HOST_HTTP_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#include "host/run/problem.h"

#define PWI_HTTP_TOKEN_MIN 16
#define PWI_HTTP_TOKEN_MAX 256
#define PWI_HTTP_TOKENS 16 /* in one file */

/* Everything may be NULL. The certificates are those of pawl_tcp_config: all three or none. */
struct pwi_http_guard_config {
  const char *token_file;
  const char *certificate, *private_key, *authority;
};

/* PEM texts for TLS. */
struct pwi_http_papers {
  char *certificate, *private_key, *authority;
};

struct pwi_http_guard;

/* Reads the files. Without any `*guard_out` is NULL. `problem` says which file is at fault, and what to do. */
PAWL_MUST_USE pawl_status pwi_http_guard_open(const struct pwi_http_guard_config *config,
                                              struct pwi_http_guard **guard_out, struct pwi_run_problem *problem);
void pwi_http_guard_close(struct pwi_http_guard *guard); /* secrets are overwritten; NULL is fine */

/* Reads the token file anew. On failure the tokens stay as they were. */
PAWL_MUST_USE pawl_status pwi_http_guard_reload(struct pwi_http_guard *guard, struct pwi_run_problem *problem);

bool pwi_http_guard_has_tokens(struct pwi_http_guard *guard);
const struct pwi_http_papers *pwi_http_guard_papers(const struct pwi_http_guard *guard); /* NULL: none */

/* `authorization` is the header of that name, NULL if there is none: "Bearer TOKEN". Takes as long for every token. */
bool pwi_http_guard_knows(struct pwi_http_guard *guard, const char *authorization);

#endif
