/* The manager's log: a file of any bytes, and a log that a manager wrote and that was then changed.
 * Reading returns a prefix of the written records, or nothing; a file that is refused stays unchanged.
 *
 * covers: src/manager/ledger/journal_file.c
 */
#include "fuzz.h"

#include "base/hash.h"
#include "manager/ledger/journal_file.h"
#include "sim/disk.h"

#define NAME "manager.log"
#define RECORDS 24
#define FILE_ROOM (256 * 1024)

static const struct pwi_log quiet = {.node = "fuzz"};

struct bench {
  struct pwi_sim_disk *disk;
  struct pwi_files *files;
  pawl_status said;
  uint64_t sums[RECORDS]; /* of the expected records, in order */
  size_t count;
};

static uint8_t image[FILE_ROOM], after[FILE_ROOM];

static void hear(void *context, pawl_status status) { ((struct bench *)context)->said = status; }

static struct pwi_journal *open_log(struct bench *bench, pawl_status *status_out) {
  struct pwi_journal *journal = NULL;
  *status_out = pwi_journal_file_open(bench->files, NAME, &quiet, &journal);
  assert((*status_out == PAWL_OK) == (journal != NULL));
  if (journal) {
    journal->safe = hear;
    journal->context = bench;
  }
  return journal;
}

static size_t read_file(struct bench *bench, uint8_t *bytes) {
  struct pwi_file *file;
  size_t size;
  pawl_status status = pwi_files_open(bench->files, NAME, PWI_OPEN_READ, &file);
  if (!status) status = pwi_file_read(file, 0, bytes, FILE_ROOM, &size);
  assert(status == PAWL_OK && size < FILE_ROOM);
  pwi_file_close(file);
  return size;
}

static void write_file(struct bench *bench, const uint8_t *bytes, size_t size) {
  struct pwi_file *file;
  unsigned how = PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE;
  pawl_status status = pwi_files_open(bench->files, NAME, how, &file);
  if (!status && size) status = pwi_file_write(file, 0, bytes, size);
  assert(status == PAWL_OK);
  pwi_file_close(file);
}

struct reading {
  const struct bench *bench;
  size_t count;
  bool is_prefix;
};

static pawl_status read_one(void *context, const void *record, size_t size) {
  struct reading *reading = context;
  size_t at = reading->count++;
  reading->is_prefix &= at < reading->bench->count && reading->bench->sums[at] == pwi_hash(record, size, 0);
  return PAWL_OK;
}

/* The number of records in the current file; -1: it is refused and left alone. */
static long examine(struct bench *bench, bool is_ours) {
  size_t before = read_file(bench, image);
  pawl_status status;
  struct pwi_journal *journal = open_log(bench, &status);
  if (!journal) {
    assert(status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
    assert(read_file(bench, after) == before && memcmp(image, after, before) == 0);
    return -1;
  }
  struct reading reading = {.bench = bench, .is_prefix = true};
  status = journal->ops->replay(journal, read_one, &reading);
  assert(status == PAWL_OK && (!is_ours || reading.is_prefix));
  journal->ops->append(journal, "one more", 8);
  assert(bench->said == PAWL_OK);
  journal->ops->destroy(journal);
  return (long)reading.count;
}

/* Records of drawn sizes, sometimes all replaced by one. */
static void write_log(struct bench *bench, struct input *input) {
  static uint8_t record[9000];
  pawl_status status;
  struct pwi_journal *journal = open_log(bench, &status);
  assert(journal);
  for (size_t steps = draw_u8(input) % RECORDS; steps > 0; steps--) {
    uint8_t shape = draw_u8(input);
    size_t size = 1 + (shape % 8 == 0 ? draw_u16(input) % 8000 : shape);
    memset(record, shape, size);
    bool replaces = shape % 16 == 3;
    (replaces ? journal->ops->replace : journal->ops->append)(journal, record, size);
    assert(bench->said == PAWL_OK);
    if (replaces) bench->count = 0;
    bench->sums[bench->count++] = pwi_hash(record, size, 0);
  }
  journal->ops->destroy(journal);
}

/* A flipped bit is always detected; a truncated file keeps its complete records; any other change loses
 * nothing without a report. */
static void change(struct bench *bench, struct input *input) {
  size_t size = read_file(bench, image), at = (size_t)(draw_u64(input) % size);
  uint8_t how = draw_u8(input);
  if (how % 4 == 0) {
    image[at] ^= (uint8_t)(1u << (how / 4 % 8));
    write_file(bench, image, size);
    assert(examine(bench, true) < 0);
  } else if (how % 4 == 1) {
    write_file(bench, image, at);
    examine(bench, true);
  } else if (how % 4 == 2) {
    size_t zeros = draw_u16(input) % 6000;
    memset(image + size, 0, zeros);
    write_file(bench, image, size + zeros);
    assert(examine(bench, true) == (long)bench->count);
  } else {
    size_t step = draw_u8(input);
    if (step > size - at) step = size - at;
    draw(input, image + at, step);
    write_file(bench, image, size);
    examine(bench, true);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  struct bench bench = {.count = 0};
  struct pwi_sim_disk_host host = {.seed = 1, .stream = 1};
  if (size >= FILE_ROOM || pwi_sim_disk_create(&host, &bench.disk)) return 0;
  bench.files = pwi_sim_disk_files(bench.disk);
  if (draw_u8(&input) % 8 == 0) {
    write_file(&bench, input.at, input.left);
    examine(&bench, false);
  } else {
    write_log(&bench, &input);
    if (draw_u8(&input) % 8)
      change(&bench, &input);
    else
      assert(examine(&bench, true) == (long)bench.count);
  }
  pwi_sim_disk_destroy(bench.disk);
  return 0;
}
