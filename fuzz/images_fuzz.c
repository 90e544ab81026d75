/* Image files: any bytes, as idx, as CIFAR, and as images with their labels. What is accepted has pixels and
 * labels as its header says.
 *
 * The first byte chooses the case. In the third case, the second byte is the length of the first file in
 * units of 8 bytes, and the rest is the second file.
 *
 * covers: src/data/formats/idx.c src/data/formats/cifar.c
 */
#include "fuzz.h"

#include <stdlib.h>

#include "data/formats/image_file.h"
#include "data/images.h"

enum { AS_IDX, AS_CIFAR, TWO_FILES, IMAGE_CASES };

static pawl_status is_known(pawl_status status, const struct pwi_fault *fault) {
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH || status == PAWL_INVALID);
  assert((status == PAWL_OK) == (fault->text[0] == 0));
  return status;
}

/* Touches every byte that a view promises. */
UNTRACED static void check_file(const struct pwi_image_file *file, const unsigned char *bytes, size_t size) {
  unsigned sum = 0;
  assert(file->count > 0 && (file->pixels || file->labels));
  assert(file->image_size == (size_t)file->channels * file->height * file->width);
  for (size_t i = 0; i < file->count; i++) {
    if (file->labels) sum += file->labels[i * file->labels_step];
    for (size_t j = 0; file->pixels && j < file->image_size; j++) sum += file->pixels[i * file->pixels_step + j];
  }
  assert(file->count <= size && sum <= size * 255 && (!file->pixels || file->pixels >= bytes));
}

static void parse_one(int which, const unsigned char *bytes, size_t size) {
  struct pwi_image_file file;
  struct pwi_fault fault = {""};
  pawl_status status = which == AS_IDX ? pwi_idx_parse("file", bytes, size, &file, &fault)
                                       : pwi_cifar_parse("file", bytes, size, &file, &fault);
  if (is_known(status, &fault) == PAWL_OK) check_file(&file, bytes, size);
}

static void parse_two(const unsigned char *bytes, size_t size, size_t cut) {
  struct pwi_images_builder builder = {.options = {.format = PAWL_IMAGES_AUTO}};
  struct pawl_images *images = NULL;
  struct pwi_fault fault = {""};
  pawl_status status = is_known(pwi_images_add(&builder, "one", bytes, cut, &fault), &fault);
  if (!status) status = is_known(pwi_images_add(&builder, "two", bytes + cut, size - cut, &fault), &fault);
  if (!status) status = is_known(pwi_images_finish(&builder, &images, &fault), &fault);
  assert((status == PAWL_OK) == (images != NULL));
  if (images) assert(images->info.count > 0 && images->labels && images->info.classes > 0);
  pwi_images_destroy(images);
  pwi_images_builder_fini(&builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t rest = size - 2, cut = (size_t)data[1] * 8;
  unsigned char *bytes = malloc(rest ? rest : 1); /* ends where the file ends */
  assert(bytes);
  if (rest) memcpy(bytes, data + 2, rest);
  if (data[0] % IMAGE_CASES == TWO_FILES)
    parse_two(bytes, rest, cut < rest ? cut : rest);
  else
    parse_one(data[0] % IMAGE_CASES, bytes, rest);
  free(bytes);
  return 0;
}
