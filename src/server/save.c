/* Saving arcs for a checkpoint while requests go on (docs/checkpoints.md, "Saving").
 *
 * Arcs are saved one after the other. The rows of an arc are copied chunk by chunk, a slice at a time.
 * Further passes copy the rows that changed meanwhile, until little is left or the rest stops shrinking. The
 * last step copies this rest and all clocks between two requests. This is the *cut*: the arc at one version.
 * The cut counts once the version is confirmed; otherwise it could be a version that never existed. If the
 * arc gets another head first, it is left out, and the manager orders it from that head. Rows of it that are
 * in the file already do no harm: the manifest lists the file before the one with the arc, and later rows
 * count.
 *
 * All disk accesses are disk jobs (checkpoint/disk_queue.h). Here chunks are only copied to *sheets*, which
 * are carried out in order. The number of sheets under way and their rate are limited.
 */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "server/saving.h"

#define CHUNK (PWI_ARCHIVE_BLOCK - 64)
#define SLICE 4                    /* chunks copied at a time */
#define REST_MAX ((size_t)8 << 20) /* bytes left for the last step: some milliseconds */
#define PASSES_MAX 6
#define PAUSE_NS INT64_C(500000)
#define PAUSE_MAX_NS INT64_C(20000000)
#define REPORT_NS INT64_C(100000000)

/* --- telling -------------------------------------------------------------------------------------------- */

static void report(struct server_saving *saving, bool is_over, pawl_status status) {
  struct pwi_server *server = saving->server;
  struct pwi_save_report report = {
      .order = saving->order.order, .is_over = is_over, .status = status, .bytes = saving->given};
  saving->reported = pwi_net_now(server->config.net);
  if (is_over && !status) {
    report.size = saving->figures.size;
    report.checksum = saving->figures.checksum;
    report.cuts = saving->cuts;
    report.cut_count = saving->cut_count;
  }
  pwi_writer_reset(&server->writer);
  pwi_save_report_encode(&report, &server->writer);
  if (server->joined) pwi_server_say_payload(server, server->manager, PWI_SAY_SAVED);
}

static void refuse(struct pwi_server *server, uint64_t order, pawl_status status) {
  struct pwi_save_report report = {.order = order, .is_over = true, .status = status};
  pwi_writer_reset(&server->writer);
  pwi_save_report_encode(&report, &server->writer);
  if (server->joined) pwi_server_say_payload(server, server->manager, PWI_SAY_SAVED);
}

/* --- arcs ----------------------------------------------------------------------------------------------- */

static const struct pawl_range *positions_of(const struct server_saving *saving) {
  return &saving->order.arcs[saving->arc].positions;
}

/* The chain of the arc; NULL if this server is not its head. */
static struct pwi_chain *chain_of(const struct server_saving *saving) {
  const struct pawl_range *positions = positions_of(saving);
  struct pwi_chain *chain = pwi_chains_find(&saving->server->chains, positions->begin);
  bool is_ours = chain && chain->is_head && pawl_range_contains(chain->positions, *positions);
  return is_ours ? chain : NULL;
}

static void next_arc(struct server_saving *saving) {
  saving->arc++;
  saving->state = ARC_NEXT;
}

static void begin_pass(struct server_saving *saving, const struct pwi_chain *chain, bool is_partial, uint64_t since) {
  pwi_copying_init(&saving->copying, *positions_of(saving));
  saving->copying.rows_only = true;
  saving->copying.is_partial = is_partial;
  saving->copying.since = since;
  saving->pass_version = chain->version;
  saving->pass_bytes = 0;
  saving->pass++;
}

static void begin_arc(struct server_saving *saving) {
  const struct pwi_chain *chain = chain_of(saving);
  if (!chain) {
    next_arc(saving);
    return;
  }
  saving->since = chain->since;
  saving->pass = 0;
  saving->state = ARC_COPYING;
  begin_pass(saving, chain, saving->order.base[0] != '\0', saving->order.arcs[saving->arc].since);
}

static pawl_status copy_chunk(struct server_saving *saving, bool *more_out) {
  struct sheet *sheet = pwi_sheet_take(saving, SHEET_CHUNK);
  if (!sheet) return PAWL_NO_MEMORY;
  pawl_status status = pwi_shard_copy(saving->server->shard, &saving->copying, CHUNK, &sheet->bytes, more_out);
  if (status || !*more_out) {
    pwi_sheet_put_back(saving, sheet);
    return status;
  }
  saving->pass_bytes += sheet->bytes.size;
  pwi_sheet_line_up(saving, sheet);
  return PAWL_OK;
}

static pawl_status copy_all(struct server_saving *saving) {
  bool more = true;
  pawl_status status = PAWL_OK;
  while (more && !status) status = copy_chunk(saving, &more);
  return status;
}

/* Copies the rest in one step, so that nothing changes meanwhile. */
static pawl_status cut_arc(struct server_saving *saving, const struct pwi_chain *chain) {
  begin_pass(saving, chain, true, saving->pass_version);
  pawl_status status = copy_all(saving);
  pwi_copying_init(&saving->copying, *positions_of(saving));
  saving->copying.no_rows = true;
  if (!status) status = copy_all(saving);
  saving->cut = (struct pwi_archive_cut){.positions = *positions_of(saving),
                                         .epoch = chain->since,
                                         .sequence = pwi_chain_lowest(&saving->server->chains, chain)};
  saving->cut_version = chain->version;
  saving->state = ARC_CUT;
  return status;
}

static pawl_status copy_on(struct server_saving *saving, const struct pwi_chain *chain) {
  bool more;
  pawl_status status = copy_chunk(saving, &more);
  if (status || more) return status;
  bool shrinks = saving->pass == 1 || saving->pass_bytes < saving->last_bytes / 2;
  if (saving->pass_bytes <= REST_MAX || !shrinks || saving->pass >= PASSES_MAX) return cut_arc(saving, chain);
  saving->last_bytes = saving->pass_bytes;
  begin_pass(saving, chain, true, saving->pass_version);
  return PAWL_OK;
}

static pawl_status write_cut(struct server_saving *saving) {
  struct sheet *sheet = pwi_sheet_take(saving, SHEET_CUT);
  if (!sheet) return PAWL_NO_MEMORY;
  sheet->cut = saving->cut;
  pwi_sheet_line_up(saving, sheet);
  saving->cuts[saving->cut_count++] = saving->cut;
  next_arc(saving);
  return PAWL_OK;
}

/* One step. `*waits_out`: nothing can be done before something else happens. */
static pawl_status step(struct server_saving *saving, bool *waits_out) {
  if (saving->state == ARC_NEXT) {
    begin_arc(saving);
    return PAWL_OK;
  }
  const struct pwi_chain *chain = chain_of(saving);
  if (!chain || chain->since != saving->since) { /* another order saves it */
    next_arc(saving);
    return PAWL_OK;
  }
  if (saving->state == ARC_COPYING) return copy_on(saving, chain);
  if (chain->confirmed >= saving->cut_version) return write_cut(saving);
  *waits_out = true;
  return PAWL_OK;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void look_again(struct pwi_server *server, int64_t delay) {
  if (server->save_timer.id != 0) return;
  int64_t at = pwi_net_now(server->config.net) + delay;
  if (pwi_net_timer_set(server->config.net, at, TIMER_SAVE, &server->save_timer)) server->save_timer.id = 0;
}

static void end_with(struct server_saving *saving, enum sheet_kind kind) {
  struct sheet *sheet = pwi_sheet_take(saving, kind);
  if (!sheet) return; /* tried again later */
  saving->is_ending = true;
  pwi_sheet_line_up(saving, sheet);
}

static void give_up(struct server_saving *saving) {
  pwi_sheets_drop_unsent(saving);
  saving->is_given_up = true;
  end_with(saving, SHEET_ABANDON);
}

static void free_saving(struct server_saving *saving) {
  pwi_sheets_fini(saving);
  pwi_save_fini(&saving->order);
  if (saving->following) pwi_save_fini(saving->following);
  pwi_free(saving->following);
  pwi_free(saving->cuts);
  pwi_free(saving);
}

static void begin_saving(struct pwi_server *server, struct pwi_save *order) {
  struct server_saving *saving = pwi_alloc_zero(1, sizeof *saving);
  struct pwi_archive_cut *cuts = pwi_alloc_zero(order->arc_count, sizeof *cuts);
  if (!saving || !cuts) {
    refuse(server, order->order, PAWL_NO_MEMORY);
    pwi_free(saving);
    pwi_free(cuts);
    pwi_save_fini(order);
    return;
  }
  saving->server = server;
  saving->order = *order;
  saving->cuts = cuts;
  saving->began = saving->reported = pwi_net_now(server->config.net);
  saving->head = (struct pwi_archive_head){.cluster = server->greeting.cluster,
                                           .checkpoint = order->number,
                                           .node = server->node,
                                           .salt = pwi_mix64(server->config.process ^ order->order)};
  memcpy(saving->head.name, order->name, sizeof saving->head.name);
  memcpy(saving->head.base, order->base, sizeof saving->head.base);
  server->saving = saving;
  struct sheet *sheet = pwi_sheet_take(saving, SHEET_OPEN);
  if (sheet)
    pwi_sheet_line_up(saving, sheet);
  else
    saving->trouble = PAWL_NO_MEMORY;
  look_again(server, 0);
}

/* All sheets are done: reports the result. */
static void end_saving(struct pwi_server *server) {
  struct server_saving *saving = server->saving;
  struct pwi_save *following = saving->following;
  saving->following = NULL;
  if (!saving->is_given_up || saving->trouble) report(saving, true, saving->trouble);
  server->saving = NULL;
  free_saving(saving);
  if (following) begin_saving(server, following);
  pwi_free(following);
}

/* Continues copying, within the slice and the rate. */
static pawl_status work(struct server_saving *saving) {
  pawl_status status = PAWL_OK;
  bool waits = false;
  for (int i = 0; i < SLICE && !status && !waits && saving->arc < saving->order.arc_count; i++) {
    if (saving->waiting > 0 || saving->under_way >= PWI_SHEETS_WINDOW || pwi_sheets_wait_ns(saving) > 0) break;
    status = step(saving, &waits);
    pwi_sheets_send(saving);
  }
  return status;
}

/* Continues with the arcs, or ends the order. */
static void go_on(struct server_saving *saving) {
  if (!saving->trouble && !saving->is_given_up) saving->trouble = work(saving);
  if (saving->trouble || saving->is_given_up)
    give_up(saving);
  else if (saving->arc >= saving->order.arc_count && saving->waiting == 0)
    end_with(saving, SHEET_FINISH);
}

/* Sets the timer for the next step. If only the rate holds the order up, it waits until the rate permits
 * more: frequent checks would cost a tenth of the work. */
static int64_t pause_of(const struct server_saving *saving) {
  int64_t wait = pwi_sheets_wait_ns(saving);
  bool is_held_up =
      saving->under_way >= PWI_SHEETS_WINDOW || saving->waiting > 0 || saving->is_ending || saving->state == ARC_CUT;
  if (wait > PAUSE_NS) return wait < PAUSE_MAX_NS ? wait : PAUSE_MAX_NS;
  return is_held_up || wait > 0 ? PAUSE_NS : 1;
}

void pwi_server_save_timer(struct pwi_server *server) {
  struct server_saving *saving = server->saving;
  if (!saving) return;
  bool is_over = pwi_sheets_reap(saving);
  if (is_over && (saving->is_given_up || !saving->trouble)) {
    end_saving(server);
    return;
  }
  if (is_over) saving->is_ending = false; /* it failed at the end */
  if (!saving->is_ending) go_on(saving);
  pwi_sheets_send(saving);
  if (pwi_net_now(server->config.net) - saving->reported > REPORT_NS) report(saving, false, PAWL_OK);
  look_again(server, pause_of(saving));
}

/* Changes are recorded from now on; older rows count as changed by the last version. */
static void begin_marks(struct pwi_server *server) {
  if (pwi_shard_is_marking(server->shard)) return;
  pwi_shard_begin_marks(server->shard);
  for (size_t i = 0; i < server->chains.count; i++)
    pwi_shard_mark_all(server->shard, server->chains.items[i]->positions, server->chains.items[i]->version);
}

static void follow_up(struct server_saving *saving, struct pwi_save *order) {
  struct pwi_save *copy = pwi_alloc_zero(1, sizeof *copy);
  if (!saving->is_ending) give_up(saving);
  if (saving->following) pwi_save_fini(saving->following);
  pwi_free(saving->following);
  saving->following = copy;
  if (copy) {
    *copy = *order;
    return;
  }
  refuse(saving->server, order->order, PAWL_NO_MEMORY);
  pwi_save_fini(order);
}

pawl_status pwi_server_save_ordered(struct pwi_server *server, const void *payload, size_t size) {
  struct pwi_save order;
  struct server_saving *saving = server->saving;
  pawl_status status = pwi_save_decode(payload, size, &order);
  if (status) return status;
  begin_marks(server);
  if (order.cancel || order.arc_count == 0) {
    if (order.cancel && saving && saving->order.order == order.order && !saving->is_ending) give_up(saving);
    pwi_save_fini(&order);
  } else if (!server->config.disk_queue) {
    refuse(server, order.order, PAWL_UNSUPPORTED);
    pwi_save_fini(&order);
  } else if (saving) {
    follow_up(saving, &order);
  } else {
    begin_saving(server, &order);
  }
  look_again(server, 0);
  return PAWL_OK;
}

void pwi_server_save_without_manager(struct pwi_server *server) {
  struct server_saving *saving = server->saving;
  if (!saving) return;
  if (saving->following) pwi_save_fini(saving->following);
  pwi_free(saving->following);
  saving->following = NULL;
  if (!saving->is_ending) give_up(saving);
  look_again(server, 0);
}

void pwi_server_save_fini(struct pwi_server *server) {
  if (!server->saving) return;
  server->config.disk_queue->ops->settle(server->config.disk_queue);
  free_saving(server->saving);
  server->saving = NULL;
}
