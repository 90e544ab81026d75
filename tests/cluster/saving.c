/* Checked steps for tests of checkpoints. */
#include "saving.h"

#include "base/testing.h"

/* --- a disk queue that is a disk of the simulator, the same for all ------------------------------------- */

static pawl_status disk_queue_open(struct pwi_disk_queue *disk_queue, const char *directory, bool make,
                                   struct pwi_files **files_out) {
  (void)directory, (void)make;
  *files_out = pwi_sim_disk_files(((struct saving_disk_queue *)disk_queue)->disk);
  return PAWL_OK;
}

static void disk_queue_close(struct pwi_disk_queue *disk_queue, struct pwi_files *files) {
  (void)disk_queue, (void)files;
}

static void disk_queue_send(struct pwi_disk_queue *disk_queue, struct pwi_disk_job *disk_job) {
  (void)disk_queue;
  pwi_disk_job_do(disk_job);
}

static void disk_queue_settle(struct pwi_disk_queue *disk_queue) { (void)disk_queue; }
static int64_t disk_queue_wall(struct pwi_disk_queue *disk_queue) { return (void)disk_queue, 1700000000; }

static const struct pwi_disk_queue_ops disk_queue_ops = {disk_queue_open, disk_queue_close, disk_queue_send,
                                                         disk_queue_settle, disk_queue_wall};

/* --- a scene: a cluster, a client, a vector ------------------------------------------------------------- */

const struct pawl_vector_options saving_options = {.type = PAWL_I64,
                                                   .width = SAVING_WIDTH,
                                                   .size = SAVING_KEYS,
                                                   .placement = PAWL_PLACE_ORDERED,
                                                   .layout = PAWL_LAYOUT_DENSE};

void saving_open_cluster(struct saving_scene *scene, uint64_t seed, uint32_t processes, uint32_t replicas) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .processes = processes,
                                      .shards = 1,
                                      .late = 1,
                                      .replicas = replicas,
                                      .points = scene->points,
                                      .rights = scene->rights,
                                      .disk_queue = &scene->disk_queue.disk_queue};
  cluster_open(&scene->cluster, &config);
  memset(&scene->client, 0, sizeof scene->client);
  memset(&scene->other, 0, sizeof scene->other);
  strcpy(scene->client.name, "c");
  strcpy(scene->other.name, "o");
  cluster_client_add(&scene->cluster, &scene->client);
  cluster_client_add(&scene->cluster, &scene->other);
  cluster_wait_joined(&scene->client);
  cluster_wait_joined(&scene->other);
}

void saving_open_disk(struct saving_scene *scene, uint64_t seed) {
  struct pwi_sim_disk_host host = {.seed = seed, .stream = 5};
  memset(scene, 0, sizeof *scene);
  scene->disk_queue.disk_queue.ops = &disk_queue_ops;
  assert_int_equal(pwi_sim_disk_create(&host, &scene->disk_queue.disk), PAWL_OK);
}

void saving_open(struct saving_scene *scene, uint64_t seed, uint32_t processes, uint32_t replicas) {
  saving_open_disk(scene, seed);
  saving_open_cluster(scene, seed, processes, replicas);
  scene->flow = cluster_vector(&scene->client, "test/v", &saving_options);
  assert_int_equal(cluster_ask(&scene->other, PWI_ASK_SYNC, NULL), PAWL_OK);
}

void saving_close(struct saving_scene *scene) {
  pwi_cluster_close(&scene->cluster);
  pwi_sim_disk_destroy(scene->disk_queue.disk);
}

void saving_fill(int64_t *values, int64_t value) {
  for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++) values[i] = value;
}

pawl_status saving_push_all(struct saving_scene *scene) {
  static int64_t values[SAVING_KEYS * SAVING_WIDTH];
  struct pwi_where where = {0};
  saving_fill(values, 1);
  return cluster_call(&scene->client, scene->flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL);
}

void saving_pull_all(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t *values) {
  struct pwi_where where = {0};
  assert_int_equal(cluster_call(client, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
}

pawl_status saving_ask_as(struct pwi_cluster_client *client, const char *name, bool incremental, uint64_t rate) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, "/saved");
  pwi_write_text(&writer, name);
  pwi_write_u8(&writer, incremental);
  pwi_write_u64(&writer, rate);
  pawl_status status = cluster_ask(client, PWI_ASK_CHECKPOINT, &writer);
  pwi_writer_fini(&writer);
  return status;
}

pawl_status saving_ask(struct saving_scene *scene, const char *name, bool incremental, uint64_t rate) {
  return saving_ask_as(&scene->other, name, incremental, rate);
}

bool saving_status_says(struct saving_scene *scene, const char *text) {
  struct pwi_writer writer = {0};
  if (!scene->cluster.manager) return false;
  assert_int_equal(pwi_manager_status(scene->cluster.manager, &writer), PAWL_OK);
  pwi_write_u8(&writer, 0);
  bool says = strstr((const char *)writer.data, text) != NULL;
  pwi_writer_fini(&writer);
  return says;
}

bool saving_is_going(void *context) { return saving_status_says(context, "\"checkpoint\":"); }

void saving_save(struct saving_scene *scene, const char *name, bool incremental) {
  assert_int_equal(saving_ask(scene, name, incremental, 0), PAWL_OK);
  cluster_run_while(&scene->cluster, saving_is_going, scene, 60 * PWI_SIM_SECOND);
  assert_true(saving_status_says(scene, "\"state\":\"saved\""));
}

/* --- reading a checkpoint ------------------------------------------------------------------------------- */

int64_t saving_found[SAVING_KEYS * SAVING_WIDTH];

static pawl_status collect(void *context, const struct pwi_chunk *chunk) {
  (void)context;
  for (size_t i = 0; i < chunk->count; i++)
    memcpy(saving_found + pwi_chunk_key(chunk, i) * SAVING_WIDTH, chunk->values + i * chunk->row_bytes,
           chunk->row_bytes);
  return PAWL_OK;
}

void saving_read(struct saving_scene *scene, const char *name, struct pwi_saved_totals *totals_out) {
  struct pwi_saved saved;
  struct pwi_saved_totals totals;
  struct pwi_problem problem;
  saving_fill(saving_found, 0);
  assert_int_equal(pwi_saved_open(pwi_sim_disk_files(scene->disk_queue.disk), name, &saved, &problem), PAWL_OK);
  if (pwi_saved_verify(&saved, &totals, &problem)) fail_msg("%s", problem.text);
  assert_int_equal(pwi_saved_walk_all(&saved, collect, NULL, &problem), PAWL_OK);
  pwi_saved_close(&saved);
  if (totals_out) *totals_out = totals;
}
