/* Event files, read back by a reader that shares nothing with the writer. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/train/figures.h"

/* --- a reader ----------------------------------------------------------------------------------------------------- */

/* CRC-32C by polynomial division, most significant bit first, of reflected bytes: another way to the same sum. */
static uint32_t slow_crc(const unsigned char *bytes, size_t size) {
  uint32_t rest = 0xffffffff, result = 0;
  for (size_t i = 0; i < size; i++)
    for (int bit = 0; bit < 8; bit++) {
      uint32_t top = rest >> 31 ^ (uint32_t)(bytes[i] >> bit & 1);
      rest = rest << 1 ^ (top ? 0x1edc6f41u : 0);
    }
  for (int bit = 0; bit < 32; bit++) result |= (rest >> bit & 1) << (31 - bit);
  return ~result;
}

static uint32_t unmask(uint32_t masked) {
  uint32_t turned = masked - 0xa282ead8u;
  return turned >> 17 | turned << 15;
}

static uint64_t little(const unsigned char *bytes, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

struct field {
  unsigned number, wire;
  uint64_t value;             /* of wire types 0, 1 and 5 */
  const unsigned char *bytes; /* of type 2 */
  size_t size;
};

static uint64_t varint(const unsigned char **at, const unsigned char *end) {
  uint64_t value = 0;
  for (int shift = 0; *at < end; shift += 7) {
    unsigned char byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_msg("a number has no end");
  return 0;
}

static int next(const unsigned char **at, const unsigned char *end, struct field *field) {
  if (*at == end) return 0;
  uint64_t tag = varint(at, end);
  *field = (struct field){.number = (unsigned)(tag >> 3), .wire = tag & 7};
  int width = field->wire == 1 ? 8 : field->wire == 5 ? 4 : 0;
  if (field->wire == 0) field->value = varint(at, end);
  if (field->wire == 2) {
    field->size = (size_t)varint(at, end);
    field->bytes = *at;
    width = (int)field->size;
  } else if (width)
    field->value = little(*at, width);
  assert_true((size_t)(end - *at) >= (size_t)width);
  *at += width;
  return 1;
}

struct event {
  double wall_time;
  uint64_t step;
  char version[32];
  char tags[16][32];
  float values[16];
  size_t count;
};

static void read_value(const struct field *value, struct event *event) {
  const unsigned char *at = value->bytes, *end = at + value->size;
  for (struct field field; next(&at, end, &field);) {
    if (field.number == 1) snprintf(event->tags[event->count], 32, "%.*s", (int)field.size, (const char *)field.bytes);
    if (field.number == 2) {
      assert_int_equal(field.wire, 5);
      uint32_t bits = (uint32_t)field.value;
      memcpy(&event->values[event->count], &bits, sizeof bits);
    }
  }
  event->count++;
}

static void read_event(const unsigned char *at, size_t size, struct event *event) {
  const unsigned char *end = at + size;
  *event = (struct event){0};
  for (struct field field; next(&at, end, &field);) {
    if (field.number == 1) memcpy(&event->wall_time, &field.value, sizeof event->wall_time);
    if (field.number == 2) event->step = field.value;
    if (field.number == 3) snprintf(event->version, 32, "%.*s", (int)field.size, (const char *)field.bytes);
    if (field.number != 5) continue;
    const unsigned char *part = field.bytes, *part_end = part + field.size;
    for (struct field value; next(&part, part_end, &value);) read_value(&value, event);
  }
}

/* Reads all records, whose sums must be right. */
static size_t read_file(const char *path, struct event *events, size_t room) {
  static unsigned char bytes[1 << 16];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(bytes, 1, sizeof bytes, file), at = 0, count = 0;
  fclose(file);
  while (at < size) {
    assert_true(size - at >= 16 && count < room);
    size_t length = (size_t)little(bytes + at, 8);
    assert_int_equal(unmask((uint32_t)little(bytes + at + 8, 4)), slow_crc(bytes + at, 8));
    assert_true(length <= size - at - 16);
    assert_int_equal(unmask((uint32_t)little(bytes + at + 12 + length, 4)), slow_crc(bytes + at + 12, length));
    read_event(bytes + at + 12, length, &events[count++]);
    at += 16 + length;
  }
  return count;
}

static float value_of(const struct event *event, const char *tag) {
  for (size_t i = 0; i < event->count; i++)
    if (strcmp(event->tags[i], tag) == 0) return event->values[i];
  return NAN;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

/* RFC 3720, B.4. */
static void test_checksums_are_those_of_the_standard(void **state) {
  (void)state;
  unsigned char bytes[32] = {0};
  assert_int_equal(pwi_train_crc(bytes, 32), 0x8a9136aa);
  memset(bytes, 0xff, 32);
  assert_int_equal(pwi_train_crc(bytes, 32), 0x62a8ab43);
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
  assert_int_equal(pwi_train_crc(bytes, 32), 0x46dd794e);
  assert_int_equal(pwi_train_crc("123456789", 9), 0xe3069283);
  assert_int_equal(slow_crc((const unsigned char *)"123456789", 9), 0xe3069283);
  assert_int_equal(unmask(pwi_train_crc_masked("123456789", 9)), 0xe3069283);
}

static void the_only_file(const char *folder, char path[1024]) {
  DIR *list = opendir(folder);
  int count = 0;
  assert_non_null(list);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (strncmp(entry->d_name, "events.out.tfevents.", 20) != 0) continue;
    snprintf(path, 1024, "%s/%s", folder, entry->d_name);
    count++;
  }
  closedir(list);
  assert_int_equal(count, 1);
}

static void remove_file(const char *folder) {
  char path[1024];
  the_only_file(folder, path);
  unlink(path);
  rmdir(folder);
}

static struct pawl_linear_progress some_progress(uint64_t round) {
  return (struct pawl_linear_progress){.stage = "training",
                                       .round = round,
                                       .objective = 1000.5 / (double)round,
                                       .nonzeros = 1u << 20,
                                       .valid_loss = NAN,
                                       .examples_per_s = 2e6,
                                       .wait_pct = 12.5,
                                       .bytes_per_s = 3e7};
}

static bool writes(struct pwi_train_board *board, const struct pawl_linear_progress *progress, const char *mark) {
  struct pwi_train_scalar scalars[PWI_TRAIN_FIGURES];
  pwi_train_figures_board(progress, scalars);
  return pwi_train_board_write(board, mark, progress->round, scalars, PWI_TRAIN_FIGURES);
}

static void test_what_was_written_is_read_back(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-board-XXXXXX", path[1024];
  static struct event events[8];
  assert_non_null(mkdtemp(folder));
  struct pwi_train_board board = {.folder = folder};
  for (uint64_t round = 1; round <= 300; round += 299) {
    struct pawl_linear_progress progress = some_progress(round);
    if (round > 1) progress.valid_loss = 0.25;
    assert_true(writes(&board, &progress, ""));
  }
  pwi_train_board_close(&board);
  the_only_file(folder, path);
  assert_int_equal(read_file(path, events, 8), 3);
  assert_string_equal(events[0].version, "brain.Event:2");
  assert_int_equal(events[1].step, 1);
  assert_int_equal(events[2].step, 300);
  assert_true(events[1].wall_time > 1.6e9 && events[1].wall_time <= events[2].wall_time);
  assert_true(value_of(&events[1], "objective") == 1000.5f);
  assert_true(value_of(&events[2], "objective") == (float)(1000.5 / 300));
  assert_true(value_of(&events[2], "nonzeros") == 1048576.0f);
  assert_true(value_of(&events[2], "examples/s") == 2e6f);
  assert_true(value_of(&events[2], "wait %") == 12.5f);
  assert_true(value_of(&events[2], "bytes/s") == 3e7f);
  assert_true(value_of(&events[2], "valid loss") == 0.25f);
  assert_int_equal(events[1].count, 5); /* what is not known is not there */
  remove_file(folder);
}

static void test_every_point_of_a_path_is_a_run_of_its_own(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-board-XXXXXX", inner[64], path[1024];
  static struct event events[8];
  assert_non_null(mkdtemp(folder));
  struct pwi_train_board board = {.folder = folder};
  static const char *const marks[] = {"l1=1", "l1=0.1"};
  for (size_t point = 0; point < 2; point++) {
    struct pawl_linear_progress progress = some_progress(7);
    progress.point = point;
    assert_true(writes(&board, &progress, marks[point]));
  }
  pwi_train_board_close(&board);
  for (size_t point = 0; point < 2; point++) {
    snprintf(inner, sizeof inner, "%s/%s", folder, marks[point]);
    the_only_file(inner, path);
    assert_int_equal(read_file(path, events, 8), 2);
    assert_int_equal(events[1].step, 7);
    remove_file(inner);
  }
  rmdir(folder);
}

static void test_a_folder_that_cannot_be_written_to_is_given_up(void **state) {
  (void)state;
  struct pwi_train_board board = {.folder = "/proc/pawl-no-such"};
  struct pawl_linear_progress progress = some_progress(1);
  assert_false(writes(&board, &progress, ""));
  assert_true(writes(&board, &progress, ""));
  assert_null(board.folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_checksums_are_those_of_the_standard),
      cmocka_unit_test(test_what_was_written_is_read_back),
      cmocka_unit_test(test_every_point_of_a_path_is_a_run_of_its_own),
      cmocka_unit_test(test_a_folder_that_cannot_be_written_to_is_given_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
