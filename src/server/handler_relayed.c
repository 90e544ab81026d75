/* Aggregates of relays: who may act for whom, and serving them.
 *
 * A relay sends one push for several senders. The request handler serves it only if
 *   - the link is proved to be that of a relay of the membership, and its key has no limits;
 *   - each contributor has proved itself to a relay of the membership, which the proof names;
 *   - each contributor has a link of its own here, which is proved as well. The rights of that link bound what is done
 *     in the contributor's name, and its quota counts the bytes.
 * The answer is DIRECT if any of this is missing. Then each contributor sends its push itself, which makes the link.
 */
#include <stdint.h>

#include "base/memory.h"
#include "protocol/contributors.h"
#include "protocol/relays.h"
#include "server/handler_inside.h"

#define VOUCHED_MAX 65536

static bool is_relay(const struct pwi_handler *handler, uint64_t id) {
  const struct pwi_membership_sender *sender =
      pwi_membership_find(handler->config.numbers->membership, (struct pwi_sender){id});
  return sender && !sender->retired && pwi_relay_is_job(sender->job, NULL);
}

/* Each proof is verified once: ids are never used again. */
static bool has_proof(struct pwi_handler *handler, const struct pwi_contributor *contributor) {
  const struct pwi_handler_numbers *numbers = handler->config.numbers;
  void *relay = (void *)(uintptr_t)contributor->relay;
  if (pwi_idmap_get(&handler->vouched, contributor->sender.id) == relay) return true;
  struct pwi_shown shown = {0};
  uint64_t sender = contributor->sender.id;
  pwi_shown_take(&shown, sender, contributor->seal, sizeof contributor->seal);
  uint64_t verifier = contributor->relay | PWI_VERIFIER_IS_SENDER;
  if (!pwi_shown_is(&shown, numbers->membership, numbers->cluster, verifier, sender)) return false;
  if (handler->vouched.count >= VOUCHED_MAX) pwi_idmap_fini(&handler->vouched);
  pawl_status status = pwi_idmap_put(&handler->vouched, sender, relay);
  (void)status; /* without memory it is verified again */
  return true;
}

static struct pwi_handler_link *own_link(const struct pwi_handler *handler, uint64_t sender) {
  struct pwi_handler_link *link = handler->links;
  while (link && link->shown.bound != sender) link = link->next;
  return link;
}

static bool may_contribute(struct pwi_handler_link *link, const struct pwi_contributor *contributor,
                           const struct pwi_entry *entry) {
  struct pwi_handler *handler = link->handler;
  const struct pwi_handler_link *own = own_link(handler, contributor->sender.id);
  if (!own || !pwi_rights_may_change(&own->rights, entry->name)) return false;
  return is_relay(handler, contributor->relay) && has_proof(handler, contributor);
}

static void charge(struct pwi_handler_link *link, const struct pwi_contributor *contributors, size_t count) {
  int64_t now = pwi_net_now(link->handler->config.net);
  for (size_t i = 0; i < count; i++) {
    struct pwi_handler_link *own = own_link(link->handler, contributors[i].sender.id);
    if (own && own->account) pwi_quota_account_take(own->account, link->inbox.body_size, now);
  }
}

/* Returns true if the aggregate was taken; its answer follows. */
static bool take(struct pwi_handler_link *link, const struct pwi_request *request, const struct pwi_entry *entry,
                 const struct pwi_contributor *contributors, size_t count, struct pwi_outcome *outcome) {
  for (size_t i = 0; i < count; i++) {
    if (may_contribute(link, &contributors[i], entry)) continue;
    outcome->next = contributors[i].sender.id;
    outcome->found = contributors[i].task;
    return false;
  }
  if (!pwi_shard_serve_relayed(link->handler->config.shard, request, contributors, count, outcome)) return false;
  charge(link, contributors, count);
  return true;
}

pawl_status pwi_handler_relayed(struct pwi_handler_link *link, const struct pwi_sections *sections,
                                const struct pwi_request *request, const struct pwi_entry *entry,
                                const struct pwi_chain *chain) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_CONTRIBUTORS);
  struct pwi_outcome outcome = {.code = PWI_CODE_DIRECT};
  struct pwi_contributor *contributors = NULL;
  size_t count = 0;
  uint32_t hops;
  bool is_legal = chain && !request->refusal && request->filters_size == 0 && !request->operand &&
                  !link->inbox.is_dropped && is_relay(link->handler, request->sender.id) &&
                  pwi_rights_are_full(&link->rights);
  char *bytes = is_legal ? pwi_alloc(section->length + 1) : NULL;
  pawl_status status = PAWL_OK;
  if (bytes)
    status = pwi_contributors_decode(pwi_inbox_at(&link->inbox, section->offset, section->length, bytes),
                                     section->length, &contributors, &count, &hops);
  pwi_free(bytes);
  if (status && status != PAWL_NO_MEMORY) return status;
  bool is_taken = contributors && take(link, request, entry, contributors, count, &outcome);
  if (!is_taken) {
    pwi_log(link->handler->config.log, PAWL_LOG_DEBUG, "aggregate.refused",
            "relay=%llu vector=%s sender=%llu task=%llu", (unsigned long long)request->sender.id, entry->name,
            (unsigned long long)outcome.next, (unsigned long long)outcome.found);
    pwi_handler_say(link, request->terms.number, request->task, &outcome);
  }
  pwi_free(contributors);
  return PAWL_OK;
}
