/* Checkpoints: orders to servers, at most one at a time to each node, and their reports.
 *
 * An order names positions of arcs of which the node is the head, as far as they are in no file yet. A server
 * that is no longer the head of an arc leaves it out of its file, and a server that is lost delivers no file.
 * The manager orders these positions again. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "manager/saving/saving.h"

/* --- orders --------------------------------------------------------------------------------------------- */

static void say_save(struct pwi_manager *manager, struct manager_peer *peer, const struct pwi_save *save) {
  struct pwi_writer payload = {0};
  pwi_save_encode(save, &payload);
  if (!payload.status) pwi_manager_say(manager, peer, PWI_SAY_SAVE, 0, &payload);
  pwi_writer_fini(&payload);
}

static void drop_order(struct pwi_checkpointing *saving, size_t index) {
  pwi_free(saving->orders[index].arcs);
  saving->orders[index] = saving->orders[--saving->order_count];
  saving->moved = pwi_net_now(saving->manager->config.net);
}

static struct save_order *order_of(const struct pwi_checkpointing *saving, uint64_t node) {
  for (size_t i = 0; i < saving->order_count; i++)
    if (saving->orders[i].node == node) return &saving->orders[i];
  return NULL;
}

/* The positions that are neither in a file nor in an order. */
static pawl_status find_open(const struct pwi_checkpointing *saving, struct pwi_rangeset *open) {
  pawl_status status = pwi_rangeset_add(open, pawl_range_of(0, PWI_RING_END));
  if (!status) status = pwi_rangeset_remove_all(open, &saving->covered);
  for (size_t i = 0; i < saving->order_count; i++)
    for (size_t j = 0; j < saving->orders[i].arc_count && !status; j++)
      status = pwi_rangeset_remove(open, saving->orders[i].arcs[j].positions);
  return status;
}

/* True if the base has a cut of the positions that is older than `epoch`. The epoch of a cut is the one in
 * which its chain was formed; the chain of a given-up arc is formed by the view that gives it up. */
static bool is_older(const struct pwi_manifest *base, struct pawl_range positions, uint64_t epoch) {
  for (size_t i = 0; i < base->file_count; i++)
    for (size_t j = 0; j < base->files[i].arc_count; j++) {
      const struct pwi_archive_cut *cut = &base->files[i].arcs[j];
      if (cut->epoch < epoch && !pawl_range_is_empty(pawl_range_common(cut->positions, positions))) return true;
    }
  return false;
}

bool pwi_saving_base_is_lost(struct pwi_checkpointing *saving) {
  const struct pwi_view *view = saving->manager->ledger.view;
  if (!saving->manifest.base[0] || saving->epoch == view->epoch) return false;
  saving->epoch = view->epoch;
  for (size_t i = 0; i < view->arc_count; i++)
    if (view->arcs[i].lost && is_older(&saving->base, pwi_view_arc_range(view, i), view->arcs[i].lost)) return true;
  return false;
}

/* The lowest version that the base has of the positions. All changes since that version are saved. */
static uint64_t base_version(const struct pwi_checkpointing *saving, struct pawl_range positions) {
  uint64_t lowest = UINT64_MAX;
  for (size_t i = 0; i < saving->base.file_count; i++)
    for (size_t j = 0; j < saving->base.files[i].arc_count; j++) {
      const struct pwi_archive_cut *cut = &saving->base.files[i].arcs[j];
      bool is_there = !pawl_range_is_empty(pawl_range_common(cut->positions, positions));
      if (is_there && cut->sequence < lowest) lowest = cut->sequence;
    }
  return lowest == UINT64_MAX ? 0 : lowest;
}

/* The open positions of all arcs of which the node is the head. */
static pawl_status list_arcs(const struct pwi_checkpointing *saving, const struct pwi_rangeset *open, uint64_t node,
                             struct pwi_save_arc **arcs_out, size_t *count_out) {
  const struct pwi_view *view = saving->manager->ledger.view;
  struct pwi_save_arc *arcs = NULL;
  size_t count = 0, room = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    struct pawl_range positions = pwi_view_arc_range(view, i), run;
    if (view->arcs[i].chain[0].node.id != node) continue;
    for (uint64_t at = positions.begin; pwi_rangeset_next(open, at, &run); at = run.end) {
      run = pawl_range_common(run, positions);
      if (pawl_range_is_empty(run)) break;
      if (!PWI_GROW(arcs, room, count + 1)) {
        pwi_free(arcs);
        return PAWL_NO_MEMORY;
      }
      arcs[count++] = (struct pwi_save_arc){.positions = run, .since = base_version(saving, run)};
    }
  }
  *arcs_out = arcs;
  *count_out = count;
  return PAWL_OK;
}

static struct pwi_save save_of(const struct pwi_checkpointing *saving, const struct save_order *order) {
  struct pwi_save save = {.order = order->id,
                          .pack = saving->is_packed,
                          .rate = saving->node_rate,
                          .number = saving->manifest.number,
                          .arcs = order->arcs,
                          .arc_count = order->arc_count};
  memcpy(save.directory, saving->directory, sizeof save.directory);
  memcpy(save.folder, saving->folder, sizeof save.folder);
  memcpy(save.name, saving->manifest.name, sizeof save.name);
  memcpy(save.base, saving->manifest.base, sizeof save.base);
  memcpy(save.file, order->file, sizeof save.file);
  return save;
}

static pawl_status order_node(struct pwi_checkpointing *saving, const struct manager_node *node,
                              const struct pwi_rangeset *open) {
  struct pwi_manager *manager = saving->manager;
  struct save_order order = {.node = node->id, .link = node->peer->link};
  pawl_status status = list_arcs(saving, open, node->id, &order.arcs, &order.arc_count);
  if (status) return status;
  if (order.arc_count == 0 && saving->has_begun) return PAWL_OK;
  struct save_order *orders = pwi_resize_array(saving->orders, saving->order_count + 1, sizeof *orders);
  if (!orders) {
    pwi_free(order.arcs);
    return PAWL_NO_MEMORY;
  }
  saving->orders = orders;
  order.id = ++manager->last_save;
  snprintf(order.file, sizeof order.file, "node-%llu-%zu.pawl", (unsigned long long)node->id, ++saving->file_count);
  struct pwi_save save = save_of(saving, &order);
  say_save(manager, node->peer, &save);
  if (order.arc_count > 0) saving->orders[saving->order_count++] = order;
  return PAWL_OK;
}

static size_t count_heads(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  size_t count = 0;
  for (size_t i = 0; i < manager->node_count; i++) {
    bool is_head = false;
    for (size_t j = 0; j < view->arc_count; j++) is_head |= view->arcs[j].chain[0].node.id == manager->nodes[i].id;
    count += is_head;
  }
  return count;
}

pawl_status pwi_saving_order_all(struct pwi_checkpointing *saving) {
  struct pwi_manager *manager = saving->manager;
  struct pwi_rangeset open = {0};
  pawl_status status = find_open(saving, &open);
  if (!saving->has_begun) {
    size_t heads = count_heads(manager);
    saving->node_rate = saving->rate && heads ? saving->rate / heads + 1 : saving->rate;
  }
  for (size_t i = 0; i < manager->node_count && !status; i++) {
    const struct manager_node *node = &manager->nodes[i];
    if (node->peer && node->peer->state == PEER_IN && !order_of(saving, node->id))
      status = order_node(saving, node, &open);
  }
  saving->has_begun = true;
  pwi_rangeset_fini(&open);
  return status;
}

void pwi_saving_cancel_orders(struct pwi_checkpointing *saving) {
  while (saving->order_count > 0) {
    struct save_order *order = &saving->orders[saving->order_count - 1];
    struct manager_peer *peer = pwi_manager_peer(saving->manager, order->link);
    struct pwi_save save = {.order = order->id, .cancel = true};
    if (peer) say_save(saving->manager, peer, &save);
    drop_order(saving, saving->order_count - 1);
  }
}

void pwi_saving_look_at_orders(struct pwi_checkpointing *saving) {
  for (size_t i = saving->order_count; i-- > 0;)
    if (!pwi_manager_peer(saving->manager, saving->orders[i].link)) drop_order(saving, i);
}

void pwi_saving_orders_fini(struct pwi_checkpointing *saving) {
  while (saving->order_count > 0) drop_order(saving, saving->order_count - 1);
  pwi_free(saving->orders);
}

/* --- reports -------------------------------------------------------------------------------------------- */

static pawl_status add_file(struct pwi_checkpointing *saving, const struct save_order *order,
                            const struct pwi_save_report *report) {
  struct pwi_manifest_file file = {.node = order->node,
                                   .size = report->size,
                                   .checksum = report->checksum,
                                   .arcs = report->cuts,
                                   .arc_count = report->cut_count};
  memcpy(file.name, order->file, sizeof file.name);
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < report->cut_count && !status; i++) {
    if (pwi_rangeset_intersects(&saving->covered, report->cuts[i].positions)) return PAWL_CORRUPT;
    status = pwi_rangeset_add(&saving->covered, report->cuts[i].positions);
  }
  saving->bytes += report->size;
  return status ? status : pwi_manifest_add_file(&saving->manifest, &file);
}

static void take_report(struct pwi_checkpointing *saving, size_t index, const struct pwi_save_report *report) {
  struct save_order *order = &saving->orders[index];
  uint64_t node = order->node;
  if (report->bytes > order->bytes) saving->moved = pwi_net_now(saving->manager->config.net);
  order->bytes = report->bytes;
  if (!report->is_over) return;
  pawl_status status = report->status;
  if (!status && report->cut_count > 0) status = add_file(saving, order, report);
  drop_order(saving, index);
  if (status) pwi_saving_fail(saving, status, "node", node);
}

pawl_status pwi_manager_saved(struct pwi_manager *manager, struct manager_peer *peer, const void *payload,
                              size_t size) {
  struct pwi_checkpointing *saving = manager->checkpointing;
  struct pwi_save_report report;
  pawl_status status = pwi_save_report_decode(payload, size, &report);
  if (status) return status;
  for (size_t i = 0; saving && saving->phase == PHASE_SAVING && i < saving->order_count; i++)
    if (saving->orders[i].id == report.order && saving->orders[i].node == peer->id) {
      take_report(saving, i, &report);
      break;
    }
  pwi_save_report_fini(&report);
  return PAWL_OK;
}
