/* LIBLINEAR's text models.
 *
 *   solver_type L1R_LR
 *   nr_class 2
 *   label 1 -1                  a positive score stands for the first label
 *   nr_feature 3
 *   bias 1                      the value of one more feature; below 0: there is none
 *   w
 *   0.5                         a line for each feature, and for the bias
 *   …
 *   # pawl {"loss": …}          pawl's own line; LIBLINEAR stops reading after the last weight
 *
 * LIBLINEAR numbers features from 1. For a zero-based model the number of a feature is its id + 1. pawl's
 * line says so, and the reader restores the ids. LIBLINEAR's first label is pawl's second. A model without
 * pawl's line does not record the penalty. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/model/inside.h"

#define WORD_SIZE 64
#define OURS "# pawl "

struct liblinear_solver {
  const char *name;
  enum pawl_linear_loss loss;
  bool is_l1, is_regression;
};

/* When pawl writes a model, it uses the first solver that fits. */
static const struct liblinear_solver solvers[] = {
    {"L1R_LR", PAWL_LINEAR_LOGISTIC, true, false},
    {"L2R_LR", PAWL_LINEAR_LOGISTIC, false, false},
    {"L2R_LR_DUAL", PAWL_LINEAR_LOGISTIC, false, false},
    {"L1R_L2LOSS_SVC", PAWL_LINEAR_SQUARED_HINGE, true, false},
    {"L2R_L2LOSS_SVC", PAWL_LINEAR_SQUARED_HINGE, false, false},
    {"L2R_L2LOSS_SVC_DUAL", PAWL_LINEAR_SQUARED_HINGE, false, false},
    {"L2R_L1LOSS_SVC_DUAL", PAWL_LINEAR_HINGE, false, false},
    {"L2R_L2LOSS_SVR", PAWL_LINEAR_SQUARED, false, true},
    {"L2R_L2LOSS_SVR_DUAL", PAWL_LINEAR_SQUARED, false, true},
    {"L2R_L1LOSS_SVR_DUAL", PAWL_LINEAR_SQUARED, false, true},
};
#define SOLVERS (sizeof solvers / sizeof *solvers)

bool linear_liblinear_is(const char *bytes, size_t size) {
  static const char *const words[] = {"solver_type ", "nr_class ", "nr_feature "};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (size >= strlen(words[i]) && memcmp(bytes, words[i], strlen(words[i])) == 0) return true;
  return false;
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* LIBLINEAR uses the solver only to decide whether scores are probabilities or regression values. It has no
 * l1 for the hinge loss, and no squared loss for classes. For these models the most similar solver is
 * written, and pawl's own line has the exact loss. */
static const char *solver_name(const struct pawl_linear_model *model) {
  bool is_l1 = model->about.l1 > 0;
  enum pawl_linear_loss loss = model->about.is_regression                 ? PAWL_LINEAR_SQUARED
                               : model->about.loss == PAWL_LINEAR_SQUARED ? PAWL_LINEAR_SQUARED_HINGE
                                                                          : model->about.loss;
  if (loss == PAWL_LINEAR_SQUARED || loss == PAWL_LINEAR_HINGE) is_l1 = false;
  for (size_t i = 0; i < SOLVERS; i++)
    if (solvers[i].loss == loss && solvers[i].is_l1 == is_l1) return solvers[i].name;
  return "";
}

static bool is_int(double label) { return label >= INT_MIN && label <= INT_MAX && label == floor(label); }

pawl_status linear_liblinear_check(const struct pawl_linear_model *model, char *why) {
  if (!model->about.is_regression && !(is_int(model->about.labels[0]) && is_int(model->about.labels[1])))
    return apps_say(why, PAWL_UNSUPPORTED,
                    "LIBLINEAR's labels are whole numbers, but those of this model are %g and %g; use another format",
                    model->about.labels[0], model->about.labels[1]);
  if (pawl_linear_width(&model->about) < INT_MAX) return PAWL_OK;
  return apps_say(why, PAWL_TOO_LARGE,
                  "LIBLINEAR supports fewer than 2^31 features, but this model has %llu; use pawl's own format",
                  (unsigned long long)pawl_linear_width(&model->about));
}

static pawl_status write_ours(FILE *file, const struct pawl_linear_model *model) {
  json_t *about = linear_about_make(model);
  char *text = apps_about_text(about, false);
  pawl_status status = text ? PAWL_OK : PAWL_NO_MEMORY;
  if (text && fprintf(file, OURS "%s\n", text) < 0) status = PAWL_IO;
  free(text); /* allocated by open_memstream */
  json_decref(about);
  return status;
}

pawl_status linear_liblinear_fill(FILE *file, const void *context) {
  const struct pawl_linear_model *model = context;
  fprintf(file, "solver_type %s\nnr_class 2\n", solver_name(model));
  if (!model->about.is_regression)
    fprintf(file, "label %d %d\n", (int)model->about.labels[1], (int)model->about.labels[0]);
  fprintf(file, "nr_feature %llu\nbias %d\nw\n", (unsigned long long)pawl_linear_width(&model->about),
          model->about.has_bias ? 1 : -1);
  size_t next = 0;
  for (uint64_t id = model->about.zero_based ? 0 : 1; id <= model->about.features && !ferror(file); id++)
    if (next < model->about.nonzeros && model->ids[next] == id)
      fprintf(file, "%.17g\n", model->weights[next++]);
    else
      fputs("0\n", file);
  if (model->about.has_bias) fprintf(file, "%.17g\n", model->about.bias);
  return ferror(file) ? PAWL_IO : write_ours(file, model);
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct liblinear_reading {
  const char *at; /* position in the text, which ends with a 0 */
  const struct liblinear_solver *solver;
  long classes, features;
  bool has_labels, has_features;
  long labels[2];
  double bias; /* the value of the feature that stands for it */
  struct pawl_linear_model *model;
  char *why;
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static void skip_blanks(struct liblinear_reading *reading) {
  while (is_blank(*reading->at)) reading->at++;
}

/* Reads the next word, truncated to WORD_SIZE, which is longer than any known word. False at the end. */
static bool next_word(struct liblinear_reading *reading, char word[WORD_SIZE]) {
  size_t length = 0;
  skip_blanks(reading);
  for (; *reading->at && !is_blank(*reading->at); reading->at++)
    if (length < WORD_SIZE - 1) word[length++] = *reading->at;
  word[length] = 0;
  return length > 0;
}

static bool next_long(struct liblinear_reading *reading, long *number_out) {
  char word[WORD_SIZE], *end;
  if (!next_word(reading, word)) return false;
  *number_out = strtol(word, &end, 10);
  return *end == 0 && *number_out >= INT_MIN && *number_out <= INT_MAX;
}

/* Accepts numbers only, not words such as nan and inf. */
static bool next_double(struct liblinear_reading *reading, double *number_out) {
  char word[WORD_SIZE], *end;
  if (!next_word(reading, word)) return false;
  *number_out = strtod(word, &end);
  return end != word && *end == 0 && isfinite(*number_out);
}

static pawl_status refuse(struct liblinear_reading *reading, const char *what) {
  skip_blanks(reading);
  if (!*reading->at) return apps_say(reading->why, PAWL_TRUNCATED, "the file ends too early");
  return apps_say(reading->why, PAWL_CORRUPT, "invalid LIBLINEAR model: %s", what);
}

static pawl_status read_solver(struct liblinear_reading *reading) {
  char word[WORD_SIZE];
  if (!next_word(reading, word)) return refuse(reading, "solver_type");
  for (size_t i = 0; i < SOLVERS; i++)
    if (strcmp(word, solvers[i].name) == 0) reading->solver = &solvers[i];
  if (reading->solver) return PAWL_OK;
  return apps_say(reading->why, PAWL_UNSUPPORTED, "unsupported LIBLINEAR solver %s: it is not for two classes", word);
}

static pawl_status read_classes(struct liblinear_reading *reading) {
  if (!next_long(reading, &reading->classes) || reading->classes < 1) return refuse(reading, "nr_class");
  if (reading->classes == 2) return PAWL_OK;
  return apps_say(reading->why, PAWL_UNSUPPORTED,
                  "this is a LIBLINEAR model of %ld class%s; only models of two are supported", reading->classes,
                  reading->classes == 1 ? "" : "es");
}

static pawl_status read_labels(struct liblinear_reading *reading) {
  for (int i = 0; i < 2; i++)
    if (!next_long(reading, &reading->labels[i])) return refuse(reading, "label");
  reading->has_labels = true;
  return PAWL_OK;
}

static pawl_status read_features(struct liblinear_reading *reading) {
  if (!next_long(reading, &reading->features) || reading->features < 0) return refuse(reading, "nr_feature");
  reading->has_features = true;
  return PAWL_OK;
}

static pawl_status read_head(struct liblinear_reading *reading) {
  char word[WORD_SIZE];
  pawl_status status = PAWL_OK;
  while (status == PAWL_OK && next_word(reading, word) && strcmp(word, "w") != 0) {
    if (strcmp(word, "solver_type") == 0)
      status = read_solver(reading);
    else if (strcmp(word, "nr_class") == 0)
      status = read_classes(reading);
    else if (strcmp(word, "label") == 0)
      status = read_labels(reading);
    else if (strcmp(word, "nr_feature") == 0)
      status = read_features(reading);
    else if (strcmp(word, "bias") == 0)
      status = next_double(reading, &reading->bias) ? PAWL_OK : refuse(reading, "bias");
    else
      status = refuse(reading, "unknown word in the header");
  }
  if (status) return status;
  bool is_whole = reading->solver && reading->classes && reading->has_features &&
                  (reading->has_labels || reading->solver->is_regression);
  return is_whole ? PAWL_OK : refuse(reading, "solver_type, nr_class, label or nr_feature is missing");
}

static pawl_status read_weights(struct liblinear_reading *reading) {
  struct pawl_linear_model *model = reading->model;
  size_t room = 0;
  double weight;
  for (long id = 1; id <= reading->features; id++) {
    if (!next_double(reading, &weight)) return refuse(reading, "a weight is not a number");
    pawl_status status = linear_model_append(model, &room, (uint64_t)id, weight);
    if (status) return status;
  }
  if (reading->bias < 0) return PAWL_OK;
  if (!next_double(reading, &weight)) return refuse(reading, "the weight of the bias is not a number");
  model->about.has_bias = true;
  model->about.bias = weight * reading->bias;
  return PAWL_OK;
}

static void describe(const struct liblinear_reading *reading) {
  struct pawl_linear_model *model = reading->model;
  model->about.loss = reading->solver->loss;
  model->about.is_regression = reading->solver->is_regression;
  model->about.l1 = reading->solver->is_l1 ? (double)NAN : 0;
  model->about.l2 = reading->solver->is_l1 ? 0 : (double)NAN;
  model->about.features = (uint64_t)reading->features;
  model->about.class_weights[0] = model->about.class_weights[1] = 1;
  model->about.objective = (double)NAN;
  for (int i = 0; i < 2 && !model->about.is_regression; i++) model->about.labels[i] = (double)reading->labels[1 - i];
}

static void count_from_zero(struct pawl_linear_model *model) {
  if (model->about.features == 0) return; /* an edited file: no feature could be number 0 */
  model->about.zero_based = true;
  model->about.features--;
  for (size_t i = 0; i < model->about.nonzeros; i++) model->ids[i]--;
}

/* Our own line knows how the model came to be. What the lines before it say is what counts, should they have
 * been edited. */
static pawl_status read_ours(struct liblinear_reading *reading) {
  struct pawl_linear_model said = {0}, *model = reading->model;
  json_t *about;
  skip_blanks(reading);
  if (strncmp(reading->at, OURS, strlen(OURS)) != 0) return PAWL_OK;
  const char *text = reading->at + strlen(OURS);
  pawl_status status = linear_about_parse(text, strcspn(text, "\n"), &said, &about, reading->why);
  if (status) return status;
  json_decref(about);
  model->about.l1 = said.about.l1;
  model->about.l2 = said.about.l2;
  memcpy(model->about.class_weights, said.about.class_weights, sizeof said.about.class_weights);
  model->about.hash_bits = said.about.hash_bits;
  model->about.columns = said.about.columns;
  model->about.label_column = said.about.label_column;
  memcpy(model->about.label_name, said.about.label_name, sizeof said.about.label_name);
  model->about.binary = said.about.binary;
  model->about.unit_rows = said.about.unit_rows;
  model->about.scale = said.about.scale;
  model->about.penalty = said.about.penalty;
  model->about.objective = said.about.objective;
  if (said.about.zero_based) count_from_zero(model);
  if (said.about.is_regression == model->about.is_regression) model->about.loss = said.about.loss;
  return PAWL_OK;
}

pawl_status linear_liblinear_decode(const char *bytes, size_t size, struct pawl_linear_model *model, char *why) {
  (void)size; /* the 0 behind it ends it */
  struct liblinear_reading reading = {.at = bytes, .bias = -1, .model = model, .why = why};
  pawl_status status = read_head(&reading);
  if (status) return status;
  describe(&reading);
  status = read_weights(&reading);
  if (status == PAWL_OK) status = read_ours(&reading);
  if (status == PAWL_OK && !linear_model_is_sound(model, why)) status = PAWL_CORRUPT;
  return status;
}
