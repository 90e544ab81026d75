/* Applications that call collectives and check every result. */
#include "collectors.h"

#include <math.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"
#include "peer/collective/arithmetic.h"
#include "peer/inside.h"

#define TICK (5 * MS)

enum { TIMER_TICK, TIMER_CALL, TIMER_WAKE };

static void broken(const struct collector *member, const char *what, uint64_t value) {
  pwi_sim_fail(member->all->cluster.sim, PAWL_CORRUPT, "member %u: %s: %llu", member->index, what,
               (unsigned long long)value);
}

static void enter(const struct collector *member) {
  if (member->all->entered) member->all->entered(member);
}

static void leave(const struct collector *member) {
  if (member->all->left) member->all->left(member);
}

struct pwi_sender collector_id(const struct collector *member) {
  struct pwi_client_state state;
  if (!member->client.client) return (struct pwi_sender){0};
  pwi_client_state(member->client.client, &state);
  return (struct pwi_sender){state.sender};
}

/* --- the reference -------------------------------------------------------------------------------------- */

static double load(enum pawl_type type, const void *values, size_t i) {
  return type == PAWL_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void store(enum pawl_type type, void *values, size_t i, double value) {
  if (type == PAWL_F32)
    ((float *)values)[i] = (float)value;
  else
    ((double *)values)[i] = value;
}

/* The sum of two floats in double is exact before it is rounded to float. A NaN in double becomes the same one in float. */
static double combine(enum pawl_collective_operator operator_, enum pawl_type type, double a, double b) {
  double value = operator_ == PAWL_COLLECTIVE_MIN ? (b < a ? b : a) : b > a ? b : a;
  if (operator_ == PAWL_COLLECTIVE_SUM) value = type == PAWL_F32 ? (double)((float)a + (float)b) : a + b;
  uint64_t nan = COLLECTIVE_NAN_64;
  if (a != a || b != b || value != value) memcpy(&value, &nan, sizeof value);
  return value;
}

void collectors_reduce(const struct collective_call *call, const void *const *inputs, uint32_t size, void *out) {
  for (uint32_t block = 0; block < size; block++) {
    size_t first = 0, count = call->count / size + (block < call->count % size);
    for (uint32_t i = 0; i < block; i++) first += call->count / size + (i < call->count % size);
    for (size_t i = first; i < first + count; i++) {
      double value = load(call->type, inputs[(block + 1) % size], i);
      for (uint32_t k = 2; k <= size; k++)
        value = combine(call->operator_, call->type, value, load(call->type, inputs[(block + k) % size], i));
      store(call->type, out, i, value);
    }
  }
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static uint64_t draw(const struct pwi_collective *engine, uint64_t sequence, uint64_t what) {
  uint64_t key[] = {engine->epoch.number, engine->epoch.round, sequence, what};
  return pwi_hash(key, sizeof key, 11);
}

static void choose(const struct collector *member, uint64_t sequence, struct collective_call *call) {
  const struct pwi_collective *engine = member->engine;
  uint64_t largest = member->all->largest;
  *call = (struct collective_call){.kind = (enum collective_kind)(1 + draw(engine, sequence, 0) % 5),
                                   .type = draw(engine, sequence, 1) % 2 ? PAWL_F32 : PAWL_F64};
  if (call->kind == COLLECTIVE_BARRIER) return;
  uint64_t limits[] = {engine->size, 100, 3000, largest};
  uint64_t limit = limits[draw(engine, sequence, 2) % 4];
  if (limit > largest) limit = largest;
  call->count = draw(engine, sequence, 3) % (limit + 1);
  if (call->kind == COLLECTIVE_ALL_GATHER) call->count /= COLLECTORS_MAX;
  if (call->kind == COLLECTIVE_BROADCAST) call->root = (uint32_t)(draw(engine, sequence, 4) % engine->size);
  if (call->kind >= COLLECTIVE_ALL_REDUCE)
    call->operator_ = (enum pawl_collective_operator)(draw(engine, sequence, 5) % 3);
}

static void fill(const struct pwi_collective *engine, const struct collective_call *call, uint64_t sequence,
                 uint64_t id, void *values) {
  uint64_t state = pwi_hash(&id, sizeof id, draw(engine, sequence, 9));
  for (size_t i = 0; i < call->count; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double value = (double)(int64_t)(state >> 20) * (double)(1 + (state & 1023));
    if (state >> 56 == 0) value = state & UINT64_C(1) << 40 ? -(double)NAN : (double)INFINITY;
    if (state >> 56 == 1) value = state & UINT64_C(1) << 40 ? -0.0 : -(double)INFINITY;
    store(call->type, values, i, value);
  }
}

static size_t capacity(const struct collectors *all) { return all->largest * 8 + 2 * COLLECTORS_GUARD; }

static void prepare(struct collector *member) {
  struct pwi_collective *engine = member->engine;
  struct collective_call *call = &member->work.call;
  uint64_t sequence = engine->sequence + 1;
  if (engine->size == 0) { /* members could not begin; the call fails */
    member->work = (struct pwi_collective_work){.call = {.kind = COLLECTIVE_BARRIER, .type = PAWL_F32}};
    return;
  }
  choose(member, sequence, call);
  if (member->all->choose) member->all->choose(member, call);
  bool is_in_place = draw(engine, sequence, 6) % 2;
  unsigned char *in = member->in + COLLECTORS_GUARD, *out = member->out + COLLECTORS_GUARD;
  size_t value = pawl_type_size(call->type), first, count;
  size_t results = call->count * (call->kind == COLLECTIVE_ALL_GATHER ? engine->size : 1);
  memset(member->out, 0x5a, results * value + 2 * COLLECTORS_GUARD);
  pawl_collective_block(call->count, engine->size, engine->rank, &first, &count);
  member->work.in = in;
  member->work.out = out;
  member->work.room = member->all->largest;
  if (is_in_place && call->kind == COLLECTIVE_ALL_REDUCE) member->work.in = out;
  if (is_in_place && call->kind == COLLECTIVE_ALL_GATHER) member->work.in = out + engine->rank * call->count * value;
  if (call->kind == COLLECTIVE_BROADCAST) member->work.in = call->root == engine->rank ? out : in;
  fill(engine, call, sequence, collector_id(member).id, (void *)(uintptr_t)member->work.in);
  if (call->kind == COLLECTIVE_BROADCAST) member->work.in = NULL;
  if (is_in_place && call->kind == COLLECTIVE_REDUCE_SCATTER) member->work.out = in + first * value;
}

/* What all members must have got together. */
static void compute(const struct pwi_collective *engine, const struct collective_call *call, unsigned char *result) {
  size_t value = pawl_type_size(call->type);
  void *inputs[COLLECTORS_MAX];
  if (call->kind == COLLECTIVE_BROADCAST) fill(engine, call, engine->sequence, engine->ids[call->root], result);
  for (uint32_t i = 0; i < engine->size && call->kind == COLLECTIVE_ALL_GATHER; i++)
    fill(engine, call, engine->sequence, engine->ids[i], result + i * call->count * value);
  if (call->kind < COLLECTIVE_ALL_REDUCE) return;
  for (uint32_t i = 0; i < engine->size; i++) {
    inputs[i] = pwi_alloc_zero(call->count + 1, value);
    fill(engine, call, engine->sequence, engine->ids[i], inputs[i]);
  }
  collectors_reduce(call, (const void *const *)inputs, engine->size, result);
  for (uint32_t i = 0; i < engine->size; i++) pwi_free(inputs[i]);
}

static uint64_t hash_members(const struct pwi_collective *engine) {
  return pwi_hash(engine->ids, engine->size * sizeof *engine->ids, 1);
}

/* What the member must have got, and how many bytes. It is computed once for all members. */
static const unsigned char *expect(struct collector *member, size_t *size_out) {
  struct collectors *all = member->all;
  const struct pwi_collective *engine = member->engine;
  const struct collective_call *call = &member->work.call;
  size_t value = pawl_type_size(call->type), first, count;
  bool is_known = pwi_collective_compare(all->expected.epoch, engine->epoch) == 0 &&
                  all->expected.sequence == engine->sequence && all->expected.members == hash_members(engine) &&
                  pwi_collective_is_same(&all->expected.call, call);
  if (!is_known) compute(engine, call, all->expected.values);
  all->expected.epoch = engine->epoch;
  all->expected.sequence = engine->sequence;
  all->expected.members = hash_members(engine);
  all->expected.call = *call;
  *size_out = call->count * value * (call->kind == COLLECTIVE_ALL_GATHER ? engine->size : 1);
  if (call->kind != COLLECTIVE_REDUCE_SCATTER) return all->expected.values;
  pawl_collective_block(call->count, engine->size, engine->rank, &first, &count);
  *size_out = count * value;
  return all->expected.values + first * value;
}

static void check_guards(const struct collector *member, size_t size) {
  const unsigned char *out = member->work.out, *end = out + size;
  if (member->work.call.kind == COLLECTIVE_REDUCE_SCATTER && out != member->out + COLLECTORS_GUARD) return;
  for (size_t i = 1; i <= COLLECTORS_GUARD; i++)
    if (out[-(ptrdiff_t)i] != 0x5a || end[i - 1] != 0x5a) broken(member, "wrote beside the result", i);
}

static void check_members(struct collector *member) {
  struct collectors *all = member->all;
  const struct pwi_collective *engine = member->engine;
  uint64_t hash = hash_members(engine);
  for (size_t i = 0; i < all->epoch_count; i++) {
    if (pwi_collective_compare(all->epochs[i].epoch, engine->epoch) != 0) continue;
    if (all->epochs[i].hash != hash || all->epochs[i].size != engine->size)
      broken(member, "members of one epoch differ", engine->epoch.number);
    return;
  }
  assert_true(all->epoch_count < COLLECTORS_EPOCHS);
  all->epochs[all->epoch_count].epoch = engine->epoch;
  all->epochs[all->epoch_count].size = engine->size;
  all->epochs[all->epoch_count++].hash = hash;
}

static void check_result(struct collector *member) {
  size_t size;
  const unsigned char *expected = expect(member, &size);
  if (size > 0 && memcmp(expected, member->work.out, size) != 0)
    broken(member, "wrong result of operation", member->engine->sequence);
  check_guards(member, size);
  check_members(member);
  member->all->checked++;
  member->all->values += size / 4;
}

/* --- the application ------------------------------------------------------------------------------------ */

static void call_later(struct collector *member) {
  struct collectors *all = member->all;
  int64_t pause =
      all->pause_max ? (int64_t)pwi_random_below(member->client.random, (uint64_t)all->pause_max) : INT64_C(0);
  member->is_waiting = true;
  pwi_cluster_timer(&member->client, pause, TIMER_CALL);
}

static void renew(struct collector *member) {
  member->is_renewing = true;
  enter(member);
  pwi_collective_renew(member->engine);
  leave(member);
}

static void failed(struct collector *member, pawl_status status) {
  bool is_expected = status == PAWL_NODE_GONE || status == PAWL_CANCELLED;
  member->gone += status == PAWL_NODE_GONE;
  member->cancelled += status == PAWL_CANCELLED;
  snprintf(member->problem, sizeof member->problem, "%s", pwi_collective_problem(member->engine));
  if (!is_expected) {
    member->status = status;
    if (!member->all->is_mixed_up) broken(member, "unexpected status", (uint64_t)-status);
  }
  if (member->all->must_end) {
    member->must_close = true;
    collector_close(member);
    return;
  }
  renew(member);
}

static void renew_over(struct collector *member) {
  member->is_renewing = false;
  pawl_status status = pwi_collective_renewed(member->engine);
  if (status) /* what a program does */
    member->must_close = member->must_reopen = true;
  else
    call_later(member);
}

static void go_on(struct collector *member) {
  const struct collectors *all = member->all;
  if (!all->operations || member->completed % all->operations != 0) {
    call_later(member);
    return;
  }
  member->must_close = true;
  member->must_reopen = member->completed < all->operations * all->openings;
}

static void call_over(struct collector *member) {
  member->is_calling = false;
  pawl_status status = pwi_collective_end(member->engine);
  if (status == PAWL_TIMED_OUT) {
    member->timed_out++;
    call_later(member);
    return;
  }
  member->work.call.kind = 0;
  if (status) {
    failed(member, status);
    return;
  }
  member->completed++;
  struct pawl_collective_state state;
  pwi_collective_state(member->engine, &state);
  if (member->all->must_grow && state.members > state.size)
    renew(member);
  else
    go_on(member);
}

static void look(struct collector *member) {
  struct pwi_collective *engine = member->engine;
  if (!engine || engine->is_closing) return;
  if (member->is_renewing && pwi_collective_has_begun(engine)) renew_over(member);
  if (!member->is_calling) return;
  if (pwi_collective_is_over(engine)) {
    if (engine->status == PAWL_OK) check_result(member);
    call_over(member);
  } else if (member->give_up_at && pwi_net_now(member->client.net) >= member->give_up_at) {
    call_over(member);
  }
}

static void begin_call(struct collector *member) {
  struct collectors *all = member->all;
  member->is_waiting = false;
  if (!member->engine || member->must_close || member->is_renewing || member->is_calling) return;
  if (member->work.call.kind == 0 && !pwi_collective_has_begun(member->engine)) { /* the call depends on the members */
    member->is_waiting = true;
    pwi_cluster_timer(&member->client, MS, TIMER_CALL);
    return;
  }
  if (member->work.call.kind == 0) prepare(member);
  member->is_calling = true;
  member->give_up_at = 0;
  if (all->patience_max) {
    int64_t patience = 1 + (int64_t)pwi_random_below(member->client.random, (uint64_t)all->patience_max);
    member->give_up_at = pwi_net_now(member->client.net) + patience;
    pwi_cluster_timer(&member->client, patience, TIMER_WAKE);
  }
  enter(member);
  pawl_status status = pwi_collective_begin(member->engine, &member->work);
  leave(member);
  if (status) broken(member, "cannot begin", (uint64_t)-status);
}

static void wakes(void *context) {
  struct collector *member = context;
  pwi_cluster_timer(&member->client, 0, TIMER_WAKE);
}

static void has_closed(void *context) {
  struct collector *member = context;
  member->is_closed = true;
}

static void open_engine(struct collector *member) {
  struct pwi_collective_config config = {.peers = member->peers,
                                         .net = member->client.net,
                                         .group = member->group,
                                         .name = "model",
                                         .log = member->peers->config.log,
                                         .life = ++member->all->lives,
                                         .context = member,
                                         .wakes = wakes,
                                         .closed = has_closed};
  member->must_close = member->is_closed = member->is_calling = member->is_renewing = false;
  member->work.call.kind = 0;
  enter(member);
  pawl_status status = pwi_collective_create(&config, &member->engine);
  leave(member);
  if (status && member->all->is_mixed_up)
    member->status = status; /* the next tick tries again */
  else if (status)
    broken(member, "cannot open", (uint64_t)-status);
  else
    call_later(member);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct collector *member = (struct collector *)((char *)asking - offsetof(struct collector, asking));
  member->is_asking = false;
  if (status || size != 8) {
    pwi_sim_fail(member->all->cluster.sim, status, "member %u cannot join the group", member->index);
    return;
  }
  member->joined_as = collector_id(member);
  member->group.id = pwi_get_u64(payload);
}

static void join(struct collector *member) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, COLLECTORS_GROUP);
  pwi_write_u32(&writer, member->all->founders);
  member->asking.replied = joined;
  member->is_asking = true;
  pawl_status status = pwi_client_ask(member->client.client, &member->asking, PWI_ASK_PEERS, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(member->all->cluster.sim, status, "member %u cannot ask", member->index);
}

static bool is_complete(const struct collector *member) {
  const struct pwi_membership *membership = pwi_client_membership(member->client.client);
  const struct pwi_membership_group *group = member->group.id ? pwi_membership_group(membership, member->group) : NULL;
  return group && group->complete;
}

void collector_close(struct collector *member) {
  enter(member);
  pwi_collective_close(member->engine, pwi_net_now(member->client.net) + 2 * PWI_SIM_SECOND);
  leave(member);
}

static void reopen(struct collector *member) {
  pwi_collective_destroy(member->engine);
  member->engine = NULL;
  member->must_reopen = member->is_waiting = false;
}

static void tick(struct collector *member) {
  bool is_renewed = collector_id(member).id != 0 && collector_id(member).id != member->joined_as.id;
  if (is_renewed && !member->is_asking && !member->must_not_open) join(member);
  if (member->must_reopen && member->is_closed) reopen(member);
  if (!member->engine && !member->must_not_open && is_complete(member)) open_engine(member);
  struct pwi_collective *engine = member->engine;
  if (engine && member->must_close && !engine->is_closing) collector_close(member);
  int64_t now = pwi_net_now(member->client.net);
  if (engine && !member->is_closed && pwi_collective_look_at(engine) <= now) pwi_collective_look(engine, now);
  pwi_cluster_timer(&member->client, TICK, TIMER_TICK);
}

static void timer(void *context, uint64_t cookie) {
  struct collector *member = context;
  if (cookie == TIMER_TICK) tick(member);
  if (cookie == TIMER_CALL && member->is_waiting) begin_call(member);
  look(member);
}

static void started(void *context) {
  struct collector *member = context;
  pawl_status status = pwi_client_peers(member->client.client, &member->peers);
  if (status) pwi_sim_fail(member->all->cluster.sim, status, "a member cannot start");
  pwi_cluster_timer(&member->client, TICK, TIMER_TICK);
}

/* The process is gone with all that it knew. */
static void stopped(void *context) {
  struct collector *member = context;
  if (member->engine) member->engine->is_closed = false; /* its net is gone with all regions */
  pwi_collective_destroy(member->engine);
  member->engine = NULL;
  member->group.id = 0;
  member->joined_as.id = 0;
  member->is_asking = member->is_calling = member->is_waiting = member->is_renewing = false;
}

void collectors_open(struct collectors *all, const struct pwi_cluster_config *config) {
  if (all->largest == 0) all->largest = 3000;
  if (all->founders == 0) all->founders = all->count;
  all->expected.values = pwi_alloc_zero(capacity(all), 1);
  assert_non_null(all->expected.values);
  cluster_open(&all->cluster, config);
  for (uint32_t i = 0; i < all->count; i++) {
    struct collector *member = &all->members[i];
    bool must_not_open = member->must_not_open;
    *member = (struct collector){.all = all, .index = i, .must_not_open = must_not_open};
    member->in = pwi_alloc_zero(capacity(all), 1);
    member->out = pwi_alloc_zero(capacity(all), 1);
    assert_true(member->in && member->out);
    member->client = (struct pwi_cluster_client){.job = "collectors",
                                                 .listens = true,
                                                 .started = started,
                                                 .stopped = stopped,
                                                 .timer = timer,
                                                 .context = member};
    sprintf(member->client.name, "c%u", i);
    cluster_client_add(&all->cluster, &member->client);
  }
}

void collectors_close(struct collectors *all) {
  pwi_cluster_close(&all->cluster);
  for (uint32_t i = 0; i < all->count; i++) {
    stopped(&all->members[i]);
    pwi_free(all->members[i].in);
    pwi_free(all->members[i].out);
  }
  pwi_free(all->expected.values);
}

bool collectors_are_running(void *context) {
  struct collectors *all = context;
  for (uint32_t i = 0; i < all->count; i++) {
    const struct collector *member = &all->members[i];
    if (member->client.client && !member->must_not_open && (!member->is_closed || member->must_reopen)) return true;
  }
  return false;
}

void collectors_print(const struct collectors *all) {
  for (uint32_t i = 0; i < all->count; i++) {
    const struct collector *member = &all->members[i];
    const struct pwi_collective *engine = member->engine;
    print_message("member %u id=%llu completed=%llu calling=%d waiting=%d renewing=%d closed=%d\n", i,
                  (unsigned long long)collector_id(member).id, (unsigned long long)member->completed,
                  member->is_calling, member->is_waiting, member->is_renewing, member->is_closed);
    if (!engine) continue;
    print_message("  epoch=%llu.%u size=%u rank=%u live=%d readying=%d number=%llu phase=%d sequence=%llu kind=%d "
                  "send=%zu.%u.%zu/%u receive=%zu.%u.%zu/%u %s\n",
                  (unsigned long long)engine->epoch.number, engine->epoch.round, engine->size, engine->rank,
                  engine->is_live, engine->is_readying, (unsigned long long)pwi_channel_number(engine->channel),
                  engine->phase, (unsigned long long)engine->sequence, (int)engine->work.call.kind,
                  engine->send_at.segment, engine->send_at.index, engine->send_at.offset, engine->send_count,
                  engine->receive_at.segment, engine->receive_at.index, engine->receive_at.offset,
                  engine->receive_count, engine->problem);
    for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next)
      print_message("    peer %llu linked=%d in=%d out=%d gone=%d ready=%llu staged=%llu put=%llu there=%llu remote=%d "
                    "landed=%llu taken=%llu\n",
                    (unsigned long long)peer->sender.id, peer->is_linked, peer->is_in, peer->is_out, peer->is_gone,
                    (unsigned long long)peer->ready_number, (unsigned long long)peer->staged,
                    (unsigned long long)peer->put, (unsigned long long)peer->taken_there, peer->has_remote,
                    (unsigned long long)peer->landed, (unsigned long long)peer->taken);
  }
}

void collectors_run(struct collectors *all, int64_t limit) {
  pawl_status status = pwi_cluster_run_while(&all->cluster, collectors_are_running, all, limit);
  if (status) collectors_print(all);
  cluster_check(&all->cluster, status, "running");
}
