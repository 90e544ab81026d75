/* Audit lines and their escaping. */
#include "protocol/audit.h"

#include <stdio.h>
#include <string.h>

const char *pwi_audit_escape(const char *from, char *text, size_t size) {
  static const char digits[] = "0123456789abcdef";
  size_t at = 0;
  text[at++] = '"';
  for (; *from && at + 6 < size; from++) { /* four for an escaped byte, the quote and the final zero */
    unsigned char byte = (unsigned char)*from;
    bool is_plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
    if (is_plain) {
      text[at++] = (char)byte;
      continue;
    }
    text[at++] = '\\';
    text[at++] = 'x';
    text[at++] = digits[byte >> 4];
    text[at++] = digits[byte & 15];
  }
  text[at++] = '"';
  text[at] = '\0';
  return text;
}

/* Escapes a word of a line. Names of certificates and addresses may contain anything that does not end a
 * word. */
static const char *word(const char *from, char *text, size_t size) {
  size_t at = 0;
  for (; *from && at + 1 < size; from++)
    text[at++] = *from > ' ' && *from <= '~' && *from != '"' && *from != '\\' ? *from : '?';
  text[at] = '\0';
  return text;
}

void pwi_audit(const struct pwi_auditor *auditor, const struct pwi_log *log, const struct pwi_audit_who *who,
               const char *verb, const char *object, pawl_status outcome) {
  char line[PWI_AUDIT_LINE_MAX], identity[PWI_AUDIT_OBJECT_MAX + 8], peer[PWI_AUDIT_OBJECT_MAX];
  char rights[PWI_RIGHTS_TEXT_MAX], escaped[PWI_AUDIT_OBJECT_MAX];
  if (!auditor->sink && !pwi_log_wants(PAWL_LOG_INFO)) return;
  snprintf(line, sizeof line, "verb=%s identity=%s peer=%s rights=%s object=%s outcome=%s", verb,
           word(who->identity[0] ? who->identity : "none", identity, sizeof identity),
           word(who->peer, peer, sizeof peer), pwi_rights_print(who->rights, rights),
           pwi_audit_escape(object, escaped, sizeof escaped), pawl_status_name(outcome));
  pwi_log(log, PAWL_LOG_INFO, "audit", "%s", line);
  if (auditor->sink) auditor->sink(auditor->context, log->node, line);
}
