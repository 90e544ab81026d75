/* Memory quotas: how much memory the vectors of a space may use in the cluster.
 *
 * Quotas are in the ledger. Each server counts the memory of every space with a quota, replicas included, and
 * reports it once a second (SPACES). The manager tells each server the limit there (GRANT): the memory that
 * the space uses on this server now, plus all that is left of the quota in the cluster. So no push is refused
 * while anything is left, wherever its keys are. Several servers together may exceed the quota within one
 * second; after that nothing grows. A server that has not reported yet gets no limit, and reports at once.
 *
 * A dense vector has its full size from the start. A dense vector that does not fit into the quota beside the
 * others is not created.
 */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "manager/inside.h"

static const struct pwi_space_bytes *told_by(const struct manager_node *node, const char *space) {
  for (size_t i = 0; i < node->space_count; i++)
    if (strcmp(node->spaces[i].space, space) == 0) return &node->spaces[i];
  return NULL;
}

/* The memory of a server that is down does not count: its replicas have the rows, and are copied anew. */
uint64_t pwi_manager_space_used(const struct pwi_manager *manager, const char *space) {
  uint64_t used = 0;
  for (size_t i = 0; i < manager->node_count; i++) {
    if (manager->nodes[i].declared) continue;
    const struct pwi_space_bytes *told = told_by(&manager->nodes[i], space);
    if (told) used = told->bytes < UINT64_MAX - used ? used + told->bytes : UINT64_MAX;
  }
  return used;
}

/* --- grants --------------------------------------------------------------------------------------------- */

static uint64_t grant_of(const struct pwi_manager *manager, const struct manager_node *node,
                         const struct pwi_ledger_space *space) {
  const struct pwi_space_bytes *told = told_by(node, space->space);
  uint64_t used = pwi_manager_space_used(manager, space->space);
  if (!told) return UINT64_MAX;
  uint64_t rest = used < space->memory ? space->memory - used : 0;
  return told->bytes < UINT64_MAX - 1 - rest ? told->bytes + rest : UINT64_MAX - 1;
}

void pwi_manager_grant(struct pwi_manager *manager, const struct manager_node *node) {
  struct pwi_space_bytes grants[PWI_SPACES_MAX];
  struct pwi_writer payload = {0};
  const struct pwi_ledger *ledger = &manager->ledger;
  if (!node->peer || node->peer->state != PEER_IN) return;
  for (size_t i = 0; i < ledger->space_count; i++) {
    memcpy(grants[i].space, ledger->spaces[i].space, sizeof grants[i].space);
    grants[i].bytes = grant_of(manager, node, &ledger->spaces[i]);
  }
  pwi_spaces_encode(grants, ledger->space_count, &payload);
  pwi_manager_say(manager, node->peer, PWI_SAY_GRANT, 0, &payload);
  pwi_writer_fini(&payload);
}

bool pwi_manager_hear_spaces(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size) {
  struct pwi_space_bytes spaces[PWI_SPACES_MAX], *kept = NULL;
  struct manager_node *node = pwi_manager_node(manager, peer->id);
  size_t count;
  if (pwi_spaces_decode(payload, size, spaces, &count)) return false;
  if (count > 0) kept = pwi_alloc_zero(count, sizeof *kept);
  if (count > 0 && !kept) return true; /* the server reports again in a second */
  if (count > 0) memcpy(kept, spaces, count * sizeof *kept);
  pwi_free(node->spaces);
  node->spaces = kept;
  node->space_count = count;
  pwi_manager_grant(manager, node);
  return true;
}

/* --- quotas --------------------------------------------------------------------------------------------- */

static pawl_status decide_quota(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_ledger_space *space = pwi_ledger_space(&manager->ledger, decision->address);
  if ((space ? space->memory : 0) == decision->id) return PAWL_OK;
  if (!space && manager->ledger.space_count == PWI_LEDGER_SPACES_MAX) return PAWL_TOO_LARGE;
  pwi_record_quota(&manager->record, decision->address, decision->id);
  return PAWL_OK;
}

static void conclude_quota(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  for (size_t i = 0; i < manager->node_count && !status; i++) pwi_manager_grant(manager, &manager->nodes[i]);
  pwi_manager_conclude_ask(manager, decision, status);
}

pawl_status pwi_manager_read_quota(const struct manager_peer *peer, struct pwi_reader *reader,
                                   struct decision *decision) {
  char space[PWI_SPACE_MAX + 1];
  pwi_read_text(reader, space, sizeof space);
  decision->id = pwi_read_u64(reader);
  decision->decide = decide_quota;
  decision->conclude = conclude_quota;
  if (pwi_reader_end(reader) || !pwi_space_is_sound(space)) return PAWL_INVALID;
  memcpy(decision->address, space, sizeof space);
  return pwi_rights_may_operate(&peer->who.rights) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* --- new vectors ---------------------------------------------------------------------------------------- */

static uint64_t dense_bytes(const struct pwi_entry *entry) {
  size_t bytes;
  if (entry->kind != PWI_ENTRY_VECTOR || entry->is.layout != PAWL_LAYOUT_DENSE) return 0;
  return pwi_mul_size((size_t)entry->is.size, pwi_entry_row_bytes(entry), &bytes) ? bytes : UINT64_MAX;
}

pawl_status pwi_manager_check_quota(const struct pwi_manager *manager, const struct pwi_entry *entry) {
  const struct pwi_catalogue *catalogue = &manager->ledger.catalogue;
  char space[PWI_SPACE_MAX + 1] = "";
  size_t length = strcspn(entry->name, "/");
  if (length > PWI_SPACE_MAX) return PAWL_OK;
  memcpy(space, entry->name, length);
  const struct pwi_ledger_space *quota = pwi_ledger_space(&manager->ledger, space);
  if (!quota) return PAWL_OK;
  if (pwi_manager_space_used(manager, space) >= quota->memory) return PAWL_QUOTA_MEMORY;
  uint64_t rest = quota->memory, wanted = dense_bytes(entry);
  for (size_t i = 0; i < catalogue->count && wanted <= rest; i++) {
    if (!pwi_name_is_in(catalogue->entries[i].name, space)) continue;
    uint64_t taken = dense_bytes(&catalogue->entries[i]);
    rest = taken < rest ? rest - taken : 0;
  }
  return wanted > 0 && wanted > rest ? PAWL_QUOTA_MEMORY : PAWL_OK;
}
