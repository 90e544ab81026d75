/* Images: labelled pictures of one size, read from files into memory.
 *
 * Two formats are known; files may be compressed with gzip, zstd, xz or bzip2:
 *
 *   idx      the format of MNIST: a header of big-endian numbers, then unsigned bytes. One file has the
 *            images (magic number 0x00000803: number, height, width), another one the labels (0x00000801)
 *   cifar    the binary version of CIFAR-10: records of 3,073 bytes, a label from 0 to 9 and an image of
 *            3 x 32 x 32 (red, green, blue)
 *
 * A pixel is a byte. The pixels of an image lie channel by channel, each channel row by row.
 *
 * SEVERAL FILES form one set, in the order of their paths; all images must have the same size. The n-th idx
 * file of labels belongs to the n-th idx file of images, and must have as many entries.
 *
 * A set never changes; any number of threads may use it. ERRORS: pawl_error_text has `file: problem`.
 *   PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_IO   a file cannot be read, or a pattern matches nothing
 *   PAWL_CORRUPT                              not a file of this format, a header or a label that is invalid,
 *                                             or bytes behind the last image
 *   PAWL_TRUNCATED                            a file ends before its last image or label, or has none
 *   PAWL_MISMATCH                             images of different sizes, images without labels, labels
 *                                             without images, or a different number of the two
 *   PAWL_UNSUPPORTED                          an idx file of other types or dimensions; not a regular file
 *   PAWL_TOO_LARGE, PAWL_NO_MEMORY            the images do not fit into memory
 *   PAWL_INVALID                              no path, or an option is invalid
 */
#ifndef PAWL_IMAGES_H
#define PAWL_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_images;

enum pawl_images_format {
  PAWL_IMAGES_AUTO = 0, /* a file with the magic number of idx is idx, every other file is cifar */
  PAWL_IMAGES_IDX = 1,
  PAWL_IMAGES_CIFAR = 2,
};

struct pawl_images_options {
  size_t struct_size; /* set by pawl_images_options_init */
  enum pawl_images_format format;
  bool labels_optional; /* idx: images may come without labels */
};

PAWL_API void pawl_images_options_init_sized(struct pawl_images_options *options, size_t struct_size);
static inline void pawl_images_options_init(struct pawl_images_options *options) {
  pawl_images_options_init_sized(options, sizeof *options);
}

/* Reads all images of the files. A path may be a pattern (*, ?, [..]), which stands for the matching files in
 * the order of their names. `options` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_images_read(const char *const *paths, size_t count,
                                                    const struct pawl_images_options *options,
                                                    struct pawl_images **images_out);
PAWL_API void pawl_images_destroy(struct pawl_images *images); /* NULL is allowed */

struct pawl_images_info {
  uint64_t count;
  uint32_t channels, height, width;
  uint32_t classes; /* highest label and 1; 0 without labels */
};

PAWL_API void pawl_images_info(const struct pawl_images *images, struct pawl_images_info *info_out);

/* All pixels, channels x height x width for each image; valid as long as the set. */
PAWL_API const uint8_t *pawl_images_pixels(const struct pawl_images *images);

/* One label for each image; NULL without labels; valid as long as the set. */
PAWL_API const uint8_t *pawl_images_labels(const struct pawl_images *images);

/* Parses "idx" or "cifar". PAWL_INVALID for any other name. */
PAWL_API PAWL_MUST_USE pawl_status pawl_images_format_parse(const char *name, enum pawl_images_format *format_out);

#ifdef __cplusplus
}
#endif

#endif
