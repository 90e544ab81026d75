/* The store of sim/meta.h: keys, leases, deals. */
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "sim/meta_inside.h"

/* --- keys ----------------------------------------------------------------------------------------------- */

/* The first key that is not less than this one. */
static size_t place_of(const struct pwi_sim_meta *store, const char *key) {
  struct pwi_search search = {.high = store->key_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, strcmp(store->keys[search.middle].key, key) < 0);
  return search.low;
}

static struct meta_key *find(const struct pwi_sim_meta *store, const char *key) {
  size_t place = place_of(store, key);
  bool is_there = place < store->key_count && strcmp(store->keys[place].key, key) == 0;
  return is_there ? &store->keys[place] : NULL;
}

static void drop_key(struct pwi_sim_meta *store, size_t place) {
  pwi_free(store->keys[place].key);
  pwi_free(store->keys[place].value);
  store->key_count--;
  memmove(&store->keys[place], &store->keys[place + 1], (store->key_count - place) * sizeof *store->keys);
}

static struct pwi_meta_pair pair_of(const struct meta_key *key) {
  return (struct pwi_meta_pair){key->key, key->value, key->size, key->created, key->lease};
}

static struct meta_key *add_key(struct pwi_sim_meta *store, const char *name) {
  size_t place = place_of(store, name);
  if (!PWI_GROW(store->keys, store->key_room, store->key_count + 1)) return NULL;
  char *copy = pwi_copy_string(name);
  if (!copy) return NULL;
  memmove(&store->keys[place + 1], &store->keys[place], (store->key_count - place) * sizeof *store->keys);
  store->key_count++;
  store->keys[place] = (struct meta_key){.key = copy, .created = store->revision};
  return &store->keys[place];
}

static pawl_status put(struct pwi_sim_meta *store, const struct pwi_meta_step *step) {
  struct meta_key *key = find(store, step->key);
  struct pwi_meta_pair before = key ? pair_of(key) : (struct pwi_meta_pair){0};
  if (store->watch.put)
    store->watch.put(store->watch.context, step->key, step->value, step->size, key ? &before : NULL);
  unsigned char *value = pwi_alloc(step->size);
  if (!value) return PAWL_NO_MEMORY;
  if (!key) key = add_key(store, step->key);
  if (!key) {
    pwi_free(value);
    return PAWL_NO_MEMORY;
  }
  if (step->size > 0) memcpy(value, step->value, step->size);
  pwi_free(key->value);
  key->value = value;
  key->size = step->size;
  key->lease = step->lease;
  return PAWL_OK;
}

static void delete (struct pwi_sim_meta *store, const struct pwi_meta_step *step) {
  size_t place = place_of(store, step->key);
  while (place < store->key_count) {
    const char *key = store->keys[place].key;
    if (step->end ? strcmp(key, step->end) >= 0 : strcmp(key, step->key) != 0) return;
    drop_key(store, place);
  }
}

const void *pwi_sim_meta_get(const struct pwi_sim_meta *store, const char *name, size_t *size_out) {
  const struct meta_key *key = find(store, name);
  if (!key) return NULL;
  *size_out = key->size;
  return key->value;
}

uint64_t pwi_sim_meta_revision(const struct pwi_sim_meta *store) { return store->revision; }

/* --- results -------------------------------------------------------------------------------------------- */

void pwi_meta_result_fini(struct meta_result *result) {
  for (size_t i = 0; i < result->answer.pair_count; i++) {
    pwi_free((void *)(uintptr_t)result->pairs[i].key);
    pwi_free((void *)(uintptr_t)result->pairs[i].value);
  }
  pwi_free(result->pairs);
  *result = (struct meta_result){0};
}

static pawl_status add_pair(struct meta_result *result, const struct meta_key *key) {
  struct pwi_meta_pair pair = pair_of(key);
  size_t count = result->answer.pair_count;
  if (!PWI_GROW(result->pairs, result->room, count + 1)) return PAWL_NO_MEMORY;
  void *value = pwi_alloc(key->size);
  pair.key = pwi_copy_string(key->key);
  if (!value || !pair.key) {
    pwi_free(value);
    pwi_free((void *)(uintptr_t)pair.key);
    return PAWL_NO_MEMORY;
  }
  if (key->size > 0) memcpy(value, key->value, key->size);
  pair.value = value;
  result->pairs[count] = pair;
  result->answer.pairs = result->pairs;
  result->answer.pair_count = count + 1;
  return PAWL_OK;
}

static pawl_status get(struct pwi_sim_meta *store, const struct pwi_meta_step *step, struct meta_result *result) {
  uint64_t found = 0;
  if (step->revision != 0 && step->revision != store->revision) return PAWL_NOT_FOUND;
  for (size_t place = place_of(store, step->key); place < store->key_count; place++) {
    const char *key = store->keys[place].key;
    if (step->end ? strcmp(key, step->end) >= 0 : strcmp(key, step->key) != 0) return PAWL_OK;
    if (step->limit != 0 && found++ == step->limit) {
      result->answer.more = true;
      return PAWL_OK;
    }
    pawl_status status = add_pair(result, &store->keys[place]);
    if (status) return status;
  }
  return PAWL_OK;
}

/* --- leases --------------------------------------------------------------------------------------------- */

static void end_lease(struct pwi_sim_meta *store, size_t place) {
  uint64_t id = store->leases[place].id;
  store->leases[place] = store->leases[--store->lease_count];
  store->revision++;
  for (size_t i = store->key_count; i > 0; i--)
    if (store->keys[i - 1].lease == id) drop_key(store, i - 1);
}

/* Ends expired leases. It suffices to do this at each call, because nothing can be observed between two
 * calls. */
static void end_leases(struct pwi_sim_meta *store) {
  int64_t now = pwi_sim_now(store->sim);
  for (size_t i = store->lease_count; i > 0; i--)
    if (store->leases[i - 1].ends_at <= now) end_lease(store, i - 1);
}

static struct meta_lease *find_lease(struct pwi_sim_meta *store, uint64_t id) {
  for (size_t i = 0; i < store->lease_count; i++)
    if (store->leases[i].id == id) return &store->leases[i];
  return NULL;
}

void pwi_sim_meta_grant(struct pwi_sim_meta *store, int64_t ttl, struct meta_result *result) {
  end_leases(store);
  if (!PWI_GROW(store->leases, store->lease_room, store->lease_count + 1)) {
    result->status = PAWL_NO_MEMORY;
    return;
  }
  uint64_t id = ++store->last_lease;
  store->leases[store->lease_count++] = (struct meta_lease){id, ttl, pwi_sim_now(store->sim) + ttl};
  result->answer.lease = id;
  result->answer.ttl_ns = ttl;
}

void pwi_sim_meta_renew(struct pwi_sim_meta *store, uint64_t id, struct meta_result *result) {
  end_leases(store);
  struct meta_lease *lease = find_lease(store, id);
  result->status = lease ? PAWL_OK : PAWL_NOT_FOUND;
  if (!lease) return;
  lease->ends_at = pwi_sim_now(store->sim) + lease->ttl;
  result->answer.lease = id;
  result->answer.ttl_ns = lease->ttl;
}

void pwi_sim_meta_revoke(struct pwi_sim_meta *store, uint64_t id, struct meta_result *result) {
  end_leases(store);
  const struct meta_lease *lease = find_lease(store, id);
  result->status = lease ? PAWL_OK : PAWL_NOT_FOUND;
  if (lease) end_lease(store, (size_t)(lease - store->leases));
}

/* --- deals ---------------------------------------------------------------------------------------------- */

static bool holds(const struct pwi_sim_meta *store, const struct pwi_meta_test *test) {
  const struct meta_key *key = find(store, test->key);
  if (test->field == PWI_META_CREATED) return (key ? key->created : 0) == test->created;
  return key && key->size == test->size && memcmp(key->value, test->value, test->size) == 0;
}

static pawl_status check_steps(struct pwi_sim_meta *store, const struct pwi_meta_step *steps, size_t count,
                               bool *changes_out) {
  *changes_out = false;
  for (size_t i = 0; i < count; i++) {
    bool is_put = steps[i].act == PWI_META_PUT;
    if (is_put && steps[i].lease != 0 && !find_lease(store, steps[i].lease)) return PAWL_NOT_FOUND;
    if (is_put && steps[i].size > PWI_META_VALUE_MAX) return PAWL_TOO_LARGE;
    *changes_out |= steps[i].act != PWI_META_GET;
  }
  return PAWL_OK;
}

void pwi_sim_meta_transact(struct pwi_sim_meta *store, const struct pwi_meta_transaction *transaction,
                           struct meta_result *result) {
  bool held = true, changes;
  end_leases(store);
  for (size_t i = 0; i < transaction->test_count; i++) held &= holds(store, &transaction->tests[i]);
  const struct pwi_meta_step *steps = held ? transaction->steps : transaction->others;
  size_t count = held ? transaction->step_count : transaction->other_count;
  pawl_status status = check_steps(store, steps, count, &changes);
  if (!status && changes) store->revision++;
  for (size_t i = 0; i < count && !status; i++) {
    if (steps[i].act == PWI_META_PUT)
      status = put(store, &steps[i]);
    else if (steps[i].act == PWI_META_DELETE)
      delete (store, &steps[i]);
    else
      status = get(store, &steps[i], result);
  }
  /* No manager has to expect a store that executes half a transaction. */
  if (status == PAWL_NO_MEMORY && changes) pwi_sim_fail(store->sim, status, "the store ran out of memory");
  result->status = status;
  result->answer.held = held;
  result->answer.revision = store->revision;
}
