/* Regions in tests. */
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

struct share share_open(struct pair *pair, size_t size, unsigned access) {
  struct share share = {0};
  assert_status(PARTY_CALL(pair->there, pwi_net_region_open(pair->there->net, size, &share.region)), PAWL_OK);
  share.memory = pwi_net_region_memory(share.region);
  return share_again(pair, &share, access);
}

struct share share_again(struct pair *pair, const struct share *old, unsigned access) {
  struct share share = *old;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t token_size = 0;
  assert_status(PARTY_CALL(pair->there, pwi_net_region_share(pair->there->net, share.region, pair->theirs->link, access,
                                                             token, &token_size)),
                PAWL_OK);
  assert_in_range(token_size, 1, PWI_NET_TOKEN_MAX);
  assert_status(
      PARTY_CALL(pair->here, pwi_net_remote_open(pair->here->net, pair->ours->link, token, token_size, &share.remote)),
      PAWL_OK);
  memset(token, 0xee, sizeof token);
  return share;
}

size_t share_token(struct scene *scene, struct pair *pair, struct pwi_region *region, unsigned access,
                   uint8_t token[PWI_NET_TOKEN_MAX]) {
  size_t size = 0;
  for (;;) {
    pawl_status status = PARTY_CALL(
        pair->there, pwi_net_region_share(pair->there->net, region, pair->theirs->link, access, token, &size));
    if (status == PAWL_OK) return size;
    assert_status(status, PAWL_QUEUE_FULL);
    pair->theirs->full = true;
    SCENE_UNTIL(scene, !pair->theirs->full);
  }
}

void share_close(struct pair *pair, struct share *share) {
  party_call_begin(pair->there);
  pwi_net_region_close(pair->there->net, share->region);
  party_call_end(pair->there, PAWL_OK);
}

uint64_t share_put(struct pair *pair, struct share *share, uint64_t seed, uint64_t offset, size_t size, uint64_t notify,
                   pawl_status *status_out) {
  uint8_t *from = malloc(size + 1);
  if (!from) abort();
  pattern_fill(seed, offset, from, size);
  bool copied = size <= PWI_NET_COPY_MAX;
  uint64_t cookie = party_op_begin(pair->here, pair->ours, copied ? NULL : from);
  pawl_status status = PARTY_CALL(
      pair->here, pwi_net_put(pair->here->net, pair->ours->link, share->remote, offset, from, size, notify, cookie));
  if (copied) {
    memset(from, 0xee, size);
    free(from);
  }
  *status_out = status;
  if (status == PAWL_QUEUE_FULL) pair->ours->full = true;
  if (status == PAWL_OK) return cookie;
  party_op_cancel(pair->here, cookie);
  return 0;
}

uint64_t share_get(struct pair *pair, struct share *share, uint64_t offset, void *into, size_t size) {
  uint64_t cookie = party_op_begin(pair->here, pair->ours, NULL);
  assert_status(
      PARTY_CALL(pair->here, pwi_net_get(pair->here->net, pair->ours->link, share->remote, offset, into, size, cookie)),
      PAWL_OK);
  return cookie;
}

uint64_t share_fence(struct pair *pair) {
  uint64_t cookie = party_op_begin(pair->here, pair->ours, NULL);
  assert_status(PARTY_CALL(pair->here, pwi_net_fence(pair->here->net, pair->ours->link, cookie)), PAWL_OK);
  return cookie;
}

size_t share_count_mappings(void) {
  char line[512];
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) count += strstr(line, "memfd:pawl") != NULL;
  fclose(maps);
  return count;
}

bool share_holds(const struct share *share, uint64_t seed, uint64_t offset, size_t size) {
  return pattern_check(seed, offset, share->memory + offset, size) == size;
}
