/* Views: each rule is violated once and reported, views survive encoding, and decoding is safe on arbitrary
 * bytes. */
#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "ring/place.h"
#include "ring/view.h"

#define SEED UINT64_C(7)
#define QUARTER (UINT64_C(1) << 62)

/* Four nodes in three processes, two hosts, two racks; four arcs. Node 30 and node 40 die together. */
static const struct pwi_view_node four_nodes[] = {
    {{10}, 1, 0, 1, PWI_NODE_UP, "10.0.0.1:7000", "a", "r1"},
    {{20}, 2, 0, 2, PWI_NODE_UP, "10.0.0.2:7000", "a", "r1"},
    {{30}, 3, 0, 1, PWI_NODE_DRAINING, "[::1]:7000", "b", "r2"},
    {{40}, 3, 1, 1, PWI_NODE_UP, "[::1]:7001", "b", "r2"},
};
static const struct pwi_arc four_arcs[] = {
    {0, 1, 2, {{{10}, false}, {{20}, false}}, 0},
    {QUARTER, 1, 3, {{{20}, false}, {{30}, false}, {{10}, true}}, 0},
    {2 * QUARTER, 1, 1, {{{30}, false}}, 0},
    {3 * QUARTER, 1, 2, {{{40}, false}, {{10}, true}}, 0},
};

/* Something to break. */
struct draft {
  uint64_t epoch;
  struct pwi_view_node nodes[8];
  size_t node_count;
  struct pwi_arc arcs[8];
  size_t arc_count;
};

static struct draft sound(void) {
  struct draft draft = {.epoch = 1, .node_count = 4, .arc_count = 4};
  memcpy(draft.nodes, four_nodes, sizeof four_nodes);
  memcpy(draft.arcs, four_arcs, sizeof four_arcs);
  return draft;
}

static struct pwi_view *publish(const struct draft *draft) {
  struct pwi_view *view = NULL;
  struct pwi_view_fault fault = {PWI_RULE_EPOCH, 99};
  assert_int_equal(
      pwi_view_create(draft->epoch, draft->nodes, draft->node_count, draft->arcs, draft->arc_count, &fault, &view),
      PAWL_OK);
  assert_int_equal(fault.rule, PWI_RULE_NONE);
  return view;
}

static void assert_breaks(const struct draft *draft, enum pwi_view_rule rule, size_t index) {
  struct pwi_view *view = NULL;
  struct pwi_view_fault fault = {0};
  assert_int_equal(
      pwi_view_create(draft->epoch, draft->nodes, draft->node_count, draft->arcs, draft->arc_count, &fault, &view),
      PAWL_INVALID);
  assert_null(view);
  assert_string_equal(pwi_view_rule_text(fault.rule), pwi_view_rule_text(rule));
  assert_int_equal(fault.index, index);
}

static void test_a_view_is_a_copy_and_is_found_by_position(void **state) {
  (void)state;
  struct draft draft = sound();
  char label[] = "changes";
  draft.nodes[0].host = label;
  struct pwi_view *view = publish(&draft);
  label[0] = 'X';
  memset(&draft, 0, sizeof draft);
  assert_string_equal(view->nodes[0].host, "changes");
  assert_int_equal(pwi_view_arc_of(view, 0), 0);
  assert_int_equal(pwi_view_arc_of(view, QUARTER - 1), 0);
  assert_int_equal(pwi_view_arc_of(view, QUARTER), 1);
  assert_int_equal(pwi_view_arc_of(view, 3 * QUARTER), 3);
  assert_int_equal(pwi_view_arc_of(view, PWI_RING_END - 1), 3);
  assert_int_equal(pwi_view_arc_range(view, 3).end, PWI_RING_END);
  assert_int_equal(pwi_view_arc_range(view, 1).end, 2 * QUARTER);
  assert_int_equal(pwi_view_head(view, 1)->node.id, 20);
  assert_int_equal(pwi_view_find(view, (struct pwi_node){30})->process, 3);
  assert_null(pwi_view_find(view, (struct pwi_node){31}));
  assert_null(pwi_view_find(view, (struct pwi_node){41}));
  assert_int_equal(pwi_arc_full(&view->arcs[1]), 2);
  assert_int_equal(pwi_arc_find(&view->arcs[1], (struct pwi_node){10}), 2);
  assert_int_equal(pwi_arc_find(&view->arcs[1], (struct pwi_node){40}), PWI_CHAIN_MAX);
  assert_int_equal(pwi_view_under_replicated(view, 0), 0);
  assert_int_equal(pwi_view_under_replicated(view, 1), 2);
  assert_int_equal(pwi_view_under_replicated(view, 2), 4);
  pwi_view_release(view);
}

static void test_lookups_equal_a_walk(void **state) {
  (void)state;
  struct pwi_arc arcs[300];
  for (size_t count = 1; count <= 300; count += 13) {
    for (size_t i = 0; i < count; i++) {
      arcs[i] = (struct pwi_arc){.begin = i * i * 1000, .since = 1, .count = 1, .chain = {{.node = {10}}}};
    }
    struct pwi_view *view = NULL;
    assert_int_equal(pwi_view_create(1, four_nodes, 4, arcs, count, NULL, &view), PAWL_OK);
    for (uint64_t n = 0; n < 500; n++) {
      uint64_t position = pwi_random_at(SEED, count, n) % (count * count * 1000 + 1000);
      size_t walk = 0;
      while (walk + 1 < count && arcs[walk + 1].begin <= position) walk++;
      assert_int_equal(pwi_view_arc_of(view, position), walk);
    }
    pwi_view_release(view);
  }
}

static void test_the_last_release_frees(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *view = publish(&draft);
  assert_ptr_equal(pwi_view_retain(view), view);
  pwi_view_release(view);
  assert_int_equal(view->epoch, 1);
  assert_int_equal(pwi_memory_counts().live, 1);
  pwi_view_release(view);
  assert_int_equal(pwi_memory_counts().live, 0);
  assert_null(pwi_view_retain(NULL));
  pwi_view_release(NULL);
}

static void test_broken_nodes_are_named(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.epoch = 0;
  assert_breaks(&draft, PWI_RULE_EPOCH, 0);
  draft = sound();
  draft.nodes[0].node.id = 0;
  assert_breaks(&draft, PWI_RULE_NODE_ORDER, 0);
  draft = sound();
  draft.nodes[2].node.id = 20;
  assert_breaks(&draft, PWI_RULE_NODE_ORDER, 2);
  draft = sound();
  draft.nodes[1].weight = 0;
  assert_breaks(&draft, PWI_RULE_NODE_FIELDS, 1);
  draft = sound();
  draft.nodes[1].state = (enum pwi_node_state)3;
  assert_breaks(&draft, PWI_RULE_NODE_FIELDS, 1);
  draft = sound();
  draft.nodes[3].address = "";
  assert_breaks(&draft, PWI_RULE_NODE_FIELDS, 3);
  draft.nodes[3].address = "two words";
  assert_breaks(&draft, PWI_RULE_NODE_FIELDS, 3);
  draft = sound();
  draft.nodes[3].rack = "\033[2J";
  assert_breaks(&draft, PWI_RULE_NODE_FIELDS, 3);
  draft = sound();
  draft.nodes[3].shard = 0;
  assert_breaks(&draft, PWI_RULE_NODE_TWICE, 3);
}

static void test_texts_have_a_limit(void **state) {
  (void)state;
  char text[PWI_VIEW_TEXT_MAX + 2];
  memset(text, 'x', sizeof text);
  text[PWI_VIEW_TEXT_MAX + 1] = '\0';
  struct draft draft = sound();
  draft.nodes[0].host = text;
  assert_breaks(&draft, PWI_RULE_NODE_FIELDS, 0);
  draft.nodes[0].host = text + 1;
  pwi_view_release(publish(&draft));
}

static void test_broken_arcs_are_named(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.arcs[0].begin = 1;
  assert_breaks(&draft, PWI_RULE_TILING, 0);
  draft = sound();
  draft.arcs[2].begin = QUARTER;
  assert_breaks(&draft, PWI_RULE_TILING, 2);
  draft = sound();
  draft.arcs[3].begin = PWI_RING_END;
  assert_breaks(&draft, PWI_RULE_TILING, 3);
  draft = sound();
  draft.arcs[1].since = 2;
  assert_breaks(&draft, PWI_RULE_SINCE, 1);
  draft.arcs[1].since = 0;
  assert_breaks(&draft, PWI_RULE_SINCE, 1);
}

static void test_an_arc_is_not_lost_before_its_time(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.epoch = 3;
  draft.arcs[1].lost = 2;
  assert_breaks(&draft, PWI_RULE_LOST, 1);
  draft.arcs[1].since = 2;
  pwi_view_release(publish(&draft));
}

static void test_broken_chains_are_named(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.arcs[1].count = 0;
  assert_breaks(&draft, PWI_RULE_CHAIN_LENGTH, 1);
  draft.arcs[1].count = PWI_CHAIN_MAX + 1;
  assert_breaks(&draft, PWI_RULE_CHAIN_LENGTH, 1);
  draft = sound();
  draft.arcs[0].chain[1].node.id = 15;
  assert_breaks(&draft, PWI_RULE_CHAIN_NODE, 0);
  draft = sound();
  draft.arcs[0].chain[1].node.id = 10;
  assert_breaks(&draft, PWI_RULE_CHAIN_PROCESS, 0);
  draft = sound();
  draft.arcs[3].chain[1].node.id = 30; /* another shard of the head's process */
  assert_breaks(&draft, PWI_RULE_CHAIN_PROCESS, 3);
  draft = sound();
  draft.arcs[2].chain[0].filling = true;
  assert_breaks(&draft, PWI_RULE_CHAIN_HEAD, 2);
  draft = sound();
  draft.arcs[1].chain[1].filling = true;
  draft.arcs[1].chain[2].filling = false;
  assert_breaks(&draft, PWI_RULE_CHAIN_ORDER, 1);
}

static void test_too_much_of_anything_is_refused(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.node_count = PWI_VIEW_NODES_MAX + 1;
  assert_breaks(&draft, PWI_RULE_LIMITS, 0);
  draft = sound();
  draft.arc_count = PWI_VIEW_ARCS_MAX + 1;
  assert_breaks(&draft, PWI_RULE_LIMITS, 0);
}

/* Successors. */

static void assert_next_breaks(const struct pwi_view *previous, const struct draft *draft, enum pwi_view_rule rule,
                               size_t index) {
  struct pwi_view *view = NULL;
  struct pwi_view_fault fault = {0};
  assert_int_equal(
      pwi_view_create_next(previous, draft->nodes, draft->node_count, draft->arcs, draft->arc_count, &fault, &view),
      PAWL_INVALID);
  assert_string_equal(pwi_view_rule_text(fault.rule), pwi_view_rule_text(rule));
  assert_int_equal(fault.index, index);
}

static struct pwi_view *publish_next(const struct pwi_view *previous, const struct draft *draft) {
  struct pwi_view *view = NULL;
  struct pwi_view_fault fault = {0};
  pawl_status status =
      pwi_view_create_next(previous, draft->nodes, draft->node_count, draft->arcs, draft->arc_count, &fault, &view);
  assert_string_equal(pwi_view_rule_text(fault.rule), pwi_view_rule_text(PWI_RULE_NONE));
  assert_int_equal(status, PAWL_OK);
  return view;
}

static void test_a_head_comes_from_the_full_members(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *first = publish(&draft);
  draft.arcs[1].chain[0].node.id = 40; /* never was a member */
  draft.arcs[1].count = 1;
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_HEAD, 1);
  draft.arcs[1].chain[0].node.id = 10; /* was filling */
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_HEAD, 1);
  draft.arcs[1].chain[0].node.id = 30; /* was full */
  struct pwi_view *second = publish_next(first, &draft);
  assert_int_equal(second->epoch, 2);
  assert_int_equal(second->arcs[0].since, 1);
  assert_int_equal(second->arcs[1].since, 2);
  assert_int_equal(second->arcs[2].since, 1);
  pwi_view_release(first);
  pwi_view_release(second);
}

static void test_a_full_member_was_filled_first(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *first = publish(&draft);
  draft.arcs[2].chain[1] = (struct pwi_member){{10}, false};
  draft.arcs[2].count = 2;
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_FULL, 2);
  draft.arcs[2].chain[1].filling = true;
  struct pwi_view *second = publish_next(first, &draft);
  draft.arcs[2].chain[1].filling = false;
  struct pwi_view *third = publish_next(second, &draft);
  draft.arcs[2].chain[0].node.id = 10; /* the move of an arc: filled, promoted, the source dropped */
  draft.arcs[2].chain[1].node.id = 30;
  struct pwi_view *fourth = publish_next(third, &draft);
  draft.arcs[2].count = 1;
  struct pwi_view *fifth = publish_next(fourth, &draft);
  assert_int_equal(fifth->epoch, 5);
  assert_int_equal(fifth->arcs[2].since, 5);
  assert_int_equal(fifth->arcs[1].since, 1);
  pwi_view_release(first);
  pwi_view_release(second);
  pwi_view_release(third);
  pwi_view_release(fourth);
  pwi_view_release(fifth);
}

static void test_split_and_merged_arcs_inherit_from_all_they_overlap(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *first = publish(&draft);
  draft.arcs[4] = draft.arcs[3];
  draft.arcs[4].begin += 1; /* split: both halves keep the chain */
  draft.arc_count = 5;
  struct pwi_view *second = publish_next(first, &draft);
  assert_int_equal(second->arcs[3].since, 2);
  assert_int_equal(second->arcs[4].since, 2);
  draft.arcs[4].chain[0].node.id = 20; /* one half to a node without its data */
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_HEAD, 4);
  struct draft merged = sound();
  merged.arcs[0].count = 1; /* arcs 0 and 1 become one: 20 is full in both, 10 only in the first */
  memmove(&merged.arcs[1], &merged.arcs[2], 2 * sizeof *merged.arcs);
  merged.arc_count = 3;
  assert_next_breaks(first, &merged, PWI_RULE_NEXT_HEAD, 0);
  merged.arcs[0].chain[0].node.id = 20;
  struct pwi_view *third = publish_next(first, &merged);
  pwi_view_release(first);
  pwi_view_release(second);
  pwi_view_release(third);
}

/* Arc 2 has one full member, which is down. */
static struct draft waiting(void) {
  struct draft draft = sound();
  draft.nodes[2].state = PWI_NODE_DOWN;
  return draft;
}

static void begin_anew(struct pwi_arc *arc, uint64_t lost, uint64_t first, uint64_t second) {
  *arc = (struct pwi_arc){.begin = arc->begin, .lost = lost, .count = second ? 2 : 1};
  arc->chain[0].node.id = first;
  arc->chain[1].node.id = second;
}

static void test_an_arc_restarts_empty_only_if_all_full_members_were_down(void **state) {
  (void)state;
  struct draft draft = waiting();
  struct pwi_view *first = publish(&draft);
  begin_anew(&draft.arcs[2], 2, 10, 20);
  struct pwi_view *second = publish_next(first, &draft);
  assert_int_equal(second->arcs[2].lost, 2);
  assert_int_equal(second->arcs[2].since, 2);
  begin_anew(&draft.arcs[2], 0, 10, 20); /* without setting `lost` */
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_HEAD, 2);
  begin_anew(&draft.arcs[2], 1, 10, 20); /* in another view */
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_HEAD, 2);
  begin_anew(&draft.arcs[2], 2, 10, 30); /* with a member of the old chain */
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_LOST, 2);
  begin_anew(&draft.arcs[2], 2, 10, 20); /* with a filling member that has no source */
  draft.arcs[2].chain[1].filling = true;
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_LOST, 2);
  draft = waiting();
  begin_anew(&draft.arcs[0], 2, 40, 0); /* although a full member is up */
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_LOST, 0);
  draft = waiting();
  draft.arcs[1].lost = 2; /* although nothing has changed */
  assert_next_breaks(first, &draft, PWI_RULE_LOST, 1);
  pwi_view_release(first);
  pwi_view_release(second);
}

static void test_the_record_of_a_lost_arc_is_permanent(void **state) {
  (void)state;
  struct draft draft = waiting();
  struct pwi_view *first = publish(&draft);
  begin_anew(&draft.arcs[2], 2, 10, 20);
  struct pwi_view *second = publish_next(first, &draft);
  draft.arcs[2].lost = 0;
  assert_next_breaks(second, &draft, PWI_RULE_NEXT_LOST, 2);
  draft.arcs[2].lost = 1;
  assert_next_breaks(second, &draft, PWI_RULE_NEXT_LOST, 2);
  draft.arcs[2].lost = 2;
  draft.arcs[2].count = 1; /* a chain may change, and arcs be cut */
  draft.arcs[4] = draft.arcs[3];
  draft.arcs[3] = draft.arcs[2];
  draft.arcs[3].begin += 77;
  draft.arc_count = 5;
  struct pwi_view *third = publish_next(second, &draft);
  assert_int_equal(third->arcs[2].lost, 2);
  assert_int_equal(third->arcs[3].lost, 2);
  pwi_view_release(first);
  pwi_view_release(second);
  pwi_view_release(third);
}

static void test_arcs_that_were_lost_at_different_times_are_not_one(void **state) {
  (void)state;
  struct draft draft = sound();
  for (size_t i = 0; i < 4; i++) draft.arcs[i] = (struct pwi_arc){i * QUARTER, 5, 1, {{{10}, false}}, i == 2 ? 3 : 0};
  draft.epoch = 5;
  struct pwi_view *before = publish(&draft);
  draft.arcs[2] = draft.arcs[3];
  draft.arc_count = 3;
  for (uint64_t lost = 0; lost <= 3; lost += 3) {
    draft.arcs[1].lost = lost;
    assert_next_breaks(before, &draft, PWI_RULE_NEXT_LOST, 1);
  }
  pwi_view_release(before);
}

static void test_successors_keep_epochs_nodes_and_ages(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *first = publish(&draft);
  struct pwi_view_fault fault;
  assert_int_equal(pwi_view_check_next(first, first, &fault), PAWL_INVALID);
  assert_int_equal(fault.rule, PWI_RULE_NEXT_EPOCH);
  draft.epoch = 2;
  draft.arcs[1].since = 2; /* younger than it is */
  struct pwi_view *second = publish(&draft);
  assert_int_equal(pwi_view_check_next(first, second, &fault), PAWL_INVALID);
  assert_int_equal(fault.rule, PWI_RULE_NEXT_SINCE);
  assert_int_equal(fault.index, 1);
  pwi_view_release(second);
  draft.arcs[1].since = 1;
  draft.arcs[1].count = 2; /* older than it is */
  second = publish(&draft);
  assert_int_equal(pwi_view_check_next(first, second, NULL), PAWL_INVALID);
  pwi_view_release(second);
  draft = sound();
  draft.nodes[3].process = 4;
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_NODE, 3);
  draft = sound();
  draft.arc_count = 0;
  assert_next_breaks(first, &draft, PWI_RULE_NEXT_EMPTY, 0);
  pwi_view_release(first);
}

static void test_the_first_arcs_follow_an_empty_view(void **state) {
  (void)state;
  struct pwi_view *empty = NULL;
  assert_int_equal(pwi_view_create(5, NULL, 0, NULL, 0, NULL, &empty), PAWL_OK);
  struct draft draft = sound();
  struct pwi_view *first = publish_next(empty, &draft);
  assert_int_equal(first->epoch, 6);
  assert_int_equal(first->arcs[3].since, 6);
  pwi_view_release(empty);
  pwi_view_release(first);
}

/* Bytes. */

static unsigned char *encoded(const struct pwi_view *view, size_t *size_out) {
  *size_out = pwi_view_encoded_size(view);
  unsigned char *bytes = malloc(*size_out);
  assert_non_null(bytes);
  pwi_view_encode(view, bytes);
  return bytes;
}

static void assert_same_view(const struct pwi_view *a, const struct pwi_view *b) {
  assert_int_equal(a->epoch, b->epoch);
  assert_int_equal(a->node_count, b->node_count);
  assert_int_equal(a->arc_count, b->arc_count);
  for (size_t i = 0; i < a->node_count; i++) {
    const struct pwi_view_node *x = &a->nodes[i], *y = &b->nodes[i];
    assert_int_equal(x->node.id, y->node.id);
    assert_int_equal(x->process, y->process);
    assert_int_equal(x->shard, y->shard);
    assert_int_equal(x->weight, y->weight);
    assert_int_equal(x->state, y->state);
    assert_string_equal(x->address, y->address);
    assert_string_equal(x->host, y->host);
    assert_string_equal(x->rack, y->rack);
  }
  for (size_t i = 0; i < a->arc_count; i++) {
    assert_int_equal(a->arcs[i].begin, b->arcs[i].begin);
    assert_int_equal(a->arcs[i].since, b->arcs[i].since);
    assert_int_equal(a->arcs[i].lost, b->arcs[i].lost);
    assert_true(pwi_arc_same_chain(&a->arcs[i], &b->arcs[i]));
    assert_int_equal(a->heads[i], b->heads[i]);
  }
}

static void test_bytes_come_back_as_the_same_view(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.epoch = UINT64_C(0x1122334455667788);
  draft.arcs[0].since = draft.arcs[0].lost = draft.epoch - 1;
  struct pwi_view *view = publish(&draft), *back = NULL;
  size_t size;
  unsigned char *bytes = encoded(view, &size);
  assert_int_equal(bytes[0], PWI_VIEW_VERSION);
  assert_int_equal(pwi_get_u64(bytes + 8), draft.epoch);
  assert_int_equal(pwi_view_decode(bytes, size, &back), PAWL_OK);
  assert_same_view(view, back);
  pwi_view_release(back);
  pwi_view_release(view);
  assert_int_equal(pwi_view_create(1, NULL, 0, NULL, 0, NULL, &view), PAWL_OK);
  free(bytes);
  bytes = encoded(view, &size);
  assert_int_equal(size, 16);
  assert_int_equal(pwi_view_decode(bytes, size, &back), PAWL_OK);
  assert_int_equal(back->arc_count, 0);
  pwi_view_release(back);
  pwi_view_release(view);
  free(bytes);
}

/* Copies the bytes to a block of exact size, so that a sanitizer detects overruns. */
static pawl_status decode_copy(const unsigned char *bytes, size_t size) {
  unsigned char *copy = malloc(size ? size : 1);
  struct pwi_view *view = NULL;
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  pawl_status status = pwi_view_decode(copy, size, &view);
  if (status == PAWL_OK) {
    assert_int_equal(pwi_view_check(view, NULL), PAWL_OK);
    assert_int_equal(pwi_view_encoded_size(view), size);
  }
  pwi_view_release(view);
  free(copy);
  return status;
}

static void test_cut_off_and_overlong_bytes_are_refused(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.arcs[1].lost = 1;
  struct pwi_view *view = publish(&draft);
  size_t size;
  unsigned char *bytes = encoded(view, &size);
  for (size_t i = 0; i < size; i++) assert_int_equal(decode_copy(bytes, i), PAWL_TRUNCATED);
  unsigned char *longer = calloc(1, size + 1);
  memcpy(longer, bytes, size);
  assert_int_equal(decode_copy(longer, size + 1), PAWL_CORRUPT);
  free(longer);
  bytes[0] = PWI_VIEW_VERSION + 1;
  assert_int_equal(decode_copy(bytes, size), PAWL_UNSUPPORTED);
  bytes[0] = PWI_VIEW_VERSION;
  bytes[1] = 1;
  assert_int_equal(decode_copy(bytes, size), PAWL_CORRUPT);
  bytes[1] = 0;
  pwi_put_u32(bytes + 4, UINT32_MAX);
  assert_int_equal(decode_copy(bytes, size), PAWL_CORRUPT);
  pwi_put_u32(bytes + 4, PWI_VIEW_ARCS_MAX); /* far more than the bytes can hold: refused before memory is
                                                taken */
  uint64_t before = pwi_memory_counts().allocations;
  assert_int_equal(decode_copy(bytes, size), PAWL_TRUNCATED);
  assert_int_equal(pwi_memory_counts().allocations, before);
  free(bytes);
  pwi_view_release(view);
}

static void test_rules_hold_for_decoded_views(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *view = publish(&draft);
  size_t size;
  unsigned char *bytes = encoded(view, &size);
  pwi_view_release(view);
  unsigned char *last = bytes + size - 2 * 2 - 18; /* the last arc, of two members */
  assert_int_equal(pwi_get_u64(last), 3 * QUARTER);
  pwi_put_u64(last, QUARTER);
  assert_int_equal(decode_copy(bytes, size), PAWL_CORRUPT);
  pwi_put_u64(last, 3 * QUARTER);
  assert_int_equal(decode_copy(bytes, size), PAWL_OK);
  last[17] = 1; /* the head filling */
  assert_int_equal(decode_copy(bytes, size), PAWL_CORRUPT);
  last[17] = 4; /* a third of two members filling */
  assert_int_equal(decode_copy(bytes, size), PAWL_CORRUPT);
  last[17] = 2;
  last[16] |= 0x80; /* lost, and no word when */
  assert_int_equal(decode_copy(bytes, size), PAWL_TRUNCATED);
  last[16] &= 0x7f;
  pwi_put_u16(last + 18, 4); /* node number 4 of 4 */
  assert_int_equal(decode_copy(bytes, size), PAWL_CORRUPT);
  free(bytes);
}

static void test_hostile_bytes_do_no_harm(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.arcs[1].lost = 1;
  struct pwi_view *view = publish(&draft);
  size_t size, accepted = 0;
  unsigned char *bytes = encoded(view, &size);
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  for (int round = 0; round < 50000; round++) {
    unsigned char *copy = malloc(size);
    memcpy(copy, bytes, size);
    for (uint64_t flips = 1 + pwi_random_below(&random, 3); flips > 0; flips--) {
      copy[pwi_random_below(&random, size)] = (unsigned char)pwi_random_u32(&random);
    }
    accepted +=
        decode_copy(copy, (size_t)pwi_random_below(&random, 8) ? size : (size_t)pwi_random_below(&random, size)) ==
        PAWL_OK;
    free(copy);
  }
  assert_true(accepted > 0); /* a changed weight is a view as well */
  free(bytes);
  pwi_view_release(view);
  assert_int_equal(pwi_memory_counts().live, 0);
}

static void test_text_shows_nodes_and_chains(void **state) {
  (void)state;
  struct draft draft = sound();
  draft.nodes[0].rack = "";
  draft.arcs[2].lost = 1;
  struct pwi_view *view = publish(&draft);
  char *text = NULL;
  assert_int_equal(pwi_view_text(view, &text), PAWL_OK);
  assert_non_null(strstr(text, "view epoch=1 nodes=4 arcs=4\n"));
  assert_non_null(
      strstr(text, "node 10 up 10.0.0.1:7000 process=1 shard=0 weight=1 host=a rack=- arcs=1 share=25.00%\n"));
  assert_non_null(strstr(text, "node 30 draining [::1]:7000 process=3 shard=0 weight=1 host=b rack=r2 arcs=1"));
  assert_non_null(strstr(text, "arc 4000000000000000 25.00% since=1 chain=20,30,10(filling)\n"));
  assert_non_null(strstr(text, "since=1 chain=30 lost=1\n"));
  pwi_free(text);
  pwi_view_release(view);
}

static void test_every_lack_of_memory_is_reported(void **state) {
  (void)state;
  struct draft draft = sound();
  struct pwi_view *view = publish(&draft), *back = NULL;
  size_t size;
  unsigned char *bytes = encoded(view, &size);
  char *text = NULL;
  uint64_t n = 0;
  for (int step = 0; step < 3;) {
    pwi_memory_fail_after(n++);
    pawl_status status = step == 0   ? pwi_view_create(1, draft.nodes, 4, draft.arcs, 4, NULL, &back)
                         : step == 1 ? pwi_view_decode(bytes, size, &back)
                                     : pwi_view_text(view, &text);
    if (pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_NO_MEMORY);
      continue;
    }
    assert_int_equal(status, PAWL_OK);
    assert_true(n > 1);
    if (step < 2) pwi_view_release(back);
    n = 0;
    step++;
  }
  pwi_free(text);
  pwi_view_release(view);
  free(bytes);
  assert_int_equal(pwi_memory_counts().live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_view_is_a_copy_and_is_found_by_position),
      cmocka_unit_test(test_lookups_equal_a_walk),
      cmocka_unit_test(test_the_last_release_frees),
      cmocka_unit_test(test_broken_nodes_are_named),
      cmocka_unit_test(test_texts_have_a_limit),
      cmocka_unit_test(test_broken_arcs_are_named),
      cmocka_unit_test(test_an_arc_is_not_lost_before_its_time),
      cmocka_unit_test(test_broken_chains_are_named),
      cmocka_unit_test(test_too_much_of_anything_is_refused),
      cmocka_unit_test(test_a_head_comes_from_the_full_members),
      cmocka_unit_test(test_a_full_member_was_filled_first),
      cmocka_unit_test(test_split_and_merged_arcs_inherit_from_all_they_overlap),
      cmocka_unit_test(test_an_arc_restarts_empty_only_if_all_full_members_were_down),
      cmocka_unit_test(test_the_record_of_a_lost_arc_is_permanent),
      cmocka_unit_test(test_arcs_that_were_lost_at_different_times_are_not_one),
      cmocka_unit_test(test_successors_keep_epochs_nodes_and_ages),
      cmocka_unit_test(test_the_first_arcs_follow_an_empty_view),
      cmocka_unit_test(test_bytes_come_back_as_the_same_view),
      cmocka_unit_test(test_cut_off_and_overlong_bytes_are_refused),
      cmocka_unit_test(test_rules_hold_for_decoded_views),
      cmocka_unit_test(test_hostile_bytes_do_no_harm),
      cmocka_unit_test(test_text_shows_nodes_and_chains),
      cmocka_unit_test(test_every_lack_of_memory_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
