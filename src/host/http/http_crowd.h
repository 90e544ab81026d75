/* The connections of an HTTP endpoint: limits their number and duration.
 *
 * An endpoint must answer a health check under any load, so no client can keep a place that another one
 * needs. When all places are taken a new connection gets one; the endpoint then closes a connection of the
 * address that has the most: one that has had an answer, or else the one that has waited longest. A client that
 * sends a complete request at once is served long before that.
 *
 * In addition, each connection has PWI_HTTP_REQUEST_SECONDS to send a complete request, however slowly it
 * trickles, and PWI_HTTP_ANSWER_SECONDS to read the answer; then it is closed.
 *
 * A connection is closed by a shutdown of its socket; the owner of the connection notices and frees it.
 *
 * Threads: any; the crowd has a thread of its own that watches the time while there are connections.
 */
#ifndef PWI_HOST_HTTP_HTTP_CROWD_H
#define PWI_HOST_HTTP_HTTP_CROWD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <pawl/status.h>

#define PWI_HTTP_CONNECTIONS 32 /* places */
#define PWI_HTTP_REQUEST_SECONDS 5
#define PWI_HTTP_ANSWER_SECONDS 20

struct pwi_http_crowd;
struct pwi_http_guest; /* one connection */

/* PAWL_NO_MEMORY, PAWL_NODE_LIMIT (no thread). */
PAWL_MUST_USE pawl_status pwi_http_crowd_open(struct pwi_http_crowd **crowd_out);

/* Call it after all connections have left. NULL is fine. */
void pwi_http_crowd_close(struct pwi_http_crowd *crowd);

/* Adds a connection, which may close another one. It waits for its first request. NULL: no place is free,
 * because closed connections have not left yet; the caller must close this one. */
struct pwi_http_guest *pwi_http_crowd_enter(struct pwi_http_crowd *crowd, int socket, const struct sockaddr *from);

/* The connection has sent a request and is being answered; it has read the answer, and may send another
 * request. */
void pwi_http_guest_is_answered(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest);
void pwi_http_guest_is_done(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest);

/* Call it before the socket is closed. NULL is fine. */
void pwi_http_crowd_leave(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest);

#endif
