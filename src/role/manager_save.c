/* Checkpoints: the manager orders them, and writes the manifest (design, section 9; docs/checkpoints.md).
 *
 * A checkpoint is prepared (its directory, its number, its base), then ordered from the heads of all arcs, one order to a
 * node at a time, then written down. What an order did not bring, because the arc has another head by now or the node is
 * gone, is ordered again from whoever is the head then. When every position of the ring is in some file the manifest is
 * written; before that the directory is no checkpoint. What fails ends it, the directory is swept, and nothing else happens.
 *
 * It is kept in memory only: a manager that is started again knows nothing of it, and servers that lose their manager stop
 * saving.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "role/depot.h"
#include "role/manager_inside.h"
#include "role/save.h"
#include "role/saved.h"

#define TICK_NS INT64_C(10000000)
#define STILL_NS (60 * INT64_C(1000000000)) /* without progress: it is given up */
#define NAME "checkpoint"
#define AUTO_NAME "auto"

/* Of a node, under way. */
struct order {
  uint64_t id;
  uint64_t node;
  struct pwi_link link; /* gone: so is the order */
  char file[PWI_CHECKPOINT_NAME_MAX + 1];
  struct pwi_save_arc *arcs;
  size_t arc_count;
  uint64_t bytes;
};

enum phase { PHASE_PREPARING, PHASE_SAVING, PHASE_WRITING, PHASE_SWEEPING };
static const char *const phase_names[] = {"preparing", "saving", "writing", "ending"};

struct pwi_checkpointing {
  struct pwi_manager *manager;
  enum phase phase;
  struct pwi_errand errand; /* under way unless SAVING */
  char directory[PWI_SAVE_PATH_MAX + 1];
  bool is_incremental, is_packed, is_periodic;
  uint64_t rate, node_rate;
  uint32_t keep;
  struct pwi_link link; /* who asked; and */
  uint64_t task;        /* 0: has been told */

  struct pwi_manifest manifest; /* as far as it is known */
  struct pwi_manifest base;
  struct pwi_rangeset covered;
  struct order *orders;
  size_t order_count, file_count;
  bool has_begun; /* all nodes have been told */
  uint64_t bytes; /* of files that are finished */
  int64_t moved;  /* when there was progress last */

  pawl_status status; /* of the errand, and in the end of all */
  char why[256];
};

static void set_timer(struct pwi_manager *manager, int64_t delay, uint64_t which, struct pwi_timer *timer) {
  if (timer->id == 0) pwi_manager_timer_set(manager, delay, TIMER_SAVE, which, timer);
}

static void tick_later(struct pwi_manager *manager) { set_timer(manager, TICK_NS, 0, &manager->save_timer); }

static void fail(struct pwi_checkpointing *saving, pawl_status status, const char *who, uint64_t node) {
  if (saving->status) return;
  saving->status = status;
  if (node)
    snprintf(saving->why, sizeof saving->why, "%s %llu: %s", who, (unsigned long long)node, pawl_status_text(status));
  else
    snprintf(saving->why, sizeof saving->why, "%s: %s", who, pawl_status_text(status));
}

/* --- errands: not in the manager's thread --------------------------------------------------------------------------------- */

static pawl_status open_depot(struct pwi_checkpointing *saving, struct pwi_files **files_out) {
  struct pwi_depot *depot = saving->manager->config.depot;
  return depot->ops->open(depot, saving->directory, files_out);
}

static void close_depot(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_depot *depot = saving->manager->config.depot;
  depot->ops->close(depot, files);
}

/* The newest of this cluster is the base of one that is incremental; without any it stands alone. */
static pawl_status find_base(struct pwi_checkpointing *saving, struct pwi_files *files,
                             const struct pwi_saved_list *list) {
  for (size_t i = list->count; i-- > 0 && saving->is_incremental;) {
    struct pwi_manifest manifest = {0};
    if (list->items[i].status) continue;
    pawl_status status = pwi_manifest_read(files, list->items[i].name, &manifest);
    if (status) return status;
    if (manifest.cluster == saving->manifest.cluster) {
      saving->base = manifest;
      memcpy(saving->manifest.base, manifest.name, sizeof manifest.name);
      return PAWL_OK;
    }
    pwi_manifest_fini(&manifest);
  }
  return PAWL_OK;
}

/* A directory of that name that is no checkpoint was left behind by an attempt. */
static pawl_status make_directory(struct pwi_files *files, const char *name) {
  bool exists;
  pawl_status status = pwi_files_exists(files, name, &exists);
  if (!status && exists) status = pwi_saved_sweep(files, name);
  if (!status) status = pwi_files_make_directory(files, name);
  return status ? status : pwi_files_sync_directory(files, ".");
}

static pawl_status prepare(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_saved_list list = {0};
  struct pwi_manifest *manifest = &saving->manifest;
  pawl_status status = pwi_saved_list(files, &list);
  if (status) return status;
  for (size_t i = 0; i < list.count; i++)
    if (!list.items[i].status && list.items[i].number > manifest->number) manifest->number = list.items[i].number;
  manifest->number++;
  if (!manifest->name[0])
    snprintf(manifest->name, sizeof manifest->name, "%s-%06llu", saving->is_periodic ? AUTO_NAME : NAME,
             (unsigned long long)manifest->number);
  status = find_base(saving, files, &list);
  pwi_saved_list_fini(&list);
  return status ? status : make_directory(files, manifest->name);
}

static void run_prepare(struct pwi_errand *errand) {
  struct pwi_checkpointing *saving =
      (struct pwi_checkpointing *)((char *)errand - offsetof(struct pwi_checkpointing, errand));
  struct pwi_files *files;
  saving->status = open_depot(saving, &files);
  if (saving->status) return;
  saving->status = prepare(saving, files);
  close_depot(saving, files);
}

static bool is_base_of(const struct pwi_saved_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (!list->items[i].status && strcmp(list->items[i].base, name) == 0) return true;
  return false;
}

/* Of those that were made from time to time only so many are kept, and those that are bases. */
static void forget_old(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_saved_list list = {0};
  size_t count = 0;
  if (saving->keep == 0 || pwi_saved_list(files, &list)) return;
  for (size_t i = list.count; i-- > 0;) {
    const struct pwi_saved_item *item = &list.items[i];
    if (item->status || strncmp(item->name, AUTO_NAME "-", sizeof AUTO_NAME) != 0) continue;
    if (++count <= saving->keep || is_base_of(&list, item->name)) continue;
    if (pwi_saved_remove(files, item->name)) break;
    list.items[i].base[0] = '\0'; /* its own base is not needed for it any more */
  }
  pwi_saved_list_fini(&list);
}

static void run_write(struct pwi_errand *errand) {
  struct pwi_checkpointing *saving =
      (struct pwi_checkpointing *)((char *)errand - offsetof(struct pwi_checkpointing, errand));
  struct pwi_depot *depot = saving->manager->config.depot;
  struct pwi_files *files;
  saving->manifest.time_s = depot->ops->wall_s(depot);
  saving->status = open_depot(saving, &files);
  if (saving->status) return;
  saving->status = pwi_manifest_write(files, saving->manifest.name, &saving->manifest);
  if (!saving->status && saving->is_periodic) forget_old(saving, files);
  close_depot(saving, files);
}

static void run_sweep(struct pwi_errand *errand) {
  struct pwi_checkpointing *saving =
      (struct pwi_checkpointing *)((char *)errand - offsetof(struct pwi_checkpointing, errand));
  struct pwi_files *files;
  if (open_depot(saving, &files)) return;
  pawl_status status = pwi_saved_sweep(files, saving->manifest.name);
  (void)status; /* what stays behind is no checkpoint */
  close_depot(saving, files);
}

static void send_errand(struct pwi_checkpointing *saving, enum phase phase, void (*run)(struct pwi_errand *errand)) {
  struct pwi_depot *depot = saving->manager->config.depot;
  saving->phase = phase;
  saving->errand.run = run;
  atomic_store_explicit(&saving->errand.is_done, false, memory_order_relaxed);
  depot->ops->send(depot, &saving->errand);
  tick_later(saving->manager);
}

/* --- orders ---------------------------------------------------------------------------------------------------------------- */

static void say_save(struct pwi_manager *manager, struct peer *peer, const struct pwi_save *save) {
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

static struct order *order_of(const struct pwi_checkpointing *saving, uint64_t node) {
  for (size_t i = 0; i < saving->order_count; i++)
    if (saving->orders[i].node == node) return &saving->orders[i];
  return NULL;
}

/* What is neither in a file nor on its way into one. */
static pawl_status find_open(const struct pwi_checkpointing *saving, struct pwi_rangeset *open) {
  pawl_status status = pwi_rangeset_add(open, pawl_range_of(0, PWI_RING_END));
  if (!status) status = pwi_rangeset_remove_all(open, &saving->covered);
  for (size_t i = 0; i < saving->order_count; i++)
    for (size_t j = 0; j < saving->orders[i].arc_count && !status; j++)
      status = pwi_rangeset_remove(open, saving->orders[i].arcs[j].positions);
  return status;
}

/* The lowest number that the base has there: what changed since any of it is saved. */
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

/* The open parts of all arcs that the node is the head of. */
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
      if (count == room) {
        struct pwi_save_arc *grown = pwi_resize_array(arcs, room = room ? room * 2 : 16, sizeof *grown);
        if (!grown) {
          pwi_free(arcs);
          return PAWL_NO_MEMORY;
        }
        arcs = grown;
      }
      arcs[count++] = (struct pwi_save_arc){.positions = run, .since = base_version(saving, run)};
    }
  }
  *arcs_out = arcs;
  *count_out = count;
  return PAWL_OK;
}

static struct pwi_save save_of(const struct pwi_checkpointing *saving, const struct order *order) {
  struct pwi_save save = {.order = order->id,
                          .pack = saving->is_packed,
                          .rate = saving->node_rate,
                          .number = saving->manifest.number,
                          .arcs = order->arcs,
                          .arc_count = order->arc_count};
  memcpy(save.directory, saving->directory, sizeof save.directory);
  memcpy(save.name, saving->manifest.name, sizeof save.name);
  memcpy(save.base, saving->manifest.base, sizeof save.base);
  memcpy(save.file, order->file, sizeof save.file);
  return save;
}

static pawl_status order_node(struct pwi_checkpointing *saving, const struct node *node,
                              const struct pwi_rangeset *open) {
  struct pwi_manager *manager = saving->manager;
  struct order order = {.node = node->id, .link = node->peer->link};
  pawl_status status = list_arcs(saving, open, node->id, &order.arcs, &order.arc_count);
  if (status) return status;
  if (order.arc_count == 0 && saving->has_begun) return PAWL_OK;
  struct order *orders = pwi_resize_array(saving->orders, saving->order_count + 1, sizeof *orders);
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

static pawl_status order_all(struct pwi_checkpointing *saving) {
  struct pwi_manager *manager = saving->manager;
  struct pwi_rangeset open = {0};
  pawl_status status = find_open(saving, &open);
  if (!saving->has_begun) {
    size_t heads = count_heads(manager);
    saving->node_rate = saving->rate && heads ? saving->rate / heads + 1 : saving->rate;
  }
  for (size_t i = 0; i < manager->node_count && !status; i++) {
    const struct node *node = &manager->nodes[i];
    if (node->peer && node->peer->state == PEER_IN && !order_of(saving, node->id))
      status = order_node(saving, node, &open);
  }
  saving->has_begun = true;
  pwi_rangeset_fini(&open);
  return status;
}

static void cancel_orders(struct pwi_checkpointing *saving) {
  while (saving->order_count > 0) {
    struct order *order = &saving->orders[saving->order_count - 1];
    struct peer *peer = pwi_manager_peer(saving->manager, order->link);
    struct pwi_save save = {.order = order->id, .cancel = true};
    if (peer) say_save(saving->manager, peer, &save);
    drop_order(saving, saving->order_count - 1);
  }
}

/* --- what servers say ----------------------------------------------------------------------------------------------------- */

static pawl_status add_file(struct pwi_checkpointing *saving, const struct order *order,
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
  struct order *order = &saving->orders[index];
  uint64_t node = order->node;
  if (report->bytes > order->bytes) saving->moved = pwi_net_now(saving->manager->config.net);
  order->bytes = report->bytes;
  if (!report->is_over) return;
  pawl_status status = report->status;
  if (!status && report->cut_count > 0) status = add_file(saving, order, report);
  drop_order(saving, index);
  if (status) fail(saving, status, "node", node);
}

pawl_status pwi_manager_saved(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size) {
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

/* --- from step to step ---------------------------------------------------------------------------------------------------- */

static void tell_asker(struct pwi_checkpointing *saving, pawl_status status) {
  struct peer *peer = saving->task ? pwi_manager_peer(saving->manager, saving->link) : NULL;
  if (peer) pwi_manager_say_reply(saving->manager, peer, saving->task, status, status ? 0 : saving->manifest.number);
  saving->task = 0;
}

static pawl_status list_vectors(struct pwi_checkpointing *saving) {
  const struct pwi_catalogue *catalogue = &saving->manager->ledger.catalogue;
  for (size_t i = 0; i < catalogue->count; i++) {
    const struct pwi_entry *entry = &catalogue->entries[i];
    if (entry->kind != PWI_ENTRY_VECTOR) continue;
    struct pwi_manifest_vector vector = {.id = entry->id.id, .incarnation = entry->incarnation, .is = entry->is};
    memcpy(vector.name, entry->name, sizeof vector.name);
    pawl_status status = pwi_manifest_add_vector(&saving->manifest, &vector);
    if (status) return status;
  }
  return PAWL_OK;
}

/* A vector that was loaded while it was saved is in the files half and half. One that was deleted is left out. */
static void check_vectors(struct pwi_checkpointing *saving) {
  const struct pwi_catalogue *catalogue = &saving->manager->ledger.catalogue;
  struct pwi_manifest *manifest = &saving->manifest;
  size_t kept = 0;
  for (size_t i = 0; i < manifest->vector_count; i++) {
    const struct pwi_entry *entry = pwi_catalogue_find(catalogue, (struct pwi_vector_id){manifest->vectors[i].id});
    if (entry && entry->incarnation != manifest->vectors[i].incarnation)
      fail(saving, PAWL_RESTORED, manifest->vectors[i].name, 0);
    if (entry) manifest->vectors[kept++] = manifest->vectors[i];
  }
  manifest->vector_count = kept;
}

static void free_saving(struct pwi_checkpointing *saving) {
  while (saving->order_count > 0) drop_order(saving, saving->order_count - 1);
  pwi_free(saving->orders);
  pwi_rangeset_fini(&saving->covered);
  pwi_manifest_fini(&saving->manifest);
  pwi_manifest_fini(&saving->base);
  pwi_free(saving);
}

static void remember_result(struct pwi_checkpointing *saving) {
  struct pwi_checkpoint_result *result = &saving->manager->checkpointed;
  *result = (struct pwi_checkpoint_result){.number = saving->manifest.number,
                                           .status = saving->status,
                                           .bytes = saving->bytes,
                                           .files = saving->manifest.file_count};
  memcpy(result->name, saving->manifest.name, sizeof result->name);
  memcpy(result->base, saving->manifest.base, sizeof result->base);
  memcpy(result->directory, saving->directory, sizeof result->directory);
  memcpy(result->why, saving->why, sizeof result->why);
  pwi_log(saving->manager->config.log, saving->status ? PAWL_LOG_WARN : PAWL_LOG_INFO,
          saving->status ? "checkpoint.failed" : "checkpoint.saved", "name=%s files=%zu bytes=%llu%s%s", result->name,
          result->files, (unsigned long long)result->bytes, saving->status ? " why=" : "", saving->why);
}

static void end(struct pwi_checkpointing *saving) {
  struct pwi_manager *manager = saving->manager;
  remember_result(saving);
  tell_asker(saving, saving->status);
  manager->checkpointing = NULL;
  free_saving(saving);
}

static void give_up(struct pwi_checkpointing *saving) {
  cancel_orders(saving);
  send_errand(saving, PHASE_SWEEPING, run_sweep);
}

static void begin_orders(struct pwi_checkpointing *saving) {
  saving->phase = PHASE_SAVING;
  saving->moved = pwi_net_now(saving->manager->config.net);
  pawl_status status = list_vectors(saving);
  if (status) fail(saving, status, "the manager", 0);
  tell_asker(saving, PAWL_OK);
}

/* Orders of nodes that are gone are no more. */
static void look_at_orders(struct pwi_checkpointing *saving) {
  for (size_t i = saving->order_count; i-- > 0;)
    if (!pwi_manager_peer(saving->manager, saving->orders[i].link)) drop_order(saving, i);
}

static void save_on(struct pwi_checkpointing *saving) {
  struct pwi_manager *manager = saving->manager;
  look_at_orders(saving);
  if (!saving->status && pwi_rangeset_contains(&saving->covered, pawl_range_of(0, PWI_RING_END))) {
    check_vectors(saving);
    if (!saving->status) {
      send_errand(saving, PHASE_WRITING, run_write);
      return;
    }
  }
  if (!saving->status && pwi_net_now(manager->config.net) - saving->moved > STILL_NS)
    fail(saving, PAWL_TIMED_OUT, "some keys have no server that could save them", 0);
  pawl_status status = saving->status ? PAWL_OK : order_all(saving);
  if (status) fail(saving, status, "the manager", 0);
  if (saving->status) give_up(saving);
}

static void tick(struct pwi_manager *manager) {
  struct pwi_checkpointing *saving = manager->checkpointing;
  if (!saving) return;
  tick_later(manager);
  if (saving->phase == PHASE_SAVING) {
    save_on(saving);
    return;
  }
  if (!pwi_errand_is_done(&saving->errand)) return;
  if (saving->status && !saving->why[0])
    snprintf(saving->why, sizeof saving->why, "the manager: %s", pawl_status_text(saving->status));
  if (saving->phase == PHASE_PREPARING && !saving->status)
    begin_orders(saving);
  else if (saving->phase == PHASE_WRITING && saving->status)
    give_up(saving);
  else
    end(saving);
}

/* --- beginning ------------------------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_manager *manager, const struct pwi_checkpoint_wish *wish,
                         struct pwi_checkpointing **saving_out) {
  if (!manager->config.depot) return PAWL_UNSUPPORTED;
  if (manager->checkpointing) return PAWL_EXISTS;
  if (wish->name[0] && !pwi_checkpoint_name_is_valid(wish->name)) return PAWL_INVALID;
  const char *directory = wish->directory[0] ? wish->directory : manager->config.checkpoint_directory;
  if (!directory || directory[0] != '/' || strlen(directory) > PWI_SAVE_PATH_MAX) return PAWL_INVALID;
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0) return PAWL_NODE_GONE;
  struct pwi_checkpointing *saving = pwi_alloc_zero(1, sizeof *saving);
  if (!saving) return PAWL_NO_MEMORY;
  saving->manager = manager;
  snprintf(saving->directory, sizeof saving->directory, "%s", directory);
  snprintf(saving->manifest.name, sizeof saving->manifest.name, "%s", wish->name);
  saving->manifest.cluster = manager->ledger.cluster;
  saving->is_incremental = wish->incremental;
  saving->is_packed = wish->pack;
  saving->rate = wish->rate;
  manager->checkpointing = saving;
  *saving_out = saving;
  send_errand(saving, PHASE_PREPARING, run_prepare);
  return PAWL_OK;
}

enum { INCREMENTAL = 1, PACKED = 2 };

static pawl_status read_wish(struct pwi_reader *reader, struct pwi_checkpoint_wish *wish) {
  pwi_read_text(reader, wish->directory, sizeof wish->directory);
  pwi_read_text(reader, wish->name, sizeof wish->name);
  uint8_t flags = pwi_read_u8(reader);
  wish->rate = pwi_read_u64(reader);
  wish->incremental = flags & INCREMENTAL;
  wish->pack = flags & PACKED;
  return pwi_reader_end(reader) || flags > (INCREMENTAL | PACKED) ? PAWL_INVALID : PAWL_OK;
}

/* Asked again after a lost link, it is the same one. */
static bool is_the_same(const struct pwi_checkpointing *saving, const struct pwi_checkpoint_wish *wish) {
  return saving && wish->name[0] && strcmp(saving->manifest.name, wish->name) == 0 && saving->phase != PHASE_PREPARING;
}

void pwi_manager_checkpoint_asked(struct pwi_manager *manager, struct peer *peer, struct pwi_reader *reader,
                                  uint64_t task) {
  struct pwi_checkpoint_wish wish = {0};
  struct pwi_checkpointing *saving = NULL;
  bool may = peer->rights.write && peer->rights.space[0] == '\0';
  pawl_status status = read_wish(reader, &wish);
  if (!status && !may) status = PAWL_FORBIDDEN;
  if (!status && is_the_same(manager->checkpointing, &wish)) {
    pwi_manager_say_reply(manager, peer, task, PAWL_OK, manager->checkpointing->manifest.number);
    return;
  }
  if (!status) status = begin(manager, &wish, &saving);
  if (status) {
    pwi_manager_say_reply(manager, peer, task, status, 0);
    return;
  }
  saving->link = peer->link;
  saving->task = task;
}

/* From time to time. */
static void begin_periodic(struct pwi_manager *manager) {
  struct pwi_checkpoint_wish wish = {.incremental = manager->config.checkpoint_incremental,
                                     .rate = manager->config.checkpoint_rate};
  struct pwi_checkpointing *saving;
  pwi_manager_checkpoints_begin(manager);
  if (begin(manager, &wish, &saving)) return; /* there is nothing to be saved yet, or another one is under way */
  saving->is_periodic = true;
  saving->keep = manager->config.checkpoint_keep;
}

void pwi_manager_checkpoints_begin(struct pwi_manager *manager) {
  int64_t every = manager->config.checkpoint_every_ns;
  if (every > 0 && manager->config.depot) set_timer(manager, every, 1, &manager->checkpoint_timer);
}

void pwi_manager_save_timer(struct pwi_manager *manager, uint64_t which) {
  if (which == 0) {
    manager->save_timer.id = 0;
    tick(manager);
    return;
  }
  manager->checkpoint_timer.id = 0;
  begin_periodic(manager);
}

void pwi_manager_save_fini(struct pwi_manager *manager) {
  if (!manager->checkpointing) return;
  manager->config.depot->ops->settle(manager->config.depot);
  free_saving(manager->checkpointing);
  manager->checkpointing = NULL;
}

/* --- for people ----------------------------------------------------------------------------------------------------------- */

static json_t *going_json(const struct pwi_checkpointing *saving) {
  uint64_t bytes = saving->bytes;
  for (size_t i = 0; i < saving->order_count; i++) bytes += saving->orders[i].bytes;
  double part = (double)pwi_rangeset_size(&saving->covered) / (double)PWI_RING_END;
  bool is_known = saving->phase != PHASE_PREPARING; /* else an errand is at it */
  return json_pack("{s:s, s:I, s:s, s:s, s:I, s:I, s:f}", "state", phase_names[saving->phase], "number",
                   (json_int_t)(is_known ? saving->manifest.number : 0), "name", is_known ? saving->manifest.name : "",
                   "directory", saving->directory, "bytes", (json_int_t)bytes, "files",
                   (json_int_t)saving->manifest.file_count, "part", part);
}

static json_t *result_json(const struct pwi_checkpoint_result *result) {
  return json_pack("{s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:s}", "state", result->status ? "failed" : "saved", "number",
                   (json_int_t)result->number, "name", result->name, "base", result->base, "directory",
                   result->directory, "bytes", (json_int_t)result->bytes, "files", (json_int_t)result->files, "error",
                   result->why);
}

bool pwi_manager_put_checkpoint(const struct pwi_manager *manager, struct json_t *root) {
  bool ok = true;
  if (manager->checkpointing) ok = json_object_set_new(root, "checkpoint", going_json(manager->checkpointing)) == 0;
  if (manager->checkpointed.number > 0 || manager->checkpointed.status)
    ok = ok && json_object_set_new(root, "last_checkpoint", result_json(&manager->checkpointed)) == 0;
  return ok;
}
