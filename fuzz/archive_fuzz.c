/* Archives of a checkpoint: any bytes as a file, any blocks with correct checksums, and any records
 * written and read back.
 *
 * covers: src/store/archive.c src/store/archive_read.c src/store/archive_write.c
 */
#include "fuzz.h"

#include "base/memory.h"
#include "store/archive_inside.h"
#include "store/archive_testing.h"

enum { AS_IT_IS, FORGED, RECORDS, CASES };

#define FILE_MAX ((size_t)8 << 20)
#define RECORDS_MAX 16
#define PATTERN ((size_t)3 << 20)

static unsigned char bytes[FILE_MAX], pattern[PATTERN];

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  for (size_t i = 0; i < PATTERN; i++) pattern[i] = (unsigned char)(i < PATTERN / 2 ? pwi_mix64(i) : i / 1000);
  return 0;
}

/* Reading any file ends, and with the same result when it is repeated. */
static pawl_status read_all(struct memory_file *file, uint64_t *records_out) {
  struct pwi_archive_reader *reader;
  struct pwi_archive_record record = {0};
  struct pwi_archive_cut cut;
  uint64_t records = 0;
  pawl_status status = pwi_archive_open(&file->base, &reader);
  if (status != PAWL_OK) return status;
  assert(pwi_checkpoint_name_is_valid(pwi_archive_head(reader)->name));
  for (;;) {
    status = pwi_archive_next(reader, &record);
    if (status != PAWL_OK || record.kind == PWI_ARCHIVE_END) break;
    assert(record.size > 0 && record.size <= PWI_ARCHIVE_RECORD_MAX && record.offset < file->size);
    records++;
    if (pwi_archive_read_cut(&record, &cut) == PAWL_OK) assert(cut.positions.begin < cut.positions.end);
  }
  assert(pwi_archive_next(reader, &record) == status);
  if (status == PAWL_OK) assert(pwi_archive_figures(reader).records == records);
  if (status == PAWL_OK) assert(pwi_archive_figures(reader).size == file->size);
  *records_out = records;
  pwi_archive_close(reader);
  return status;
}

static struct pwi_archive_writer *begin(struct input *input, struct memory_file *file) {
  struct pwi_archive_head head = {.cluster = draw_u8(input), .node = draw_u8(input), .name = "f"};
  struct pwi_archive_writer *writer;
  uint8_t flags = draw_u8(input);
  if (flags & 1) memcpy(head.base, "base", 5);
  if (flags & 2) head.name[0] = (char)draw_u8(input);
  if (flags & 4) head.base[0] = (char)draw_u8(input);
  memory_file_init(file, bytes, 0, FILE_MAX);
  pawl_status status = pwi_archive_create(&file->base, &head, flags & 8, &writer);
  assert(status == PAWL_OK || status == PAWL_INVALID);
  return status == PAWL_OK ? writer : NULL;
}

static void as_it_is(struct input *input) {
  struct memory_file file;
  uint64_t records;
  memcpy(bytes, input->at, input->left);
  memory_file_init(&file, bytes, input->left, FILE_MAX);
  pawl_status status = read_all(&file, &records);
  (void)status;
}

/* The head of an empty archive, then blocks of any kind, each with a number and a checksum that are right
 * or wrong. */
static void forged(struct input *input) {
  struct memory_file file;
  struct pwi_archive_figures figures;
  uint64_t records;
  struct pwi_archive_writer *writer = begin(input, &file);
  if (!writer) return;
  pawl_status status = pwi_archive_finish(writer, &figures);
  assert(status == PAWL_OK);
  pwi_archive_writer_destroy(writer);
  size_t at = pwi_get_u32(bytes + 12);
  uint64_t seed = pwi_get_u64(bytes + at - 8);
  for (uint64_t number = 0; input->left > 0 && at < FILE_MAX / 2; number++) {
    unsigned char *frame = bytes + at;
    draw(input, frame, 3);
    uint8_t how = draw_u8(input);
    uint32_t stored = how & 1 ? (uint32_t)PWI_ARCHIVE_BLOCK : draw_u16(input);
    uint32_t plain = how & 2 ? stored : how & 4 ? (uint32_t)PWI_ARCHIVE_BLOCK : draw_u16(input);
    frame[3] = 0;
    pwi_put_u32(frame + 4, stored);
    pwi_put_u32(frame + 8, plain);
    pwi_put_u32(frame + 12, how & 8);
    pwi_put_u64(frame + 16, number + (how & 16));
    draw(input, frame + PWI_ARCHIVE_FRAME, stored < 256 ? stored : 256);
    pwi_put_u64(frame + 24, pwi_block_checksum(frame, frame + PWI_ARCHIVE_FRAME, stored, seed) ^ (how & 32));
    at += PWI_ARCHIVE_FRAME + stored;
  }
  memory_file_init(&file, bytes, at, FILE_MAX);
  status = read_all(&file, &records);
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
}

static void records(struct input *input) {
  struct memory_file file;
  struct pwi_archive_figures figures;
  struct pwi_archive_writer *writer = begin(input, &file);
  uint64_t count = 0, found;
  if (!writer) return;
  if (draw_u8(input) == 1) file.room = (size_t)draw_u16(input) << 6;
  pawl_status status = PAWL_OK;
  for (; count < RECORDS_MAX && input->left > 0 && status == PAWL_OK; count++) {
    uint8_t how = draw_u8(input);
    size_t from = (size_t)draw_u16(input) << 5, size = ((size_t)draw_u16(input) << (how & 3)) + 1;
    if (how & 4) size += PWI_ARCHIVE_BLOCK / 2;
    if (from + size > PATTERN) size = PATTERN - from;
    struct pwi_archive_cut cut = {{from, from + size}, 1, 2};
    status = how & 8 ? pwi_archive_write_cut(writer, &cut)
                     : pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, pattern + from, size);
    assert(status == PAWL_OK || status == PAWL_NO_SPACE);
  }
  if (status == PAWL_OK) status = pwi_archive_finish(writer, &figures);
  pwi_archive_writer_destroy(writer);
  if (status != PAWL_OK) return;
  assert(figures.records == count && figures.size == file.size);
  status = read_all(&file, &found);
  assert(status == PAWL_OK && found == count);
  size_t bit = (size_t)(draw_u64(input) % (8 * file.size));
  bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  status = read_all(&file, &found);
  assert(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  switch (draw_u8(&input) % CASES) {
  case AS_IT_IS:
    as_it_is(&input);
    break;
  case FORGED:
    forged(&input);
    break;
  default:
    records(&input);
  }
  return 0;
}
