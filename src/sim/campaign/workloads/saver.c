/* A session that pushes, has checkpoints saved meanwhile, reads their files, and loads some of them.
 *
 * Every push adds {1, -1} to all rows, so a row says how many pushes it contains. A checkpoint whose name exists is
 * whole: its files verify; rows contain at least the pushes that were acknowledged before the checkpoint was ordered,
 * and at most those that were called before its name appeared. The rows of one arc were cut at one moment and contain
 * the same pushes, unless a view changed meanwhile: a client with another view cuts its pushes at other places. A save
 * may fail while disks fail, arcs move and servers die; then its name does not appear. Neither does it if the manager
 * has refused the order, which it may do only while an earlier checkpoint is under way. After a checkpoint was loaded
 * the vector is exactly the checkpoint. Saved checkpoints stay whole to the end.
 *
 * All nodes save to one disk, as on a shared file system. Faults do not kill the session: half a load would leave
 * rows that nothing explains. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "ring/place.h"
#include "sim/campaign/workloads/workload.h"
#include "sim/disk.h"

#define SAVED "saved/rows"
#define SAVED_KEYS 40
#define WIDTH 2
#define PUSHES 2
#define ROUNDS 4
#define JOB_MAX (2 * MS)        /* of a slow disk */
#define PATIENCE_NS (1500 * MS) /* for a checkpoint to appear */

static const struct pawl_vector_options saved_options = {
    .type = PAWL_I64, .width = WIDTH, .size = SAVED_KEYS, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};

struct saver;

struct saver_push {
  struct pwi_task task;
  struct saver *saver;
  bool is_busy;
  uint64_t epoch; /* of the client's view when it was called */
  int64_t rows[SAVED_KEYS * WIDTH];
};

enum saver_phase {
  SAVER_PUSHING,
  SAVER_ORDERING, /* the manager was asked for a checkpoint */
  SAVER_WAITING,  /* for its name */
  SAVER_LOADING,  /* pushes have stopped */
  SAVER_OVER,
};

struct saver {
  struct pwi_workload workload;
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  struct saver_push pushes[PUSHES];
  enum saver_phase phase;
  uint32_t rounds_left, saves;
  /* by number of the save: its name exists; the manager refused it, so that its name never may */
  bool is_saved[ROUNDS + 1], is_refused[ROUNDS + 1];
  /* rows after the last load, and pushes since then */
  int64_t base[SAVED_KEYS], called, acknowledged;
  int64_t least, ordered_at;
  uint64_t epoch; /* lowest of all pushes under way since the order */
  struct pwi_asking asking;
  struct pwi_task task;
  bool is_asking, is_loading;
  int64_t found[SAVED_KEYS * WIDTH]; /* rows of a checkpoint */
  int64_t out[SAVED_KEYS * WIDTH];
};

static void broken(const struct saver *saver, const char *what, uint64_t key, int64_t found, int64_t wanted) {
  CAMPAIGN_FAIL(saver->workload.campaign, "%s: checkpoint %u, key %llu: %lld, not %lld", what, saver->saves,
                (unsigned long long)key, (long long)found, (long long)wanted);
}

/* --- the disk ------------------------------------------------------------------------------------------- */

static struct campaign_disk *disk_of(struct pwi_disk_queue *queue) { return (struct campaign_disk *)queue; }

static pawl_status queue_open(struct pwi_disk_queue *queue, const char *directory, bool make,
                              struct pwi_files **files_out) {
  (void)directory, (void)make;
  *files_out = pwi_sim_disk_files(disk_of(queue)->disk);
  return PAWL_OK;
}

static void queue_close(struct pwi_disk_queue *queue, struct pwi_files *files) { (void)queue, (void)files; }

static bool run_job(struct campaign_disk *disk) {
  struct pwi_disk_job *job = disk->jobs;
  if (!job) return false;
  disk->jobs = job->next;
  if (!disk->jobs) disk->jobs_end = &disk->jobs;
  pwi_disk_job_do(job);
  return true;
}

static void run_later(struct campaign_disk *disk);

static void run_next(void *context) {
  struct campaign_disk *disk = &((struct campaign *)context)->saved;
  disk->is_running = false;
  if (run_job(disk) && disk->jobs) run_later(disk);
}

static void run_later(struct campaign_disk *disk) {
  if (disk->is_running) return;
  disk->is_running = true;
  pwi_campaign_later(disk->campaign, 1 + (int64_t)pwi_random_below(&disk->random, JOB_MAX), run_next);
}

/* Time passes while a slow disk works. So pushes change rows that a save has copied, before it cuts the arc. */
static void queue_send(struct pwi_disk_queue *queue, struct pwi_disk_job *job) {
  struct campaign_disk *disk = disk_of(queue);
  job->next = NULL;
  *disk->jobs_end = job;
  disk->jobs_end = &job->next;
  if (disk->is_slow)
    run_later(disk);
  else
    run_job(disk);
}

static void queue_settle(struct pwi_disk_queue *queue) {
  while (run_job(disk_of(queue))) continue;
}

static int64_t queue_wall(struct pwi_disk_queue *queue) { return (void)queue, 1700000000; }

static const struct pwi_disk_queue_ops queue_ops = {queue_open, queue_close, queue_send, queue_settle, queue_wall};

pawl_status pwi_saver_disk_open(struct campaign *campaign) {
  struct pwi_sim_disk_host host = {.seed = campaign->config.seed, .stream = STREAM_SAVED_DISK};
  struct campaign_disk *saved = &campaign->saved;
  saved->queue.ops = &queue_ops;
  saved->campaign = campaign;
  saved->jobs_end = &saved->jobs;
  pwi_random_init(&saved->random, campaign->config.seed, STREAM_SAVED_JOBS);
  saved->is_slow = pwi_random_chance(&saved->random, 0.6);
  return pwi_sim_disk_create(&host, &campaign->saved.disk);
}

void pwi_saver_disk_close(struct campaign *campaign) { pwi_sim_disk_destroy(campaign->saved.disk); }

/* A healthy disk for the checks, and again the faulty one. */
static void set_faults(struct saver *saver, bool are_on) {
  struct campaign *campaign = saver->workload.campaign;
  struct pwi_sim_disk_faults faults = {.write_chance = 0.02, .sync_chance = 0.02};
  faults.full = pwi_random_chance(&saver->workload.random, 0.2);
  bool is_ill = are_on && !campaign->is_quiet && pwi_random_chance(&saver->workload.random, 0.3);
  campaign->figures.saver_faults += is_ill;
  pwi_sim_disk_set_faults(campaign->saved.disk, is_ill ? &faults : NULL);
}

/* --- reading a checkpoint ------------------------------------------------------------------------------- */

static pawl_status collect(void *context, const struct pwi_chunk *chunk) {
  struct saver *saver = context;
  for (size_t i = 0; i < chunk->count; i++)
    memcpy(saver->found + pwi_chunk_key(chunk, i) * WIDTH, chunk->values + i * chunk->row_bytes, chunk->row_bytes);
  return PAWL_OK;
}

/* The cut of the arc that has the key; NULL: no file has it. */
static const struct pwi_archive_cut *cut_of(const struct pwi_manifest *manifest, uint64_t key) {
  struct pwi_place place = {.size = SAVED_KEYS};
  uint64_t position = pwi_place_position(&place, key);
  for (size_t f = 0; f < manifest->file_count; f++)
    for (size_t i = 0; i < manifest->files[f].arc_count; i++)
      if (pawl_range_has(manifest->files[f].arcs[i].positions, position)) return &manifest->files[f].arcs[i];
  return NULL;
}

static uint64_t newest_epoch(const struct saver *saver) {
  return pwi_campaign_ledger(saver->workload.campaign)->view->epoch;
}

static void check_rows(struct saver *saver, const struct pwi_manifest *manifest) {
  const struct pwi_archive_cut *before = NULL;
  bool is_one_view = saver->epoch == newest_epoch(saver);
  int64_t pushes = 0;
  for (uint64_t key = 0; key < SAVED_KEYS; key++) {
    const struct pwi_archive_cut *cut = cut_of(manifest, key);
    int64_t count = saver->found[key * WIDTH] - saver->base[key];
    if (!cut) broken(saver, "a checkpoint lacks an arc", key, 0, 0);
    if (saver->found[key * WIDTH + 1] != -saver->found[key * WIDTH])
      broken(saver, "a checkpoint has half a push", key, saver->found[key * WIDTH + 1], -saver->found[key * WIDTH]);
    if (count < saver->least) broken(saver, "a checkpoint lacks acknowledged pushes", key, count, saver->least);
    if (count > saver->called) broken(saver, "a checkpoint has more than was pushed", key, count, saver->called);
    if (is_one_view && cut && cut == before && count != pushes)
      broken(saver, "a checkpoint has rows of one arc from two moments", key, count, pushes);
    before = cut;
    pushes = count;
  }
}

static void name_of(uint32_t number, char name[16]) { snprintf(name, 16, "c%u", number % 1000); }

/* Reads a checkpoint to `found`. PAWL_NOT_FOUND: its name does not exist. */
static pawl_status read_saved(struct saver *saver, uint32_t number, bool checks) {
  struct pwi_files *files = pwi_sim_disk_files(saver->workload.campaign->saved.disk);
  struct pwi_manifest manifest = {0};
  struct pwi_saved saved;
  struct pwi_saved_totals totals;
  struct pwi_problem problem = {{0}};
  char name[16];
  name_of(number, name);
  memset(saver->found, 0, sizeof saver->found);
  pawl_status status = pwi_manifest_read(files, name, &manifest);
  pwi_manifest_fini(&manifest);
  if (!status) status = pwi_saved_open(files, name, &saved, &problem) ? PAWL_CORRUPT : PAWL_OK;
  if (status) return status;
  status = pwi_saved_verify(&saved, &totals, &problem);
  const struct pwi_manifest_vector *vector = pwi_manifest_named(pwi_saved_newest(&saved), SAVED);
  if (!status && !vector) status = PAWL_MISMATCH;
  if (!status) status = pwi_saved_walk(&saved, vector, collect, saver, &problem);
  if (!status && checks) check_rows(saver, pwi_saved_newest(&saved));
  pwi_saved_close(&saved);
  return status;
}

/* --- loading -------------------------------------------------------------------------------------------- */

static void load(struct saver *saver);

static void pulled(struct pwi_task *task) {
  struct saver *saver = (struct saver *)((char *)task - offsetof(struct saver, task));
  if (task->status) broken(saver, "a loaded vector cannot be read", 0, (int64_t)task->status, 0);
  for (uint64_t key = 0; key < SAVED_KEYS; key++) {
    if (memcmp(&saver->out[key * WIDTH], &saver->found[key * WIDTH], WIDTH * sizeof(int64_t)) != 0)
      broken(saver, "a loaded vector differs from its checkpoint", key, saver->out[key * WIDTH],
             saver->found[key * WIDTH]);
    saver->base[key] = saver->found[key * WIDTH];
  }
  saver->called = saver->acknowledged = 0;
  saver->workload.campaign->figures.loads++;
  saver->is_loading = false;
  saver->phase = SAVER_PUSHING;
}

static void stored(struct pwi_task *task) {
  struct saver *saver = (struct saver *)((char *)task - offsetof(struct saver, task));
  struct pwi_where where = {.range = {0, SAVED_KEYS}};
  pawl_status status = task->status;
  saver->task = (struct pwi_task){.finished = pulled};
  if (!status)
    status =
        pwi_client_start(saver->client.client, &saver->task, saver->flow, PWI_REQUEST_PULL, &where, NULL, saver->out);
  if (status) broken(saver, "rows cannot be loaded", 0, (int64_t)status, 0);
}

static void load_begun(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct saver *saver = (struct saver *)((char *)asking - offsetof(struct saver, asking));
  struct pwi_where where = {.range = {0, SAVED_KEYS}};
  (void)payload, (void)size;
  saver->is_asking = false;
  if (pwi_campaign_is_journal_failure(status) || status == PAWL_OUTCOME_UNKNOWN) {
    load(saver); /* another incarnation does no harm */
    return;
  }
  if (!status) status = pwi_cluster_open_vector(&saver->client, SAVED, 0, &saver->flow);
  saver->task = (struct pwi_task){.finished = stored};
  if (!status)
    status = pwi_client_start(saver->client.client, &saver->task, saver->flow, PWI_REQUEST_RESTORE, &where,
                              saver->found, NULL);
  if (status) broken(saver, "a load cannot begin", 0, (int64_t)status, 0);
}

static void load(struct saver *saver) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, SAVED);
  pwi_options_write(&writer, &saved_options);
  saver->asking = (struct pwi_asking){.replied = load_begun};
  saver->is_asking = true;
  pawl_status status = writer.status;
  if (!status)
    status = pwi_client_ask(saver->client.client, &saver->asking, PWI_ASK_RESTORE_BEGIN, writer.data, writer.size);
  if (status) broken(saver, "a load was refused", 0, (int64_t)status, 0);
  pwi_writer_fini(&writer);
}

/* --- saving --------------------------------------------------------------------------------------------- */

static void ordered(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct saver *saver = (struct saver *)((char *)asking - offsetof(struct saver, asking));
  (void)payload, (void)size;
  /* A manager that has begun may fail later. Whoever asks another manager does not learn whether the first has begun. */
  bool is_unknown = status == PAWL_OUTCOME_UNKNOWN || pwi_campaign_is_journal_failure(status);
  saver->is_refused[saver->saves] = status && !is_unknown;
  if (status && !is_unknown && status != PAWL_EXISTS)
    broken(saver, "a checkpoint was refused without a cause", 0, (int64_t)status, 0);
  saver->is_asking = false;
  saver->phase = SAVER_WAITING;
}

static void order(struct saver *saver) {
  struct pwi_writer writer = {0};
  char name[16];
  set_faults(saver, true);
  saver->rounds_left--;
  name_of(++saver->saves, name);
  pwi_write_text(&writer, "/saved");
  pwi_write_text(&writer, name);
  pwi_write_u8(&writer, (uint8_t)pwi_random_below(saver->client.random, 2)); /* 1: incremental */
  pwi_write_u64(&writer, 0);
  saver->least = saver->acknowledged;
  saver->epoch = newest_epoch(saver);
  for (size_t i = 0; i < PUSHES; i++)
    if (saver->pushes[i].is_busy && saver->pushes[i].epoch < saver->epoch) saver->epoch = saver->pushes[i].epoch;
  saver->ordered_at = pwi_campaign_now(saver->workload.campaign);
  saver->asking = (struct pwi_asking){.replied = ordered};
  saver->is_asking = true;
  saver->phase = SAVER_ORDERING;
  pawl_status status = writer.status;
  if (!status)
    status = pwi_client_ask(saver->client.client, &saver->asking, PWI_ASK_CHECKPOINT, writer.data, writer.size);
  if (status) broken(saver, "a checkpoint was refused", 0, (int64_t)status, 0);
  pwi_writer_fini(&writer);
}

/* A name that does not appear in time may appear later; it is read in the end. */
static void look(struct saver *saver) {
  struct campaign *campaign = saver->workload.campaign;
  struct pwi_random *random = saver->client.random;
  pwi_sim_disk_set_faults(campaign->saved.disk, NULL);
  pawl_status status = read_saved(saver, saver->saves, true);
  if (status == PAWL_NOT_FOUND && pwi_campaign_now(campaign) - saver->ordered_at < PATIENCE_NS) {
    set_faults(saver, true);
    return;
  }
  if (status && status != PAWL_NOT_FOUND) broken(saver, "a checkpoint is damaged", 0, (int64_t)status, 0);
  if (!status && saver->is_refused[saver->saves]) broken(saver, "a checkpoint exists that was refused", 0, 0, 0);
  campaign->figures.saves += !status;
  campaign->figures.saves_failed += status == PAWL_NOT_FOUND;
  saver->is_saved[saver->saves] = !status;
  saver->phase = !status && pwi_random_chance(random, 0.5) ? SAVER_LOADING : SAVER_PUSHING;
}

/* --- pushing -------------------------------------------------------------------------------------------- */

static void pushed(struct pwi_task *task) {
  struct saver_push *push = (struct saver_push *)((char *)task - offsetof(struct saver_push, task));
  struct saver *saver = push->saver;
  push->is_busy = false;
  if (task->status) broken(saver, "a push beside a checkpoint failed", 0, (int64_t)task->status, 0);
  saver->acknowledged++;
  saver->workload.campaign->figures.pushes++;
}

static void push_all(struct saver *saver, struct saver_push *push) {
  struct pwi_where where = {.range = {0, SAVED_KEYS}};
  *push = (struct saver_push){.saver = saver, .is_busy = true, .task.finished = pushed};
  for (size_t i = 0; i < SAVED_KEYS * WIDTH; i++) push->rows[i] = i % WIDTH ? -1 : 1;
  saver->called++;
  push->epoch = pwi_client_view(saver->client.client)->epoch;
  if (push->epoch < saver->epoch) saver->epoch = push->epoch;
  pawl_status status =
      pwi_client_start(saver->client.client, &push->task, saver->flow, PWI_REQUEST_PUSH, &where, push->rows, NULL);
  if (status) broken(saver, "a push was refused", 0, (int64_t)status, 0);
}

static bool is_pushing(const struct saver *saver) {
  for (size_t i = 0; i < PUSHES; i++)
    if (saver->pushes[i].is_busy) return true;
  return false;
}

static void saver_timer(void *context, uint64_t cookie) {
  struct saver *saver = context;
  struct pwi_random *random = saver->client.random;
  (void)cookie;
  pwi_cluster_timer(&saver->client, 1 + (int64_t)pwi_random_below(random, 40 * MS), 0);
  if (pwi_cluster_open_vector(&saver->client, SAVED, 0, &saver->flow)) return;
  if (saver->phase == SAVER_WAITING) look(saver);
  if (saver->phase == SAVER_PUSHING && saver->rounds_left > 0 && pwi_random_chance(random, 0.1)) order(saver);
  if (saver->phase == SAVER_PUSHING && saver->rounds_left == 0 && !is_pushing(saver)) saver->phase = SAVER_OVER;
  bool pushes = saver->phase < SAVER_LOADING && (saver->rounds_left > 0 || saver->phase != SAVER_PUSHING);
  for (size_t i = 0; i < PUSHES && pushes; i++)
    if (!saver->pushes[i].is_busy && pwi_random_chance(random, 0.5)) push_all(saver, &saver->pushes[i]);
  if (saver->phase == SAVER_LOADING && !is_pushing(saver) && !saver->is_loading) {
    saver->is_loading = true;
    load(saver);
  }
}

static void saver_started(void *context) { pwi_cluster_timer(&((struct saver *)context)->client, 20 * MS, 0); }

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct saver *saver = (struct saver *)workload;
  saver->rounds_left = ROUNDS;
  pawl_status status = pwi_workload_vector(workload, SAVED, &saved_options);
  saver->client = (struct pwi_cluster_client){
      .name = "saver", .job = "save", .started = saver_started, .timer = saver_timer, .context = saver};
  return status ? status : pwi_campaign_client_add(workload->campaign, &saver->client, false);
}

static bool is_busy(const struct pwi_workload *workload) {
  return ((const struct saver *)workload)->phase != SAVER_OVER;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct saver *saver = (const struct saver *)workload;
  snprintf(text, size, "the saver, at checkpoint %u, in phase %d, with %u rounds left", saver->saves, (int)saver->phase,
           saver->rounds_left);
}

static pawl_status check(struct pwi_workload *workload) {
  struct saver *saver = (struct saver *)workload;
  struct pwi_where where = {.range = {0, SAVED_KEYS}};
  pwi_sim_disk_set_faults(workload->campaign->saved.disk, NULL);
  for (uint32_t number = 1; number <= saver->saves; number++) {
    pawl_status status = read_saved(saver, number, false);
    if (status == PAWL_NOT_FOUND && !saver->is_saved[number]) continue;
    saver->saves = number;
    if (!status && saver->is_refused[number]) broken(saver, "a checkpoint exists that was refused", 0, 0, 0);
    if (status) broken(saver, "a checkpoint did not stay whole", 0, (int64_t)status, 0);
  }
  pawl_status status = pwi_workload_pull(workload, SAVED, &where, saver->out);
  for (uint64_t key = 0; key < SAVED_KEYS && !status; key++)
    if (saver->out[key * WIDTH] != saver->base[key] + saver->acknowledged)
      broken(saver, "a push beside checkpoints was lost or counted twice", key, saver->out[key * WIDTH],
             saver->base[key] + saver->acknowledged);
  return status;
}

const struct pwi_workload_ops pwi_workload_saver = {
    .size = sizeof(struct saver), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
