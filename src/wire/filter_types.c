/* The kinds of filters: built-in ones, and those that a program has registered. Encodings are listed here by
 * name only; values.h, keys.h and the roles that use them implement them. */
#include "wire/filters.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define BUILT_IN 8
#define REGISTERED_MAX 32

const struct pawl_filter_type pwi_filter_keys = {
    .name = "keys",
    .summary = "replaces a list of keys that the receiver has stored by its signature",
    .directions = PAWL_ON_BOTH,
    .flags = PAWL_FILTER_LOSSLESS,
};

const struct pawl_filter_type pwi_filter_zeros = {
    .name = "zeros",
    .summary = "drops zeros; one bit per value marks them",
    .directions = PAWL_ON_BOTH,
    .flags = PAWL_FILTER_LOSSLESS,
};

static const struct pawl_filter_parameter compress_parameters[] = {{.name = "with", .words = "auto|lz4|zstd"}};

const struct pawl_filter_type pwi_filter_compress = {
    .name = "compress",
    .summary = "compresses values where this saves time",
    .directions = PAWL_ON_BOTH,
    .flags = PAWL_FILTER_LOSSLESS,
    .parameters = compress_parameters,
    .parameter_count = 1,
};

static const struct pawl_filter_type *const built_in[BUILT_IN] = {
    &pwi_filter_significant, &pwi_filter_skip, &pwi_filter_half,  &pwi_filter_fixed,
    &pwi_filter_kkt,         &pwi_filter_keys, &pwi_filter_zeros, &pwi_filter_compress,
};

/* Entries are appended and never removed, so that reading needs no lock. */
static _Atomic(const struct pawl_filter_type *) registered[REGISTERED_MAX];

const struct pawl_filter_type *pwi_filter_at(size_t at) {
  if (at < BUILT_IN) return built_in[at];
  return at - BUILT_IN < REGISTERED_MAX ? atomic_load(&registered[at - BUILT_IN]) : NULL;
}

const struct pawl_filter_type *pwi_filter_find(const char *name) {
  const struct pawl_filter_type *type;
  for (size_t i = 0; (type = pwi_filter_at(i)); i++)
    if (strcmp(type->name, name) == 0) return type;
  return NULL;
}

/* --- words and values ----------------------------------------------------------------------------------- */

size_t pwi_filter_word_count(const char *words) {
  size_t count = 1;
  for (; *words; words++) count += *words == '|';
  return count;
}

int pwi_filter_word_find(const char *words, const char *word, size_t length) {
  for (int place = 0;; place++) {
    size_t size = strcspn(words, "|");
    if (size == length && memcmp(words, word, size) == 0) return place;
    if (!words[size]) return -1;
    words += size + 1;
  }
}

bool pwi_filter_value_fits(const struct pawl_filter_parameter *parameter, double value) {
  bool whole = value == floor(value);
  if (parameter->words) return whole && value >= 0 && value < (double)pwi_filter_word_count(parameter->words);
  return value >= parameter->least && value <= parameter->most && (whole || !parameter->whole);
}

/* --- registering ---------------------------------------------------------------------------------------- */

static bool name_is_good(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
  if (!name || !*name || !strchr(letters, *name) || strlen(name) > PAWL_FILTER_NAME_MAX) return false;
  return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == 0;
}

static bool words_are_good(const char *words) {
  for (;; words++) {
    size_t size = strspn(words, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (size == 0 || size > PAWL_FILTER_NAME_MAX) return false;
    words += size;
    if (!*words) return true;
    if (*words != '|') return false;
  }
}

static bool parameter_is_good(const struct pawl_filter_parameter *parameter) {
  if (!name_is_good(parameter->name) || strcmp(parameter->name, "on") == 0) return false;
  if (parameter->words && !words_are_good(parameter->words)) return false;
  return isnan(parameter->initial) || pwi_filter_value_fits(parameter, parameter->initial);
}

static bool parameters_are_good(const struct pawl_filter_type *type) {
  if (type->parameter_count > PAWL_FILTER_PARAMETERS_MAX) return false;
  for (size_t i = 0; i < type->parameter_count; i++) {
    if (!parameter_is_good(&type->parameters[i])) return false;
    for (size_t k = 0; k < i; k++)
      if (strcmp(type->parameters[i].name, type->parameters[k].name) == 0) return false;
  }
  return true;
}

static bool type_is_good(const struct pawl_filter_type *type) {
  if (!type || !name_is_good(type->name) || strcmp(type->name, "none") == 0) return false;
  if (!type->directions || type->directions > PAWL_ON_BOTH || type->flags & PAWL_FILTER_LOSSLESS) return false;
  return type->apply && parameters_are_good(type);
}

pawl_status pawl_filter_register(const struct pawl_filter_type *type) {
  if (!type_is_good(type)) return PAWL_INVALID;
  for (size_t i = 0; i < BUILT_IN; i++)
    if (strcmp(built_in[i]->name, type->name) == 0) return PAWL_EXISTS;
  for (size_t i = 0; i < REGISTERED_MAX; i++) {
    const struct pawl_filter_type *there = NULL;
    if (atomic_compare_exchange_strong(&registered[i], &there, type)) return PAWL_OK;
    if (strcmp(there->name, type->name) == 0) return PAWL_EXISTS;
  }
  return PAWL_TOO_LARGE;
}
