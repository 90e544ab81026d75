/* Calls travelling to the store of sim/meta.h and back. */
#include "sim/meta.h"

#include <string.h>

#include "base/memory.h"
#include "sim/meta_inside.h"

#define STREAM 0x6d657461
#define RETRY_NS (50 * PWI_SIM_MILLISECOND) /* until a lost call is retried */

static const struct pwi_sim_delay way = {
    .min_ns = 100 * PWI_SIM_MICROSECOND, .mean_ns = PWI_SIM_MILLISECOND, .max_ns = 20 * PWI_SIM_MILLISECOND};

struct sim_meta_client {
  struct pwi_meta meta; /* must be first */
  struct pwi_sim_meta *store;
  struct pwi_sim_node node;
  struct pwi_net *net;
};

enum op_kind { OP_TRANSACT, OP_GRANT, OP_RENEW, OP_REVOKE };

/* One call, until its answer is delivered. It outlives its caller while it is travelling. */
struct meta_op {
  struct meta_op *next, **at; /* in the store's list */
  struct pwi_sim_meta *store;
  struct sim_meta_client *client; /* NULL: cancelled */
  struct pwi_sim_node node;
  struct pwi_meta_call *call;
  enum op_kind kind;
  struct pwi_meta_transaction transaction; /* its strings and values are in `memory` */
  char *memory;
  uint64_t lease;
  int64_t ttl, deadline;
  bool is_travelling; /* an event for it is scheduled */
  bool is_over;       /* the result can be delivered */
  struct meta_result result;
};

static void op_free(struct meta_op *op) {
  *op->at = op->next;
  if (op->next) op->next->at = op->at;
  pwi_meta_result_fini(&op->result);
  pwi_free(op->memory);
  pwi_free(op);
}

/* --- travelling ----------------------------------------------------------------------------------------- */

static void arrive(void *context);

static void travel(struct meta_op *op, int64_t delay, void (*event)(void *context)) {
  struct pwi_sim *sim = op->store->sim;
  op->is_travelling = true;
  if (pwi_sim_call_at(sim, pwi_sim_now(sim) + delay, event, op))
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for a call of the store");
}

static int64_t delay_of(struct pwi_sim_meta *store) { return pwi_sim_delay_draw(&way, &store->random); }

static bool is_cut(const struct meta_op *op) {
  return op->store->is_away || op->store->is_cut[op->node.index % SIM_META_NODES];
}

static void hand_over(struct meta_op *op) {
  op->is_over = true;
  op->client->meta.wake(op->client->meta.context);
}

/* Lost in either direction: retries it, or drops it if it was cancelled. */
static void lost(struct meta_op *op) {
  if (!op->client) {
    op_free(op);
    return;
  }
  pwi_meta_result_fini(&op->result);
  if (pwi_sim_now(op->store->sim) < op->deadline) {
    travel(op, RETRY_NS, arrive);
    return;
  }
  op->result.status = PAWL_TIMED_OUT;
  hand_over(op);
}

static void come_back(void *context) {
  struct meta_op *op = context;
  op->is_travelling = false;
  if (is_cut(op) || !op->client)
    lost(op);
  else
    hand_over(op);
}

static void arrive(void *context) {
  struct meta_op *op = context;
  op->is_travelling = false;
  if (is_cut(op)) {
    lost(op);
    return;
  }
  if (op->kind == OP_TRANSACT) pwi_sim_meta_transact(op->store, &op->transaction, &op->result);
  if (op->kind == OP_GRANT) pwi_sim_meta_grant(op->store, op->ttl, &op->result);
  if (op->kind == OP_RENEW) pwi_sim_meta_renew(op->store, op->lease, &op->result);
  if (op->kind == OP_REVOKE) pwi_sim_meta_revoke(op->store, op->lease, &op->result);
  travel(op, delay_of(op->store), come_back);
}

/* --- the calls ------------------------------------------------------------------------------------------ */

static struct meta_op *begin(struct pwi_meta *meta, struct pwi_meta_call *call, enum op_kind kind) {
  struct sim_meta_client *client = (struct sim_meta_client *)meta;
  struct pwi_sim_meta *store = client->store;
  struct meta_op *op = pwi_alloc_zero(1, sizeof *op);
  if (!op) return NULL;
  int64_t now = pwi_sim_now(store->sim);
  *op = (struct meta_op){.store = store, .client = client, .node = client->node, .call = call, .kind = kind};
  op->deadline = call->patience_ns > INT64_MAX - now ? INT64_MAX : now + call->patience_ns;
  op->next = store->ops;
  op->at = &store->ops;
  if (op->next) op->next->at = &op->next;
  store->ops = op;
  call->inside = op;
  travel(op, delay_of(store), arrive);
  return op;
}

static size_t step_size(const struct pwi_meta_step *step) {
  return strlen(step->key) + 1 + (step->end ? strlen(step->end) + 1 : 0) + step->size;
}

static size_t transaction_size(const struct pwi_meta_transaction *transaction) {
  size_t size = 0;
  for (size_t i = 0; i < transaction->test_count; i++)
    size += strlen(transaction->tests[i].key) + 1 + transaction->tests[i].size;
  for (size_t i = 0; i < transaction->step_count; i++) size += step_size(&transaction->steps[i]);
  for (size_t i = 0; i < transaction->other_count; i++) size += step_size(&transaction->others[i]);
  return size;
}

static const void *keep(char **memory, const void *bytes, size_t size) {
  if (!bytes) return NULL;
  char *copy = *memory;
  memcpy(copy, bytes, size);
  *memory += size;
  return copy;
}

static const char *keep_text(char **memory, const char *text) {
  return text ? keep(memory, text, strlen(text) + 1) : NULL;
}

static void keep_steps(char **memory, struct pwi_meta_step *steps, size_t count) {
  for (size_t i = 0; i < count; i++) {
    steps[i].key = keep_text(memory, steps[i].key);
    steps[i].end = keep_text(memory, steps[i].end);
    steps[i].value = keep(memory, steps[i].value, steps[i].size);
  }
}

static void keep_transaction(struct meta_op *op, char *memory, const struct pwi_meta_transaction *transaction) {
  op->memory = memory;
  op->transaction = *transaction;
  for (size_t i = 0; i < transaction->test_count; i++) {
    op->transaction.tests[i].key = keep_text(&memory, transaction->tests[i].key);
    op->transaction.tests[i].value = keep(&memory, transaction->tests[i].value, transaction->tests[i].size);
  }
  keep_steps(&memory, op->transaction.steps, transaction->step_count);
  keep_steps(&memory, op->transaction.others, transaction->other_count);
}

static pawl_status transact(struct pwi_meta *meta, struct pwi_meta_call *call,
                            const struct pwi_meta_transaction *transaction) {
  char *memory = pwi_alloc(transaction_size(transaction));
  struct meta_op *op = memory ? begin(meta, call, OP_TRANSACT) : NULL;
  if (!op) {
    pwi_free(memory);
    return PAWL_NO_MEMORY;
  }
  keep_transaction(op, memory, transaction);
  return PAWL_OK;
}

static pawl_status grant(struct pwi_meta *meta, struct pwi_meta_call *call, int64_t ttl_ns) {
  struct meta_op *op = begin(meta, call, OP_GRANT);
  if (!op) return PAWL_NO_MEMORY;
  op->ttl = ttl_ns;
  return PAWL_OK;
}

static pawl_status renew(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease) {
  struct meta_op *op = begin(meta, call, OP_RENEW);
  if (!op) return PAWL_NO_MEMORY;
  op->lease = lease;
  return PAWL_OK;
}

static pawl_status revoke(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease) {
  struct meta_op *op = begin(meta, call, OP_REVOKE);
  if (!op) return PAWL_NO_MEMORY;
  op->lease = lease;
  return PAWL_OK;
}

static void abandon(struct meta_op *op) {
  op->call->inside = NULL;
  op->client = NULL;
  if (!op->is_travelling) op_free(op);
}

static void cancel(struct pwi_meta *meta, struct pwi_meta_call *call) {
  (void)meta;
  if (call->inside) abandon(call->inside);
}

/* The oldest call whose answer has come. */
static struct meta_op *next_over(const struct sim_meta_client *client) {
  struct meta_op *found = NULL;
  for (struct meta_op *op = client->store->ops; op; op = op->next)
    if (op->client == client && op->is_over) found = op;
  return found;
}

static void turn(struct pwi_meta *meta) {
  struct sim_meta_client *client = (struct sim_meta_client *)meta;
  for (struct meta_op *op; (op = next_over(client));) {
    struct pwi_meta_call *call = op->call;
    struct meta_result result = op->result;
    op->result = (struct meta_result){0};
    call->inside = NULL;
    op_free(op);
    call->done(call, result.status, result.status ? NULL : &result.answer);
    pwi_meta_result_fini(&result);
  }
}

static void destroy(struct pwi_meta *meta) {
  struct sim_meta_client *client = (struct sim_meta_client *)meta;
  for (struct meta_op *op = client->store->ops, *next; op; op = next) {
    next = op->next;
    if (op->client == client) abandon(op);
  }
  pwi_free(client);
}

static const struct pwi_meta_ops client_ops = {
    .transact = transact,
    .grant = grant,
    .renew = renew,
    .revoke = revoke,
    .cancel = cancel,
    .turn = turn,
    .destroy = destroy,
};

/* --- life ----------------------------------------------------------------------------------------------- */

static void wake_net(void *context) { pwi_net_wake(context); }

pawl_status pwi_sim_meta_open(struct pwi_sim_meta *store, struct pwi_sim_node node, struct pwi_net *net,
                              struct pwi_meta **meta_out) {
  struct sim_meta_client *client = pwi_alloc_zero(1, sizeof *client);
  if (!client) return PAWL_NO_MEMORY;
  client->meta = (struct pwi_meta){.ops = &client_ops, .wake = wake_net, .context = net};
  client->store = store;
  client->node = node;
  client->net = net;
  *meta_out = &client->meta;
  return PAWL_OK;
}

void pwi_sim_meta_cut(struct pwi_sim_meta *store, struct pwi_sim_node node, bool is_cut) {
  if (node.index == PWI_SIM_ALL.index)
    store->is_away = is_cut;
  else
    store->is_cut[node.index % SIM_META_NODES] = is_cut;
}

void pwi_sim_meta_watch(struct pwi_sim_meta *store, const struct pwi_sim_meta_watch *watch) { store->watch = *watch; }

pawl_status pwi_sim_meta_create(struct pwi_sim *sim, struct pwi_sim_meta **store_out) {
  struct pwi_sim_meta *store = pwi_alloc_zero(1, sizeof *store);
  if (!store) return PAWL_NO_MEMORY;
  store->sim = sim;
  store->revision = 1;
  pwi_sim_stream(sim, STREAM, &store->random);
  *store_out = store;
  return PAWL_OK;
}

void pwi_sim_meta_destroy(struct pwi_sim_meta *store) {
  if (!store) return;
  while (store->ops) op_free(store->ops);
  for (size_t i = 0; i < store->key_count; i++) {
    pwi_free(store->keys[i].key);
    pwi_free(store->keys[i].value);
  }
  pwi_free(store->keys);
  pwi_free(store->leases);
  pwi_free(store);
}
