/* A worker of a job that trains a matrix: reads all rows, and carries out the order of each round. See inside.h. */
#include <math.h>
#include <string.h>

#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"
#include "apps/common/shared_matrix/inside.h"

struct matrix_hand {
  const struct matrix_learner *learner;
  void *state; /* the learner's */
  struct matrix_spec spec;
  struct matrix_share share;
  char error[APPS_TEXT_MAX]; /* reason of a failure; "": none given */
};

static pawl_status complain(struct matrix_hand *hand, pawl_status status) {
  if (status) pawl_worker_say(hand->share.worker, "%s", *hand->error ? hand->error : apps_error_text(status));
  hand->error[0] = 0;
  return status;
}

/* --- for learners ----------------------------------------------------------------------------------------- */

pawl_status matrix_share_need(struct matrix_share *share, const uint64_t *rows, size_t count) {
  return share->way->need(share, rows, count);
}

pawl_status matrix_share_add(struct matrix_share *share, const struct pawl_factor_vector *u,
                             const struct pawl_factor_vector *v) {
  return share->way->add(share, u, v);
}

pawl_status matrix_share_commit(struct matrix_share *share, double scale) { return share->way->commit(share, scale); }

void matrix_share_part(const struct matrix_share *share, size_t count, size_t *begin_out, size_t *end_out) {
  *begin_out = count / share->size * share->rank + count % share->size * share->rank / share->size;
  *end_out = count / share->size * (share->rank + 1) + count % share->size * (share->rank + 1) / share->size;
}

uint32_t matrix_share_size(const struct matrix_share *share) { return share->size; }

bool matrix_share_is_ending(const struct matrix_share *share) { return pawl_worker_is_ending(share->worker); }

uint64_t matrix_share_phase(const struct matrix_share *share) { return share->phase; }

/* --- beginning -------------------------------------------------------------------------------------------- */

static pawl_status begin(struct pawl_worker *handle, void *context, const void *bytes, size_t size) {
  struct matrix_hand *hand = context;
  hand->share = (struct matrix_share){.spec = &hand->spec,
                                      .worker = handle,
                                      .session = pawl_worker_session(handle),
                                      .way = &matrix_factors,
                                      .error = hand->error,
                                      .size = 1};
  if (!matrix_spec_read(bytes, size, &hand->spec) || strcmp(hand->spec.app, hand->learner->app) != 0) {
    pawl_worker_say(
        handle,
        "cannot read the specification of the job; use the same version of pawl for 'pawl train' and all workers");
    return PAWL_MISMATCH;
  }
  if (hand->spec.way != PAWL_MATRIX_FACTORS) hand->share.way = &matrix_whole;
  return complain(hand, hand->learner->begin(&hand->spec, &hand->state, &hand->share.place, hand->error));
}

/* --- the matrix ------------------------------------------------------------------------------------------- */

/* Closes factors, whose matrix may not be written, and multiplies the factor into the matrix: all workers have the same
 * one, and a new worker has 1. */
static void settle(struct matrix_hand *hand) {
  struct matrix_place *place = &hand->share.place;
  size_t count = hand->spec.shape.rows * hand->spec.shape.columns;
  hand->share.way->close(&hand->share);
  if (!place->factor || *place->factor == 1) return;
  for (size_t i = 0; i < count && hand->spec.shape.is_double; i++) ((double *)place->values)[i] *= *place->factor;
  for (size_t i = 0; i < count && !hand->spec.shape.is_double; i++)
    ((float *)place->values)[i] *= (float)*place->factor;
  *place->factor = 1;
}

static uint64_t state_size(const struct matrix_hand *hand) {
  return matrix_bytes(&hand->spec.shape) + hand->share.place.extra_size;
}

/* Copies bytes [begin, end) of the matrix, with its extra values behind it. */
static void copy_state(const struct matrix_hand *hand, uint64_t begin, uint64_t end, char *to, const char *from) {
  const struct matrix_place *place = &hand->share.place;
  uint64_t matrix = matrix_bytes(&hand->spec.shape), split = begin > matrix ? begin : end < matrix ? end : matrix;
  size_t first = (size_t)(split - begin), second = (size_t)(end - split);
  char *values = first > 0 ? (char *)place->values + begin : NULL;
  char *extra = second > 0 ? (char *)place->extra + (split - matrix) : NULL;
  if (first > 0) memcpy(from ? values : to, from ? from : values, first);
  if (second > 0) memcpy(from ? extra : to + first, from ? from + first : extra, second);
}

static pawl_status take(struct matrix_hand *hand, const struct matrix_order *order) {
  if (order->end > state_size(hand)) return PAWL_CORRUPT;
  settle(hand);
  copy_state(hand, order->begin, order->end, NULL, order->bytes);
  return PAWL_OK;
}

static pawl_status clear(struct matrix_hand *hand) {
  settle(hand);
  memset(hand->share.place.values, 0, matrix_bytes(&hand->spec.shape));
  return PAWL_OK;
}

/* The values of the matrix are without the factor, which the scheduler knows. */
static pawl_status give(struct matrix_hand *hand, const struct matrix_order *order) {
  if (order->node != pawl_session_node(hand->share.session).id) return PAWL_OK;
  if (order->end > state_size(hand) || order->end - order->begin > PAWL_JOB_BYTES) return PAWL_CORRUPT;
  char *bytes = apps_alloc((size_t)(order->end - order->begin) + 1);
  if (!bytes) return PAWL_NO_MEMORY;
  copy_state(hand, order->begin, order->end, bytes, NULL);
  pawl_status status = pawl_worker_report(hand->share.worker, bytes, (size_t)(order->end - order->begin));
  apps_free(bytes);
  return status;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

/* Makes the steps of a round. A worker that finds numbers that are not finite lets the others go on, and says so. */
static pawl_status make_steps(struct matrix_hand *hand, const struct matrix_order *order, struct matrix_reply *reply) {
  struct matrix_share *share = &hand->share;
  bool is_late = false;
  if (share->factors.serial != order->serial && hand->spec.way == PAWL_MATRIX_FACTORS) settle(hand);
  share->phase = order->phase;
  pawl_status status = share->way->open(share, order, &is_late);
  if (is_late) return status;
  while (!status && reply->done < order->count) {
    status = hand->learner->step(hand->state, share, order->step + reply->done);
    if (!status) reply->done++;
    if (!status && pawl_worker_is_ending(share->worker)) status = PAWL_CANCELLED;
  }
  bool has_made_all = !status;
  if (!status) status = share->way->finish(share);
  if (status == PAWL_DIVERGED) reply->diverged = order->step + reply->done + !has_made_all;
  if (!has_made_all) share->way->quit(share, order->count - reply->done);
  return status == PAWL_DIVERGED ? PAWL_OK : status;
}

static pawl_status report(struct matrix_hand *hand, struct matrix_reply *reply) {
  struct pawl_session_figures figures;
  pawl_session_figures(hand->share.session, &figures);
  reply->bytes_sent = figures.bytes_sent;
  reply->bytes_received = figures.bytes_received;
  char *text = matrix_reply_write(reply);
  pawl_status status = text ? pawl_worker_report(hand->share.worker, text, strlen(text)) : PAWL_NO_MEMORY;
  apps_json_free(text);
  return status;
}

static pawl_status obey(struct matrix_hand *hand, const struct matrix_order *order) {
  struct matrix_share *share = &hand->share;
  struct pawl_peers *peers = pawl_worker_peers(share->worker);
  struct matrix_reply reply = {.number = peers ? pawl_peers_number(peers) : 0};
  int64_t begun = apps_now();
  pawl_status status = PAWL_OK;
  if (order->what == MATRIX_GIVE) return give(hand, order);
  share->waited_s = 0;
  share->hash = share->update_bytes = 0;
  if (order->what == MATRIX_TAKE) status = take(hand, order);
  if (order->what == MATRIX_CLEAR) status = clear(hand);
  if (order->what == MATRIX_STEPS) status = make_steps(hand, order, &reply);
  if (status) return status;
  reply.factor = share->place.factor ? *share->place.factor : 1;
  reply.report = hand->learner->report ? hand->learner->report(hand->state) : 0;
  reply.hash = share->hash;
  reply.update_bytes = share->update_bytes;
  reply.waited_s = share->waited_s;
  reply.worked_s = apps_seconds_since(begun) - share->waited_s;
  return report(hand, &reply);
}

static pawl_status work(struct pawl_worker *handle, void *context, const void *argument, size_t size) {
  struct matrix_hand *hand = context;
  struct matrix_order order;
  (void)handle;
  if (!matrix_order_read(argument, size, &order)) return PAWL_CORRUPT;
  return complain(hand, obey(hand, &order));
}

static void finish(struct pawl_worker *handle, void *context) {
  struct matrix_hand *hand = context;
  (void)handle;
  hand->share.way->close(&hand->share); /* before its matrix goes */
  hand->learner->end(hand->state);
  matrix_spec_fini(&hand->spec);
  memset(hand, 0, sizeof *hand);
}

pawl_status matrix_work(const struct matrix_learner *learner, struct pawl_session *session, const char *job,
                        int64_t timeout_ns, char *error) {
  static const struct pawl_worker_calls calls = {.begin = begin, .work = work, .end = finish};
  struct matrix_hand hand = {.learner = learner};
  pawl_status status = pawl_worker_run(session, job ? job : learner->app, &calls, &hand, timeout_ns);
  if (status) (void)apps_say(error, status, "%s", apps_error_text(status));
  return status;
}
