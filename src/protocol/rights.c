/* Checks of rights, and their text form. */
#include "protocol/rights.h"

#include <stdio.h>

#include "wire/hello.h"

bool pwi_rights_are_full(const struct pwi_rights *rights) {
  return rights->write && !rights->is_nobody && rights->space[0] == '\0';
}

bool pwi_rights_may_operate(const struct pwi_rights *rights) {
  return pwi_rights_are_full(rights) || (rights->is_operator && !rights->is_nobody && rights->space[0] == '\0');
}

bool pwi_rights_reach(const struct pwi_rights *rights, const char *name) {
  return !rights->is_nobody && (rights->space[0] == '\0' || pwi_name_is_in(name, rights->space));
}

bool pwi_rights_may_read(const struct pwi_rights *rights, const char *name) {
  return !rights->is_operator && pwi_rights_reach(rights, name);
}

bool pwi_rights_may_change(const struct pwi_rights *rights, const char *name) {
  return rights->write && pwi_rights_reach(rights, name);
}

bool pwi_rights_may_delete(const struct pwi_rights *rights, const char *name) {
  return (rights->write || rights->is_operator) && pwi_rights_reach(rights, name);
}

uint8_t pwi_rights_priority(const struct pwi_rights *rights, uint8_t stated) {
  uint8_t priority = stated ? stated : PWI_PRIORITY_USUAL;
  return rights->priority != 0 && priority > rights->priority ? (uint8_t)rights->priority : priority;
}

pawl_status pwi_rights_greet(const struct pwi_rights *rights, uint8_t stated, const char *peer, const char *identity,
                             const struct pwi_log *log, uint8_t *priority_out) {
  if (stated > PWI_PRIORITY_HIGHEST) {
    pwi_log(log, PAWL_LOG_WARN, "priority.unknown", "peer=%s priority=%u why='priorities are %d to %d'", peer, stated,
            PWI_PRIORITY_LOWEST, PWI_PRIORITY_HIGHEST);
    return PAWL_UNSUPPORTED;
  }
  *priority_out = pwi_rights_priority(rights, stated);
  if (*priority_out < stated)
    pwi_log(log, PAWL_LOG_WARN, "priority.limited", "peer=%s identity=%s priority=%u limit=%u", peer, identity, stated,
            *priority_out);
  return PAWL_OK;
}

static size_t add_amount(char *text, size_t at, const char *name, uint64_t amount) {
  if (amount == 0) return at;
  return at + (size_t)snprintf(text + at, PWI_RIGHTS_TEXT_MAX - at, ",%s=%llu", name, (unsigned long long)amount);
}

const char *pwi_rights_print(const struct pwi_rights *rights, char text[PWI_RIGHTS_TEXT_MAX]) {
  const char *what = rights->is_nobody     ? "none"
                     : rights->is_operator ? "operator"
                     : !rights->write      ? "read-only"
                     : rights->space[0]    ? "write"
                                           : "all";
  size_t at =
      (size_t)snprintf(text, PWI_RIGHTS_TEXT_MAX, "%s%s%s", what, rights->space[0] ? ",space=" : "", rights->space);
  at = add_amount(text, at, "memory", rights->memory);
  at = add_amount(text, at, "rate", rights->rate);
  at = add_amount(text, at, "connections", rights->connections);
  add_amount(text, at, "priority", rights->priority);
  return text;
}
