/* For tests of chains: short descriptions of views, and chains that record their replies. */
#ifndef PWI_SERVER_CHAIN_TESTING_H
#define PWI_SERVER_CHAIN_TESTING_H

#include "base/memory.h"
#include "base/testing.h"
#include "ring/place.h"
#include "ring/view.h"
#include "server/chain.h"

#define QUARTER (UINT64_C(1) << 62)
#define HALF (2 * QUARTER)
#define RING pawl_range_of(0, PWI_RING_END)

#define TOLD_MAX 64
#define NODES 6

/* An arc whose chain is written as digits, one for each node. An f after a digit: the member is being
 * filled. */
static inline struct pwi_arc arc_of(uint64_t begin, uint64_t since, const char *chain) {
  struct pwi_arc arc = {.begin = begin, .since = since};
  for (const char *at = chain; *at; at++) {
    if (*at == 'f')
      arc.chain[arc.count - 1].filling = true;
    else
      arc.chain[arc.count++].node.id = (uint64_t)(*at - '0');
  }
  return arc;
}

static inline struct pwi_view *view_of(const struct pwi_arc *arcs, size_t count) {
  struct pwi_view_node nodes[NODES];
  struct pwi_view *view;
  uint64_t epoch = 1;
  for (uint64_t i = 0; i < NODES; i++)
    nodes[i] = (struct pwi_view_node){
        .node = {i + 1}, .process = i + 1, .weight = 1, .address = "here:1", .host = "", .rack = ""};
  for (size_t i = 0; i < count; i++)
    if (arcs[i].since > epoch) epoch = arcs[i].since;
  assert_int_equal(pwi_view_create(epoch, nodes, NODES, arcs, count, NULL, &view), PAWL_OK);
  return view;
}

/* One node's chains. */
struct member {
  uint64_t node;
  struct pwi_log_entries log_entries;
  struct pwi_chains chains;
  size_t pumped;
  struct {
    uint64_t number;
    bool is_lost;
  } told[TOLD_MAX];
  size_t told_count;
};

/* Replies of these tests are numbers. */
static inline void *reply_of(uint64_t number) { return (void *)(uintptr_t)number; }

static void note_answer(void *context, void *reply, bool is_lost) {
  struct member *member = context;
  assert_true(member->told_count < TOLD_MAX);
  member->told[member->told_count].number = (uintptr_t)reply;
  member->told[member->told_count++].is_lost = is_lost;
}

static void note_pump(void *context, struct pwi_chain *chain) {
  (void)chain;
  ((struct member *)context)->pumped++;
}

/* Log entries of these tests are small: none needs a net. */
static inline void start_member(struct member *member, uint64_t node) {
  *member = (struct member){.node = node};
  pwi_log_entries_init(&member->log_entries, NULL);
  member->chains = (struct pwi_chains){
      .log_entries = &member->log_entries, .answer = note_answer, .pump = note_pump, .context = member};
}

static inline void stop_member(struct member *member) {
  pwi_chains_fini(&member->chains);
  pwi_log_entries_fini(&member->log_entries);
}

static inline pawl_status try_view(struct member *member, const struct pwi_arc *arcs, size_t count) {
  struct pwi_view *view = view_of(arcs, count);
  pawl_status status = pwi_chains_write_versions(&member->chains);
  if (!status) status = pwi_chains_follow_view(&member->chains, view, member->node);
  pwi_view_release(view);
  return status;
}

static inline void see_view(struct member *member, const struct pwi_arc *arcs, size_t count) {
  assert_int_equal(try_view(member, arcs, count), PAWL_OK);
}

#endif
