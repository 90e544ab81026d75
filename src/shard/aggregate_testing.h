/* For tests of aggregates: a vector, a group, and short functions for the pushes of its members. */
#ifndef PWI_SHARD_AGGREGATE_TESTING_H
#define PWI_SHARD_AGGREGATE_TESTING_H

#include "shard/testing.h"

#define SIZE 40
#define WIDTH 3
#define VECTOR 1
#define GROUP 9
#define ANSWERS_MAX 64
#define VALUES (SIZE * WIDTH)

static struct {
  uint64_t owner;
  struct pwi_outcome outcome;
  bool is_in; /* answered by the end of the aggregate */
} answers[ANSWERS_MAX];
static size_t answer_count;

static inline void note_answer(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  (void)context;
  assert_true(answer_count < ANSWERS_MAX);
  answers[answer_count].owner = waiter.owner;
  answers[answer_count].is_in = false;
  answers[answer_count++].outcome = *outcome;
}

static inline void note_in(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull) {
  (void)context, (void)task, (void)pull;
  assert_true(answer_count < ANSWERS_MAX);
  answers[answer_count].owner = waiter.owner;
  answers[answer_count++].is_in = true;
}

struct fixture {
  struct pwi_membership membership;
  struct pwi_shard *shard;
  enum pawl_type type;
  size_t sums; /* aggregates that were applied */
  size_t changes;
};

/* A vector that spans the ring, and a group of senders 1 to `members`; sender 5 is a stranger to it. */
static inline void start_with(struct fixture *f, uint64_t members, struct pwi_entry entry, uint64_t cap) {
  struct pwi_shard_config config = {.memory_max = cap, .answer = note_answer};
  *f = (struct fixture){.membership = membership_of(5), .shard = shard_of(&config), .type = entry.is.type};
  answer_count = 0;
  assert_int_equal(pwi_shard_hold(f->shard, WHOLE_RING), PAWL_OK);
  open_vector(f->shard, entry);
  open_vector(f->shard, group_of(GROUP));
  for (uint64_t id = 1; id <= members; id++)
    assert_int_equal(
        pwi_membership_join(&f->membership, (struct pwi_vector_id){GROUP}, (uint32_t)members, (struct pwi_sender){id}),
        PAWL_OK);
  pwi_shard_set_membership(f->shard, &f->membership);
}

static inline void start(struct fixture *f, uint64_t members) {
  start_with(f, members, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false), UINT64_MAX);
}

static inline void stop(struct fixture *f) {
  pwi_shard_destroy(f->shard);
  pwi_membership_fini(&f->membership);
}

/* The steps of a server after each request and each change of the membership. */
static inline void settle(struct fixture *f) {
  struct pwi_request request;
  struct pwi_aggregate *sum;
  while ((sum = pwi_shard_next_sum(f->shard, &request))) {
    struct pwi_served served;
    pawl_status status = pwi_shard_apply_sum(f->shard, sum, &request, &served);
    if (status == PAWL_NODE_FULL) {
      pwi_shard_break_sum(f->shard, sum);
    } else if (status) {
      pwi_shard_drop_sum(f->shard, sum, PWI_CODE_NOT_HERE, PAWL_OK);
    } else {
      f->sums += served.effect == PWI_EFFECT_ROWS;
      pwi_shard_end_sum(f->shard, sum, note_in, NULL);
    }
  }
}

/* A push of all keys; the n-th value is n times `factor`. The owner of its waiter is its sender. */
struct push {
  struct pwi_request request;
  int64_t values[VALUES];
  struct iovec part;
};

static inline void make_push(struct push *push, uint64_t sender, uint64_t task, uint64_t tick, int64_t factor) {
  push->request = request_of(PWI_REQUEST_PUSH, VECTOR, SIZE);
  push->request.terms.other = GROUP;
  push->request.terms.prior = task - 1;
  push->request.sender.id = sender;
  push->request.task = task;
  push->request.tick = tick;
  push->request.waiter = (struct pwi_waiter){.owner = sender, .number = task};
  push->request.arc = pawl_range_of(0, SIZE);
  push->request.value_type = PAWL_I64;
  for (int i = 0; i < VALUES; i++) push->values[i] = i * factor;
  push->part = (struct iovec){push->values, sizeof push->values};
  push->request.values = &push->part;
  push->request.value_parts = 1;
}

static inline struct pwi_served give(struct fixture *f, const struct push *push) {
  struct pwi_served served = serve(f->shard, &push->request, NULL);
  f->changes += served.effect != PWI_EFFECT_NONE;
  settle(f);
  return served;
}

static inline struct pwi_served push(struct fixture *f, uint64_t sender, uint64_t task, uint64_t tick, int64_t factor) {
  struct push push;
  make_push(&push, sender, task, tick, factor);
  return give(f, &push);
}

/* The answer is deferred, and the push was not applied by itself. */
static inline void assert_waits(const struct pwi_served *served) {
  assert_true(served->is_deferred);
  assert_int_equal(served->effect, PWI_EFFECT_NONE);
}

/* Every value is its number times `factor`. */
static inline void assert_stored(struct fixture *f, int64_t factor) {
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  int64_t out[VALUES];
  assert_served(f->shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  for (int i = 0; i < VALUES; i++) assert_int_equal(out[i], i * factor);
}

/* Returns true if a pull after this task of the sender is answered. */
static inline bool has_task(struct fixture *f, uint64_t sender, uint64_t task) {
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  int64_t out[VALUES];
  pull.sender.id = sender;
  pull.terms.prior = task;
  return serve(f->shard, &pull, out).outcome.code == PWI_CODE_OK;
}

static inline size_t told(uint64_t owner) {
  size_t count = 0;
  for (size_t i = 0; i < answer_count; i++) count += answers[i].owner == owner;
  return count;
}

static const uint64_t some_keys[] = {0, 3, 4, 17, 39};
static const uint64_t other_keys[] = {0, 3, 4, 18, 39};

static inline void name_keys(struct push *push, enum pwi_request_keys how, const uint64_t *keys) {
  push->request.terms.keys = how;
  push->request.terms.keep = how == PWI_KEYS_LIST;
  push->request.terms.rows = 5;
  push->request.keys = how == PWI_KEYS_LIST ? keys : NULL;
  push->request.signature = pwi_keys_signature(keys, 5);
  push->request.encoded = keys;
  push->request.encoded_as = (struct pwi_section){.length = how == PWI_KEYS_LIST ? 40 : 0};
  push->part.iov_len = 5 * WIDTH * 8;
}

#endif
