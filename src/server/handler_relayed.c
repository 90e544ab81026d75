/* Requests of relays: who may act for whom, and serving aggregates.
 *
 * A relay sends one push for several senders. The request handler serves it only if
 *   - the link is proved to be that of a relay of the membership, and its key has no limits;
 *   - each contributor has proved itself to a relay of the membership, which the proof names;
 *   - each contributor has a link of its own here, which is proved as well. The rights of that link bound what is done
 *     in the contributor's name, and its quota counts the bytes.
 * The answer is DIRECT if any of this is missing. Then each contributor sends its push itself, which makes the link.
 *
 * A pull of a relay names those who wait for the rows. The same holds for each of them, with the right to read. They
 * may read the vector from the relay's cache for a while.
 */
#include <stdint.h>

#include "base/memory.h"
#include "protocol/contributors.h"
#include "protocol/relays.h"
#include "server/handler_inside.h"

#define VOUCHED_MAX 65536

static bool is_relay(const struct pwi_handler *handler, uint64_t id) {
  return pwi_relay_is_listed(handler->config.numbers->membership, id);
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
                           const struct pwi_entry *entry,
                           bool (*may)(const struct pwi_rights *rights, const char *name)) {
  struct pwi_handler *handler = link->handler;
  const struct pwi_handler_link *own = own_link(handler, contributor->sender.id);
  if (!own || !may(&own->rights, entry->name)) return false;
  return is_relay(handler, contributor->relay) && has_proof(handler, contributor);
}

static void charge(struct pwi_handler_link *link, const struct pwi_contributor *contributors, size_t count,
                   uint64_t bytes) {
  int64_t now = pwi_net_now(link->handler->config.net);
  for (size_t i = 0; i < count; i++) {
    struct pwi_handler_link *own = own_link(link->handler, contributors[i].sender.id);
    if (own && own->account) pwi_quota_account_take(own->account, bytes, now);
  }
}

static bool may_all(struct pwi_handler_link *link, const struct pwi_entry *entry,
                    const struct pwi_contributor *contributors, size_t count,
                    bool (*may)(const struct pwi_rights *rights, const char *name), struct pwi_outcome *outcome) {
  for (size_t i = 0; i < count; i++) {
    if (may_contribute(link, &contributors[i], entry, may)) continue;
    outcome->next = contributors[i].sender.id;
    outcome->found = contributors[i].task;
    return false;
  }
  return true;
}

/* Returns true if the aggregate was taken; its answer follows. */
static bool take(struct pwi_handler_link *link, const struct pwi_request *request, const struct pwi_entry *entry,
                 const struct pwi_contributor *contributors, size_t count, struct pwi_outcome *outcome) {
  if (!may_all(link, entry, contributors, count, pwi_rights_may_change, outcome)) return false;
  if (!pwi_shard_serve_relayed(link->handler->config.shard, request, contributors, count, outcome)) return false;
  charge(link, contributors, count, link->inbox.body_size);
  return true;
}

/* Leaves `*contributors_out` NULL if the sender may not act for others, or for lack of memory. */
static pawl_status read_contributors(struct pwi_handler_link *link, const struct pwi_sections *sections,
                                     const struct pwi_request *request, struct pwi_contributor **contributors_out,
                                     size_t *count_out) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_CONTRIBUTORS);
  uint32_t hops;
  bool is_legal = request->filters_size == 0 && !link->inbox.is_dropped &&
                  is_relay(link->handler, request->sender.id) && pwi_rights_are_full(&link->rights);
  char *bytes = is_legal ? pwi_alloc(section->length + 1) : NULL;
  if (!bytes) return PAWL_OK;
  pawl_status status = pwi_contributors_decode(pwi_inbox_at(&link->inbox, section->offset, section->length, bytes),
                                               section->length, contributors_out, count_out, &hops);
  pwi_free(bytes);
  return status == PAWL_NO_MEMORY ? PAWL_OK : status;
}

pawl_status pwi_handler_relayed(struct pwi_handler_link *link, const struct pwi_sections *sections,
                                const struct pwi_request *request, const struct pwi_entry *entry,
                                const struct pwi_chain *chain) {
  struct pwi_outcome outcome = {.code = PWI_CODE_DIRECT};
  struct pwi_contributor *contributors = NULL;
  size_t count = 0;
  bool is_legal = chain && !request->refusal && !request->operand;
  pawl_status status = is_legal ? read_contributors(link, sections, request, &contributors, &count) : PAWL_OK;
  if (status) return status;
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

pawl_status pwi_handler_relayed_pull(struct pwi_handler_link *link, const struct pwi_sections *sections,
                                     const struct pwi_request *request, const struct pwi_entry *entry, bool *may_out) {
  bool is_shown = pwi_handler_is_shown(link, request->sender); /* of a push it was checked: that has a number */
  struct pwi_outcome outcome = {.code = is_shown ? PWI_CODE_DIRECT : PWI_CODE_UNPROVEN};
  struct pwi_contributor *takers = NULL;
  size_t count = 0;
  pawl_status status = is_shown ? read_contributors(link, sections, request, &takers, &count) : PAWL_OK;
  if (status) return status;
  *may_out = takers && may_all(link, entry, takers, count, pwi_rights_may_read, &outcome);
  if (*may_out)
    charge(link, takers, count, request->terms.rows * pwi_entry_row_bytes(entry));
  else
    pwi_handler_say(link, request->terms.number, request->task, &outcome);
  pwi_free(takers);
  return PAWL_OK;
}
