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

static pawl_status make_room(struct pwi_clock_list *list, size_t more) {
  size_t wanted;
  if (!pwi_add_size(list->count, more, &wanted)) return PAWL_TOO_LARGE;
  if (wanted <= list->room) return PAWL_OK;
  size_t room = wanted < 2 * list->room ? 2 * list->room : wanted;
  struct pwi_clock_seen *items = pwi_resize_array(list->items, room, sizeof *items);
  if (!items) return PAWL_NO_MEMORY;
  list->items = items;
  list->room = room;
  return PAWL_OK;
}

/* PAWL_CORRUPT: the payload is no list of clocks. */
pawl_status pwi_part_take_clocks(const struct client_part *part, const void *payload, size_t size) {
  struct pwi_clock_list *list = part->task->clocks;
  const unsigned char *bytes = payload;
  if (!list || size == 0) return PAWL_OK;
  if (size % PWI_CLOCK_RECORD != 0) return PAWL_CORRUPT;
  size_t count = size / PWI_CLOCK_RECORD;
  pawl_status status = make_room(list, count);
  if (status) return status;
  for (size_t i = 0; i < count; i++, bytes += PWI_CLOCK_RECORD)
    list->items[list->count++] = (struct pwi_clock_seen){
        {pwi_get_u64(bytes), pwi_get_u64(bytes + 8)}, {pwi_get_u64(bytes + 16)}, pwi_get_u64(bytes + 24)};
  return PAWL_OK;
}
