#include "data/images.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/formats/image_file.h"
#include "data/paths.h"
#include "data/whole.h"

/* --- one file -------------------------------------------------------------------------------------------- */

static pawl_status parse(const struct pwi_images_builder *builder, const char *path, const unsigned char *bytes,
                         size_t size, struct pwi_image_file *file_out, struct pwi_fault *fault) {
  enum pawl_images_format format = builder->options.format;
  if (format == PAWL_IMAGES_AUTO) format = pwi_idx_is(bytes, size) ? PAWL_IMAGES_IDX : PAWL_IMAGES_CIFAR;
  if (format == PAWL_IMAGES_IDX) return pwi_idx_parse(path, bytes, size, file_out, fault);
  return pwi_cifar_parse(path, bytes, size, file_out, fault);
}

/* The first file decides the size of all images. */
static pawl_status check_shape(struct pwi_images_builder *builder, const char *path, const struct pwi_image_file *file,
                               struct pwi_fault *fault) {
  struct pawl_images_info *info = &builder->images.info;
  if (!builder->first) {
    builder->first = path;
    info->channels = file->channels;
    info->height = file->height;
    info->width = file->width;
    builder->images.image_size = file->image_size;
  }
  if (file->channels == info->channels && file->height == info->height && file->width == info->width) return PAWL_OK;
  return pwi_fault(fault, PAWL_MISMATCH,
                   "%s: images of %" PRIu32 " x %" PRIu32 " x %" PRIu32 ", but those of %s have %" PRIu32 " x %" PRIu32
                   " x %" PRIu32 "; read the two separately",
                   path, file->channels, file->height, file->width, builder->first, info->channels, info->height,
                   info->width);
}

/* Makes room behind `count` elements of `each` bytes for `more` of them. */
static bool extend(uint8_t **bytes, size_t count, size_t more, size_t each) {
  size_t all, size;
  if (!pwi_add_size(count, more, &all) || !pwi_mul_size(all, each, &size)) return false;
  uint8_t *larger = pwi_resize(*bytes, size);
  if (!larger) return false;
  *bytes = larger;
  return true;
}

static bool take_pixels(struct pwi_images_builder *builder, const struct pwi_image_file *file) {
  struct pawl_images *images = &builder->images;
  if (!extend(&images->pixels, builder->count, file->count, images->image_size)) return false;
  uint8_t *to = images->pixels + builder->count * images->image_size;
  for (size_t i = 0; i < file->count; i++, to += images->image_size)
    memcpy(to, file->pixels + i * file->pixels_step, images->image_size);
  builder->count += file->count;
  return true;
}

static bool take_labels(struct pwi_images_builder *builder, const struct pwi_image_file *file) {
  struct pawl_images *images = &builder->images;
  if (!extend(&images->labels, builder->labelled, file->count, 1)) return false;
  for (size_t i = 0; i < file->count; i++) {
    uint8_t label = file->labels[i * file->labels_step];
    images->labels[builder->labelled + i] = label;
    if (label >= images->info.classes) images->info.classes = (uint32_t)label + 1;
  }
  builder->labelled += file->count;
  return true;
}

/* Remembers a file that has images or labels only. */
static bool note(struct pwi_images_builder *builder, const char *path, const struct pwi_image_file *file) {
  size_t *files = file->pixels ? &builder->image_files : &builder->label_files, room = builder->room;
  if (!PWI_GROW(builder->pairs, builder->room, *files + 1)) return false;
  memset(builder->pairs + room, 0, (builder->room - room) * sizeof *builder->pairs);
  struct pwi_images_pair *pair = &builder->pairs[(*files)++];
  if (file->pixels) {
    pair->images = path;
    pair->image_count = file->count;
  } else {
    pair->labels = path;
    pair->label_count = file->count;
  }
  return true;
}

pawl_status pwi_images_add(struct pwi_images_builder *builder, const char *path, const unsigned char *bytes,
                           size_t size, struct pwi_fault *fault) {
  struct pwi_image_file file;
  pawl_status status = parse(builder, path, bytes, size, &file, fault);
  if (!status && file.pixels) status = check_shape(builder, path, &file, fault);
  if (status) return status;
  bool is_half = !file.pixels || !file.labels;
  if ((is_half && !note(builder, path, &file)) || (file.pixels && !take_pixels(builder, &file)) ||
      (file.labels && !take_labels(builder, &file)))
    return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  return PAWL_OK;
}

/* --- images and labels ----------------------------------------------------------------------------------- */

static pawl_status check_pair(const struct pwi_images_builder *builder, const struct pwi_images_pair *pair,
                              struct pwi_fault *fault) {
  bool may_lack = builder->options.labels_optional && builder->label_files == 0;
  if (!pair->images)
    return pwi_fault(fault, PAWL_MISMATCH, "%s: labels without images; name the idx file of their images, too",
                     pair->labels);
  if (!pair->labels && !may_lack)
    return pwi_fault(fault, PAWL_MISMATCH,
                     "%s: images without labels; name their file of labels, too (for MNIST: *-labels-idx1-ubyte)",
                     pair->images);
  if (pair->labels && pair->image_count != pair->label_count)
    return pwi_fault(fault, PAWL_MISMATCH,
                     "%s: %zu labels, but %s has %zu images; name files that belong together, in the same order",
                     pair->labels, pair->label_count, pair->images, pair->image_count);
  return PAWL_OK;
}

pawl_status pwi_images_finish(struct pwi_images_builder *builder, struct pawl_images **images_out,
                              struct pwi_fault *fault) {
  size_t pairs = builder->image_files > builder->label_files ? builder->image_files : builder->label_files;
  for (size_t i = 0; i < pairs; i++) {
    pawl_status status = check_pair(builder, &builder->pairs[i], fault);
    if (status) return status;
  }
  if (builder->count == 0) return pwi_fault(fault, PAWL_INVALID, "no file of images was given");
  struct pawl_images *images = pwi_alloc(sizeof *images);
  if (!images) return pwi_fault_plain(fault, PAWL_NO_MEMORY, builder->first);
  *images = builder->images;
  images->info.count = builder->count;
  builder->images = (struct pawl_images){.pixels = NULL};
  *images_out = images;
  return PAWL_OK;
}

void pwi_images_builder_fini(struct pwi_images_builder *builder) {
  pwi_free(builder->images.pixels);
  pwi_free(builder->images.labels);
  pwi_free(builder->pairs);
}

/* --- files ----------------------------------------------------------------------------------------------- */

static pawl_status add_file(struct pwi_images_builder *builder, const char *path, struct pwi_fault *fault) {
  char *bytes;
  size_t size;
  pawl_status status = pwi_whole_read(path, 0, &bytes, &size, fault);
  if (status) return status;
  status = pwi_images_add(builder, path, (const unsigned char *)bytes, size, fault);
  pwi_free(bytes);
  return status;
}

pawl_status pwi_images_read(const char *const *paths, size_t count, const struct pawl_images_options *options,
                            struct pawl_images **images_out, struct pwi_fault *fault) {
  struct pwi_images_builder builder = {.options = *options};
  struct pwi_paths files = {0};
  if (count == 0) return pwi_fault(fault, PAWL_INVALID, "no file of images was given");
  if (options->format > PAWL_IMAGES_CIFAR)
    return pwi_fault(fault, PAWL_INVALID, "unknown format of images %d", (int)options->format);
  pawl_status status = pwi_paths_expand(paths, count, &files, fault);
  for (size_t i = 0; !status && i < files.count; i++) status = add_file(&builder, files.items[i], fault);
  if (!status) status = pwi_images_finish(&builder, images_out, fault);
  pwi_images_builder_fini(&builder);
  pwi_paths_fini(&files);
  return status;
}

void pwi_images_destroy(struct pawl_images *images) {
  if (!images) return;
  pwi_free(images->pixels);
  pwi_free(images->labels);
  pwi_free(images);
}
