/* For tests of one shard: two vectors of SIZE keys, and requests on them. */
#ifndef PWI_SHARD_SHARD_TESTING_H
#define PWI_SHARD_SHARD_TESTING_H

#include "shard/testing.h"

#define SIZE 100

/* A push by range of `count` values from key `begin` on, as task number `task` after `prior`. */
static inline struct pwi_request push_of(uint64_t vector, uint64_t prior, uint64_t task, const struct iovec *values) {
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, vector, SIZE);
  request.terms.prior = prior;
  request.task = task;
  request.values = values;
  request.value_parts = 1;
  request.value_type = PAWL_I64;
  return request;
}

static inline void by_list(struct pwi_request *request, const uint64_t *keys, size_t count) {
  request->terms.keys = PWI_KEYS_LIST;
  request->terms.rows = count;
  request->keys = keys;
  request->signature = pwi_keys_signature(keys, count);
}

static inline int64_t pull_one(struct pwi_shard *shard, uint64_t vector, uint64_t key) {
  struct pwi_request request = request_of(PWI_REQUEST_PULL, vector, SIZE);
  int64_t value = -77;
  by_list(&request, &key, 1);
  assert_served(shard, &request, &value, PWI_CODE_OK, PAWL_OK);
  return value;
}

struct fixture {
  struct pwi_membership membership;
  struct pwi_shard *shard;
  int64_t ones[SIZE];
  struct iovec values; /* the ones */
};

/* Vector 1 is dense, vector 2 sparse; both of i64, width 1, SIZE keys. */
static inline void start(struct fixture *fixture, uint64_t memory_max, uint64_t cache_max) {
  struct pwi_shard_config config = {.memory_max = memory_max, .cache_max = cache_max};
  fixture->membership = membership_of(3);
  fixture->shard = shard_of(&config);
  assert_int_equal(pwi_shard_hold(fixture->shard, WHOLE_RING), PAWL_OK);
  pwi_shard_set_membership(fixture->shard, &fixture->membership);
  open_vector(fixture->shard, entry_of(1, PAWL_I64, 1, SIZE, false));
  open_vector(fixture->shard, entry_of(2, PAWL_I64, 1, SIZE, true));
  for (size_t i = 0; i < SIZE; i++) fixture->ones[i] = 1;
  fixture->values = (struct iovec){fixture->ones, sizeof fixture->ones};
}

static inline void stop(struct fixture *fixture) {
  pwi_shard_destroy(fixture->shard);
  pwi_membership_fini(&fixture->membership);
}

#endif
