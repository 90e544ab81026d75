/* Made-up images for tests: files of idx with one bright bar in each image, whose place is the label. */
#ifndef CNN_IMAGES_TEST_H
#define CNN_IMAGES_TEST_H

#include <unistd.h>

#include <pawl/images.h>
#include <pawl/session.h>

#include "apps/cnn/random.h"
#include "base/testing.h"

#ifndef APPS_COMMON_SCENE_TEST_H /* which has a folder, too */
static char folder[] = "/tmp/pawl-cnn-XXXXXX";
#endif

static inline int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
  char command[64];
  (void)state;
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

static inline void put_big(FILE *file, uint32_t number) {
  for (int i = 24; i >= 0; i -= 8) fputc((int)(number >> i & 255), file);
}

static inline FILE *create_file(const char *name, char path[64]) {
  snprintf(path, 64, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  return file;
}

/* `count` images of `size` x `size` pixels: noise, and rows [label * 4, label * 4 + 4) are brighter by `bar`. Labels are below
 * size / 4 and at most `classes`. */
static inline struct pawl_images *draw_images(uint64_t seed, uint32_t count, uint32_t size, uint32_t classes, int bar) {
  char images_path[64], labels_path[64];
  FILE *images = create_file("images", images_path), *labels = create_file("labels", labels_path);
  struct apps_random random = apps_random_of(seed, CNN_FOR_ORDER, 1, 2);
  put_big(images, 0x803);
  put_big(images, count);
  put_big(images, size);
  put_big(images, size);
  put_big(labels, 0x801);
  put_big(labels, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t label = (uint32_t)apps_random_below(&random, classes);
    fputc((int)label, labels);
    for (uint32_t at = 0; at < size * size; at++)
      fputc((int)apps_random_below(&random, 120) + (at / size / 4 == label ? bar : 0), images);
  }
  assert_int_equal(fclose(images), 0);
  assert_int_equal(fclose(labels), 0);
  const char *paths[] = {images_path, labels_path};
  struct pawl_images *set = NULL;
  if (pawl_images_read(paths, 2, NULL, &set)) fail_msg("%s", pawl_error_text());
  return set;
}

static inline struct pawl_images *make_images(uint64_t seed, uint32_t count, uint32_t size, uint32_t classes) {
  return draw_images(seed, count, size, classes, 110);
}

/* Images that say nothing about their labels. */
static inline struct pawl_images *make_noise(uint64_t seed, uint32_t count, uint32_t size, uint32_t classes) {
  return draw_images(seed, count, size, classes, 0);
}

#endif
