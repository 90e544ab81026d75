/* The keys of `pawl-bench kv`, and vectors with these keys. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/memory.h"
#include "kv.h"

uint64_t pwi_kv_key(const struct pwi_kv_job *job, uint64_t row) {
  uint64_t stride = job->span / job->rows;
  return row * stride + (stride > 1 ? pwi_mix64(row) % stride : 0);
}

uint64_t pwi_kv_row(const struct pwi_kv_job *job, uint64_t list, uint64_t index) {
  uint64_t stride = job->rows / job->count;
  return index * stride + (stride > 1 ? pwi_mix64(index ^ (list + 1) << 40) % stride : 0);
}

static pawl_status push_batch(struct pawl_vector *vector, const struct pwi_kv_job *job, uint64_t first, size_t count,
                              uint64_t *keys, const float *values) {
  struct pawl_task *task;
  bool is_dense = job->span == job->rows;
  for (size_t i = 0; i < count && !is_dense; i++) keys[i] = pwi_kv_key(job, first + i);
  struct pawl_where where = is_dense ? pawl_at_range(first, first + count) : pawl_at_keys(keys, count);
  pawl_status status = pawl_vector_push(vector, where, values, &task);
  return status ? status : pawl_task_finish(task, PWI_KV_PATIENCE);
}

static pawl_status push_rows(struct pawl_session *session, struct pawl_vector *vector, const struct pwi_kv_job *job) {
  size_t batch = job->rows < PWI_KV_BATCH ? (size_t)job->rows : PWI_KV_BATCH;
  uint64_t *keys = pwi_alloc_zero(batch, sizeof *keys);
  void *values = NULL;
  pawl_status status = keys ? pawl_buffer_create(session, batch * sizeof(float), &values) : PAWL_NO_MEMORY;
  for (size_t i = 0; !status && i < batch; i++) ((float *)values)[i] = 1;
  for (uint64_t first = 0; !status && first < job->rows; first += batch) {
    size_t some = job->rows - first < batch ? (size_t)(job->rows - first) : batch;
    status = push_batch(vector, job, first, some, keys, values);
  }
  pawl_buffer_destroy(session, values);
  pwi_free(keys);
  return status;
}

bool pwi_kv_fill(struct pawl_session *session, const struct pwi_kv_options *options, const struct pwi_kv_job *job,
                 const char *name, struct pawl_vector **vector_out) {
  struct pawl_vector_options is;
  pawl_vector_options_init(&is);
  is.size = job->span;
  if (job->span != PAWL_KEY_END) is.placement = PAWL_PLACE_ORDERED;
  is.layout = job->span == job->rows ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  pawl_status status = pawl_vector_create(session, name, &is, PWI_KV_PATIENCE, vector_out);
  if (status) return pwi_kv_fail(options, "cannot create a vector", status);
  if (job->rows > PWI_KV_BATCH) pwi_kv_progress(options, "%s: pushing %" PRIu64 " keys", job->name, job->rows);
  status = push_rows(session, *vector_out, job);
  return status ? pwi_kv_fail(options, "cannot fill the vector", status) : true;
}
