/* Encoding, decoding and summing of filter counters. */
#include "protocol/filter_counts.h"

#include <string.h>

#include "base/memory.h"

#define ITEM_LEAST (8 + 1 + 2 + 6 * 8) /* bytes of the shortest item */

void pwi_filter_count_write(struct pwi_writer *writer, const struct pwi_filter_count *count) {
  pwi_write_u64(writer, count->vector);
  pwi_write_u8(writer, count->direction);
  pwi_write_text(writer, count->name);
  pwi_write_u64(writer, count->runs);
  pwi_write_u64(writer, count->rows_before);
  pwi_write_u64(writer, count->rows_after);
  pwi_write_u64(writer, count->bytes_before);
  pwi_write_u64(writer, count->bytes_after);
  pwi_write_u64(writer, count->clamped);
}

/* Reads one count. Names appear in output for people, so only characters of filter names are accepted. */
static void read_count(struct pwi_reader *reader, struct pwi_filter_count *count) {
  *count = (struct pwi_filter_count){0};
  count->vector = pwi_read_u64(reader);
  count->direction = pwi_read_u8(reader);
  pwi_read_text(reader, count->name, sizeof count->name);
  count->runs = pwi_read_u64(reader);
  count->rows_before = pwi_read_u64(reader);
  count->rows_after = pwi_read_u64(reader);
  count->bytes_before = pwi_read_u64(reader);
  count->bytes_after = pwi_read_u64(reader);
  count->clamped = pwi_read_u64(reader);
  bool is_name = *count->name && !count->name[strspn(count->name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
  if (!is_name || (count->direction != PAWL_ON_PUSH && count->direction != PAWL_ON_PULL))
    pwi_reader_fail(reader, PAWL_CORRUPT);
}

void pwi_filter_totals_fini(struct pwi_filter_totals *totals) {
  pwi_free(totals->items);
  *totals = (struct pwi_filter_totals){0};
}

static struct pwi_filter_count *find(struct pwi_filter_totals *totals, const struct pwi_filter_count *like) {
  for (size_t i = 0; i < totals->count; i++) {
    struct pwi_filter_count *item = &totals->items[i];
    if (item->vector == like->vector && item->direction == like->direction && strcmp(item->name, like->name) == 0)
      return item;
  }
  if (totals->count == PWI_FILTER_TOTALS_MAX) return NULL;
  if (!PWI_GROW(totals->items, totals->room, totals->count + 1)) return NULL;
  struct pwi_filter_count *item = &totals->items[totals->count++];
  *item = (struct pwi_filter_count){.vector = like->vector, .direction = like->direction};
  memcpy(item->name, like->name, sizeof item->name);
  return item;
}

static void add(struct pwi_filter_totals *totals, const struct pwi_filter_count *count) {
  struct pwi_filter_count *total = find(totals, count);
  if (!total) return;
  total->runs += count->runs;
  total->rows_before += count->rows_before;
  total->rows_after += count->rows_after;
  total->bytes_before += count->bytes_before;
  total->bytes_after += count->bytes_after;
  total->clamped += count->clamped;
}

/* The first pass checks the whole payload; the second adds it. */
pawl_status pwi_filter_totals_add(struct pwi_filter_totals *totals, const void *payload, size_t size) {
  struct pwi_filter_count count;
  for (int pass = 0; pass < 2; pass++) {
    struct pwi_reader reader;
    pwi_reader_init(&reader, payload, size);
    uint32_t items = pwi_read_count(&reader, ITEM_LEAST);
    for (uint32_t i = 0; i < items && reader.status == PAWL_OK; i++) {
      read_count(&reader, &count);
      if (pass == 1) add(totals, &count);
    }
    pawl_status status = pwi_reader_end(&reader);
    if (status) return status;
  }
  return PAWL_OK;
}
