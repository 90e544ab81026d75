/* The most probable words of topics.
 *
 * Those that were seen so far are a heap with the least of them on top, in the caller's own array, so that
 * nothing is allocated, and a word that is not among them costs one comparison. In the end the heap is sorted
 * in place.
 */
#include "apps/lda/model_inside.h"

/* Whether the word comes behind the other in the list. */
static bool is_behind(const struct pawl_lda_word *one, const struct pawl_lda_word *other) {
  return one->phi != other->phi ? one->phi < other->phi : one->word > other->word;
}

/* Lets what is at the top sink to where it belongs. */
static void sink(struct pawl_lda_word *heap, size_t count) {
  struct pawl_lda_word moved = heap[0];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && is_behind(&heap[child + 1], &heap[child])) child++;
    if (!is_behind(&heap[child], &moved)) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

static void rise(struct pawl_lda_word *heap, size_t at) {
  struct pawl_lda_word moved = heap[at];
  for (size_t parent; at > 0 && is_behind(&moved, &heap[parent = (at - 1) / 2]); at = parent) heap[at] = heap[parent];
  heap[at] = moved;
}

static void offer(struct pawl_lda_word *heap, size_t room, size_t *count, struct pawl_lda_word word) {
  if (*count < room) {
    heap[*count] = word;
    rise(heap, (*count)++);
  } else if (is_behind(&heap[0], &word)) {
    heap[0] = word;
    sink(heap, room);
  }
}

static void sort(struct pawl_lda_word *heap, size_t count) {
  for (size_t left = count; left > 1;) {
    struct pawl_lda_word least = heap[0];
    heap[0] = heap[--left];
    heap[left] = least;
    sink(heap, left);
  }
}

/* Words that the topic does not have are all as probable as beta makes them: they follow by number. `count`
 * words are there, sorted. */
static void finish(const struct pawl_lda_model *model, uint32_t topic, size_t count, size_t room,
                   struct pawl_lda_word *words) {
  double beta = model->about.beta, by = model->inverse[topic];
  for (size_t i = 0; i < count; i++) words[i].phi = (words[i].phi + beta) * by;
  for (uint64_t w = 0; count < room; w++)
    if (lda_row_weight(&model->rows[w], topic) == 0) words[count++] = (struct pawl_lda_word){w, beta * by};
}

static size_t room_of(const struct pawl_lda_model *model, size_t room) {
  return room < model->about.words ? room : (size_t)model->about.words;
}

/* While they are collected, `phi` is the weight. */
size_t pawl_lda_model_top(const struct pawl_lda_model *model, uint32_t topic, size_t room,
                          struct pawl_lda_word *words_out) {
  size_t count = 0;
  room = room_of(model, room);
  if (topic >= model->about.topics || room == 0) return 0;
  for (uint64_t w = 0; w < model->about.words; w++) {
    double weight = lda_row_weight(&model->rows[w], topic);
    if (weight > 0) offer(words_out, room, &count, (struct pawl_lda_word){w, weight});
  }
  sort(words_out, count);
  finish(model, topic, count, room, words_out);
  return room;
}

size_t lda_model_tops(const struct pawl_lda_model *model, size_t room, struct pawl_lda_word *words_out) {
  size_t stride = room;
  room = room_of(model, room);
  if (room == 0) return 0;
  /* A heap is full from the beginning, with words that are none and come behind all others. */
  for (uint32_t k = 0; k < model->about.topics; k++)
    for (size_t i = 0; i < room; i++) words_out[k * stride + i] = (struct pawl_lda_word){PAWL_NO_WORD, 0};
  for (uint64_t w = 0; w < model->about.words; w++) {
    const struct lda_row *row = &model->rows[w];
    for (uint32_t i = 0; i < row->count; i++) {
      struct pawl_lda_word *heap = words_out + lda_row_topics(row)[i] * stride;
      size_t full = room;
      offer(heap, room, &full, (struct pawl_lda_word){w, lda_row_value(row, i)});
    }
  }
  for (uint32_t k = 0; k < model->about.topics; k++) {
    struct pawl_lda_word *heap = words_out + k * stride;
    size_t count = room;
    sort(heap, room);
    while (count > 0 && heap[count - 1].phi == 0) count--;
    finish(model, k, count, room, heap);
  }
  return room;
}
