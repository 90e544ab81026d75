#include "cli/train/end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/train/keep.h"
#include "cli/train/log.h"
#include "cli/train/show.h"

bool pwi_train_end_init(struct pwi_train_end *end, const struct pwi_train_options *options,
                        const struct pwi_train_files *files) {
  *end = (struct pwi_train_end){.options = options, .files = files};
  end->found = pwi_alloc_zero(options->linear.point_count, sizeof *end->found);
  return end->found != NULL;
}

void pwi_train_end_fini(struct pwi_train_end *end) {
  for (size_t i = 0; end->found && i < end->options->linear.point_count; i++) pwi_free(end->found[i].path);
  pwi_free(end->found);
  end->found = NULL;
}

struct writing {
  const struct pawl_linear_model *model;
  enum pawl_linear_format format;
};

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  const struct writing *writing = context;
  return pawl_linear_model_write(writing->model, path, is_rescue ? PAWL_LINEAR_FORMAT_PAWL : writing->format, error);
}

pawl_status pwi_train_end_found(struct pwi_train_end *end, size_t point, const struct pawl_linear_model *model,
                                const struct pawl_linear_result *result, char error[PAWL_LINEAR_TEXT]) {
  char mark[PWI_TRAIN_MARK_MAX];
  struct pwi_train_found *found = &end->found[point];
  char *path = pwi_train_point_name(end->files->output, pwi_train_mark(end->options, point, mark));
  snprintf(error, PAWL_LINEAR_TEXT, "out of memory");
  struct writing writing = {model, end->files->format};
  pawl_status status = path ? pwi_train_keep(path, write_model, &writing, error) : PAWL_NO_MEMORY;
  if (status) {
    pwi_free(path);
    return status;
  }
  pwi_free(found->path); /* from an earlier call for the same point */
  found->path = path;
  found->result = *result;
  snprintf(found->why, sizeof found->why, "%s", result->why ? result->why : "");
  end->last = point;
  end->has_found = true;
  return PAWL_OK;
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void set(json_t *object, const char *name, json_t *value) { (void)json_object_set_new(object, name, value); }

static void set_count(json_t *object, const char *name, uint64_t value) {
  set(object, name, json_integer((json_int_t)value));
}

static void set_number(json_t *object, const char *name, double value) {
  set(object, name, pwi_train_json_number(value));
}

static json_t *text_or_null(const char *text) {
  json_t *string = text ? pwi_json_string(text) : NULL;
  return string ? string : json_null();
}

/* The JSON object of one model. */
static json_t *describe(const struct pwi_train_end *end, size_t point) {
  const struct pwi_train_found *found = &end->found[point];
  const struct pawl_linear_result *result = &found->result;
  const struct pawl_linear_point *at = &end->options->linear.points[point];
  json_t *object = json_object();
  set_number(object, "objective", result->objective);
  set_count(object, "nnz", result->nonzeros);
  set_number(object, "seconds", result->seconds);
  set_count(object, "iterations", result->rounds);
  set_count(object, "resumed", result->resumed);
  set_number(object, "accuracy", result->accuracy);
  set_number(object, "wait_pct", result->wait_pct);
  set_count(object, "bytes_sent", result->bytes_sent);
  set_count(object, "bytes_received", result->bytes_received);
  set(object, "model", text_or_null(found->path));
  set(object, "why", text_or_null(found->why));
  set(object, "converged", json_boolean(strcmp(found->why, "converged") == 0));
  set_number(object, "gap", result->gap);
  set(object, "advice", text_or_null(result->advice));
  set(object, "method", text_or_null(result->method));
  set(object, "scale", text_or_null(pawl_linear_scale_name(end->options->linear.scale)));
  set_number(object, "l1", at->l1);
  set_number(object, "l2", at->l2);
  set_count(object, "rows", result->rows);
  set_count(object, "features", result->features);
  set_count(object, "entries", result->entries);
  set_count(object, "skipped", result->skipped);
  set_number(object, "load_seconds", result->load_s);
  set_number(object, "train_seconds", result->train_s);
  set_number(object, "valid_loss", result->valid_loss);
  set_number(object, "valid_accuracy", result->valid_accuracy);
  set_number(object, "valid_guess", result->valid_guess);
  set(object, "guessing", json_boolean(result->is_guessing));
  set(object, "share", text_or_null(pwi_train_base_reduces(&end->options->base) ? "reduce" : "servers"));
  set_count(object, "workers", result->workers);
  set_count(object, "workers_lost", result->workers_lost);
  return object;
}

int pwi_train_end_json(const struct pwi_train_end *end) {
  const struct pwi_command *command = end->options->base.command;
  json_t *object = describe(end, end->last), *models = json_array();
  set_number(object, "total_seconds", end->seconds);
  for (size_t i = 0; i < end->options->linear.point_count && end->options->linear.point_count > 1; i++)
    if (end->found[i].path) (void)json_array_append_new(models, describe(end, i));
  if (end->options->linear.point_count > 1)
    set(object, "models", models);
  else
    json_decref(models);
  return pwi_train_json_write(stdout, object) ? PWI_EXIT_OK : pwi_cli_failure(command, "cannot print the result");
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static const char *reason(const char *why) {
  static const struct {
    const char *word, *text;
  } reasons[] = {{"converged", "converged"},
                 {"rounds", "NOT converged: reached the limit of rounds"},
                 {"stuck", "NOT converged: no step reduces the objective further"},
                 {"diverged", "DIVERGED: the model is no better than weights of zero"},
                 {"early stop", "stopped early: the validation loss did not improve"},
                 {"interrupted", "interrupted"},
                 {"streamed", "all data was streamed"}};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    if (strcmp(reasons[i].word, why) == 0) return reasons[i].text;
  return *why ? why : "ended";
}

/* A large gap says more about the bound than about the model, so the reason for the end is printed first. */
static void print_distance(const struct pawl_linear_result *result) {
  bool by_conditions = result->gap > 0.01 && strcmp(result->why, "converged") == 0;
  if (by_conditions)
    printf("  %-12s the optimality conditions hold within the tolerance", "distance");
  else if (result->gap < 0.5)
    printf("  %-12s at most %.2g %% above the optimum", "distance", 100 * result->gap);
  if (by_conditions && result->gap < 0.5) printf("; bounded by %.2g %% above the optimum", 100 * result->gap);
  if (by_conditions || result->gap < 0.5) putchar('\n');
}

static void print_quality(const struct pawl_linear_result *result) {
  printf("  %-12s %.10g\n", "objective", result->objective);
  print_distance(result);
  printf("  %-12s %" PRIu64 " of %" PRIu64 " features\n", "non-zeros", result->nonzeros, result->features);
  if (!isnan(result->accuracy))
    printf("  %-12s %.2f %% of %" PRIu64 " rows\n", "accuracy", 100 * result->accuracy, result->rows);
  if (!isnan(result->valid_loss)) {
    printf("  %-12s loss %.5g", "validation", result->valid_loss);
    if (!isnan(result->valid_accuracy)) printf(", accuracy %.2f %%", 100 * result->valid_accuracy);
    printf("%s\n", result->is_guessing ? "; NO BETTER THAN GUESSING" : "");
  }
}

static void print_costs(const struct pwi_train_end *end, const struct pawl_linear_result *result) {
  char loading[32], training[32], whole[32], sent[32], received[32];
  printf("  %-12s %s: %s loading, %s training; workers waited %.1f %%\n", "time", pwi_train_time(end->seconds, whole),
         pwi_train_time(result->load_s, loading), pwi_train_time(result->train_s, training), result->wait_pct);
  printf("  %-12s %sB sent, %sB received by workers\n", "network", pwi_train_short((double)result->bytes_sent, sent),
         pwi_train_short((double)result->bytes_received, received));
  if (result->skipped)
    printf("  %-12s %" PRIu64 " bad row%s\n", "skipped", result->skipped, result->skipped == 1 ? "" : "s");
  if (pwi_train_base_reduces(&end->options->base))
    printf("  %-12s %u finished, %u lost; shared by reduce\n", "workers", result->workers, result->workers_lost);
  else if (result->workers_lost)
    printf("  %-12s %u worker%s during training\n", "lost", result->workers_lost, result->workers_lost == 1 ? "" : "s");
}

static void print_path(const struct pwi_train_end *end) {
  bool has_valid = end->options->linear.valid_count > 0 || end->options->linear.valid_split > 0;
  printf("%10s %10s %16s %10s %9s %10s %7s  model\n", "l1", "l2", "objective", "non-zeros", "accuracy",
         has_valid ? "valid" : "", "rounds");
  for (size_t i = 0; i < end->options->linear.point_count; i++) {
    const struct pwi_train_found *found = &end->found[i];
    const struct pawl_linear_point *at = &end->options->linear.points[i];
    char accuracy[32] = "-", valid[32] = "";
    if (!found->path) continue;
    if (!isnan(found->result.accuracy)) snprintf(accuracy, sizeof accuracy, "%.2f %%", 100 * found->result.accuracy);
    if (!isnan(found->result.valid_loss)) snprintf(valid, sizeof valid, "%.5g", found->result.valid_loss);
    printf("%10g %10g %16.8g %10" PRIu64 " %9s %10s %7" PRIu64 "  %s%s\n", at->l1, at->l2, found->result.objective,
           found->result.nonzeros, accuracy, valid, found->result.rounds, found->path,
           found->result.advice ? " (NOT converged)" : "");
  }
}

/* The model to continue with: the best one on validation data, else the last one. */
static const struct pwi_train_found *best_of(const struct pwi_train_end *end) {
  const struct pwi_train_found *best = &end->found[end->last];
  for (size_t i = 0; i < end->options->linear.point_count; i++)
    if (end->found[i].path && end->found[i].result.valid_loss < best->result.valid_loss) best = &end->found[i];
  return best;
}

/* Prints how to continue after an interrupt. */
static void print_going_on(const struct pwi_train_end *end, const struct pwi_train_found *found) {
  if (end->can_resume) {
    printf("or:    the same command with --resume, to continue from the last checkpoint\n");
  } else if (!found->result.can_start) {
    printf("or:    the same command with --checkpoint-every 60, so that --resume can continue it\n");
  } else {
    printf("or:    the same command with --start");
    pwi_train_word_print(found->path);
    printf(", to continue from this model\n");
  }
}

static void print_next(const struct pwi_train_end *end, const struct pwi_train_found *found) {
  const struct pwi_train_found *best = best_of(end);
  if (end->options->linear.point_count > 1 && !isnan(best->result.valid_loss))
    printf("  %-12s %s, by its validation loss\n", "best", best->path);
  printf("\nnext:  pawl predict");
  pwi_train_word_print(best->path);
  pwi_train_word_print(end->options->valid.count ? end->options->valid.at[0] : end->options->base.data[0]);
  putchar('\n');
  if (strcmp(found->why, "interrupted") == 0) print_going_on(end, found);
}

void pwi_train_end_print(const struct pwi_train_end *end) {
  const struct pwi_train_found *found = &end->found[end->last];
  const struct pawl_linear_result *result = &found->result;
  if (!end->has_found) return;
  printf("%s after %" PRIu64 " round%s", reason(found->why), result->rounds, result->rounds == 1 ? "" : "s");
  if (result->resumed) printf(", and %" PRIu64 " before --resume", result->resumed);
  putchar('\n');
  if (result->advice) printf("  %-12s %s\n", "try", result->advice);
  if (end->options->linear.point_count > 1)
    print_path(end);
  else
    print_quality(result);
  print_costs(end, result);
  if (end->options->linear.point_count == 1)
    printf("  %-12s %s%s\n", "model", found->path, end->files->is_named ? "" : " (choose another name with -o)");
  print_next(end, found);
}
