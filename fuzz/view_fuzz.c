/* Views: any bytes, any nodes and arcs, and any successor of a view.
 *
 * covers: src/ring/view.c src/ring/view_check.c src/ring/view_code.c src/ring/view_text.c
 */
#include "fuzz.h"

#include "base/memory.h"
#include "ring/place.h"
#include "ring/view.h"

enum { AS_IT_IS, MADE, SUCCESSOR, CASES };

#define NODES_MAX 12
#define ARCS_MAX 16
#define BYTES_MAX 2048

/* The input for a view. */
struct draft {
  struct pwi_view_node nodes[NODES_MAX];
  size_t node_count;
  struct pwi_arc arcs[ARCS_MAX];
  size_t arc_count;
};

static void check_arc(const struct pwi_view *view, size_t index) {
  const struct pwi_arc *arc = &view->arcs[index];
  struct pawl_range range = pwi_view_arc_range(view, index);
  assert(!pawl_range_is_empty(range) && range.begin == arc->begin);
  assert(pwi_view_arc_of(view, range.begin) == index && pwi_view_arc_of(view, range.end - 1) == index);
  assert(pwi_view_head(view, index) == pwi_view_find(view, arc->chain[0].node));
  size_t full = pwi_arc_full(arc);
  assert(full >= 1 && full <= arc->count && arc->count <= PWI_CHAIN_MAX);
  for (size_t i = 0; i < arc->count; i++) {
    assert(pwi_arc_find(arc, arc->chain[i].node) == i && arc->chain[i].filling == (i >= full));
    assert(pwi_view_find(view, arc->chain[i].node));
  }
  assert(pwi_arc_same_chain(arc, arc));
}

static void check_text(const struct pwi_view *view) {
  char *text;
  size_t lines = 0;
  pwi_memory_fail_after(0);
  assert(pwi_view_text(view, &text) == PAWL_NO_MEMORY && pwi_memory_fail_cancel());
  assert(pwi_view_text(view, &text) == PAWL_OK);
  for (const char *at = text; *at; at++) {
    lines += *at == '\n';
    assert(*at == '\n' || (*at >= ' ' && *at <= '~')); /* it is shown on terminals */
  }
  assert(lines == 1 + view->node_count + view->arc_count);
  pwi_free(text);
}

/* Its invariants hold, and encoding gives the same bytes. */
static void check_view(struct pwi_view *view) {
  struct pwi_view_fault fault = {PWI_RULE_EPOCH, 99};
  assert(pwi_view_check(view, &fault) == PAWL_OK && fault.rule == PWI_RULE_NONE);
  assert(strcmp(pwi_view_rule_text(fault.rule), "no rule is violated") == 0);
  for (size_t i = 0; i < view->node_count; i++) {
    assert(pwi_view_find(view, view->nodes[i].node) == &view->nodes[i]);
    assert(strcmp(pwi_node_state_text(view->nodes[i].state), "unknown") != 0);
  }
  for (size_t i = 0; i < view->arc_count; i++) check_arc(view, i);
  assert(pwi_view_under_replicated(view, 0) == 0);
  assert(pwi_view_under_replicated(view, PWI_CHAIN_MAX) == view->arc_count);
  check_text(view);
  pwi_view_release(pwi_view_retain(view));
}

static void check_bytes(const struct pwi_view *view, const uint8_t *bytes, size_t size) {
  struct pwi_view *again = NULL;
  uint8_t *encoded = pwi_alloc(pwi_view_encoded_size(view)), *back = pwi_alloc(pwi_view_encoded_size(view));
  assert(encoded && back);
  size_t length = pwi_view_encoded_size(view);
  pwi_view_encode(view, encoded);
  if (bytes) assert(length == size && memcmp(encoded, bytes, size) == 0);
  assert(pwi_view_decode(encoded, length - 1, &again) == PAWL_TRUNCATED && !again);
  assert(pwi_view_decode(encoded, length, &again) == PAWL_OK && again->epoch == view->epoch);
  assert(pwi_view_encoded_size(again) == length);
  pwi_view_encode(again, back);
  assert(memcmp(encoded, back, length) == 0);
  pwi_view_release(again);
  pwi_free(back);
  pwi_free(encoded);
}

static struct pwi_view *decode(const uint8_t *bytes, size_t size) {
  struct pwi_view *view = NULL;
  pawl_status status = pwi_view_decode(bytes, size, &view);
  if (status != PAWL_OK) {
    assert(status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
    assert(!view);
    return NULL;
  }
  check_view(view);
  check_bytes(view, bytes, size);
  return view;
}

/* Mostly valid, and invalid wherever the input says so. */
static void draw_node(struct input *input, const struct pwi_view_node *before, struct pwi_view_node *node) {
  static const char *const texts[] = {"a:1", "", "rack-7", "\x1b[2J", "with space", NULL};
  uint8_t shape = draw_u8(input), labels = draw_u8(input);
  node->node.id = (before ? before->node.id : 0) + (shape == 0xff ? 0 : 1 + shape % 4);
  node->process = shape >= 0xc0 ? draw_u8(input) : node->node.id / 2;
  node->shard = shape >= 0xf0 ? draw_u8(input) : (uint32_t)node->node.id % 2;
  node->weight = shape == 0xfe ? 0 : 1 + draw_u8(input);
  node->state = (enum pwi_node_state)(shape == 0xfd ? 3 : shape % 3);
  node->address = labels >= 0xf0 ? texts[labels % 6] : "10.0.0.1:7000";
  node->host = texts[labels >= 0xe0 ? labels % 6 : labels % 3];
  node->rack = texts[labels >= 0xd0 ? labels % 6 : labels / 3 % 3];
}

static void draw_chain(struct input *input, const struct draft *draft, struct pwi_arc *arc) {
  uint8_t shape = draw_u8(input);
  arc->count = shape >= 0xf0 ? shape % 16 : 1 + shape % 3;
  uint8_t full = 1 + shape / 3 % 3;
  for (uint8_t i = 0; i < arc->count && i < PWI_CHAIN_MAX; i++) {
    uint8_t which = draw_u8(input);
    bool known = which < 0xf8 && draft->node_count > 0;
    arc->chain[i].node.id = known ? draft->nodes[which % draft->node_count].node.id : which;
    arc->chain[i].filling = shape == 0xee ? which % 2 : i >= full;
  }
}

/* One change to the draft: adds, removes or replaces a node, cuts an arc in two, joins it to its
 * neighbour, gives it a chain, or drops it. */
static void change(struct input *input, uint64_t epoch, struct draft *draft) {
  uint8_t which = draw_u8(input);
  size_t arc = draft->arc_count ? draw_u8(input) % draft->arc_count : 0;
  switch (which % 7) {
  case 0:
    if (draft->node_count == NODES_MAX) break;
    draw_node(input, draft->node_count ? &draft->nodes[draft->node_count - 1] : NULL, &draft->nodes[draft->node_count]);
    draft->node_count++;
    break;
  case 1:
    if (draft->node_count > 0) draft->nodes[draw_u8(input) % draft->node_count].process ^= which >= 0xf0;
    if (draft->node_count > 1 && which >= 0x80) draft->node_count--;
    break;
  case 2:
    if (draft->arc_count == ARCS_MAX) break;
    memmove(&draft->arcs[arc + 1], &draft->arcs[arc], (draft->arc_count - arc) * sizeof *draft->arcs);
    if (draft->arc_count > 0) draft->arcs[arc + 1].begin = draw_u64(input);
    draft->arc_count++;
    break;
  case 3:
    if (draft->arc_count == 0 || (draft->arc_count == 1 && which < 0xf0)) break;
    draft->arc_count--;
    memmove(&draft->arcs[arc], &draft->arcs[arc + 1], (draft->arc_count - arc) * sizeof *draft->arcs);
    if (which < 0xf0) draft->arcs[0].begin = 0;
    break;
  case 4:
    draw_chain(input, draft, &draft->arcs[arc]);
    break;
  case 5: /* the arc starts empty, or that is forgotten, or said of the wrong view */
    draft->arcs[arc].lost = which < 0xc0 ? epoch + 1 : draw_u8(input) % 4;
    if (which < 0xe0) draw_chain(input, draft, &draft->arcs[arc]);
    break;
  default:
    if (draft->arcs[arc].count < PWI_CHAIN_MAX && draft->node_count > 0)
      draft->arcs[arc].chain[draft->arcs[arc].count++] =
          (struct pwi_member){draft->nodes[draw_u8(input) % draft->node_count].node, which % 4 != 1};
  }
}

/* A view without a predecessor. */
static void make(struct input *input) {
  struct draft draft = {0};
  struct pwi_view *view = NULL;
  struct pwi_view_fault fault = {PWI_RULE_NONE, 0};
  uint64_t epoch = draw_u8(input);
  for (uint8_t i = draw_u8(input) % NODES_MAX; draft.node_count < i; draft.node_count++)
    draw_node(input, draft.node_count ? &draft.nodes[draft.node_count - 1] : NULL, &draft.nodes[draft.node_count]);
  for (uint8_t i = draw_u8(input) % ARCS_MAX; draft.arc_count < i; draft.arc_count++) {
    struct pwi_arc *arc = &draft.arcs[draft.arc_count];
    arc->begin = draft.arc_count ? arc[-1].begin + draw_u64(input) / 16 : 0;
    arc->since = draw_u8(input) < 0xf0 ? 1 : epoch;
    draw_chain(input, &draft, arc);
  }
  pawl_status status =
      pwi_view_create(epoch, draft.nodes, draft.node_count, draft.arcs, draft.arc_count, &fault, &view);
  if (status == PAWL_OK) {
    check_view(view);
    check_bytes(view, NULL, 0);
    pwi_view_release(view);
  } else {
    assert(status == PAWL_INVALID && !view && fault.rule != PWI_RULE_NONE);
    assert(strcmp(pwi_view_rule_text(fault.rule), "unknown rule") != 0);
  }
}

static void follow(struct input *input, const struct pwi_view *previous) {
  struct draft draft = {.node_count = previous->node_count, .arc_count = previous->arc_count};
  struct pwi_view *next = NULL;
  struct pwi_view_fault fault = {PWI_RULE_NONE, 0};
  if (draft.node_count > NODES_MAX || draft.arc_count > ARCS_MAX) return;
  memcpy(draft.nodes, previous->nodes, draft.node_count * sizeof *draft.nodes);
  if (draft.arc_count) memcpy(draft.arcs, previous->arcs, draft.arc_count * sizeof *draft.arcs);
  while (input->left > 0) change(input, previous->epoch, &draft);
  pawl_status status =
      pwi_view_create_next(previous, draft.nodes, draft.node_count, draft.arcs, draft.arc_count, &fault, &next);
  if (status != PAWL_OK) {
    assert(status == PAWL_INVALID && !next && fault.rule != PWI_RULE_NONE);
    return;
  }
  check_view(next);
  check_bytes(next, NULL, 0);
  assert(next->epoch == previous->epoch + 1 && pwi_view_check_next(previous, next, NULL) == PAWL_OK);
  assert(pwi_view_check_next(next, previous, &fault) == PAWL_INVALID && fault.rule == PWI_RULE_NEXT_EPOCH);
  for (size_t i = 0; i < next->arc_count && previous->arc_count; i++) {
    const struct pwi_arc *before = &previous->arcs[pwi_view_arc_of(previous, next->arcs[i].begin)];
    size_t was = pwi_arc_find(before, next->arcs[i].chain[0].node);
    if (next->arcs[i].lost == next->epoch)
      assert(was >= pwi_arc_full(before)); /* a member with data never starts empty */
    /* only a full member becomes head */
    else
      assert(was < pwi_arc_full(before) && next->arcs[i].lost == before->lost);
  }
  pwi_view_release(next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t which = draw_u8(&input) % CASES;
  if (which == MADE) {
    make(&input);
    return 0;
  }
  size_t length = input.left;
  if (which == SUCCESSOR) {
    length = draw_u16(&input) % BYTES_MAX;
    if (length > input.left) length = input.left;
  }
  struct pwi_view *view = decode(input.at, length);
  input.at += length;
  input.left -= length;
  if (view && which == SUCCESSOR) follow(&input, view);
  pwi_view_release(view);
  return 0;
}
