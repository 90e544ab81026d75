/* Limits for the bytes of the tables of a space, regardless of the pushing client. */
#include <string.h>

#include "base/memory.h"
#include "shard/inside.h"

/* A limit and its usage. It exists until the shard is destroyed, because vectors point to it. */
struct pwi_space_quota {
  struct pwi_space_quota *next;
  uint64_t most, used; /* bytes of tables; UINT64_MAX: no limit */
  uint64_t granted;    /* limit granted by the manager from the quota of the cluster; UINT64_MAX: no limit */
  bool is_counted;     /* its bytes are reported to the manager */
  char space[PWI_SPACE_MAX + 1];
};

static struct pwi_space_quota *find(const struct pwi_shard *shard, const char *name) {
  struct pwi_space_quota *quota = shard->quotas;
  while (quota && !pwi_name_is_in(name, quota->space)) quota = quota->next;
  return quota;
}

static struct pwi_space_quota *make(struct pwi_shard *shard, const char *space) {
  struct pwi_space_quota *quota = pwi_alloc_zero(1, sizeof *quota);
  size_t size = strnlen(space, PWI_SPACE_MAX);
  if (!quota) return NULL;
  quota->most = quota->granted = UINT64_MAX;
  memcpy(quota->space, space, size);
  quota->next = shard->quotas;
  shard->quotas = quota;
  for (size_t i = 0; i < shard->vector_count; i++) {
    struct pwi_vector *vector = shard->vectors[i];
    if (!pwi_name_is_in(vector->entry.name, quota->space)) continue;
    vector->quota = quota;
    quota->used += vector->bytes;
  }
  return quota;
}

static struct pwi_space_quota *find_or_make(struct pwi_shard *shard, const char *space) {
  struct pwi_space_quota *quota = shard->quotas;
  while (quota && strcmp(quota->space, space) != 0) quota = quota->next;
  return quota ? quota : make(shard, space);
}

pawl_status pwi_shard_set_quota(struct pwi_shard *shard, const char *space, uint64_t bytes) {
  struct pwi_space_quota *quota = find_or_make(shard, space);
  if (!quota) return PAWL_NO_MEMORY;
  if (bytes < quota->most) quota->most = bytes;
  return PAWL_OK;
}

void pwi_shard_lift_quotas(struct pwi_shard *shard) {
  for (struct pwi_space_quota *quota = shard->quotas; quota; quota = quota->next) quota->most = UINT64_MAX;
}

pawl_status pwi_shard_grant(struct pwi_shard *shard, const struct pwi_space_bytes *spaces, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!find_or_make(shard, spaces[i].space)) return PAWL_NO_MEMORY;
  for (struct pwi_space_quota *quota = shard->quotas; quota; quota = quota->next) {
    quota->granted = UINT64_MAX;
    quota->is_counted = false;
    for (size_t i = 0; i < count && !quota->is_counted; i++) {
      if (strcmp(quota->space, spaces[i].space) != 0) continue;
      quota->granted = spaces[i].bytes;
      quota->is_counted = true;
    }
  }
  return PAWL_OK;
}

size_t pwi_shard_spaces(const struct pwi_shard *shard, struct pwi_space_bytes *spaces, size_t room) {
  size_t count = 0;
  for (const struct pwi_space_quota *quota = shard->quotas; quota && count < room; quota = quota->next) {
    if (!quota->is_counted) continue;
    memcpy(spaces[count].space, quota->space, sizeof quota->space);
    spaces[count++].bytes = quota->used;
  }
  return count;
}

void pwi_space_quotas_fini(struct pwi_shard *shard) {
  while (shard->quotas) {
    struct pwi_space_quota *next = shard->quotas->next;
    pwi_free(shard->quotas);
    shard->quotas = next;
  }
}

void pwi_space_quota_bind(const struct pwi_shard *shard, struct pwi_vector *vector) {
  vector->quota = find(shard, vector->entry.name);
}

void pwi_space_quota_count(const struct pwi_vector *vector, uint64_t more, uint64_t less) {
  if (vector->quota) vector->quota->used += more - less;
}

uint64_t pwi_space_quota_rest(const struct pwi_vector *vector) {
  const struct pwi_space_quota *quota = vector->quota;
  uint64_t most = !quota ? UINT64_MAX : quota->most < quota->granted ? quota->most : quota->granted;
  if (most == UINT64_MAX) return UINT64_MAX;
  uint64_t others = quota->used - vector->bytes;
  return others < most ? most - others : 0;
}
