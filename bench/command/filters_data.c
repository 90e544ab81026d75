/* The data of `pawl-bench filters`: generated examples, or a file in LIBSVM format. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "filters.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)
#define TRUE_EVERY 50 /* one of so many features has a weight */
#define NOISE 0.05    /* share of wrong labels */

void pwi_examples_fini(struct pwi_examples *examples) {
  pwi_free(examples->begins);
  pwi_free(examples->columns);
  pwi_free(examples->values);
  pwi_free(examples->labels);
  pwi_free(examples->keys);
  *examples = (struct pwi_examples){0};
}

/* --- gathering ------------------------------------------------------------------------------------------ */

/* Examples under construction, with the original numbers of features. */
struct gathering {
  size_t count, room, nonzeros, cell_room;
  size_t *begins;
  uint64_t *features;
  float *values, *labels;
};

static void gathering_fini(struct gathering *gathering) {
  pwi_free(gathering->begins);
  pwi_free(gathering->features);
  pwi_free(gathering->values);
  pwi_free(gathering->labels);
}

static bool grow(void **array, size_t room, size_t size) {
  void *larger = pwi_resize_array(*array, room, size);
  if (larger) *array = larger;
  return larger != NULL;
}

static bool add_cell(struct gathering *gathering, uint64_t feature, float value) {
  if (gathering->nonzeros == gathering->cell_room) {
    size_t room = gathering->cell_room ? 2 * gathering->cell_room : 4096;
    void *features = gathering->features, *values = gathering->values;
    bool ok = grow(&features, room, sizeof *gathering->features) && grow(&values, room, sizeof *gathering->values);
    gathering->features = features;
    gathering->values = values;
    if (!ok) return false;
    gathering->cell_room = room;
  }
  gathering->features[gathering->nonzeros] = feature;
  gathering->values[gathering->nonzeros++] = value;
  return true;
}

/* Makes an example of the entries that were added since the last one. */
static bool add_example(struct gathering *gathering, float label) {
  if (gathering->count + 1 >= gathering->room) {
    size_t room = gathering->room ? 2 * gathering->room : 1024;
    void *begins = gathering->begins, *labels = gathering->labels;
    bool ok = grow(&begins, room, sizeof *gathering->begins) && grow(&labels, room, sizeof *gathering->labels);
    gathering->begins = begins;
    gathering->labels = labels;
    if (!ok) return false;
    gathering->room = room;
    gathering->begins[0] = 0;
  }
  gathering->labels[gathering->count++] = label;
  gathering->begins[gathering->count] = gathering->nonzeros;
  return true;
}

/* --- drawing -------------------------------------------------------------------------------------------- */

/* Weights of the model that determines the labels; most are zero. */
static double true_weight(uint64_t feature, uint64_t seed) {
  if (pwi_mix64(feature ^ seed) % TRUE_EVERY != 0) return 0;
  return (double)(pwi_mix64(feature + seed) >> 11) * 0x1p-52 - 1; /* from -1 to 1 */
}

static int compare_features(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Feature k with a probability of about 1/k, as words are. */
static uint64_t draw_feature(const struct pwi_filters_bench *bench, struct pwi_random *random) {
  return (uint64_t)pow((double)bench->features, pwi_random_unit(random)) - 1;
}

static bool draw_example(const struct pwi_filters_bench *bench, struct pwi_random *random, uint64_t *features,
                         struct gathering *gathering) {
  double score = 0;
  for (uint64_t i = 0; i < bench->nonzeros; i++) features[i] = draw_feature(bench, random);
  qsort(features, bench->nonzeros, sizeof *features, compare_features);
  for (uint64_t i = 0; i < bench->nonzeros; i++) {
    if (i > 0 && features[i] == features[i - 1]) continue;
    float value = 0.5F + (float)pwi_random_unit(random);
    score += 3 * true_weight(features[i], bench->seed) * (double)value;
    if (!add_cell(gathering, features[i], value)) return false;
  }
  bool is_positive = pwi_random_unit(random) < 1 / (1 + exp(-score));
  if (pwi_random_chance(random, NOISE)) is_positive = !is_positive;
  return add_example(gathering, is_positive ? 1 : -1);
}

static bool draw(const struct pwi_filters_bench *bench, struct gathering *gathering) {
  struct pwi_random random;
  pwi_random_init(&random, bench->seed, 1);
  uint64_t *features = pwi_alloc_zero(bench->nonzeros, sizeof *features);
  bool ok = features != NULL;
  for (uint64_t i = 0; i < bench->examples && ok; i++) ok = draw_example(bench, &random, features, gathering);
  pwi_free(features);
  if (!ok) pwi_cli_failure(bench->command, "not enough memory for %llu examples", (unsigned long long)bench->examples);
  return ok;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool read_line(char *line, struct gathering *gathering) {
  char *at, *end;
  float label = strtof(line, &at);
  if (at == line) return line[strspn(line, " \t\r\n")] == '\0'; /* an empty line is not an example */
  for (;;) {
    at += strspn(at, " \t\r\n");
    if (*at == '\0' || *at == '#') break;
    unsigned long long feature = strtoull(at, &end, 10);
    if (end == at || *end != ':') return false;
    at = end + 1;
    float value = strtof(at, &end);
    if (end == at || !isfinite(value) || !add_cell(gathering, feature, value)) return false;
    at = end;
  }
  return add_example(gathering, label > 0 ? 1 : -1);
}

static bool read_file(const struct pwi_filters_bench *bench, struct gathering *gathering) {
  FILE *file = fopen(bench->data, "r");
  if (!file) {
    pwi_cli_failure(bench->command, "cannot read %s: %s", bench->data, strerror(errno));
    return false;
  }
  char *line = NULL;
  size_t room = 0, number = 0;
  bool ok = true;
  while (ok && getline(&line, &room, file) >= 0) {
    number++;
    ok = room <= LINE_MAX_BYTES && read_line(line, gathering);
  }
  free(line);
  fclose(file);
  if (!ok) pwi_cli_failure(bench->command, "%s:%zu: not in LIBSVM format", bench->data, number);
  if (ok && gathering->count == 0) pwi_cli_failure(bench->command, "%s contains no examples", bench->data);
  return ok && gathering->count > 0;
}

/* --- numbering ------------------------------------------------------------------------------------------ */

/* A bijection, so that no two features share a key. The key with all bits set is reserved. */
static uint64_t key_of(uint64_t feature) {
  uint64_t key = pwi_mix64(feature);
  return key == UINT64_MAX ? 0 : key;
}

static size_t unique(uint64_t *keys, size_t count) {
  size_t kept = 0;
  qsort(keys, count, sizeof *keys, compare_features);
  for (size_t i = 0; i < count; i++)
    if (kept == 0 || keys[i] != keys[kept - 1]) keys[kept++] = keys[i];
  return kept;
}

static bool number_features(struct gathering *gathering, struct pwi_examples *examples) {
  size_t cells = gathering->nonzeros;
  examples->keys = pwi_alloc_zero(cells + 1, sizeof *examples->keys);
  examples->columns = pwi_alloc_zero(cells + 1, sizeof *examples->columns);
  if (!examples->keys || !examples->columns) return false;
  for (size_t i = 0; i < cells; i++) examples->keys[i] = gathering->features[i] = key_of(gathering->features[i]);
  examples->features = unique(examples->keys, cells);
  for (size_t i = 0; i < cells; i++) {
    const uint64_t *found =
        bsearch(&gathering->features[i], examples->keys, examples->features, sizeof *found, compare_features);
    examples->columns[i] = (uint32_t)(found - examples->keys);
  }
  return true;
}

bool pwi_examples_make(const struct pwi_filters_bench *bench, struct pwi_examples *examples_out) {
  struct gathering gathering = {0};
  struct pwi_examples examples = {0};
  bool ok = bench->data ? read_file(bench, &gathering) : draw(bench, &gathering);
  if (ok && !number_features(&gathering, &examples)) {
    pwi_cli_failure(bench->command, "not enough memory for the examples");
    pwi_examples_fini(&examples);
    ok = false;
  }
  if (ok) {
    examples.count = gathering.count;
    examples.nonzeros = gathering.nonzeros;
    examples.begins = gathering.begins;
    examples.values = gathering.values;
    examples.labels = gathering.labels;
    gathering.begins = NULL;
    gathering.values = gathering.labels = NULL;
    *examples_out = examples;
  }
  gathering_fini(&gathering);
  return ok;
}

/* --- the loss ------------------------------------------------------------------------------------------- */

/* log(1 + exp(-margin)), without overflow. */
static double loss_at(double margin) { return margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin; }

double pwi_examples_loss(const struct pwi_examples *examples, const double *weights, double *gradient, double *bound) {
  double sum = 0, part = 1 / (double)examples->count;
  if (gradient) memset(gradient, 0, examples->features * sizeof *gradient);
  if (bound) memset(bound, 0, examples->features * sizeof *bound);
  for (size_t i = 0; i < examples->count; i++) {
    size_t begin = examples->begins[i], end = examples->begins[i + 1];
    double label = (double)examples->labels[i], score = 0, norm = 0;
    for (size_t k = begin; k < end; k++) {
      score += weights[examples->columns[k]] * (double)examples->values[k];
      norm += fabs((double)examples->values[k]);
    }
    sum += loss_at(label * score);
    double slope = -label * part / (1 + exp(label * score));
    for (size_t k = begin; k < end && gradient; k++) {
      double value = (double)examples->values[k];
      gradient[examples->columns[k]] += slope * value;
      if (bound) bound[examples->columns[k]] += part * 0.25 * fabs(value) * norm;
    }
  }
  return sum * part;
}
