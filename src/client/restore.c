/* Vectors that were loaded from a checkpoint (docs/checkpoints.md, "Loading").
 *
 * Loading raises the incarnation of a vector: its rows and clocks begin anew on all servers. A part for an
 * earlier incarnation is answered RESTORED, or not sent any more. It ends with PAWL_RESTORED, which tells the
 * application that its push is lost, or that its pull is outdated. Later calls go to the new incarnation, on
 * a clock that begins anew.
 *
 * A part that is under way is left alone until it is answered, because the net may be using the caller's
 * memory.
 */
#include "client/inside.h"

bool pwi_part_is_stale(const struct client_part *part) { return part->incarnation < part->flow->entry.incarnation; }

/* Callbacks of ending tasks may start others, so the search restarts after each. */
static struct client_part *find_stale(const struct pwi_flow *flow) {
  for (struct client_part *part = flow->first; part; part = part->next)
    if (part->state != PART_SENT && !part->is_collecting && pwi_part_is_stale(part)) return part;
  return NULL;
}

void pwi_flow_restored(struct pwi_client *client, struct pwi_flow *flow, uint32_t incarnation) {
  if (flow->dead || incarnation <= flow->entry.incarnation) return;
  flow->entry.incarnation = incarnation;
  pwi_flow_begin_clock(flow);
  if (flow->filters) flow->filters->is_stale = true; /* residuals are outdated too */
  for (struct client_part *part; (part = find_stale(flow));) pwi_part_end(client, part, PAWL_RESTORED);
}

void pwi_part_restored(struct pwi_client *client, struct client_part *part, uint64_t incarnation) {
  struct pwi_flow *flow = part->flow;
  bool was_collecting = part->is_collecting;
  if (incarnation <= UINT32_MAX) pwi_flow_restored(client, flow, (uint32_t)incarnation);
  if (!flow->dead) pwi_part_end(client, part, PAWL_RESTORED);
  if (was_collecting) pwi_client_look_collected(client);
}
