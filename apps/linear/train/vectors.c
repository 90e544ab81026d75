/* The vectors of a linear job, as the scheduler creates, copies and deletes them. */
#include "apps/linear/train/inside.h"

#define THIN_SIZE ((uint64_t)1 << 16) /* ids; fewer are gone through in no time */
#define THIN_SHARE 16 /* a row of a sparse vector takes several times as long as one of a dense vector */

/* Whether few of the ids occur in the data, such as those of hashed words. Servers go through all rows of a dense vector
 * for every norm, scan and copy, but only through those of a sparse one that were written. The data has at most as many
 * different ids as entries. */
static bool is_thin(const struct linear_run *run, uint64_t size) {
  return size > THIN_SIZE && size / THIN_SHARE > run->progress.entries && !run->spec.method->streams;
}

/* The checkpoint from which a run is resumed may be of a version whose vectors were always dense. */
static pawl_status ensure(struct linear_run *run, const char *name, struct pawl_vector_options *options,
                          struct pawl_vector **vector_out) {
  pawl_status status = PAWL_EXISTS;
  enum pawl_layout layout = options->layout;
  options->layout = PAWL_LAYOUT_SPARSE;
  if (is_thin(run, options->size))
    status = pawl_vector_ensure(run->common.session, name, options, LINEAR_TIMEOUT, vector_out);
  options->layout = layout;
  return status == PAWL_EXISTS ? pawl_vector_ensure(run->common.session, name, options, LINEAR_TIMEOUT, vector_out)
                               : status;
}

pawl_status linear_make_vector(struct linear_run *run, enum linear_vector which, struct pawl_vector **vector_out) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options options;
  if (!linear_vector_options(&run->spec, &run->order, which, &options)) return PAWL_OK;
  linear_vector_name(&run->spec, &run->order, which, name);
  pawl_status status = ensure(run, name, &options, vector_out);
  return status ? apps_fail(&run->common, status, "%s", pawl_error_text()) : PAWL_OK;
}

pawl_status linear_make_vectors(struct linear_run *run) {
  linear_close_vectors(run);
  if (run->spec.reduces) return PAWL_OK; /* there are no servers */
  run->has_vectors = true;
  pawl_status status = linear_make_vector(run, LINEAR_WEIGHTS, &run->weights);
  if (!status) status = linear_make_vector(run, LINEAR_BIAS, &run->bias);
  if (!status) status = linear_make_vector(run, LINEAR_ALPHA, &run->alpha);
  return status;
}

/* The gradient is that of these weights. */
void linear_close_vectors(struct linear_run *run) {
  linear_gradient_end(run);
  pawl_vector_close(run->weights);
  pawl_vector_close(run->bias);
  pawl_vector_close(run->alpha);
  run->weights = run->bias = run->alpha = NULL;
}

void linear_delete_vector(struct linear_run *run, const struct linear_order *order, enum linear_vector which) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options options;
  if (!linear_vector_options(&run->spec, order, which, &options)) return;
  linear_vector_name(&run->spec, order, which, name);
  pawl_vector_delete(run->common.session, name, LINEAR_TIMEOUT); /* it may be gone already */
}

void linear_delete_vectors(struct linear_run *run, const struct linear_order *order) {
  if (run->spec.reduces) return;
  linear_delete_vector(run, order, LINEAR_WEIGHTS);
  linear_delete_vector(run, order, LINEAR_BIAS);
  if (order->point != run->order.point || order == &run->order) linear_delete_vector(run, order, LINEAR_ALPHA);
}

/* A job of this name that did not end may have left vectors behind, which are not zeros. */
pawl_status linear_delete_leftovers(struct linear_run *run) {
  struct pawl_vector_info *infos;
  size_t count;
  if (run->spec.reduces) return PAWL_OK;
  pawl_status status = pawl_vector_list(run->common.session, run->spec.job, LINEAR_TIMEOUT, &infos, &count);
  if (status) return status == PAWL_NOT_FOUND ? PAWL_OK : status;
  for (size_t i = 0; i < count && !status; i++)
    status = pawl_vector_delete(run->common.session, infos[i].name, LINEAR_TIMEOUT);
  pawl_vector_list_free(infos);
  return status;
}

pawl_status linear_begin_vectors(struct linear_run *run, size_t point) {
  struct linear_order before = run->order;
  struct pawl_vector *weights = run->weights, *bias = run->bias;
  run->weights = run->bias = NULL;
  run->order.point = point;
  run->order.generation = 0;
  pawl_status status = linear_make_vectors(run);
  if (!status) status = pawl_vector_copy(run->weights, weights, PAWL_ALL, NULL);
  if (!status && bias) status = pawl_vector_copy(run->bias, bias, PAWL_ALL, NULL);
  if (!status) status = pawl_session_flush(run->common.session, PAWL_FOREVER);
  pawl_vector_close(weights);
  pawl_vector_close(bias);
  if (!status) linear_delete_vectors(run, &before);
  return status;
}

/* The servers compute the norms. */
pawl_status linear_read_penalty(struct linear_run *run, double *penalty_out, uint64_t *nonzeros_out) {
  const struct pawl_range all = PAWL_ALL;
  double count = 0, sum = 0, root = 0;
  if (run->spec.reduces) return linear_average_penalty(run, penalty_out, nonzeros_out);
  pawl_status status = pawl_vector_norm_column(run->weights, all, 0, PAWL_NORM_COUNT, PAWL_FOREVER, &count);
  if (!status && run->order.l1 > 0)
    status = pawl_vector_norm_column(run->weights, all, 0, PAWL_NORM_1, PAWL_FOREVER, &sum);
  if (!status && run->order.l2 > 0)
    status = pawl_vector_norm_column(run->weights, all, 0, PAWL_NORM_2, PAWL_FOREVER, &root);
  *penalty_out = run->order.l1 * sum + run->order.l2 / 2 * root * root;
  *nonzeros_out = (uint64_t)count;
  return status;
}
