/* Sets of images: the functions of <pawl/images.h>, with errors explained in a struct pwi_fault. */
#ifndef PWI_DATA_IMAGES_H
#define PWI_DATA_IMAGES_H

#include <pawl/images.h>

#include "data/fault.h"

struct pawl_images {
  struct pawl_images_info info;
  size_t image_size; /* bytes of an image */
  uint8_t *pixels;   /* info.count images */
  uint8_t *labels;   /* info.count labels; NULL: the file has no labels */
};

PAWL_MUST_USE pawl_status pwi_images_read(const char *const *paths, size_t count,
                                          const struct pawl_images_options *options, struct pawl_images **images_out,
                                          struct pwi_fault *fault);
void pwi_images_destroy(struct pawl_images *images); /* NULL is fine */

/* An idx file of images and the idx file of its labels. A path is NULL as long as there is no such file. */
struct pwi_images_pair {
  const char *images, *labels;
  size_t image_count, label_count;
};

/* A set that is being put together, for pwi_images_read and for tests. All zero at first, but for the
 * options. */
struct pwi_images_builder {
  struct pawl_images_options options;
  size_t count, labelled;                /* images and labels so far */
  struct pawl_images images;             /* images.info has the size of an image, from the first file */
  const char *first;                     /* path of the first file with images */
  struct pwi_images_pair *pairs;         /* the n-th idx file of images, and the n-th of labels */
  size_t room, image_files, label_files; /* `pairs` is as long as the larger of the two numbers of files */
};

/* Adds the text of one file. `path` is borrowed until fini. */
PAWL_MUST_USE pawl_status pwi_images_add(struct pwi_images_builder *builder, const char *path,
                                         const unsigned char *bytes, size_t size, struct pwi_fault *fault);

/* Checks that images and labels belong together, and moves them to a set. */
PAWL_MUST_USE pawl_status pwi_images_finish(struct pwi_images_builder *builder, struct pawl_images **images_out,
                                            struct pwi_fault *fault);
void pwi_images_builder_fini(struct pwi_images_builder *builder);

#endif
