/* Checkpoints: the manager orders servers to save, and writes the manifest (docs/checkpoints.md).
 *
 * The manager first prepares a checkpoint: directory, number and base. Then it orders the heads of all arcs
 * to save them, with at most one order at a time to each node. If an order ends without some of its
 * positions, because the arc has another head by now or the node is lost, the manager orders them again from
 * the present head. When every position of the ring is in a file, it writes the manifest and gives the folder
 * its name. Before that the folder is no checkpoint. The first failure ends the checkpoint and deletes the
 * folder; it has no other effect.
 *
 * The state is kept in memory only. A manager that restarts does not continue the checkpoint, and servers
 * that lose the manager stop saving.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "base/memory.h"
#include "manager/saving/saving.h"

#define TICK_NS INT64_C(10000000)
#define STILL_NS (60 * INT64_C(1000000000))    /* a checkpoint without progress fails after this time */
#define STRANDED_NS (10 * INT64_C(1000000000)) /* the same, while arcs wait for a server that is down */

static const char *const phase_names[] = {"preparing", "saving", "writing", "ending"};

static void set_timer(struct pwi_manager *manager, int64_t delay, uint64_t which, struct pwi_timer *timer) {
  if (timer->id == 0) pwi_manager_timer_set(manager, delay, TIMER_SAVE, which, timer);
}

static void tick_later(struct pwi_manager *manager) { set_timer(manager, TICK_NS, 0, &manager->save_timer); }

void pwi_saving_fail(struct pwi_checkpointing *saving, pawl_status status, const char *who, uint64_t node) {
  if (saving->status) return;
  saving->status = status;
  if (node)
    snprintf(saving->why, sizeof saving->why, "%s %llu: %s", who, (unsigned long long)node, pawl_status_text(status));
  else
    snprintf(saving->why, sizeof saving->why, "%s: %s", who, pawl_status_text(status));
}

static void send_disk_job(struct pwi_checkpointing *saving, enum save_phase phase,
                          void (*run)(struct pwi_disk_job *disk_job)) {
  struct pwi_disk_queue *disk_queue = saving->manager->config.disk_queue;
  saving->phase = phase;
  saving->disk_job.run = run;
  atomic_store_explicit(&saving->disk_job.is_done, false, memory_order_relaxed);
  disk_queue->ops->send(disk_queue, &saving->disk_job);
  tick_later(saving->manager);
}

/* --- phases --------------------------------------------------------------------------------------------- */

static void tell_asker(struct pwi_checkpointing *saving, pawl_status status) {
  struct manager_peer *peer = saving->task ? pwi_manager_peer(saving->manager, saving->link) : NULL;
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

/* If a vector was loaded while it was saved, the files contain parts of two incarnations: the checkpoint
 * fails. Deleted vectors are left out. */
static void check_vectors(struct pwi_checkpointing *saving) {
  const struct pwi_catalogue *catalogue = &saving->manager->ledger.catalogue;
  struct pwi_manifest *manifest = &saving->manifest;
  size_t kept = 0;
  for (size_t i = 0; i < manifest->vector_count; i++) {
    const struct pwi_entry *entry = pwi_catalogue_find(catalogue, (struct pwi_vector_id){manifest->vectors[i].id});
    if (entry && entry->incarnation != manifest->vectors[i].incarnation)
      pwi_saving_fail(saving, PAWL_RESTORED, manifest->vectors[i].name, 0);
    if (entry) manifest->vectors[kept++] = manifest->vectors[i];
  }
  manifest->vector_count = kept;
}

static void free_saving(struct pwi_checkpointing *saving) {
  pwi_saving_orders_fini(saving);
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
  result->asker = saving->asker;
  result->ask = saving->ask;
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
  pwi_saving_cancel_orders(saving);
  send_disk_job(saving, PHASE_SWEEPING, pwi_saving_sweep);
}

/* The checkpoint becomes a full one. */
static void drop_base(struct pwi_checkpointing *saving) {
  pwi_log(saving->manager->config.log, PAWL_LOG_INFO, "checkpoint.whole",
          "name=%s base=%s why=\"data of the base was given up\"", saving->manifest.name, saving->manifest.base);
  pwi_manifest_fini(&saving->base);
  saving->manifest.base[0] = '\0';
}

static void begin_orders(struct pwi_checkpointing *saving) {
  if (pwi_saving_base_is_lost(saving)) drop_base(saving);
  saving->phase = PHASE_SAVING;
  saving->moved = pwi_net_now(saving->manager->config.net);
  pawl_status status = list_vectors(saving);
  if (status) pwi_saving_fail(saving, status, "the manager", 0);
  tell_asker(saving, PAWL_OK);
}

/* Arcs that wait for a server that is down have a shorter limit: it comes back soon or not at all. */
static void fail_if_still(struct pwi_checkpointing *saving) {
  struct pwi_manager_figures figures;
  int64_t still = pwi_net_now(saving->manager->config.net) - saving->moved;
  if (still <= STRANDED_NS) return;
  pwi_manager_figures(saving->manager, &figures);
  if (figures.waiting > 0 || still > STILL_NS)
    pwi_saving_fail(saving, figures.waiting > 0 ? PAWL_CLUSTER_WAITING : PAWL_TIMED_OUT,
                    "some keys have no server that could save them", 0);
}

static void save_on(struct pwi_checkpointing *saving) {
  pwi_saving_look_at_orders(saving);
  if (pwi_saving_base_is_lost(saving)) pwi_saving_fail(saving, PAWL_CLUSTER_LOST, "data of the base was given up", 0);
  if (!saving->status && pwi_rangeset_contains(&saving->covered, pawl_range_of(0, PWI_RING_END))) {
    check_vectors(saving);
    if (!saving->status) {
      send_disk_job(saving, PHASE_WRITING, pwi_saving_write);
      return;
    }
  }
  if (!saving->status) fail_if_still(saving);
  pawl_status status = saving->status ? PAWL_OK : pwi_saving_order_all(saving);
  if (status) pwi_saving_fail(saving, status, "the manager", 0);
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
  if (!pwi_disk_job_is_done(&saving->disk_job)) return;
  if (saving->status && !saving->why[0])
    snprintf(saving->why, sizeof saving->why, "the manager: %s", pawl_status_text(saving->status));
  if (saving->phase == PHASE_PREPARING && !saving->status)
    begin_orders(saving);
  else if (saving->phase == PHASE_WRITING && saving->status)
    give_up(saving);
  else
    end(saving);
}

/* --- starting ------------------------------------------------------------------------------------------- */

static pawl_status begin(struct pwi_manager *manager, const struct pwi_checkpoint_request *request,
                         struct pwi_checkpointing **saving_out) {
  if (!manager->config.disk_queue) return PAWL_UNSUPPORTED;
  if (manager->checkpointing) return PAWL_EXISTS;
  if (request->name[0] && !pwi_checkpoint_name_is_valid(request->name)) return PAWL_INVALID;
  const char *directory = request->directory[0] ? request->directory : manager->config.checkpoint_directory;
  if (!directory || directory[0] != '/' || strlen(directory) > PWI_SAVE_PATH_MAX) return PAWL_INVALID;
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0) return PAWL_NODE_GONE;
  struct pwi_checkpointing *saving = pwi_alloc_zero(1, sizeof *saving);
  if (!saving) return PAWL_NO_MEMORY;
  saving->manager = manager;
  saving->salt = pwi_random_u64(manager->config.random);
  snprintf(saving->directory, sizeof saving->directory, "%s", directory);
  snprintf(saving->manifest.name, sizeof saving->manifest.name, "%s", request->name);
  saving->manifest.cluster = manager->ledger.cluster;
  saving->is_incremental = request->incremental;
  saving->is_packed = request->pack;
  saving->rate = request->rate;
  saving->is_periodic = request->periodic;
  saving->keep = request->keep;
  manager->checkpointing = saving;
  *saving_out = saving;
  send_disk_job(saving, PHASE_PREPARING, pwi_saving_prepare);
  return PAWL_OK;
}

enum { INCREMENTAL = 1, PACKED = 2 };

static pawl_status read_request(struct pwi_reader *reader, struct pwi_checkpoint_request *request) {
  pwi_read_text(reader, request->directory, sizeof request->directory);
  pwi_read_text(reader, request->name, sizeof request->name);
  uint8_t flags = pwi_read_u8(reader);
  request->rate = pwi_read_u64(reader);
  request->incremental = flags & INCREMENTAL;
  request->pack = flags & PACKED;
  return pwi_reader_end(reader) || flags > (INCREMENTAL | PACKED) ? PAWL_INVALID : PAWL_OK;
}

/* --- asks ----------------------------------------------------------------------------------------------- */

static pawl_status decide_as_begun(struct pwi_manager *manager, struct decision *decision) {
  (void)manager;
  return decision->complaint.status;
}

/* Records whether the checkpoint has started. The client gets its reply later, when the number of the
 * checkpoint is known. */
static void remember_ask(struct pwi_manager *manager, struct manager_peer *peer, struct decision *decision,
                         pawl_status status) {
  decision->decide = decide_as_begun;
  decision->complaint.status = status;
  if (status == PAWL_OK)
    decision->conclude = NULL;
  else
    peer->asks++;
  pwi_manager_queue(manager, decision);
}

/* True if this ask has arrived before. Replies with the number of its checkpoint if this manager started it.
 * After a restart the outcome is unknown. */
static bool is_known(struct pwi_manager *manager, struct manager_peer *peer, const struct decision *decision) {
  struct pwi_checkpointing *saving = manager->checkpointing;
  const struct pwi_checkpoint_result *result = &manager->checkpointed;
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, decision->asker);
  const struct pwi_ledger_answer *answer = sender ? pwi_ledger_answer(sender, decision->task) : NULL;
  if (decision->asker == 0) return false; /* a peer without an id: others number their asks as it does */
  if (saving && saving->asker == decision->asker && saving->ask == decision->task) {
    saving->link = peer->link;
    saving->task = decision->task;
    if (saving->phase != PHASE_PREPARING) tell_asker(saving, PAWL_OK);
    return true;
  }
  if (result->asker == decision->asker && result->ask == decision->task) {
    bool has_number = result->number > 0;
    pwi_manager_say_reply(manager, peer, decision->task, has_number ? PAWL_OK : result->status, result->number);
    return true;
  }
  if (answer)
    pwi_manager_say_reply(manager, peer, decision->task, answer->status ? answer->status : PAWL_OUTCOME_UNKNOWN, 0);
  return answer;
}

void pwi_manager_checkpoint_asked(struct pwi_manager *manager, struct manager_peer *peer, struct pwi_reader *reader,
                                  struct decision *decision) {
  struct pwi_checkpoint_request request = {0};
  struct pwi_checkpointing *saving = NULL;
  bool may = pwi_rights_may_operate(&peer->who.rights);
  pawl_status status = read_request(reader, &request);
  if (!status && !may) status = PAWL_FORBIDDEN;
  if (status) {
    pwi_manager_audit_ask(manager, &peer->who, PWI_ASK_CHECKPOINT, request.name, status);
    pwi_manager_say_reply(manager, peer, decision->task, status, 0);
    return;
  }
  if (is_known(manager, peer, decision)) return;
  status = begin(manager, &request, &saving);
  if (!status) {
    saving->link = peer->link;
    saving->task = saving->ask = decision->task;
    saving->asker = decision->asker;
  }
  const char *object = request.name[0] ? request.name : request.directory;
  if (!status) pwi_manager_audit_ask(manager, &peer->who, PWI_ASK_CHECKPOINT, object, PAWL_OK);
  size_t size = strnlen(object, sizeof decision->address - 1); /* for the audit, if it could not begin */
  memcpy(decision->address, object, size);
  decision->address[size] = '\0';
  remember_ask(manager, peer, decision, status);
}

/* --- periodic checkpoints ------------------------------------------------------------------------------- */

static void begin_periodic(struct pwi_manager *manager) {
  struct pwi_checkpoint_request request = {.incremental = manager->config.checkpoint_incremental,
                                           .rate = manager->config.checkpoint_rate,
                                           .periodic = true,
                                           .keep = manager->config.checkpoint_keep};
  struct pwi_checkpointing *saving;
  pwi_manager_checkpoints_begin(manager);
  pawl_status status = begin(manager, &request, &saving);
  if (status && status != PAWL_NODE_GONE) /* there are no arcs yet */
    pwi_log(manager->config.log, PAWL_LOG_WARN, "checkpoint.skipped", "why=%s", pawl_status_name(status));
}

void pwi_manager_checkpoints_begin(struct pwi_manager *manager) {
  int64_t every = manager->config.checkpoint_every_ns;
  if (every > 0 && manager->config.disk_queue) set_timer(manager, every, 1, &manager->checkpoint_timer);
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
  manager->config.disk_queue->ops->settle(manager->config.disk_queue);
  free_saving(manager->checkpointing);
  manager->checkpointing = NULL;
}

/* --- status --------------------------------------------------------------------------------------------- */

static json_t *going_json(const struct pwi_checkpointing *saving) {
  uint64_t bytes = saving->bytes;
  for (size_t i = 0; i < saving->order_count; i++) bytes += saving->orders[i].bytes;
  double part = (double)pwi_rangeset_size(&saving->covered) / (double)PWI_RING_END;
  bool is_known = saving->phase != PHASE_PREPARING; /* before that a disk job may be writing the manifest's
                                                       fields */
  return json_pack("{s:s, s:I, s:s, s:o, s:I, s:I, s:f}", "state", phase_names[saving->phase], "number",
                   (json_int_t)(is_known ? saving->manifest.number : 0), "name", is_known ? saving->manifest.name : "",
                   "directory", pwi_json_string(saving->directory), "bytes", (json_int_t)bytes, "files",
                   (json_int_t)saving->manifest.file_count, "part", part);
}

static json_t *result_json(const struct pwi_checkpoint_result *result) {
  return json_pack("{s:s, s:I, s:s, s:s, s:o, s:I, s:I, s:o}", "state", result->status ? "failed" : "saved", "number",
                   (json_int_t)result->number, "name", result->name, "base", result->base, "directory",
                   pwi_json_string(result->directory), "bytes", (json_int_t)result->bytes, "files",
                   (json_int_t)result->files, "error", pwi_json_string(result->why));
}

bool pwi_manager_put_checkpoint(const struct pwi_manager *manager, struct json_t *root) {
  bool ok = true;
  if (manager->checkpointing) ok = json_object_set_new(root, "checkpoint", going_json(manager->checkpointing)) == 0;
  if (manager->checkpointed.number > 0 || manager->checkpointed.status)
    ok = ok && json_object_set_new(root, "last_checkpoint", result_json(&manager->checkpointed)) == 0;
  return ok;
}
