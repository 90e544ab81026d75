/* The scheduler of a training by workers: a way of making iterations (run.h), in rounds of a job. See inside.h.
 *
 * The saved state is in `run`: the rows of its sampler and its sums of predictions are those of iteration `saved`, while
 * its iteration is that of the workers.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/bpmf/options.h"
#include "apps/bpmf/run.h"
#include "apps/bpmf/share/inside.h"
#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/run.h"

#define PART_S 1.0         /* seconds of a round */
#define FIRST_ITERATIONS 1 /* of the first round, before the speed is known */
#define GROWTH 4           /* a round has at most so many times the iterations of the one before */
#define FAILURES_MAX 3     /* rounds in a row that fail although no worker was lost */

struct bpmf_scheduler {
  struct apps_run common;
  struct pawl_bpmf_sharing sharing;
  struct bpmf_share_spec spec;
  struct bpmf_run *run;
  struct pawl_vector *rows, *sums; /* PAWL_BPMF_SERVERS */
  struct bpmf_mark saved;          /* state */
  size_t iterations;               /* of the next round */
  uint64_t era, number;
  bool is_new;      /* the era has made no iteration */
  bool is_ready;    /* workers are in the era */
  bool has_changed; /* workers have come or gone since the era began */
  uint32_t failures;
};

/* --- rounds ----------------------------------------------------------------------------------------------- */

static struct bpmf_order order_of(const struct bpmf_scheduler *scheduler, enum bpmf_do what) {
  return (struct bpmf_order){.what = what,
                             .era = scheduler->era,
                             .number = scheduler->number,
                             .iteration = scheduler->run->sampler.iteration,
                             .measured = scheduler->run->tests.samples};
}

static pawl_status do_round(struct bpmf_scheduler *scheduler, const struct bpmf_order *order,
                            pawl_status (*add)(void *context, size_t index, const struct pawl_report *report),
                            void *context, size_t *workers_out) {
  struct pawl_round *round = NULL;
  size_t size = 0;
  char *bytes = bpmf_order_write(order, &size);
  if (!bytes) return PAWL_NO_MEMORY;
  pawl_status status = apps_round_bytes(&scheduler->common, bytes, size, &round);
  apps_free(bytes);
  if (!status) status = apps_reports(&scheduler->common, round, add, context, workers_out);
  pawl_round_destroy(round);
  return status;
}

static pawl_status add_nothing(void *context, size_t index, const struct pawl_report *report) {
  (void)context;
  (void)index;
  (void)report;
  return PAWL_OK;
}

/* --- back to the saved state ------------------------------------------------------------------------------ */

static void go_back(struct bpmf_scheduler *scheduler) {
  struct bpmf_run *run = scheduler->run;
  uint64_t iterations = run->sampler.iteration - scheduler->saved.iteration;
  if (iterations > 0)
    apps_tell(&scheduler->common, "going back from iteration %" PRIu64 " to %" PRIu64, run->sampler.iteration,
              scheduler->saved.iteration);
  run->result.repeated += iterations;
  bpmf_run_back(run, &scheduler->saved);
  scheduler->is_ready = false;
}

/* --- from workers ----------------------------------------------------------------------------------------- */

struct gathering {
  char *to;
  size_t width;
  uint64_t count, received; /* elements */
};

static pawl_status add_gift(void *context, size_t index, const struct pawl_report *report) {
  struct gathering *gathering = context;
  const char *bytes = report->bytes;
  uint64_t frame[2];
  (void)index;
  if (report->size == 0) return PAWL_OK;
  if (report->size < sizeof frame) return PAWL_CORRUPT;
  memcpy(frame, bytes, sizeof frame);
  if (frame[0] > frame[1] || frame[1] > gathering->count ||
      report->size - sizeof frame != (frame[1] - frame[0]) * gathering->width)
    return PAWL_CORRUPT;
  memcpy(gathering->to + frame[0] * gathering->width, bytes + sizeof frame, report->size - sizeof frame);
  gathering->received += frame[1] - frame[0];
  return PAWL_OK;
}

/* A whole section, as it is at the workers now. `*is_there_out` false: a worker is missing. */
static pawl_status gather(struct bpmf_scheduler *scheduler, enum bpmf_section section, void *to, bool *is_there_out) {
  const struct bpmf_sampler *sampler = &scheduler->run->sampler;
  struct gathering gathering = {.to = to,
                                .width = bpmf_section_width(sampler, section),
                                .count = bpmf_section_count(sampler, section, scheduler->run->is.no_train_rmse)};
  struct bpmf_order order = order_of(scheduler, BPMF_GIVE);
  pawl_status status = PAWL_OK;
  order.section = section;
  for (uint64_t before = UINT64_MAX; gathering.received < gathering.count && gathering.received != before && !status;
       order.begin += BPMF_GIVEN / gathering.width) {
    size_t workers;
    before = gathering.received;
    status = do_round(scheduler, &order, add_gift, &gathering, &workers);
  }
  *is_there_out = gathering.received == gathering.count;
  return status;
}

static pawl_status gather_rows(struct bpmf_scheduler *scheduler, float *rows, bool *is_there_out) {
  const struct bpmf_sampler *sampler = &scheduler->run->sampler;
  size_t users = sampler->data->sides[BPMF_USERS].rows;
  pawl_status status = gather(scheduler, BPMF_SECTION_USERS, rows, is_there_out);
  if (!status && *is_there_out)
    status = gather(scheduler, BPMF_SECTION_ITEMS, rows + users * sampler->rank, is_there_out);
  return status;
}

/* --- way: rows, save -------------------------------------------------------------------------------------- */

static pawl_status rows(struct bpmf_run *run, float *rows_out) {
  struct bpmf_scheduler *scheduler = run->state;
  bool is_there = true;
  pawl_status status = PAWL_OK;
  if (run->sampler.iteration == scheduler->saved.iteration)
    bpmf_sampler_get(&run->sampler, rows_out);
  else
    status = gather_rows(scheduler, rows_out, &is_there);
  if (!status && !is_there) go_back(scheduler);
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

/* Everything is received before anything of the saved state is replaced: a worker may be lost meanwhile. */
struct draft {
  float *rows;
  double *tests, *training;
};

static pawl_status gather_draft(struct bpmf_scheduler *scheduler, struct draft *draft, bool *is_there_out) {
  struct bpmf_run *run = scheduler->run;
  draft->rows = apps_alloc_zero(bpmf_sample_size(&run->model->about), sizeof *draft->rows);
  draft->tests = apps_alloc_zero((size_t)run->tests.count, sizeof *draft->tests);
  draft->training = apps_alloc_zero((size_t)run->training.count, sizeof *draft->training);
  if (!draft->rows || !draft->tests || !draft->training) return PAWL_NO_MEMORY;
  pawl_status status = gather_rows(scheduler, draft->rows, is_there_out);
  if (!status && *is_there_out) status = gather(scheduler, BPMF_SECTION_TESTS, draft->tests, is_there_out);
  if (!status && *is_there_out) status = gather(scheduler, BPMF_SECTION_TRAINING, draft->training, is_there_out);
  return status;
}

static void swap(double **one, double **other) {
  double *first = *one;
  *one = *other;
  *other = first;
}

static pawl_status save(struct bpmf_run *run) {
  struct bpmf_scheduler *scheduler = run->state;
  struct draft draft = {.rows = NULL};
  bool is_there = false;
  if (run->sampler.iteration == scheduler->saved.iteration) return PAWL_OK;
  pawl_status status = gather_draft(scheduler, &draft, &is_there);
  if (!status && is_there) {
    bpmf_sampler_set(&run->sampler, draft.rows, run->sampler.iteration);
    swap(&run->tests.sums, &draft.tests);
    swap(&run->training.sums, &draft.training);
    scheduler->saved = bpmf_run_mark(run);
  }
  apps_free(draft.rows);
  apps_free(draft.tests);
  apps_free(draft.training);
  if (!status && !is_there) go_back(scheduler);
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

/* --- a new era -------------------------------------------------------------------------------------------- */

static pawl_status add_number(void *context, size_t index, const struct pawl_report *report) {
  struct bpmf_scheduler *scheduler = context;
  struct bpmf_reply reply;
  (void)index;
  if (!bpmf_reply_read(report->bytes, report->size, &reply)) return PAWL_CORRUPT;
  apps_free(reply.figures);
  if (reply.number > scheduler->number) scheduler->number = reply.number;
  return PAWL_OK;
}

/* All workers should begin with the same members. Each tells which number of the group it knows, and waits for the
 * highest of them before it opens its link. */
static pawl_status meet(struct bpmf_scheduler *scheduler) {
  struct bpmf_order order = order_of(scheduler, BPMF_MEET);
  pawl_status status = PAWL_OK;
  while (scheduler->has_changed && !status) {
    size_t workers;
    scheduler->has_changed = false;
    status = do_round(scheduler, &order, add_number, scheduler, &workers);
  }
  return status;
}

/* Copies elements [begin, end) of a section of the saved state. */
static void copy_section(const struct bpmf_run *run, enum bpmf_section section, uint64_t begin, uint64_t end,
                         char *to) {
  const struct bpmf_sampler *sampler = &run->sampler;
  size_t width = bpmf_section_width(sampler, section);
  const double *sums = section == BPMF_SECTION_TESTS ? run->tests.sums : run->training.sums;
  if (section > BPMF_SECTION_ITEMS) {
    memcpy(to, sums + begin, (size_t)(end - begin) * width);
    return;
  }
  for (uint64_t row = begin; row < end; row++, to += width)
    memcpy(to, sampler->sides[section].rows + row * sampler->width, width);
}

static pawl_status hand_out(struct bpmf_scheduler *scheduler, enum bpmf_section section, char *room) {
  const struct bpmf_run *run = scheduler->run;
  uint64_t count = bpmf_section_count(&run->sampler, section, run->is.no_train_rmse);
  size_t width = bpmf_section_width(&run->sampler, section), workers;
  struct bpmf_order order = order_of(scheduler, BPMF_TAKE);
  pawl_status status = PAWL_OK;
  order.is_new = true;
  order.section = section;
  order.bytes = room;
  for (uint64_t most = BPMF_GIVEN / width; order.begin < count && !status && !scheduler->has_changed;
       order.begin += most) {
    uint64_t end = count - order.begin < most ? count : order.begin + most;
    copy_section(run, section, order.begin, end, room);
    order.size = (size_t)(end - order.begin) * width;
    status = do_round(scheduler, &order, add_nothing, NULL, &workers);
  }
  return status;
}

/* Workers divide the blocks among them, and get the saved state, unless that is the beginning: first rows are drawn. */
static pawl_status begin_era(struct bpmf_scheduler *scheduler) {
  char *room = apps_alloc(BPMF_GIVEN);
  pawl_status status = room ? PAWL_OK : PAWL_NO_MEMORY;
  scheduler->has_changed = true;
  while (!status && scheduler->has_changed) {
    status = meet(scheduler);
    scheduler->era++;
    for (int i = 0; i < BPMF_SECTIONS && scheduler->saved.iteration > 0 && !status && !scheduler->has_changed; i++)
      status = hand_out(scheduler, (enum bpmf_section)i, room);
  }
  scheduler->is_ready = scheduler->is_new = !status;
  apps_free(room);
  return status;
}

/* --- way: iterations -------------------------------------------------------------------------------------- */

struct progress {
  struct bpmf_run *run;
  uint32_t count;
  double (*errors)[BPMF_BLOCKS][BPMF_ERRORS]; /* of each iteration */
  double seconds[BPMF_ADVANCE_MAX];
  bool has_block[BPMF_BLOCKS];
  uint64_t diverged;
  double waited_s, worked_s;
  uint64_t bytes_sent, bytes_received;
};

static pawl_status add_reply(void *context, size_t index, const struct pawl_report *report) {
  struct progress *progress = context;
  struct bpmf_reply reply;
  (void)index;
  if (!bpmf_reply_read(report->bytes, report->size, &reply)) return PAWL_CORRUPT;
  const double *from = reply.figures;
  if (reply.diverged && (!progress->diverged || reply.diverged < progress->diverged))
    progress->diverged = reply.diverged;
  progress->waited_s += reply.waited_s;
  progress->worked_s += reply.worked_s;
  progress->bytes_sent += reply.bytes_sent;
  progress->bytes_received += reply.bytes_received;
  for (uint32_t i = 0; reply.done == progress->count && i < progress->count; i++) {
    progress->seconds[i] = fmax(progress->seconds[i], *from++);
    for (size_t block = reply.first; block < reply.end; block++, from += BPMF_ERRORS) {
      memcpy(progress->errors[i][block], from, sizeof progress->errors[i][block]);
      progress->has_block[block] = true;
    }
  }
  apps_free(reply.figures);
  return PAWL_OK;
}

/* Whether all blocks of users have made all iterations. */
static bool is_complete(const struct progress *progress) {
  for (size_t block = 0; block < progress->run->sampler.sides[BPMF_USERS].blocks; block++)
    if (!progress->has_block[block]) return false;
  return true;
}

static void sum_up(const struct progress *progress, uint32_t i, struct bpmf_figures *figures) {
  struct bpmf_run *run = progress->run;
  bool is_sample = ++run->sampler.iteration > run->is.burn_in;
  for (size_t block = 0; block < run->sampler.sides[BPMF_USERS].blocks; block++) {
    memcpy(run->tests.errors[block], progress->errors[i][block], sizeof run->tests.errors[block]);
    memcpy(run->training.errors[block], progress->errors[i][block] + 2, sizeof run->training.errors[block]);
  }
  run->tests.samples += is_sample;
  run->training.samples += is_sample;
  *figures =
      (struct bpmf_figures){bpmf_measure_sum(&run->tests), bpmf_measure_sum(&run->training), progress->seconds[i]};
}

/* The next round should take PART_S. */
static void plan_part(struct bpmf_scheduler *scheduler, size_t taken, double seconds) {
  double wanted = (double)taken * PART_S / fmax(seconds, 1e-6);
  scheduler->iterations = (size_t)fmax(1, fmin(wanted, GROWTH * (double)taken));
}

static void note_figures(struct bpmf_run *run, const struct progress *progress, size_t workers) {
  struct pawl_bpmf_result *result = &run->result;
  result->workers = (uint32_t)workers;
  result->wait_s += progress->waited_s;
  result->work_s += progress->worked_s;
  if (progress->bytes_sent > result->bytes_sent) result->bytes_sent = progress->bytes_sent;
  if (progress->bytes_received > result->bytes_received) result->bytes_received = progress->bytes_received;
}

/* A round of iterations. A worker that joined meanwhile does not matter; one that came to a new era did not get its
 * state. */
static pawl_status run_part(struct bpmf_scheduler *scheduler, struct progress *progress, bool *is_done_out) {
  struct bpmf_order order = order_of(scheduler, BPMF_ITERATE);
  size_t workers = 0;
  order.count = progress->count;
  order.is_new = scheduler->is_new;
  pawl_status status = do_round(scheduler, &order, add_reply, progress, &workers);
  if (status) return status;
  note_figures(scheduler->run, progress, workers);
  if (progress->diverged) return bpmf_run_diverged(scheduler->run, progress->diverged);
  *is_done_out = is_complete(progress) && !(scheduler->is_new && scheduler->has_changed);
  scheduler->is_new = false;
  scheduler->failures = *is_done_out || scheduler->has_changed ? 0 : scheduler->failures + 1;
  if (scheduler->failures < FAILURES_MAX) return PAWL_OK;
  return apps_fail(&scheduler->common, PAWL_TIMED_OUT,
                   "workers could not complete iteration %" PRIu64 ": they do not reach one another",
                   scheduler->run->sampler.iteration + 1);
}

static pawl_status prepare(struct bpmf_scheduler *scheduler) {
  struct bpmf_run *run = scheduler->run;
  pawl_status status = PAWL_OK;
  if (scheduler->has_changed && scheduler->is_ready) status = save(run);
  if (!status && (scheduler->has_changed || !scheduler->is_ready)) status = begin_era(scheduler);
  return status;
}

static pawl_status advance(struct bpmf_run *run, size_t most, struct bpmf_figures figures_out[BPMF_ADVANCE_MAX],
                           size_t *count_out) {
  struct bpmf_scheduler *scheduler = run->state;
  struct progress progress = {.run = run};
  uint64_t iteration = run->sampler.iteration;
  bool is_done = false;
  pawl_status status = prepare(scheduler);
  *count_out = 0;
  if (status) return apps_fail_as_said(&scheduler->common, status);
  if (run->sampler.iteration != iteration) return PAWL_OK; /* back */
  int64_t begun = apps_now();
  progress.count = (uint32_t)(scheduler->iterations < most ? scheduler->iterations : most);
  progress.errors = apps_alloc_zero(progress.count, sizeof *progress.errors);
  status = progress.errors ? run_part(scheduler, &progress, &is_done) : PAWL_NO_MEMORY;
  if (!status && is_done) {
    for (uint32_t i = 0; i < progress.count; i++) sum_up(&progress, i, &figures_out[i]);
    *count_out = progress.count;
    plan_part(scheduler, progress.count, apps_seconds_since(begun));
  } else if (!status) {
    go_back(scheduler);
  }
  apps_free(progress.errors);
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

/* --- the job ---------------------------------------------------------------------------------------------- */

static bool hear(void *application, const struct pawl_job_event *event) {
  struct bpmf_scheduler *scheduler = application;
  scheduler->has_changed |=
      event->what == PAWL_JOB_JOINED || event->what == PAWL_JOB_LOST || event->what == PAWL_JOB_DROPPED;
  scheduler->run->result.workers_lost += event->what == PAWL_JOB_LOST;
  return event->what != PAWL_JOB_MOVED; /* there are no pieces of data: see create_job */
}

/* A round takes about a second, and is finished even if the caller wants to stop; but not before there is anything that
 * a model could be made of. */
static bool tick(void *application) {
  struct bpmf_scheduler *scheduler = application;
  return apps_is_stopping(&scheduler->common) && scheduler->run->sampler.iteration == 0;
}

/* Every worker has a piece, which stands for its part of the blocks. A worker with pieces that is lost is fenced before
 * the next round: nothing that it sends late has an effect. */
static pawl_status create_job(struct bpmf_scheduler *scheduler, size_t blocks) {
  const struct pawl_bpmf_sharing *sharing = &scheduler->sharing;
  struct pawl_job_options job;
  pawl_job_options_init(&job);
  job.name = scheduler->spec.job;
  job.least = sharing->workers ? sharing->workers : 1;
  job.most = sharing->workers_most > job.least ? sharing->workers_most : job.least;
  if (job.most > blocks && job.least <= blocks) job.most = (uint32_t)blocks;
  job.pieces = job.most;
  job.on_loss = sharing->on_loss;
  job.drop_slowest = sharing->drop_slowest;
  return apps_job_create(&scheduler->common, &job, bpmf_share_spec_write(&scheduler->spec), BPMF_TIMEOUT);
}

static pawl_status write_spec(struct bpmf_run *run) {
  struct bpmf_scheduler *scheduler = run->state;
  const struct pawl_bpmf_sharing *sharing = &scheduler->sharing;
  struct bpmf_share_spec *spec = &scheduler->spec;
  snprintf(spec->job, sizeof spec->job, "%s", sharing->job ? sharing->job : "bpmf");
  spec->share = sharing->share;
  pawl_ratings_options_init(&spec->reading);
  spec->reading.format = sharing->format;
  spec->reading.duplicates = sharing->duplicates;
  spec->reading.skip_bad = sharing->skip_bad;
  spec->test_share = run->is.test_share;
  spec->seed = run->is.seed;
  spec->burn_in = run->is.burn_in;
  spec->rank = run->is.rank;
  spec->threads = run->is.threads;
  spec->alpha = run->sampler.alpha;
  spec->no_train_rmse = run->is.no_train_rmse;
  spec->digest = run->data.digest;
  spec->variant = sharing->variant;
  spec->slack = sharing->slack;
  return apps_texts_copy(sharing->paths, sharing->path_count, &spec->paths, &spec->path_count) &&
                 apps_texts_copy(sharing->test_paths, sharing->test_path_count, &spec->test_paths,
                                 &spec->test_path_count)
             ? PAWL_OK
             : PAWL_NO_MEMORY;
}

static pawl_status create_vector(struct bpmf_scheduler *scheduler, const char *name, enum pawl_type type, uint64_t size,
                                 struct pawl_vector **vector_out) {
  struct pawl_session *session = scheduler->common.session;
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = type;
  options.size = size;
  options.width = (uint32_t)scheduler->run->sampler.width;
  options.function = PAWL_ASSIGN;
  pawl_status status = pawl_vector_delete(session, name, BPMF_TIMEOUT); /* that of an earlier job that was killed */
  if (!status || status == PAWL_NOT_FOUND)
    status = pawl_vector_create(session, name, &options, BPMF_TIMEOUT, vector_out);
  return status
             ? apps_fail(&scheduler->common, status, "cannot create the vector %s: %s", name, apps_error_text(status))
             : PAWL_OK;
}

/* Sums of a block are width + 1 rows of the vector. */
static pawl_status create_vectors(struct bpmf_scheduler *scheduler) {
  const struct bpmf_sampler *sampler = &scheduler->run->sampler;
  const struct bpmf_side *users = &sampler->sides[BPMF_USERS], *items = &sampler->sides[BPMF_ITEMS];
  char names[2][PAWL_NAME_MAX + 1];
  if (scheduler->spec.share != PAWL_BPMF_SERVERS) return PAWL_OK;
  bpmf_vector_names(&scheduler->spec, names[0], names[1]);
  pawl_status status = create_vector(scheduler, names[0], PAWL_F32,
                                     (uint64_t)users->ratings->rows + items->ratings->rows, &scheduler->rows);
  if (!status)
    status = create_vector(scheduler, names[1], PAWL_F64, 2 * (users->blocks + items->blocks) * (sampler->width + 1),
                           &scheduler->sums);
  return status;
}

static pawl_status begin(struct bpmf_run *run) {
  struct bpmf_scheduler *scheduler = run->state;
  const struct bpmf_side *sides = run->sampler.sides;
  size_t blocks =
      sides[BPMF_USERS].blocks > sides[BPMF_ITEMS].blocks ? sides[BPMF_USERS].blocks : sides[BPMF_ITEMS].blocks;
  scheduler->run = run;
  scheduler->iterations = FIRST_ITERATIONS;
  scheduler->common.context = run->is.context;
  scheduler->common.stopping = run->is.stopping;
  scheduler->saved = bpmf_run_mark(run);
  if (scheduler->sharing.workers > blocks)
    return apps_fail(&scheduler->common, PAWL_INVALID,
                     "the rows can be divided among at most %zu worker%s, but there are %" PRIu32 "; use --workers %zu",
                     blocks, blocks == 1 ? "" : "s", scheduler->sharing.workers, blocks);
  pawl_status status = write_spec(run);
  if (!status) status = create_vectors(scheduler);
  if (!status) status = create_job(scheduler, blocks);
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

static void end(struct bpmf_run *run) {
  struct bpmf_scheduler *scheduler = run->state;
  char names[2][PAWL_NAME_MAX + 1];
  pawl_job_end(scheduler->common.job);
  bpmf_vector_names(&scheduler->spec, names[0], names[1]);
  if (scheduler->rows) pawl_vector_delete(scheduler->common.session, names[0], BPMF_TIMEOUT);
  if (scheduler->sums) pawl_vector_delete(scheduler->common.session, names[1], BPMF_TIMEOUT);
  pawl_vector_close(scheduler->rows);
  pawl_vector_close(scheduler->sums);
  bpmf_share_spec_fini(&scheduler->spec);
}

static const struct bpmf_way shared = {begin, advance, rows, save, end};

/* Threads of a worker, if the caller does not say: its share of the processors. */
static uint32_t threads_of(const struct pawl_bpmf_sharing *sharing) {
  uint32_t processors = apps_crew_processors(), workers = sharing->workers ? sharing->workers : 1;
  return processors > workers ? processors / workers : 1;
}

pawl_status pawl_bpmf_train_shared(struct pawl_session *session, const struct pawl_bpmf_sharing *sharing,
                                   const struct pawl_ratings *ratings, const struct pawl_ratings *test,
                                   const struct pawl_bpmf_options *options, struct pawl_bpmf_model **model_out,
                                   struct pawl_bpmf_result *result_out, char error[PAWL_BPMF_TEXT]) {
  char room[PAWL_BPMF_TEXT];
  struct bpmf_scheduler scheduler = {.has_changed = true};
  struct bpmf_run run = {.way = &shared, .state = &scheduler, .threads_here = 1};
  struct pawl_bpmf_options is;
  run.error = scheduler.common.error = error ? error : room;
  run.error[0] = 0;
  if (!session) return apps_say(run.error, PAWL_INVALID, "session is NULL");
  if (!bpmf_sharing_resolve(sharing, &scheduler.sharing, run.error)) return PAWL_INVALID;
  if (!bpmf_options_resolve(options, &is, run.error)) return PAWL_INVALID;
  if (options->threads == 0) is.threads = threads_of(&scheduler.sharing);
  scheduler.common.session = session;
  scheduler.common.tell = scheduler.sharing.tell;
  scheduler.common.start_worker = scheduler.sharing.start_worker;
  scheduler.common.hear = hear;
  scheduler.common.tick = tick;
  scheduler.common.application = &scheduler;
  pawl_status status = bpmf_run_train(&run, ratings, test, &is, model_out, result_out);
  return status ? apps_fail_as_said(&scheduler.common, status) : PAWL_OK;
}
