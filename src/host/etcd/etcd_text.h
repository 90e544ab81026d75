/* What is said to etcd, and what it answers: the JSON of its gateway (/v3/…, etcd 3.4 and later), as pure functions.
 *
 * In that JSON keys and values are base64, whole numbers are strings of digits, and what has its default value (0, false,
 * nothing) is left out. An error is {"error": …, "code": C, "message": …} with a code of gRPC; from a stream, as
 * lease/keepalive is one, {"error": {"grpc_code": C, …}}. A lease that is gone is answered without a TTL.
 *
 * Replies are bytes from elsewhere: nothing in them is believed before it was looked at.
 */
#ifndef PWI_HOST_ETCD_ETCD_TEXT_H
#define PWI_HOST_ETCD_ETCD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "host/text.h"
#include "manager/leader/election.h"
#include "manager/leader/meta.h"

/* --- where ------------------------------------------------------------------------------------------------------------- */

#define PWI_ETCD_ENDPOINTS 16

/* etcd://host:port,host,…/prefix, or etcds:// for TLS. Ports are 2379 by default, the prefix is "pawl". */
struct pwi_etcd_place {
  char endpoints[PWI_ETCD_ENDPOINTS][280]; /* http://host:port */
  size_t count;
  bool is_secure;
  char prefix[PWI_PREFIX_MAX + 1]; /* without a slash at either end */
};

/* PAWL_INVALID if it cannot be read. */
PAWL_MUST_USE pawl_status pwi_etcd_place_parse(const char *text, struct pwi_etcd_place *place_out);

/* --- asking ------------------------------------------------------------------------------------------------------------ */

enum pwi_etcd_ask { PWI_ETCD_TXN, PWI_ETCD_GRANT, PWI_ETCD_RENEW, PWI_ETCD_REVOKE };

const char *pwi_etcd_path(enum pwi_etcd_ask ask); /* behind the endpoint */

/* The body of a request, added to `text`, whose status tells if there was memory. */
void pwi_etcd_write_txn(struct pwi_text *text, const struct pwi_meta_deal *deal);
void pwi_etcd_write_grant(struct pwi_text *text, int64_t ttl_ns);
void pwi_etcd_write_lease(struct pwi_text *text, uint64_t lease); /* RENEW, REVOKE */

/* --- answers ----------------------------------------------------------------------------------------------------------- */

struct pwi_etcd_reply {
  pawl_status status; /* as in struct pwi_meta_call */
  bool is_passing;    /* it may go better another time, or elsewhere: try again */
  char message[256];  /* what etcd said about it, for people; may be empty */
  struct pwi_meta_answer answer;
  struct pwi_meta_pair *pairs; /* of the answer */
  char *memory;                /* of their keys and values */
};

/* Of an answer with this HTTP code. The reply has memory of its own: end it with pwi_etcd_reply_fini. */
void pwi_etcd_read(enum pwi_etcd_ask ask, long code, const char *body, size_t size, struct pwi_etcd_reply *reply_out);
void pwi_etcd_reply_fini(struct pwi_etcd_reply *reply);

/* --- base64 ------------------------------------------------------------------------------------------------------------ */

void pwi_base64_write(struct pwi_text *text, const void *bytes, size_t size);

/* Writes at most 3/4 of `length` bytes to `bytes_out`, and how many to `size_out`. PAWL_CORRUPT for what is not base64 with
 * its padding; nothing is skipped. */
PAWL_MUST_USE pawl_status pwi_base64_read(const char *text, size_t length, void *bytes_out, size_t *size_out);

#endif
