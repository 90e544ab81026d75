/* <pawl/images.h>: wraps src/data and copies its faults to pawl_error_text. */
#include <pawl/images.h>

#include <string.h>

#include "api/error.h"
#include "api/options.h"
#include "data/images.h"

void pawl_images_options_init_sized(struct pawl_images_options *options, size_t struct_size) {
  const struct pawl_images_options defaults = {.format = PAWL_IMAGES_AUTO};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

pawl_status pawl_images_read(const char *const *paths, size_t count, const struct pawl_images_options *options,
                             struct pawl_images **images_out) {
  struct pawl_images_options is;
  struct pwi_fault fault = {""};
  pawl_images_options_init(&is);
  pawl_status status = pwi_take_options("images", options, &is, sizeof is);
  if (status) return status;
  status = pwi_images_read(paths, count, &is, images_out, &fault);
  return status ? pwi_error(status, "%s", fault.text) : PAWL_OK;
}

void pawl_images_destroy(struct pawl_images *images) { pwi_images_destroy(images); }

void pawl_images_info(const struct pawl_images *images, struct pawl_images_info *info_out) { *info_out = images->info; }

const uint8_t *pawl_images_pixels(const struct pawl_images *images) { return images->pixels; }
const uint8_t *pawl_images_labels(const struct pawl_images *images) { return images->labels; }

pawl_status pawl_images_format_parse(const char *name, enum pawl_images_format *format_out) {
  if (strcmp(name, "idx") != 0 && strcmp(name, "cifar") != 0)
    return pwi_error(PAWL_INVALID, "unknown format of images '%s'; expected idx or cifar", name);
  *format_out = strcmp(name, "idx") == 0 ? PAWL_IMAGES_IDX : PAWL_IMAGES_CIFAR;
  return PAWL_OK;
}
