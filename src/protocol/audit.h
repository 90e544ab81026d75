/* The audit log: one line for each accepted link and each order, with identity, address, rights, object and
 * outcome.
 *
 *   verb=DELETE identity=key:87c1a3ed5ad90c13 peer=tcp://10.0.0.7:41844 rights=write,space=ads object="ads/w"
 *     outcome=OK
 *
 * Lines go to the log (`audit`, level info) and to a sink if one is set. Everything that came from outside is
 * escaped: an entry is one line of printable ASCII, whatever name a client gave its vector. It contains no
 * secrets: keys are named by their hash. (The example is one line.)
 */
#ifndef PWI_PROTOCOL_AUDIT_H
#define PWI_PROTOCOL_AUDIT_H

#include <stddef.h>

#include <pawl/status.h>

#include "base/log.h"
#include "protocol/rights.h"

#define PWI_AUDIT_LINE_MAX 1536
#define PWI_AUDIT_OBJECT_MAX 256 /* maximum characters of an escaped object; a longer one is truncated */

/* Receives a line without its newline, valid during the call. */
typedef void (*pwi_audit_sink)(void *context, const char *node, const char *line);

struct pwi_auditor {
  pwi_audit_sink sink; /* NULL: the log only */
  void *context;
};

/* The peer that gave the order, from its link. */
struct pwi_audit_who {
  const char *identity; /* "key:…", "cert:…", "user:…"; "" for an unencrypted link */
  const char *peer;     /* address */
  const struct pwi_rights *rights;
};

void pwi_audit(const struct pwi_auditor *auditor, const struct pwi_log *log, const struct pwi_audit_who *who,
               const char *verb, const char *object, pawl_status outcome);

/* Writes `from` in quotes, with \xNN for everything except printable ASCII, and for quotes and backslashes.
 * Returns `text`. */
const char *pwi_audit_escape(const char *from, char *text, size_t size);

#endif
