/* Factors: <pawl/factor.h>. The engine is an actor inside the session's gate; the thread that commits applies commits
 * outside of it. */
#include "api/factor/factor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <pawl/peer.h>

#include "api/options.h"
#include "api/reduce/reduce.h"
#include "base/memory.h"
#include "host/clock.h"

#define CLOSE_NS (2 * INT64_C(1000000000)) /* for the delivery of the last commits */

void pawl_factor_options_init_sized(struct pawl_factor_options *options, size_t struct_size) {
  const struct pawl_factor_options defaults = {.seed = 1};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static struct pwi_driver *driver_of(const struct pawl_factor *factor) { return &factor->group->session->driver; }

/* --- callbacks of the engine ---------------------------------------------------------------------------- */

static void wakes(void *context) {
  struct pawl_factor *factor = context;
  if (!pwi_event_is_set(&factor->event)) pwi_event_set(driver_of(factor), &factor->event);
}

void pwi_factor_session_over(struct pwi_owned *owned) { wakes(owned); }

static void closed(void *context) {
  struct pawl_factor *factor = context;
  factor->is_closed = true;
  wakes(factor);
}

/* --- checks --------------------------------------------------------------------------------------------- */

static bool is_word(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  return length > 0 && name[length] == '\0' && length <= PAWL_FACTOR_NAME_MAX;
}

static pawl_status check_shape(const char *name, const void *matrix, size_t rows, size_t columns, enum pawl_type type) {
  if (!is_word(name))
    return pwi_error(PAWL_INVALID, "factors '%s': a name has 1 to %d letters, digits, '.', '_' and '-'", name,
                     PAWL_FACTOR_NAME_MAX);
  if (!matrix || rows == 0 || columns == 0)
    return pwi_error(PAWL_INVALID, "factors %s: the matrix is NULL, or has no rows or no columns", name);
  if (rows > FACTOR_COUNT_MAX || columns > FACTOR_COUNT_MAX)
    return pwi_error(PAWL_TOO_LARGE, "factors %s: at most %" PRIu32 " rows and columns are possible", name,
                     FACTOR_COUNT_MAX);
  if (type != PAWL_F32 && type != PAWL_F64)
    return pwi_error(PAWL_UNSUPPORTED, "factors %s: type %d; only PAWL_F32 and PAWL_F64 are possible", name, (int)type);
  return PAWL_OK;
}

static pawl_status check_options(const char *name, const struct pawl_factor_options *is) {
  if ((unsigned)is->mode > PAWL_FACTOR_ASYNC || (unsigned)is->prox > PAWL_FACTOR_CALL ||
      (unsigned)is->narrow > PAWL_FACTOR_BF16)
    return pwi_error(PAWL_INVALID, "factors %s: unknown mode, operator or narrowing", name);
  if ((is->mode == PAWL_FACTOR_SSP) != (is->staleness > 0) || is->staleness > UINT32_MAX)
    return pwi_error(PAWL_INVALID, "factors %s: the mode SSP needs a staleness of 1 or more, and the others none",
                     name);
  if (!(is->weight >= 0) || !(is->weight2 >= 0) || !isfinite(is->weight) || !isfinite(is->weight2))
    return pwi_error(PAWL_INVALID, "factors %s: the weights must be numbers, 0 or more", name);
  if (is->prox == PAWL_FACTOR_CALL && !is->prox_call)
    return pwi_error(PAWL_INVALID, "factors %s: prox_call is NULL", name);
  return PAWL_OK;
}

static pawl_status check_parts(const char *name, size_t rows, const struct pawl_factor_options *is) {
  if (is->parts == 0 && is->part == 0) return PAWL_OK;
  if (is->part >= is->parts || is->parts > rows || is->parts > PAWL_FACTOR_PARTS_MAX)
    return pwi_error(PAWL_INVALID,
                     "factors %s: part %" PRIu32 " of %" PRIu32
                     " parts of %zu rows: parts count from 0, every one has a "
                     "row, and there are at most %d",
                     name, is->part, is->parts, rows, PAWL_FACTOR_PARTS_MAX);
  if (is->prox == PAWL_FACTOR_UNIT_COLUMNS || is->prox == PAWL_FACTOR_TRACE_NORM)
    return pwi_error(PAWL_UNSUPPORTED, "factors %s: this operator needs the whole matrix, and members have parts of it",
                     name);
  return PAWL_OK;
}

static enum factor_code code_of(enum pawl_factor_narrow narrow, enum pawl_type type) {
  if (narrow == PAWL_FACTOR_F16) return FACTOR_F16;
  if (narrow == PAWL_FACTOR_BF16) return FACTOR_BF16;
  return type == PAWL_F64 && narrow == PAWL_FACTOR_WHOLE ? FACTOR_F64 : FACTOR_F32;
}

/* A name with a slash or a dot is that of a file. */
static pawl_status take_graph(const char *name, const struct pawl_factor_options *is, struct pwi_factor_config *config,
                              struct pwi_graph **file_out) {
  struct pwi_reduce_graph graph;
  config->is_complete = !is->graph || strcmp(is->graph, "complete") == 0;
  config->degree = config->is_complete ? 0 : is->degree;
  config->seed = is->seed;
  config->forwards = is->forward && !config->is_complete;
  *file_out = NULL;
  if (config->is_complete) return PAWL_OK;
  if (strpbrk(is->graph, "/.")) {
    pawl_status status = pwi_reduce_graph_read(is->graph, is->seed, is->degree, 1, &graph, file_out);
    config->file = status ? NULL : *file_out;
    return status;
  }
  if (!pwi_topology_find(is->graph, &config->topology))
    return pwi_error(PAWL_INVALID, "factors %s: unknown graph '%s'; 'pawl graph list' lists the graphs", name,
                     is->graph);
  if (config->topology != PWI_TOPOLOGY_RACKS) return PAWL_OK;
  return pwi_error(PAWL_UNSUPPORTED, "factors %s: the graph racks needs racks, which factors do not know", name);
}

/* --- waiting -------------------------------------------------------------------------------------------- */

/* Inside the gate; leaves it while it waits. The event is set again by `wakes`. */
static void wait(struct pawl_factor *factor, int64_t deadline) {
  struct pwi_driver *driver = driver_of(factor);
  int64_t at = pwi_factor_look_at(factor->engine);
  atomic_store(&factor->event.is_set, false);
  pwi_driver_leave(driver);
  (void)pwi_driver_wait(driver, &factor->event, at < deadline ? at : deadline);
  pwi_driver_enter(driver);
  int64_t now = pwi_net_now(driver->net);
  if (!factor->is_closed && now >= pwi_factor_look_at(factor->engine)) pwi_factor_look(factor->engine, now);
}

/* Inside the gate: PAWL_OK, or why the session is over. */
static pawl_status look_at_session(const struct pawl_factor *factor) {
  struct pwi_client_state state;
  if (factor->group->session->is_closed) return PAWL_NODE_STOPPED;
  if (factor->group->is_leaving) return PAWL_NODE_GONE;
  pwi_client_state(factor->group->session->client, &state);
  return state.is_dead ? state.trouble : PAWL_OK;
}

/* Others wait for what was sent: it goes out before the long work. */
static void work(struct pawl_factor *factor) {
  pwi_driver_look(driver_of(factor));
  pwi_driver_leave(driver_of(factor));
  pawl_status status = pwi_factor_work(factor->engine);
  pwi_driver_enter(driver_of(factor));
  pwi_factor_worked(factor->engine, status);
}

/* Inside the gate, until the step is over. */
static pawl_status run(struct pawl_factor *factor, int64_t deadline, struct pawl_factor_report *report) {
  for (;;) {
    enum pwi_factor_want want = pwi_factor_want(factor->engine);
    if (want == PWI_FACTOR_DONE) return pwi_factor_end(factor->engine, report);
    if (want == PWI_FACTOR_WORK) {
      work(factor);
      continue;
    }
    pawl_status status = look_at_session(factor);
    if (status) return status;
    if (deadline != PWI_NET_NEVER && pwi_net_now(driver_of(factor)->net) >= deadline) return PAWL_TIMED_OUT;
    wait(factor, deadline);
  }
}

/* Inside the gate. */
static pawl_status explain(struct pawl_factor *factor, const char *what, pawl_status status) {
  char text[128] = "";
  const char *problem = pwi_factor_problem(factor->engine);
  if (status == PAWL_TIMED_OUT) {
    pwi_factor_explain(factor->engine, text, sizeof text);
    return pwi_error(status, "factors %s: %s: deadline passed; %s", factor->name, what, text);
  }
  return problem[0] ? pwi_error(status, "factors %s: %s: %s", factor->name, what, problem)
                    : pwi_error_status(status, "factors %s: %s", factor->name, what);
}

/* --- opening -------------------------------------------------------------------------------------------- */

void pwi_factor_free(struct pwi_owned *owned) {
  struct pawl_factor *factor = (struct pawl_factor *)owned;
  pwi_factor_destroy(factor->engine);
  pwi_graph_destroy(factor->graph);
  pwi_factor_batch_fini(&factor->batch);
  pwi_free(factor->name);
  pwi_free(factor);
}

static pawl_status open_engine(struct pawl_factor *factor, struct pwi_factor_config *config) {
  struct pawl_session *session = factor->group->session;
  config->net = session->net;
  config->log = &session->log;
  config->group = factor->group->id;
  config->name = factor->name;
  config->context = factor;
  config->wakes = wakes;
  config->closed = closed;
  pwi_driver_enter(&session->driver);
  config->life = ++session->factor_lives << 40 | pwi_random_u64(&session->random) >> 24; /* rises, and is unique */
  pawl_status status = session->is_closed ? PAWL_NODE_STOPPED : pwi_client_peers(session->client, &config->peers);
  if (!status) status = pwi_factor_create(config, &factor->engine);
  if (!status) pwi_owned_add(&session->factors, &factor->owned);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "open factors %s", factor->name) : PAWL_OK;
}

static pawl_status await_open(struct pawl_factor *factor, int64_t deadline) {
  struct pawl_factor_report report;
  struct pwi_driver *driver = driver_of(factor);
  pwi_driver_enter(driver);
  pwi_factor_begin_open(factor->engine);
  pawl_status status = run(factor, deadline, &report);
  if (status) explain(factor, "open", status);
  pwi_driver_leave(driver);
  return status;
}

pawl_status pawl_factor_open(struct pawl_peers *peers, const char *name, void *matrix, size_t rows, size_t columns,
                             enum pawl_type type, const struct pawl_factor_options *given, int64_t timeout_ns,
                             struct pawl_factor **factor_out) {
  struct pawl_factor_options is;
  struct pwi_factor_config config = {.matrix = matrix};
  struct pwi_graph *file = NULL;
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  if (!peers || !name || !factor_out) return pwi_error(PAWL_INVALID, "open factors: peers, name or factor_out is NULL");
  pawl_factor_options_init(&is);
  pawl_status status = pwi_take_options("factor", given, &is, sizeof is);
  if (!status) status = check_shape(name, matrix, rows, columns, type);
  if (!status) status = check_options(name, &is);
  if (!status) status = check_parts(name, rows, &is);
  if (!status) status = take_graph(name, &is, &config, &file);
  if (!status) status = pawl_peers_await(peers, 0, timeout_ns);
  if (status) {
    pwi_graph_destroy(file);
    return status;
  }
  config.shape = (struct factor_shape){rows, columns, type == PAWL_F64, code_of(is.narrow, type)};
  config.part = is.part;
  config.parts = is.parts;
  config.mode = is.mode;
  config.staleness = is.staleness;
  config.prox = (struct factor_prox){is.prox, is.weight, is.weight2, is.prox_call, is.context};
  config.multiply = is.multiply;
  config.multiply_context = is.context;
  struct pawl_factor *factor = pwi_alloc_zero(1, sizeof *factor);
  char *copy = pwi_copy_string(name);
  if (!factor || !copy) {
    pwi_free(factor);
    pwi_free(copy);
    pwi_graph_destroy(file);
    return pwi_error_status(PAWL_NO_MEMORY, "open factors %s", name);
  }
  *factor = (struct pawl_factor){.group = (struct pawl_group *)peers, .name = copy, .graph = file, .matrix = matrix};
  factor->batch.shape = config.shape;
  factor->rows = pwi_factor_rows_of(rows, is.part, is.parts);
  status = open_engine(factor, &config);
  if (status) {
    pwi_factor_free(&factor->owned);
    return status;
  }
  status = await_open(factor, deadline);
  if (status)
    pawl_factor_close(factor); /* leaves the text */
  else
    *factor_out = factor;
  return status;
}

/* --- pairs ---------------------------------------------------------------------------------------------- */

static pawl_status may_add(const struct pawl_factor *factor) {
  if (!factor) return pwi_error(PAWL_INVALID, "add to factors: factor is NULL");
  if (!factor->is_committing) return PAWL_OK;
  return pwi_error(PAWL_INVALID, "factors %s: the last commit has timed out and is not over: call it again",
                   factor->name);
}

pawl_status pawl_factor_add(struct pawl_factor *factor, const struct pawl_factor_vector *u,
                            const struct pawl_factor_vector *v) {
  char problem[FACTOR_PROBLEM_MAX];
  pawl_status status = may_add(factor);
  if (status) return status;
  status = pwi_factor_batch_add(&factor->batch, u, v, problem);
  return status ? pwi_error(status, "factors %s: pair %" PRIu32 ": %s", factor->name, factor->batch.pairs, problem)
                : PAWL_OK;
}

pawl_status pawl_factor_add_rank(struct pawl_factor *factor, size_t rank, const void *u, const void *v) {
  pawl_status status = may_add(factor);
  if (status) return status;
  if (rank > 0 && (!u || !v)) return pwi_error(PAWL_INVALID, "factors %s: u or v is NULL", factor->name);
  const struct factor_shape *shape = &factor->batch.shape;
  const struct factor_batch before = factor->batch;
  size_t each = pwi_factor_value_size(shape);
  for (size_t i = 0; i < rank && !status; i++) {
    const struct pawl_factor_vector left = {(const char *)u + i * shape->rows * each, NULL, shape->rows};
    const struct pawl_factor_vector right = {(const char *)v + i * shape->columns * each, NULL, shape->columns};
    status = pawl_factor_add(factor, &left, &right);
  }
  if (!status) return PAWL_OK;
  factor->batch.size = before.size;
  factor->batch.pairs = before.pairs;
  factor->batch.nonzeros = before.nonzeros;
  factor->batch.largest = before.largest;
  return status;
}

void pawl_factor_discard(struct pawl_factor *factor) {
  if (factor && !factor->is_committing) pwi_factor_batch_clear(&factor->batch);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

/* Inside the gate. */
static pawl_status run_step(struct pawl_factor *factor, const char *what, int64_t deadline,
                            struct pawl_factor_report *report_out) {
  struct pawl_factor_report report;
  pawl_status status = run(factor, deadline, &report);
  if (status) explain(factor, what, status);
  pwi_driver_look(driver_of(factor)); /* others wait for what was sent */
  if (!status && report_out) *report_out = report;
  return status;
}

pawl_status pawl_factor_commit(struct pawl_factor *factor, double scale, double step, int64_t timeout_ns,
                               struct pawl_factor_report *report_out) {
  char problem[FACTOR_PROBLEM_MAX];
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  if (!factor) return pwi_error(PAWL_INVALID, "commit of factors: factor is NULL");
  if (!factor->is_committing) {
    pawl_status sealed = pwi_factor_batch_seal(&factor->batch, scale, step, problem);
    if (sealed) return pwi_error(sealed, "factors %s: commit: %s", factor->name, problem);
  }
  pwi_driver_enter(driver_of(factor));
  pawl_status status = look_at_session(factor);
  if (status) {
    explain(factor, "commit", status);
  } else if (!factor->is_committing && pwi_factor_is_stepping(factor->engine)) {
    status = pwi_error(PAWL_INVALID, "factors %s: a flush has timed out and is not over: call it again", factor->name);
  } else {
    factor->is_committing = true;
    pwi_factor_begin(factor->engine, factor->batch.bytes, factor->batch.size);
    status = run_step(factor, "commit", deadline, report_out);
    factor->is_committing = status == PAWL_TIMED_OUT;
    if (!factor->is_committing) pwi_factor_batch_clear(&factor->batch);
  }
  pwi_driver_leave(driver_of(factor));
  return status;
}

pawl_status pawl_factor_flush(struct pawl_factor *factor, int64_t timeout_ns, struct pawl_factor_report *report_out) {
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pawl_status status = may_add(factor);
  if (status) return status;
  pwi_driver_enter(driver_of(factor));
  status = look_at_session(factor);
  if (status) {
    explain(factor, "flush", status);
  } else {
    pwi_factor_begin_flush(factor->engine);
    status = run_step(factor, "flush", deadline, report_out);
  }
  pwi_driver_leave(driver_of(factor));
  return status;
}

/* --- looking -------------------------------------------------------------------------------------------- */

static bool is_finite(const struct factor_shape *shape, size_t rows, const void *matrix) {
  size_t count = rows * shape->columns;
  bool is_so = true;
  for (size_t i = 0; i < count && !shape->is_double; i++) is_so &= isfinite(((const float *)matrix)[i]) != 0;
  for (size_t i = 0; i < count && shape->is_double; i++) is_so &= isfinite(((const double *)matrix)[i]) != 0;
  return is_so;
}

pawl_status pawl_factor_hash(const struct pawl_factor *factor, uint64_t *hash_out) {
  if (!factor || !hash_out) return pwi_error(PAWL_INVALID, "hash of factors: factor or hash_out is NULL");
  if (!is_finite(&factor->batch.shape, (size_t)pawl_range_size(factor->rows), factor->matrix))
    return pwi_error(PAWL_DIVERGED, "factors %s: the matrix contains NaN or an infinity", factor->name);
  *hash_out = pwi_factor_matrix_hash(&factor->batch.shape, factor->rows, factor->matrix);
  return PAWL_OK;
}

void pawl_factor_state(const struct pawl_factor *factor, struct pawl_factor_state *state_out) {
  pwi_driver_enter(driver_of(factor));
  pwi_factor_state(factor->engine, state_out);
  pwi_driver_leave(driver_of(factor));
}

/* --- closing -------------------------------------------------------------------------------------------- */

void pawl_factor_close(struct pawl_factor *factor) {
  if (!factor) return;
  struct pwi_driver *driver = driver_of(factor);
  pwi_driver_enter(driver);
  int64_t deadline = pwi_net_now(driver->net) + (look_at_session(factor) ? 0 : CLOSE_NS);
  pwi_factor_close(factor->engine, deadline);
  while (!factor->is_closed) wait(factor, PWI_NET_NEVER);
  pwi_owned_remove(&factor->owned);
  pwi_factor_free(&factor->owned);
  pwi_driver_leave(driver);
}
