/* Threads of a worker: see crew.h. They are started for each phase, which is long compared with the start. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/crew.h"
#include "apps/lda/inside.h"

static pawl_status init_hand(struct lda_crew *crew, struct lda_hand *hand, size_t longest) {
  size_t bytes = crew->rows * crew->width * sizeof(int32_t);
  if (!lda_scratch_init(&hand->scratch, crew->topics, longest)) return PAWL_NO_MEMORY;
  hand->totals = apps_alloc_zero(crew->topics, sizeof *hand->totals);
  pawl_status status = hand->totals ? PAWL_OK : PAWL_NO_MEMORY;
  for (int i = 0; i < LDA_BUFFERS && !status; i++) {
    status = pawl_buffer_create(crew->session, bytes, (void **)&hand->buffers[i].rows);
    if (!status) status = pawl_buffer_create(crew->session, bytes, (void **)&hand->buffers[i].changes);
  }
  return status;
}

pawl_status lda_crew_create(struct pawl_session *session, uint32_t threads, uint32_t topics, size_t width, size_t rows,
                            size_t longest, struct lda_crew **crew_out) {
  if (threads < 1) threads = 1;
  struct lda_crew *crew = apps_alloc_zero(1, sizeof *crew + threads * sizeof crew->hands[0]);
  if (!crew) return PAWL_NO_MEMORY;
  *crew = (struct lda_crew){.session = session, .count = threads, .topics = topics, .rows = rows, .width = width};
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < threads && !status; i++) status = init_hand(crew, &crew->hands[i], longest);
  if (status) {
    lda_crew_destroy(crew);
    return status;
  }
  *crew_out = crew;
  return PAWL_OK;
}

void lda_crew_destroy(struct lda_crew *crew) {
  if (!crew) return;
  for (uint32_t i = 0; i < crew->count; i++) {
    struct lda_hand *hand = &crew->hands[i];
    for (int b = 0; b < LDA_BUFFERS; b++) {
      lda_hand_finish(hand, &hand->buffers[b].pull);
      lda_hand_finish(hand, &hand->buffers[b].push);
      pawl_buffer_destroy(crew->session, hand->buffers[b].rows);
      pawl_buffer_destroy(crew->session, hand->buffers[b].changes);
    }
    apps_free(hand->totals);
    lda_scratch_fini(&hand->scratch);
  }
  apps_free(crew);
}

uint64_t lda_crew_bytes(const struct lda_crew *crew) {
  uint64_t each = 2 * LDA_BUFFERS * crew->rows * crew->width * sizeof(int32_t) + crew->topics * (uint64_t)64;
  return crew->count * (each + crew->hands[0].scratch.room * 6);
}

pawl_status lda_hand_finish(struct lda_hand *hand, struct pawl_task **task) {
  if (!*task) return PAWL_OK;
  int64_t begun = apps_now();
  pawl_status status = pawl_task_finish(*task, PAWL_FOREVER);
  *task = NULL;
  hand->waited_ns += apps_now() - begun;
  return status;
}

struct shift {
  pawl_status (*work)(void *context, struct lda_hand *hand);
  void *context;
  struct lda_hand *hand;
  pthread_t thread;
};

static void *run(void *argument) {
  struct shift *shift = argument;
  shift->hand->status = shift->work(shift->context, shift->hand);
  return NULL;
}

pawl_status lda_crew_run(struct lda_crew *crew, pawl_status (*work)(void *context, struct lda_hand *hand),
                         void *context) {
  struct shift *shifts = apps_alloc_zero(crew->count, sizeof *shifts);
  uint32_t started = 1;
  if (!shifts) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < crew->count; i++) {
    shifts[i] = (struct shift){work, context, &crew->hands[i], 0};
    crew->hands[i].status = PAWL_OK;
  }
  /* If a thread cannot be started, this thread does its work. */
  while (started < crew->count && pthread_create(&shifts[started].thread, NULL, run, &shifts[started]) == 0) started++;
  run(&shifts[0]);
  for (uint32_t i = started; i < crew->count; i++) run(&shifts[i]);
  pawl_status status = crew->hands[0].status;
  for (uint32_t i = 1; i < crew->count; i++) {
    if (i < started) pthread_join(shifts[i].thread, NULL);
    if (!status) status = crew->hands[i].status;
  }
  apps_free(shifts);
  return status;
}
