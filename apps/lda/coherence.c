/* Coherence of topics: see <pawl/lda.h>.
 *
 * Only the top words of each topic count, and only pairs of words of the same topic. A *place* is a word in
 * the list of one topic. A word of the corpus leads to all its places, and a document to pairs of places,
 * topic by topic.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <pawl/session.h>

#include "apps/common/memory.h"
#include "apps/lda/model_inside.h"
#include "apps/common/model_file.h"

#define TOP_MAX 1000

struct counting {
  uint64_t words;
  uint32_t topics;
  size_t top, pairs;          /* number of words per topic, and of their pairs */
  struct pawl_lda_word *tops; /* topics * top */
  size_t *starts;             /* words + 1: the places of word w are places[starts[w]] … */
  uint32_t *places;           /* topic * top + number in its list */
  uint64_t *joint;            /* topics * pairs: number of documents that have both words */
  uint64_t *alone;            /* by word: number of documents that have it */
  uint64_t documents;
  /* for one document, by topic: the positions of its words in the topic's list */
  uint32_t *here;
  uint32_t *here_count;        /* for one document, by topic: the number of these positions */
  uint32_t *touched, touching; /* for one document: the topics with any position, and their number */
};

/* The number of the pair (i, j) of a list, j < i. */
static size_t pair_of(size_t i, size_t j) { return i * (i - 1) / 2 + j; }

static void fini(struct counting *counting) {
  apps_free(counting->tops);
  apps_free(counting->starts);
  apps_free(counting->places);
  apps_free(counting->joint);
  apps_free(counting->alone);
  apps_free(counting->here);
  apps_free(counting->here_count);
  apps_free(counting->touched);
}

static bool allocate(struct counting *counting) {
  size_t places = counting->topics * counting->top, words = (size_t)counting->words;
  counting->tops = apps_alloc_zero(places, sizeof *counting->tops);
  counting->starts = apps_alloc_zero(words + 2, sizeof *counting->starts);
  counting->places = apps_alloc_zero(places, sizeof *counting->places);
  counting->joint = apps_alloc_zero(counting->topics * counting->pairs, sizeof *counting->joint);
  counting->alone = apps_alloc_zero(words, sizeof *counting->alone);
  counting->here = apps_alloc_zero(places, sizeof *counting->here);
  counting->here_count = apps_alloc_zero(counting->topics, sizeof *counting->here_count);
  counting->touched = apps_alloc_zero(counting->topics, sizeof *counting->touched);
  return counting->tops && counting->starts && counting->places && counting->joint && counting->alone &&
         counting->here && counting->here_count && counting->touched;
}

/* Builds the places by word: counts, sums up, and fills in. */
static void index_places(struct counting *counting) {
  size_t places = counting->topics * counting->top, *starts = counting->starts;
  for (size_t i = 0; i < places; i++) starts[counting->tops[i].word + 2]++;
  for (uint64_t w = 1; w < counting->words + 2; w++) starts[w] += starts[w - 1];
  for (size_t i = 0; i < places; i++) counting->places[starts[counting->tops[i].word + 1]++] = (uint32_t)i;
}

/* --- documents ------------------------------------------------------------------------------------------ */

static void meet(struct counting *counting, uint64_t word) {
  counting->alone[word]++;
  for (size_t i = counting->starts[word]; i < counting->starts[word + 1]; i++) {
    uint32_t topic = counting->places[i] / (uint32_t)counting->top;
    uint32_t number = counting->places[i] % (uint32_t)counting->top;
    if (counting->here_count[topic] == 0) counting->touched[counting->touching++] = topic;
    counting->here[topic * counting->top + counting->here_count[topic]++] = number;
  }
}

static void pair_up(struct counting *counting) {
  for (uint32_t t = 0; t < counting->touching; t++) {
    uint32_t topic = counting->touched[t], count = counting->here_count[topic];
    const uint32_t *here = counting->here + topic * counting->top;
    uint64_t *joint = counting->joint + topic * counting->pairs;
    for (uint32_t a = 1; a < count; a++)
      for (uint32_t b = 0; b < a; b++)
        joint[here[a] > here[b] ? pair_of(here[a], here[b]) : pair_of(here[b], here[a])]++;
    counting->here_count[topic] = 0;
  }
  counting->touching = 0;
}

static pawl_status take(void *context, size_t piece, struct pawl_batch *batch) {
  struct counting *counting = context;
  (void)piece;
  for (size_t row = 0; row < batch->rows; row++) {
    for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++)
      if (batch->ids[i] - 1 < counting->words && (!batch->values || batch->values[i] > 0))
        meet(counting, batch->ids[i] - 1);
    pair_up(counting);
  }
  counting->documents += batch->rows;
  pawl_batch_destroy(batch);
  return PAWL_OK;
}

/* --- figures -------------------------------------------------------------------------------------------- */

/* Two words that are in all documents have the maximal coherence. */
static double npmi(double both, double one, double other, double documents) {
  if (both == 0) return -1;
  if (both == documents) return 1;
  return log(both * documents / (one * other)) / -log(both / documents);
}

/* A pair with a word that is in no document is skipped. */
static struct pawl_lda_coherence judge(const struct counting *counting, uint32_t topic) {
  struct pawl_lda_coherence sum = {0, 0};
  uint64_t umass_pairs = 0, npmi_pairs = 0;
  const struct pawl_lda_word *words = counting->tops + topic * counting->top;
  for (size_t i = 1; i < counting->top; i++)
    for (size_t j = 0; j < i; j++) {
      double both = (double)counting->joint[topic * counting->pairs + pair_of(i, j)];
      double one = (double)counting->alone[words[i].word], other = (double)counting->alone[words[j].word];
      if (other > 0) sum.umass += log((both + 1) / other), umass_pairs++;
      if (other > 0 && one > 0) sum.npmi += npmi(both, one, other, (double)counting->documents), npmi_pairs++;
    }
  return (struct pawl_lda_coherence){umass_pairs ? sum.umass / (double)umass_pairs : (double)NAN,
                                     npmi_pairs ? sum.npmi / (double)npmi_pairs : (double)NAN};
}

static pawl_status count_all(struct counting *counting, const struct pawl_lda_model *model, struct pawl_data *data,
                             uint32_t threads, char *error) {
  struct pawl_data_info info;
  if (!allocate(counting)) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  lda_model_tops(model, counting->top, counting->tops);
  index_places(counting);
  pawl_data_info(data, &info);
  pawl_status status = pawl_data_read_all(data, 0, info.pieces, threads, take, counting);
  const char *text = pawl_error_text();
  return status ? apps_say(error, status, "%s", text[0] ? text : pawl_status_text(status)) : PAWL_OK;
}

pawl_status pawl_lda_coherence(const struct pawl_lda_model *model, struct pawl_data *data, size_t top, uint32_t threads,
                               struct pawl_lda_coherence *topics_out, char error[PAWL_LDA_TEXT]) {
  struct counting counting = {.words = model->about.words, .topics = model->about.topics, .top = top};
  if (top > TOP_MAX)
    return apps_say(error, PAWL_INVALID, "coherence is computed for at most %d words of a topic", TOP_MAX);
  if (counting.top > counting.words) counting.top = (size_t)counting.words;
  if (counting.top < 2) {
    for (uint32_t k = 0; k < counting.topics; k++)
      topics_out[k] = (struct pawl_lda_coherence){(double)NAN, (double)NAN};
    return PAWL_OK;
  }
  counting.pairs = pair_of(counting.top, 0);
  pawl_status status = count_all(&counting, model, data, threads, error);
  for (uint32_t k = 0; status == PAWL_OK && k < counting.topics; k++) topics_out[k] = judge(&counting, k);
  fini(&counting);
  return status;
}
