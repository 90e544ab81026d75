/* Senders of an aggregate, or of the pulls that wait for one read: sorted, each once. */
#include <string.h>

#include "base/memory.h"
#include "relay/inside.h"

/* The place of a sender; where it would be, if it is not there. */
static size_t place_of(const struct relay_senders *senders, uint64_t sender) {
  size_t low = 0, high = senders->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (senders->items[middle].sender.id < sender)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool pwi_relay_has_sender(const struct relay_senders *senders, uint64_t sender) {
  size_t at = place_of(senders, sender);
  return at < senders->count && senders->items[at].sender.id == sender;
}

bool pwi_relay_add_senders(struct relay_senders *to, const struct pwi_contributor *senders, size_t count) {
  if (to->count + count > PWI_CONTRIBUTORS_MAX || !PWI_GROW(to->items, to->room, to->count + count)) return false;
  for (size_t i = 0; i < count; i++) {
    if (pwi_relay_has_sender(to, senders[i].sender.id)) continue;
    size_t at = place_of(to, senders[i].sender.id);
    memmove(&to->items[at + 1], &to->items[at], (to->count - at) * sizeof *to->items);
    to->items[at] = senders[i];
    to->count++;
  }
  return true;
}

void pwi_relay_drop_sender(struct relay_senders *senders, uint64_t sender) {
  size_t at = place_of(senders, sender);
  if (!pwi_relay_has_sender(senders, sender)) return;
  senders->count--;
  memmove(&senders->items[at], &senders->items[at + 1], (senders->count - at) * sizeof *senders->items);
}
