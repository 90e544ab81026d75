/* For tests: builds checkpoints chunk by chunk. */
#ifndef PWI_CHECKPOINT_TESTING_H
#define PWI_CHECKPOINT_TESTING_H

#include "base/cursor.h"
#include "base/memory.h"
#include "base/testing.h"
#include "ring/place.h"
#include "checkpoint/checkpoint.h"

#define SAVING_CLUSTER 0xc0ffee
#define SAVING_HALF (PWI_RING_END / 2 + 1)

/* A checkpoint that is being written by two nodes, 1 and 2, with half of the ring each. */
struct saving {
  struct pwi_files *files;
  struct pwi_manifest manifest;
  struct pwi_file *open[2];
  struct pwi_archive_writer *archives[2];
};

static inline struct saving saving_begin(struct pwi_files *files, const char *name, uint64_t number, const char *base) {
  struct saving saving = {.files = files};
  struct pwi_archive_head head = {.cluster = SAVING_CLUSTER, .checkpoint = number, .salt = number};
  char path[300];
  saving.manifest.cluster = SAVING_CLUSTER;
  saving.manifest.number = number;
  saving.manifest.time_s = 1700000000 + (int64_t)number;
  snprintf(saving.manifest.name, sizeof saving.manifest.name, "%s", name);
  snprintf(saving.manifest.base, sizeof saving.manifest.base, "%s", base);
  snprintf(head.name, sizeof head.name, "%s", name);
  snprintf(head.base, sizeof head.base, "%s", base);
  assert_int_equal(pwi_files_make_directory(files, name), PAWL_OK);
  for (uint64_t node = 1; node <= 2; node++) {
    head.node = node;
    snprintf(path, sizeof path, "%s/node-%u.pawl", name, (unsigned)node);
    assert_int_equal(pwi_files_open(files, path, PWI_OPEN_WRITE | PWI_OPEN_NEW, &saving.open[node - 1]), PAWL_OK);
    assert_int_equal(pwi_archive_create(saving.open[node - 1], &head, true, &saving.archives[node - 1]), PAWL_OK);
  }
  return saving;
}

static inline void saving_vector(struct saving *saving, uint64_t id, const char *name,
                                 struct pawl_vector_options options, uint64_t incarnation) {
  struct pwi_manifest_vector vector = {.id = id, .incarnation = incarnation, .is = options};
  snprintf(vector.name, sizeof vector.name, "%s", name);
  assert_int_equal(pwi_manifest_add_vector(&saving->manifest, &vector), PAWL_OK);
}

static inline void saving_chunk(struct saving *saving, uint64_t node, const void *bytes, size_t size) {
  assert_int_equal(pwi_archive_write(saving->archives[node - 1], PWI_ARCHIVE_CHUNK, bytes, size), PAWL_OK);
}

/* Writes rows of an incarnation, or of none, as earlier versions did, by stored key. If `keys` is NULL they are first,
 * first + 1, … */
static inline void saving_rows_of(struct saving *saving, uint64_t node, uint64_t vector, uint32_t incarnation,
                                  const uint64_t *keys, uint64_t first, size_t count, const void *values,
                                  size_t row_bytes) {
  struct pwi_writer writer = {0};
  pwi_write_u8(&writer, incarnation ? 2 : 1);
  pwi_write_u8(&writer, 1);
  pwi_write_u64(&writer, vector);
  if (incarnation) pwi_write_u32(&writer, incarnation);
  pwi_write_u32(&writer, (uint32_t)count);
  pwi_write_u32(&writer, (uint32_t)row_bytes);
  pwi_write_u32(&writer, 0);
  pwi_write_u8(&writer, keys == NULL);
  if (!keys) pwi_write_u64(&writer, first);
  for (size_t i = 0; keys && i < count; i++) pwi_write_u64(&writer, keys[i]);
  pwi_write_bytes(&writer, values, count * row_bytes);
  assert_int_equal(writer.status, PAWL_OK);
  saving_chunk(saving, node, writer.data, writer.size);
  pwi_writer_fini(&writer);
}

static inline void saving_rows(struct saving *saving, uint64_t node, uint64_t vector, const uint64_t *keys,
                               uint64_t first, size_t count, const void *values, size_t row_bytes) {
  saving_rows_of(saving, node, vector, 0, keys, first, count, values, row_bytes);
}

/* Writes the cuts, closes the files, and writes the manifest if asked. */
static inline void saving_end(struct saving *saving, bool with_manifest) {
  for (uint64_t node = 1; node <= 2; node++) {
    struct pwi_archive_figures figures;
    struct pwi_archive_cut cut = {node == 1 ? pawl_range_of(0, SAVING_HALF) : pawl_range_of(SAVING_HALF, PWI_RING_END),
                                  3, 10 * node};
    assert_int_equal(pwi_archive_write_cut(saving->archives[node - 1], &cut), PAWL_OK);
    assert_int_equal(pwi_archive_finish(saving->archives[node - 1], &figures), PAWL_OK);
    pwi_archive_writer_destroy(saving->archives[node - 1]);
    pwi_file_close(saving->open[node - 1]);
    struct pwi_manifest_file file = {
        .node = node, .size = figures.size, .checksum = figures.checksum, .arcs = &cut, .arc_count = 1};
    snprintf(file.name, sizeof file.name, "node-%u.pawl", (unsigned)node);
    assert_int_equal(pwi_manifest_add_file(&saving->manifest, &file), PAWL_OK);
  }
  if (with_manifest)
    assert_int_equal(pwi_manifest_write(saving->files, saving->manifest.name, &saving->manifest), PAWL_OK);
  pwi_manifest_fini(&saving->manifest);
}

/* --- an example ----------------------------------------------------------------------------------------- */

/* Two checkpoints, the second based on the first:
 *
 *   1 test/dense    f32, width 2, 10 keys. full: key k is (k, -k) for keys 1 to 8; more: key 3 is (33, -33)
 *   2 test/sparse   i64, ordered. full: keys 5 and 7 of node 1, and a large key of node 2, each with
 *                   twice the key as value; key 7 first came with another value. more: key 6 is 12
 *   3 test/mixed    u64. full: keys 100 to 119, each with its square
 *   4 test/renewed  i32, 4 keys. full: all 1; more: loaded in between, and has only key 0, which is 2
 *   9               deleted in between: rows, but not in the manifest
 */
#define EXAMPLE_LARGE (SAVING_HALF + 12345)

static inline struct pawl_vector_options example_options(int id) {
  static const struct pawl_vector_options options[] = {
      {.type = PAWL_F32,
       .width = 2,
       .size = 10,
       .function = PAWL_ADD,
       .placement = PAWL_PLACE_ORDERED,
       .layout = PAWL_LAYOUT_DENSE},
      {.type = PAWL_I64,
       .width = 1,
       .size = PAWL_KEY_END,
       .function = PAWL_ADD,
       .placement = PAWL_PLACE_ORDERED,
       .layout = PAWL_LAYOUT_SPARSE},
      {.type = PAWL_U64,
       .width = 1,
       .size = PAWL_KEY_END,
       .function = PAWL_ASSIGN,
       .placement = PAWL_PLACE_MIXED,
       .layout = PAWL_LAYOUT_SPARSE},
      {.type = PAWL_I32,
       .width = 1,
       .size = 4,
       .function = PAWL_ADD,
       .placement = PAWL_PLACE_ORDERED,
       .layout = PAWL_LAYOUT_DENSE},
  };
  return options[id - 1];
}

static inline void example_vectors(struct saving *saving, uint64_t incarnation) {
  saving_vector(saving, 1, "test/dense", example_options(1), 1);
  saving_vector(saving, 2, "test/sparse", example_options(2), 1);
  saving_vector(saving, 3, "test/mixed", example_options(3), 1);
  saving_vector(saving, 4, "test/renewed", example_options(4), incarnation);
}

static inline void example_mixed(struct saving *saving) {
  uint64_t stored[20], squares[20];
  for (uint64_t i = 0; i < 20; i++) stored[i] = pwi_place_mix(100 + i);
  for (size_t i = 1; i < 20; i++)
    for (size_t j = i; j > 0 && stored[j] < stored[j - 1]; j--) {
      uint64_t other = stored[j];
      stored[j] = stored[j - 1];
      stored[j - 1] = other;
    }
  size_t lower = 0;
  for (size_t i = 0; i < 20; i++) {
    uint64_t key = pwi_place_unmix(stored[i]);
    squares[i] = key * key;
    lower += stored[i] < SAVING_HALF;
  }
  saving_rows(saving, 1, 3, stored, 0, lower, squares, 8);
  saving_rows(saving, 2, 3, stored + lower, 0, 20 - lower, squares + lower, 8);
}

static inline void example_full(struct pwi_files *files) {
  struct saving saving = saving_begin(files, "full", 1, "");
  const float dense[] = {1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8};
  const uint64_t sparse[] = {5, 7, EXAMPLE_LARGE};
  const int64_t values[] = {10, 999, (int64_t)(2 * EXAMPLE_LARGE)}, later = 14;
  const int32_t ones[] = {1, 1, 1, 1};
  const unsigned char clocks[] = {1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 'x'}; /* readers ignore these */
  example_vectors(&saving, 1);
  saving_rows(&saving, 1, 1, NULL, 1, 4, dense, 8);
  saving_rows(&saving, 2, 1, NULL, 5, 4, dense + 8, 8);
  saving_rows(&saving, 1, 2, sparse, 0, 2, values, 8);
  saving_rows(&saving, 1, 2, NULL, 7, 1, &later, 8);
  saving_rows(&saving, 2, 2, sparse + 2, 0, 1, values + 2, 8);
  example_mixed(&saving);
  saving_rows(&saving, 1, 4, NULL, 0, 2, ones, 4);
  saving_rows(&saving, 2, 4, NULL, 2, 2, ones, 4);
  saving_rows(&saving, 1, 9, NULL, 0, 2, ones, 4);
  saving_chunk(&saving, 2, clocks, sizeof clocks);
  saving_end(&saving, true);
}

static inline void example_more(struct pwi_files *files) {
  struct saving saving = saving_begin(files, "more", 2, "full");
  const float dense[] = {33, -33};
  const int64_t twelve = 12;
  const int32_t two = 2;
  example_vectors(&saving, 2);
  saving_rows(&saving, 1, 1, NULL, 3, 1, dense, 8);
  saving_rows(&saving, 1, 2, NULL, 6, 1, &twelve, 8);
  saving_rows(&saving, 1, 4, NULL, 0, 1, &two, 4);
  saving_end(&saving, true);
}

#endif
