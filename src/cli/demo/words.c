/* The data of the demonstration: finds it, evaluates a model on it, and finds the most important words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/data.h>
#include <pawl/session.h>

#include "base/memory.h"
#include "cli/demo/train.h"
#include "cli/models/predict_run.h"
#include "host/children.h"

/* --- where it is -------------------------------------------------------------------------------------------------- */

static bool has_data(const char *folder) {
  static const char *const names[] = {PWI_DEMO_TRAIN, PWI_DEMO_TEST, PWI_DEMO_VOCABULARY};
  char path[PATH_MAX];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%.3800s/%s", folder, names[i]);
    if (access(path, R_OK) != 0) return false;
  }
  return true;
}

/* Strips the current folder from a path. */
static void shorten(char path[PATH_MAX]) {
  char here[PATH_MAX];
  size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
  if (length > 1 && strncmp(path, here, length) == 0 && path[length] == '/')
    memmove(path, path + length + 1, strlen(path + length + 1) + 1);
}

bool pwi_demo_data_find(const char *named, char folder_out[PATH_MAX]) {
  char command[PATH_MAX], folders[3][PATH_MAX + 32] = {"", "", "examples/data"};
  if (named) {
    snprintf(folders[2], sizeof folders[2], "%s", named);
  } else if (!pwi_child_command(command, sizeof command) && strrchr(command, '/')) {
    *strrchr(command, '/') = '\0';
    snprintf(folders[0], sizeof folders[0], "%s/../examples/data", command);
    snprintf(folders[1], sizeof folders[1], "%s/../share/pawl", command);
  }
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (!has_data(folders[i]) || !realpath(folders[i], folder_out)) continue;
    shorten(folder_out);
    return true;
  }
  return false;
}

/* --- how good a model is ------------------------------------------------------------------------------------------ */

static pawl_status predict(const char *path, const struct pawl_linear_model *model,
                           struct pawl_linear_figures *figures_out) {
  struct pwi_predict run = {.model = model};
  struct pawl_data_options reading;
  struct pawl_data *data = NULL;
  pawl_data_options_init(&reading);
  pawl_status status = pawl_data_open(&path, 1, &reading, &data);
  if (!status) status = pwi_predict_run(&run, data, 1);
  if (!status) status = pawl_linear_metrics_figures(run.metrics, figures_out);
  pwi_predict_lines_fini(&run.lines);
  pwi_predict_strangers_fini(&run.strangers);
  pawl_linear_scorer_destroy(run.scorer);
  pawl_linear_metrics_destroy(run.metrics);
  pawl_data_close(data);
  return status;
}

int pwi_demo_test(const struct pwi_command *command, const char *data, const struct pawl_linear_model *model,
                  struct pawl_linear_figures *figures_out) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%.3800s/%s", data, PWI_DEMO_TEST);
  pawl_status status = predict(path, model, figures_out);
  if (!status) return PWI_EXIT_OK;
  return pwi_cli_failure(command, "%s", *pawl_error_text() ? pawl_error_text() : pawl_status_text(status));
}

/* --- words -------------------------------------------------------------------------------------------------------- */

struct word_weight {
  double value;
  uint64_t id;
};

static int by_value(const void *a, const void *b) {
  const struct word_weight *left = a, *right = b;
  if (left->value != right->value) return left->value < right->value ? -1 : 1;
  return left->id < right->id ? -1 : left->id > right->id;
}

/* Stores the word of feature `id` in all places that need it. */
static bool place(struct pwi_demo_top *top, const struct word_weight *sorted, size_t count, uint64_t id,
                  const char *word) {
  for (size_t i = 0; i < PWI_DEMO_TOP && i < count; i++) {
    const struct word_weight *ends[2] = {&sorted[i], &sorted[count - 1 - i]};
    for (int side = 0; side < 2; side++) {
      bool is_of_side = side == 0 ? ends[side]->value < 0 : ends[side]->value > 0;
      if (ends[side]->id != id || !is_of_side) continue;
      size_t size = strlen(word) + 1;
      top->words[side][i] = pwi_alloc(size);
      if (!top->words[side][i]) return false;
      memcpy(top->words[side][i], word, size);
    }
  }
  return true;
}

static bool read_words(struct pwi_demo_top *top, const struct word_weight *sorted, size_t count, FILE *file) {
  char line[256];
  for (uint64_t id = 1; fgets(line, sizeof line, file); id++) {
    line[strcspn(line, "\n")] = '\0';
    if (!place(top, sorted, count, id, line)) return false;
  }
  return !ferror(file);
}

int pwi_demo_top_init(struct pwi_demo_top *top, const struct pwi_command *command, const char *data,
                      const struct pawl_linear_model *model) {
  char path[PATH_MAX];
  *top = (struct pwi_demo_top){0};
  snprintf(path, sizeof path, "%.3800s/%s", data, PWI_DEMO_VOCABULARY);
  FILE *file = fopen(path, "re");
  if (!file) return pwi_cli_failure(command, "cannot read %s: %s", path, strerror(errno));
  struct pawl_linear_about about;
  pawl_linear_model_about(model, &about);
  const uint64_t *ids = pawl_linear_model_ids(model);
  const double *weights = pawl_linear_model_weights(model);
  struct word_weight *sorted = pwi_alloc_zero(about.nonzeros + 1, sizeof *sorted);
  bool good = sorted != NULL;
  for (size_t i = 0; good && i < about.nonzeros; i++)
    sorted[i] = (struct word_weight){.value = weights[i], .id = ids[i]};
  if (good) qsort(sorted, about.nonzeros, sizeof *sorted, by_value);
  good = good && read_words(top, sorted, about.nonzeros, file);
  bool is_unreadable = ferror(file) != 0;
  fclose(file);
  pwi_free(sorted);
  if (is_unreadable) return pwi_cli_failure(command, "cannot read %s", path);
  return good ? PWI_EXIT_OK : pwi_cli_failure(command, "out of memory");
}

void pwi_demo_top_fini(struct pwi_demo_top *top) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < PWI_DEMO_TOP; i++) pwi_free(top->words[side][i]);
  *top = (struct pwi_demo_top){0};
}
