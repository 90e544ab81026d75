/* Training for one penalty: rounds until the method is done, then an evaluation over all data, and the
 * model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/train/inside.h"

/* --- rounds --------------------------------------------------------------------------------------------- */

static void note_round(struct linear_run *run, const struct linear_reply *sum, double seconds) {
  struct pawl_linear_progress *progress = &run->progress;
  uint64_t before = progress->bytes_sent + progress->bytes_received;
  run->waited_s += sum->waited_s;
  run->worked_s += sum->worked_s;
  progress->round = run->order.round;
  progress->skipped = sum->census.skipped;
  if (sum->bytes_sent > progress->bytes_sent) progress->bytes_sent = sum->bytes_sent;
  if (sum->bytes_received > progress->bytes_received) progress->bytes_received = sum->bytes_received;
  progress->bytes_per_s = (double)(progress->bytes_sent + progress->bytes_received - before) / seconds;
  progress->examples_per_s = (double)sum->rows / seconds;
  double busy = sum->waited_s + sum->worked_s;
  progress->wait_pct = busy > 0 ? 100 * sum->waited_s / busy : 0;
  double left = linear_control_left(&run->control);
  progress->left_s = left * apps_seconds_since(run->trained_ns) / (double)(run->control.rounds + 1);
}

/* Fills in the order of the next sweep from the decisions of the control. */
static void order_sweep(struct linear_run *run) {
  run->order.what = LINEAR_SWEEP;
  run->order.is_full = run->control.is_full || run->moved != run->seen_moved;
  run->order.slack = run->control.slack;
  run->order.damping = run->control.damping;
  run->order.is_first = run->control.rounds == 0 || run->order.round == run->resumed_round;
}

/* Evaluates the loss once more for methods that gather, whose steps are complete only at the end of a round.
 * Their bias is penalised like a weight, and their sums begin with weights of zero. */
static pawl_status look_again(struct linear_run *run, struct linear_reply *sum, bool *whole, double *extra_out) {
  struct linear_reply evaluated;
  bool is_whole;
  double bias = 0;
  if (!run->spec.method->gathers) return PAWL_OK;
  run->order.what = LINEAR_EVALUATE;
  pawl_status status = linear_round(run, &evaluated, &is_whole);
  if (!status && run->bias) status = linear_read_bias(run, &bias);
  if (status) return status;
  *whole = *whole && is_whole;
  sum->loss_before = evaluated.loss_of_nothing;
  sum->loss = evaluated.loss;
  *extra_out = run->order.l2 / 2 * bias * bias;
  return PAWL_OK;
}

/* A round of a method that has no `round` of its own. */
static pawl_status work(struct linear_run *run, struct linear_reply *sum, struct linear_outcome *outcome,
                        double *extra) {
  bool is_whole;
  double before = 0, *penalty = &run->progress.penalty;
  uint64_t nonzeros;
  order_sweep(run);
  pawl_status status = run->order.is_first ? linear_read_penalty(run, &before, &nonzeros) : PAWL_OK;
  if (!status) status = linear_round(run, sum, &is_whole);
  if (!status) status = look_again(run, sum, &is_whole, extra);
  if (!status) status = linear_read_penalty(run, penalty, &run->progress.nonzeros);
  if (status) return apps_fail(&run->common, status, "cannot compute the penalty: %s", pawl_error_text());
  if (!is_whole) run->moved++; /* the servers may have applied pushes of a worker that is missing */
  outcome->is_whole = is_whole && run->moved == run->seen_moved;
  outcome->was_full = run->order.is_full;
  outcome->violation = sum->violation;
  outcome->violation_max = sum->violation_max;
  outcome->dual = sum->dual - *penalty - *extra;
  if (is_whole) outcome->objective = sum->loss + *penalty + *extra;
  /* complete only after a pass over streamed data */
  if (is_whole) linear_state_digest(run, &sum->census.digest);
  bool is_resumed = run->order.round == run->resumed_round && run->spec.method->gathers;
  if (is_whole && run->order.is_first && !is_resumed) outcome->before = sum->loss_before + before;
  return PAWL_OK;
}

static pawl_status sweep(struct linear_run *run) {
  struct linear_reply sum = {0};
  struct linear_outcome outcome = {.objective = NAN, .before = NAN, .gap = NAN};
  double extra = 0;
  int64_t begun = apps_now();
  const struct linear_method_descriptor *method = run->spec.method;
  pawl_status status = method->round ? method->round(run, &sum, &outcome) : work(run, &sum, &outcome, &extra);
  if (status) return status;
  linear_control_hear(&run->control, &outcome);
  run->seen_moved = run->moved;
  run->is_best = false; /* until linear_keep */
  run->progress.objective = outcome.objective - extra;
  run->progress.loss = isfinite(outcome.objective) ? sum.loss : NAN;
  note_round(run, &sum, (double)(apps_now() - begun + 1) * 1e-9);
  return linear_validate(run);
}

/* Methods that gather: creates a new generation of weights from the multipliers on the servers. */
static pawl_status gather(struct linear_run *run) {
  struct linear_order before = run->order;
  struct linear_reply sum;
  bool is_whole = false;
  while (!is_whole) {
    run->order.generation++;
    pawl_status status = linear_make_vectors(run);
    run->order.what = LINEAR_GATHER;
    if (!status) status = linear_round(run, &sum, &is_whole);
    if (status) return status;
    linear_delete_vector(run, &before, LINEAR_WEIGHTS);
    linear_delete_vector(run, &before, LINEAR_BIAS);
    before = run->order;
    is_whole = is_whole && run->moved == run->seen_moved;
    run->seen_moved = run->gathered_moved = run->moved;
  }
  return PAWL_OK;
}

static pawl_status save_if_due(struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  double every = options->checkpoint_every_s > 0 ? options->checkpoint_every_s : 60;
  if (!options->checkpoints || apps_seconds_since(run->saved_ns) < every) return PAWL_OK;
  return linear_state_save(run);
}

static const char *why_to_end(struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  bool streams = run->spec.method->streams;
  uint64_t most = options->rounds ? options->rounds : streams ? 1 : 1000;
  if (apps_is_stopping(&run->common)) return "interrupted";
  if (run->control.is_done) return "converged";
  if (run->control.is_stuck && run->control.tolerance > LINEAR_NEVER_DONE) return "stuck";
  if (options->patience && run->validation.worse >= options->patience) return "early stop";
  if (run->control.rounds >= most + run->resumed) return streams ? "streamed" : "rounds";
  return NULL;
}

/* Carries out the decisions of the control: keep the weights, go back, or measure the distance to the
 * optimum. */
static pawl_status draw_conclusions(struct linear_run *run) {
  struct linear_control *control = &run->control;
  struct linear_distance distance = {NAN, NAN, NAN, NAN};
  pawl_status status = PAWL_OK;
  if (control->keeps) status = linear_keep(run);
  if (!status && control->goes_back) status = linear_go_back(run);
  if (!status && control->wants_check) {
    status = linear_measure(run, &distance);
    if (!status) linear_control_measured(control, &distance);
  }
  return status || control->since_full ? status : linear_remember(run);
}

static pawl_status rounds(struct linear_run *run) {
  bool gathers = run->spec.method->gathers;
  pawl_status status = gathers ? gather(run) : PAWL_OK;
  run->result.why = NULL;
  if (!status && run->spec.method->keeps_best) status = linear_keep(run);
  while (!status && !run->result.why) {
    if (gathers && run->moved != run->gathered_moved) status = gather(run);
    if (!status) status = sweep(run);
    if (status) break;
    linear_show(run, "training");
    run->order.round++;
    status = draw_conclusions(run);
    run->result.why = why_to_end(run);
    if (!status && !run->result.why) status = save_if_due(run);
  }
  return status;
}

/* --- the end of a point --------------------------------------------------------------------------------- */

static pawl_status evaluate(struct linear_run *run) {
  struct linear_reply sum;
  bool is_whole = false;
  double penalty = 0;
  while (!is_whole) {
    run->order.what = LINEAR_EVALUATE;
    pawl_status status = linear_round(run, &sum, &is_whole);
    if (!status && sum.lacks) { /* a new worker came after the weights were averaged */
      is_whole = false;
      status = linear_average_collect(run);
    }
    if (status) return status;
  }
  pawl_status status = linear_read_penalty(run, &penalty, &run->result.nonzeros);
  run->result.objective = sum.loss + penalty;
  run->penalty = penalty;
  run->result.rows = sum.rows;
  run->nothing = sum.loss_of_nothing;
  if (!linear_is_regression(run->spec.loss) && sum.rows > 0)
    run->result.accuracy = (double)sum.correct / (double)sum.rows;
  run->progress.objective = run->result.objective;
  run->progress.nonzeros = run->result.nonzeros;
  return status;
}

static void sum_up(struct linear_run *run) {
  struct pawl_linear_result *result = &run->result;
  double busy = run->waited_s + run->worked_s;
  result->rounds = run->order.round - run->first_round - run->resumed;
  result->resumed = run->resumed;
  result->seconds = apps_seconds_since(run->common.begun_ns);
  result->train_s = apps_seconds_since(run->trained_ns);
  result->wait_pct = busy > 0 ? 100 * run->waited_s / busy : 0;
  result->bytes_sent = run->progress.bytes_sent;
  result->bytes_received = run->progress.bytes_received;
  result->skipped = run->progress.skipped;
  result->valid_loss = run->progress.valid_loss;
  result->valid_accuracy = run->progress.valid_accuracy;
  result->valid_guess = run->validation.guess;
  result->is_guessing = run->validation.is_guessing;
}

/* After an early stop: restores the weights of the round with the best validation loss. */
static pawl_status go_back(struct linear_run *run) {
  pawl_status status = linear_write_start(run, &run->validation.model);
  if (status) return apps_fail(&run->common, status, "cannot restore the best model: %s", pawl_error_text());
  apps_tell(&run->common, "returning to the weights of %u rounds ago, which had the best validation loss",
            run->validation.worse);
  return linear_validate(run);
}

/* Passes the model to the caller, even if rounds have failed. */
static pawl_status hand_out(struct linear_run *run, size_t point) {
  pawl_linear_model_destroy(run->model);
  struct pawl_linear_model *model = run->model = apps_alloc_zero(1, sizeof *run->model);
  pawl_status status = model ? linear_read_model(run, model) : PAWL_NO_MEMORY;
  if (status) return apps_fail(&run->common, status, "cannot read the model: %s", pawl_error_text());
  /* rounds failed before the evaluation */
  if (!isfinite(run->result.objective)) run->result.objective = run->progress.objective;
  model->about.objective = run->result.objective;
  model->about.penalty = run->penalty;
  linear_name_features(run, model);
  run->result.nonzeros = model->about.nonzeros;
  if (run->spec.method->streams) run->result.features = pawl_linear_width(&model->about);
  if (run->options->found) status = run->options->found(run->options->context, point, model, &run->result);
  if (run->keeps_model) return status;
  pawl_linear_model_destroy(model);
  run->model = NULL;
  return status;
}

static pawl_status begin_point(struct linear_run *run, size_t point, bool resumes) {
  run->order.l1 = run->options->points[point].l1;
  run->order.l2 = run->options->points[point].l2;
  run->order.seed = run->options->seed;
  run->progress.point = point;
  run->progress.l1 = run->order.l1;
  run->progress.l2 = run->order.l2;
  run->progress.rounds = run->options->rounds ? run->options->rounds + (resumes ? run->resumed : 0) : 0;
  run->control.has_penalty = run->order.l1 > 0 || run->order.l2 > 0;
  run->resumed_round = resumes ? run->order.round : 0;
  if (resumes) {
    pawl_status opened = linear_scale_open(run);
    return opened ? opened : linear_make_vectors(run);
  }
  run->first_round = run->order.round;
  run->resumed = 0;
  linear_control_next(&run->control);
  if (point > 0 && run->weights && !run->spec.method->streams && !run->spec.method->gathers)
    return linear_begin_vectors(run, point);
  if (point > 0) linear_delete_vectors(run, &run->order);
  linear_close_vectors(run);
  run->order.point = point;
  run->order.generation = 0;
  pawl_status status = point == 0 ? linear_delete_leftovers(run) : PAWL_OK;
  if (!status && point == 0) status = linear_scale_settle(run);
  if (!status) status = linear_make_vectors(run);
  if (!status && point == 0 && run->options->start) status = linear_write_start(run, run->options->start);
  return status;
}

pawl_status linear_train_point(struct linear_run *run, size_t point, bool resumes) {
  pawl_status status = begin_point(run, point, resumes);
  if (status) return apps_fail(&run->common, status, "%s", pawl_error_text());
  run->validation.best = INFINITY;
  run->validation.worse = 0;
  run->progress.objective = run->result.objective = run->result.accuracy = run->penalty =
      NAN; /* the figures of the point before do not apply */
  pawl_status ended = rounds(run);
  bool is_cut_short = ended == PAWL_CANCELLED && run->spec.method->streams; /* streams learn within a pass */
  if (ended && run->order.round < 2 && !is_cut_short) return ended;         /* nothing was learned yet */
  if (!run->result.why) run->result.why = run->common.is_stopping ? "interrupted" : "failed";
  linear_show(run, "finishing");
  pawl_status best = strcmp(run->result.why, "early stop") ? linear_end_with_the_best(run) : go_back(run);
  if (!ended) ended = best;
  if (!ended) ended = evaluate(run);
  sum_up(run);
  linear_judge_end(run);
  status = hand_out(run, point);
  linear_forget_kept(run);
  linear_newton_end(run);
  if (!ended && !status && run->options->checkpoints) status = linear_state_save(run);
  return ended ? ended : status;
}
