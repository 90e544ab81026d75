/* Who may read which vector. Only servers know the rights of keys. A server that has read rows in the name of a sender
 * has found that the sender may read them, and so may this relay for a while. Then a server is asked again. */
#include <string.h>

#include "base/memory.h"
#include "relay/inside.h"

#define VALID_NS INT64_C(10000000000)
#define RIGHTS_MAX 65536

static size_t place_of(const struct pwi_relay *relay, uint64_t sender, uint64_t vector) {
  size_t low = 0, high = relay->right_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct relay_right *right = &relay->rights[middle];
    if (right->sender < sender || (right->sender == sender && right->vector < vector))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static struct relay_right *find(const struct pwi_relay *relay, uint64_t sender, uint64_t vector) {
  size_t at = place_of(relay, sender, vector);
  if (at == relay->right_count) return NULL;
  struct relay_right *right = &relay->rights[at];
  return right->sender == sender && right->vector == vector ? right : NULL;
}

/* Without memory the sender is not known to have the right. */
static void permit(struct pwi_relay *relay, uint64_t sender, uint64_t vector, int64_t until) {
  struct relay_right *right = find(relay, sender, vector);
  if (!right) {
    if (relay->right_count >= RIGHTS_MAX) relay->right_count = 0;
    if (!PWI_GROW(relay->rights, relay->right_room, relay->right_count + 1)) return;
    size_t at = place_of(relay, sender, vector);
    right = &relay->rights[at];
    memmove(right + 1, right, (relay->right_count - at) * sizeof *right);
    relay->right_count++;
  }
  *right = (struct relay_right){sender, vector, until};
}

void pwi_relay_permit(struct pwi_relay *relay, const struct relay_senders *takers, uint64_t vector) {
  int64_t until = pwi_net_now(relay->config.net) + VALID_NS;
  for (size_t i = 0; i < takers->count; i++) permit(relay, takers->items[i].sender.id, vector, until);
}

bool pwi_relay_may_read(const struct pwi_relay *relay, const struct pwi_contributor *takers, size_t count,
                        uint64_t vector) {
  int64_t now = pwi_net_now(relay->config.net);
  for (size_t i = 0; i < count; i++) {
    const struct relay_right *right = find(relay, takers[i].sender.id, vector);
    if (!right || right->until <= now) return false;
  }
  return true;
}

void pwi_relay_forbid(struct pwi_relay *relay, uint64_t sender) {
  size_t first = place_of(relay, sender, 0), end = first;
  while (end < relay->right_count && relay->rights[end].sender == sender) end++;
  if (first == end) return;
  memmove(&relay->rights[first], &relay->rights[end], (relay->right_count - end) * sizeof *relay->rights);
  relay->right_count -= end - first;
}
