/* Clocks in the answers of pulls: for each sender, the last of its pushes that the pull has seen. */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"
#include "client/inside.h"

void pwi_clock_list_fini(struct pwi_clock_list *list) {
  pwi_free(list->items);
  *list = (struct pwi_clock_list){0};
}

/* PAWL_CORRUPT: the payload is no list of clocks. */
pawl_status pwi_part_take_clocks(const struct client_part *part, const void *payload, size_t size) {
  struct pwi_clock_list *list = part->task->clocks;
  const unsigned char *bytes = payload;
  if (!list || size == 0) return PAWL_OK;
  if (size % PWI_CLOCK_RECORD != 0) return PAWL_CORRUPT;
  size_t count = size / PWI_CLOCK_RECORD, wanted;
  if (!pwi_add_size(list->count, count, &wanted)) return PAWL_TOO_LARGE;
  if (!PWI_GROW(list->items, list->room, wanted)) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++, bytes += PWI_CLOCK_RECORD)
    list->items[list->count++] = (struct pwi_clock_seen){
        {pwi_get_u64(bytes), pwi_get_u64(bytes + 8)}, {pwi_get_u64(bytes + 16)}, pwi_get_u64(bytes + 24)};
  return PAWL_OK;
}
