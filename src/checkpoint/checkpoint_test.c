/* Checkpoints on disk: listing, verification, and contents. */
#include "checkpoint/testing.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/random.h"
#include "sim/disk.h"

#define SEED UINT64_C(97)

static struct pwi_sim_disk *disk;
static struct pwi_files *files;

static int set_up(void **state) {
  (void)state;
  struct pwi_sim_disk_host host = {.seed = SEED};
  if (pwi_sim_disk_create(&host, &disk) != PAWL_OK) return -1;
  files = pwi_sim_disk_files(disk);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  pwi_sim_disk_destroy(disk);
  return 0;
}

static struct pwi_saved open_saved(const char *name) {
  struct pwi_saved saved;
  struct pwi_problem problem;
  pawl_status status = pwi_saved_open(files, name, &saved, &problem);
  if (status != PAWL_OK) fail_msg("%s", problem.text);
  return saved;
}

/* Opens and verifies. Returns the first failure and its explanation. */
static pawl_status verify(const char *name, struct pwi_problem *problem) {
  struct pwi_saved saved;
  struct pwi_saved_totals totals;
  pawl_status status = pwi_saved_open(files, name, &saved, problem);
  if (status != PAWL_OK) return status;
  status = pwi_saved_verify(&saved, &totals, problem);
  pwi_saved_close(&saved);
  return status;
}

static void assert_problem(const char *name, pawl_status status, const char *words) {
  struct pwi_problem problem;
  assert_string_equal(pawl_status_name(verify(name, &problem)), pawl_status_name(status));
  if (!strstr(problem.text, words)) fail_msg("'%s' is not in: %s", words, problem.text);
}

static size_t read_bytes(const char *path, unsigned char *bytes, size_t room) {
  struct pwi_file *file;
  size_t size;
  assert_int_equal(pwi_files_open(files, path, PWI_OPEN_READ, &file), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 0, bytes, room, &size), PAWL_OK);
  pwi_file_close(file);
  return size;
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
  assert_int_equal(pwi_files_replace(files, path, bytes, size), PAWL_OK);
}

/* --- listing -------------------------------------------------------------------------------------------- */

static void test_a_list_has_checkpoints_in_order_and_counts_attempts(void **state) {
  (void)state;
  struct pwi_saved_list list = {0};
  assert_int_equal(pwi_saved_list(files, &list), PAWL_OK);
  assert_int_equal(list.count, 0);
  example_full(files);
  example_more(files);
  char folder[PWI_SAVE_FOLDER_SIZE];
  assert_int_equal(pwi_saved_begin(files, "attempt", SAVING_CLUSTER, 3, folder), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(files, "thesis"), PAWL_OK);
  write_bytes("notes.txt", "not ours", 8);
  assert_int_equal(pwi_files_make_directory(files, "aaa"), PAWL_OK);
  write_bytes("aaa/manifest.json", "{}", 2);
  assert_int_equal(pwi_saved_list(files, &list), PAWL_OK);
  assert_int_equal(list.count, 3);
  assert_int_equal(list.unfinished, 1);
  assert_string_equal(list.items[0].name, "full");
  assert_string_equal(list.items[1].name, "more");
  assert_string_equal(list.items[1].base, "full");
  assert_int_equal(list.items[1].number, 2);
  assert_int_equal(list.items[1].vectors, 4);
  assert_int_equal(list.items[1].files, 2);
  assert_true(list.items[1].bytes > 100);
  assert_string_equal(list.items[2].name, "aaa");
  assert_int_equal(list.items[2].status, PAWL_TRUNCATED);
  pwi_saved_list_fini(&list);
}

static bool is_there(const char *path) {
  bool there;
  assert_int_equal(pwi_files_exists(files, path, &there), PAWL_OK);
  return there;
}

#define ATTEMPT ".pawl-saving-00000000000000ab"
#define REMOVED ".pawl-removed-00000000000000ab"

static void begin_attempt(uint64_t cluster) {
  char folder[PWI_SAVE_FOLDER_SIZE];
  assert_int_equal(pwi_saved_begin(files, "new", cluster, 0xab, folder), PAWL_OK);
  assert_string_equal(folder, ATTEMPT);
  write_bytes(ATTEMPT "/node-2-1.pawl", "rows", 4);
}

static void test_attempts_are_swept_and_checkpoints_are_not(void **state) {
  (void)state;
  struct pwi_problem problem;
  example_full(files);
  begin_attempt(SAVING_CLUSTER);
  write_bytes(ATTEMPT "/manifest.json.new", "{", 1);
  assert_int_equal(pwi_saved_sweep(files, ATTEMPT), PAWL_OK);
  assert_false(is_there(ATTEMPT));
  assert_false(is_there(REMOVED));
  assert_int_equal(pwi_saved_sweep(files, ATTEMPT), PAWL_NOT_FOUND);
  assert_int_equal(pwi_saved_sweep(files, "full"), PAWL_INVALID);
  assert_int_equal(pwi_saved_sweep(files, ".."), PAWL_INVALID);
  pwi_saved_sweep_all(files, SAVING_CLUSTER);
  assert_int_equal(verify("full", &problem), PAWL_OK);
  assert_int_equal(pwi_saved_remove(files, "full", 1), PAWL_OK);
  assert_int_equal(pwi_saved_remove(files, "full", 1), PAWL_NOT_FOUND);
  assert_int_equal(verify("full", &problem), PAWL_NOT_FOUND);
  assert_int_equal(pwi_saved_remove(files, "../full", 1), PAWL_INVALID);
}

/* Folders that are named like a checkpoint, and files inside a checkpoint. */
static void test_files_of_others_stay(void **state) {
  (void)state;
  char folder[PWI_SAVE_FOLDER_SIZE];
  struct pwi_manifest manifest = {.cluster = SAVING_CLUSTER, .number = 1, .name = "new"};
  assert_int_equal(pwi_files_make_directory(files, "thesis"), PAWL_OK);
  write_bytes("thesis/node-1-1.pawl", "words", 5);
  assert_int_equal(pwi_saved_begin(files, "thesis", SAVING_CLUSTER, 1, folder), PAWL_EXISTS);
  write_bytes("notes", "words", 5);
  assert_int_equal(pwi_saved_begin(files, "notes", SAVING_CLUSTER, 1, folder), PAWL_EXISTS);
  assert_int_equal(pwi_saved_remove(files, "thesis", 1), PAWL_NOT_FOUND);
  assert_true(is_there("thesis/node-1-1.pawl"));
  example_full(files); /* a checkpoint with a foreign file in it */
  write_bytes("full/node-9.txt", "words", 5);
  assert_int_equal(pwi_saved_remove(files, "full", 1), PAWL_EXISTS);
  struct pwi_problem problem;
  assert_int_equal(verify("full", &problem), PAWL_OK);
  begin_attempt(SAVING_CLUSTER); /* the same for an abandoned save: pawl's files go, the other file stays */
  write_bytes(ATTEMPT "/notes", "words", 5);
  assert_int_equal(pwi_saved_sweep(files, ATTEMPT), PAWL_EXISTS);
  assert_false(is_there(REMOVED "/node-2-1.pawl"));
  assert_true(is_there(REMOVED "/notes"));
  /* named like a save, but without a marker */
  assert_int_equal(pwi_files_make_directory(files, ATTEMPT), PAWL_OK);
  write_bytes(ATTEMPT "/node-2-1.pawl", "words", 5);
  assert_int_equal(pwi_saved_sweep(files, ATTEMPT), PAWL_EXISTS);
  write_bytes(ATTEMPT "/attempt.json", "{\"cluster\": \"0000000000c0ffee\"}", 31);
  assert_int_not_equal(pwi_saved_sweep(files, ATTEMPT), PAWL_OK);
  pwi_saved_sweep_all(files, SAVING_CLUSTER);
  assert_true(is_there(ATTEMPT "/node-2-1.pawl"));
  assert_int_equal(pwi_saved_begin(files, "new", SAVING_CLUSTER, 0xcd, folder), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(files, "new"), PAWL_OK); /* created in the meantime */
  assert_int_equal(pwi_saved_finish(files, folder, &manifest), PAWL_EXISTS);
  assert_int_equal(pwi_saved_sweep(files, folder), PAWL_OK);
  assert_true(is_there("new"));
  assert_false(is_there(folder));
}

static void test_attempts_of_other_clusters_stay(void **state) {
  (void)state;
  begin_attempt(SAVING_CLUSTER);
  pwi_saved_sweep_all(files, SAVING_CLUSTER + 1);
  assert_true(is_there(ATTEMPT "/node-2-1.pawl"));
  pwi_saved_sweep_all(files, SAVING_CLUSTER);
  assert_false(is_there(ATTEMPT));
  assert_false(is_there(REMOVED));
}

/* --- verification --------------------------------------------------------------------------------------- */

static void test_a_whole_checkpoint_is_verified_with_its_base(void **state) {
  (void)state;
  struct pwi_saved_totals totals;
  struct pwi_problem problem;
  example_full(files);
  example_more(files);
  struct pwi_saved saved = open_saved("more");
  assert_int_equal(saved.layer_count, 2);
  assert_string_equal(saved.layers[0].name, "full");
  assert_string_equal(pwi_saved_newest(&saved)->name, "more");
  assert_int_equal(pwi_saved_verify(&saved, &totals, &problem), PAWL_OK);
  assert_int_equal(totals.files, 4);
  assert_int_equal(totals.rows, 8 + 4 + 20 + 4 + 3);
  pwi_saved_close(&saved);
}

static void test_missing_parts_are_named(void **state) {
  (void)state;
  example_full(files);
  example_more(files);
  assert_problem("none", PAWL_NOT_FOUND, "checkpoint none does not exist");
  assert_problem("../etc", PAWL_INVALID, "not a valid checkpoint name");
  assert_int_equal(pwi_files_rename(files, "full/node-2.pawl", "full/hidden"), PAWL_OK);
  assert_problem("more", PAWL_NOT_FOUND, "full/node-2.pawl");
  assert_int_equal(pwi_saved_remove(files, "full", 5), PAWL_EXISTS); /* "hidden" is not in the manifest */
  assert_int_equal(pwi_files_remove(files, "full/hidden"), PAWL_OK);
  assert_int_equal(pwi_saved_remove(files, "full", 5), PAWL_OK);
  assert_problem("more", PAWL_NOT_FOUND, "checkpoint full does not exist");
}

static void test_files_in_the_wrong_place_are_named(void **state) {
  (void)state;
  example_full(files);
  example_more(files);
  assert_int_equal(pwi_files_rename(files, "full/node-1.pawl", "full/x"), PAWL_OK);
  assert_int_equal(pwi_files_rename(files, "full/node-2.pawl", "full/node-1.pawl"), PAWL_OK);
  assert_int_equal(pwi_files_rename(files, "full/x", "full/node-2.pawl"), PAWL_OK);
  assert_problem("more", PAWL_MISMATCH, "by node 2");
  assert_int_equal(pwi_files_rename(files, "more/node-1.pawl", "full/node-1.pawl"), PAWL_OK);
  assert_problem("full", PAWL_MISMATCH, "belongs to checkpoint more");
  assert_int_equal(pwi_files_rename(files, "more", "less"), PAWL_OK);
  assert_problem("less", PAWL_MISMATCH, "belongs to checkpoint more");
}

/* The same names, but of another save: its checksum is not that of the manifest. */
static void test_a_file_of_another_attempt_is_found(void **state) {
  (void)state;
  static unsigned char bytes[65536];
  example_full(files);
  size_t size = read_bytes("full/node-1.pawl", bytes, sizeof bytes);
  assert_int_equal(pwi_saved_remove(files, "full", 5), PAWL_OK);
  struct saving saving = saving_begin(files, "full", 1, "");
  saving_end(&saving, true);
  write_bytes("full/node-1.pawl", bytes, size);
  assert_problem("full", PAWL_MISMATCH, "differ from the manifest");
}

static void test_rows_that_do_not_fit_the_vector_are_found(void **state) {
  (void)state;
  const float rows[4] = {0};
  struct saving saving = saving_begin(files, "wide", 1, "");
  saving_vector(&saving, 1, "test/dense", example_options(1), 1);
  saving_rows(&saving, 1, 1, NULL, 0, 1, rows, 12);
  saving_end(&saving, true);
  assert_problem("wide", PAWL_MISMATCH, "wrong width");
  saving = saving_begin(files, "outside", 1, "");
  saving_vector(&saving, 1, "test/dense", example_options(1), 1);
  saving_rows(&saving, 1, 1, NULL, 9, 2, rows, 8);
  saving_end(&saving, true);
  assert_problem("outside", PAWL_MISMATCH, "outside its span");
  saving = saving_begin(files, "strange", 1, "");
  saving_chunk(&saving, 1, "garbage", 7);
  saving_end(&saving, true);
  assert_problem("strange", PAWL_CORRUPT, "are not a chunk");
}

static void test_a_ring_with_a_hole_is_found(void **state) {
  (void)state;
  struct pwi_manifest manifest = {0};
  example_full(files);
  assert_int_equal(pwi_manifest_read(files, "full", &manifest), PAWL_OK);
  manifest.files[0].arcs[0].positions.end--;
  assert_int_equal(pwi_manifest_write(files, "full", &manifest), PAWL_OK);
  assert_problem("full", PAWL_MISMATCH, "whole ring");
  manifest.files[1].arcs[0].positions.begin--;
  assert_int_equal(pwi_manifest_write(files, "full", &manifest), PAWL_OK);
  assert_problem("full", PAWL_MISMATCH, "arc 0");
  pwi_manifest_fini(&manifest);
}

static void test_bases_that_go_in_a_circle_are_found(void **state) {
  (void)state;
  struct saving saving = saving_begin(files, "a", 1, "b");
  saving_end(&saving, true);
  saving = saving_begin(files, "b", 2, "a");
  saving_end(&saving, true);
  assert_problem("a", PAWL_MISMATCH, "based on another");
  assert_problem("b", PAWL_MISMATCH, "based on another");
}

/* Another cluster saved into the same directory, under the name of the base. */
static void test_a_base_of_another_cluster_is_found(void **state) {
  (void)state;
  struct saving saving = saving_begin(files, "full", 1, "");
  saving.manifest.cluster = SAVING_CLUSTER + 1;
  saving_end(&saving, true);
  example_more(files);
  assert_problem("more", PAWL_MISMATCH, "based on another");
}

static void test_any_flipped_bit_in_any_file_is_found(void **state) {
  (void)state;
  static const char *const paths[] = {"full/node-1.pawl", "full/node-2.pawl", "more/node-1.pawl", "full/manifest.json",
                                      "more/manifest.json"};
  static unsigned char bytes[65536];
  struct pwi_random random;
  struct pwi_problem problem;
  example_full(files);
  example_more(files);
  pwi_random_init(&random, SEED, 2);
  for (int i = 0; i < 3000; i++) {
    const char *path = paths[i % 5];
    size_t size = read_bytes(path, bytes, sizeof bytes);
    uint64_t bit = pwi_random_below(&random, 8 * size);
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    write_bytes(path, bytes, size);
    assert_int_not_equal(verify("more", &problem), PAWL_OK);
    assert_true(problem.text[0] != '\0');
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    write_bytes(path, bytes, size);
  }
  assert_int_equal(verify("more", &problem), PAWL_OK);
}

/* --- contents ------------------------------------------------------------------------------------------- */

static unsigned char exported[2][65536];

/* The data behind the head of a .npy file, after checking the shape. */
static const unsigned char *npy_data(const unsigned char *bytes, size_t size, const char *type, const char *shape) {
  char wanted[128];
  size_t head = 10 + (size_t)pwi_get_u16(bytes + 8);
  assert_true(size >= head);
  snprintf(wanted, sizeof wanted, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
  assert_memory_equal(bytes + 10, wanted, strlen(wanted));
  return bytes + head;
}

static void export_npy(const char *checkpoint, const char *vector, size_t *sizes) {
  struct pwi_saved saved = open_saved(checkpoint);
  struct pwi_problem problem;
  struct pwi_file *values, *keys;
  unsigned how = PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE;
  assert_int_equal(pwi_files_open(files, "v.npy", how, &values), PAWL_OK);
  assert_int_equal(pwi_files_open(files, "k.npy", how, &keys), PAWL_OK);
  const struct pwi_manifest_vector *which = pwi_manifest_named(pwi_saved_newest(&saved), vector);
  assert_int_equal(pwi_saved_export_npy(&saved, which, values, keys, &problem), PAWL_OK);
  pwi_file_close(values);
  pwi_file_close(keys);
  pwi_saved_close(&saved);
  sizes[0] = read_bytes("v.npy", exported[0], sizeof exported[0]);
  sizes[1] = read_bytes("k.npy", exported[1], sizeof exported[1]);
}

static void test_a_dense_vector_is_one_array(void **state) {
  (void)state;
  size_t sizes[2];
  float rows[20];
  example_full(files);
  example_more(files);
  export_npy("more", "test/dense", sizes);
  const unsigned char *data = npy_data(exported[0], sizes[0], "<f4", "(10, 2)");
  assert_int_equal(exported[0] + sizes[0] - data, sizeof rows);
  memcpy(rows, data, sizeof rows);
  for (int key = 0; key < 10; key++) {
    int wanted = key == 3 ? 33 : key == 9 ? 0 : key;
    assert_true((int)rows[2 * key] == wanted && (int)rows[2 * key + 1] == -wanted);
  }
  assert_int_equal(sizes[1], 0);
}

static void test_a_sparse_vector_is_its_keys_and_its_values(void **state) {
  (void)state;
  static const uint64_t wanted[] = {5, 6, 7, EXAMPLE_LARGE};
  size_t sizes[2];
  example_full(files);
  example_more(files);
  export_npy("more", "test/sparse", sizes);
  const unsigned char *rows = npy_data(exported[0], sizes[0], "<i8", "(4, 1)");
  const unsigned char *keys = npy_data(exported[1], sizes[1], "<u8", "(4,)");
  for (size_t i = 0; i < 4; i++) {
    assert_true(pwi_get_u64(keys + 8 * i) == wanted[i]);
    assert_true(pwi_get_u64(rows + 8 * i) == 2 * wanted[i]);
  }
  export_npy("full", "test/sparse", sizes);
  npy_data(exported[0], sizes[0], "<i8", "(3, 1)");
}

static void test_mixed_keys_come_out_as_users_know_them(void **state) {
  (void)state;
  size_t sizes[2];
  bool seen[20] = {false};
  example_full(files);
  example_more(files);
  export_npy("more", "test/mixed", sizes);
  const unsigned char *rows = npy_data(exported[0], sizes[0], "<u8", "(20, 1)");
  const unsigned char *keys = npy_data(exported[1], sizes[1], "<u8", "(20,)");
  for (size_t i = 0; i < 20; i++) {
    uint64_t key = pwi_get_u64(keys + 8 * i);
    assert_true(key >= 100 && key < 120 && !seen[key - 100]);
    assert_int_equal(pwi_get_u64(rows + 8 * i), key * key);
    seen[key - 100] = true;
  }
}

static void test_rows_of_an_earlier_incarnation_do_not_count(void **state) {
  (void)state;
  size_t sizes[2];
  example_full(files);
  example_more(files);
  export_npy("full", "test/renewed", sizes);
  const unsigned char *rows = npy_data(exported[0], sizes[0], "<i4", "(4, 1)");
  for (size_t i = 0; i < 4; i++) assert_int_equal(pwi_get_u32(rows + 4 * i), 1);
  export_npy("more", "test/renewed", sizes);
  rows = npy_data(exported[0], sizes[0], "<i4", "(4, 1)");
  for (size_t i = 0; i < 4; i++) assert_int_equal(pwi_get_u32(rows + 4 * i), i == 0 ? 2 : 0);
}

/* A vector was loaded while it was saved: a file may have chunks of two incarnations. */
static void test_rows_of_another_incarnation_than_the_manifest_has_do_not_count(void **state) {
  (void)state;
  size_t sizes[2];
  const int32_t early = 1, late = 2;
  struct saving saving = saving_begin(files, "loaded", 1, "");
  saving_vector(&saving, 4, "test/renewed", example_options(4), 3);
  saving_rows_of(&saving, 1, 4, 3, NULL, 0, 1, &late, 4);
  saving_rows_of(&saving, 1, 4, 2, NULL, 0, 1, &early, 4);
  saving_rows_of(&saving, 1, 4, 2, NULL, 1, 1, &early, 4);
  saving_end(&saving, true);
  export_npy("loaded", "test/renewed", sizes);
  const unsigned char *rows = npy_data(exported[0], sizes[0], "<i4", "(4, 1)");
  static const uint32_t expected[] = {2, 0, 0, 0};
  for (size_t i = 0; i < 4; i++) assert_int_equal(pwi_get_u32(rows + 4 * i), expected[i]);
}

static size_t renewed_rows, renewed_sum;

static pawl_status add_renewed(void *context, const struct pwi_chunk *chunk) {
  (void)context;
  for (size_t i = 0; i < chunk->count && chunk->vector.id == 4; i++, renewed_rows++)
    renewed_sum += pwi_get_u32(chunk->values + i * chunk->row_bytes);
  return PAWL_OK;
}

static void test_a_walk_over_all_vectors_leaves_out_earlier_incarnations_in_bases(void **state) {
  (void)state;
  struct pwi_problem problem;
  example_full(files);
  example_more(files);
  struct pwi_saved saved = open_saved("more");
  renewed_rows = renewed_sum = 0;
  assert_int_equal(pwi_saved_walk_all(&saved, add_renewed, NULL, &problem), PAWL_OK);
  pwi_saved_close(&saved);
  assert_int_equal(renewed_rows, 1);
  assert_int_equal(renewed_sum, 2);
}

/* Node 1 started to save an arc, gave it up, and continued with others. Node 2 has the cut of the arc, but
 * fewer rows. */
static void test_rows_of_an_arc_that_was_given_up_do_not_count(void **state) {
  (void)state;
  size_t sizes[2];
  const int32_t early[] = {7, 7, 7, 7}, late = 5;
  struct saving saving = saving_begin(files, "moved", 1, "");
  saving_vector(&saving, 4, "test/renewed", example_options(4), 1);
  saving_rows(&saving, 1, 4, NULL, 0, 4, early, 4); /* keys 2 and 3 lie in the arc that node 2 has cut */
  saving_rows(&saving, 2, 4, NULL, 2, 1, &late, 4);
  saving_end(&saving, true);
  export_npy("moved", "test/renewed", sizes);
  const unsigned char *rows = npy_data(exported[0], sizes[0], "<i4", "(4, 1)");
  static const uint32_t expected[] = {7, 7, 5, 0};
  for (size_t i = 0; i < 4; i++) assert_int_equal(pwi_get_u32(rows + 4 * i), expected[i]);

  const uint64_t keys[] = {5, SAVING_HALF + 1, SAVING_HALF + 2};
  const int64_t values[] = {1, 2, 3};
  saving = saving_begin(files, "sparse", 2, "");
  saving_vector(&saving, 2, "test/sparse", example_options(2), 1);
  saving_rows(&saving, 1, 2, keys, 0, 3, values, 8);
  saving_end(&saving, true);
  export_npy("sparse", "test/sparse", sizes);
  const unsigned char *kept = npy_data(exported[1], sizes[1], "<u8", "(1,)");
  assert_int_equal(pwi_get_u64(kept), 5);
}

static pawl_status export_safetensors(const struct pwi_saved *saved, const char *vector) {
  struct pwi_problem problem;
  struct pwi_file *file;
  assert_int_equal(pwi_files_open(files, "out", PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE, &file), PAWL_OK);
  const struct pwi_manifest_vector *which = pwi_manifest_named(pwi_saved_newest(saved), vector);
  pawl_status status = pwi_saved_export_safetensors(saved, which, file, &problem);
  pwi_file_close(file);
  return status;
}

static void test_safetensors_have_one_tensor_or_two(void **state) {
  (void)state;
  example_full(files);
  struct pwi_saved saved = open_saved("full");
  unsigned char *bytes = exported[0];
  assert_int_equal(export_safetensors(&saved, "test/sparse"), PAWL_OK);
  size_t size = read_bytes("out", bytes, sizeof exported[0]), head = 8 + (size_t)pwi_get_u64(bytes);
  assert_int_equal(size, head + 3 * 16);
  bytes[head - 1] = '\0';
  assert_non_null(strstr((char *)bytes + 8, "\"test/sparse.keys\":{\"dtype\":\"U64\",\"shape\":[3]"));
  assert_non_null(strstr((char *)bytes + 8, "\"test/sparse.values\":{\"dtype\":\"I64\",\"shape\":[3,1]"));
  assert_non_null(strstr((char *)bytes + 8, "\"pawl.checkpoint\":\"full\""));
  assert_int_equal(pwi_get_u64(bytes + head + 8), 7);
  assert_int_equal(pwi_get_u64(bytes + head + 24 + 8), 14);
  assert_int_equal(export_safetensors(&saved, "test/dense"), PAWL_OK);
  size = read_bytes("out", bytes, sizeof exported[0]);
  head = 8 + (size_t)pwi_get_u64(bytes);
  assert_int_equal(size, head + 80);
  bytes[head - 1] = '\0';
  assert_non_null(strstr((char *)bytes + 8, "\"test/dense\":{\"dtype\":\"F32\",\"shape\":[10,2]"));
  assert_null(strstr((char *)bytes + 8, "keys"));
  pwi_saved_close(&saved);
}

static pawl_status stop_at_once(void *context, const struct pwi_chunk *chunk) {
  (void)chunk;
  ++*(int *)context;
  return PAWL_CANCELLED;
}

static void test_a_walk_ends_when_the_visitor_says_so(void **state) {
  (void)state;
  struct pwi_problem problem;
  int visits = 0;
  example_full(files);
  struct pwi_saved saved = open_saved("full");
  assert_int_equal(pwi_saved_walk(&saved, &pwi_saved_newest(&saved)->vectors[0], stop_at_once, &visits, &problem),
                   PAWL_CANCELLED);
  assert_int_equal(visits, 1);
  pwi_saved_close(&saved);
}

/* --- without memory ------------------------------------------------------------------------------------- */

static pawl_status everything(void) {
  struct pwi_saved saved;
  struct pwi_saved_list list = {0};
  struct pwi_saved_totals totals;
  struct pwi_problem problem;
  pawl_status status = pwi_saved_list(files, &list);
  pwi_saved_list_fini(&list);
  if (status == PAWL_OK) status = pwi_saved_open(files, "more", &saved, &problem);
  if (status != PAWL_OK) return status;
  status = pwi_saved_verify(&saved, &totals, &problem);
  if (status == PAWL_OK) status = export_safetensors(&saved, "test/mixed");
  pwi_saved_close(&saved);
  return status;
}

static void test_running_out_of_memory_is_survived_anywhere(void **state) {
  (void)state;
  int failed = 1;
  example_full(files);
  example_more(files);
  for (uint64_t n = 0; failed; n++) {
    pwi_memory_fail_after(n);
    struct pwi_problem problem;
    struct pwi_saved saved;
    struct pwi_saved_totals totals;
    pawl_status status = pwi_saved_open(files, "more", &saved, &problem);
    if (status == PAWL_OK) {
      status = pwi_saved_verify(&saved, &totals, &problem);
      pwi_saved_close(&saved);
    }
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
  }
  assert_int_equal(everything(), PAWL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_list_has_checkpoints_in_order_and_counts_attempts),
      TEST(test_attempts_are_swept_and_checkpoints_are_not),
      TEST(test_files_of_others_stay),
      TEST(test_attempts_of_other_clusters_stay),
      TEST(test_a_whole_checkpoint_is_verified_with_its_base),
      TEST(test_missing_parts_are_named),
      TEST(test_files_in_the_wrong_place_are_named),
      TEST(test_a_file_of_another_attempt_is_found),
      TEST(test_rows_that_do_not_fit_the_vector_are_found),
      TEST(test_a_ring_with_a_hole_is_found),
      TEST(test_bases_that_go_in_a_circle_are_found),
      TEST(test_a_base_of_another_cluster_is_found),
      TEST(test_any_flipped_bit_in_any_file_is_found),
      TEST(test_a_dense_vector_is_one_array),
      TEST(test_a_sparse_vector_is_its_keys_and_its_values),
      TEST(test_mixed_keys_come_out_as_users_know_them),
      TEST(test_rows_of_an_earlier_incarnation_do_not_count),
      TEST(test_rows_of_another_incarnation_than_the_manifest_has_do_not_count),
      TEST(test_a_walk_over_all_vectors_leaves_out_earlier_incarnations_in_bases),
      TEST(test_rows_of_an_arc_that_was_given_up_do_not_count),
      TEST(test_safetensors_have_one_tensor_or_two),
      TEST(test_a_walk_ends_when_the_visitor_says_so),
      TEST(test_running_out_of_memory_is_survived_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
