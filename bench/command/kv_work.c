/* One worker: repeats an operation and measures each.
 *
 * Values are in buffers of the session, which servers on this machine read in place. Keys are not: a fresh
 * list comes from the caller's own memory. */
#include <unistd.h>
#include <inttypes.h>
#include <stdio.h>

#include <pawl/group.h>

#include "base/hash.h"
#include "base/memory.h"
#include "kv.h"

#define FRESH_LISTS 8 /* used in turn; together larger than the caches */
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
  void *in, *out; /* `out`: one for each operation under way */
  uint64_t turn;  /* number of operations so far */
  uint64_t runs;  /* of PWI_KV_AGGREGATE: each run has a group of its own */
  struct pawl_group *group;
};

/* --- preparing ------------------------------------------------------------------------------------------ */

static void choose_lists(struct pwi_kv_work *work) {
  enum pwi_kv_kind kind = work->job.kind;
  bool is_one = kind == PWI_KV_ONE || kind == PWI_KV_MANY;
  work->list_count = kind == PWI_KV_DENSE ? 0 : kind == PWI_KV_FRESH ? FRESH_LISTS : 1;
  work->list_size = is_one ? ONE_KEYS : (size_t)work->job.count;
}

static void write_list(struct pwi_kv_work *work, size_t list) {
  const struct pwi_kv_job *job = &work->job;
  uint64_t *keys = work->keys + list * work->list_size, worker = job->aggregate ? 0 : work->worker;
  uint64_t number = worker * work->list_count + list;
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
  size_t count = (size_t)work->job.count, places = work->job.outstanding > 1 ? work->job.outstanding : 1;
  pawl_status status = pawl_buffer_create(work->session, count * sizeof(float), &work->in);
  if (!status) status = pawl_buffer_create(work->session, count * places * sizeof(float), &work->out);
  if (status) return status;
  for (size_t i = 0; i < count; i++) ((float *)work->in)[i] = 1;
  for (size_t i = 0; i < count * places; i++) ((float *)work->out)[i] = 1;
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

/* --- one at a time -------------------------------------------------------------------------------------- */

/* A dense vector with more rows than one operation has is covered in steps, in arbitrary order. */
static struct pawl_where dense_place(const struct pwi_kv_job *job, uint64_t turn) {
  uint64_t steps = job->rows / job->count, begin = steps > 1 ? pwi_mix64(turn) % steps * job->count : 0;
  return pawl_at_range(begin, begin + job->count);
}

static struct pawl_where place_of(const struct pwi_kv_work *work) {
  switch (work->job.kind) {
  case PWI_KV_DENSE:
    return dense_place(&work->job, work->turn);
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

/* One tick: the push is done when the pushes of all members are applied. */
static pawl_status push_aggregate(struct pwi_kv_work *work) {
  struct pawl_task *task;
  pawl_status status = pawl_group_push(work->group, work->vector, place_of(work), work->in, &task);
  if (!status) status = pawl_task_finish(task, PWI_KV_PATIENCE);
  return status ? status : pawl_group_clock(work->group, NULL);
}

static pawl_status call_alone(struct pwi_kv_work *work, enum pwi_kv_op op) {
  struct pawl_task *task;
  pawl_status status = begin_call(work->vector, op, place_of(work), work->in, work->out, &task);
  return status ? status : pawl_task_finish(task, PWI_KV_PATIENCE);
}

/* Writes its duration to `*seconds_out`. */
static pawl_status call_once(struct pwi_kv_work *work, enum pwi_kv_op op, double *seconds_out) {
  double begin = pwi_bench_now();
  pawl_status status = op == PWI_KV_AGGREGATE ? push_aggregate(work) : call_alone(work, op);
  *seconds_out = pwi_bench_now() - begin;
  work->turn++;
  return status;
}

/* The same with a new vector; creating and deleting it is not timed. */
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

static void count_one(struct pwi_kv_tally *tally, double seconds) {
  pwi_histogram_record(&tally->times, (int64_t)(seconds * 1e9));
  /* this is the only writer */
  uint64_t before = atomic_load_explicit(&tally->operations, memory_order_relaxed);
  atomic_store_explicit(&tally->operations, before + 1, memory_order_relaxed);
}

static pawl_status run_singly(struct pwi_kv_work *work, enum pwi_kv_op op, double seconds, struct pwi_kv_tally *tally) {
  double until = pwi_bench_now() + seconds, busy = 0;
  pawl_status status = PAWL_OK;
  for (uint64_t i = 0; i < LEAST_TIMES || (pwi_bench_now() < until && !tally->is_enough); i++) {
    double once;
    status = work->job.kind == PWI_KV_RANDOM ? call_anew(work, op, &once) : call_once(work, op, &once);
    if (status) break;
    count_one(tally, once);
    busy += once;
  }
  tally->per_second = busy > 0 ? (double)tally->operations / busy : 0;
  return status;
}

/* Joining is not timed: no member begins before all are there. A member that has finished leaves, so that
 * the others do not wait for it. */
static pawl_status run_aggregate(struct pwi_kv_work *work, double seconds, struct pwi_kv_tally *tally) {
  char name[64];
  snprintf(name, sizeof name, "bench/together-%" PRIu64, work->runs++);
  pawl_status status = pawl_group_join(work->session, name, work->job.aggregate, PWI_KV_PATIENCE, &work->group);
  if (status) return status;
  status = pawl_group_barrier(work->group, PWI_KV_PATIENCE);
  if (!status) status = run_singly(work, PWI_KV_AGGREGATE, seconds, tally);
  pawl_group_leave(work->group);
  work->group = NULL;
  return status;
}

/* --- many at a time ------------------------------------------------------------------------------------- */

struct under_way {
  struct pawl_task *task;
  double begin;
};

/* Begins operation number `turn`, which has its own slot among those under way. */
typedef pawl_status begin_one(void *context, enum pwi_kv_op op, size_t place, uint64_t turn,
                              struct pawl_task **task_out);

static pawl_status end_call(struct under_way *call, struct pwi_kv_tally *tally) {
  struct pawl_task *task = call->task;
  if (!task) return PAWL_OK;
  call->task = NULL;
  pawl_status status = pawl_task_finish(task, PWI_KV_PATIENCE);
  count_one(tally, pwi_bench_now() - call->begin);
  return status;
}

/* Waits until it is due. Lost time is not made up for. */
static double wait_for(double due) {
  double now = pwi_bench_now();
  if (due > now) usleep((useconds_t)((due - now) * 1e6));
  return due > now ? due : now;
}

static pawl_status pump(begin_one *begin_next, void *context, enum pwi_kv_op op, size_t outstanding, double interval,
                        double seconds, struct pwi_kv_tally *tally) {
  struct under_way calls[PWI_KV_OUTSTANDING] = {0};
  double begin = pwi_bench_now(), last = begin - interval;
  pawl_status status = PAWL_OK;
  for (uint64_t i = 0; !status; i++) {
    struct under_way *call = &calls[i % outstanding];
    status = end_call(call, tally);
    last = wait_for(last + interval);
    call->begin = pwi_bench_now();
    if (status || call->begin - begin > seconds || tally->is_enough) break;
    status = begin_next(context, op, i % outstanding, i, &call->task);
  }
  for (size_t i = 0; i < outstanding; i++) {
    pawl_status ended = end_call(&calls[i], tally);
    if (!status) status = ended;
  }
  tally->per_second = (double)tally->operations / (pwi_bench_now() - begin);
  return status;
}

/* All operations push the same values; pulled values go to different places. */
static pawl_status begin_work(void *context, enum pwi_kv_op op, size_t place, uint64_t turn,
                              struct pawl_task **task_out) {
  struct pwi_kv_work *work = context;
  (void)turn;
  void *out = (float *)work->out + place * work->job.count;
  pawl_status status = begin_call(work->vector, op, place_of(work), work->in, out, task_out);
  work->turn++;
  return status;
}

struct one_keys {
  struct pawl_vector *vector;
  const uint64_t *keys;
  size_t count;
  float in[PWI_KV_OUTSTANDING], out[PWI_KV_OUTSTANDING];
};

static pawl_status begin_one_key(void *context, enum pwi_kv_op op, size_t place, uint64_t turn,
                                 struct pawl_task **task_out) {
  struct one_keys *one = context;
  one->in[place] = 1;
  return begin_call(one->vector, op, pawl_at_keys(&one->keys[turn % one->count], 1), &one->in[place], &one->out[place],
                    task_out);
}

static void begin_tally(struct pwi_kv_tally *tally) {
  pwi_histogram_reset(&tally->times);
  tally->operations = 0;
}

pawl_status pwi_kv_pump(struct pawl_vector *vector, enum pwi_kv_op op, const uint64_t *keys, size_t count,
                        double seconds, struct pwi_kv_tally *tally_out) {
  struct one_keys one = {.vector = vector, .keys = keys, .count = count};
  begin_tally(tally_out);
  return pump(begin_one_key, &one, op, PWI_KV_OUTSTANDING, 0, seconds, tally_out);
}

pawl_status pwi_kv_work_run(struct pwi_kv_work *work, enum pwi_kv_op op, double seconds,
                            struct pwi_kv_tally *tally_out) {
  if (work->job.kind == PWI_KV_MANY)
    return pwi_kv_pump(work->vector, op, work->keys, work->list_size, seconds, tally_out);
  begin_tally(tally_out);
  if (op == PWI_KV_AGGREGATE) return run_aggregate(work, seconds, tally_out);
  if (work->job.outstanding > 1)
    return pump(begin_work, work, op, work->job.outstanding, work->job.interval, seconds, tally_out);
  return run_singly(work, op, seconds, tally_out);
}
