/* TLS 1.3 on a non-blocking socket, by OpenSSL.
 *
 * For speed, many records are encrypted into one buffer and written with one system call, and OpenSSL reads
 * ahead as much as the socket has. OpenSSL does all the cryptography.
 */
#ifndef PWI_NET_TCP_TLS_H
#define PWI_NET_TCP_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#include "net/key.h"

struct pwi_tls_context; /* keys or certificates; one per net */
struct pwi_tls;         /* one connection */

/* Creates a context from keys (borrowed) or certificate files. PAWL_LINK_KEY if OpenSSL refuses them;
 * `*why_out` is the reason. */
pawl_status pwi_tls_context_create(const struct pwi_keyring *keys, const char *certificate, const char *private_key,
                                   const char *authority, struct pwi_tls_context **context_out, const char **why_out);
void pwi_tls_context_destroy(struct pwi_tls_context *context);

/* Starts TLS on `socket`, which still belongs to the caller. The certificate of the peer must be valid for
 * `host`; NULL accepts any certificate that the authority signed. PAWL_NO_MEMORY. */
pawl_status pwi_tls_create(struct pwi_tls_context *context, int socket, bool accepting, const char *host,
                           struct pwi_tls **tls_out);
void pwi_tls_destroy(struct pwi_tls *tls);

/* All of these functions move as much data as possible without blocking and return PAWL_OK. The output is the
 * number of bytes moved, 0 if the socket is not ready. PAWL_LINK_CLOSED: the peer ended the connection;
 * PAWL_LINK_RESET, PAWL_LINK_KEY: the handshake failed; PAWL_LINK_PROTOCOL: not TLS; PAWL_NO_MEMORY. */
pawl_status pwi_tls_handshake(struct pwi_tls *tls, bool *finished_out);
pawl_status pwi_tls_read(struct pwi_tls *tls, void *into, size_t size, size_t *moved_out);
pawl_status pwi_tls_write(struct pwi_tls *tls, const void *from, size_t size, size_t *moved_out);

/* Writes encrypted data to the socket. `*empty_out` is false while the socket accepts no more. */
pawl_status pwi_tls_flush(struct pwi_tls *tls, bool *empty_out);

/* True if pwi_tls_read may have more bytes, which the socket will not report as readable: they were read from the
 * socket before, or the last call returned early so that other links have their turn. */
bool pwi_tls_has_pending(const struct pwi_tls *tls);

/* Exports bytes that only the two ends of this connection can compute (RFC 8446, 7.5). PAWL_LINK_KEY. */
pawl_status pwi_tls_export(struct pwi_tls *tls, const char *label, void *into, size_t size);

/* For the log: the reason why the last call failed, and the identity of the peer ("key:" and the name of its
 * key, or "cert:" and all names of its certificate, separated by commas). */
const char *pwi_tls_error(const struct pwi_tls *tls);
const char *pwi_tls_peer(const struct pwi_tls *tls);

#endif
