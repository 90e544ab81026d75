/* News: catalogue, membership and view take effect.
 *
 * They are applied in this order, because a view may assign arcs of vectors that the same message announces.
 * Each part is decoded before it replaces the old one, so that without memory each part changes whole or not
 * at all; the link is then closed, and the manager sends everything again.
 */
#include "protocol/membership_share.h"
#include "server/inside.h"

/* --- catalogue ------------------------------------------------------------------------------------------ */

static pawl_status open_new(struct pwi_server *server, const struct pwi_catalogue *catalogue) {
  for (size_t i = 0; i < catalogue->count; i++) {
    const struct pwi_entry *entry = &catalogue->entries[i];
    if (entry->kind == PWI_ENTRY_PEERS) continue; /* servers keep nothing of it */
    bool is_here = pwi_shard_has(server->shard, entry->id);
    if (is_here && pwi_shard_incarnation(server->shard, entry->id) >= entry->incarnation) continue;
    pawl_status status = is_here ? pwi_shard_renew(server->shard, entry) : pwi_shard_open(server->shard, entry);
    if (status) return status;
  }
  return PAWL_OK;
}

static void close_old(struct pwi_server *server) {
  struct pwi_vector_id id = {0};
  while (pwi_shard_next(server->shard, &id))
    if (!pwi_catalogue_find(&server->catalogue, id)) pwi_shard_close(server->shard, id);
}

static pawl_status take_catalogue(struct pwi_server *server, const void *bytes, size_t size) {
  struct pwi_catalogue catalogue = {0};
  pawl_status status = pwi_catalogue_decode(bytes, size, &catalogue);
  if (status) return status;
  if (catalogue.number >= server->catalogue.number) status = open_new(server, &catalogue);
  if (!status) status = pwi_server_fillings_open(server);
  if (status || catalogue.number < server->catalogue.number) {
    pwi_catalogue_fini(&catalogue);
    return status;
  }
  pwi_catalogue_fini(&server->catalogue);
  server->catalogue = catalogue;
  close_old(server);
  pwi_shard_retry(server->shard);
  pwi_server_chains_unstick(server);
  return PAWL_OK;
}

/* --- membership ----------------------------------------------------------------------------------------- */

static pawl_status take_membership(struct pwi_server *server, const void *bytes, size_t size) {
  struct pwi_membership *membership;
  pawl_status status = pwi_membership_receive(bytes, size, server->membership->number, &membership);
  if (status || !membership) return status;
  membership = pwi_membership_unify(membership);
  pwi_shard_set_membership(server->shard, membership);
  pwi_membership_destroy(server->membership);
  server->membership = membership;
  server->numbers.membership = membership;
  pwi_handler_settle_sums(server->handler);
  return PAWL_OK;
}

static void forget_sender(void *server, struct pwi_sender sender) {
  pwi_shard_forget(((struct pwi_server *)server)->shard, sender);
}

/* A failure may leave news partly applied; the number tells how far. */
static pawl_status take_membership_delta(struct pwi_server *server, const void *bytes, size_t size) {
  struct pwi_membership *before = server->membership, *now;
  pawl_status status = pwi_membership_follow(before, bytes, size, forget_sender, server, &now);
  server->membership = now;
  server->numbers.membership = now;
  pwi_shard_move_membership(server->shard, now);
  pwi_shard_membership_changed(server->shard);
  if (now != before) pwi_membership_destroy(before);
  pwi_handler_settle_sums(server->handler);
  return status;
}

/* --- view ----------------------------------------------------------------------------------------------- */

/* Drops positions that the view assigns to others, or with which this server will be filled again. */
static pawl_status drop(struct pwi_server *server, struct pawl_range positions) {
  pwi_server_fillings_forget(server, positions);
  pawl_status status = pwi_shard_drop(server->shard, positions);
  return status ? status : pwi_chains_drop(&server->chains, positions);
}

/* Adds positions of an arc whose full member this server has become. */
static pawl_status take(struct pwi_server *server, struct pawl_range positions, bool is_first) {
  bool is_filled = pwi_server_is_filled(server, positions);
  if (!is_first && !is_filled) {
    /* Serving the arc empty would lose its data silently. */
    pwi_log(server->config.log, PAWL_LOG_ERROR, "arc.missing", "node=%llu begin=%016llx end=%016llx",
            (unsigned long long)server->node, (unsigned long long)positions.begin, (unsigned long long)positions.end);
    return PAWL_OK;
  }
  const struct pwi_chain *chain = pwi_chains_find(&server->chains, positions.begin);
  if (!is_filled) chain = NULL;
  if (pwi_shard_holds(server->shard, positions)) return pwi_chains_hold(&server->chains, positions, chain);
  pawl_status status = is_filled ? pwi_shard_adopt(server->shard, positions) : pwi_shard_hold(server->shard, positions);
  if (!status) status = pwi_chains_hold(&server->chains, positions, chain);
  if (!status && is_filled) server->moves_in++;
  return status;
}

/* Adds all positions without a version. Versions are added last, so that a step that failed for lack of
 * memory is tried again. */
static pawl_status take_missing(struct pwi_server *server, struct pawl_range positions, bool is_first) {
  struct pawl_range gap;
  for (uint64_t at = positions.begin; at < positions.end; at = gap.end) {
    if (!pwi_rangeset_next_gap(&server->chains.versions.held, at, &gap)) return PAWL_OK;
    if (gap.begin >= positions.end) return PAWL_OK;
    if (gap.end > positions.end) gap.end = positions.end;
    pawl_status status = take(server, gap, is_first);
    if (status) return status;
  }
  return PAWL_OK;
}

/* A fill continues only in the chain in which it began. */
static pawl_status await_filling(struct pwi_server *server, struct pawl_range positions, uint64_t since) {
  const struct pwi_chain *chain = pwi_chains_find(&server->chains, positions.begin);
  if (chain && chain->is_filling && chain->since == since) return PAWL_OK;
  return drop(server, positions);
}

static pawl_status apply_arc(struct pwi_server *server, const struct pwi_view *view, size_t arc, bool is_first) {
  struct pawl_range positions = pwi_view_arc_range(view, arc);
  size_t place = pwi_arc_find(&view->arcs[arc], (struct pwi_node){server->node});
  const struct pwi_chain *old = pwi_chains_find(&server->chains, positions.begin);
  bool is_cut_anew = old && (old->positions.begin != positions.begin || old->positions.end != positions.end);
  /* Aggregates are kept by arc, and end when the arc changes. */
  if (place != 0 || is_cut_anew) pwi_shard_dismiss(server->shard, positions);
  if (place == PWI_CHAIN_MAX) return drop(server, positions);
  if (view->arcs[arc].chain[place].filling) return await_filling(server, positions, view->arcs[arc].since);
  bool is_anew = server->view && view->arcs[arc].lost > server->view->epoch;
  pawl_status status = is_anew ? drop(server, positions) : PAWL_OK; /* the arc restarted empty */
  return status ? status : take_missing(server, positions, is_first || is_anew);
}

/* This server is a full member of the arc, and has its rows. */
static bool is_kept(const struct pwi_server *server, const struct pwi_view *view, size_t arc) {
  size_t place = pwi_arc_find(&view->arcs[arc], (struct pwi_node){server->node});
  bool is_full = place != PWI_CHAIN_MAX && !view->arcs[arc].chain[place].filling;
  return is_full && !(server->view && view->arcs[arc].lost > server->view->epoch);
}

/* The arc is as it was in the last view, whose application has dropped its rows here. */
static bool is_foreign_still(const struct pwi_server *server, const struct pwi_view *view, size_t arc) {
  bool is_member = pwi_arc_find(&view->arcs[arc], (struct pwi_node){server->node}) != PWI_CHAIN_MAX;
  return !is_member && server->view && view->arcs[arc].since <= server->view->epoch;
}

/* Takes before it drops. A view may divide an arc with which this server has been filled, and leave it only
 * some of the pieces; a drop of the others ends the fill of all of them. */
static pawl_status apply_view(struct pwi_server *server, const struct pwi_view *view) {
  bool is_first = !server->view || server->view->arc_count == 0;
  pawl_status status = pwi_chains_write_versions(&server->chains);
  for (size_t i = 0; i < view->arc_count && !status; i++)
    if (is_kept(server, view, i)) status = apply_arc(server, view, i, is_first);
  for (size_t i = 0; i < view->arc_count && !status; i++)
    if (!is_kept(server, view, i) && !is_foreign_still(server, view, i)) status = apply_arc(server, view, i, is_first);
  return status ? status : pwi_chains_follow_view(&server->chains, view, server->node);
}

static pawl_status take_view(struct pwi_server *server, const void *bytes, size_t size) {
  struct pwi_view *view;
  pawl_status status = pwi_view_decode_shared(bytes, size, &view);
  if (status) return status;
  if (server->view && view->epoch <= server->view->epoch) {
    pwi_view_release(view);
    return PAWL_OK;
  }
  status = apply_view(server, view);
  if (status) {
    pwi_view_release(view);
    return status;
  }
  pwi_view_release(server->view);
  server->view = view;
  server->numbers.view = view->epoch;
  pwi_server_chains_changed(server);
  pwi_server_moves_seen(server);
  return PAWL_OK;
}

pawl_status pwi_server_take_news(struct pwi_server *server, const struct pwi_control *control, const void *body) {
  size_t size;
  pawl_status status = PAWL_OK;
  const void *bytes = pwi_control_find(control, body, PWI_SECTION_CATALOGUE, &size);
  if (bytes) status = take_catalogue(server, bytes, size);
  bytes = pwi_control_find(control, body, PWI_SECTION_MEMBERSHIP, &size);
  if (!status && bytes) status = take_membership(server, bytes, size);
  bytes = pwi_control_find(control, body, PWI_SECTION_MEMBERSHIP_DELTA, &size);
  if (!status && bytes) status = take_membership_delta(server, bytes, size);
  bytes = pwi_control_find(control, body, PWI_SECTION_VIEW, &size);
  if (!status && bytes) status = take_view(server, bytes, size);
  return status;
}
