#include "data/labels.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/id_names.h"

struct pawl_labels {
  _Atomic uint64_t references;
  pthread_mutex_t lock; /* guards the names */
  struct pwi_id_names names;
};

pawl_status pwi_labels_create(struct pawl_labels **labels_out) {
  struct pawl_labels *labels = pwi_alloc_zero(1, sizeof *labels);
  if (!labels) return PAWL_NO_MEMORY;
  labels->references = 1;
  pthread_mutex_init(&labels->lock, NULL);
  *labels_out = labels;
  return PAWL_OK;
}

struct pawl_labels *pwi_labels_retain(struct pawl_labels *labels) {
  if (labels) atomic_fetch_add(&labels->references, 1);
  return labels;
}

void pwi_labels_release(struct pawl_labels *labels) {
  if (!labels || atomic_fetch_sub(&labels->references, 1) > 1) return;
  pthread_mutex_destroy(&labels->lock);
  pwi_id_names_fini(&labels->names);
  pwi_free(labels);
}

uint32_t pwi_labels_count(struct pawl_labels *labels) {
  pthread_mutex_lock(&labels->lock);
  uint32_t count = labels->names.count;
  pthread_mutex_unlock(&labels->lock);
  return count;
}

const char *pwi_labels_at(struct pawl_labels *labels, uint32_t number) {
  pthread_mutex_lock(&labels->lock);
  const char *text = number < labels->names.count ? pwi_id_names_get(&labels->names, number) : NULL;
  pthread_mutex_unlock(&labels->lock);
  return text;
}

pawl_status pwi_labels_add(struct pawl_labels *labels, const char *text, size_t size, float *number_out) {
  pawl_status status = PAWL_OK;
  uint32_t number = 0;
  pthread_mutex_lock(&labels->lock);
  if (!pwi_id_names_find(&labels->names, text, size, &number)) {
    if (labels->names.count == PAWL_LABELS_MAX)
      status = PAWL_TOO_LARGE;
    else if (!pwi_id_names_add(&labels->names, text, size, &number))
      status = PAWL_NO_MEMORY;
  }
  pthread_mutex_unlock(&labels->lock);
  if (!status) *number_out = (float)number;
  return status;
}

/* Doubles are whole numbers from 2^53 on. Other numbers are written with as few digits as give the same float. */
pawl_status pwi_labels_add_number(struct pawl_labels *labels, double value, float *number_out) {
  char text[64];
  int size = 0;
  if (value == 0) value = 0; /* not -0 */
  if (value == floor(value) && fabs(value) < 0x1p53)
    size = snprintf(text, sizeof text, "%.0f", value);
  else
    for (int digits = 6; digits <= 9; digits++) {
      size = snprintf(text, sizeof text, "%.*g", digits, value);
      if (strtof(text, NULL) == (float)value) break;
    }
  for (int i = 0; i < size; i++)
    if (text[i] == ',') text[i] = '.'; /* of the locale */
  return pwi_labels_add(labels, text, (size_t)size, number_out);
}
