/* Those who are connected to an HTTP endpoint: how many may be, and for how long.
 *
 * An endpoint must answer a health check whatever others do to it. So nobody keeps a place that somebody else wants: when
 * all places are taken the newcomer gets one, and the connection that has waited for longest goes, of the address that has
 * most of them. A client that sends a whole request at once is served long before its turn to go comes.
 *
 * Besides, each connection has PWI_HTTP_REQUEST_SECONDS to send a whole request, however busily it trickles, and
 * PWI_HTTP_ANSWER_SECONDS to take the answer; then it is hung up on.
 *
 * Hanging up is a shutdown of the socket: whoever owns the connection notices, and closes it.
 *
 * Threads: any; a thread of the crowd's own watches the time while anybody is connected.
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

/* After everybody has left. NULL is fine. */
void pwi_http_crowd_close(struct pwi_http_crowd *crowd);

/* A connection has come; somebody may have to go for it. It waits for its first request. NULL: there is no place even so,
 * because those who were hung up on have not left yet; hang up. */
struct pwi_http_guest *pwi_http_crowd_enter(struct pwi_http_crowd *crowd, int socket, const struct sockaddr *from);

/* It has sent a request, and is being answered; it has taken the answer, and may send another. */
void pwi_http_guest_is_answered(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest);
void pwi_http_guest_is_done(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest);

/* Before its socket is closed. NULL is fine. */
void pwi_http_crowd_leave(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest);

#endif
