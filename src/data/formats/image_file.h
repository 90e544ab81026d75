/* Image files in memory: where the pixels and labels of one file lie. Pure: parsers check every byte of a
 * header against the size of the file, and allocate nothing. */
#ifndef PWI_DATA_FORMATS_IMAGE_FILE_H
#define PWI_DATA_FORMATS_IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/images.h>
#include <pawl/status.h>

#include "data/fault.h"

#define PWI_CIFAR_RECORD 3073 /* bytes: a label, and 3 x 32 x 32 pixels */
#define PWI_CIFAR_CLASSES 10

/* Views into the bytes of the file. */
struct pwi_image_file {
  size_t count;                     /* of images, or of labels in a file of labels */
  uint32_t channels, height, width; /* 0 in a file of labels */
  size_t image_size;                /* channels x height x width */
  const unsigned char *pixels;      /* of the first image; NULL in a file of labels */
  const unsigned char *labels;      /* the first label; NULL in a file of images only */
  size_t pixels_step, labels_step;  /* bytes from one image or label to the next */
};

/* Whether the bytes begin with the magic number of an idx file of any type. */
bool pwi_idx_is(const unsigned char *bytes, size_t size);

/* Both name the file `path` in their faults. PAWL_CORRUPT, PAWL_TRUNCATED; for idx also PAWL_UNSUPPORTED. */
PAWL_MUST_USE pawl_status pwi_idx_parse(const char *path, const unsigned char *bytes, size_t size,
                                        struct pwi_image_file *file_out, struct pwi_fault *fault);
PAWL_MUST_USE pawl_status pwi_cifar_parse(const char *path, const unsigned char *bytes, size_t size,
                                          struct pwi_image_file *file_out, struct pwi_fault *fault);

#endif
