/* Filters of a flow (docs/filters.md), and key lists that are recognised by their content.
 *
 * Lossy filters run on the caller's rows, by the caller's keys, before the call is cut, mixed or numbered.
 * From then on the task has its own rows, and the filters never run again for it.
 *
 * KEY CACHING. With the filter `keys`, a plain list is treated as a prepared one from its second use on. If
 * no filter has dropped rows of it, this begins with the first use, because callers mostly use their own
 * lists again.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/search.h"
#include "client/inside.h"
#include "wire/keys.h"

#define CACHED_LEAST 4                    /* keys below which a signature saves nothing */
#define CACHED_KEYS_MAX ((size_t)4 << 20) /* of all lists of a flow */

/* --- chains --------------------------------------------------------------------------------------------- */

static void forget_list(struct flow_filters *filters, struct cached_list *cached) {
  if (!cached->list) return;
  filters->cached_keys -= cached->list->count;
  pwi_keylist_release(cached->list);
  *cached = (struct cached_list){0};
}

void pwi_flow_filters_destroy(struct flow_filters *filters) {
  if (!filters) return;
  for (size_t i = 0; i < PWI_CACHED_LISTS; i++) forget_list(filters, &filters->lists[i]);
  pawl_filters_destroy(filters->push);
  pawl_filters_destroy(filters->pull);
  pwi_free(filters);
}

static bool is_lossy_on(const struct pwi_filter_item *item, unsigned direction) {
  return !pwi_filter_is_lossless(item->type) && item->on & direction;
}

static bool has_lossy(const struct pwi_filter_list *list, unsigned direction) {
  bool is_lossy = false;
  for (size_t i = 0; i < list->count; i++) is_lossy |= is_lossy_on(&list->items[i], direction);
  return is_lossy;
}

/* Encodes the lossy filters that servers apply to answers. */
static pawl_status write_asked(struct pwi_client *client, const struct pwi_filter_list *list,
                               struct flow_filters *filters) {
  struct pwi_filter_list asked = {0};
  for (size_t i = 0; i < list->count; i++) {
    if (!is_lossy_on(&list->items[i], PAWL_ON_PULL)) continue;
    asked.items[asked.count] = list->items[i];
    asked.items[asked.count++].on = PAWL_ON_PULL;
  }
  if (asked.count == 0) return PAWL_OK;
  pwi_writer_reset(&client->writer);
  pwi_filter_list_write(&client->writer, &asked);
  if (client->writer.status) return client->writer.status;
  if (client->writer.size > sizeof filters->asked) return PAWL_TOO_LARGE;
  memcpy(filters->asked, client->writer.data, client->writer.size);
  filters->asked_size = client->writer.size;
  return PAWL_OK;
}

static pawl_status open_chains(struct pwi_client *client, const struct pwi_flow *flow,
                               const struct pwi_filter_list *list, struct pawl_filters_options *options,
                               struct flow_filters *filters) {
  options->type = flow->entry.is.type;
  options->width = pwi_options_pushed(&flow->entry.is);
  options->adds = pwi_options_add_up(&flow->entry.is);
  options->direction = PAWL_ON_PUSH;
  pawl_status status = pwi_filters_open(list, options, &filters->push);
  options->direction = PAWL_ON_PULL;
  options->width = pwi_options_stored(&flow->entry.is);
  if (!status) status = pwi_filters_open(list, options, &filters->pull);
  if (!status) status = write_asked(client, list, filters);
  if (status) return status;
  filters->push_is_lossy = has_lossy(list, PAWL_ON_PUSH);
  filters->push_codecs = pwi_filters_codecs(filters->push);
  filters->pull_codecs = pwi_filters_codecs(filters->pull);
  filters->caches_pushes = pwi_filters_cache_keys(filters->push);
  filters->caches_pulls = pwi_filters_cache_keys(filters->pull);
  pwi_adapt_init(&filters->adapt, (enum pwi_value_type)flow->entry.is.type);
  return PAWL_OK;
}

pawl_status pwi_client_filter(struct pwi_client *client, struct pwi_flow *flow, const char *text,
                              const struct pawl_filters_options *options, char *problem, size_t problem_size) {
  struct pawl_filters_options full;
  struct pwi_filter_list list;
  pawl_filters_options_init(&full);
  if (options) full = *options;
  if (!options) full.seed = pwi_random_u64(client->config.random);
  full.problem = problem;
  full.problem_size = problem_size;
  pawl_status status = pwi_filter_list_parse(text, problem, problem_size, &list);
  if (status) return status;
  if (flow->filters && !flow->filters->is_stale && pawl_filters_held(flow->filters->push) > 0) return PAWL_INVALID;
  struct flow_filters *filters = NULL;
  if (list.count > 0) {
    filters = pwi_alloc_zero(1, sizeof *filters);
    if (!filters) return PAWL_NO_MEMORY;
    status = open_chains(client, flow, &list, &full, filters);
    if (status) {
      pwi_flow_filters_destroy(filters);
      return status;
    }
  }
  pwi_client_tell_counts(client, true);
  pwi_flow_filters_destroy(flow->filters);
  flow->filters = filters;
  return PAWL_OK;
}

const struct pawl_filters *pwi_flow_filters(const struct pwi_flow *flow, unsigned direction) {
  if (!flow->filters) return NULL;
  return direction == PAWL_ON_PULL ? flow->filters->pull : flow->filters->push;
}

const struct pawl_rows *pwi_task_rows(const struct pwi_task *task) {
  return task->filtered ? &task->filtered->rows : NULL;
}

struct pwi_flow_traffic pwi_flow_traffic(const struct pwi_flow *flow) {
  return flow->traffic;
}

/* --- what is left of a push ----------------------------------------------------------------------------- */

static struct pwi_filtered *take_filtered(struct pwi_client *client) {
  struct pwi_filtered *filtered = client->free_filtered;
  if (filtered) {
    client->free_filtered = filtered->next;
    return filtered;
  }
  filtered = pwi_alloc_zero(1, sizeof *filtered);
  if (!filtered) return NULL;
  filtered->all_next = client->filtered;
  client->filtered = filtered;
  return filtered;
}

void pwi_filtered_free(struct pwi_client *client, struct pwi_filtered *filtered) {
  if (!filtered) return;
  filtered->next = client->free_filtered;
  client->free_filtered = filtered;
}

void pwi_client_filtered_fini(struct pwi_client *client) {
  while (client->filtered) {
    struct pwi_filtered *filtered = client->filtered;
    client->filtered = filtered->all_next;
    pawl_rows_fini(&filtered->rows);
    pwi_pages_fini(&filtered->keys);
    pwi_free(filtered);
  }
}

/* The rows of a call, named by the caller's keys. */
struct filter_source {
  const uint64_t *keys;
  size_t count, first; /* `count` of the caller's rows, from `first` on */
};

static pawl_status make_keys(struct pwi_filtered *filtered, size_t count, uint64_t **keys_out) {
  size_t bytes;
  if (!pwi_mul_size(count, sizeof(uint64_t), &bytes)) return PAWL_NO_MEMORY;
  pawl_status status = pwi_pages_grow(&filtered->keys, bytes + 1);
  if (!status) *keys_out = filtered->keys.memory;
  return status;
}

static pawl_status name_range(struct pwi_filtered *filtered, struct pawl_range range, struct filter_source *source) {
  uint64_t *keys;
  source->count = (size_t)pawl_range_size(range);
  pawl_status status = make_keys(filtered, source->count, &keys);
  for (size_t i = 0; !status && i < source->count; i++) keys[i] = range.begin + i;
  if (!status) source->keys = keys;
  return status;
}

/* A prepared list of a mixed vector has the stored keys, and in `order` their places in the caller's list. */
static pawl_status name_mixed(struct pwi_filtered *filtered, const struct pwi_keylist *list,
                              struct filter_source *source) {
  uint64_t *keys;
  source->count = list->count;
  pawl_status status = make_keys(filtered, list->count, &keys);
  for (size_t i = 0; !status && i < list->count; i++) keys[list->order[i]] = pwi_place_unmix(list->keys[i]);
  if (!status) source->keys = keys;
  return status;
}

static bool has_range(const struct pwi_where *where) { return where->range.begin != 0 || where->range.end != 0; }

static pawl_status name_rows(struct pwi_filtered *filtered, const struct pwi_flow *flow, const struct pwi_where *where,
                             struct filter_source *source) {
  *source = (struct filter_source){.keys = where->keys, .count = where->count};
  if (!where->list && !where->keys) {
    struct pawl_range all = pawl_range_of(0, flow->place.size);
    return name_range(filtered, has_range(where) ? where->range : all, source);
  }
  if (where->list && where->list->order) return name_mixed(filtered, where->list, source);
  if (where->list) *source = (struct filter_source){.keys = where->list->keys, .count = where->list->count};
  if (!has_range(where)) return PAWL_OK;
  size_t last = pwi_first_not_below(source->keys, source->count, where->range.end);
  source->first = pwi_first_not_below(source->keys, source->count, where->range.begin);
  source->keys += source->first;
  source->count = last - source->first;
  return PAWL_OK;
}

/* Drops residuals from before the vector was loaded from a checkpoint. */
static pawl_status drop_stale(struct flow_filters *filters, struct pwi_filtered *filtered) {
  if (!filters->is_stale) return PAWL_OK;
  pawl_status status = pawl_filters_run(filters->push, NULL, NULL, NULL, 0, true, &filtered->rows);
  if (!status) filters->is_stale = false;
  return status;
}

/* If no row was dropped, the call keeps its range or its list, which servers may know. */
static bool is_whole(const struct filter_source *source, const struct pwi_where *where, const struct pawl_rows *rows) {
  bool is_limited = (where->list || where->keys) && has_range(where);
  return !where->flush && !is_limited && rows->count == source->count;
}

static const uint64_t no_keys[1];

static pawl_status run(struct pwi_flow *flow, struct pwi_filtered *filtered, struct pwi_where *where, const void **in,
                       bool *is_whole_out) {
  struct filter_source source;
  pawl_status status = name_rows(filtered, flow, where, &source);
  if (!status) status = drop_stale(flow->filters, filtered);
  if (status) return status;
  size_t skip = source.first * flow->pushed_bytes;
  const char *values = *in, *weights = where->weights;
  if (values) values += skip;
  if (weights) weights += skip;
  status =
      pawl_filters_run(flow->filters->push, source.keys, values, weights, source.count, where->flush, &filtered->rows);
  if (status) return status;
  *in = filtered->rows.values;
  *is_whole_out = is_whole(&source, where, &filtered->rows);
  if (*is_whole_out) return PAWL_OK;
  where->list = NULL;
  /* No row is left; NULL would mean a range. */
  where->keys = filtered->rows.keys ? filtered->rows.keys : no_keys;
  where->count = filtered->rows.count;
  return PAWL_OK;
}

/* --- lists by their content ----------------------------------------------------------------------------- */

static bool is_list(const struct cached_list *cached, uint64_t signature, const uint64_t *keys, size_t count) {
  const struct pwi_keylist *list = cached->list;
  if (!list || cached->signature != signature || list->count != count) return false;
  return list->order || memcmp(list->keys, keys, count * sizeof *keys) == 0;
}

static struct cached_list *find_list(struct flow_filters *filters, uint64_t signature, const uint64_t *keys,
                                     size_t count) {
  for (size_t i = 0; i < PWI_CACHED_LISTS; i++)
    if (is_list(&filters->lists[i], signature, keys, count)) return &filters->lists[i];
  return NULL;
}

/* A slot for another list; evicts the least recently used ones. */
static struct cached_list *make_place(struct flow_filters *filters, size_t count) {
  for (;;) {
    struct cached_list *free_place = NULL, *oldest = NULL;
    for (size_t i = 0; i < PWI_CACHED_LISTS; i++) {
      struct cached_list *cached = &filters->lists[i];
      if (!cached->list)
        free_place = cached;
      else if (!oldest || cached->used < oldest->used)
        oldest = cached;
    }
    if (!oldest || (free_place && filters->cached_keys + count <= CACHED_KEYS_MAX)) return free_place;
    forget_list(filters, oldest);
  }
}

static bool comes_again(struct flow_filters *filters, uint64_t signature) {
  uint64_t *seen = &filters->seen[signature % PWI_SEEN_LISTS];
  bool was_seen = *seen == signature;
  *seen = signature;
  return was_seen;
}

/* Without memory for it the keys are sent as a list. */
static void use_list(struct pwi_client *client, const struct pwi_flow *flow, struct pwi_where *where, bool is_own) {
  struct flow_filters *filters = flow->filters;
  if (where->list || !where->keys || where->count < CACHED_LEAST || where->count > CACHED_KEYS_MAX) return;
  uint64_t signature = pwi_keys_signature(where->keys, where->count);
  struct cached_list *cached = find_list(filters, signature, where->keys, where->count);
  if (!cached) {
    if (!comes_again(filters, signature) && !is_own) return;
    struct pwi_keylist *list;
    if (pwi_keylist_create(client, &flow->entry, where->keys, where->count, &list)) return;
    list->is_fresh = true;
    cached = make_place(filters, where->count);
    assert(cached);
    *cached = (struct cached_list){.signature = signature, .list = list};
    filters->cached_keys += list->count;
  }
  cached->used = ++filters->list_clock;
  where->list = cached->list;
}

/* --- calls ---------------------------------------------------------------------------------------------- */

pawl_status pwi_flow_filter(struct pwi_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                            struct pwi_where *where, const void **in, struct pwi_filtered **filtered_out) {
  struct flow_filters *filters = flow->filters;
  struct pwi_filtered *filtered = NULL;
  bool is_own = true, is_pull = kind == PWI_REQUEST_PULL;
  *filtered_out = NULL;
  if (kind == PWI_REQUEST_RESTORE) return PAWL_OK;
  pwi_client_count_later(client);
  if (kind == PWI_REQUEST_PUSHPULL && where->aggregate && filters->asked_size > 0) return PAWL_UNSUPPORTED;
  if (!is_pull && filters->push_is_lossy) {
    if (kind == PWI_REQUEST_PUSHPULL) return PAWL_UNSUPPORTED;
    filtered = take_filtered(client);
    if (!filtered) return PAWL_NO_MEMORY;
    pawl_status status = run(flow, filtered, where, in, &is_own);
    if (status) {
      pwi_filtered_free(client, filtered);
      return status;
    }
  }
  if (is_pull ? filters->caches_pulls : filters->caches_pushes) use_list(client, flow, where, is_own);
  *filtered_out = filtered;
  return PAWL_OK;
}
