/* The atoms of a model of images as one picture: PGM, or PPM with three channels (netpbm's binary formats). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/sparse_coding/model.h"

#define BORDER 1 /* black pixels around each atom */
#define GREY 127.5
#define SIDE_MAX 65535 /* pixels of the picture */

struct mosaic {
  const struct pawl_sparse_model *model;
  size_t across, width, height; /* atoms in a line; pixels */
  uint8_t *pixels;              /* `channels` bytes each */
};

static void put_atom(const struct mosaic *is, size_t atom) {
  const struct pawl_sparse_shape *shape = &is->model->about.shape;
  size_t channels = shape->channels, high = shape->height, wide = shape->width;
  const double *from = is->model->atoms + atom * (size_t)is->model->about.features;
  size_t top = atom / is->across * (high + BORDER) + BORDER, left = atom % is->across * (wide + BORDER) + BORDER;
  double largest = 0;
  for (size_t i = 0; i < channels * high * wide; i++) largest = fmax(largest, fabs(from[i]));
  for (size_t c = 0; c < channels; c++)
    for (size_t y = 0; y < high; y++)
      for (size_t x = 0; x < wide; x++) {
        double value = largest > 0 ? from[(c * high + y) * wide + x] / largest : 0;
        is->pixels[((top + y) * is->width + left + x) * channels + c] = (uint8_t)lround(GREY + GREY * value);
      }
}

static pawl_status fill(FILE *file, const void *context) {
  const struct mosaic *is = context;
  uint32_t channels = is->model->about.shape.channels;
  fprintf(file, "P%d\n%zu %zu\n255\n", channels == 1 ? 5 : 6, is->width, is->height);
  fwrite(is->pixels, channels, is->width * is->height, file);
  return ferror(file) ? PAWL_IO : PAWL_OK;
}

static bool lay_out(struct mosaic *is) {
  const struct pawl_sparse_about *about = &is->model->about;
  is->across = (size_t)ceil(sqrt((double)about->atoms * about->shape.height / about->shape.width));
  is->width = is->across * (about->shape.width + BORDER) + BORDER;
  is->height = (about->atoms + is->across - 1) / is->across * (about->shape.height + BORDER) + BORDER;
  return is->width <= SIDE_MAX && is->height <= SIDE_MAX;
}

pawl_status pawl_sparse_model_picture(const struct pawl_sparse_model *model, const char *path,
                                      char error[PAWL_SPARSE_TEXT]) {
  const struct pawl_sparse_shape *shape = &model->about.shape;
  struct mosaic is = {.model = model};
  if (shape->channels != 1 && shape->channels != 3)
    return apps_say(error, PAWL_UNSUPPORTED, "only atoms of images with 1 or 3 channels can be drawn");
  if (!lay_out(&is))
    return apps_say(error, PAWL_TOO_LARGE, "a picture of %" PRIu32 " atoms is larger than %d pixels",
                    model->about.atoms, SIDE_MAX);
  is.pixels = apps_alloc_zero(is.width * is.height, shape->channels);
  if (!is.pixels) return apps_say(error, PAWL_NO_MEMORY, "no memory for a picture");
  for (size_t j = 0; j < model->about.atoms; j++) put_atom(&is, j);
  pawl_status status = apps_model_write(path, fill, &is, error);
  apps_free(is.pixels);
  return status;
}
