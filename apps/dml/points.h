/* Rows as dense points with classes: centered, and scaled so that their mean squared length is 1. So numbers fit in float32
 * whatever the scale of the rows, and products do not cancel as much. */
#ifndef DML_POINTS_H
#define DML_POINTS_H

#include <pawl/metric.h>

struct dml_points {
  size_t count, width;
  float *at;         /* count x width */
  uint32_t *classes; /* PAWL_MLR_NO_CLASS: not known */
};

/* Points of 0 without classes. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_points_init(struct dml_points *points, size_t count, size_t width);
void dml_points_fini(struct dml_points *points);

/* A part of points, which borrows their memory. */
struct dml_points dml_points_part(const struct dml_points *points, size_t first, size_t count);

/* How rows become points: (x - mean) * scale. */
struct dml_frame {
  size_t features;
  double *mean;
  double scale; /* 0: all rows are equal */
};

/* Fits a frame to some rows. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_frame_init(struct dml_frame *frame, const struct pawl_mlr_rows *rows,
                                         const uint32_t *order, size_t count);
void dml_frame_fini(struct dml_frame *frame);

/* Reads rows whose features may differ from those of the frame. */
struct dml_reader {
  const struct pawl_mlr_rows *rows;
  const struct dml_frame *frame;
  uint32_t *numbers; /* by feature of the rows: its number in the frame; APPS_ROWS_NONE: none */
  float *row;
  uint64_t unknown_values; /* so far: other than 0 */
};

/* `ids` are those of the frame's features, ascending. PAWL_MISMATCH (images and rows, or images of another size),
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_reader_init(struct dml_reader *reader, const struct pawl_mlr_rows *rows,
                                          const struct dml_frame *frame, const uint64_t *ids, bool is_images,
                                          char *error);
void dml_reader_fini(struct dml_reader *reader);

/* Writes a row as a point. */
void dml_reader_get(struct dml_reader *reader, size_t row, float *point_out);

#endif
