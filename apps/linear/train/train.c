/* The scheduler of linear methods: who works, on what, and in which order. See linear.h and inside.h; one point of the path of
 * penalties is in apps/linear/train/point.c. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/train/inside.h"

/* --- what others see ------------------------------------------------------------------------------------------------------------ */

pawl_status linear_fail(struct linear_run *run, pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!*run->error) vsnprintf(run->error, APPS_TEXT_MAX, format, arguments);
  va_end(arguments);
  return status;
}

void linear_tell(struct linear_run *run, const char *format, ...) {
  char line[APPS_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (run->options->tell) run->options->tell(run->options->context, line);
}

void linear_show(struct linear_run *run, const char *stage) {
  run->progress.stage = stage;
  run->progress.seconds = (double)(linear_now() - run->begun_ns) * 1e-9;
  if (run->options->progress) run->options->progress(run->options->context, &run->progress);
}

bool linear_is_stopping(struct linear_run *run) {
  if (!run->is_stopping && run->options->stopping) run->is_stopping = run->options->stopping(run->options->context);
  return run->is_stopping;
}

static void tell_event(void *context, const struct pawl_job_event *event) {
  struct linear_run *run = context;
  char line[APPS_NEWS_MAX];
  run->progress.workers = event->workers;
  run->moved += event->what == PAWL_JOB_LOST || event->what == PAWL_JOB_DROPPED || event->what == PAWL_JOB_MOVED;
  run->result.workers_lost += event->what == PAWL_JOB_LOST;
  if (event->what == PAWL_JOB_WAITING) linear_show(run, "starting");
  if (event->what == PAWL_JOB_MOVED && run->order.round == 0) return; /* everybody's first */
  if (!apps_refusal_keep(&run->refusal, event) && apps_news(event, line)) linear_tell(run, "%s", line);
}

static pawl_status start_worker(void *context) {
  struct linear_run *run = context;
  return run->options->start_worker ? run->options->start_worker(run->options->context) : PAWL_OK;
}

/* --- a round -------------------------------------------------------------------------------------------------------------------- */

static void add_census(struct linear_census *sum, const struct linear_census *part) {
  sum->rows += part->rows;
  sum->entries += part->entries;
  sum->skipped += part->skipped;
  sum->squares += part->squares;
  if (part->max_id > sum->max_id) sum->max_id = part->max_id;
  sum->has_zero |= part->has_zero;
  sum->digest.sum += part->digest.sum;
  sum->digest.pieces += part->digest.pieces;
  for (size_t i = 0; i < part->label_count; i++) {
    size_t k = 0;
    while (k < sum->label_count && sum->labels[k] != part->labels[i]) k++;
    if (k == sizeof sum->labels / sizeof *sum->labels) continue;
    if (k == sum->label_count) {
      sum->labels[sum->label_count++] = part->labels[i];
      sum->label_rows[k] = 0;
    }
    sum->label_rows[k] += part->label_rows[i];
  }
}

static void add_reply(struct linear_reply *sum, const struct linear_reply *part) {
  add_census(&sum->census, &part->census);
  sum->rows += part->rows;
  sum->correct += part->correct;
  sum->loss += part->loss;
  sum->violation += part->violation;
  sum->violation_max = fmax(sum->violation_max, part->violation_max);
  sum->looked_at += part->looked_at;
  sum->waited_s += part->waited_s;
  sum->worked_s += part->worked_s;
  sum->bytes_sent += part->bytes_sent;
  sum->bytes_received += part->bytes_received;
  sum->dual += part->dual;
  sum->loss_before += part->loss_before;
  sum->loss_of_nothing += part->loss_of_nothing;
  for (size_t class = 0; class < 2; class ++) {
    sum->slopes[class] += part->slopes[class];
    for (size_t k = 0; k < LINEAR_SHRINKS; k++) sum->conjugates[class][k] += part->conjugates[class][k];
  }
  for (size_t k = 0; k < LINEAR_TRIALS; k++) sum->trials[k] += part->trials[k];
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* How much longer than the median the slowest worker took. */
static void find_slowest(struct linear_run *run, const struct pawl_round *round) {
  size_t count = pawl_round_count(round), known = 0;
  int64_t *times = malloc((count + 1) * sizeof *times), most = -1;
  run->progress.slowest = 1;
  for (size_t i = 0; times && i < count; i++) {
    struct pawl_report report;
    if (pawl_round_get(round, i, &report) || report.status) continue;
    times[known++] = report.took_ns;
    if (report.took_ns <= most) continue;
    most = report.took_ns;
    snprintf(run->slowest_host, sizeof run->slowest_host, "%s", report.host);
    run->progress.slowest_pid = report.pid;
  }
  run->progress.slowest_host = run->slowest_host;
  if (known > 1) {
    qsort(times, known, sizeof *times, by_size);
    int64_t median = (times[(known - 1) / 2] + times[known / 2]) / 2;
    run->progress.slowest = median > 0 ? (double)most / (double)median : 1;
  }
  free(times);
}

static pawl_status add_reports(struct linear_run *run, const struct pawl_round *round, struct linear_reply *sum) {
  size_t replies = 0;
  for (size_t i = 0; i < pawl_round_count(round); i++) {
    struct pawl_report report;
    struct linear_reply reply;
    if (pawl_round_get(round, i, &report) || report.status == PAWL_NODE_GONE) continue;
    if (report.status)
      return linear_fail(run, report.status, "worker %llu at %s: %s", (unsigned long long)report.pid, report.host,
                         *report.text ? report.text : pawl_status_text(report.status));
    if (!linear_reply_read(report.bytes, report.size, &reply))
      return linear_fail(run, PAWL_CORRUPT, "worker %llu at %s sent an invalid reply", (unsigned long long)report.pid,
                         report.host);
    add_reply(sum, &reply);
    replies++;
  }
  run->progress.workers = (uint32_t)replies;
  return PAWL_OK;
}

/* Waits, and looks once a second whether it is time to stop. A pass over streamed data may take hours, and is left in the middle;
 * rounds of other methods are short, and seen through. */
static pawl_status run_round(struct linear_run *run, const char *text, struct pawl_round **round_out) {
  const char *stage = run->order.what == LINEAR_DESCRIBE ? "loading" : NULL;
  pawl_status status = pawl_job_round(run->job, text, strlen(text), PAWL_SECOND, round_out);
  while (status == PAWL_TIMED_OUT) {
    if (stage) linear_show(run, stage);
    if (linear_is_stopping(run) && (stage || run->spec.method->streams)) return PAWL_CANCELLED;
    status = pawl_job_await(run->job, PAWL_SECOND, round_out);
  }
  if (status == PAWL_REFUSED && *run->refusal.line) return linear_fail(run, status, "%s", run->refusal.line);
  if (*run->refusal.line) linear_tell(run, "%s", run->refusal.line); /* and others did the round */
  run->refusal.line[0] = '\0';
  if (status) return linear_fail(run, status, "%s", *pawl_error_text() ? pawl_error_text() : pawl_status_text(status));
  return PAWL_OK;
}

pawl_status linear_round(struct linear_run *run, struct linear_reply *sum_out, bool *whole_out) {
  struct pawl_round *round = NULL;
  struct linear_reply sum = {0};
  char *text = linear_order_write(&run->order);
  if (!text) return PAWL_NO_MEMORY;
  pawl_status status = run_round(run, text, &round);
  free(text);
  if (status) return status;
  status = add_reports(run, round, &sum);
  find_slowest(run, round);
  *whole_out = pawl_round_is_whole(round);
  pawl_round_destroy(round);
  if (!status) *sum_out = sum;
  return status;
}

/* --- what the data is ------------------------------------------------------------------------------------------------------------ */

static pawl_status settle_labels(struct linear_run *run, const struct linear_census *census) {
  if (linear_is_regression(run->spec.loss)) return PAWL_OK;
  if (census->label_count > 2)
    return linear_fail(run, PAWL_INVALID,
                       "the labels are not of two classes: there are %g, %g, %g and perhaps more; to predict numbers, "
                       "use 'pawl train linear'",
                       census->labels[0], census->labels[1], census->labels[2]);
  if (census->label_count < 2)
    return linear_fail(run, PAWL_INVALID, "all %llu rows have the label %g; training needs two labels",
                       (unsigned long long)census->rows, census->label_count ? census->labels[0] : 0);
  bool swapped = census->labels[0] > census->labels[1];
  for (size_t i = 0; i < 2; i++) {
    run->order.labels[i] = census->labels[i ^ swapped];
    run->class_rows[i] = (double)census->label_rows[i ^ swapped];
  }
  return PAWL_OK;
}

/* Blocks so many that a row has one feature, about, in every two of them that are under way at a time: then steps that do not
 * know of one another hardly act on the same rows (see blocks.c). */
static uint32_t choose_blocks(const struct linear_run *run, double per_row) {
  double wanted = 2 * per_row * (run->spec.tau + 1);
  double most = fmin((double)run->order.features, 1 << 16);
  if (run->options->blocks) wanted = run->options->blocks;
  return (uint32_t)fmax(1, fmin(ceil(wanted), most));
}

/* Newton steps where the Hessian is no trouble: a matrix that fits, and not too many pairs of entries of the same row. They are chosen when the data is
 * known, and workers need not know: they are told what to compute. */
static pawl_status choose_method(struct linear_run *run, const struct linear_census *census) {
  double pairs = (double)census->entries * (double)census->entries / (double)census->rows / 2;
  if (run->options->method == LINEAR_METHOD_NEWTON && census->max_id > LINEAR_NEWTON_MOST)
    return linear_fail(run, PAWL_TOO_LARGE,
                       "--method newton keeps a square matrix of all features, and %llu are too many (at most %d); use "
                       "--method blocks",
                       (unsigned long long)census->max_id, LINEAR_NEWTON_MOST);
  bool is_small = census->max_id <= LINEAR_NEWTON_SPARSE || census->entries / census->rows >= census->max_id / 16;
  bool fits = is_small && census->max_id <= LINEAR_NEWTON_AUTO && pairs <= LINEAR_NEWTON_PAIRS && !run->options->blocks;
  if (fits || run->options->method == LINEAR_METHOD_NEWTON) run->spec.method = &linear_newton;
  return PAWL_OK;
}

void linear_settle_rate(struct linear_run *run, double squares) {
  const struct linear_method_descriptor *method = run->spec.method;
  if (run->options->rate == 0 && method->settle_rate)
    run->control.rate = method->settle_rate(&run->spec, run->order.rows, squares);
  run->control.first_rate = run->control.rate;
}

static pawl_status settle(struct linear_run *run, const struct linear_census *census) {
  if (census->rows == 0) return linear_fail(run, PAWL_TRUNCATED, "the data has no rows");
  pawl_status status = settle_labels(run, census);
  if (status) return status;
  bool streams = run->spec.method->streams;
  double per_row = (double)census->entries / (double)census->rows;
  run->order.features = streams ? PAWL_ID_MAX : census->max_id + 1;
  run->order.rows = run->progress.rows = run->result.rows = census->rows;
  run->zero_based = census->has_zero || run->options->zero_based;
  run->progress.features = run->result.features = census->max_id + run->zero_based;
  run->progress.entries = run->result.entries = census->entries;
  run->order.blocks = choose_blocks(run, per_row);
  run->progress.skipped = run->result.skipped = census->skipped;
  if (run->options->method != LINEAR_METHOD_BLOCKS && run->spec.method == &linear_blocks) {
    status = choose_method(run, census);
    if (status) return status;
  }
  linear_control_init(&run->control, run->options, run->spec.method, census->rows,
                      2 * per_row * (run->spec.tau + 1) / run->order.blocks);
  if (run->control.rate == 0) run->control.rate = run->spec.rate;
  linear_settle_rate(run, census->squares);
  if (!linear_is_regression(run->spec.loss) && !streams)
    run->control.balance = fmin(run->class_rows[0], run->class_rows[1]) / (double)census->rows;
  return PAWL_OK;
}

static pawl_status describe(struct linear_run *run) {
  struct linear_reply sum;
  bool is_whole = false;
  run->order.what = LINEAR_DESCRIBE;
  run->order.damping = 1;
  while (!is_whole) {
    pawl_status status = linear_round(run, &sum, &is_whole);
    if (status) return status;
  }
  run->order.round = 1;
  run->result.load_s = (double)(linear_now() - run->begun_ns) * 1e-9;
  linear_state_digest(run, &sum.census.digest);
  return settle(run, &sum.census);
}

/* --- the job ------------------------------------------------------------------------------------------------------------------- */

static pawl_status write_spec(struct linear_run *run) {
  const struct linear_options *options = run->options;
  struct linear_spec *spec = &run->spec;
  struct pawl_data_info info;
  snprintf(spec->job, sizeof spec->job, "%s", options->job ? options->job : "linear");
  spec->loss = options->loss;
  spec->method = linear_method_chosen(options);
  if (spec->method == &linear_newton) spec->method = &linear_blocks; /* until the data is known: settle */
  spec->paths = calloc(options->path_count + 1, sizeof *spec->paths);
  for (size_t i = 0; spec->paths && i < options->path_count; i++) {
    spec->paths[i] = strdup(options->paths[i]);
    if (!spec->paths[i]) return PAWL_NO_MEMORY;
    spec->path_count = i + 1;
  }
  if (!spec->paths) return PAWL_NO_MEMORY;
  spec->reading = options->reading;
  linear_split(options, PAWL_PART_TRAIN, &spec->reading);
  if (options->reading.label) snprintf(spec->label, sizeof spec->label, "%s", options->reading.label);
  pawl_data_info(run->data, &info);
  spec->fingerprint = info.fingerprint;
  spec->pieces = info.pieces;
  spec->bias = options->bias;
  spec->digests = options->checkpoints != NULL;
  for (size_t i = 0; i < 2; i++) spec->class_weights[i] = options->class_weights[i] > 0 ? options->class_weights[i] : 1;
  spec->scale = options->scale;
  spec->tau = options->tau;
  spec->threads = options->threads;
  spec->minibatch = options->minibatch ? options->minibatch : 1000;
  spec->rate = options->rate > 0 ? options->rate : spec->method->rate;
  return PAWL_OK;
}

/* About how many bytes of text the data is. */
static uint64_t count_bytes(const struct linear_run *run) {
  static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2"};
  uint64_t sum = 0, size;
  const char *path;
  for (size_t i = 0; (path = pawl_data_file(run->data, i, &size)) != NULL; i++) {
    for (size_t k = 0; k < sizeof packed / sizeof *packed; k++) {
      size_t length = strlen(path), end = strlen(packed[k]);
      if (length > end && strcmp(path + length - end, packed[k]) == 0) size *= LINEAR_PACKED;
    }
    sum += size;
  }
  return sum;
}

/* The dual of the hinge loss is gone up row by row, each step knowing of all before. Workers that share the rows have to tell one another of their steps,
 * which takes many times as long as making them (dual.c). So one worker has all rows, if it can, unless the method was asked for by its name. */
static bool is_for_one(const struct linear_run *run) {
  const struct linear_options *options = run->options;
  return options->method == LINEAR_METHOD_AUTO && options->loss == LINEAR_HINGE &&
         count_bytes(run) <= LINEAR_DUAL_ALONE;
}

static pawl_status create_job(struct linear_run *run) {
  const struct linear_options *options = run->options;
  struct pawl_job_options job;
  struct pawl_data_info info;
  bool is_one = is_for_one(run);
  if (is_one) run->spec.tau = 0; /* there is nobody to wait for */
  char *spec = linear_spec_write(&run->spec);
  if (!spec) return PAWL_NO_MEMORY;
  pawl_data_info(run->data, &info);
  pawl_job_options_init(&job);
  job.name = run->spec.job;
  job.spec = spec;
  job.spec_size = strlen(spec);
  job.pieces = info.pieces;
  job.least = options->workers ? options->workers : 1;
  job.most = options->workers_most > job.least ? options->workers_most : job.least;
  job.on_loss = options->on_loss;
  if (job.most > 1 && is_one) {
    linear_tell(run,
                "one worker of %u trains on all rows, which is faster for the hinge loss; to use all workers, give "
                "--method dual",
                (unsigned)job.most);
    job.least = job.most = 1;
    if (job.on_loss == PAWL_LOSS_CONTINUE) job.on_loss = PAWL_LOSS_REPLACE; /* nobody would be left */
  }
  job.drop_slowest = options->drop_slowest;
  job.start = options->start_worker ? start_worker : NULL;
  job.tell = tell_event;
  job.context = run;
  pawl_status status = pawl_job_create(run->session, &job, LINEAR_TIMEOUT, &run->job);
  free(spec);
  if (status == PAWL_EXISTS)
    return linear_fail(run, status, "a job named %s already runs on this cluster; choose another name with --job",
                       run->spec.job);
  return status ? linear_fail(run, status, "cannot start the job: %s", pawl_error_text()) : PAWL_OK;
}

/* Documents have no labels, also for a method that could do with zeros. */
static pawl_status check_labels(struct linear_run *run) {
  struct pawl_data_info info;
  pawl_data_info(run->data, &info);
  if (info.format != PAWL_DATA_LDAC && info.format != PAWL_DATA_UCI && info.format != PAWL_DATA_TEXT) return PAWL_OK;
  return linear_fail(
      run, PAWL_INVALID,
      "%s is %s: documents without labels, which cannot train a linear model; if it is something else, give --format",
      run->options->paths[0], pawl_data_format_name(info.format));
}

static pawl_status open_data(struct linear_run *run) {
  const struct linear_options *options = run->options;
  struct pawl_data_options reading = options->reading;
  linear_split(options, PAWL_PART_TRAIN, &reading);
  pawl_status status = pawl_data_open(options->paths, options->path_count, &reading, &run->data);
  if (status) return linear_fail(run, status, "%s", pawl_error_text());
  status = check_labels(run);
  if (status) return status;
  status = write_spec(run);
  return status ? status : linear_validation_load(run);
}

/* --- all of it ------------------------------------------------------------------------------------------------------------------ */

static pawl_status train_points(struct linear_run *run) {
  struct linear_state state = {0};
  size_t first = 0;
  pawl_status status = PAWL_OK;
  if (run->options->resume) {
    status = linear_state_load(run, &state);
    if (status) return status;
    first = state.point;
  }
  run->trained_ns = run->saved_ns = linear_now();
  for (size_t i = first; i < run->options->point_count && !status; i++) {
    status = linear_train_point(run, i, run->options->resume && i == first);
    if (run->is_stopping) break;
  }
  return status;
}

static void fini(struct linear_run *run) {
  pawl_job_end(run->job);
  linear_newton_end(run);
  linear_forget_kept(run);
  linear_close_vectors(run);
  pawl_vector_close(run->scales);
  if (run->has_vectors) linear_delete_vectors(run, &run->order);
  if (run->scales) linear_delete_vector(run, &run->order, LINEAR_SCALES);
  linear_validation_fini(run);
  linear_spec_fini(&run->spec);
  pawl_data_close(run->data);
}

pawl_status linear_train(struct pawl_session *session, const struct linear_options *options,
                         struct linear_result *result_out, char error[APPS_TEXT_MAX]) {
  struct linear_run run = {.session = session, .options = options, .error = error, .begun_ns = linear_now()};
  *error = 0;
  run.progress.objective = run.progress.loss = run.progress.penalty = NAN;
  run.progress.valid_loss = run.progress.valid_accuracy = run.progress.left_s = NAN;
  run.result.valid_loss = run.result.valid_accuracy = run.result.accuracy = run.result.objective = NAN;
  run.result.gap = NAN;
  run.progress.points = options->point_count;
  if (!linear_check(options, error)) return PAWL_INVALID;
  pawl_status status = open_data(&run);
  if (!status) status = create_job(&run);
  if (!status) status = describe(&run);
  if (!status) status = train_points(&run);
  if (status == PAWL_CANCELLED && run.is_stopping) {
    if (!run.result.why) run.result.why = "interrupted";
    status = PAWL_OK;
  }
  if (status) linear_fail(&run, status, "%s", *pawl_error_text() ? pawl_error_text() : pawl_status_text(status));
  run.result.seconds = (double)(linear_now() - run.begun_ns) * 1e-9;
  fini(&run);
  if (!status) *result_out = run.result;
  return status;
}
