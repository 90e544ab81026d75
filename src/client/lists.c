/* Prepared key lists, the reordering of mixed vectors, and buffers. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "client/inside.h"
#include "wire/keys.h"

/* --- prepared lists ------------------------------------------------------------------------------------- */

static pawl_status check_keys(const struct pwi_entry *entry, const uint64_t *keys, size_t count) {
  if (!pwi_keys_rise(keys, count)) return PAWL_UNSORTED;
  return count > 0 && keys[count - 1] >= entry->is.size ? PAWL_OUT_OF_SPAN : PAWL_OK;
}

static pawl_status fill_list(struct pwi_keylist *list, const struct pwi_entry *entry, const uint64_t *keys) {
  size_t bytes;
  if (!pwi_mul_size(list->count + 1, sizeof *keys, &bytes)) return PAWL_NO_MEMORY;
  list->keys = pwi_alloc(bytes);
  if (!list->keys) return PAWL_NO_MEMORY;
  if (list->count == 0) return PAWL_OK;
  if (entry->is.placement != PAWL_PLACE_MIXED) {
    memcpy(list->keys, keys, list->count * sizeof *keys);
    return PAWL_OK;
  }
  struct pwi_mixer mixer = {0};
  pawl_status status = pwi_mixer_sort(&mixer, keys, list->count);
  list->order = status ? NULL : pwi_alloc((list->count + 1) * sizeof *list->order);
  if (!status && !list->order) status = PAWL_NO_MEMORY;
  if (!status) {
    memcpy(list->keys, mixer.keys, list->count * sizeof *keys);
    memcpy(list->order, mixer.order, list->count * sizeof *list->order);
  }
  pwi_mixer_fini(&mixer);
  return status;
}

pawl_status pwi_keylist_create(struct pwi_client *client, const struct pwi_entry *entry, const uint64_t *keys,
                               size_t count, struct pwi_keylist **list_out) {
  (void)client;
  pawl_status status = check_keys(entry, keys, count);
  if (status) return status;
  struct pwi_keylist *list = pwi_alloc_zero(1, sizeof *list);
  if (!list) return PAWL_NO_MEMORY;
  list->references = 1;
  list->vector = entry->id;
  list->count = count;
  status = fill_list(list, entry, keys);
  if (status) {
    pwi_keylist_release(list);
    return status;
  }
  *list_out = list;
  return PAWL_OK;
}

struct pwi_keylist *pwi_keylist_retain(struct pwi_keylist *list) {
  list->references++;
  return list;
}

void pwi_keylist_release(struct pwi_keylist *list) {
  if (!list || --list->references > 0) return;
  pwi_free(list->keys);
  pwi_free(list->order);
  pwi_free(list->cuts);
  pwi_free(list);
}

size_t pwi_keylist_count(const struct pwi_keylist *list) { return list->count; }

/* Calls use the pieces of a list in the same order, so the next piece mostly follows the last one found.
 * Without memory to keep a signature it is computed each time. */
uint64_t pwi_keylist_sign(struct pwi_keylist *list, size_t first, size_t count) {
  for (size_t i = 0; i < list->cut_count; i++) {
    size_t at = (list->cut_next + i) % list->cut_count;
    if (list->cuts[at].first != first || list->cuts[at].count != count) continue;
    list->cut_next = at + 1;
    return list->cuts[at].signature;
  }
  uint64_t signature = pwi_keys_signature(list->keys + first, count);
  if (!PWI_GROW(list->cuts, list->cut_room, list->cut_count + 1)) return signature;
  list->cuts[list->cut_count++] = (struct keylist_cut){first, count, signature};
  return signature;
}

/* --- mixing --------------------------------------------------------------------------------------------- */

/* Rows of 4 and 8 bytes are most of the traffic. */
static void gather_rows(char *to, const char *from, const uint32_t *order, size_t rows, size_t bytes) {
  if (bytes == 4)
    for (size_t i = 0; i < rows; i++) memcpy(to + i * 4, from + (size_t)order[i] * 4, 4);
  else if (bytes == 8)
    for (size_t i = 0; i < rows; i++) memcpy(to + i * 8, from + (size_t)order[i] * 8, 8);
  else
    for (size_t i = 0; i < rows; i++) memcpy(to + i * bytes, from + (size_t)order[i] * bytes, bytes);
}

static void scatter_rows(char *to, const char *from, const uint32_t *order, size_t rows, size_t bytes) {
  if (bytes == 4)
    for (size_t i = 0; i < rows; i++) memcpy(to + (size_t)order[i] * 4, from + i * 4, 4);
  else if (bytes == 8)
    for (size_t i = 0; i < rows; i++) memcpy(to + (size_t)order[i] * 8, from + i * 8, 8);
  else
    for (size_t i = 0; i < rows; i++) memcpy(to + (size_t)order[i] * bytes, from + i * bytes, bytes);
}

static void free_mixing(struct pwi_client *client, struct pwi_mixing *mixing) {
  pwi_keylist_release(mixing->list);
  mixing->list = NULL;
  mixing->next = client->free_mixings;
  client->free_mixings = mixing;
}

static const uint32_t *order_of(const struct pwi_mixing *mixing) {
  return mixing->list ? mixing->list->order : mixing->mixer.order;
}

static pawl_status prepare(struct pwi_mixing *mixing, const struct pwi_where *where, const void *in, void *out) {
  pawl_status status = PAWL_OK;
  size_t bytes_in, bytes_out;
  if (where->list)
    mixing->list = pwi_keylist_retain(where->list);
  else
    status = pwi_mixer_sort(&mixing->mixer, where->keys, where->count);
  mixing->rows = where->list ? where->list->count : where->count;
  if (!pwi_mul_size(mixing->rows, mixing->bytes_in, &bytes_in) ||
      !pwi_mul_size(mixing->rows, mixing->row_bytes, &bytes_out))
    return PAWL_NO_MEMORY;
  if (!status && in) status = pwi_pages_grow(&mixing->in, bytes_in);
  if (!status && out) status = pwi_pages_grow(&mixing->out, bytes_out);
  if (status) return status;
  mixing->caller_out = out;
  if (in) gather_rows(mixing->in.memory, in, order_of(mixing), mixing->rows, mixing->bytes_in);
  return PAWL_OK;
}

pawl_status pwi_client_mix(struct pwi_client *client, struct pwi_task *task, const struct pwi_flow *flow,
                           const struct pwi_where *where, const void *in, void *out) {
  struct pwi_mixing *mixing = client->free_mixings;
  if (mixing) {
    client->free_mixings = mixing->next;
  } else {
    mixing = pwi_alloc_zero(1, sizeof *mixing);
    if (!mixing) return PAWL_NO_MEMORY;
    mixing->all_next = client->mixings;
    client->mixings = mixing;
  }
  mixing->row_bytes = flow->row_bytes;
  mixing->bytes_in = pwi_flow_bytes_beside(flow, PWI_REQUEST_PUSH, where->operand_rows);
  pawl_status status = prepare(mixing, where, in, out);
  if (status) {
    free_mixing(client, mixing);
    return status;
  }
  task->mixing = mixing;
  return PAWL_OK;
}

void pwi_client_unmix(struct pwi_client *client, struct pwi_task *task) {
  struct pwi_mixing *mixing = task->mixing;
  task->mixing = NULL;
  if (mixing->caller_out && !task->status)
    scatter_rows(mixing->caller_out, mixing->out.memory, order_of(mixing), mixing->rows, mixing->row_bytes);
  free_mixing(client, mixing);
}

/* --- buffers -------------------------------------------------------------------------------------------- */

pawl_status pwi_client_buffer_open(struct pwi_client *client, size_t size, void **memory_out) {
  if (!PWI_GROW(client->buffers, client->buffer_room, client->buffer_count + 1)) return PAWL_NO_MEMORY;
  struct client_buffer buffer = {.size = size};
  pawl_status status = pwi_net_region_open(client->config.net, size > 0 ? size : 1, &buffer.region);
  if (status) return status;
  buffer.memory = pwi_net_region_memory(buffer.region);
  client->buffers[client->buffer_count++] = buffer;
  *memory_out = buffer.memory;
  return PAWL_OK;
}

/* A task is over only when the net has finished with its memory, so the net does not read this region any
 * more. */
void pwi_client_buffer_close(struct pwi_client *client, void *memory) {
  for (size_t i = 0; memory && i < client->buffer_count; i++) {
    if (client->buffers[i].memory != memory) continue;
    pwi_net_region_close(client->config.net, client->buffers[i].region);
    client->buffers[i] = client->buffers[--client->buffer_count];
    return;
  }
}

bool pwi_client_in_buffer(const struct pwi_client *client, const void *memory, size_t size) {
  uintptr_t at = (uintptr_t)memory;
  for (size_t i = 0; i < client->buffer_count; i++) {
    uintptr_t begin = (uintptr_t)client->buffers[i].memory;
    if (at >= begin && at - begin <= client->buffers[i].size && size <= client->buffers[i].size - (at - begin))
      return true;
  }
  return false;
}

/* The net has closed the regions. */
void pwi_client_lists_fini(struct pwi_client *client) {
  pwi_free(client->buffers);
  pwi_foldings_fini(client);
  pwi_row_runs_fini(client);
  while (client->mixings) {
    struct pwi_mixing *mixing = client->mixings;
    client->mixings = mixing->all_next;
    pwi_keylist_release(mixing->list);
    pwi_mixer_fini(&mixing->mixer);
    pwi_pages_fini(&mixing->in);
    pwi_pages_fini(&mixing->out);
    pwi_free(mixing);
  }
}
