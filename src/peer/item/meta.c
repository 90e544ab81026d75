/* Who produces and consumes what (Lapser, 3.2.3): sent to every member when it is linked, as runs, and checked. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "peer/item/inside.h"

/* --- sending -------------------------------------------------------------------------------------------- */

/* One message with up to ITEM_META_RUNS runs of one list. */
static bool send_part(struct pwi_items *engine, struct item_peer *peer, const struct item_runs *runs, size_t from,
                      bool is_consumed, bool is_last) {
  size_t count = runs->count - from < ITEM_META_RUNS ? runs->count - from : ITEM_META_RUNS;
  struct item_meta meta = {.parameters = engine->parameters,
                           .incarnation = engine->incarnation,
                           .is_open = engine->is_open,
                           .is_last = is_last,
                           .is_consumed = is_consumed,
                           .runs = (uint32_t)count};
  pwi_writer_reset(&engine->writer);
  pwi_item_meta_begin(&engine->writer, &meta);
  for (size_t i = from; i < from + count; i++) pwi_item_meta_run(&engine->writer, &runs->runs[i]);
  if (engine->writer.status) {
    pwi_item_fail(engine, engine->writer.status, "no memory for the keys of this member");
    return false;
  }
  return pwi_channel_send(engine->channel, peer->sender, ITEM_META, engine->writer.data, engine->writer.size) ==
         PAWL_OK;
}

/* All parts or not the last one: a peer must not take some of the keys for all of them. */
void pwi_item_send_meta(struct pwi_items *engine, struct item_peer *peer) {
  bool is_sent = true;
  for (size_t i = 0; i < engine->produces.count && is_sent; i += ITEM_META_RUNS)
    is_sent = send_part(engine, peer, &engine->produces, i, false, false);
  for (size_t i = 0; i < engine->consumes.count && is_sent; i += ITEM_META_RUNS)
    is_sent = send_part(engine, peer, &engine->consumes, i, true, false);
  if (is_sent) (void)!send_part(engine, peer, &engine->consumes, engine->consumes.count, true, true);
}

/* --- checking ------------------------------------------------------------------------------------------- */

/* Both contradict each other. Members that are opening the context fail. Of two that have opened it, and
 * produce the same key, the later one fails; in any other case this member only ignores the peer. */
static void contradict(struct pwi_items *engine, struct item_peer *peer, pawl_status status, const char *problem) {
  bool is_later = pwi_channel_self(engine->channel).id > peer->sender.id;
  peer->is_bad = true;
  if (!engine->is_open || (status == PAWL_EXISTS && peer->is_peer_open && is_later)) {
    pwi_item_fail(engine, status, "%s", problem);
    return;
  }
  pwi_item_freeze(engine, peer);
  pwi_log(engine->config.log, PAWL_LOG_WARN, "items.refused", "items=%s status=%s why=\"%s\"", engine->name,
          pawl_status_name(status), problem);
}

static const char *variant_name(const struct item_parameters *parameters) {
  return parameters->variant == PAWL_ITEMS_PULL ? "pull" : parameters->is_conservative ? "conservative push" : "push";
}

/* Returns true if the problem is written. */
static bool differ(const struct item_parameters *ours, const struct item_parameters *theirs, uint64_t node,
                   char *problem, size_t room) {
  if (theirs->size != ours->size)
    snprintf(problem, room, "items have %" PRIu64 " bytes here and %" PRIu64 " at node %" PRIu64, ours->size,
             theirs->size, node);
  else if (theirs->count != ours->count)
    snprintf(problem, room, "there are %" PRIu64 " items here and %" PRIu64 " at node %" PRIu64, ours->count,
             theirs->count, node);
  else if (theirs->variant != ours->variant || theirs->is_conservative != ours->is_conservative)
    snprintf(problem, room, "the variant is %s here and %s at node %" PRIu64, variant_name(ours), variant_name(theirs),
             node);
  else if (theirs->producers != ours->producers || theirs->work_per_clock != ours->work_per_clock)
    snprintf(problem, room, "node %" PRIu64 " has another number of producers an item, or of work per clock", node);
  else
    return false;
  return true;
}

/* Frees the pages of lists that this member does not need. */
static pawl_status compute_common(struct pwi_items *engine, struct item_peer *peer) {
  pawl_status status = pwi_item_runs_finish(&peer->produces);
  if (!status) status = pwi_item_runs_finish(&peer->consumes);
  if (!status) status = pwi_item_runs_common(&engine->consumes, &peer->produces, &peer->in);
  if (!status) status = pwi_item_runs_common(&engine->produces, &peer->consumes, &peer->out);
  pwi_item_runs_fini(&peer->consumes);
  return status;
}

static pawl_status check_producers(struct pwi_items *engine, struct item_peer *peer) {
  char problem[PWI_ITEMS_PROBLEM_MAX];
  struct item_runs both;
  if (engine->parameters.producers > 1) return PAWL_OK;
  pawl_status status = pwi_item_runs_common(&engine->produces, &peer->produces, &both);
  if (status) return status;
  if (both.keys > 0) {
    snprintf(problem, sizeof problem,
             "key %" PRIu32 " is produced by this member, node %" PRIu64 ", and by node %" PRIu64, both.runs[0].start,
             pwi_channel_self(engine->channel).id, peer->sender.id);
    contradict(engine, peer, PAWL_EXISTS, problem);
  }
  pwi_item_runs_fini(&both);
  return PAWL_OK;
}

/* The peer has told all. */
static void conclude(struct pwi_items *engine, struct item_peer *peer) {
  pawl_status status = compute_common(engine, peer);
  if (!status) status = check_producers(engine, peer);
  if (status) {
    pwi_item_fail(engine, status, "no memory for the keys of node %" PRIu64, peer->sender.id);
    return;
  }
  if (peer->in.keys == 0) pwi_item_runs_fini(&peer->produces);
  peer->has_meta = true;
  pwi_item_say_number(engine, peer, ITEM_SEEN, 0);
}

void pwi_item_drop_meta(struct item_peer *peer) {
  pwi_item_runs_fini(&peer->produces);
  pwi_item_runs_fini(&peer->consumes);
  pwi_item_runs_fini(&peer->in);
  pwi_item_runs_fini(&peer->out);
  pwi_free(peer->asked);
  pwi_free(peer->sought);
  pwi_free(peer->asks);
  peer->asked = peer->sought = peer->asks = NULL;
  peer->ask_count = 0;
  pwi_item_marks_fini(&peer->wanted);
  pwi_item_marks_fini(&peer->fetching);
  pwi_item_marks_fini(&peer->dirty);
  peer->has_meta = false;
}

/* A peer that opens the context again may produce other keys, and its earlier versions are void. */
static void begin(struct pwi_items *engine, struct item_peer *peer, const struct item_meta *meta) {
  peer->is_telling = true;
  peer->is_repeated = peer->has_meta && peer->incarnation == meta->incarnation;
  peer->is_peer_open = meta->is_open;
  if (peer->is_repeated) return;
  pwi_item_forget_places(engine, peer);
  pwi_item_drop_meta(peer);
  peer->incarnation = meta->incarnation;
}

void pwi_item_hear_meta(struct pwi_items *engine, struct item_peer *peer, const void *bytes, size_t size) {
  char problem[PWI_ITEMS_PROBLEM_MAX];
  struct item_meta meta;
  pawl_status status = pwi_item_meta_decode(bytes, size, &meta);
  if (peer->is_bad || (peer->is_told && !status)) return;
  if (!status && !peer->is_telling) begin(engine, peer, &meta);
  if (!status && differ(&engine->parameters, &meta.parameters, peer->sender.id, problem, sizeof problem)) {
    pwi_item_say_number(engine, peer, ITEM_SEEN, 0);
    contradict(engine, peer, PAWL_MISMATCH, problem);
    return;
  }
  if (!status && !peer->is_repeated)
    status = pwi_item_meta_runs(&meta, meta.is_consumed ? &peer->consumes : &peer->produces);
  if (status == PAWL_NO_MEMORY) {
    pwi_item_fail(engine, status, "no memory for the keys of node %" PRIu64, peer->sender.id);
  } else if (status) {
    snprintf(problem, sizeof problem, "what node %" PRIu64 " says about its keys is malformed", peer->sender.id);
    contradict(engine, peer, PAWL_CORRUPT, problem);
  } else if (meta.is_last) {
    peer->is_told = true;
    if (peer->is_repeated)
      pwi_item_say_number(engine, peer, ITEM_SEEN, 0);
    else
      conclude(engine, peer);
  }
}
