/* Saving arcs for a checkpoint, while traffic goes on (design, section 9).
 *
 * One arc after another. Of each, rows are copied chunk by chunk, a slice at a time; then those that changed meanwhile, and
 * again, until little is left or it does not become much less; then the rest and all clocks in one step, between two requests.
 * That is the *cut*: what the arc was at this version. It counts once the version is confirmed, for else it might be a
 * version that never was. If the arc gets another head first, it is left out, and the manager orders it from that one. Rows
 * of it that are in the file already do no harm: the manifest lists the file before the one that has the arc, and later rows
 * count.
 *
 * Whatever touches the disk is an errand (role/depot.h): here chunks are only copied into *sheets*, which are carried out
 * in their order. How many may be on their way, and how fast, is limited.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "role/depot.h"
#include "role/save.h"
#include "role/server_inside.h"

#define CHUNK (PWI_ARCHIVE_BLOCK - 64)
#define WINDOW 8                   /* sheets on their way */
#define SLICE 4                    /* chunks copied before others have their turn */
#define BURST ((uint64_t)1 << 20)  /* bytes that may go ahead of the rate */
#define REST_MAX ((size_t)8 << 20) /* what may be left for the last step: some milliseconds */
#define PASSES_MAX 6
#define PAUSE_NS INT64_C(500000)
#define REPORT_NS INT64_C(100000000)

enum sheet_kind { SHEET_OPEN, SHEET_CHUNK, SHEET_CUT, SHEET_FINISH, SHEET_ABANDON };

struct sheet {
  struct pwi_errand errand; /* first */
  struct sheet *next;
  struct server_saving *saving;
  enum sheet_kind kind;
  struct pwi_writer bytes;
  struct pwi_archive_cut cut;
  pawl_status status;
};

enum arc_state { ARC_NEXT, ARC_COPYING, ARC_CUT };

struct server_saving {
  struct pwi_server *server;
  struct pwi_save order;
  bool is_ending; /* the last sheet is in line: nothing more is added */
  bool is_given_up;
  pawl_status trouble;        /* why it cannot go on */
  struct pwi_save *following; /* an order that came meanwhile */

  /* The arc. */
  enum arc_state state;
  size_t arc;
  uint64_t since; /* of its chain */
  struct pwi_copying copying;
  uint64_t pass_version; /* of the arc when this pass began */
  unsigned pass;
  size_t pass_bytes, last_bytes; /* of this one, and the one before */
  struct pwi_archive_cut cut;
  uint64_t cut_version;
  struct pwi_archive_cut *cuts;
  size_t cut_count;

  /* Sheets: from the oldest that is not done to the newest; idle ones are used again. */
  struct sheet *first, *last, *unsent, *idle;
  size_t waiting, under_way; /* not sent yet, and sent */
  uint64_t given;            /* bytes */
  int64_t began, reported;

  /* Errands only. */
  struct pwi_archive_head head;
  struct pwi_files *files;
  struct pwi_file *file;
  struct pwi_archive_writer *archive;
  struct pwi_archive_figures figures;
  pawl_status failed; /* the first failure: nothing more is written */
};

/* --- errands: not in the shard's thread ------------------------------------------------------------------------------- */

static void path_of(const struct server_saving *saving, char *path, size_t size) {
  snprintf(path, size, "%s/%s", saving->order.name, saving->order.file);
}

static pawl_status open_file(struct server_saving *saving) {
  struct pwi_depot *depot = saving->server->config.depot;
  char path[2 * PWI_CHECKPOINT_NAME_MAX + 2];
  path_of(saving, path, sizeof path);
  pawl_status status = depot->ops->open(depot, saving->order.directory, &saving->files);
  if (!status)
    status = pwi_files_open(saving->files, path, PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE, &saving->file);
  if (!status) status = pwi_archive_create(saving->file, &saving->head, saving->order.pack, &saving->archive);
  return status;
}

static void close_file(struct server_saving *saving) {
  struct pwi_depot *depot = saving->server->config.depot;
  pwi_archive_writer_destroy(saving->archive);
  pwi_file_close(saving->file);
  if (saving->files) depot->ops->close(depot, saving->files);
  saving->archive = NULL;
  saving->file = NULL;
  saving->files = NULL;
}

static pawl_status finish_file(struct server_saving *saving) {
  pawl_status status = pwi_archive_finish(saving->archive, &saving->figures);
  if (!status) status = pwi_files_sync_directory(saving->files, saving->order.name);
  close_file(saving);
  return status;
}

static pawl_status abandon_file(struct server_saving *saving) {
  char path[2 * PWI_CHECKPOINT_NAME_MAX + 2];
  path_of(saving, path, sizeof path);
  pawl_status status = saving->file ? pwi_files_remove(saving->files, path) : PAWL_OK;
  (void)status; /* what stays behind is in no manifest */
  close_file(saving);
  return PAWL_OK;
}

static pawl_status carry_out(struct server_saving *saving, struct sheet *sheet) {
  switch (sheet->kind) {
  case SHEET_OPEN:
    return open_file(saving);
  case SHEET_CHUNK:
    return pwi_archive_write(saving->archive, PWI_ARCHIVE_CHUNK, sheet->bytes.data, sheet->bytes.size);
  case SHEET_CUT:
    return pwi_archive_write_cut(saving->archive, &sheet->cut);
  case SHEET_FINISH:
    return finish_file(saving);
  case SHEET_ABANDON:
    break;
  }
  return abandon_file(saving);
}

/* After a failure only what closes the file is done. */
static void run_sheet(struct pwi_errand *errand) {
  struct sheet *sheet = (struct sheet *)errand;
  struct server_saving *saving = sheet->saving;
  if (!saving->failed || sheet->kind == SHEET_ABANDON) sheet->status = carry_out(saving, sheet);
  if (sheet->status) saving->failed = sheet->status;
}

/* --- sheets ------------------------------------------------------------------------------------------------------------- */

static struct sheet *take_sheet(struct server_saving *saving, enum sheet_kind kind) {
  struct sheet *sheet = saving->idle;
  if (sheet)
    saving->idle = sheet->next;
  else if (!(sheet = pwi_alloc_zero(1, sizeof *sheet)))
    return NULL;
  pwi_writer_reset(&sheet->bytes);
  sheet->errand.run = run_sheet;
  atomic_store_explicit(&sheet->errand.is_done, false, memory_order_relaxed);
  sheet->next = NULL;
  sheet->saving = saving;
  sheet->kind = kind;
  sheet->status = PAWL_OK;
  return sheet;
}

static void put_back(struct server_saving *saving, struct sheet *sheet) {
  sheet->next = saving->idle;
  saving->idle = sheet;
}

static void line_up(struct server_saving *saving, struct sheet *sheet) {
  if (saving->last)
    saving->last->next = sheet;
  else
    saving->first = sheet;
  saving->last = sheet;
  if (!saving->unsent) saving->unsent = sheet;
  saving->waiting++;
}

static bool may_give(const struct server_saving *saving) {
  if (saving->order.rate == 0 || saving->is_ending) return true;
  int64_t elapsed = pwi_net_now(saving->server->config.net) - saving->began;
  double allowed = (double)saving->order.rate * (double)elapsed / 1e9 + (double)BURST;
  return (double)saving->given < allowed;
}

static void send_sheets(struct server_saving *saving) {
  struct pwi_depot *depot = saving->server->config.depot;
  while (saving->unsent && saving->under_way < WINDOW && may_give(saving)) {
    struct sheet *sheet = saving->unsent;
    saving->unsent = sheet->next;
    saving->waiting--;
    saving->under_way++;
    saving->given += sheet->bytes.size;
    depot->ops->send(depot, &sheet->errand);
  }
}

/* True once the last sheet is done. */
static bool reap(struct server_saving *saving) {
  while (saving->under_way > 0 && pwi_errand_is_done(&saving->first->errand)) {
    struct sheet *sheet = saving->first;
    saving->first = sheet->next;
    if (!saving->first) saving->last = NULL;
    saving->under_way--;
    if (sheet->status && !saving->trouble) saving->trouble = sheet->status;
    put_back(saving, sheet);
  }
  return saving->is_ending && !saving->first;
}

static void drop_unsent(struct server_saving *saving) {
  struct sheet **at = &saving->first;
  saving->last = NULL;
  while (*at && *at != saving->unsent) {
    saving->last = *at;
    at = &(*at)->next;
  }
  for (struct sheet *sheet = saving->unsent, *next; sheet; sheet = next) {
    next = sheet->next;
    put_back(saving, sheet);
  }
  *at = NULL;
  saving->unsent = NULL;
  saving->waiting = 0;
}

static void free_saving(struct server_saving *saving) {
  drop_unsent(saving);
  while (saving->first) {
    struct sheet *sheet = saving->first;
    saving->first = sheet->next;
    put_back(saving, sheet);
  }
  while (saving->idle) {
    struct sheet *sheet = saving->idle;
    saving->idle = sheet->next;
    pwi_writer_fini(&sheet->bytes);
    pwi_free(sheet);
  }
  close_file(saving);
  pwi_save_fini(&saving->order);
  if (saving->following) pwi_save_fini(saving->following);
  pwi_free(saving->following);
  pwi_free(saving->cuts);
  pwi_free(saving);
}

/* --- telling ------------------------------------------------------------------------------------------------------------ */

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

/* --- arcs --------------------------------------------------------------------------------------------------------------- */

static const struct pawl_range *positions_of(const struct server_saving *saving) {
  return &saving->order.arcs[saving->arc].positions;
}

/* The chain that has the arc, if we are its head. */
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
  struct sheet *sheet = take_sheet(saving, SHEET_CHUNK);
  if (!sheet) return PAWL_NO_MEMORY;
  pawl_status status = pwi_holding_copy(saving->server->holding, &saving->copying, CHUNK, &sheet->bytes, more_out);
  if (status || !*more_out) {
    put_back(saving, sheet);
    return status;
  }
  saving->pass_bytes += sheet->bytes.size;
  line_up(saving, sheet);
  return PAWL_OK;
}

static pawl_status copy_all(struct server_saving *saving) {
  bool more = true;
  pawl_status status = PAWL_OK;
  while (more && !status) status = copy_chunk(saving, &more);
  return status;
}

/* The rest, in one step: nothing changes meanwhile. */
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
  struct sheet *sheet = take_sheet(saving, SHEET_CUT);
  if (!sheet) return PAWL_NO_MEMORY;
  sheet->cut = saving->cut;
  line_up(saving, sheet);
  saving->cuts[saving->cut_count++] = saving->cut;
  next_arc(saving);
  return PAWL_OK;
}

/* One step; `*waits_out` if there is nothing to be done before something else has happened. */
static pawl_status step(struct server_saving *saving, bool *waits_out) {
  if (saving->state == ARC_NEXT) {
    begin_arc(saving);
    return PAWL_OK;
  }
  const struct pwi_chain *chain = chain_of(saving);
  if (!chain || chain->since != saving->since) { /* another order will bring it */
    next_arc(saving);
    return PAWL_OK;
  }
  if (saving->state == ARC_COPYING) return copy_on(saving, chain);
  if (chain->confirmed >= saving->cut_version) return write_cut(saving);
  *waits_out = true;
  return PAWL_OK;
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

static void look_again(struct pwi_server *server, int64_t delay) {
  if (server->save_timer.id != 0) return;
  int64_t at = pwi_net_now(server->config.net) + delay;
  if (pwi_net_timer_set(server->config.net, at, TIMER_SAVE, &server->save_timer)) server->save_timer.id = 0;
}

static void end_with(struct server_saving *saving, enum sheet_kind kind) {
  struct sheet *sheet = take_sheet(saving, kind);
  if (!sheet) return; /* tried again */
  saving->is_ending = true;
  line_up(saving, sheet);
}

static void give_up(struct server_saving *saving) {
  drop_unsent(saving);
  saving->is_given_up = true;
  end_with(saving, SHEET_ABANDON);
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
  struct sheet *sheet = take_sheet(saving, SHEET_OPEN);
  if (sheet)
    line_up(saving, sheet);
  else
    saving->trouble = PAWL_NO_MEMORY;
  look_again(server, 0);
}

/* All sheets are done: tell how it went. */
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

/* Copies on, within the slice and the rate. */
static pawl_status work(struct server_saving *saving) {
  pawl_status status = PAWL_OK;
  bool waits = false;
  for (int i = 0; i < SLICE && !status && !waits && saving->arc < saving->order.arc_count; i++) {
    if (saving->waiting > 0 || saving->under_way >= WINDOW || !may_give(saving)) break;
    status = step(saving, &waits);
    send_sheets(saving);
  }
  return status;
}

/* What comes next: more of the arcs, or the end, for better or worse. */
static void go_on(struct server_saving *saving) {
  if (!saving->trouble && !saving->is_given_up) saving->trouble = work(saving);
  if (saving->trouble || saving->is_given_up)
    give_up(saving);
  else if (saving->arc >= saving->order.arc_count && saving->waiting == 0)
    end_with(saving, SHEET_FINISH);
}

void pwi_server_save_timer(struct pwi_server *server) {
  struct server_saving *saving = server->saving;
  if (!saving) return;
  bool is_over = reap(saving);
  if (is_over && (saving->is_given_up || !saving->trouble)) {
    end_saving(server);
    return;
  }
  if (is_over) saving->is_ending = false; /* it failed at the very end */
  if (!saving->is_ending) go_on(saving);
  send_sheets(saving);
  if (pwi_net_now(server->config.net) - saving->reported > REPORT_NS) report(saving, false, PAWL_OK);
  bool is_held_up = saving->under_way >= WINDOW || saving->waiting > 0 || saving->is_ending || !may_give(saving) ||
                    saving->state == ARC_CUT;
  look_again(server, is_held_up ? PAUSE_NS : 1);
}

/* Changes are remembered from now on; what was there before counts as changed by the last version. */
static void begin_marks(struct pwi_server *server) {
  if (pwi_holding_is_marking(server->holding)) return;
  pwi_holding_begin_marks(server->holding);
  for (size_t i = 0; i < server->chains.count; i++)
    pwi_holding_mark_all(server->holding, server->chains.items[i]->positions, server->chains.items[i]->version);
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
  } else if (!server->config.depot) {
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
  server->config.depot->ops->settle(server->config.depot);
  free_saving(server->saving);
  server->saving = NULL;
}
