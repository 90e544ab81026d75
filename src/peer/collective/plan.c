/* The transfers of operations.
 *
 * SMALL values are gathered in ceil(log2(members)) rounds (Bruck and others, 1997): in round k a member sends all that
 * it has to the member 2^k ranks higher, and receives as much from the one 2^k ranks lower. Then every member has the
 * values of all, and combines them itself. A barrier is a gathering of nothing. A small broadcast goes down a
 * binomial tree.
 *
 * LARGE values travel around the ring of ranks. For a reduction, block b starts at rank b + 1, every rank on the way
 * adds its own values, and rank b, the last, has the result; in an all-reduce the result makes another round. In each
 * step all members send and receive at the same time, piece by piece, and one segment follows another. A large broadcast passes the ring once.
 *
 * Both add in the same order: from rank b + 1 to rank b. */
#include <string.h>

#include "base/memory.h"
#include "peer/collective/arithmetic.h"
#include "peer/collective/inside.h"

void pawl_collective_block(size_t count, uint32_t size, uint32_t rank, size_t *first_out, size_t *count_out) {
  size_t each = count / size, more = count % size;
  *first_out = rank * each + (rank < more ? rank : more);
  *count_out = each + (rank < more);
}

uint32_t pwi_collective_distances(uint32_t size) {
  uint32_t count = 0;
  while (count < 32 && UINT64_C(1) << count < size) count++;
  return count;
}

/* A broadcast in a tree sends to every distance, and compares calls. */
pawl_status pwi_collective_make_lists(struct pwi_collective *engine) {
  size_t count = 2 * (size_t)engine->size + 34;
  struct collective_send *sends = pwi_resize_array(engine->sends, count, sizeof *sends);
  if (sends) engine->sends = sends;
  struct collective_receive *receives = pwi_resize_array(engine->receives, count, sizeof *receives);
  if (receives) engine->receives = receives;
  return sends && receives ? PAWL_OK : PAWL_NO_MEMORY;
}

/* --- lists ---------------------------------------------------------------------------------------------- */

static struct collective_peer *at_rank(const struct pwi_collective *engine, uint32_t rank) {
  return pwi_collective_find(engine, engine->ids[rank]);
}

static uint32_t around(const struct pwi_collective *engine, uint64_t rank) { return (uint32_t)(rank % engine->size); }

static struct collective_send *add_send(struct pwi_collective *engine, uint32_t distance, const void *from,
                                        size_t size) {
  struct collective_send *send = &engine->sends[engine->send_count];
  *send = (struct collective_send){
      .peer = at_rank(engine, around(engine, (uint64_t)engine->rank + distance)), .from = from, .size = size};
  for (uint32_t i = engine->send_count; i-- > 0 && send->index == 0;)
    if (engine->sends[i].peer == send->peer) send->index = engine->sends[i].index + 1;
  engine->send_count++;
  return send;
}

static struct collective_receive *add_receive(struct pwi_collective *engine, uint32_t distance, void *into,
                                              size_t size) {
  struct collective_receive *receive = &engine->receives[engine->receive_count];
  uint32_t rank = around(engine, (uint64_t)engine->rank + engine->size - distance);
  *receive = (struct collective_receive){.peer = at_rank(engine, rank), .into = into, .size = size};
  for (uint32_t i = engine->receive_count; i-- > 0 && receive->index == 0;)
    if (engine->receives[i].peer == receive->peer) receive->index = engine->receives[i].index + 1;
  engine->receive_count++;
  return receive;
}

/* The next send passes on what this receive gets. */
static void forward(struct pwi_collective *engine, struct collective_receive *receive) {
  struct collective_send *send = add_send(engine, 1, NULL, receive->size);
  send->is_forward = true;
  receive->forward = engine->send_count;
}

/* --- small ---------------------------------------------------------------------------------------------- */

static void plan_gather_small(struct pwi_collective *engine) {
  size_t bytes = engine->small_bytes;
  uint32_t rounds = pwi_collective_distances(engine->size);
  if (bytes > 0) memcpy(engine->scratch, engine->work.in, bytes);
  for (uint32_t k = 0; k < rounds; k++) {
    uint32_t distance = UINT32_C(1) << k;
    uint32_t members = distance < engine->size - distance ? distance : engine->size - distance;
    add_send(engine, distance, engine->scratch, members * bytes)->needs = k;
    add_receive(engine, distance, engine->scratch + distance * bytes, members * bytes);
  }
}

static const unsigned char *gathered(const struct pwi_collective *engine, uint64_t rank) {
  return engine->scratch + around(engine, engine->rank + engine->size - rank % engine->size) * engine->small_bytes;
}

/* Block `block` of the gathered values. */
static void combine_block(const struct pwi_collective *engine, uint32_t block, unsigned char *into) {
  const struct collective_call *call = &engine->work.call;
  size_t value = pawl_type_size(call->type), first, count;
  pawl_collective_block(call->count, engine->size, block, &first, &count);
  if (count == 0) return;
  memcpy(into, gathered(engine, (uint64_t)block + 1) + first * value, count * value);
  for (uint64_t i = 2; i <= engine->size; i++)
    pwi_collective_combine(call->operator_, call->type, into, into, gathered(engine, block + i) + first * value, count);
}

void pwi_collective_finish(struct pwi_collective *engine) {
  const struct collective_call *call = &engine->work.call;
  unsigned char *out = engine->work.out;
  size_t value = pawl_type_size(call->type), first, count;
  if (!engine->is_small || engine->small_bytes == 0) return;
  if (call->kind == COLLECTIVE_REDUCE_SCATTER) {
    combine_block(engine, engine->rank, out);
    return;
  }
  for (uint32_t i = 0; i < engine->size; i++) {
    pawl_collective_block(call->count, engine->size, i, &first, &count);
    if (call->kind == COLLECTIVE_ALL_REDUCE)
      combine_block(engine, i, out + first * value);
    else
      memcpy(out + i * engine->small_bytes, gathered(engine, i), engine->small_bytes);
  }
}

/* --- broadcast ------------------------------------------------------------------------------------------ */

/* Ranks count from the root. The parent of a member is its number without the lowest bit that is set. */
static void plan_tree(struct pwi_collective *engine, uint32_t number, size_t bytes) {
  uint32_t lowest = number ? number & (~number + 1) : UINT32_C(1) << 31;
  if (number) add_receive(engine, lowest, engine->work.out, bytes);
  for (uint32_t k = pwi_collective_distances(engine->size); k-- > 0;) {
    uint32_t distance = UINT32_C(1) << k;
    if (distance < lowest && (uint64_t)number + distance < engine->size)
      add_send(engine, distance, engine->work.out, bytes)->needs = engine->receive_count;
  }
}

static void plan_chain(struct pwi_collective *engine, uint32_t number, size_t bytes) {
  if (number == 0) {
    add_send(engine, 1, engine->work.out, bytes);
    return;
  }
  struct collective_receive *receive = add_receive(engine, 1, engine->work.out, bytes);
  if (number + 1 < engine->size) forward(engine, receive);
}

/* First an empty transfer to the next rank, to compare calls. */
static void plan_broadcast(struct pwi_collective *engine, size_t bytes) {
  uint32_t number = around(engine, (uint64_t)engine->rank + engine->size - engine->work.call.root);
  add_send(engine, 1, NULL, 0);
  add_receive(engine, 1, NULL, 0);
  if (bytes <= COLLECTIVE_SMALL)
    plan_tree(engine, number, bytes);
  else
    plan_chain(engine, number, bytes);
}

/* --- rings ---------------------------------------------------------------------------------------------- */

struct collective_block {
  size_t offset, size; /* in bytes */
};

static struct collective_block block_at(const struct pwi_collective *engine, uint64_t rank) {
  const struct collective_call *call = &engine->work.call;
  size_t value = pawl_type_size(call->type), first, count;
  if (call->kind == COLLECTIVE_ALL_GATHER)
    return (struct collective_block){around(engine, rank) * call->count * value, call->count * value};
  pawl_collective_block(call->count, engine->size, around(engine, rank), &first, &count);
  return (struct collective_block){first * value, count * value};
}

/* Receives block rank - 2 first, and the own block last. */
static void plan_reduce_ring(struct pwi_collective *engine) {
  uint64_t rank = (uint64_t)engine->rank + 2 * (uint64_t)engine->size;
  struct collective_block first = block_at(engine, rank - 1);
  const unsigned char *in = engine->work.in;
  unsigned char *out = engine->work.out;
  bool is_scatter = engine->work.call.kind == COLLECTIVE_REDUCE_SCATTER;
  add_send(engine, 1, in + first.offset, first.size);
  for (uint32_t step = 0; step + 1 < engine->size; step++) {
    struct collective_block block = block_at(engine, rank - 2 - step);
    bool is_last = step + 2 == engine->size;
    struct collective_receive *receive = add_receive(engine, 1, NULL, block.size);
    receive->own = in + block.offset;
    if (is_last) receive->into = is_scatter ? out : out + block.offset;
    if (!is_last || !is_scatter) forward(engine, receive);
  }
}

/* Receives block rank - 1 first. The own block was sent before. */
static void plan_gather_ring(struct pwi_collective *engine) {
  uint64_t rank = (uint64_t)engine->rank + engine->size;
  for (uint32_t step = 0; step + 1 < engine->size; step++) {
    struct collective_block block = block_at(engine, rank - 1 - step);
    struct collective_receive *receive =
        add_receive(engine, 1, (unsigned char *)engine->work.out + block.offset, block.size);
    if (step + 2 < engine->size) forward(engine, receive);
  }
}

static void plan_all_gather(struct pwi_collective *engine) {
  struct collective_block own = block_at(engine, engine->rank);
  unsigned char *place = (unsigned char *)engine->work.out + own.offset;
  if (place != engine->work.in) memcpy(place, engine->work.in, own.size);
  add_send(engine, 1, place, own.size);
  plan_gather_ring(engine);
}

/* Block 0 is the largest. */
static void plan_ring(struct pwi_collective *engine) {
  engine->segment_size = COLLECTIVE_SEGMENT;
  engine->segments = (block_at(engine, 0).size + COLLECTIVE_SEGMENT - 1) / COLLECTIVE_SEGMENT;
  if (engine->work.call.kind == COLLECTIVE_ALL_GATHER) {
    plan_all_gather(engine);
    return;
  }
  plan_reduce_ring(engine);
  if (engine->work.call.kind == COLLECTIVE_ALL_REDUCE) plan_gather_ring(engine);
}

/* One member alone. */
static void copy_own(struct pwi_collective *engine, size_t bytes) {
  if (engine->work.call.kind != COLLECTIVE_BROADCAST && bytes > 0 && engine->work.in != engine->work.out)
    memcpy(engine->work.out, engine->work.in, bytes);
}

void pwi_collective_plan(struct pwi_collective *engine) {
  const struct collective_call *call = &engine->work.call;
  size_t bytes = call->count * pawl_type_size(call->type);
  engine->send_count = engine->receive_count = 0;
  engine->send_at = engine->receive_at = (struct collective_cursor){0};
  engine->segments = 1;
  engine->segment_size = SIZE_MAX;
  engine->is_small = false;
  if (engine->size == 1) {
    copy_own(engine, bytes);
  } else if (call->kind == COLLECTIVE_BROADCAST) {
    plan_broadcast(engine, bytes);
  } else if (bytes <= COLLECTIVE_SMALL / engine->size) {
    engine->is_small = true;
    engine->small_bytes = bytes;
    plan_gather_small(engine);
  } else {
    plan_ring(engine);
  }
}
