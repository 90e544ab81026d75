/* Measures writing and reading checkpoints: one line of JSON for each kind of content, in GB/s of saved
 * data.
 *
 *   archive_bench [DIRECTORY]     default: /dev/shm
 *
 * The file has 1 GB in records of 1 MB, as a server writes them, and is synced. Figures are the best of
 * several rounds. `copy` is plainly writing the same bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/archive.h"

#define RECORD ((size_t)1 << 20)
#define RECORDS 1000
#define ROUNDS 3
#define NAME "pawl_archive_bench"

static struct pwi_files *files;
static unsigned char *content;

static struct pwi_file *open_file(unsigned how) {
  struct pwi_file *file;
  check_status(pwi_files_open(files, NAME, how, &file));
  return file;
}

static struct pwi_file *new_file(void) { return open_file(PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE); }

/* Random numbers; or compressible ones: f32 gradients with only the upper half of their mantissas in use. */
static void fill(bool compressible) {
  for (size_t i = 0; i < RECORD; i += 4) {
    uint32_t value = (uint32_t)pwi_mix64(i + 1);
    if (compressible) value &= 0x3fff0000;
    memcpy(content + i, &value, sizeof value);
  }
}

static double copy_time(void) {
  double start = now();
  struct pwi_file *file = new_file();
  for (size_t i = 0; i < RECORDS; i++) check_status(pwi_file_write(file, i * RECORD, content, RECORD));
  check_status(pwi_file_sync(file));
  pwi_file_close(file);
  return now() - start;
}

static double write_time(bool pack, uint64_t *size_out) {
  struct pwi_archive_head head = {.cluster = 1, .checkpoint = 1, .node = 1, .name = "bench"};
  struct pwi_archive_writer *writer;
  struct pwi_archive_figures figures;
  double start = now();
  struct pwi_file *file = new_file();
  check_status(pwi_archive_create(file, &head, pack, &writer));
  for (size_t i = 0; i < RECORDS; i++) check_status(pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, RECORD));
  check_status(pwi_archive_finish(writer, &figures));
  pwi_archive_writer_destroy(writer);
  pwi_file_close(file);
  *size_out = figures.size;
  return now() - start;
}

static double read_time(void) {
  struct pwi_archive_reader *reader;
  struct pwi_archive_record record;
  double start = now();
  struct pwi_file *file = open_file(PWI_OPEN_READ);
  check_status(pwi_archive_open(file, &reader));
  do check_status(pwi_archive_next(reader, &record));
  while (record.kind != PWI_ARCHIVE_END);
  pwi_archive_close(reader);
  pwi_file_close(file);
  return now() - start;
}

static void measure(const char *name, bool compressible, bool pack) {
  double copied = 1e9, written = 1e9, was_read = 1e9, bytes = (double)(RECORDS * RECORD);
  uint64_t size = 0;
  fill(compressible);
  for (int i = 0; i < ROUNDS; i++) {
    least(&copied, copy_time());
    least(&written, write_time(pack, &size));
    least(&was_read, read_time());
  }
  printf("{\"bench\":\"archive\",\"case\":\"%s\",\"copy\":%.2f,\"write\":%.2f,\"read\":%.2f,\"stored\":%.3f}\n", name,
         bytes / copied / 1e9, bytes / written / 1e9, bytes / was_read / 1e9, (double)size / bytes);
}

int main(int argc, char **argv) {
  content = pwi_alloc(RECORD);
  if (!content) check_status(PAWL_NO_MEMORY);
  check_status(pwi_files_posix_open(argc > 1 ? argv[1] : "/dev/shm", &files));
  measure("plain", false, false);
  measure("noise/packed", false, true);
  measure("halves/packed", true, true);
  check_status(pwi_files_remove(files, NAME));
  pwi_files_posix_close(files);
  pwi_free(content);
  return 0;
}
