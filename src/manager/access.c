/* Rights of links, quotas of connections, and the audit. */
#include <stdio.h>
#include <string.h>

#include "manager/inside.h"

static struct pwi_rights rights_of(const struct pwi_manager *manager, const char *identity) {
  if (!manager->config.rights) return (struct pwi_rights){.write = true};
  return manager->config.rights(manager->config.rights_context, identity);
}

/* --- the audit ------------------------------------------------------------------------------------------ */

void pwi_manager_audit(const struct pwi_manager *manager, const struct peer_identity *who, const char *verb,
                       const char *object, pawl_status outcome) {
  struct pwi_audit_who named = {.identity = who->identity, .peer = who->address, .rights = &who->rights};
  pwi_audit(&manager->config.auditor, manager->config.log, &named, verb, object, outcome);
}

static const char *ask_name(uint64_t what) {
  switch (what) {
#define NAME(name, number, text)                                                                                       \
  case (number):                                                                                                       \
    return #name;
    PWI_ASK_MAP(NAME)
#undef NAME
  default:
    return "UNKNOWN";
  }
}

/* SYNC is not audited: clients send it without an order of their program. */
void pwi_manager_audit_ask(const struct pwi_manager *manager, const struct peer_identity *who, uint64_t what,
                           const char *object, pawl_status outcome) {
  if (what != PWI_ASK_SYNC) pwi_manager_audit(manager, who, ask_name(what), object, outcome);
}

static void print_id(char *text, size_t size, const char *kind, uint64_t id) {
  snprintf(text, size, "%s %llu", kind, (unsigned long long)id);
}

void pwi_manager_audit_decision(const struct pwi_manager *manager, const struct decision *decision,
                                pawl_status outcome) {
  char number[64];
  const char *object = number;
  print_id(number, sizeof number, "sender", decision->id);
  if (decision->entry.name[0])
    object = decision->entry.name;
  else if (decision->address[0])
    object = decision->address;
  else if (decision->ask == PWI_ASK_DRAIN || decision->ask == PWI_ASK_GIVE_UP)
    print_id(number, sizeof number, "node", decision->id);
  else if (decision->ask == PWI_ASK_UNGROUP)
    print_id(number, sizeof number, "group", decision->secret);
  pwi_manager_audit_ask(manager, &decision->who, decision->ask, object, outcome);
}

/* --- links ---------------------------------------------------------------------------------------------- */

/* Counts the links of an identity. Plain links have no identity and no quota. */
static uint64_t links_of(const struct pwi_manager *manager, const char *identity) {
  uint64_t count = 0;
  for (const struct manager_peer *peer = manager->first_peer; peer; peer = peer->next)
    count += peer->state != PEER_OUT && strcmp(peer->who.identity, identity) == 0;
  return count;
}

pawl_status pwi_manager_admit(const struct pwi_manager *manager, const struct pwi_link_info *info,
                              struct manager_peer *peer) {
  struct peer_identity *who = &peer->who;
  snprintf(who->identity, sizeof who->identity, "%s", info->identity);
  snprintf(who->address, sizeof who->address, "%s", info->peer);
  who->rights = rights_of(manager, info->identity);
  pawl_status status = PAWL_OK;
  if (who->rights.is_nobody)
    status = PAWL_LINK_KEY;
  else if (who->rights.connections > 0 && links_of(manager, who->identity) >= who->rights.connections)
    status = PAWL_QUOTA_LINKS;
  pwi_manager_audit(manager, who, "LINK", pwi_hello_role_text(peer->peering.hello.role), status);
  return status;
}

/* The link of a server needs all rights. The link of a client stays open with the rights that are left. */
static void review_peer(struct pwi_manager *manager, struct manager_peer *peer) {
  struct pwi_rights rights = rights_of(manager, peer->who.identity);
  bool is_over = rights.is_nobody || (peer->is_server && !pwi_rights_are_full(&rights));
  bool is_writer = !peer->is_server && peer->id != 0;
  peer->who.rights = rights;
  /* A client with a sender id that may no longer write has to join again as a reader. */
  if (is_writer && !rights.write) is_over = true;
  if (!is_over) return;
  pwi_manager_audit(manager, &peer->who, "REVOKE", pwi_hello_role_text(peer->peering.hello.role), PAWL_OK);
  pwi_manager_close(manager, peer, rights.is_nobody ? PAWL_LINK_KEY : PAWL_FORBIDDEN);
}

void pwi_manager_review(struct pwi_manager *manager) {
  for (struct manager_peer *peer = manager->first_peer, *next; peer; peer = next) {
    next = peer->next;
    review_peer(manager, peer);
  }
}
