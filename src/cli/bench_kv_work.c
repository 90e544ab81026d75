/* What one worker does: the same operation again and again, each with the time that it took.
 *
 * Values lie in buffers of the session, which servers on this machine read in place. Keys do not: a fresh list comes from
 * the caller's own memory. */
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/memory.h"
#include "cli/bench_kv.h"

#define FRESH_LISTS 8 /* taken in turn: together more than caches hold */
#define ONE_KEYS 65536
#define LEAST_TIMES 2

struct pwi_kv_work {
  struct pawl_session *session;
  struct pwi_kv_job job;
  uint32_t worker;
  struct pawl_vector *vector;
  struct pawl_keys *list; /* PWI_KV_CACHED */
  uint64_t *keys;         /* `list_count` lists of `list_size` each */
  size_t list_count, list_size;
  void *in, *out;
  uint64_t turn; /* how many operations there were */
};

/* --- getting ready ---------------------------------------------------------------------------------------------------- */

static void choose_lists(struct pwi_kv_work *work) {
  enum pwi_kv_kind kind = work->job.kind;
  bool is_one = kind == PWI_KV_ONE || kind == PWI_KV_MANY;
  work->list_count = kind == PWI_KV_DENSE ? 0 : kind == PWI_KV_FRESH ? FRESH_LISTS : 1;
  work->list_size = is_one ? ONE_KEYS : (size_t)work->job.count;
}

static void write_list(struct pwi_kv_work *work, size_t list) {
  const struct pwi_kv_job *job = &work->job;
  uint64_t *keys = work->keys + list * work->list_size, number = work->worker * work->list_count + list;
  for (size_t i = 0; i < work->list_size; i++) {
    if (job->kind == PWI_KV_ONE || job->kind == PWI_KV_MANY)
      keys[i] = pwi_kv_key(job, pwi_mix64(i ^ number << 32) % job->rows);
    else if (job->kind == PWI_KV_RANDOM)
      keys[i] = pwi_kv_key(job, i);
    else
      keys[i] = pwi_kv_key(job, pwi_kv_row(job, number, i));
  }
}

static pawl_status make_lists(struct pwi_kv_work *work) {
  if (work->list_count == 0) return PAWL_OK;
  work->keys = pwi_alloc_zero(work->list_count * work->list_size, sizeof *work->keys);
  if (!work->keys) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < work->list_count; i++) write_list(work, i);
  if (work->job.kind != PWI_KV_CACHED) return PAWL_OK;
  return pawl_keys_create(work->vector, work->keys, work->list_size, &work->list);
}

static pawl_status make_values(struct pwi_kv_work *work) {
  size_t bytes = (size_t)work->job.count * sizeof(float);
  pawl_status status = pawl_buffer_create(work->session, bytes, &work->in);
  if (!status) status = pawl_buffer_create(work->session, bytes, &work->out);
  if (status) return status;
  for (uint64_t i = 0; i < work->job.count; i++) ((float *)work->in)[i] = ((float *)work->out)[i] = 1;
  return PAWL_OK;
}

pawl_status pwi_kv_work_open(struct pawl_session *session, const struct pwi_kv_job *job, const char *vector,
                             uint32_t worker, struct pwi_kv_work **work_out) {
  struct pwi_kv_work *work = pwi_alloc_zero(1, sizeof *work);
  if (!work) return PAWL_NO_MEMORY;
  *work = (struct pwi_kv_work){.session = session, .job = *job, .worker = worker};
  choose_lists(work);
  pawl_status status = PAWL_OK;
  if (job->kind != PWI_KV_RANDOM) status = pawl_vector_open(session, vector, PWI_KV_PATIENCE, &work->vector);
  if (!status) status = make_lists(work);
  if (!status) status = make_values(work);
  if (status) {
    pwi_kv_work_close(work);
    return status;
  }
  *work_out = work;
  return PAWL_OK;
}

void pwi_kv_work_close(struct pwi_kv_work *work) {
  if (!work) return;
  pawl_keys_destroy(work->list);
  pawl_vector_close(work->vector);
  pawl_buffer_destroy(work->session, work->in);
  pawl_buffer_destroy(work->session, work->out);
  pwi_free(work->keys);
  pwi_free(work);
}

/* --- one at a time ---------------------------------------------------------------------------------------------------- */

static struct pawl_where place_of(const struct pwi_kv_work *work) {
  switch (work->job.kind) {
  case PWI_KV_DENSE:
    return pawl_at_range(0, work->job.count);
  case PWI_KV_CACHED:
    return pawl_at_list(work->list);
  case PWI_KV_ONE:
    return pawl_at_keys(work->keys + work->turn % work->list_size, 1);
  default:
    return pawl_at_keys(work->keys + work->turn % work->list_count * work->list_size, work->list_size);
  }
}

static pawl_status begin_call(struct pawl_vector *vector, enum pwi_kv_op op, struct pawl_where where, void *in,
                              void *out, struct pawl_task **task_out) {
  if (op == PWI_KV_PUSH) return pawl_vector_push(vector, where, in, task_out);
  if (op == PWI_KV_PULL) return pawl_vector_pull(vector, where, out, task_out);
  return pawl_vector_pushpull(vector, where, in, out, task_out);
}

/* Seconds go to `*seconds_out`. */
static pawl_status call_once(struct pwi_kv_work *work, enum pwi_kv_op op, double *seconds_out) {
  struct pawl_task *task;
  double begin = pwi_kv_now();
  pawl_status status = begin_call(work->vector, op, place_of(work), work->in, work->out, &task);
  if (!status) status = pawl_task_finish(task, PWI_KV_PATIENCE);
  *seconds_out = pwi_kv_now() - begin;
  work->turn++;
  return status;
}

/* The same, into a vector that nobody has written to; making it and deleting it takes no time. */
static pawl_status call_anew(struct pwi_kv_work *work, enum pwi_kv_op op, double *seconds_out) {
  char name[64];
  struct pawl_vector_options is;
  snprintf(name, sizeof name, "bench/new-%" PRIu32 "-%" PRIu64, work->worker, work->turn);
  pawl_vector_options_init(&is);
  is.placement = work->job.ordered ? PAWL_PLACE_ORDERED : PAWL_PLACE_MIXED;
  pawl_status status = pawl_vector_create(work->session, name, &is, PWI_KV_PATIENCE, &work->vector);
  if (status) return status;
  status = call_once(work, op, seconds_out);
  pawl_vector_close(work->vector);
  work->vector = NULL;
  pawl_status deleted = pawl_vector_delete(work->session, name, PWI_KV_PATIENCE);
  return status ? status : deleted;
}

/* --- many at a time --------------------------------------------------------------------------------------------------- */

struct under_way {
  struct pawl_task *task;
  double begin;
  float in, out;
};

static pawl_status end_call(struct under_way *call, struct pwi_kv_tally *tally) {
  struct pawl_task *task = call->task;
  if (!task) return PAWL_OK;
  call->task = NULL;
  pawl_status status = pawl_task_finish(task, PWI_KV_PATIENCE);
  pwi_histogram_record(&tally->times, (int64_t)((pwi_kv_now() - call->begin) * 1e9));
  tally->operations++;
  return status;
}

pawl_status pwi_kv_pump(struct pawl_vector *vector, enum pwi_kv_op op, const uint64_t *keys, size_t count,
                        double seconds, struct pwi_kv_tally *tally_out) {
  static struct under_way calls[PWI_KV_OUTSTANDING];
  double begin = pwi_kv_now();
  pawl_status status = PAWL_OK;
  tally_out->operations = 0;
  pwi_histogram_reset(&tally_out->times);
  for (uint64_t i = 0; !status; i++) {
    struct under_way *call = &calls[i % PWI_KV_OUTSTANDING];
    status = end_call(call, tally_out);
    call->begin = pwi_kv_now();
    if (status || call->begin - begin > seconds) break;
    call->in = 1;
    status = begin_call(vector, op, pawl_at_keys(&keys[i % count], 1), &call->in, &call->out, &call->task);
  }
  for (size_t i = 0; i < PWI_KV_OUTSTANDING; i++) {
    pawl_status ended = end_call(&calls[i], tally_out);
    if (!status) status = ended;
  }
  tally_out->per_second = (double)tally_out->operations / (pwi_kv_now() - begin);
  return status;
}

pawl_status pwi_kv_work_run(struct pwi_kv_work *work, enum pwi_kv_op op, double seconds,
                            struct pwi_kv_tally *tally_out) {
  if (work->job.kind == PWI_KV_MANY)
    return pwi_kv_pump(work->vector, op, work->keys, work->list_size, seconds, tally_out);
  double until = pwi_kv_now() + seconds, busy = 0;
  pawl_status status = PAWL_OK;
  pwi_histogram_reset(&tally_out->times);
  tally_out->operations = 0;
  while (!status && (tally_out->operations < LEAST_TIMES || pwi_kv_now() < until)) {
    double once;
    status = work->job.kind == PWI_KV_RANDOM ? call_anew(work, op, &once) : call_once(work, op, &once);
    if (status) break;
    pwi_histogram_record(&tally_out->times, (int64_t)(once * 1e9));
    busy += once;
    tally_out->operations++;
  }
  tally_out->per_second = busy > 0 ? (double)tally_out->operations / busy : 0;
  return status;
}
