/* A worker of a job that trains a net: reads all images, and carries out the order of each round. See inside.h. */
#include <string.h>

#include "apps/cnn/blas.h"
#include "apps/cnn/feed.h"
#include "apps/cnn/share/inside.h"
#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"

static pawl_status complain(struct cnn_worker *worker, pawl_status status) {
  if (status && !worker->has_said)
    pawl_worker_say(worker->worker, "%s", *worker->error ? worker->error : apps_error_text(status));
  worker->error[0] = 0;
  return status;
}

/* --- beginning ------------------------------------------------------------------------------------------ */

/* Compares the images with those of the scheduler: number, size, classes, and the distribution of pixels. */
static bool has_same_images(const struct cnn_worker *worker) {
  const struct pawl_cnn_about *about = &worker->spec.about;
  struct pawl_images_info info;
  double mean[PAWL_CNN_CHANNELS_MAX], deviation[PAWL_CNN_CHANNELS_MAX];
  pawl_images_info(worker->images, &info);
  if (info.count != worker->spec.plan.images || info.channels != about->channels || info.height != about->height ||
      info.width != about->width || info.classes != about->classes)
    return false;
  cnn_feed_measure(worker->images, mean, deviation);
  for (size_t i = 0; i < info.channels; i++)
    if (mean[i] != about->mean[i] || deviation[i] != about->deviation[i]) return false;
  return true;
}

static pawl_status read_images(struct cnn_worker *worker) {
  struct pawl_images_options options;
  pawl_images_options_init(&options);
  options.format = worker->spec.format;
  pawl_status status =
      pawl_images_read((const char *const *)worker->spec.paths, worker->spec.path_count, &options, &worker->images);
  if (status) return status;
  if (has_same_images(worker)) return PAWL_OK;
  return apps_say(worker->error, PAWL_MISMATCH,
                  "the images at %.300s differ from the scheduler's; every worker needs the same files at the same "
                  "paths",
                  worker->spec.paths[0]);
}

static pawl_status begin(struct pawl_worker *handle, void *context, const void *bytes, size_t size) {
  struct cnn_worker *worker = context;
  worker->worker = handle;
  worker->session = pawl_worker_session(handle);
  if (!cnn_share_spec_read(bytes, size, &worker->spec)) {
    pawl_worker_say(
        handle,
        "cannot read the specification of the job; use the same version of pawl for 'pawl train' and all workers");
    return PAWL_MISMATCH;
  }
  pawl_status status = read_images(worker);
  if (!status && !cnn_blas_threads(worker->spec.threads))
    status = apps_say(worker->error, PAWL_UNSUPPORTED, "%u threads, but this OpenBLAS was built without threads; use 1",
                      worker->spec.threads);
  if (!status) status = cnn_model_create(&worker->spec.about, &worker->model, worker->error);
  if (!status) cnn_net_start(worker->model->net, worker->spec.plan.seed, worker->model->parameters);
  if (!status)
    status = cnn_solver_init(&worker->solver, &worker->spec.plan, worker->images, worker->model, worker->error);
  return complain(worker, status);
}

/* --- rounds --------------------------------------------------------------------------------------------- */

static pawl_status report(struct cnn_worker *worker, struct cnn_reply *reply) {
  struct pawl_session_figures figures;
  pawl_session_figures(worker->session, &figures);
  reply->bytes_sent = figures.bytes_sent;
  reply->bytes_received = figures.bytes_received;
  char *text = cnn_reply_write(reply);
  pawl_status status = text ? pawl_worker_report(worker->worker, text, strlen(text)) : PAWL_NO_MEMORY;
  apps_json_free(text);
  return status;
}

/* With factors all have the same parameters. A worker that came after the last CNN_AGREE has no mean; the first one has been there
 * the longest. */
static pawl_status give(struct cnn_worker *worker, const struct cnn_order *order) {
  const float *values = worker->spec.share == PAWL_CNN_FACTORS ? worker->model->parameters : worker->mean;
  return apps_reduce_give(worker->worker, values, worker->model->net->parameters, sizeof *values, order->begin,
                          order->end);
}

static pawl_status obey(struct cnn_worker *worker, const struct cnn_order *order) {
  static pawl_status (*const steps[])(struct cnn_worker *, const struct cnn_order *,
                                      struct cnn_reply *) = {[PAWL_CNN_SERVERS] = cnn_servers_steps,
                                                             [PAWL_CNN_REDUCE] = cnn_reduce_steps,
                                                             [PAWL_CNN_FACTORS] = cnn_factors_steps};
  struct cnn_reply reply = {0};
  struct pawl_peers *peers = pawl_worker_peers(worker->worker);
  pawl_status status = PAWL_OK;
  if (order->what == CNN_GIVE) return give(worker, order);
  if (order->what == CNN_MEET) reply.number = peers ? pawl_peers_number(peers) : 0;
  if (order->what == CNN_AGREE) status = cnn_reduce_agree(worker, order);
  if (order->what == CNN_SAVE || order->what == CNN_LOAD) status = cnn_reduce_file(worker, order, &reply.part);
  if (order->what == CNN_STEPS) status = steps[worker->spec.share](worker, order, &reply);
  return status ? status : report(worker, &reply);
}

static pawl_status work(struct pawl_worker *handle, void *context, const void *argument, size_t size) {
  struct cnn_worker *worker = context;
  struct cnn_order order;
  (void)handle;
  if (!cnn_order_read(argument, size, &order)) return PAWL_CORRUPT;
  return complain(worker, obey(worker, &order));
}

static void finish(struct pawl_worker *handle, void *context) {
  struct cnn_worker *worker = context;
  (void)handle;
  cnn_servers_end(worker);
  cnn_reduce_end(worker); /* before its tensors go */
  cnn_factors_end(worker);
  cnn_solver_fini(&worker->solver);
  pawl_cnn_model_destroy(worker->model);
  pawl_images_destroy(worker->images);
  cnn_share_spec_fini(&worker->spec);
  memset(worker, 0, sizeof *worker);
}

pawl_status pawl_cnn_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                          char error[PAWL_CNN_TEXT]) {
  static const struct pawl_worker_calls calls = {.begin = begin, .work = work, .end = finish};
  struct cnn_worker worker = {0};
  pawl_status status = pawl_worker_run(session, job ? job : "cnn", &calls, &worker, timeout_ns);
  if (status) (void)apps_say(error, status, "%s", apps_error_text(status));
  return status;
}
