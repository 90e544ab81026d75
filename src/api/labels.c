/* <pawl/labels.h>: wraps src/data. */
#include <pawl/labels.h>

#include "api/error.h"
#include "data/labels.h"

pawl_status pawl_labels_create(struct pawl_labels **labels_out) {
  pawl_status status = pwi_labels_create(labels_out);
  return status ? pwi_error(status, "no memory for labels") : PAWL_OK;
}

void pawl_labels_release(struct pawl_labels *labels) { pwi_labels_release(labels); }

uint32_t pawl_labels_count(struct pawl_labels *labels) { return pwi_labels_count(labels); }

const char *pawl_labels_at(struct pawl_labels *labels, uint32_t number) { return pwi_labels_at(labels, number); }
