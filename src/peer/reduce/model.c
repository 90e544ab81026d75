/* A member that is behind takes over the tensors of another one, its donor. The donor is inside its step, where its
 * tensors do not change, and stays there until the member has them. The member opens a region for them; after a lost
 * link it opens another one. */
#include <inttypes.h>

#include "peer/reduce/inside.h"

void pwi_reduce_end_model(struct pwi_reduce *engine) {
  struct reduce_peer *donor = engine->model ? pwi_reduce_find(engine, engine->donor) : NULL;
  if (engine->is_outside || !engine->model) return;
  if (donor && donor->is_linked && !engine->has_model) { /* it may still be put into */
    const struct reduce_message none = {.epoch = engine->epoch};
    pwi_reduce_retire(engine, donor, engine->model, engine->model_tag);
    pwi_reduce_say(engine, donor, REDUCE_MODEL, &none);
  } else {
    pwi_net_region_close(engine->config.net, engine->model);
  }
  engine->model = NULL;
}

void pwi_reduce_ask_model(struct pwi_reduce *engine) {
  const struct reduce_peer *donor = pwi_reduce_find(engine, engine->donor);
  size_t size = pwi_reduce_model_size(engine);
  if (!donor || !donor->is_linked || engine->model || engine->has_model) return;
  pawl_status status = pwi_net_region_open(engine->config.net, size, &engine->model);
  if (status) {
    engine->model = NULL;
    pwi_reduce_fail(engine, status, "no memory for the model of node %" PRIu64, donor->sender.id);
    return;
  }
  engine->model_tag = pwi_reduce_tag(engine);
  struct reduce_message message = {.epoch = engine->epoch, .tag = engine->model_tag, .size = size};
  pwi_reduce_say(engine, donor, REDUCE_MODEL, &message);
  if (pwi_channel_share(engine->channel, donor->sender, engine->model_tag, engine->model, PWI_ACCESS_WRITE)) {
    pwi_net_region_close(engine->config.net, engine->model);
    engine->model = NULL;
  }
}

/* The donor hears of a region for its tensors, or that the last one is of no use any more. */
void pwi_reduce_hear_model(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  struct reduce_message release = {.tag = peer->model_tag};
  if (peer->model_tag != 0 && peer->model_next == 0)
    pwi_reduce_say(engine, peer, REDUCE_RELEASE, &release);
  else if (peer->model_tag != 0)
    (void)!pwi_channel_fence(engine->channel, peer->sender, COOKIE_FENCE | peer->model_tag << COOKIE_BITS);
  peer->model_tag = message->tag;
  peer->has_model_remote = false;
  peer->model_next = 0;
}

/* Puts as many tensors as the link takes; the last put notifies. Tensors without values are skipped. */
void pwi_reduce_serve(struct pwi_reduce *engine, struct reduce_peer *peer) {
  static const unsigned char end[REDUCE_MODEL_END];
  const struct reduce_layout *layout = &engine->layout;
  bool is_stable = engine->phase == PHASE_STAGE || (engine->phase == PHASE_EXCHANGE && !engine->is_outside);
  if (!peer->is_served || !peer->is_linked || !peer->has_model_remote || !is_stable || pwi_reduce_is_stale(engine))
    return;
  for (; peer->model_next <= layout->all; peer->model_next++) {
    bool is_last = peer->model_next == layout->all;
    const struct reduce_piece *piece = &layout->pieces[is_last ? 0 : peer->model_next];
    if (!is_last && piece->size == 0) continue;
    pawl_status status = pwi_channel_put(engine->channel, peer->sender, peer->model_remote,
                                         is_last ? layout->model : piece->model_offset, is_last ? end : piece->values,
                                         is_last ? REDUCE_MODEL_END : piece->size,
                                         is_last ? (peer->model_tag & 0xffff) << 32 : 0, COOKIE_MODEL);
    if (status) return; /* `writable`, or the next link */
    peer->model_puts++;
    engine->model_puts++;
  }
}

/* With a new epoch the member asks again. */
bool pwi_reduce_is_serving(const struct pwi_reduce *engine) {
  if (engine->model_puts > 0) return true;
  for (const struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (peer->is_served && !peer->is_gone) return !pwi_reduce_is_stale(engine);
  return false;
}

bool pwi_reduce_are_tensors_read(const struct pwi_reduce *engine) { return engine->model_puts > 0; }
