/* Messages between engines of items: any bytes. Accepted messages are in canonical form, and the keys of a META are within
 * the items, ascend, and have ranks.
 *
 * covers: src/peer/item/messages.c
 */
#include "fuzz.h"

#include <string.h>

#include "peer/item/messages.h"

static void check_runs(struct item_runs *runs, uint64_t items) {
  uint32_t before = 0;
  if (pwi_item_runs_finish(runs)) return;
  for (size_t i = 0; i < runs->count; i++) {
    const struct item_run *run = &runs->runs[i];
    assert(run->count > 0 && run->stride > 0 && run->before == before && pwi_item_run_last(run) < items);
    assert(i == 0 || run->start > runs->runs[i - 1].start);
    assert(pwi_item_runs_rank(runs, run->start) != ITEM_NO_RANK);
    assert(pwi_item_runs_key(runs, run->before) == run->start);
    before += run->count;
  }
  assert(before == runs->keys && runs->keys <= items);
}

static void check_meta(const struct item_meta *meta, const uint8_t *data, size_t size) {
  struct item_runs runs = {0}, common;
  struct pwi_writer writer = {0};
  bool is_sound = pwi_item_meta_runs(meta, &runs) == PAWL_OK;
  if (is_sound) {
    pwi_item_meta_begin(&writer, meta);
    for (size_t i = 0; i < runs.count; i++) pwi_item_meta_run(&writer, &runs.runs[i]);
    assert(writer.status || (writer.size == size && memcmp(writer.data, data, size) == 0));
    check_runs(&runs, meta->parameters.count);
    if (runs.count < 64 && pwi_item_runs_common(&runs, &runs, &common) == PAWL_OK) {
      assert(common.keys >= runs.keys || runs.keys > UINT32_MAX / 2);
      pwi_item_runs_fini(&common);
    }
  }
  pwi_writer_fini(&writer);
  pwi_item_runs_fini(&runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct item_meta meta;
  struct item_ask ask;
  uint32_t number, first, count;
  unsigned char again[ITEM_NUMBER_SIZE];
  if (pwi_item_meta_decode(data, size, &meta) == PAWL_OK) check_meta(&meta, data, size);
  if (pwi_item_ask_decode(data, size, &ask) == PAWL_OK) {
    struct pwi_writer writer = {0};
    pwi_item_ask_begin(&writer, ask.need, ask.pairs);
    for (uint32_t i = 0; i < ask.pairs; i++) {
      pwi_item_ask_at(&ask, i, &first, &count);
      pwi_item_ask_pair(&writer, first, count);
    }
    assert(writer.status || (writer.size == size && memcmp(writer.data, data, size) == 0));
    pwi_writer_fini(&writer);
  }
  if (pwi_item_number_decode(data, size, &number) == PAWL_OK) {
    pwi_item_number_encode(number, again);
    assert(size == sizeof again && memcmp(again, data, size) == 0);
  }
  return 0;
}
