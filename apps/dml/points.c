#include "apps/dml/points.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/rows.h"

pawl_status dml_points_init(struct dml_points *points, size_t count, size_t width) {
  *points = (struct dml_points){.count = count, .width = width};
  if (width > SIZE_MAX / sizeof *points->at) return PAWL_NO_MEMORY;
  points->at = apps_alloc_zero(count + 1, width * sizeof *points->at);
  points->classes = apps_alloc_zero(count + 1, sizeof *points->classes);
  if (points->at && points->classes) return PAWL_OK;
  dml_points_fini(points);
  return PAWL_NO_MEMORY;
}

void dml_points_fini(struct dml_points *points) {
  apps_free(points->at);
  apps_free(points->classes);
  *points = (struct dml_points){.count = 0};
}

struct dml_points dml_points_part(const struct dml_points *points, size_t first, size_t count) {
  return (struct dml_points){count, points->width, points->at + first * points->width, points->classes + first};
}

/* --- frames ----------------------------------------------------------------------------------------------- */

static void fit(struct dml_frame *frame, const struct pawl_mlr_rows *rows, const uint32_t *order, size_t count,
                float *row) {
  double square = 0;
  for (size_t i = 0; i < count; i++) {
    pawl_mlr_rows_values(rows, order[i], row);
    for (size_t d = 0; d < frame->features; d++) frame->mean[d] += (double)row[d];
  }
  for (size_t d = 0; d < frame->features; d++) frame->mean[d] /= (double)count;
  for (size_t i = 0; i < count; i++) {
    pawl_mlr_rows_values(rows, order[i], row);
    for (size_t d = 0; d < frame->features; d++) {
      double from = (double)row[d] - frame->mean[d];
      /* The mean of equal values may be off by a rounding. */
      if (fabs(from) > 1e-12 * fabs(frame->mean[d])) square += from * from;
    }
  }
  frame->scale = square > 0 ? 1 / sqrt(square / (double)count) : 0;
}

pawl_status dml_frame_init(struct dml_frame *frame, const struct pawl_mlr_rows *rows, const uint32_t *order,
                           size_t count) {
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(rows, &info);
  *frame = (struct dml_frame){.features = (size_t)info.features};
  float *row = apps_alloc_zero(frame->features + 1, sizeof *row);
  frame->mean = apps_alloc_zero(frame->features + 1, sizeof *frame->mean);
  if (row && frame->mean) fit(frame, rows, order, count, row);
  apps_free(row);
  return row && frame->mean ? PAWL_OK : PAWL_NO_MEMORY;
}

void dml_frame_fini(struct dml_frame *frame) { apps_free(frame->mean); }

/* --- readers ---------------------------------------------------------------------------------------------- */

static pawl_status check(const struct pawl_mlr_rows_info *info, size_t features, bool is_images, char *error) {
  if (info->is_images != is_images)
    return apps_say(error, PAWL_MISMATCH, "the model was trained on %s, but these are %s",
                    is_images ? "images" : "rows", is_images ? "rows" : "images");
  if (is_images && info->features != features)
    return apps_say(error, PAWL_MISMATCH,
                    "the images have %" PRIu64 " pixels, but the model was trained on images of %zu", info->features,
                    features);
  return PAWL_OK;
}

pawl_status dml_reader_init(struct dml_reader *reader, const struct pawl_mlr_rows *rows, const struct dml_frame *frame,
                            const uint64_t *ids, bool is_images, char *error) {
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(rows, &info);
  *reader = (struct dml_reader){.rows = rows, .frame = frame};
  pawl_status status = check(&info, frame->features, is_images, error);
  if (status) return status;
  reader->numbers = apps_alloc_zero((size_t)info.features + 1, sizeof *reader->numbers);
  reader->row = apps_alloc_zero((size_t)info.features + 1, sizeof *reader->row);
  if (!reader->numbers || !reader->row)
    return apps_say(error, PAWL_NO_MEMORY, "no memory for rows of %" PRIu64 " features", info.features);
  apps_rows_match(pawl_mlr_rows_ids(rows), info.features, ids, frame->features, reader->numbers);
  return PAWL_OK;
}

void dml_reader_fini(struct dml_reader *reader) {
  apps_free(reader->numbers);
  apps_free(reader->row);
}

void dml_reader_get(struct dml_reader *reader, size_t row, float *point_out) {
  const struct dml_frame *frame = reader->frame;
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(reader->rows, &info);
  pawl_mlr_rows_values(reader->rows, row, reader->row);
  for (size_t d = 0; d < frame->features; d++) point_out[d] = (float)(-frame->mean[d] * frame->scale);
  for (size_t d = 0; d < info.features; d++) {
    uint32_t to = reader->numbers[d];
    if (to != APPS_ROWS_NONE)
      point_out[to] = (float)(((double)reader->row[d] - frame->mean[to]) * frame->scale);
    else
      reader->unknown_values += reader->row[d] < 0 || reader->row[d] > 0;
  }
}
