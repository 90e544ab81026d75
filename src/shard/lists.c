/* Kept key lists with the slots of their keys (OSDI'14 5.1: key caching).
 *
 * There is a hash table by vector and signature, and a linked list by last use; the least recently used list
 * is removed first. A list, its slots and its entry in the hash table are counted in bytes.
 */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"

#define SMALLEST_BITS 4

static size_t bucket_of(unsigned bits, struct pwi_vector_id vector, uint64_t signature) {
  return (size_t)(pwi_mix64(signature ^ pwi_mix64(vector.id)) >> (64 - bits));
}

/* --- hash table and order of use ------------------------------------------------------------------------ */

static void unlink_age(struct pwi_lists *lists, struct pwi_list *list) {
  *(list->newer ? &list->newer->older : &lists->newest) = list->older;
  *(list->older ? &list->older->newer : &lists->oldest) = list->newer;
}

static void link_newest(struct pwi_lists *lists, struct pwi_list *list) {
  list->newer = NULL;
  list->older = lists->newest;
  *(lists->newest ? &lists->newest->newer : &lists->oldest) = list;
  lists->newest = list;
}

static void unlink_bucket(struct pwi_lists *lists, const struct pwi_list *list) {
  struct pwi_list **at = &lists->buckets[bucket_of(lists->bits, list->vector, list->signature)];
  while (*at != list) at = &(*at)->chain;
  *at = list->chain;
}

static void link_bucket(struct pwi_list **buckets, unsigned bits, struct pwi_list *list) {
  struct pwi_list **at = &buckets[bucket_of(bits, list->vector, list->signature)];
  list->chain = *at;
  *at = list;
}

/* There are at most two lists in a bucket on average. If memory for more buckets is lacking, the old ones are
 * used. */
static pawl_status grow_buckets(struct pwi_lists *lists) {
  if (lists->buckets && lists->count < (size_t)2 << lists->bits) return PAWL_OK;
  unsigned bits = lists->buckets ? lists->bits + 1 : SMALLEST_BITS;
  struct pwi_list **buckets = pwi_alloc_zero((size_t)1 << bits, sizeof(struct pwi_list *));
  if (!buckets) return lists->buckets ? PAWL_OK : PAWL_NO_MEMORY;
  for (struct pwi_list *list = lists->newest; list; list = list->older) link_bucket(buckets, bits, list);
  pwi_free(lists->buckets);
  lists->buckets = buckets;
  lists->bits = bits;
  return PAWL_OK;
}

/* --- removing lists ------------------------------------------------------------------------------------- */

static void destroy(struct pwi_list *list) {
  pwi_slots_fini(&list->slots);
  pwi_free(list);
}

static void throw_out(struct pwi_lists *lists, struct pwi_list *list) {
  unlink_bucket(lists, list);
  unlink_age(lists, list);
  lists->bytes -= list->bytes;
  lists->count--;
  list->is_out = true;
  if (list->pins == 0) destroy(list);
}

struct pwi_list *pwi_shard_pin_list(struct pwi_shard *shard, struct pwi_vector_id vector, uint64_t signature) {
  struct pwi_list *list = pwi_lists_find(&shard->lists, vector, signature);
  if (list) list->pins++;
  return list;
}

void pwi_list_unpin(struct pwi_list *list) {
  if (list && --list->pins == 0 && list->is_out) destroy(list);
}

const uint64_t *pwi_list_keys(const struct pwi_list *list, size_t *count_out) {
  *count_out = list->count;
  return list->keys;
}

/* Makes room for `bytes` more by removing lists, if necessary all except `except`. */
static void make_room(struct pwi_lists *lists, uint64_t bytes, const struct pwi_list *except) {
  while (lists->oldest && lists->oldest != except &&
         (bytes > lists->bytes_max || lists->bytes > lists->bytes_max - bytes))
    throw_out(lists, lists->oldest);
}

void pwi_lists_drop(struct pwi_lists *lists, struct pwi_vector_id vector, const struct pwi_list *except) {
  for (struct pwi_list *list = lists->newest, *older; list; list = older) {
    older = list->older;
    if (list != except && (vector.id == 0 || list->vector.id == vector.id)) throw_out(lists, list);
  }
}

void pwi_lists_fini(struct pwi_lists *lists) {
  pwi_lists_drop(lists, (struct pwi_vector_id){0}, NULL);
  pwi_free(lists->buckets);
  lists->buckets = NULL;
}

/* --- finding and keeping lists -------------------------------------------------------------------------- */

struct pwi_list *pwi_lists_find(struct pwi_lists *lists, struct pwi_vector_id vector, uint64_t signature) {
  if (lists->count == 0) return NULL;
  struct pwi_list *list = lists->buckets[bucket_of(lists->bits, vector, signature)];
  while (list && (list->signature != signature || list->vector.id != vector.id)) list = list->chain;
  if (list && list != lists->newest) {
    unlink_age(lists, list);
    link_newest(lists, list);
  }
  return list;
}

static size_t bytes_of(const struct pwi_list *list) {
  return sizeof *list + list->count * sizeof *list->keys + list->slots.slots_room * sizeof *list->slots.slots +
         list->slots.runs_room * sizeof *list->slots.runs;
}

void pwi_lists_recount(struct pwi_lists *lists, struct pwi_list *list) {
  size_t bytes = bytes_of(list);
  lists->bytes += bytes;
  lists->bytes -= list->bytes;
  list->bytes = bytes;
  make_room(lists, 0, list);
}

static struct pwi_list *copy_keys(struct pwi_vector_id vector, uint64_t signature, const uint64_t *keys, size_t count) {
  size_t bytes;
  if (!pwi_mul_size(count, sizeof *keys, &bytes) || !pwi_add_size(bytes, sizeof(struct pwi_list), &bytes)) return NULL;
  struct pwi_list *list = pwi_alloc(bytes);
  if (!list) return NULL;
  *list = (struct pwi_list){.vector = vector, .signature = signature, .count = count};
  if (count > 0) memcpy(list->keys, keys, count * sizeof *keys);
  list->bytes = bytes_of(list);
  return list;
}

struct pwi_list *pwi_lists_keep(struct pwi_lists *lists, struct pwi_vector_id vector, uint64_t signature,
                                const uint64_t *keys, size_t count, uint64_t spare) {
  uint64_t wanted = (uint64_t)count * (sizeof *keys + sizeof(uint32_t)) + sizeof(struct pwi_list);
  struct pwi_list *old = pwi_lists_find(lists, vector, signature);
  if (old) throw_out(lists, old);
  if (wanted > lists->bytes_max || wanted > spare || grow_buckets(lists) != PAWL_OK) return NULL;
  struct pwi_list *list = copy_keys(vector, signature, keys, count);
  if (!list) return NULL;
  make_room(lists, wanted, NULL);
  link_bucket(lists->buckets, lists->bits, list);
  link_newest(lists, list);
  lists->bytes += list->bytes;
  lists->count++;
  return list;
}
