/* Neighbours on the same host read one another's memory. A member without them uses the slots of exchange.c.
 *
 * The staging buffers lie in a region that a member shares with its neighbours for reading, for as long as
 * the engine lives. At its begin is the *board*, with words that only this member writes: the versions that
 * the buffers hold, and the last version whose inputs it has used. A neighbour that has mapped the region
 * needs no put, no NOTIFY and no ACK:
 *
 *   sender                                receiver
 *   packs version 8 into buffer 0
 *   versions[0] = 8                       sees it; combines, reading the tensors where they are
 *                                         used = 8
 *   sees it; packs version 10 into buffer 0
 *
 * This works in NOTIFY-ACK mode without filters, in which the staging buffers hold all values of the last two
 * versions, and tensors can be restored from them.
 *
 * WHICH WAY. A member offers its region to each neighbour, on every link. The neighbour maps it and says
 * MAPPED, or it finds that the two share no memory and opens a slot. So the receiver decides, for one
 * direction and one link.
 *
 * EPOCHS. Words belong to the epoch whose mark is beside them. The mark is written after the words were
 * cleared, and before they are set again: a reader that has seen the mark before and after a word knows the
 * epoch of the word. No member enters an epoch while another member of that epoch combines in an older one. A
 * node that was declared dead may do so: it looks at the words again after it has combined, and restores its
 * tensors if they have changed.
 *
 * WAKING. A step that waits looks at the boards for a while (pwi_reduce_spin) and then sleeps. Before it
 * sleeps it says so on its own board, and looks once more. A member that has changed its board reads whether
 * neighbours sleep. All four accesses are sequentially consistent, so one of the two sees the other.
 *
 * TRUST. A faulty neighbour can show any words and change its tensors while they are read. Each byte is read
 * once, and the results are checked. */
#include <string.h>

#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/reduce/inside.h"
#include "protocol/planted.h"

#define PAGE ((size_t)4096)

static uint64_t look_at(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static void set(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

static const struct reduce_board *board_of(const struct reduce_peer *peer) { return peer->window.memory; }

/* --- the own board -------------------------------------------------------------------------------------- */

static size_t stride(const struct pwi_reduce *engine) {
  return (pwi_reduce_slot_size(engine) + PAGE - 1) & ~(PAGE - 1);
}

static size_t region_size(const struct pwi_reduce *engine) { return REDUCE_BOARD_SIZE + 2 * stride(engine); }

pawl_status pwi_reduce_direct_open(struct pwi_reduce *engine) {
  if (engine->layout.capacity > SIZE_MAX / 4) return PAWL_OVERFLOW;
  pawl_status status = pwi_net_region_open(engine->config.net, region_size(engine), &engine->shown);
  if (status) {
    engine->shown = NULL;
    return status;
  }
  unsigned char *memory = pwi_net_region_memory(engine->shown);
  engine->board = (struct reduce_board *)(void *)memory;
  engine->staging[0] = memory + REDUCE_BOARD_SIZE;
  engine->staging[1] = engine->staging[0] + stride(engine);
  return PAWL_OK;
}

bool pwi_reduce_is_shown(const struct pwi_reduce *engine, uint64_t version) {
  return engine->board && version > 0 && look_at(&engine->board->versions[version % 2]) == version;
}

/* A reader that sees any byte of the next version sees this, too, after it has read. */
void pwi_reduce_hide(struct pwi_reduce *engine, uint64_t version) {
  if (!engine->board || pwi_is_planted(PWI_PLANTED_REDUCE_NOTIFY_FIRST)) return;
  __atomic_store_n(&engine->board->versions[version % 2], 0, __ATOMIC_RELAXED);
  pwi_shared_release();
}

/* Without the neighbour's board this member does not know whether the neighbour sleeps, and wakes it. */
static void wake(struct pwi_reduce *engine, const struct reduce_peer *peer, enum reduce_sleep sleep) {
  const struct reduce_message none = {0};
  if (!peer->is_linked || !peer->is_reader) return;
  if (!board_of(peer) || look_at(&board_of(peer)->sleep) == sleep) pwi_reduce_say(engine, peer, REDUCE_WAKE, &none);
}

/* A reader takes the whole buffer. It may still be about to map it; if it opens a slot instead, the put
 * counts no more. */
static void count_bytes(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t version) {
  if (peer->is_gone || peer->target.tag != 0) return;
  peer->counted = version;
  engine->bytes_sent += pwi_reduce_slot_size(engine);
  pwi_net_count_window(engine->config.net, (int64_t)pwi_reduce_slot_size(engine), 0);
}

void pwi_reduce_show(struct pwi_reduce *engine, uint64_t version) {
  if (!engine->board || pwi_reduce_is_shown(engine, version)) return;
  set(&engine->board->versions[version % 2], version);
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->is_out) continue;
    count_bytes(engine, peer, version);
    wake(engine, peer, SLEEP_FOR_VERSIONS);
  }
}

/* The inputs of the version are not needed any more. A neighbour that cannot see that is told. */
void pwi_reduce_show_used(struct pwi_reduce *engine, uint64_t version) {
  struct reduce_message message = {.epoch = engine->epoch, .version = version};
  if (!engine->board) return;
  set(&engine->board->used, version);
  for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->is_in || pwi_reduce_needs_slot(engine, peer)) continue;
    pwi_net_count_window(engine->config.net, 0, (int64_t)pwi_reduce_slot_size(engine));
    if (peer->is_reader)
      wake(engine, peer, SLEEP_FOR_USED);
    else if (peer->is_linked)
      pwi_reduce_say(engine, peer, REDUCE_ACK, &message);
  }
}

void pwi_reduce_direct_begin(struct pwi_reduce *engine) {
  struct reduce_board *board = engine->board;
  engine->mark = pwi_reduce_epoch_mark(engine->epoch);
  if (!board) return;
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) peer->counted = 0;
  set(&board->versions[0], 0);
  set(&board->versions[1], 0);
  set(&board->used, 0);
  set(&board->mark, engine->mark);
  set(&board->used, engine->base);
  if (engine->staged > 0 && !engine->must_pack) pwi_reduce_show(engine, engine->staged);
}

void pwi_reduce_sleep(struct pwi_reduce *engine, bool sleeps) {
  enum reduce_sleep sleep = !sleeps                           ? SLEEP_NONE
                            : engine->phase == PHASE_EXCHANGE ? SLEEP_FOR_VERSIONS
                            : engine->phase == PHASE_STAGE    ? SLEEP_FOR_USED
                                                              : SLEEP_NONE;
  if (engine->board && engine->board->sleep != sleep) set(&engine->board->sleep, sleep);
}

/* --- boards of neighbours ------------------------------------------------------------------------------- */

/* The word of a neighbour's board, if it belongs to our epoch; otherwise 0. */
static uint64_t read_word(const struct reduce_board *board, uint64_t mark, const uint64_t *word) {
  if (look_at(&board->mark) != mark) return 0;
  uint64_t value = look_at(word);
  return look_at(&board->mark) == mark ? value : 0;
}

static bool shows(const struct reduce_board *board, uint64_t mark, uint64_t version) {
  return read_word(board, mark, &board->versions[version % 2]) == version;
}

bool pwi_reduce_needs_slot(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  return !engine->board || peer->is_far;
}

bool pwi_reduce_has_input(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  if (peer->slot && peer->slot->is_full) return true;
  return board_of(peer) && shows(board_of(peer), engine->mark, engine->completed + 1);
}

const unsigned char *pwi_reduce_payload(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  size_t buffer = (engine->completed + 1) % 2;
  if (peer->slot && (peer->slot->is_full || !board_of(peer)))
    return (const unsigned char *)pwi_net_region_memory(peer->slot->region) + REDUCE_HEADER_SIZE;
  return (const unsigned char *)board_of(peer) + REDUCE_BOARD_SIZE + buffer * stride(engine) + REDUCE_HEADER_SIZE;
}

/* Whether every input that was read from a neighbour's buffer was there until the end. */
bool pwi_reduce_are_inputs_kept(const struct pwi_reduce *engine) {
  if (pwi_is_planted(PWI_PLANTED_REDUCE_EARLY_ACK)) return true;
  pwi_shared_acquire();
  for (size_t i = 0; engine->board && i < engine->input_count; i++)
    if (!pwi_reduce_has_input(engine, engine->inputs_used[i])) return false;
  return true;
}

/* --- links ---------------------------------------------------------------------------------------------- */

void pwi_reduce_direct_link(struct reduce_peer *peer) { peer->is_offered = peer->is_far = peer->is_reader = false; }

void pwi_reduce_direct_forget(struct reduce_peer *peer) {
  pwi_net_remote_unmap(&peer->window);
  pwi_net_remote_unmap(&peer->next_window);
}

void pwi_reduce_direct_close(struct pwi_reduce *engine) {
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) pwi_reduce_direct_forget(peer);
  pwi_free(engine->watched);
}

/* The peer has offered its region. If there is no memory for a window the two use a slot. */
void pwi_reduce_direct_shared(struct pwi_reduce *engine, struct reduce_peer *peer, struct pwi_remote remote,
                              uint64_t size) {
  struct reduce_message message = {.epoch = engine->epoch, .version = pwi_reduce_version(engine)};
  struct pwi_window window = {0};
  if (!engine->board || peer->is_far) return;
  if (size == region_size(engine) && pwi_channel_map(engine->channel, peer->sender, remote, &window))
    window.memory = NULL;
  peer->is_far = window.memory == NULL || window.size != size;
  if (peer->is_far) {
    pwi_net_remote_unmap(&window);
    return;
  }
  pwi_net_remote_unmap(&peer->next_window);
  peer->next_window = window;
  pwi_reduce_say(engine, peer, REDUCE_MAPPED, &message);
}

/* A reader has used a version and all before it. */
void pwi_reduce_hear_used(const struct pwi_reduce *engine, struct reduce_peer *peer, struct reduce_epoch epoch,
                          uint64_t version) {
  if (pwi_reduce_epoch_compare(epoch, engine->epoch) != 0) return;
  if (version > peer->acked && version <= engine->staged) peer->acked = version;
}

/* It may have looked before the board changed, and sleep. An ACK of it may be lost with an earlier link. */
void pwi_reduce_hear_mapped(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  if (!engine->board || peer->is_reader) return;
  peer->is_reader = true;
  if (message->version > 0) pwi_reduce_hear_used(engine, peer, message->epoch, message->version - 1);
  wake(engine, peer, SLEEP_FOR_VERSIONS);
  wake(engine, peer, SLEEP_FOR_USED);
}

static void change_window(struct reduce_peer *peer) {
  if (!peer->next_window.memory && !(peer->is_far && peer->window.memory)) return;
  pwi_net_remote_unmap(&peer->window);
  peer->window = peer->next_window;
  peer->next_window = (struct pwi_window){0};
}

/* A share that fails is tried again, at the latest with the next link. */
static void offer(struct pwi_reduce *engine, struct reduce_peer *peer) {
  if (!peer->is_linked || peer->is_offered || !(peer->is_in || peer->is_out) || engine->failed) return;
  peer->is_offered =
      pwi_channel_share(engine->channel, peer->sender, REDUCE_BOARD_TAG, engine->shown, PWI_ACCESS_READ) == PAWL_OK;
}

static void read_used(const struct pwi_reduce *engine, struct reduce_peer *peer) {
  if (!peer->is_out || !board_of(peer)) return;
  pwi_reduce_hear_used(engine, peer, engine->epoch, read_word(board_of(peer), engine->mark, &board_of(peer)->used));
}

void pwi_reduce_direct_update(struct pwi_reduce *engine) {
  if (!engine->board) return;
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!engine->is_outside) change_window(peer);
    offer(engine, peer);
    read_used(engine, peer);
  }
}

/* --- looking -------------------------------------------------------------------------------------------- */

static bool is_missing(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  if (engine->phase == PHASE_STAGE) return peer->is_out && !peer->is_gone && peer->acked + 2 < engine->completed + 1;
  return peer->is_in && !pwi_reduce_has_input(engine, peer);
}

/* Looks help if everything that the step waits for appears on boards. */
bool pwi_reduce_may_spin(struct pwi_reduce *engine) {
  engine->watched_count = 0;
  if (!engine->board || !engine->config.pause || engine->has_spun) return false;
  for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!is_missing(engine, peer)) continue;
    if (!board_of(peer) || peer->is_far) return false;
    if (!PWI_GROW(engine->watched, engine->watched_room, engine->watched_count + 1)) return false;
    engine->watched[engine->watched_count++] = board_of(peer);
  }
  engine->is_spinning = engine->watched_count > 0;
  return engine->is_spinning;
}

static bool has_come(const struct pwi_reduce *engine, const struct reduce_board *board) {
  uint64_t version = engine->completed + 1;
  if (engine->phase == PHASE_STAGE) return read_word(board, engine->mark, &board->used) + 2 >= version;
  return shows(board, engine->mark, version);
}

void pwi_reduce_spin(struct pwi_reduce *engine) {
  unsigned tries = 0;
  for (size_t i = 0; i < engine->watched_count; i++)
    while (!has_come(engine, engine->watched[i]))
      if (!engine->config.pause(engine->config.context, tries++)) return;
}
