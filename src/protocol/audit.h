/* A line for each link that was accepted, and each order that was given: who, from where, with which rights, what, and what
 * came of it.
 *
 *   verb=DELETE identity=key:87c1a3ed5ad90c13 peer=tcp://10.0.0.7:41844 rights=write,space=ads object="ads/w" outcome=OK
 *
 * Lines go to the log (`audit`, level info), and to a sink besides if there is one. Everything that came from outside is
 * escaped: a line is one line of printable ASCII, whatever a client called its vector. Nothing secret is in it: keys are
 * named by their hash.
 */
#ifndef PWI_PROTOCOL_AUDIT_H
#define PWI_PROTOCOL_AUDIT_H

#include <stddef.h>

#include <pawl/status.h>

#include "base/log.h"
#include "protocol/rights.h"

#define PWI_AUDIT_LINE_MAX 1536
#define PWI_AUDIT_OBJECT_MAX 256 /* characters of an object, escaped; a longer one is cut */

/* A line without its end, valid during the call. */
typedef void (*pwi_audit_sink)(void *context, const char *node, const char *line);

struct pwi_auditor {
  pwi_audit_sink sink; /* NULL: the log alone */
  void *context;
};

/* Who does it, of the peer's link. */
struct pwi_audit_who {
  const char *identity; /* "key:…", "cert:…", "user:…"; "" for a plain link */
  const char *peer;     /* address */
  const struct pwi_rights *rights;
};

void pwi_audit(const struct pwi_auditor *auditor, const struct pwi_log *log, const struct pwi_audit_who *who,
               const char *verb, const char *object, pawl_status outcome);

/* Writes `from` between quotes, with \xNN for all but printable ASCII, quotes and backslashes. Returns `text`. */
const char *pwi_audit_escape(const char *from, char *text, size_t size);

#endif
