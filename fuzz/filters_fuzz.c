/* Chains of filters: any bytes as a description, any text as a chain, and chains over any rows.
 *
 * covers: src/wire/filter_code.c src/wire/filter_text.c src/wire/residuals.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "wire/filters.h"

enum { DESCRIPTION, TEXT, AGREEMENT, ROWS, CASES };

#define KEYS 64

/* An accepted list can be encoded, printed and read back, and is the same each time. */
static void check_list(const struct pwi_filter_list *list) {
  struct pwi_filter_list back;
  struct pwi_writer writer = {0};
  char text[PAWL_FILTERS_TEXT_MAX];
  assert(list->count <= PAWL_FILTERS_MAX);
  pwi_filter_list_write(&writer, list);
  assert(writer.status == PAWL_OK);
  assert(pwi_filter_list_read(writer.data, writer.size, NULL, 0, &back) == PAWL_OK);
  assert(pwi_filter_list_equal(list, &back));
  assert(pwi_filter_list_read(writer.data, writer.size - 1, NULL, 0, &back) == PAWL_TRUNCATED);
  pwi_writer_fini(&writer);
  pwi_filter_list_print(list, text, sizeof text);
  assert(pwi_filter_list_parse(text, NULL, 0, &back) == PAWL_OK);
  assert(pwi_filter_list_equal(list, &back));
}

static void read_description(const uint8_t *bytes, size_t size) {
  struct pwi_filter_list list = {.count = 99};
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  pawl_status status = pwi_filter_list_read(bytes, size, problem, sizeof problem, &list);
  if (status == PAWL_OK) {
    check_list(&list);
    return;
  }
  assert(status == PAWL_UNSUPPORTED || status == PAWL_TRUNCATED || status == PAWL_CORRUPT);
  assert(list.count == 99 && *problem);
}

static pawl_status parse(struct input *input, size_t size, struct pwi_filter_list *list) {
  char text[400], problem[PWI_FILTERS_PROBLEM_MAX] = "";
  if (size >= sizeof text) size = sizeof text - 1;
  if (size > input->left) size = input->left;
  draw(input, text, size);
  text[size] = 0;
  pawl_status status = pwi_filter_list_parse(text, problem, sizeof problem, list);
  assert(status == PAWL_OK || status == PAWL_INVALID || status == PAWL_UNSUPPORTED || status == PAWL_TOO_LARGE);
  assert((status == PAWL_OK) == (*problem == 0));
  return status;
}

static void agree(struct input *input) {
  struct pwi_filter_list a, b, here = {0}, there = {0};
  if (parse(input, draw_u8(input), &a) || parse(input, input->left, &b)) return;
  pawl_status status = pwi_filter_list_agree(&a, &b, NULL, 0, &here);
  assert(pwi_filter_list_agree(&b, &a, NULL, 0, &there) == status);
  assert(status == PAWL_OK || status == PAWL_MISMATCH);
  assert(pwi_filter_list_equal(&here, &there));
  if (status == PAWL_OK) check_list(&here);
}

static size_t draw_rows(struct input *input, uint64_t *keys, int64_t *values, int64_t *sums) {
  uint64_t chosen = draw_u64(input);
  size_t count = 0;
  for (uint64_t key = 0; key < KEYS; key++) {
    if (!(chosen >> key & 1)) continue;
    values[count] = (int8_t)draw_u8(input);
    sums[key] += values[count];
    keys[count++] = key * 7;
  }
  return count;
}

/* After a flush, a chain of filters that hold values back has passed everything on. */
static void run(struct input *input) {
  static const char *const texts[] = {"significant(threshold=40)", "skip(rate=0.6)", "skip(rate=0.5, rests=5)",
                                      "significant(threshold=9, rests=20) | skip(rate=0.3)"};
  struct pawl_filters_options options;
  struct pawl_filters *filters;
  struct pawl_rows rows = {0};
  int64_t in[KEYS] = {0}, out[KEYS] = {0}, values[KEYS];
  uint64_t keys[KEYS];
  pawl_filters_options_init(&options);
  options.type = PAWL_I64;
  options.seed = draw_u8(input);
  assert(pawl_filters_create(texts[draw_u8(input) % 4], &options, &filters) == PAWL_OK);
  for (bool last = false; !last;) {
    last = input->left == 0;
    size_t count = draw_rows(input, keys, values, in);
    assert(pawl_filters_run(filters, keys, values, NULL, count, last || draw_u8(input) == 255, &rows) == PAWL_OK);
    for (size_t i = 0; i < rows.count; i++) {
      assert(i == 0 || rows.keys[i - 1] < rows.keys[i]);
      out[rows.keys[i] / 7] += ((int64_t *)rows.values)[i];
    }
  }
  assert(memcmp(in, out, sizeof in) == 0 && pawl_filters_held(filters) == 0);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  struct pwi_filter_list list;
  switch (draw_u8(&input) % CASES) {
  case DESCRIPTION:
    read_description(input.at, input.left);
    break;
  case TEXT:
    if (parse(&input, input.left, &list) == PAWL_OK) check_list(&list);
    break;
  case AGREEMENT:
    agree(&input);
    break;
  default:
    run(&input);
  }
  return 0;
}
