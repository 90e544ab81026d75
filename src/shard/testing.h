/* For tests of shards: short functions for vectors, a membership and requests. */
#ifndef PWI_SHARD_TESTING_H
#define PWI_SHARD_TESTING_H

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "shard/shard.h"
#include "wire/keys.h"

#define WHOLE_RING ((struct pawl_range){0, PWI_RING_END})

static inline struct pwi_entry entry_of(uint64_t id, enum pawl_type type, uint32_t width, uint64_t size, bool sparse) {
  struct pwi_entry entry = {.id = {id}, .kind = PWI_ENTRY_VECTOR};
  entry.is = (struct pawl_vector_options){
      .type = type,
      .width = width,
      .size = size,
      .function = PAWL_ADD,
      .placement = PAWL_PLACE_ORDERED,
      .layout = sparse ? PAWL_LAYOUT_SPARSE : PAWL_LAYOUT_DENSE,
  };
  snprintf(entry.name, sizeof entry.name, "test/v%u", (unsigned)id);
  return entry;
}

static inline struct pwi_entry group_of(uint64_t id) {
  struct pwi_entry entry = entry_of(id, PAWL_U64, 1, PAWL_KEY_END, true);
  entry.kind = PWI_ENTRY_GROUP;
  snprintf(entry.name, sizeof entry.name, "test/.g%u", (unsigned)id);
  return entry;
}

/* Senders 1 to `count`, all live. */
static inline struct pwi_membership membership_of(uint64_t count) {
  struct pwi_membership membership = {0};
  for (uint64_t id = 1; id <= count; id++) {
    struct pwi_membership_sender sender = {.sender = {id}, .job = "test"};
    assert_int_equal(pwi_membership_add(&membership, &sender), PAWL_OK);
  }
  return membership;
}

static inline struct pwi_shard *shard_of(const struct pwi_shard_config *config) {
  struct pwi_shard *shard;
  assert_int_equal(pwi_shard_create(config, &shard), PAWL_OK);
  return shard;
}

/* A shard without a cap that has the whole ring. */
static inline struct pwi_shard *shard_of_all(const struct pwi_membership *membership) {
  struct pwi_shard *shard = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX});
  assert_int_equal(pwi_shard_hold(shard, WHOLE_RING), PAWL_OK);
  pwi_shard_set_membership(shard, membership);
  return shard;
}

static inline void open_vector(struct pwi_shard *shard, struct pwi_entry entry) {
  assert_int_equal(pwi_shard_open(shard, &entry), PAWL_OK);
}

/* A request of sender 1 on all of a vector of `size` keys, by range. */
static inline struct pwi_request request_of(enum pwi_request_kind kind, uint64_t vector, uint64_t size) {
  return (struct pwi_request){
      .terms = {.kind = kind, .vector = {vector}, .number = 1, .rows = size, .claim = {0, size}, .range = {0, size}},
      .sender = {1},
  };
}

static inline struct pwi_served serve(struct pwi_shard *shard, const struct pwi_request *request, void *values) {
  struct pwi_served served;
  pwi_shard_serve(shard, request, values, &served);
  return served;
}

static inline void assert_served(struct pwi_shard *shard, const struct pwi_request *request, void *values,
                                 enum pwi_code code, pawl_status status) {
  struct pwi_served served = serve(shard, request, values);
  assert_string_equal(pwi_code_text(served.outcome.code), pwi_code_text(code));
  assert_string_equal(pawl_status_name(served.outcome.status), pawl_status_name(status));
}

#endif
