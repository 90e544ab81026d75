/* The scheduler of a training by workers: a way of making steps (run.h), in rounds of a job. See inside.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/cnn/options.h"
#include "apps/cnn/run.h"
#include "apps/cnn/share/inside.h"
#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"
#include "apps/common/resume.h"
#include "apps/common/run.h"
#include "apps/common/sized.h"

#define PART_S 1.0    /* seconds of a round */
#define FIRST_STEPS 4 /* of the first round, before the speed is known */
#define GROWTH 4      /* a round has at most so many times the steps of the one before */

struct cnn_scheduler {
  struct apps_run common;
  struct pawl_cnn_sharing sharing;
  struct cnn_share_spec spec;
  struct cnn_run *run;
  struct pawl_vector *vector; /* PAWL_CNN_SERVERS */
  uint64_t steps;             /* of the next round */
  uint64_t serial;            /* of the next round */
  bool has_changed;           /* workers have come or gone since they last met */
  bool adopts;                /* in the next round with steps */
  uint64_t number;            /* of the peer group, as far as all workers know it */
  double waited_s, worked_s;
  struct apps_reduce_saved saved; /* the newest checkpoint */
  int64_t saved_ns;
};

static bool has_factors(const struct cnn_scheduler *scheduler) { return scheduler->spec.share == PAWL_CNN_FACTORS; }
static bool has_servers(const struct cnn_scheduler *scheduler) { return scheduler->spec.share == PAWL_CNN_SERVERS; }

/* --- sums over workers ------------------------------------------------------------------------------------ */

struct cnn_sum {
  struct cnn_reply reply;
  uint64_t lowest; /* of the numbers */
  bool differs;    /* parameters do */
};

static pawl_status add_report(void *context, size_t index, const struct pawl_report *report) {
  struct cnn_sum *all = context;
  struct cnn_reply *sum = &all->reply, reply;
  if (!cnn_reply_read(report->bytes, report->size, &reply)) return PAWL_CORRUPT;
  sum->tally.loss += reply.tally.loss;
  sum->tally.wrong += reply.tally.wrong;
  sum->tally.done += reply.tally.done;
  if (reply.diverged && (!sum->diverged || reply.diverged < sum->diverged)) sum->diverged = reply.diverged;
  if (reply.number > sum->number) sum->number = reply.number;
  apps_reduce_part_add(&sum->part, &reply.part);
  if (reply.number < all->lowest) all->lowest = reply.number;
  all->differs |= index > 0 && reply.hash != sum->hash;
  sum->hash = reply.hash;
  sum->update_bytes += reply.update_bytes;
  sum->waited_s += reply.waited_s;
  sum->worked_s += reply.worked_s;
  sum->bytes_sent += reply.bytes_sent;
  sum->bytes_received += reply.bytes_received;
  return PAWL_OK;
}

/* One round; the sum of the replies. A worker that is behind takes over the model of another one in the next round. */
static pawl_status do_round(struct cnn_scheduler *scheduler, struct cnn_order *order, struct cnn_reply *sum_out) {
  struct pawl_round *round = NULL;
  struct pawl_cnn_result *result = &scheduler->run->result;
  struct cnn_sum sum = {.lowest = UINT64_MAX};
  size_t workers = 0;
  order->serial = scheduler->serial++;
  pawl_status status = apps_round(&scheduler->common, cnn_order_write(order), &round);
  if (status) return status;
  status = apps_reports(&scheduler->common, round, add_report, &sum, &workers);
  pawl_round_destroy(round);
  if (status) return status;
  result->workers = (uint32_t)workers;
  if (sum.reply.bytes_sent > result->bytes_sent) result->bytes_sent = sum.reply.bytes_sent;
  if (sum.reply.bytes_received > result->bytes_received) result->bytes_received = sum.reply.bytes_received;
  result->update_bytes += sum.reply.update_bytes;
  bool is_behind = has_factors(scheduler) && order->what == CNN_STEPS && sum.lowest < order->step + order->count;
  scheduler->has_changed |= is_behind;
  if (!is_behind && sum.differs) result->is_identical = false;
  *sum_out = sum.reply;
  return PAWL_OK;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

/* The next round should take PART_S. */
static void plan_part(struct cnn_scheduler *scheduler, uint64_t taken, double seconds) {
  double wanted = (double)taken * PART_S / fmax(seconds, 1e-6);
  scheduler->steps = (uint64_t)fmax(1, fmin(wanted, GROWTH * (double)taken));
}

/* Without servers: all workers should begin with the same members. After a change they meet once; each tells which number of the
 * group it knows, and waits for the highest of them before the next round of steps. */
static pawl_status meet(struct cnn_scheduler *scheduler) {
  struct cnn_order order = {.what = CNN_MEET};
  struct cnn_reply sum;
  if (has_servers(scheduler)) return PAWL_OK;
  while (scheduler->has_changed) {
    scheduler->has_changed = false;
    pawl_status status = do_round(scheduler, &order, &sum);
    if (status) return status;
    scheduler->number = sum.number;
    scheduler->adopts = scheduler->run->result.steps > 0 && scheduler->spec.means_gradients;
  }
  return PAWL_OK;
}

static pawl_status take(struct cnn_run *run, uint64_t step, uint64_t most, uint64_t *taken_out,
                        struct cnn_tally *tally) {
  struct cnn_scheduler *scheduler = run->state;
  struct cnn_order order = {.what = CNN_STEPS, .step = step};
  struct cnn_reply sum;
  pawl_status status = meet(scheduler);
  if (status) return status;
  order.count = scheduler->steps < most ? scheduler->steps : most;
  order.number = scheduler->number;
  order.adopts = scheduler->adopts;
  scheduler->adopts = false;
  int64_t begun = apps_now();
  status = do_round(scheduler, &order, &sum);
  if (status) return status;
  if (sum.diverged) {
    run->result.steps = sum.diverged;
    return cnn_run_diverged(run, "the loss");
  }
  if (sum.tally.done == 0)
    return apps_fail(&scheduler->common, PAWL_NODE_GONE, "all workers were lost in the same part of an epoch");
  if (!has_servers(scheduler) && sum.number < step + order.count)
    return apps_fail(&scheduler->common, PAWL_TIMED_OUT,
                     "no worker could complete step %llu: the workers did not agree",
                     (unsigned long long)(sum.number + 1));
  plan_part(scheduler, order.count, apps_seconds_since(begun));
  scheduler->waited_s += sum.waited_s;
  scheduler->worked_s += sum.worked_s;
  double busy = scheduler->waited_s + scheduler->worked_s;
  run->result.wait_pct = busy > 0 ? 100 * scheduler->waited_s / busy : 0;
  *tally = sum.tally;
  *taken_out = order.count;
  return PAWL_OK;
}

/* --- the model -------------------------------------------------------------------------------------------- */

static pawl_status pull_model(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  struct pawl_task *task;
  pawl_status status =
      pawl_vector_pull(scheduler->vector, pawl_at_range(0, run->model->net->parameters), run->model->parameters, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  return status ? apps_fail(&scheduler->common, status, "cannot read the parameters: %s", apps_error_text(status))
                : PAWL_OK;
}

/* Creates the vector, and writes the first weights to it. */
static pawl_status push_model(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  struct pawl_session *session = scheduler->common.session;
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options options;
  struct pawl_task *task;
  pawl_vector_options_init(&options);
  options.size = run->model->net->parameters + 1;
  cnn_vector_name(&scheduler->spec, name);
  pawl_status status = pawl_vector_delete(session, name, CNN_TIMEOUT); /* that of an earlier job that was killed */
  if (!status || status == PAWL_NOT_FOUND)
    status = pawl_vector_create(session, name, &options, CNN_TIMEOUT, &scheduler->vector);
  if (!status)
    status = pawl_vector_push(scheduler->vector, pawl_at_range(0, run->model->net->parameters), run->model->parameters,
                              &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  return status ? apps_fail(&scheduler->common, status, "cannot store the first weights: %s", apps_error_text(status))
                : PAWL_OK;
}

/* One round in which the first worker reports some parameters. */
static pawl_status receive(struct cnn_scheduler *scheduler, uint64_t begin, uint64_t end, bool *is_there_out) {
  struct cnn_order order = {.what = CNN_GIVE, .begin = begin, .end = end};
  float *values = scheduler->run->model->parameters + begin;
  return apps_reduce_receive(&scheduler->common, cnn_order_write(&order), values,
                             (size_t)(end - begin) * sizeof *values, is_there_out);
}

/* The first worker sends its model; with reduce the mean of all models, which the workers compute before. Again, if it was
 * lost. */
static pawl_status collect_model(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  uint64_t count = run->model->net->parameters;
  bool is_there = false;
  while (!is_there) {
    struct cnn_order order = {.what = CNN_AGREE};
    struct cnn_reply sum;
    pawl_status status = meet(scheduler);
    order.number = scheduler->number;
    if (!status && !has_factors(scheduler)) status = do_round(scheduler, &order, &sum);
    is_there = true;
    for (uint64_t begin = 0; begin < count && is_there && !status; begin += CNN_GIVEN)
      status = receive(scheduler, begin, count - begin < CNN_GIVEN ? count : begin + CNN_GIVEN, &is_there);
    if (status) return status;
  }
  return PAWL_OK;
}

/* --- checkpoints ------------------------------------------------------------------------------------------ */

static pawl_status order_files(struct cnn_run *run, enum cnn_do what, uint32_t turn, uint64_t step,
                               struct cnn_reply *sum_out) {
  struct cnn_scheduler *scheduler = run->state;
  struct cnn_order order = {.what = what, .step = step, .turn = turn};
  pawl_status status = meet(scheduler);
  order.number = scheduler->number;
  return status ? status : do_round(scheduler, &order, sum_out);
}

static bool is_due(const struct cnn_run *run) {
  const struct cnn_scheduler *scheduler = run->state;
  double every = scheduler->sharing.checkpoint_every_s > 0 ? scheduler->sharing.checkpoint_every_s : 60;
  if (!scheduler->sharing.checkpoints || run->result.steps >= cnn_plan_steps(&run->plan)) return false;
  return run->is_stopping || apps_seconds_since(scheduler->saved_ns) >= every;
}

/* A checkpoint that cannot be written does not end the training. The turn changes once the scheduler's file names it. */
static pawl_status keep(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  struct apps_reduce_saved next = scheduler->saved;
  struct cnn_reply sum;
  char error[APPS_TEXT_MAX] = "";
  if (!is_due(run)) return PAWL_OK;
  scheduler->saved_ns = apps_now();
  pawl_status status = order_files(run, CNN_SAVE, 1 - next.turn, run->result.steps, &sum);
  if (status) return status;
  if (!apps_reduce_is_saved(&scheduler->common, &sum.part, run->result.workers, run->result.steps, &next,
                            run->result.unsaved))
    return PAWL_OK;
  status = cnn_state_write(run, &scheduler->spec, &next, error);
  if (!status) scheduler->saved = next;
  apps_state_note(status, error, run->result.unsaved);
  return PAWL_OK;
}

static pawl_status resume(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  struct apps_reduce_saved *saved = &scheduler->saved;
  struct cnn_reply sum;
  if (!scheduler->sharing.resume) return PAWL_OK;
  pawl_status status = order_files(run, CNN_LOAD, saved->turn, saved->part.iteration, &sum);
  if (!status)
    status = apps_reduce_is_loaded(&scheduler->common, &sum.part, run->result.workers, saved,
                                   scheduler->sharing.checkpoints);
  if (!status)
    apps_tell(&scheduler->common, "resuming from step %llu of %llu", (unsigned long long)run->result.steps,
              (unsigned long long)cnn_plan_steps(&run->plan));
  scheduler->adopts = false; /* a worker without a file is behind, and takes over by itself */
  return status;
}

/* --- the job ---------------------------------------------------------------------------------------------- */

static bool hear(void *application, const struct pawl_job_event *event) {
  struct cnn_scheduler *scheduler = application;
  scheduler->has_changed |=
      event->what == PAWL_JOB_JOINED || event->what == PAWL_JOB_LOST || event->what == PAWL_JOB_DROPPED;
  scheduler->run->result.workers_lost += event->what == PAWL_JOB_LOST;
  return event->what != PAWL_JOB_MOVED; /* there are no pieces of data: see create_job */
}

/* A round takes about a second, and is finished even if the caller wants to stop; but not before it has begun. */
static bool tick(void *application) {
  struct cnn_scheduler *scheduler = application;
  return apps_is_stopping(&scheduler->common) && scheduler->run->all.done == 0;
}

/* Every worker has a piece, which stands for its share of every batch. A worker with pieces that is lost is fenced
 * before the next round: nothing that it sends late has an effect. */
static pawl_status create_job(struct cnn_scheduler *scheduler) {
  const struct pawl_cnn_sharing *sharing = &scheduler->sharing;
  struct pawl_job_options job;
  pawl_status status = PAWL_OK;
  pawl_job_options_init(&job);
  job.name = scheduler->spec.job;
  job.least = sharing->workers ? sharing->workers : 1;
  job.most = sharing->workers_most > job.least ? sharing->workers_most : job.least;
  job.pieces = job.most;
  job.on_loss = sharing->on_loss;
  job.drop_slowest = sharing->drop_slowest;
  if (sharing->share == PAWL_CNN_REDUCE)
    status = apps_reduce_check_graph(&scheduler->common, sharing->graph, job.least, job.most);
  if (status) return status;
  return apps_job_create(&scheduler->common, &job, cnn_share_spec_write(&scheduler->spec), CNN_TIMEOUT);
}

static pawl_status write_spec(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  const struct pawl_cnn_sharing *sharing = &scheduler->sharing;
  struct cnn_share_spec *spec = &scheduler->spec;
  snprintf(spec->job, sizeof spec->job, "%s", sharing->job ? sharing->job : "cnn");
  spec->share = sharing->share;
  spec->format = sharing->format;
  spec->about = run->model->about;
  spec->plan = run->plan;
  spec->threads = run->is.threads;
  if (sharing->graph) snprintf(spec->graph, sizeof spec->graph, "%s", sharing->graph);
  spec->mode = sharing->mode;
  spec->push = sharing->push;
  spec->means_gradients = cnn_sharing_means_gradients(sharing);
  if (sharing->checkpoints) snprintf(spec->folder, sizeof spec->folder, "%s", sharing->checkpoints);
  if (has_factors(scheduler))
    spec->as_factors = cnn_layers_as_factors(run->model->net, run->plan.batch, sharing->workers ? sharing->workers : 1);
  run->result.layers_as_factors = (uint32_t)__builtin_popcountll(spec->as_factors);
  run->result.is_identical = has_factors(scheduler);
  return apps_texts_copy(sharing->paths, sharing->path_count, &spec->paths, &spec->path_count) ? PAWL_OK
                                                                                               : PAWL_NO_MEMORY;
}

static pawl_status begin(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  scheduler->run = run;
  scheduler->steps = FIRST_STEPS;
  scheduler->common.context = run->is.context;
  scheduler->common.stopping = run->is.stopping;
  scheduler->saved_ns = apps_now();
  pawl_status status = write_spec(run);
  if (!status && scheduler->sharing.resume) status = cnn_state_read(run, &scheduler->spec, &scheduler->saved);
  if (!status && has_servers(scheduler)) status = push_model(run);
  if (!status) status = create_job(scheduler);
  if (!status) status = resume(run);
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

static pawl_status fetch(struct cnn_run *run) {
  const struct cnn_scheduler *scheduler = run->state;
  return has_servers(scheduler) ? pull_model(run) : collect_model(run);
}

static void end(struct cnn_run *run) {
  struct cnn_scheduler *scheduler = run->state;
  char name[PAWL_NAME_MAX + 1];
  pawl_job_end(scheduler->common.job);
  if (scheduler->vector) {
    pawl_vector_close(scheduler->vector);
    cnn_vector_name(&scheduler->spec, name);
    pawl_vector_delete(scheduler->common.session, name, CNN_TIMEOUT);
  }
  cnn_share_spec_fini(&scheduler->spec);
}

static const struct cnn_way shared = {.begin = begin, .take = take, .fetch = fetch, .keep = keep, .end = end};

pawl_status pawl_cnn_train_shared(struct pawl_session *session, const struct pawl_cnn_sharing *sharing,
                                  const struct pawl_images *images, const struct pawl_images *test,
                                  const struct pawl_cnn_options *options, struct pawl_cnn_model **model_out,
                                  struct pawl_cnn_result *result_out, char error[PAWL_CNN_TEXT]) {
  char room[PAWL_CNN_TEXT];
  struct cnn_scheduler scheduler = {.serial = 1, .has_changed = true};
  struct cnn_run run = {.way = &shared, .state = &scheduler, .images = images, .test = test};
  run.error = scheduler.common.error = error ? error : room;
  run.error[0] = 0;
  if (!session) return apps_say(run.error, PAWL_INVALID, "session is NULL");
  if (!cnn_sharing_resolve(sharing, &scheduler.sharing, run.error)) return PAWL_INVALID;
  scheduler.common.session = session;
  scheduler.common.tell = scheduler.sharing.tell;
  scheduler.common.start_worker = scheduler.sharing.start_worker;
  scheduler.common.hear = hear;
  scheduler.common.tick = tick;
  scheduler.common.application = &scheduler;
  pawl_status status = cnn_run_train(&run, options, model_out, result_out);
  return status ? apps_fail_as_said(&scheduler.common, status) : PAWL_OK;
}
