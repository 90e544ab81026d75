/* TLS 1.3 on a non-blocking socket, by OpenSSL.
 *
 * Records are gathered: many are encrypted into one buffer and written with one system call, and OpenSSL reads ahead as
 * many as the socket has. That is what makes it fast; the cryptography itself is OpenSSL's.
 */
#ifndef PWI_NET_TCP_TLS_H
#define PWI_NET_TCP_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#include "net/key.h"

struct pwi_tls_context; /* keys or certificates; one per net */
struct pwi_tls;         /* one connection */

/* Keys (borrowed) or certificate files. PAWL_LINK_KEY if OpenSSL does not take them; `*why_out` is then its reason. */
pawl_status pwi_tls_context_create(const struct pwi_keyring *keys, const char *certificate, const char *private_key,
                                   const char *authority, struct pwi_tls_context **context_out, const char **why_out);
void pwi_tls_context_destroy(struct pwi_tls_context *context);

/* Speak TLS on `socket`, which stays the caller's. `host` is who the certificate must be made out to; NULL: whoever the
 * authority signed. PAWL_NO_MEMORY. */
pawl_status pwi_tls_create(struct pwi_tls_context *context, int socket, bool accepting, const char *host,
                           struct pwi_tls **tls_out);
void pwi_tls_destroy(struct pwi_tls *tls);

/* All of these move what they can without blocking and return PAWL_OK; what was moved is in the output, 0 if the socket
 * has nothing or takes nothing now. PAWL_LINK_CLOSED: the peer ended the connection properly or not; PAWL_LINK_RESET,
 * PAWL_LINK_KEY: the handshake failed; PAWL_LINK_PROTOCOL: this is not TLS; PAWL_NO_MEMORY. */
pawl_status pwi_tls_handshake(struct pwi_tls *tls, bool *finished_out);
pawl_status pwi_tls_read(struct pwi_tls *tls, void *into, size_t size, size_t *moved_out);
pawl_status pwi_tls_write(struct pwi_tls *tls, const void *from, size_t size, size_t *moved_out);

/* Write out what is encrypted. `*empty_out` is false while the socket takes no more. */
pawl_status pwi_tls_flush(struct pwi_tls *tls, bool *empty_out);

/* True if bytes were read from the socket that pwi_tls_read has not handed out: the socket will not announce them. */
bool pwi_tls_has_pending(const struct pwi_tls *tls);

/* Bytes that both ends of this connection can make, and nobody else (RFC 8446, 7.5). PAWL_LINK_KEY. */
pawl_status pwi_tls_export(struct pwi_tls *tls, const char *label, void *into, size_t size);

/* For the log: why the last call failed, and who the peer is ("key:" and the name of its key, or "cert:" and
 * all names of its certificate with commas between them). */
const char *pwi_tls_error(const struct pwi_tls *tls);
const char *pwi_tls_peer(const struct pwi_tls *tls);

#endif
