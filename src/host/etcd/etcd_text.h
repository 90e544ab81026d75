/* Formats requests to etcd and parses its answers: the JSON of its gateway (/v3/…, etcd 3.4 and later), as
 * pure functions.
 *
 * In that JSON keys and values are base64, whole numbers are strings of digits, and members with default
 * values (0, false, empty) are omitted. An error is {"error": …, "code": C, "message": …} with a gRPC
 * code; a stream such as lease/keepalive answers {"error": {"grpc_code": C, …}}. For a lease that has
 * expired the answer has no TTL.
 *
 * Replies come from the network: everything in them is checked before it is used.
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

/* --- addresses ------------------------------------------------------------------------------------------ */

#define PWI_ETCD_ENDPOINTS 16

/* etcd://host:port,host,…/prefix, or etcds:// for TLS. The default port is 2379, the default prefix
 * "pawl". */
struct pwi_etcd_place {
  char endpoints[PWI_ETCD_ENDPOINTS][280]; /* http://host:port */
  size_t count;
  bool is_secure;
  char prefix[PWI_PREFIX_MAX + 1]; /* without leading or trailing slash */
};

/* PAWL_INVALID if the text is malformed. */
PAWL_MUST_USE pawl_status pwi_etcd_place_parse(const char *text, struct pwi_etcd_place *place_out);

/* --- requests ------------------------------------------------------------------------------------------- */

enum pwi_etcd_ask { PWI_ETCD_TXN, PWI_ETCD_GRANT, PWI_ETCD_RENEW, PWI_ETCD_REVOKE };

const char *pwi_etcd_path(enum pwi_etcd_ask ask); /* path behind the endpoint */

/* Append the body of a request to `text`. Failures are recorded in the text's status. */
void pwi_etcd_write_txn(struct pwi_text *text, const struct pwi_meta_transaction *transaction);
void pwi_etcd_write_grant(struct pwi_text *text, int64_t ttl_ns);
void pwi_etcd_write_lease(struct pwi_text *text, uint64_t lease); /* RENEW, REVOKE */

/* --- answers -------------------------------------------------------------------------------------------- */

struct pwi_etcd_reply {
  pawl_status status; /* as in struct pwi_meta_call */
  bool is_passing;    /* the error may be temporary or specific to this member: retry */
  char message[256];  /* etcd's explanation, for display; may be empty */
  struct pwi_meta_answer answer;
  struct pwi_meta_pair *pairs; /* the pairs of `answer` */
  char *memory;                /* holds their keys and values */
};

/* Parses an answer with this HTTP code. The reply owns memory: free it with pwi_etcd_reply_fini. */
void pwi_etcd_read(enum pwi_etcd_ask ask, long code, const char *body, size_t size, struct pwi_etcd_reply *reply_out);
void pwi_etcd_reply_fini(struct pwi_etcd_reply *reply);

/* --- base64 --------------------------------------------------------------------------------------------- */

void pwi_base64_write(struct pwi_text *text, const void *bytes, size_t size);

/* Writes at most 3/4 of `length` bytes to `bytes_out`, and their number to `size_out`. PAWL_CORRUPT unless
 * the text is base64 with padding; no character is skipped. */
PAWL_MUST_USE pawl_status pwi_base64_read(const char *text, size_t length, void *bytes_out, size_t *size_out);

#endif
