/* The exchange that one would write by hand for workers on several hosts: a socket between every two workers, and in each
 * worker a thread for each socket that receives. As in the MPI ISend version of the thesis (5.2.1), a worker sends each
 * block as soon as it is drawn, and the other threads receive while it computes.
 *
 * A message is a head, then the rows of the block that the receiver needs, then the sums of the block. Rows are received
 * into memory of their own, because the worker may still compute with those of the iteration before. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "apps/common/memory.h"
#include "hand.h"

#define PIECES 256 /* of one writev */

struct head {
  uint32_t side, block;
  uint64_t iteration;
};

struct receiver {
  struct pwi_lapser_inbox *inbox;
  uint32_t from;
  pthread_t thread;
};

struct pwi_lapser_inbox {
  struct pwi_lapser_worker *worker;
  pthread_mutex_t mutex;
  pthread_cond_t arrived;
  float *rows[BPMF_SIDES];
  double *sums;         /* by bpmf_sums_place */
  uint64_t *iterations; /* of the blocks that have arrived; by side and block */
  struct bpmf_part parts[PWI_LAPSER_WORKERS_MAX];
  uint32_t receivers;
  bool is_broken;
  struct receiver others[PWI_LAPSER_WORKERS_MAX];
};

static const struct bpmf_side *side_of(const struct pwi_lapser_inbox *inbox, uint32_t side) {
  return &inbox->worker->is.sampler.sides[side];
}

/* --- receiving -------------------------------------------------------------------------------------------- */

static bool receive(int socket, void *to, size_t size) {
  for (ssize_t moved; size > 0; to = (char *)to + moved, size -= (size_t)moved) {
    moved = read(socket, to, size);
    if (moved < 0 && errno == EINTR)
      moved = 0;
    else if (moved <= 0)
      return false;
  }
  return true;
}

struct arriving {
  int socket;
  float *rows;
  size_t width;
  bool is_fine;
};

static void receive_range(void *context, size_t row, size_t count) {
  struct arriving *arriving = context;
  arriving->is_fine = arriving->is_fine && receive(arriving->socket, arriving->rows + row * arriving->width,
                                                   count * arriving->width * sizeof(float));
}

static bool receive_block(struct pwi_lapser_inbox *inbox, int socket, const struct head *head) {
  const struct bpmf_sampler *sampler = &inbox->worker->is.sampler;
  if (head->side >= BPMF_SIDES || head->block >= side_of(inbox, head->side)->blocks) return false;
  struct arriving arriving = {socket, inbox->rows[head->side], sampler->width, true};
  pwi_lapser_needed(&inbox->worker->is.part, side_of(inbox, head->side), (int)head->side, head->block, head->block + 1,
                    receive_range, &arriving);
  size_t size = bpmf_sums_size(sampler->width);
  return arriving.is_fine &&
         receive(socket, inbox->sums + size * bpmf_sums_place(sampler, (int)head->side, head->block, head->iteration),
                 size * sizeof(double));
}

static void *receive_all(void *context) {
  struct receiver *receiver = context;
  struct pwi_lapser_inbox *inbox = receiver->inbox;
  struct pwi_lapser_hand *hand = inbox->worker->own;
  int socket = hand->sockets[receiver->from];
  struct head head;
  while (receive(socket, &head, sizeof head) && receive_block(inbox, socket, &head)) {
    pthread_mutex_lock(&inbox->mutex);
    inbox->iterations[head.side * BPMF_BLOCKS + head.block] = head.iteration;
    pthread_cond_signal(&inbox->arrived);
    pthread_mutex_unlock(&inbox->mutex);
  }
  pthread_mutex_lock(&inbox->mutex);
  inbox->is_broken = true; /* or the other worker has closed */
  pthread_cond_signal(&inbox->arrived);
  pthread_mutex_unlock(&inbox->mutex);
  return NULL;
}

/* Waits for all blocks of others. */
static pawl_status await(struct pwi_lapser_inbox *inbox, int number, uint64_t iteration) {
  const struct bpmf_part *own = &inbox->worker->is.part;
  pawl_status status = PAWL_OK;
  pthread_mutex_lock(&inbox->mutex);
  for (size_t block = 0; block < side_of(inbox, (uint32_t)number)->blocks && !status; block++) {
    if (block >= own->first[number] && block < own->end[number]) continue;
    const uint64_t *arrived = &inbox->iterations[(size_t)number * BPMF_BLOCKS + block];
    while (*arrived < iteration && !inbox->is_broken) pthread_cond_wait(&inbox->arrived, &inbox->mutex);
    if (*arrived < iteration) status = PAWL_NODE_GONE;
  }
  pthread_mutex_unlock(&inbox->mutex);
  return status;
}

/* --- sending ---------------------------------------------------------------------------------------------- */

struct sending {
  int socket;
  const float *rows;
  size_t width;
  struct iovec pieces[PIECES];
  int count;
  bool is_fine;
};

static void send_pieces(struct sending *sending) {
  struct iovec *at = sending->pieces;
  for (int left = sending->count; left > 0 && sending->is_fine;) {
    ssize_t moved = writev(sending->socket, at, left);
    if (moved < 0 && errno != EINTR) sending->is_fine = false;
    for (size_t done = moved > 0 ? (size_t)moved : 0; left > 0;) {
      size_t part = done < at->iov_len ? done : at->iov_len;
      at->iov_base = (char *)at->iov_base + part;
      at->iov_len -= part;
      done -= part;
      if (at->iov_len > 0) break;
      at++;
      left--;
    }
  }
  sending->count = 0;
}

static void add_piece(struct sending *sending, const void *bytes, size_t size) {
  if (sending->count == PIECES) send_pieces(sending);
  sending->pieces[sending->count++] = (struct iovec){(void *)(uintptr_t)bytes, size};
}

static void add_range(void *context, size_t row, size_t count) {
  struct sending *sending = context;
  add_piece(sending, sending->rows + row * sending->width, count * sending->width * sizeof(float));
}

static void put(struct bpmf_worker *worker, int number, size_t block) {
  struct pwi_lapser_hand *hand = pwi_lapser_hand_of(worker);
  const struct bpmf_sampler *sampler = &worker->sampler;
  const struct bpmf_side *side = &sampler->sides[number];
  size_t size = bpmf_sums_size(sampler->width);
  struct head head = {(uint32_t)number, (uint32_t)block, sampler->iteration};
  for (uint32_t i = 0; i < hand->workers; i++) {
    if (i == hand->index) continue;
    struct sending sending = {hand->sockets[i], side->rows, sampler->width, .is_fine = true};
    add_piece(&sending, &head, sizeof head);
    pwi_lapser_needed(&hand->inbox->parts[i], side, number, block, block + 1, add_range, &sending);
    add_piece(&sending, side->sums + block * size, size * sizeof(double));
    send_pieces(&sending);
    if (!sending.is_fine) atomic_store(&worker->put, PAWL_NODE_GONE);
  }
}

/* --- the link --------------------------------------------------------------------------------------------- */

static void nothing(struct bpmf_worker *worker) { (void)worker; }

static pawl_status flush(struct bpmf_worker *worker, int side) {
  (void)side;
  return (pawl_status)atomic_load(&worker->put);
}

static pawl_status rows(struct bpmf_worker *worker, int side) {
  struct pwi_lapser_inbox *inbox = pwi_lapser_hand_of(worker)->inbox;
  pawl_status status = await(inbox, side, worker->sampler.iteration);
  if (!status) pwi_lapser_take_rows(worker, side, inbox->rows[side]);
  return status;
}

static pawl_status sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  struct pwi_lapser_inbox *inbox = pwi_lapser_hand_of(worker)->inbox;
  pawl_status status = await(inbox, side, clock);
  if (!status) pwi_lapser_take_sums(worker, side, clock, inbox->sums);
  return status;
}

/* --- life ------------------------------------------------------------------------------------------------- */

static pawl_status make_inbox(struct pwi_lapser_inbox *inbox, const struct pwi_lapser_hand *hand) {
  const struct bpmf_sampler *sampler = &inbox->worker->is.sampler;
  size_t blocks = sampler->sides[BPMF_USERS].blocks + sampler->sides[BPMF_ITEMS].blocks;
  bool is_fine = true;
  for (int number = 0; number < BPMF_SIDES; number++) {
    inbox->rows[number] = apps_alloc_zero(sampler->sides[number].ratings->rows, sampler->width * sizeof(float));
    is_fine = is_fine && inbox->rows[number];
  }
  inbox->sums = apps_alloc_zero(2 * blocks, bpmf_sums_size(sampler->width) * sizeof(double));
  inbox->iterations = apps_alloc_zero(2 * BPMF_BLOCKS, sizeof *inbox->iterations);
  for (uint32_t i = 0; i < hand->workers; i++)
    is_fine = bpmf_part_init(&inbox->parts[i], sampler, i, hand->workers) && is_fine;
  return is_fine && inbox->sums && inbox->iterations ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status open_link(struct bpmf_worker *worker) {
  struct pwi_lapser_hand *hand = pwi_lapser_hand_of(worker);
  struct pwi_lapser_inbox *inbox = hand->inbox = apps_alloc_zero(1, sizeof *inbox);
  if (!inbox) return PAWL_NO_MEMORY;
  inbox->worker = pwi_lapser_of(worker);
  pthread_mutex_init(&inbox->mutex, NULL);
  pthread_cond_init(&inbox->arrived, NULL);
  pawl_status status = make_inbox(inbox, hand);
  for (uint32_t i = 0; i < hand->workers && !status; i++) {
    struct receiver *receiver = &inbox->others[inbox->receivers];
    if (i == hand->index) continue;
    *receiver = (struct receiver){.inbox = inbox, .from = i};
    if (pthread_create(&receiver->thread, NULL, receive_all, receiver) != 0) status = PAWL_NO_MEMORY;
    inbox->receivers += !status;
  }
  return status;
}

/* All workers have made all iterations. The caller shuts the sockets down before, so that receivers end. */
static void close_link(struct bpmf_worker *worker) {
  struct pwi_lapser_inbox *inbox = pwi_lapser_hand_of(worker)->inbox;
  if (!inbox) return;
  for (uint32_t i = 0; i < inbox->receivers; i++) pthread_join(inbox->others[i].thread, NULL);
  for (int number = 0; number < BPMF_SIDES; number++) apps_free(inbox->rows[number]);
  for (uint32_t i = 0; i < PWI_LAPSER_WORKERS_MAX; i++) bpmf_part_fini(&inbox->parts[i]);
  apps_free(inbox->sums);
  apps_free(inbox->iterations);
  apps_free(inbox);
  pwi_lapser_hand_of(worker)->inbox = NULL;
}

const struct bpmf_link pwi_lapser_socket_link = {nothing, open_link, put, flush, rows, sums, close_link, close_link};
