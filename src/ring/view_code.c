/* Encoding of views. The decoder trusts nothing: it checks the length before it reads a field, compares
 * counts with the remaining bytes before it allocates memory, and checks the result by the same rules as a
 * new view. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"
#include "ring/view.h"

#define HEADER_SIZE 16
#define NODE_SIZE 25 /* without its texts */
#define TEXTS 3
#define ARC_SIZE 18 /* without its members */
#define MEMBER_SIZE 2
#define HAS_LOST 0x80 /* flag in the byte with the number of members */
#define LOST_SIZE 8

size_t pwi_view_encoded_size(const struct pwi_view *view) {
  size_t size = HEADER_SIZE + view->node_count * (NODE_SIZE + TEXTS) + view->arc_count * ARC_SIZE;
  for (size_t i = 0; i < view->node_count; i++) {
    size += strlen(view->nodes[i].address) + strlen(view->nodes[i].host) + strlen(view->nodes[i].rack);
  }
  for (size_t i = 0; i < view->arc_count; i++)
    size += MEMBER_SIZE * (size_t)view->arcs[i].count + (view->arcs[i].lost ? LOST_SIZE : 0);
  return size;
}

static unsigned char *put_text(unsigned char *at, const char *text) {
  size_t size = strlen(text);
  *at = (unsigned char)size;
  memcpy(at + 1, text, size);
  return at + 1 + size;
}

static unsigned char *put_node(unsigned char *at, const struct pwi_view_node *node) {
  pwi_put_u64(at, node->node.id);
  pwi_put_u64(at + 8, node->process);
  pwi_put_u32(at + 16, node->shard);
  pwi_put_u32(at + 20, node->weight);
  at[24] = (unsigned char)node->state;
  at = put_text(at + NODE_SIZE, node->address);
  at = put_text(at, node->host);
  return put_text(at, node->rack);
}

static unsigned char *put_arc(unsigned char *at, const struct pwi_view *view, const struct pwi_arc *arc) {
  unsigned filling = 0;
  pwi_put_u64(at, arc->begin);
  pwi_put_u64(at + 8, arc->since);
  for (size_t i = 0; i < arc->count; i++) {
    const struct pwi_view_node *node = pwi_view_find(view, arc->chain[i].node);
    pwi_put_u16(at + ARC_SIZE + i * MEMBER_SIZE, (uint16_t)(node - view->nodes));
    if (arc->chain[i].filling) filling |= 1u << i;
  }
  at[16] = (unsigned char)(arc->count | (arc->lost ? HAS_LOST : 0));
  at[17] = (unsigned char)filling;
  at += ARC_SIZE + MEMBER_SIZE * (size_t)arc->count;
  if (arc->lost) pwi_put_u64(at, arc->lost);
  return at + (arc->lost ? LOST_SIZE : 0);
}

void pwi_view_encode(const struct pwi_view *view, void *bytes) {
  unsigned char *at = bytes;
  at[0] = PWI_VIEW_VERSION;
  at[1] = 0;
  pwi_put_u16(at + 2, (uint16_t)view->node_count);
  pwi_put_u32(at + 4, (uint32_t)view->arc_count);
  pwi_put_u64(at + 8, view->epoch);
  at += HEADER_SIZE;
  for (size_t i = 0; i < view->node_count; i++) at = put_node(at, &view->nodes[i]);
  for (size_t i = 0; i < view->arc_count; i++) at = put_arc(at, view, &view->arcs[i]);
  assert((size_t)(at - (unsigned char *)bytes) == pwi_view_encoded_size(view));
}

/* The state of decoding. Strings are copied with a final zero, which the encoded form lacks. */
struct view_reading {
  const unsigned char *at;
  size_t left;
  struct pwi_view_node *nodes;
  struct pwi_arc *arcs;
  char *texts, *text_at;
  uint64_t epoch;
  size_t node_count, arc_count;
};

/* The next `size` bytes, or NULL if there are fewer. */
static const unsigned char *take(struct view_reading *reading, size_t size) {
  if (reading->left < size) return NULL;
  const unsigned char *at = reading->at;
  reading->at += size;
  reading->left -= size;
  return at;
}

static pawl_status get_header(struct view_reading *reading) {
  const unsigned char *at = take(reading, 1);
  if (!at) return PAWL_TRUNCATED;
  if (at[0] != PWI_VIEW_VERSION) return PAWL_UNSUPPORTED;
  if (!take(reading, HEADER_SIZE - 1)) return PAWL_TRUNCATED;
  reading->node_count = pwi_get_u16(at + 2);
  reading->arc_count = pwi_get_u32(at + 4);
  reading->epoch = pwi_get_u64(at + 8);
  if (at[1] != 0 || reading->node_count > PWI_VIEW_NODES_MAX || reading->arc_count > PWI_VIEW_ARCS_MAX) {
    return PAWL_CORRUPT;
  }
  size_t least = reading->node_count * (NODE_SIZE + TEXTS) + reading->arc_count * (ARC_SIZE + MEMBER_SIZE);
  return least <= reading->left ? PAWL_OK : PAWL_TRUNCATED;
}

static pawl_status make_room(struct view_reading *reading) {
  reading->nodes = pwi_alloc_zero(reading->node_count, sizeof *reading->nodes);
  reading->arcs = pwi_alloc_zero(reading->arc_count, sizeof *reading->arcs);
  reading->texts = reading->text_at = pwi_alloc(reading->left); /* the length byte of each string gives room
                                                                   for its zero */
  return reading->nodes && reading->arcs && reading->texts ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status get_text(struct view_reading *reading, const char **text_out) {
  const unsigned char *length = take(reading, 1);
  const unsigned char *bytes = length ? take(reading, *length) : NULL;
  if (!bytes) return PAWL_TRUNCATED;
  if (memchr(bytes, 0, *length)) return PAWL_CORRUPT;
  char *text = memcpy(reading->text_at, bytes, *length);
  text[*length] = '\0';
  reading->text_at += *length + 1;
  *text_out = text;
  return PAWL_OK;
}

static pawl_status get_node(struct view_reading *reading, struct pwi_view_node *node_out) {
  const unsigned char *at = take(reading, NODE_SIZE);
  if (!at) return PAWL_TRUNCATED;
  if (at[24] > PWI_NODE_DOWN) return PAWL_CORRUPT;
  node_out->node.id = pwi_get_u64(at);
  node_out->process = pwi_get_u64(at + 8);
  node_out->shard = pwi_get_u32(at + 16);
  node_out->weight = pwi_get_u32(at + 20);
  node_out->state = (enum pwi_node_state)at[24];
  pawl_status status = get_text(reading, &node_out->address);
  if (!status) status = get_text(reading, &node_out->host);
  if (!status) status = get_text(reading, &node_out->rack);
  return status;
}

static pawl_status get_arc(struct view_reading *reading, struct pwi_arc *arc_out) {
  const unsigned char *at = take(reading, ARC_SIZE);
  if (!at) return PAWL_TRUNCATED;
  size_t count = at[16] & ~(unsigned)HAS_LOST;
  if (count > PWI_CHAIN_MAX || at[17] >> count != 0) return PAWL_CORRUPT;
  const unsigned char *members = take(reading, MEMBER_SIZE * count);
  const unsigned char *lost = at[16] & HAS_LOST ? take(reading, LOST_SIZE) : members;
  if (!members || !lost) return PAWL_TRUNCATED;
  arc_out->begin = pwi_get_u64(at);
  arc_out->since = pwi_get_u64(at + 8);
  arc_out->count = (uint8_t)count;
  if (at[16] & HAS_LOST) {
    arc_out->lost = pwi_get_u64(lost);
    if (arc_out->lost == 0) return PAWL_CORRUPT;
  }
  for (size_t i = 0; i < arc_out->count; i++) {
    size_t index = pwi_get_u16(members + i * MEMBER_SIZE);
    if (index >= reading->node_count) return PAWL_CORRUPT;
    arc_out->chain[i] = (struct pwi_member){reading->nodes[index].node, at[17] >> i & 1};
  }
  return PAWL_OK;
}

static pawl_status get_all(struct view_reading *reading) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < reading->node_count && !status; i++) status = get_node(reading, &reading->nodes[i]);
  for (size_t i = 0; i < reading->arc_count && !status; i++) status = get_arc(reading, &reading->arcs[i]);
  return !status && reading->left ? PAWL_CORRUPT : status;
}

pawl_status pwi_view_decode(const void *bytes, size_t size, struct pwi_view **view_out) {
  struct view_reading reading = {.at = bytes, .left = size};
  pawl_status status = get_header(&reading);
  if (status) return status;
  status = make_room(&reading);
  if (!status) status = get_all(&reading);
  if (!status) {
    status = pwi_view_create(reading.epoch, reading.nodes, reading.node_count, reading.arcs, reading.arc_count, NULL,
                             view_out);
    if (status == PAWL_INVALID) status = PAWL_CORRUPT;
  }
  pwi_free(reading.texts);
  pwi_free(reading.arcs);
  pwi_free(reading.nodes);
  return status;
}
