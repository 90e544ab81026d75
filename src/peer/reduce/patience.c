/* Members that do not answer. A step that waits much longer than steps usually do asks the members that it waits
 * for: their actors answer although their applications compute. Of a member that does not answer it writes a line into
 * the log, and goes on waiting. Silence proves nothing: a process that is starved of processor time, or stopped, is as
 * silent as a dead one, and the manager gives it the time of --client-grace. A process that has ended does not listen
 * any more, which the peers report to the manager as soon as they try to make the link again. */
#include <inttypes.h>

#include "peer/reduce/inside.h"

#define LEAST_NS INT64_C(50000000)
#define MOST_NS INT64_C(2000000000)

/* As round-trip times are smoothed (Jacobson): an eighth of each new value, a quarter of each new deviation. */
void pwi_reduce_patience_learn(struct pwi_reduce *engine, int64_t waited) {
  int64_t error = waited - engine->smooth;
  engine->smooth += error / 8;
  engine->deviation += ((error < 0 ? -error : error) - engine->deviation) / 4;
}

static int64_t patience(const struct pwi_reduce *engine) {
  int64_t limit = 8 * engine->smooth + 4 * engine->deviation + pwi_net_allowance(engine->config.net);
  return limit < LEAST_NS ? LEAST_NS : limit > MOST_NS ? MOST_NS : limit;
}

bool pwi_reduce_is_waited_for(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  if (peer->is_gone) return false;
  switch (engine->phase) {
  case PHASE_AGREE:
    if (engine->called.caller == pwi_reduce_self(engine)) return !engine->decision.is_made && !peer->has_state;
    return peer->sender.id == engine->called.caller;
  case PHASE_ADOPT:
    return peer->sender.id == engine->donor;
  case PHASE_STAGE:
    return peer->is_out && peer->acked + 2 < engine->completed + 1;
  case PHASE_EXCHANGE:
    if (engine->config.mode == PAWL_REDUCE_BSP) return peer->sender.id == engine->epoch.caller;
    return (peer->is_in && !pwi_reduce_has_input(engine, peer)) || peer->is_served;
  default:
    return false;
  }
}

static void ask(struct pwi_reduce *engine, struct reduce_peer *peer) {
  const struct reduce_message none = {0};
  bool was_silent = peer->is_silent;
  peer->is_silent = !peer->is_linked || (peer->is_pinged && peer->pongs == 0);
  if (peer->is_silent && !was_silent)
    pwi_log(engine->config.log, PAWL_LOG_INFO, "reduce.silent",
            "reduce=%s peer=%" PRIu64 " linked=%d waited_ms=%" PRId64, engine->config.name, peer->sender.id,
            peer->is_linked, (pwi_net_now(engine->config.net) - engine->waited_since) / 1000000);
  peer->is_pinged = peer->is_linked;
  peer->pongs = 0;
  if (peer->is_linked) pwi_reduce_say(engine, peer, REDUCE_PING, &none);
}

void pwi_reduce_patience_look(struct pwi_reduce *engine, int64_t now) {
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (pwi_reduce_is_waited_for(engine, peer)) ask(engine, peer);
  engine->looked_at = now;
}

int64_t pwi_reduce_look_at(const struct pwi_reduce *engine) {
  if (engine->is_closing) return engine->has_left ? PWI_NET_NEVER : engine->close_by;
  if (pwi_reduce_want(engine) != PWI_REDUCE_WAIT) return PWI_NET_NEVER;
  int64_t since = engine->waited_since > engine->looked_at ? engine->waited_since : engine->looked_at;
  return since + patience(engine);
}
