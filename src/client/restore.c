/* Vectors that were loaded from a checkpoint (design, section 9).
 *
 * Loading raises a vector's incarnation: everywhere rows and clocks begin anew, and what was meant for an earlier one is
 * answered RESTORED, or is not sent any more. It ends with PAWL_RESTORED, so that the application knows that what it pushed
 * is not there and what it pulled is old. What is called from then on goes to the new one, on a clock of sent that begins
 * afresh.
 *
 * A part that is under way keeps to itself until it is answered: the caller's memory may be in use for it.
 */
#include "client/inside.h"

bool pwi_part_is_stale(const struct part *part) { return part->incarnation < part->flow->entry.incarnation; }

/* Callbacks of tasks that end may start others: the walk begins again after each. */
static struct part *find_stale(const struct pwi_flow *flow) {
  for (struct part *part = flow->first; part; part = part->next)
    if (part->state != PART_SENT && !part->is_collecting && pwi_part_is_stale(part)) return part;
  return NULL;
}

void pwi_flow_restored(struct pwi_client *client, struct pwi_flow *flow, uint32_t incarnation) {
  if (flow->dead || incarnation <= flow->entry.incarnation) return;
  flow->entry.incarnation = incarnation;
  pwi_flow_begin_clock(flow);
  if (flow->filters) flow->filters->is_stale = true; /* rests too were meant for what is gone */
  for (struct part *part; (part = find_stale(flow));) pwi_part_end(client, part, PAWL_RESTORED);
}

void pwi_part_restored(struct pwi_client *client, struct part *part, uint64_t incarnation) {
  struct pwi_flow *flow = part->flow;
  bool was_collecting = part->is_collecting;
  if (incarnation <= UINT32_MAX) pwi_flow_restored(client, flow, (uint32_t)incarnation);
  if (!flow->dead) pwi_part_end(client, part, PAWL_RESTORED);
  if (was_collecting) pwi_client_look_collected(client);
}
