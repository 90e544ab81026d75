/* Images as input of commands that also take rows. */
#ifndef PWI_CLI_IMAGE_FILES_H
#define PWI_CLI_IMAGE_FILES_H

#include <stdbool.h>

#include <pawl/data.h>
#include <pawl/images.h>

#define PWI_IMAGE_FILES_TEXT 512 /* of errors */

/* Whether the files are images: a format of images was given, or none of rows, and the first file has `idx` in its name, as
 * those of MNIST have. */
bool pwi_image_files_are_meant(const char *first, enum pawl_data_format format, enum pawl_images_format image_format);

/* Reads all images of the files. */
PAWL_MUST_USE pawl_status pwi_image_files_read(const char *const *paths, size_t count, enum pawl_images_format format,
                                               bool labels_optional, struct pawl_images **images_out,
                                               char error[PWI_IMAGE_FILES_TEXT]);

#endif
