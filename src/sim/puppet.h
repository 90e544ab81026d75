/* A puppet: an actor for tests that does nothing by itself and records everything that happens to it.
 * Tests control it through pwi_net_… and pwi_sim_… and inspect its notes. Its memory outlives kills of the
 * node; `boots` and `halts` count them. For tests only. */
#ifndef PWI_SIM_PUPPET_H
#define PWI_SIM_PUPPET_H

#include <stdio.h>
#include <string.h>

#include "sim/sim.h"

#define PUPPET_NOTES 4096
#define PUPPET_BODY (1 << 20)

enum note_kind {
  NOTE_UP = 1,
  NOTE_DOWN,
  NOTE_MESSAGE, /* value: first 8 bytes of the head; size; final status */
  NOTE_DONE,    /* value: cookie */
  NOTE_NOTIFIED,
  NOTE_WRITABLE,
  NOTE_TIMER, /* value: cookie */
  NOTE_WOKEN,
};

struct note {
  enum note_kind kind;
  uint64_t link, value;
  int64_t time; /* of the simulation */
  pawl_status status;
  enum pwi_lane lane;
  size_t size, pieces;
  unsigned can;
  bool accepted, badly_cut; /* badly_cut: a piece violated net.h */
  bool ended;
  bool ready;
};

struct puppet {
  struct pwi_sim *sim;
  struct pwi_sim_node node;
  struct pwi_net *net;
  struct pwi_random *random;
  struct pwi_files *files;
  int boots, halts;
  pawl_status answer_to_greeting;
  enum pwi_receive_how how;
  size_t prefix;        /* size of the first part of bodies that are split */
  struct pwi_link link; /* the link that came up last */
  struct note notes[PUPPET_NOTES];
  size_t note_count;
  /* of the last message that was received in pieces, whole, into memory or split */
  uint8_t body[PUPPET_BODY];
  uint8_t rest[PUPPET_BODY]; /* of a split message, until it ends */
  size_t body_size;
  /* a ready message has begun and not ended: no other callback may come */
  struct note *ready;
  const uint8_t *pieces[PWI_NET_READY_PIECES]; /* of the last ready message */
  size_t piece_sizes[PWI_NET_READY_PIECES];
  void (*on_up)(struct puppet *puppet, struct pwi_link link);
  void (*on_message)(struct puppet *puppet, struct pwi_link link, const struct pwi_message *message);
  void (*on_done)(struct puppet *puppet, uint64_t cookie, pawl_status status);
  void (*on_down)(struct puppet *puppet, struct pwi_link link);
};

static struct note *puppet_note(struct puppet *puppet, enum note_kind kind, uint64_t link, uint64_t value) {
  struct note *note = &puppet->notes[puppet->note_count < PUPPET_NOTES ? puppet->note_count++ : PUPPET_NOTES - 1];
  *note = (struct note){.kind = kind, .link = link, .value = value, .time = pwi_sim_now(puppet->sim)};
  if (puppet->ready) puppet->ready->badly_cut = true;
  return note;
}

static pawl_status puppet_greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)link, (void)info;
  return ((struct puppet *)self)->answer_to_greeting;
}

static void puppet_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct puppet *puppet = self;
  struct note *note = puppet_note(puppet, NOTE_UP, link.id, 0);
  note->can = info->can;
  note->accepted = info->accepted;
  puppet->link = link;
  if (puppet->on_up) puppet->on_up(puppet, link);
}

static void puppet_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct puppet *puppet = self;
  puppet_note(puppet, NOTE_DOWN, link.id, 0)->status = why;
  if (puppet->on_down) puppet->on_down(puppet, link);
}

static struct pwi_receive puppet_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct puppet *puppet = self;
  uint64_t value;
  memcpy(&value, message->head, sizeof value);
  struct note *note = puppet_note(puppet, NOTE_MESSAGE, link.id, value);
  note->size = message->body_size;
  note->lane = message->lane;
  note->ready = message->ready;
  if (puppet->on_message) puppet->on_message(puppet, link, message);
  enum pwi_receive_how how = message->body_size <= PUPPET_BODY ? puppet->how : PWI_RECEIVE_DROP;
  if (message->ready && how == PWI_RECEIVE_PIECES) puppet->ready = note;
  return (struct pwi_receive){
      .how = how, .into = puppet->body, .context = note, .rest = puppet->rest, .prefix = puppet->prefix};
}

static void puppet_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data,
                         size_t size) {
  struct puppet *puppet = self;
  struct note *note = context;
  (void)link;
  bool whole = offset == 0 && size == note->size;
  if (note->ready && !whole) {
    if (note->pieces == PWI_NET_READY_PIECES || puppet->how != PWI_RECEIVE_PIECES) note->badly_cut = true;
  } else if (!note->ready) {
    if ((uintptr_t)data % PWI_NET_PIECE_ALIGN) note->badly_cut = true;
    if (!whole && offset + size < note->size && size % PWI_NET_PIECE_STEP) note->badly_cut = true;
  }
  if (note->ready && note->pieces < PWI_NET_READY_PIECES) {
    puppet->pieces[note->pieces] = data;
    puppet->piece_sizes[note->pieces] = size;
  }
  note->pieces++;
  memcpy(puppet->body + offset, data, size);
  puppet->body_size = offset + size;
}

/* Checks that the pieces of a ready message are still in place. */
static void puppet_read_again(const struct puppet *puppet, struct note *note) {
  size_t offset = 0;
  for (size_t i = 0; i < note->pieces && i < PWI_NET_READY_PIECES; offset += puppet->piece_sizes[i++])
    if (memcmp(puppet->body + offset, puppet->pieces[i], puppet->piece_sizes[i])) note->badly_cut = true;
}

static void puppet_message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct puppet *puppet = self;
  struct note *note = context;
  (void)link;
  if (note->ended || (puppet->ready && (puppet->ready != note || status))) note->badly_cut = true;
  puppet->ready = NULL;
  if (note->ready && puppet->how == PWI_RECEIVE_PIECES) puppet_read_again(puppet, note);
  if (puppet->how == PWI_RECEIVE_SPLIT && status == PAWL_OK && note->size > puppet->prefix && note->size <= PUPPET_BODY)
    memcpy(puppet->body + puppet->prefix, puppet->rest, note->size - puppet->prefix);
  note->ended = true;
  note->status = status;
}

static void puppet_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct puppet *puppet = self;
  puppet_note(puppet, NOTE_DONE, link.id, cookie)->status = status;
  if (puppet->on_done) puppet->on_done(puppet, cookie, status);
}

static void puppet_notified(void *self, struct pwi_link link, uint64_t value) {
  puppet_note(self, NOTE_NOTIFIED, link.id, value);
}

static void puppet_writable(void *self, struct pwi_link link) { puppet_note(self, NOTE_WRITABLE, link.id, 0); }

static void puppet_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  (void)timer;
  puppet_note(self, NOTE_TIMER, 0, cookie);
}

static void puppet_woken(void *self) { puppet_note(self, NOTE_WOKEN, 0, 0); }

static const struct pwi_actor puppet_actor = {
    .greet = puppet_greet,
    .link_up = puppet_link_up,
    .link_down = puppet_link_down,
    .message = puppet_message,
    .piece = puppet_piece,
    .message_end = puppet_message_end,
    .done = puppet_done,
    .notified = puppet_notified,
    .writable = puppet_writable,
    .timer = puppet_timer,
    .woken = puppet_woken,
};

static pawl_status puppet_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct puppet *puppet = context;
  char address[64];
  snprintf(address, sizeof address, "%s:7000", boot->name);
  pawl_status status = pwi_net_listen(boot->net, address);
  if (status) return status;
  puppet->net = boot->net;
  puppet->random = boot->random;
  puppet->files = boot->files;
  puppet->boots++;
  *actor_out = &puppet_actor;
  *self_out = puppet;
  return PAWL_OK;
}

static void puppet_halt(void *context, void *self) {
  (void)context;
  ((struct puppet *)self)->halts++;
}

/* --- controls ------------------------------------------------------------------------------------------- */

__attribute__((unused)) static pawl_status puppet_start(struct puppet *puppet, struct pwi_sim *sim, const char *name,
                                                        const char *host) {
  puppet->sim = sim;
  struct pwi_sim_program program = {
      .name = name, .host = host, .boot = puppet_boot, .halt = puppet_halt, .context = puppet};
  pawl_status status = pwi_sim_node_add(sim, &program, &puppet->node);
  return status ? status : pwi_sim_start(sim, puppet->node);
}

__attribute__((unused)) static size_t puppet_count(const struct puppet *puppet, enum note_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < puppet->note_count; i++) count += puppet->notes[i].kind == kind;
  return count;
}

/* The n-th note of a kind, from 0; NULL if there are fewer. */
__attribute__((unused)) static const struct note *puppet_find(const struct puppet *puppet, enum note_kind kind,
                                                              size_t n) {
  for (size_t i = 0; i < puppet->note_count; i++)
    if (puppet->notes[i].kind == kind && n-- == 0) return &puppet->notes[i];
  return NULL;
}

__attribute__((unused)) static pawl_status puppet_send(struct puppet *puppet, enum pwi_lane lane, uint64_t value,
                                                       const void *body, size_t size, uint64_t cookie) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {0};
  memcpy(head, &value, sizeof value);
  struct iovec part = {.iov_base = (void *)(uintptr_t)body, .iov_len = size};
  struct pwi_send send = {.lane = lane, .head = head, .body = &part, .body_count = size > 0, .cookie = cookie};
  return pwi_net_send(puppet->net, puppet->link, &send);
}

#endif
