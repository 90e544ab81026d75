/* A worker of a linear job: reads its pieces, and carries out the order of each round. See inside.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/linear/inside.h"
#include "apps/linear/losses.h"
#include "apps/linear/scale.h"

/* --- pieces --------------------------------------------------------------------------------------------- */

static pawl_status begin(struct pawl_worker *handle, void *context, const void *bytes, size_t size) {
  struct linear_worker *worker = context;
  worker->worker = handle;
  worker->session = pawl_worker_session(handle);
  worker->point = SIZE_MAX;
  if (!linear_spec_read(bytes, size, &worker->spec)) {
    pawl_worker_say(
        handle,
        "cannot read the specification of the job; use the same version of pawl for 'pawl train' and all workers");
    return PAWL_MISMATCH;
  }
  worker->share.digests = worker->spec.digests;
  worker->share.scales = worker->spec.scale != PAWL_LINEAR_SCALE_NONE;
  pawl_status status = pawl_data_open((const char *const *)worker->spec.paths, worker->spec.path_count,
                                      &worker->spec.reading, &worker->data);
  if (status) {
    pawl_worker_say(handle, "%s", pawl_error_text());
    return status;
  }
  struct pawl_data_info info;
  pawl_data_info(worker->data, &info);
  if (info.fingerprint == worker->spec.fingerprint) return PAWL_OK;
  pawl_worker_say(handle,
                  "the data at %s differs from the scheduler's in names or sizes; every worker needs the same files at "
                  "the same paths",
                  worker->spec.paths[0]);
  return PAWL_MISMATCH;
}

static pawl_status remember(struct linear_worker *worker, const struct pawl_range *pieces, size_t count) {
  struct pawl_range *all = apps_resize(worker->pieces, (worker->piece_count + count + 1) * sizeof *all);
  if (!all) return PAWL_NO_MEMORY;
  memcpy(all + worker->piece_count, pieces, count * sizeof *all);
  worker->pieces = all;
  worker->piece_count += count;
  return PAWL_OK;
}

static pawl_status take(struct pawl_worker *handle, void *context, const struct pawl_range *pieces, size_t count) {
  struct linear_worker *worker = context;
  worker->is_begun = false;
  pawl_status status = worker->spec.method->streams
                           ? remember(worker, pieces, count)
                           : linear_share_take(&worker->share, worker->data, pieces, count, worker->spec.threads);
  linear_average_forget(worker);
  if (status) pawl_worker_say(handle, "%s", apps_error_text(status));
  return status;
}

/* The parts of the range outside of `gone`: none, one or two. */
static size_t without(struct pawl_range range, struct pawl_range gone, struct pawl_range out[2]) {
  size_t count = 0;
  struct pawl_range before = {range.begin, gone.begin < range.end ? gone.begin : range.end};
  struct pawl_range after = {gone.end > range.begin ? gone.end : range.begin, range.end};
  if (before.begin < before.end) out[count++] = before;
  if (after.begin < after.end) out[count++] = after;
  return count;
}

static pawl_status forget(struct linear_worker *worker, struct pawl_range gone) {
  struct pawl_range *kept = apps_alloc((2 * worker->piece_count + 1) * sizeof *kept);
  if (!kept) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (size_t i = 0; i < worker->piece_count; i++) count += without(worker->pieces[i], gone, kept + count);
  apps_free(worker->pieces);
  worker->pieces = kept;
  worker->piece_count = count;
  return PAWL_OK;
}

static pawl_status drop(struct pawl_worker *handle, void *context, const struct pawl_range *pieces, size_t count) {
  struct linear_worker *worker = context;
  (void)handle;
  worker->is_begun = false;
  if (!worker->spec.method->streams) return linear_share_drop(&worker->share, pieces, count);
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < count && !status; i++) status = forget(worker, pieces[i]);
  linear_average_forget(worker);
  return status;
}

/* --- vectors -------------------------------------------------------------------------------------------- */

static void close_vectors(struct linear_worker *worker) {
  pawl_vector_close(worker->weights);
  pawl_vector_close(worker->bias);
  pawl_vector_close(worker->alpha);
  worker->weights = worker->bias = worker->alpha = NULL;
  worker->point = SIZE_MAX;
}

static pawl_status open_vector(struct linear_worker *worker, const struct linear_order *order, enum linear_vector which,
                               struct pawl_vector **vector_out) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options options;
  if (!linear_vector_options(&worker->spec, order, which, &options)) return PAWL_OK;
  linear_vector_name(&worker->spec, order, which, name);
  return pawl_vector_open(worker->session, name, LINEAR_TIMEOUT, vector_out);
}

static pawl_status open_vectors(struct linear_worker *worker, const struct linear_order *order) {
  if (worker->point == order->point && worker->generation == order->generation) return PAWL_OK;
  if (worker->is_begun) worker->spec.method->end(worker);
  worker->is_begun = false;
  close_vectors(worker);
  pawl_status status = open_vector(worker, order, LINEAR_WEIGHTS, &worker->weights);
  if (!status) status = open_vector(worker, order, LINEAR_BIAS, &worker->bias);
  if (!status) status = open_vector(worker, order, LINEAR_ALPHA, &worker->alpha);
  if (status) return status;
  worker->point = order->point;
  worker->generation = order->generation;
  return status;
}

/* --- rounds --------------------------------------------------------------------------------------------- */

/* Methods that stream read only the first piece of their share, and assume that the others are like it. */
static pawl_status describe(struct linear_worker *worker, struct linear_reply *reply) {
  if (!worker->spec.method->streams) {
    linear_share_count(&worker->share, &reply->census);
    return PAWL_OK;
  }
  if (worker->spec.reduces) return linear_average_load(worker, &reply->census);
  uint64_t pieces = linear_piece_count(worker);
  struct pawl_batch *batch;
  if (pieces == 0) return PAWL_OK;
  pawl_status status = pawl_data_read(worker->data, (size_t)worker->pieces[0].begin, &batch);
  if (status) return status;
  linear_census_add(&reply->census, batch);
  reply->census.rows *= pieces;
  reply->census.entries *= pieces;
  pawl_batch_destroy(batch);
  return PAWL_OK;
}

static pawl_status prepare(struct linear_worker *worker, const struct linear_order *order) {
  if (worker->scatter.size != order->features) linear_scatter_init(&worker->scatter, order->features);
  bool has_vectors = order->what != LINEAR_MEASURE && !worker->spec.reduces;
  pawl_status status = has_vectors ? open_vectors(worker, order) : PAWL_OK;
  if (!status && !worker->spec.method->streams) {
    if (worker->share.is_stale) {
      worker->is_begun = false;
      linear_rows_fini(&worker->rows);
      linear_derived_forget(worker);
    }
    status = linear_share_arrange(&worker->share, &worker->scatter);
    if (!status && order->what != LINEAR_MEASURE) status = linear_scale_apply(worker, order);
  }
  /* other orders do not involve the method */
  bool is_work = order->what == LINEAR_SWEEP || order->what == LINEAR_GATHER;
  if (status || worker->is_begun || !is_work) return status;
  worker->spec.method->end(worker);
  status = worker->spec.method->begin(worker, order);
  if (!status) worker->is_begun = true;
  return status;
}

static pawl_status obey(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  if (order->what == LINEAR_DESCRIBE) return describe(worker, reply);
  if (order->what == LINEAR_MEET) return linear_average_meet(worker, reply);
  pawl_status status = prepare(worker, order);
  if (status) return status;
  if (order->what == LINEAR_GATHER)
    return worker->spec.method->gather ? worker->spec.method->gather(worker, order) : PAWL_OK;
  if (order->what == LINEAR_MEASURE) return linear_scale_measure(worker, order);
  if (order->what == LINEAR_AGREE) return linear_average_agree(worker, order);
  if (order->what == LINEAR_SAVE || order->what == LINEAR_LOAD) return linear_average_file(worker, order, reply);
  if (order->what == LINEAR_SWEEP) return worker->spec.method->sweep(worker, order, reply);
  if (order->what == LINEAR_EVALUATE || worker->spec.method->streams) return linear_evaluate(worker, order, reply);
  return order->what == LINEAR_DERIVE ? linear_derive(worker, order, reply) : linear_search(worker, order, reply);
}

static pawl_status work(struct pawl_worker *handle, void *context, const void *argument, size_t size) {
  struct linear_worker *worker = context;
  struct linear_order order;
  struct linear_reply reply = {0};
  struct pawl_session_figures figures;
  if (!linear_order_read(argument, size, &order)) return PAWL_CORRUPT;
  worker->has_said = false;
  if (order.what == LINEAR_GIVE) return linear_average_give(worker, &order);
  pawl_status status = obey(worker, &order, &reply);
  if (status) {
    if (!worker->has_said) pawl_worker_say(handle, "%s", apps_error_text(status));
    return status;
  }
  pawl_session_figures(worker->session, &figures);
  reply.bytes_sent = figures.bytes_sent;
  reply.bytes_received = figures.bytes_received;
  reply.census.skipped = pawl_data_skipped(worker->data);
  char *text = linear_reply_write(&reply);
  status = text ? pawl_worker_report(handle, text, strlen(text)) : PAWL_NO_MEMORY;
  apps_json_free(text);
  return status;
}

static void finish(struct pawl_worker *handle, void *context) {
  struct linear_worker *worker = context;
  (void)handle;
  if (worker->spec.method) worker->spec.method->end(worker);
  close_vectors(worker);
  linear_average_fini(worker);
  linear_share_fini(&worker->share);
  linear_rows_fini(&worker->rows);
  linear_derived_forget(worker);
  pawl_data_close(worker->data);
  apps_free(worker->pieces);
  linear_spec_fini(&worker->spec);
  memset(worker, 0, sizeof *worker);
}

pawl_status pawl_linear_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                             char error[PAWL_LINEAR_TEXT]) {
  static const struct pawl_worker_calls calls = {begin, take, drop, work, finish};
  struct linear_worker worker = {0};
  pawl_status status = pawl_worker_run(session, job ? job : "linear", &calls, &worker, timeout_ns);
  if (status && error) snprintf(error, PAWL_LINEAR_TEXT, "%s", apps_error_text(status));
  return status;
}
