/* Access to a server: rights of links, quotas, the audit. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/inside.h"

struct pwi_rights pwi_server_rights_of(const struct pwi_server *server, const char *identity) {
  struct pwi_rights everything = {.write = true};
  return server->config.rights ? server->config.rights(server->config.rights_context, identity) : everything;
}

static void audit(const struct pwi_server *server, const struct pwi_audit_who *who, const char *verb, uint8_t role,
                  pawl_status outcome) {
  pwi_audit(&server->config.auditor, server->config.log, who, verb, pwi_hello_role_text(role), outcome);
}

/* Sets the memory limit of a space, for all its users. */
static pawl_status limit_space(struct pwi_server *server, const struct pwi_rights *rights) {
  if (rights->memory == 0 || rights->space[0] == '\0') return PAWL_OK;
  uint64_t share = rights->memory / (server->config.shard_count ? server->config.shard_count : 1);
  return pwi_shard_set_quota(server->shard, rights->space, share > 0 ? share : 1);
}

static pawl_status check(struct pwi_server *server, const char *identity, const struct pwi_rights *rights,
                         bool is_server, struct pwi_quota_account **account_out) {
  *account_out = NULL;
  if (rights->is_nobody) return PAWL_LINK_KEY;
  if (is_server) return pwi_rights_are_full(rights) ? PAWL_OK : PAWL_FORBIDDEN;
  pawl_status status = limit_space(server, rights);
  int64_t now = pwi_net_now(server->config.net);
  return status ? status : pwi_quota_account_enter(&server->accounts, identity, rights, now, account_out);
}

pawl_status pwi_server_admit(struct pwi_server *server, const struct pwi_link_info *info, uint8_t role,
                             struct pwi_rights *rights_out, struct pwi_quota_account **account_out) {
  *rights_out = pwi_server_rights_of(server, info->identity);
  struct pwi_audit_who who = {.identity = info->identity, .peer = info->peer, .rights = rights_out};
  pawl_status status = check(server, info->identity, rights_out, role == PWI_ROLE_SERVER, account_out);
  audit(server, &who, "LINK", role, status);
  return status;
}

pawl_status pwi_server_name_peer(struct server_peer *peer, const struct pwi_link_info *info) {
  peer->identity = pwi_copy_string(info->identity);
  peer->address = pwi_copy_string(info->peer);
  return peer->identity && peer->address ? PAWL_OK : PAWL_NO_MEMORY;
}

static void review_peer(struct pwi_server *server, struct server_peer *peer) {
  if (!peer->is_up || !peer->identity) return;
  struct pwi_rights rights = pwi_server_rights_of(server, peer->identity);
  bool is_client = peer->kind == PEER_CLIENT;
  struct pwi_audit_who who = {.identity = peer->identity, .peer = peer->address, .rights = &rights};
  if (rights.is_nobody || (peer->kind == PEER_PREVIOUS && !pwi_rights_are_full(&rights))) {
    audit(server, &who, "REVOKE", peer->peering.hello.role, PAWL_OK);
    pwi_net_close(server->config.net, peer->link, rights.is_nobody ? PAWL_LINK_KEY : PAWL_FORBIDDEN);
    return;
  }
  if (!is_client || !peer->handler) return;
  pawl_status status = limit_space(server, &rights);
  int64_t now = pwi_net_now(server->config.net);
  if (!status) status = pwi_quota_account_limit(&server->accounts, peer->identity, &rights, now, &peer->account);
  pwi_handler_set_rights(peer->handler, &rights, peer->account);
  if (status) pwi_net_close(server->config.net, peer->link, status);
}

/* Links that this server made are closed too if their key is revoked: the peer has proved that it holds this key. */
void pwi_server_review(struct pwi_server *server) {
  pwi_shard_lift_quotas(server->shard);
  for (struct server_peer *peer = server->peers, *next; peer; peer = next) {
    next = peer->next;
    review_peer(server, peer);
  }
}
