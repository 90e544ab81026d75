/* Forwards callbacks to a role. */
#include "sim/shell.h"

#define OUTSIDE UINT64_C(253) /* upper byte of the observer's cookies */
#define SHIFT 56

static pawl_status greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  const struct pwi_sim_shell *shell = self;
  return shell->inner->greet ? shell->inner->greet(shell->self, link, info) : PAWL_OK;
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->link_up) shell->inner->link_up(shell->self, link, info);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->link_down) shell->inner->link_down(shell->self, link, why);
}

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *message) {
  const struct pwi_sim_shell *shell = self;
  if (shell->heard) shell->heard(shell->context, message);
  if (shell->inner->message) return shell->inner->message(shell->self, link, message);
  return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->piece) shell->inner->piece(shell->self, link, context, offset, data, size);
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->message_end) shell->inner->message_end(shell->self, link, context, status);
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->done) shell->inner->done(shell->self, link, cookie, status);
}

static void notified(void *self, struct pwi_link link, uint64_t value) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->notified) shell->inner->notified(shell->self, link, value);
}

static void writable(void *self, struct pwi_link link) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->writable) shell->inner->writable(shell->self, link);
}

static void held(void *self, struct pwi_link link, bool is_held) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->held) shell->inner->held(shell->self, link, is_held);
}

static void timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  const struct pwi_sim_shell *shell = self;
  if (cookie >> SHIFT == OUTSIDE)
    shell->timer(shell->context, cookie & ((UINT64_C(1) << SHIFT) - 1));
  else if (shell->inner->timer)
    shell->inner->timer(shell->self, timer, cookie);
}

static void woken(void *self) {
  const struct pwi_sim_shell *shell = self;
  if (shell->inner->woken) shell->inner->woken(shell->self);
}

const struct pwi_actor pwi_sim_shell_actor = {
    .greet = greet,
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .message_end = message_end,
    .done = done,
    .notified = notified,
    .writable = writable,
    .held = held,
    .timer = timer,
    .woken = woken,
};

pawl_status pwi_sim_shell_timer(struct pwi_net *net, int64_t delay, uint64_t cookie) {
  struct pwi_timer timer;
  return pwi_net_timer_set(net, pwi_net_now(net) + delay, OUTSIDE << SHIFT | cookie, &timer);
}
