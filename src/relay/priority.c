/* Priorities: how urgent the requests of a relay are to the servers (docs/priorities.md).
 *
 * A relay is as urgent as the most urgent child that waits for one of its requests. A server holds links, and the
 * requests on a link keep their order; so what an urgent request has to wait for becomes as urgent. When no request is
 * under way, nothing changes: children of one priority cost a relay one message to each server.
 */
#include "relay/inside.h"

void pwi_relay_raise(struct relay_crowd *crowd, uint8_t priority) {
  if (priority > crowd->priority) crowd->priority = priority;
}

static uint8_t highest_under_way(const struct pwi_relay *relay) {
  uint8_t highest = 0;
  for (const struct relay_sum *sum = relay->sums; sum; sum = sum->next)
    if (sum->is_sent && !sum->is_over && sum->crowd.priority > highest) highest = sum->crowd.priority;
  for (const struct relay_read *read = relay->reads; read; read = read->next) {
    bool is_under_way = read->state == READ_SENT || read->state == READ_GATHERED;
    if (is_under_way && read->crowd.priority > highest) highest = read->crowd.priority;
  }
  return highest;
}

void pwi_relay_weigh(struct pwi_relay *relay) {
  uint8_t highest = highest_under_way(relay);
  if (highest == 0) return;
  relay->priority = highest > relay->config.priority ? highest : relay->config.priority;
  pwi_client_set_priority(relay->client, relay->priority);
}

pawl_status pwi_relay_greet(struct pwi_relay *relay, struct relay_child *child, const struct pwi_link_info *info,
                            const struct pwi_peering *peering) {
  const struct pwi_relay_config *config = &relay->config;
  child->rights = (struct pwi_rights){.write = true};
  if (config->rights) child->rights = config->rights(config->rights_context, info->identity);
  return pwi_rights_greet(&child->rights, peering->hello.priority, info->peer, info->identity, config->log,
                          &child->priority);
}

static void raise_for(struct relay_crowd *crowd, struct pwi_link link, uint8_t priority) {
  for (size_t i = 0; i < crowd->waiter_count; i++)
    if (crowd->waiters[i].link.id == link.id && !crowd->waiters[i].is_gone) pwi_relay_raise(crowd, priority);
}

/* The message may come after the request that is the reason for it. */
pawl_status pwi_relay_hear_priority(struct pwi_relay *relay, struct pwi_link link, uint64_t stated) {
  struct relay_child *child = pwi_idmap_get(&relay->children, link.id);
  if (stated > PWI_PRIORITY_HIGHEST) return PAWL_UNSUPPORTED;
  if (!child) return PAWL_OK;
  child->priority = pwi_rights_priority(&child->rights, (uint8_t)stated);
  for (struct relay_sum *sum = relay->sums; sum; sum = sum->next) raise_for(&sum->crowd, link, child->priority);
  for (struct relay_read *read = relay->reads; read; read = read->next) raise_for(&read->crowd, link, child->priority);
  pwi_relay_weigh(relay);
  return PAWL_OK;
}
