#include "cli/train/matrix/share.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/train/log.h"
#include "cli/train/show.h"

#define ARCS 8 /* of each server, without replicas */

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char *read_staleness(struct pwi_train_matrix *matrix, const char *value) {
  uint64_t number;
  bool is_async = strcmp(value, "async") == 0;
  if (!is_async && (!pwi_cli_number(value, &number) || number > 1000000))
    return "a number of steps, up to 1000000, or async";
  matrix->staleness = is_async ? PAWL_MATRIX_ASYNC : (uint32_t)number;
  return NULL;
}

const char *pwi_train_matrix_read(struct pwi_train_matrix *matrix, int letter, const char *value) {
  matrix->has_sharing |= letter == PWI_TRAIN_STALENESS || letter == PWI_TRAIN_GRAPH || letter == PWI_TRAIN_FORWARD;
  matrix->forward |= letter == PWI_TRAIN_FORWARD;
  return letter == PWI_TRAIN_STALENESS ? read_staleness(matrix, value) : NULL;
}

/* Without --share: one worker is this process. Processes of a launcher begin before anything is known of the data. */
static void settle_share(const struct pwi_train_matrix *matrix, struct pwi_train_base *base) {
  bool is_launch = base->is_launched && base->ranks.size > 1, has_many = base->has_workers && base->workers_most != 1;
  if (base->share != PWI_TRAIN_SHARE_AUTO) return;
  if (base->has_servers)
    base->share = PWI_TRAIN_SHARE_MATRIX;
  else if (is_launch || base->graph)
    base->share = PWI_TRAIN_SHARE_FACTORS;
  else
    base->share =
        has_many || base->names_cluster || matrix->has_sharing ? PWI_TRAIN_SHARE_CHOOSE : PWI_TRAIN_SHARE_NONE;
}

static int check_alone(const struct pwi_train_matrix *matrix, const struct pwi_train_base *base) {
  if (base->has_workers && base->workers_most != 1)
    return pwi_cli_usage(base->command,
                         "several workers have to share the matrix; give --share factors, matrix, servers or auto");
  if (base->has_servers || base->names_cluster || matrix->has_sharing)
    return pwi_cli_usage(base->command,
                         "one process shares nothing: it needs no cluster, no --staleness and no --graph; "
                         "give --share factors, matrix, servers or auto");
  return PWI_EXIT_OK;
}

int pwi_train_check_auto(const struct pwi_train_base *base) {
  const char *other = base->has_matrix ? ", matrix or servers" : " or servers";
  if (base->is_launched && base->ranks.size > 1)
    return pwi_cli_usage(base->command, "under %s all processes have to know how they share; give --share factors%s",
                         base->ranks.launcher, other);
  if (base->workers == 0)
    return pwi_cli_usage(base->command,
                         "--share auto compares bytes for a number of workers; with --workers 0 give --share "
                         "factors%s",
                         other);
  return PWI_EXIT_OK;
}

static int check_sharing(const struct pwi_train_matrix *matrix, const struct pwi_train_base *base) {
  static const char *const some[] = {"data"};
  struct pawl_matrix_sharing sharing;
  char error[PAWL_MATRIX_TEXT];
  int exit_code = base->share == PWI_TRAIN_SHARE_CHOOSE ? pwi_train_check_auto(base) : PWI_EXIT_OK;
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pwi_train_matrix_sharing(matrix, base, some, NULL, 0, &sharing);
  return pawl_matrix_sharing_check(&sharing, error) ? PWI_EXIT_OK : pwi_cli_usage(base->command, "%s", error);
}

int pwi_train_matrix_settle(struct pwi_train_matrix *matrix, struct pwi_train_base *base) {
  settle_share(matrix, base);
  matrix->asked = base->share;
  if (base->share == PWI_TRAIN_SHARE_NONE) return check_alone(matrix, base);
  int exit_code = pwi_train_base_settle(base);
  return exit_code == PWI_EXIT_OK ? check_sharing(matrix, base) : exit_code;
}

void pwi_train_matrix_sharing(const struct pwi_train_matrix *matrix, const struct pwi_train_base *base,
                              const char *const *paths, const struct pawl_data_options *reading,
                              enum pawl_images_format image_format, struct pawl_matrix_sharing *sharing_out) {
  pawl_matrix_sharing_init(sharing_out);
  sharing_out->way = base->share == PWI_TRAIN_SHARE_MATRIX    ? PAWL_MATRIX_WHOLE
                     : base->share == PWI_TRAIN_SHARE_SERVERS ? PAWL_MATRIX_SERVERS
                                                              : PAWL_MATRIX_FACTORS;
  sharing_out->arcs = ARCS * (base->servers > 0 ? base->servers : 1);
  sharing_out->job = base->job;
  sharing_out->paths = paths;
  sharing_out->path_count = base->data_count;
  sharing_out->reading = reading;
  sharing_out->image_format = image_format;
  sharing_out->workers = base->least;
  sharing_out->workers_most = base->most;
  sharing_out->on_loss = base->on_loss;
  sharing_out->drop_slowest = base->drop_slowest;
  sharing_out->staleness = matrix->staleness;
  sharing_out->graph = base->graph;
  sharing_out->forward = matrix->forward;
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

void pwi_train_matrix_choose(struct pwi_train_matrix *matrix, struct pwi_train_run *run,
                             const struct pawl_matrix_costs *costs) {
  struct pwi_train_base *base = run->base;
  char line[PWI_TRAIN_LINE_MAX], factors[32], whole[32], servers[32];
  matrix->costs = *costs;
  if (base->share != PWI_TRAIN_SHARE_CHOOSE) return;
  enum pawl_matrix_way way = pawl_matrix_cheapest(costs);
  base->share = way == PAWL_MATRIX_FACTORS ? PWI_TRAIN_SHARE_FACTORS
                : way == PAWL_MATRIX_WHOLE ? PWI_TRAIN_SHARE_MATRIX
                                           : PWI_TRAIN_SHARE_SERVERS;
  if (way == PAWL_MATRIX_FACTORS) base->servers = base->replicas = 0; /* they are for the other way */
  snprintf(line, sizeof line,
           "--share auto: %s; a step of %" PRIu32 " worker%s sends %sB as factors, %sB as matrix, and %sB with factors "
           "up and the matrix down",
           pwi_train_share_name(base->share), base->least, base->least == 1 ? "" : "s",
           pwi_train_short(costs->factors, factors), pwi_train_short(costs->whole, whole),
           pwi_train_short(costs->servers, servers));
  pwi_train_run_tell(run, line);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static json_t *hash_of(uint64_t hash) { return hash ? json_sprintf("%016" PRIx64, hash) : json_null(); }

static json_t *list_workers(const struct pawl_matrix_shared *shared) {
  json_t *list = json_array();
  for (size_t i = 0; i < shared->each_count; i++) {
    const struct pawl_matrix_worker *is = &shared->each[i];
    json_array_append_new(list,
                          json_pack("{s:o, s:I, s:b, s:I, s:o, s:o, s:o}", "host", pwi_json_string(is->host), "pid",
                                    (json_int_t)is->pid, "lost", (int)is->is_lost, "update_bytes",
                                    (json_int_t)is->update_bytes, "work_seconds", pwi_train_json_number(is->work_s),
                                    "wait_seconds", pwi_train_json_number(is->wait_s), "hash", hash_of(is->hash)));
  }
  return list;
}

/* Of a worker that has finished; 0: none has one. */
static uint64_t last_hash(const struct pawl_matrix_shared *shared) {
  for (size_t i = 0; i < shared->each_count; i++)
    if (!shared->each[i].is_lost) return shared->each[i].hash;
  return 0;
}

void pwi_train_matrix_json(const struct pwi_train_matrix *matrix, const struct pwi_train_base *base,
                           const struct pawl_matrix_shared *shared, json_t *object) {
  bool is_async = matrix->staleness == PAWL_MATRIX_ASYNC, has_factors = shared->way == PAWL_MATRIX_FACTORS;
  json_t *staleness = is_async ? json_string("async") : json_integer((json_int_t)matrix->staleness);
  json_t *costs =
      json_pack("{s:o, s:o, s:o}", "factors", pwi_train_json_number(matrix->costs.factors), "matrix",
                pwi_train_json_number(matrix->costs.whole), "servers", pwi_train_json_number(matrix->costs.servers));
  json_t *more = json_pack(
      "{s:s, s:s, s:o, s:s?, s:b, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "share",
      pawl_matrix_way_name(shared->way), "share_asked", pwi_train_share_name(matrix->asked), "staleness", staleness,
      "graph", base->graph, "forward", (int)matrix->forward, "workers", (json_int_t)shared->workers, "workers_lost",
      (json_int_t)shared->workers_lost, "steps", (json_int_t)shared->steps, "update_bytes",
      (json_int_t)shared->update_bytes, "expected_bytes", costs, "bytes_sent", (json_int_t)shared->bytes_sent,
      "bytes_received", (json_int_t)shared->bytes_received, "work_seconds", pwi_train_json_number(shared->work_s),
      "wait_seconds", pwi_train_json_number(shared->wait_s), "hash", hash_of(has_factors ? last_hash(shared) : 0),
      "identical", has_factors ? json_boolean(shared->is_identical) : json_null(), "per_worker", list_workers(shared));
  (void)json_object_update(object, more);
  json_decref(more);
}

void pwi_train_matrix_print(const struct pwi_train_base *base, const struct pawl_matrix_shared *shared) {
  char updates[32], sent[32], received[32], waiting[32], working[32];
  bool has_factors = shared->way == PAWL_MATRIX_FACTORS;
  printf("  %-12s %" PRIu32 " finished, %" PRIu32 " lost; shared by %s", "workers", shared->workers,
         shared->workers_lost, pawl_matrix_way_name(shared->way));
  if (base->graph) printf(" along the graph %s", base->graph);
  if (has_factors) printf(shared->is_identical ? "; identical, bit by bit" : "; their matrices differ");
  printf("\n  %-12s %s computing, %s waiting; of all workers together\n", "", pwi_train_time(shared->work_s, working),
         pwi_train_time(shared->wait_s, waiting));
  printf("  %-12s %sB of updates in %" PRIu64 " steps; %sB sent, %sB received by workers in all\n", "network",
         pwi_train_short((double)shared->update_bytes, updates), shared->steps,
         pwi_train_short((double)shared->bytes_sent, sent), pwi_train_short((double)shared->bytes_received, received));
}
