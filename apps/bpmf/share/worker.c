/* A worker of a job that factorises ratings: reads all ratings, and carries out the order of each round. See inside.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"

static pawl_status complain(struct bpmf_worker *worker, pawl_status status) {
  if (status) pawl_worker_say(worker->worker, "%s", *worker->error ? worker->error : apps_error_text(status));
  worker->error[0] = 0;
  return status;
}

/* --- beginning -------------------------------------------------------------------------------------------- */

static pawl_status read_files(struct bpmf_worker *worker, char **paths, size_t count,
                              struct pawl_ratings **ratings_out) {
  return count == 0 ? PAWL_OK
                    : pawl_ratings_read((const char *const *)paths, count, &worker->spec.reading, ratings_out);
}

static pawl_status read_ratings(struct bpmf_worker *worker) {
  const struct bpmf_share_spec *spec = &worker->spec;
  struct pawl_ratings *ratings = NULL, *test = NULL;
  pawl_status status = read_files(worker, spec->paths, spec->path_count, &ratings);
  if (!status) status = read_files(worker, spec->test_paths, spec->test_path_count, &test);
  if (!status) status = bpmf_data_init(&worker->data, ratings, test, spec->test_share, spec->seed, worker->error);
  pawl_ratings_destroy(ratings);
  pawl_ratings_destroy(test);
  if (status || worker->data.digest == spec->digest) return status;
  return apps_say(worker->error, PAWL_MISMATCH,
                  "the ratings at %.300s differ from the scheduler's; every worker needs the same files at the same "
                  "paths",
                  spec->paths[0]);
}

static pawl_status begin(struct pawl_worker *handle, void *context, const void *bytes, size_t size) {
  struct bpmf_worker *worker = context;
  worker->worker = handle;
  worker->session = pawl_worker_session(handle);
  if (!bpmf_share_spec_read(bytes, size, &worker->spec)) {
    pawl_worker_say(
        handle,
        "cannot read the specification of the job; use the same version of pawl for 'pawl train' and all workers");
    return PAWL_MISMATCH;
  }
  worker->link = worker->spec.share == PAWL_BPMF_ITEMS ? &bpmf_items_link : &bpmf_servers_link;
  pawl_status status = read_ratings(worker);
  if (!status && bpmf_sampler_init(&worker->sampler, &worker->data, worker->spec.rank, worker->spec.alpha,
                                   worker->spec.seed, worker->spec.threads, NULL))
    status = apps_say(worker->error, PAWL_NO_MEMORY, "no memory for rows of rank %" PRIu32, worker->spec.rank);
  return complain(worker, status);
}

/* --- eras ------------------------------------------------------------------------------------------------- */

static void leave_era(struct bpmf_worker *worker) {
  worker->link->close(worker);
  worker->is_open = false;
  worker->era = 0;
  bpmf_part_fini(&worker->part);
  bpmf_measure_fini(&worker->tests);
  bpmf_measure_fini(&worker->training);
  worker->tests = worker->training = (struct bpmf_measure){.sums = NULL};
}

/* Begins with the rows of the first iteration, or with the saved state, which further orders bring. */
static pawl_status enter_era(struct bpmf_worker *worker, const struct bpmf_order *order) {
  struct bpmf_sampler *sampler = &worker->sampler;
  leave_era(worker);
  bool is_fine =
      bpmf_part_init(&worker->part, sampler, pawl_worker_rank(worker->worker), pawl_worker_count(worker->worker)) &&
      bpmf_measure_init(&worker->tests, sampler, false, false, worker->part.first[BPMF_USERS],
                        worker->part.end[BPMF_USERS]) &&
      bpmf_measure_init(&worker->training, sampler, true, worker->spec.no_train_rmse, worker->part.first[BPMF_USERS],
                        worker->part.end[BPMF_USERS]);
  if (!is_fine) return apps_say(worker->error, PAWL_NO_MEMORY, "no memory for sums of predictions");
  worker->era = order->era;
  worker->tests.samples = worker->training.samples = order->measured;
  if (order->iteration == 0) bpmf_sampler_first(sampler);
  sampler->iteration = order->iteration;
  return PAWL_OK;
}

/* Whether this worker takes part in the era of an order. */
static pawl_status attend(struct bpmf_worker *worker, const struct bpmf_order *order, bool *is_in_out) {
  bool is_same = worker->era == order->era;
  *is_in_out = is_same || order->is_new;
  return is_same || !order->is_new ? PAWL_OK : enter_era(worker, order);
}

/* --- sections --------------------------------------------------------------------------------------------- */

static struct bpmf_measure *measure_of(struct bpmf_worker *worker, enum bpmf_section section) {
  return section == BPMF_SECTION_TESTS ? &worker->tests : &worker->training;
}

/* This worker's part of a section, as elements. */
static void own_part(struct bpmf_worker *worker, enum bpmf_section section, uint64_t *begin_out, uint64_t *end_out) {
  if (section > BPMF_SECTION_ITEMS) {
    const struct bpmf_measure *measure = measure_of(worker, section);
    *begin_out = measure->first;
    *end_out = measure->first + measure->room;
    return;
  }
  const struct bpmf_side *side = &worker->sampler.sides[section];
  *begin_out = bpmf_block_begin(side, worker->part.first[section]);
  *end_out = bpmf_block_begin(side, worker->part.end[section]);
}

static void take_rows(struct bpmf_worker *worker, int side, uint64_t begin, uint64_t end, const char *bytes) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  size_t width = sampler->rank * sizeof(float);
  for (uint64_t row = begin; row < end; row++, bytes += width)
    memcpy(sampler->sides[side].rows + row * sampler->width, bytes, width);
}

static void take_sums(struct bpmf_measure *measure, uint64_t begin, uint64_t end, const char *bytes) {
  uint64_t first = begin > measure->first ? begin : measure->first;
  uint64_t stop = end < measure->first + measure->room ? end : measure->first + measure->room;
  if (first >= stop) return;
  memcpy(measure->sums + (first - measure->first), bytes + (first - begin) * sizeof *measure->sums,
         (size_t)(stop - first) * sizeof *measure->sums);
}

static pawl_status take(struct bpmf_worker *worker, const struct bpmf_order *order) {
  uint64_t count = bpmf_section_count(&worker->sampler, order->section, worker->spec.no_train_rmse);
  size_t width = bpmf_section_width(&worker->sampler, order->section);
  uint64_t given = order->size / width;
  bool is_in;
  if (order->size % width != 0 || order->begin > count || given > count - order->begin) return PAWL_CORRUPT;
  pawl_status status = attend(worker, order, &is_in);
  if (status || !is_in || worker->is_open) return status;
  if (order->section <= BPMF_SECTION_ITEMS)
    take_rows(worker, (int)order->section, order->begin, order->begin + given, order->bytes);
  else
    take_sums(measure_of(worker, order->section), order->begin, order->begin + given, order->bytes);
  return PAWL_OK;
}

/* A gift: begin and end of the elements, and the elements. */
static pawl_status give(struct bpmf_worker *worker, const struct bpmf_order *order) {
  struct bpmf_sampler *sampler = &worker->sampler;
  size_t width = bpmf_section_width(sampler, order->section), row = sampler->rank * sizeof(float);
  uint64_t begin, end, most = BPMF_GIVEN / width, frame[2];
  bool is_in;
  pawl_status status = attend(worker, order, &is_in);
  if (status || !is_in) return status;
  own_part(worker, order->section, &begin, &end);
  if (order->begin >= end - begin) return PAWL_OK;
  frame[0] = begin + order->begin;
  frame[1] = end - frame[0] < most ? end : frame[0] + most;
  char *gift = apps_alloc(sizeof frame + (size_t)(frame[1] - frame[0]) * width), *to = gift + sizeof frame;
  if (!gift) return PAWL_NO_MEMORY;
  memcpy(gift, frame, sizeof frame);
  if (order->section > BPMF_SECTION_ITEMS)
    memcpy(to, measure_of(worker, order->section)->sums + order->begin, (size_t)(frame[1] - frame[0]) * width);
  else
    for (uint64_t i = frame[0]; i < frame[1]; i++, to += row)
      memcpy(to, sampler->sides[order->section].rows + i * sampler->width, row);
  status = pawl_worker_report(worker->worker, gift, sizeof frame + (size_t)(frame[1] - frame[0]) * width);
  apps_free(gift);
  return status;
}

/* --- iterations ------------------------------------------------------------------------------------------- */

/* Items need the peers of all workers, and wait for them here. */
static pawl_status open_link(struct bpmf_worker *worker) {
  if (worker->is_open || worker->spec.share != PAWL_BPMF_ITEMS) return bpmf_worker_open(worker);
  int64_t before = apps_now();
  pawl_status status = apps_reduce_await(worker->worker, worker->order.number);
  worker->waited_s += apps_seconds_since(before);
  if (status == PAWL_MISMATCH)
    return apps_say(worker->error, status, "this worker was not started for items; start it with --peers");
  worker->peers = pawl_worker_peers(worker->worker);
  return status ? status : bpmf_worker_open(worker);
}

/* A worker that cannot complete its iterations, because another one is lost or because numbers are too large, says so
 * by replying with fewer. The era is over then. */
static pawl_status make_iterations(struct bpmf_worker *worker, const struct bpmf_order *order,
                                   struct bpmf_reply *reply) {
  bool is_in;
  pawl_status status = attend(worker, order, &is_in);
  worker->order = *order;
  worker->link->begin(worker);
  reply->first = worker->part.first[BPMF_USERS];
  reply->end = worker->part.end[BPMF_USERS];
  reply->figures =
      apps_alloc_zero(order->count + (size_t)1, sizeof(double) * (1 + BPMF_ERRORS * (reply->end - reply->first)));
  if (!status && !reply->figures) status = PAWL_NO_MEMORY;
  if (!status && !is_in) status = PAWL_NODE_GONE;
  if (!status) status = open_link(worker);
  for (uint32_t i = 0; i < order->count && !status; i++) {
    status = bpmf_worker_iterate(worker, reply);
    if (!status && bpmf_worker_is_ending(worker)) status = PAWL_CANCELLED;
  }
  if (status) {
    worker->link->fail(worker);
    leave_era(worker);
  }
  return status == PAWL_DIVERGED || status == PAWL_NODE_GONE ? PAWL_OK : status;
}

static pawl_status report(struct bpmf_worker *worker, struct bpmf_reply *reply) {
  struct pawl_session_figures figures;
  size_t size;
  pawl_session_figures(worker->session, &figures);
  reply->bytes_sent = figures.bytes_sent;
  reply->bytes_received = figures.bytes_received;
  char *text = bpmf_reply_write(reply, &size);
  pawl_status status = text ? pawl_worker_report(worker->worker, text, size) : PAWL_NO_MEMORY;
  apps_free(text);
  return status;
}

/* --- rounds ----------------------------------------------------------------------------------------------- */

static pawl_status obey(struct bpmf_worker *worker, const struct bpmf_order *order) {
  struct bpmf_reply reply = {.figures = NULL};
  struct pawl_peers *peers = pawl_worker_peers(worker->worker);
  pawl_status status = PAWL_OK;
  if (order->what == BPMF_TAKE) return take(worker, order);
  if (order->what == BPMF_GIVE) return give(worker, order);
  int64_t begun = apps_now();
  worker->waited_s = 0;
  if (order->what == BPMF_MEET) reply.number = peers ? pawl_peers_number(peers) : 0;
  if (order->what == BPMF_ITERATE) status = make_iterations(worker, order, &reply);
  reply.waited_s = worker->waited_s;
  reply.worked_s = apps_seconds_since(begun) - worker->waited_s;
  if (!status) status = report(worker, &reply);
  apps_free(reply.figures);
  return status;
}

static pawl_status work(struct pawl_worker *handle, void *context, const void *argument, size_t size) {
  struct bpmf_worker *worker = context;
  struct bpmf_order order;
  (void)handle;
  if (!bpmf_order_read(argument, size, &order)) return PAWL_CORRUPT;
  return complain(worker, obey(worker, &order));
}

static void finish(struct pawl_worker *handle, void *context) {
  struct bpmf_worker *worker = context;
  (void)handle;
  if (worker->link) leave_era(worker);
  bpmf_sampler_fini(&worker->sampler);
  bpmf_data_fini(&worker->data);
  bpmf_share_spec_fini(&worker->spec);
  memset(worker, 0, sizeof *worker);
}

pawl_status pawl_bpmf_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                           char error[PAWL_BPMF_TEXT]) {
  static const struct pawl_worker_calls calls = {.begin = begin, .work = work, .end = finish};
  struct bpmf_worker worker = {.era = 0};
  pawl_status status = pawl_worker_run(session, job ? job : "bpmf", &calls, &worker, timeout_ns);
  if (status) (void)apps_say(error, status, "%s", apps_error_text(status));
  return status;
}
