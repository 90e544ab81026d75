/* The cluster at rest, judged by its servers.
 *
 * The last durable view says what the manager wants. It may still list a server that was killed while the manager was
 * away, and a process that is up again is another server. So recovery after the last fault is over only when the servers
 * have what the view says: each member of each arc is a server that is running, has the arc since the same epoch, and
 * is full if the view says so; and full members have the same version and content. */
#include <stdio.h>

#include "base/memory.h"
#include "sim/campaign/inside.h"

#define AGAIN_NS MS /* how often the servers are asked while the campaign waits for them */

static const struct rested *find(const struct rested *rested, size_t count, uint64_t node, uint64_t begin) {
  for (size_t i = 0; i < count; i++)
    if (rested[i].node == node && rested[i].arc.positions.begin == begin) return &rested[i];
  return NULL;
}

static const char *compare_member(const struct pwi_arc *arc, size_t place, const struct rested *member,
                                  const struct rested *head, bool may_fill) {
  if (!member) return "is not a server that is running and has the arc";
  if (member->arc.since != arc->since) return "has another chain";
  if (member->arc.filling != arc->chain[place].filling || (member->arc.filling && !may_fill)) return "is being filled";
  if (member->arc.filling) return NULL;
  if (member->arc.version != head->arc.version) return "has another version than the head";
  return member->digest != head->digest ? "has other rows than the head" : NULL;
}

bool pwi_rest_is_whole(const struct pwi_view *view, const struct rested *rested, size_t count, bool may_fill,
                       char *text, size_t size) {
  for (size_t a = 0; a < view->arc_count; a++) {
    const struct pwi_arc *arc = &view->arcs[a];
    const struct rested *head = find(rested, count, arc->chain[0].node.id, arc->begin);
    for (size_t i = 0; i < arc->count; i++) {
      uint64_t node = arc->chain[i].node.id;
      const char *why = compare_member(arc, i, find(rested, count, node, arc->begin), head, may_fill);
      if (!why) continue;
      snprintf(text, size, "node %llu, member %zu of the arc at %016llx, %s", (unsigned long long)node, i,
               (unsigned long long)arc->begin, why);
      return false;
    }
  }
  return true;
}

/* Adds the arcs of a server. With `has_digests` the rows are hashed, too. */
static size_t add_arcs(const struct campaign *campaign, const struct pwi_server *server, bool has_digests,
                       struct rested *rested, size_t count) {
  struct pwi_server_arc arcs[ARCS_MAX];
  struct pwi_server_state state = {0};
  pwi_server_state(server, &state);
  size_t all = pwi_server_arcs(server, arcs, ARCS_MAX);
  for (size_t i = 0; i < all && i < ARCS_MAX && count < RESTED_MAX; i++) {
    rested[count] = (struct rested){.node = state.node, .arc = arcs[i]};
    if (has_digests && !arcs[i].filling)
      rested[count].digest = pwi_server_digest(server, arcs[i].positions, &pwi_campaign_ledger(campaign)->membership);
    count++;
  }
  return count;
}

static bool are_whole(struct campaign *campaign, bool has_digests) {
  struct rest *rest = &campaign->rest;
  size_t count = 0;
  for (size_t i = 0; i < campaign->cluster.server_count; i++)
    if (campaign->cluster.servers[i].server)
      count = add_arcs(campaign, campaign->cluster.servers[i].server, has_digests, rest->rested, count);
  return pwi_rest_is_whole(pwi_campaign_ledger(campaign)->view, rest->rested, count, campaign->config.memory_max > 0,
                           rest->text, sizeof rest->text);
}

bool pwi_rest_has_come(struct campaign *campaign) {
  struct rest *rest = &campaign->rest;
  if (pwi_campaign_now(campaign) < rest->ask_at) return false;
  if (!rest->rested) rest->rested = pwi_alloc_zero(RESTED_MAX, sizeof *rest->rested);
  if (!rest->rested) {
    pwi_sim_fail(campaign->cluster.sim, PAWL_NO_MEMORY, "not enough memory to look at all servers");
    return false;
  }
  rest->ask_at = pwi_campaign_now(campaign) + AGAIN_NS;
  if (are_whole(campaign, false) && are_whole(campaign, true)) return true;
  campaign->figures.late_rests += !rest->was_late;
  rest->was_late = true;
  return false;
}

void pwi_rest_fini(struct campaign *campaign) { pwi_free(campaign->rest.rested); }
