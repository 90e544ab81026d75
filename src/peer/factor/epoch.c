/* The begin of an epoch: its origins, its graph, and who sends what to whom. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "peer/factor/inside.h"
#include "protocol/planted.h"

/* --- finding -------------------------------------------------------------------------------------------- */

struct factor_origin *pwi_factor_origin(const struct pwi_factor *engine, uint64_t life) {
  for (uint32_t i = 0; i < engine->count; i++)
    if (engine->origins[i].life == life) return &engine->origins[i];
  return NULL;
}

/* NULL: the peer does not take part. */
struct factor_peer *pwi_factor_peer_of(const struct pwi_factor *engine, const struct factor_origin *origin) {
  struct factor_peer *peer = pwi_factor_find(engine, origin->id);
  return peer && peer->life == origin->life && peer->gone_life != origin->life ? peer : NULL;
}

struct factor_has *pwi_factor_has(const struct pwi_factor *engine, const struct factor_peer *peer,
                                  const struct factor_origin *origin) {
  return peer->has ? &peer->has[origin - engine->origins] : NULL;
}

static uint32_t node_of_peer(const struct pwi_factor *engine, const struct factor_peer *peer) {
  const struct factor_origin *origin = pwi_factor_origin(engine, peer->life);
  return origin ? engine->nodes[origin - engine->origins] : UINT32_MAX;
}

bool pwi_factor_sends(const struct pwi_factor *engine, const struct factor_origin *origin,
                      const struct factor_peer *to) {
  uint32_t from = engine->nodes[origin - engine->origins], self = engine->nodes[engine->self];
  uint32_t node = node_of_peer(engine, to);
  if (from == UINT32_MAX || node == UINT32_MAX || node == from) return false;
  if (!engine->graph) return from == self;
  if (engine->parents) return engine->parents[(size_t)from * engine->graph->nodes + node] == self;
  return from == self && pwi_graph_has(engine->graph, self, node);
}

/* --- the graph ------------------------------------------------------------------------------------------ */

static uint32_t number_nodes(struct pwi_factor *engine) {
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < engine->count; i++)
    engine->nodes[i] = pwi_factor_is_live(&engine->origins[i]) ? nodes++ : UINT32_MAX;
  return nodes;
}

/* Commits of every node go down a tree of shortest paths, so that each reaches every other node once. */
static pawl_status find_parents(struct pwi_factor *engine, uint32_t nodes) {
  uint32_t *queue = pwi_alloc_zero(nodes, sizeof *queue);
  engine->parents = pwi_alloc_zero((size_t)nodes * nodes, sizeof *engine->parents);
  if (!queue || !engine->parents) {
    pwi_free(queue);
    return PAWL_NO_MEMORY;
  }
  for (uint32_t root = 0; root < nodes; root++) {
    uint32_t *parents = engine->parents + (size_t)root * nodes, begin = 0, end = 1;
    memset(parents, 0xff, nodes * sizeof *parents);
    queue[0] = root;
    parents[root] = root;
    while (begin < end) {
      struct pwi_graph_row row = pwi_graph_out(engine->graph, queue[begin]);
      for (size_t i = 0; i < row.count; i++) {
        if (parents[row.nodes[i]] != UINT32_MAX) continue;
        parents[row.nodes[i]] = queue[begin];
        queue[end++] = row.nodes[i];
      }
      begin++;
    }
  }
  pwi_free(queue);
  return PAWL_OK;
}

/* A graph that does not exist for so many members gives way to the complete one. */
static pawl_status make_graph(struct pwi_factor *engine) {
  uint32_t nodes = number_nodes(engine);
  struct pwi_graph_spec spec = {.topology = engine->config.topology,
                                .nodes = nodes,
                                .degree = engine->config.degree,
                                .seed = engine->config.seed};
  pwi_graph_destroy(engine->graph);
  pwi_free(engine->parents);
  engine->graph = NULL;
  engine->parents = NULL;
  if (engine->config.is_complete || nodes < 2) return PAWL_OK;
  const struct pwi_graph *file = engine->config.file;
  if (file && file->nodes != nodes) return PAWL_OK;
  pawl_status status = file ? pwi_graph_copy(file, &engine->graph) : pwi_graph_make(&spec, NULL, &engine->graph);
  if (status) engine->graph = NULL;
  if (status == PAWL_NO_MEMORY) return status;
  return engine->graph && engine->config.forwards ? find_parents(engine, nodes) : PAWL_OK;
}

/* What this member receives, and for whose pace it waits. */
static void look_at_graph(struct pwi_factor *engine, struct factor_origin *origin) {
  uint32_t from = engine->nodes[origin - engine->origins], self = engine->nodes[engine->self];
  if (!pwi_factor_is_live(origin)) {
    origin->is_waited = false;
    return;
  }
  bool has_edge = from != self && (!engine->graph || pwi_graph_has(engine->graph, from, self));
  origin->is_heard = from == self || has_edge || engine->parents;
  origin->is_waited = has_edge && engine->config.mode != PAWL_FACTOR_ASYNC;
}

/* --- origins -------------------------------------------------------------------------------------------- */

/* An origin that was heard before goes on. One that is new here begins with its first commit; one that only this member
 * did not hear begins now, or behind the commits that arrived after its STATE and that the matrix contains. */
static void take_over(struct factor_origin *origin, const struct factor_origin *before, bool is_direct) {
  bool was_heard = before && before->is_heard;
  uint64_t begin = !before && !is_direct ? origin->base : origin->clock;
  if (before && before->applied > begin) begin = before->applied;
  if (before) {
    origin->first = before->first;
    origin->is_heard = before->is_heard;
  }
  origin->received = was_heard ? before->received : begin;
  origin->applied = was_heard ? before->applied : begin;
}

static pawl_status make_origins(struct pwi_factor *engine, const struct factor_line *lines, uint32_t count) {
  struct factor_origin *origins = pwi_alloc_zero(count, sizeof *origins);
  uint32_t *nodes = pwi_alloc_zero(count, sizeof *nodes);
  if (!origins || !nodes) {
    pwi_free(origins);
    pwi_free(nodes);
    return PAWL_NO_MEMORY;
  }
  for (uint32_t i = 0; i < count; i++) {
    const struct factor_line *line = &lines[i];
    struct factor_origin *before = pwi_factor_origin(engine, line->life);
    origins[i] = (struct factor_origin){.id = line->id,
                                        .life = line->life,
                                        .base = line->base,
                                        .clock = line->clock,
                                        .final = line->final,
                                        .part = line->part};
    take_over(&origins[i], before, !engine->config.is_complete && !engine->config.forwards);
    if (before) before->first = NULL;
    if (line->life == engine->config.life) engine->self = i;
  }
  for (uint32_t i = 0; i < engine->count; i++) pwi_factor_cut(engine, &engine->origins[i], 0);
  pwi_free(engine->origins);
  pwi_free(engine->nodes);
  engine->origins = origins;
  engine->nodes = nodes;
  engine->count = count;
  return PAWL_OK;
}

/* Nobody has commits beyond the last one that counts, except for members that have received them while the others
 * agreed. */
static void settle_gone(struct pwi_factor *engine) {
  for (uint32_t i = 0; i < engine->count; i++) {
    struct factor_origin *origin = &engine->origins[i];
    if (pwi_factor_is_live(origin)) continue;
    if (pwi_is_planted(PWI_PLANTED_FACTOR_KEPT_BY_SOME)) origin->final = origin->received;
    if (origin->received > origin->final) origin->received = origin->final;
    pwi_factor_cut(engine, origin, origin->final);
  }
}

pawl_status pwi_factor_meet(struct pwi_factor *engine, struct factor_peer *peer) {
  if (peer->has || !pwi_factor_origin(engine, peer->life)) return PAWL_OK;
  peer->has = pwi_alloc_zero(engine->count, sizeof *peer->has);
  return peer->has ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status reset_peers(struct pwi_factor *engine) {
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    pwi_free(peer->has);
    peer->has = NULL;
    peer->has_said = peer->has_have = peer->must_model = peer->must_rewind = false;
    peer->cursor = NULL;
    peer->offset = 0;
    pawl_status status = pwi_factor_meet(engine, peer);
    if (status) return status;
  }
  return PAWL_OK;
}

static bool has_part(const struct pwi_factor *engine, uint32_t part) {
  for (uint32_t i = 0; i < engine->count; i++)
    if (pwi_factor_is_live(&engine->origins[i]) && engine->origins[i].part == part) return true;
  return false;
}

/* With more parts than members the search ends early. */
static void look_at_parts(struct pwi_factor *engine) {
  uint32_t part = 0;
  while (part < engine->config.parts && has_part(engine, part)) part++;
  engine->lost_part = part < engine->config.parts ? part : UINT32_MAX;
}

static void begin_model(struct pwi_factor *engine, uint64_t donor) {
  struct factor_origin *self = &engine->origins[engine->self];
  if (pwi_factor_need(engine) == FACTOR_COMPLETE) return;
  if (engine->is_catching_up) engine->need = FACTOR_PARTIAL;
  engine->is_catching_up = false;
  engine->clock = self->received = self->applied = self->base;
  engine->donor = donor == engine->config.life ? 0 : donor;
  engine->has_head = false;
  engine->model_got = 0;
  if (donor == FACTOR_NONE)
    pwi_factor_fail(engine, PAWL_NODE_GONE, "every member that had the whole matrix, or these rows of it, is gone");
  else if (engine->donor == 0)
    engine->need = FACTOR_COMPLETE;
  else
    pwi_factor_ask_model(engine);
}

void pwi_factor_enter(struct pwi_factor *engine, struct factor_epoch epoch, const struct factor_line *lines,
                      uint32_t count, uint64_t donor) {
  const struct factor_message message = {.epoch = epoch, .own = epoch};
  pawl_status status = make_origins(engine, lines, count);
  if (!status) status = make_graph(engine);
  if (!status) status = reset_peers(engine);
  if (status) {
    pwi_factor_fail(engine, status, "no memory for %" PRIu32 " members", count);
    return;
  }
  engine->epoch = engine->promised = epoch;
  engine->is_calling = false;
  engine->own_id = pwi_channel_self(engine->channel).id;
  engine->counts.agreements++;
  for (uint32_t i = 0; i < count; i++) look_at_graph(engine, &engine->origins[i]);
  look_at_parts(engine);
  begin_model(engine, donor);
  settle_gone(engine);
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked) pwi_factor_say(engine, peer, FACTOR_STATUS, &message);
  pwi_factor_say_have_all(engine, true);
  pwi_log(engine->config.log, PAWL_LOG_DEBUG, "factor.epoch",
          "factor=%s number=%" PRIu64 " round=%" PRIu32 " members=%" PRIu32 " clock=%" PRIu64, engine->config.name,
          epoch.number, epoch.round, count, engine->clock);
}

void pwi_factor_forget_epoch(struct pwi_factor *engine) {
  pwi_graph_destroy(engine->graph);
  pwi_free(engine->parents);
  pwi_free(engine->origins);
  pwi_free(engine->nodes);
}
