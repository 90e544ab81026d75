/* Versions of arcs that this client has seen, for pulls of groups through relays.
 *
 * Every answer of a head tells the version of the arc (docs/replication.md#versions-and-configurations). A client whose
 * push was answered with version v, or that has read rows of version v, must not be shown older rows there. Versions
 * continue whatever happens to the arc, so one number stands for the pushes of all senders, of this client under former
 * ids, and of requests that no task number is known for.
 *
 * An answer without a version leaves its range *unsure*: only rows that are read after the request has come will do. The
 * version of rows that were asked for later settles the matter. At first every range is unsure.
 *
 * A version is noted for the whole arc as the view has it, so that there are few ranges. If the view is another one than
 * that of the head, the number may be too high for some keys. Then a relay reads them once more than it had to.
 */
#include "base/memory.h"
#include "client/inside.h"

pawl_status pwi_flow_see(struct pwi_flow *flow) {
  struct pawl_range span = pawl_range_of(0, flow->place.size);
  if (flow->seen) return PAWL_OK;
  struct flow_seen *seen = pwi_alloc_zero(1, sizeof *seen);
  if (!seen) return PAWL_NO_MEMORY;
  seen->doubts = 1;
  pawl_status status = pwi_clock_init(&seen->versions, &span, 1);
  if (!status) status = pwi_rangeset_add(&seen->unsure, span);
  if (status)
    pwi_flow_seen_destroy(seen);
  else
    flow->seen = seen;
  return status;
}

void pwi_flow_seen_destroy(struct flow_seen *seen) {
  if (!seen) return;
  pwi_clock_fini(&seen->versions);
  pwi_rangeset_fini(&seen->unsure);
  pwi_free(seen);
}

/* The arcs into which the claim extends. */
static struct pawl_range arcs_of(const struct pwi_client *client, const struct pwi_flow *flow,
                                 struct pawl_range claim) {
  const struct pwi_view *view = client->view;
  if (!view || view->arc_count == 0) return claim;
  size_t first = pwi_view_arc_of(view, pwi_place_position(&flow->place, claim.begin));
  size_t last = pwi_view_arc_of(view, pwi_place_position(&flow->place, claim.end - 1));
  return pawl_range_of(pwi_place_keys(&flow->place, pwi_view_arc_range(view, first)).begin,
                       pwi_place_keys(&flow->place, pwi_view_arc_range(view, last)).end);
}

/* Without memory the whole vector is unsure, which needs no memory: there was room for one range at first. */
static void doubt(struct pwi_flow *flow, struct pawl_range range) {
  struct flow_seen *seen = flow->seen;
  seen->doubts++;
  if (!pwi_rangeset_add(&seen->unsure, range)) return;
  pwi_rangeset_clear(&seen->unsure);
  pawl_status status = pwi_rangeset_add(&seen->unsure, pawl_range_of(0, flow->place.size));
  (void)status;
}

void pwi_part_seen(struct pwi_client *client, const struct client_part *part, const struct pwi_outcome *outcome) {
  struct pwi_flow *flow = part->flow;
  struct flow_seen *seen = flow->seen;
  if (!seen || part->relayed || (outcome->code != PWI_CODE_OK && outcome->code != PWI_CODE_REFUSED)) return;
  struct pawl_range arcs = arcs_of(client, flow, part->claim);
  if (outcome->version == 0 || pwi_clock_set(&seen->versions, PWI_SELF, arcs, outcome->version)) {
    doubt(flow, arcs);
    return;
  }
  if (part->doubts != seen->doubts || pwi_rangeset_is_empty(&seen->unsure)) return;
  pawl_status status = pwi_rangeset_remove(&seen->unsure, part->claim);
  (void)status; /* without memory it stays unsure */
}

bool pwi_part_floor(const struct client_part *part, uint64_t *version_out) {
  const struct flow_seen *seen = part->flow->seen;
  uint64_t version;
  if (!seen || pwi_rangeset_intersects(&seen->unsure, part->claim)) return false;
  if (pwi_clock_max(&seen->versions, PWI_SELF, part->claim, &version)) return false;
  *version_out = version;
  return true;
}
