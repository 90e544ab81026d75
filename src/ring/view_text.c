/* Views for people:
 *
 *   view epoch=7 nodes=2 arcs=2
 *   node 1 up 10.0.0.1:7000 process=1 shard=0 weight=1 host=a rack=r1 arcs=1 share=50.00%
 *   node 2 …
 *   arc 0000000000000000 50.00% since=7 chain=1,2
 *   arc 8000000000000000 50.00% since=6 chain=2,1(filling)
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "ring/view.h"

struct view_text {
  char *bytes;
  size_t size, room;
  bool failed; /* memory ran out; nothing more is added */
};

static bool make_room(struct view_text *text, size_t more) {
  text->failed = !PWI_GROW(text->bytes, text->room, text->size + more);
  return !text->failed;
}

static void add(struct view_text *text, const char *format, ...) PAWL_PRINTF(2, 3);

static void add(struct view_text *text, const char *format, ...) {
  if (text->failed || !make_room(text, 64)) return;
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  size_t left = text->room - text->size;
  size_t size = (size_t)vsnprintf(text->bytes + text->size, left, format, list);
  if (size < left) {
    text->size += size;
  } else if (make_room(text, size + 1)) {
    text->size += (size_t)vsnprintf(text->bytes + text->size, size + 1, format, again);
  }
  va_end(again);
  va_end(list);
}

static double percent(double positions) { return 100 * positions * 0x1p-64; }

static const char *or_dash(const char *label) { return *label ? label : "-"; }

static void add_node(struct view_text *text, const struct pwi_view *view, size_t index) {
  const struct pwi_view_node *node = &view->nodes[index];
  size_t arcs = 0;
  double positions = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    if (view->heads[i] != index) continue;
    arcs++;
    positions += (double)pawl_range_size(pwi_view_arc_range(view, i));
  }
  add(text, "node %" PRIu64 " %s %s process=%" PRIu64 " shard=%" PRIu32 " weight=%" PRIu32 " host=%s rack=%s",
      node->node.id, pwi_node_state_text(node->state), node->address, node->process, node->shard, node->weight,
      or_dash(node->host), or_dash(node->rack));
  add(text, " arcs=%zu share=%.2f%%\n", arcs, percent(positions));
}

static void add_arc(struct view_text *text, const struct pwi_view *view, size_t index) {
  const struct pwi_arc *arc = &view->arcs[index];
  double positions = (double)pawl_range_size(pwi_view_arc_range(view, index));
  add(text, "arc %016" PRIx64 " %.2f%% since=%" PRIu64 " chain=", arc->begin, percent(positions), arc->since);
  for (size_t i = 0; i < arc->count; i++) {
    add(text, "%s%" PRIu64 "%s", i ? "," : "", arc->chain[i].node.id, arc->chain[i].filling ? "(filling)" : "");
  }
  if (arc->lost) add(text, " lost=%" PRIu64, arc->lost);
  add(text, "\n");
}

pawl_status pwi_view_text(const struct pwi_view *view, char **text_out) {
  struct view_text text = {0};
  add(&text, "view epoch=%" PRIu64 " nodes=%zu arcs=%zu\n", view->epoch, view->node_count, view->arc_count);
  for (size_t i = 0; i < view->node_count; i++) add_node(&text, view, i);
  for (size_t i = 0; i < view->arc_count; i++) add_arc(&text, view, i);
  if (text.failed) {
    pwi_free(text.bytes);
    return PAWL_NO_MEMORY;
  }
  *text_out = text.bytes;
  return PAWL_OK;
}
