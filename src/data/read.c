/* Reads pieces: a single one, or many in parallel. */
#include "data/data.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "data/cache.h"
#include "data/labels.h"

/* --- bad rows ------------------------------------------------------------------------------------------- */

/* Writes the position of a byte as line and column. Finding the line reads the file again. */
static void say_where(struct pwi_source *source, uint64_t offset, const char *what, struct pwi_fault *fault) {
  uint64_t line, line_begin;
  if (pwi_source_line(source, offset, &line, &line_begin, fault))
    pwi_fault(fault, PAWL_CORRUPT, "%s: byte %" PRIu64 ": %s", source->path, offset, what);
  else
    pwi_fault(fault, PAWL_CORRUPT, "%s:%" PRIu64 ":%" PRIu64 ": %s", source->path, line, offset - line_begin + 1, what);
}

/* Handles a bad row. PAWL_OK if the options allow to skip it. */
static pawl_status judge(struct pawl_data *data, struct pwi_source *source, uint64_t offset, const char *what,
                         struct pwi_fault *fault) {
  if (atomic_fetch_add(&data->bad, 1) >= data->options.skip_bad) {
    say_where(source, offset, what, fault);
    return PAWL_CORRUPT;
  }
  atomic_fetch_add(&data->skipped, 1);
  if (atomic_load(&data->has_first_bad)) return PAWL_OK;
  pthread_mutex_lock(&data->lock);
  if (!atomic_load(&data->has_first_bad)) {
    say_where(source, offset, what, &data->first_bad);
    atomic_store(&data->has_first_bad, true);
  }
  pthread_mutex_unlock(&data->lock);
  return PAWL_OK;
}

/* The head of a bag of words states its number of entries. The first thread that reads the last piece
 * counts them, in one pass over the file. */
static pawl_status check_complete(struct pwi_source *source, size_t piece, struct pwi_fault *fault) {
  uint64_t entries, due = source->rule.bag.entries;
  if (source->rule.format != PAWL_DATA_UCI || piece + 1 != source->first_piece + source->pieces) return PAWL_OK;
  if (atomic_load(&source->is_complete)) return PAWL_OK;
  pawl_status status = pwi_source_entries(source, &entries, fault);
  if (status) return status;
  if (entries < due)
    return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file is truncated: it has %" PRIu64 " of %" PRIu64 " entries",
                     source->path, entries, due);
  atomic_store(&source->is_complete, true);
  return PAWL_OK;
}

/* --- one piece ------------------------------------------------------------------------------------------ */

pawl_status pwi_data_parse(struct pawl_data *data, struct pwi_source *source, const struct pwi_lines *text,
                           pwi_data_parser *parser, void *to, uint64_t *skipped, struct pwi_fault *fault) {
  struct pwi_parse parse = {.at = text->begin, .end = text->end, .before = text->before};
  for (;;) {
    pawl_status status = parser(&source->rule, &parse, to);
    if (status == PAWL_NO_MEMORY) return pwi_fault_plain(fault, status, source->path);
    if (status != PAWL_CORRUPT) return status;
    status = judge(data, source, text->offset + (uint64_t)(parse.wrong - text->begin), parse.what, fault);
    if (status) return status;
    ++*skipped;
    if (!parse.next) parse.next = (const char *)memchr(parse.at, '\n', (size_t)(parse.end - parse.at)) + 1;
    parse.at = parse.next;
    parse.next = NULL;
  }
}

static pawl_status parse_rows(const struct pwi_parse_rule *rule, struct pwi_parse *parse, void *to) {
  return pwi_parse_rows(rule, parse, to);
}

static pawl_status fetch_text(const struct pawl_data *data, struct pwi_source *source, size_t piece,
                              struct pwi_lines *text_out, struct pwi_fault *fault) {
  uint64_t begin = source->text_start + (piece - source->first_piece) * data->piece_bytes;
  uint64_t left = source->text_size - begin;
  pawl_status status = check_complete(source, piece, fault);
  if (status) return status;
  return pwi_source_text(source, begin, begin + (left < data->piece_bytes ? left : data->piece_bytes), text_out, fault);
}

/* The transformations that the options ask for and that were not already applied when the cache was
 * written. */
static void left_to_do(const struct pawl_data *data, const struct pwi_source *source, bool *binary_out,
                       bool *unit_rows_out) {
  bool is_binary = source->cache && pwi_cache_is_binary(source->cache);
  bool has_units = source->cache && pwi_cache_has_unit_rows(source->cache), wants_units = data->options.unit_rows;
  *binary_out = data->options.binary && !(is_binary && (!has_units || wants_units));
  *unit_rows_out = wants_units && (!has_units || *binary_out);
}

/* --- held-out rows -------------------------------------------------------------------------------------- */

struct sieve {
  const struct pawl_data_options *options;
  uint64_t piece;
};

static bool keeps(const void *context, size_t row) {
  const struct sieve *sieve = context;
  uint64_t draw = pwi_mix64(pwi_mix64(pwi_mix64(sieve->options->held_seed) + sieve->piece) + row);
  bool is_held = (double)(draw >> 11) * 0x1p-53 < sieve->options->held_share;
  return is_held == (sieve->options->part == PAWL_PART_HELD);
}

/* A cache has labels that are numbers. */
static pawl_status number_labels(struct pawl_labels *labels, struct pwi_batch *batch) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !status && i < batch->is.rows; i++)
    if (!isnan(batch->labels[i])) status = pwi_labels_add_number(labels, (double)batch->labels[i], &batch->labels[i]);
  return status;
}

static pawl_status finish(struct pawl_data *data, struct pwi_source *source, size_t piece, struct pwi_batch *batch,
                          struct pwi_fault *fault) {
  bool binary, unit_rows;
  struct sieve sieve = {&data->options, piece};
  if (source->cache && data->options.labels && number_labels(data->options.labels, batch))
    return pwi_fault_plain(fault, PAWL_NO_MEMORY, source->path);
  if (data->options.part != PAWL_PART_ALL) pwi_batch_sift(batch, keeps, &sieve);
  left_to_do(data, source, &binary, &unit_rows);
  pawl_status status = pwi_batch_finish(batch, binary, unit_rows);
  return status ? pwi_fault_plain(fault, status, source->path) : PAWL_OK;
}

/* Makes the batch of a piece. Takes `text`, the text of the piece; NULL for a piece of a cache. */
static pawl_status make_batch(struct pawl_data *data, size_t piece, struct pwi_lines *text, void **batch_out,
                              struct pwi_fault *fault) {
  struct pwi_source *source = pwi_data_source(data, piece);
  struct pwi_batch *batch = NULL;
  pawl_status status = pwi_batch_create(&batch);
  if (status)
    pwi_fault_plain(fault, status, source->path);
  else if (text)
    status = pwi_data_parse(data, source, text, parse_rows, batch, &batch->is.skipped, fault);
  else
    status = pwi_cache_read(source->cache, piece - source->first_piece, batch, fault);
  if (text) pwi_lines_fini(text);
  if (!status) status = finish(data, source, piece, batch, fault);
  if (!status && batch->is.unknown) atomic_fetch_add(&data->unknown, batch->is.unknown);
  if (status)
    pwi_batch_destroy(batch);
  else
    *batch_out = batch;
  return status;
}

pawl_status pwi_data_read(struct pawl_data *data, size_t piece, struct pwi_batch **batch_out, struct pwi_fault *fault) {
  struct pwi_lines text;
  void *batch;
  if (piece >= data->pieces)
    return pwi_fault(fault, PAWL_OUT_OF_SPAN, "piece %zu does not exist: the data has %zu pieces", piece, data->pieces);
  struct pwi_source *source = pwi_data_source(data, piece);
  pawl_status status = source->cache ? PAWL_OK : fetch_text(data, source, piece, &text, fault);
  if (!status) status = make_batch(data, piece, source->cache ? NULL : &text, &batch, fault);
  if (!status) *batch_out = batch;
  return status;
}

pawl_status pwi_data_read_columns(struct pawl_data *data, size_t piece, struct pwi_columns **columns_out,
                                  struct pwi_fault *fault) {
  struct pwi_source *source = piece < data->pieces ? pwi_data_source(data, piece) : NULL;
  struct pwi_batch *batch = NULL;
  bool binary = false, unit_rows = false;
  if (source) left_to_do(data, source, &binary, &unit_rows);
  if (source && source->cache && !binary && !unit_rows && data->options.part == PAWL_PART_ALL)
    return pwi_cache_read_columns(source->cache, piece - source->first_piece, columns_out, fault);
  pawl_status status = pwi_data_read(data, piece, &batch, fault);
  if (status) return status;
  status = pwi_columns_of(&batch->is, columns_out);
  pwi_batch_destroy(batch);
  return status && source ? pwi_fault_plain(fault, status, source->path) : status;
}

/* --- many pieces ---------------------------------------------------------------------------------------- */

/* The pieces of a file that are still to be read. Pieces of a compressed file are fetched in order, one at
 * a time. */
struct piece_queue {
  struct pwi_source *source;
  size_t next, end;
  bool is_busy;
};

static bool in_order(const struct pwi_source *source) {
  return !source->cache && source->packing != PWI_COMPRESSION_PLAIN;
}

struct piece_readers {
  struct pawl_data *data;
  const struct pwi_data_product *product;
  pwi_data_take_any *take;
  void *context;
  bool is_ordered; /* pieces are delivered in the order of their numbers */
  size_t turn;     /* with is_ordered: the next piece to deliver; guarded by `taking` */
  struct piece_queue *queues;
  size_t count, first; /* `first`: all queues before it are done */
  pthread_mutex_t lock, taking;
  pthread_cond_t changed; /* signalled when a queue is no longer busy, or work has ended */
  pthread_cond_t taken;   /* signalled when a batch was delivered, or work has ended */
  pawl_status status;     /* the first failure; guarded by the lock */
  struct pwi_fault *fault;
};

/* A file with pieces left from which no thread is fetching; NULL: none. `*waits_out`: one may become
 * available. */
static struct piece_queue *pick(struct piece_readers *crew, bool *waits_out) {
  *waits_out = false;
  while (crew->first < crew->count && crew->queues[crew->first].next == crew->queues[crew->first].end) crew->first++;
  for (size_t i = crew->first; i < crew->count; i++) {
    struct piece_queue *queue = &crew->queues[i];
    if (queue->next == queue->end) continue;
    if (!queue->is_busy) return queue;
    *waits_out = true;
    if (crew->is_ordered) break; /* a later piece could not be delivered yet anyway */
  }
  return NULL;
}

/* Claims the next piece to read and its queue, which is marked busy if it must be. False: no piece is
 * left. */
static bool claim(struct piece_readers *crew, struct piece_queue **queue_out, size_t *piece_out) {
  struct piece_queue *queue = NULL;
  bool waits = true;
  pthread_mutex_lock(&crew->lock);
  while (!crew->status && !(queue = pick(crew, &waits)) && waits) pthread_cond_wait(&crew->changed, &crew->lock);
  if (crew->status) queue = NULL;
  if (queue) {
    *piece_out = queue->next++;
    *queue_out = queue;
    queue->is_busy = in_order(queue->source);
  }
  pthread_mutex_unlock(&crew->lock);
  return queue != NULL;
}

static void release(struct piece_readers *crew, struct piece_queue *queue) {
  if (!in_order(queue->source)) return;
  pthread_mutex_lock(&crew->lock);
  queue->is_busy = false;
  pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
}

static void fail(struct piece_readers *crew, pawl_status status, const struct pwi_fault *fault) {
  pthread_mutex_lock(&crew->lock);
  if (!crew->status) {
    crew->status = status;
    *crew->fault = *fault;
  }
  pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
}

static bool has_failed(struct piece_readers *crew) {
  pthread_mutex_lock(&crew->lock);
  bool failed = crew->status != PAWL_OK;
  pthread_mutex_unlock(&crew->lock);
  return failed;
}

static pawl_status read_claimed(struct piece_readers *crew, struct piece_queue *queue, size_t piece, void **product_out,
                                struct pwi_fault *fault) {
  struct pwi_lines text;
  if (queue->source->cache) return crew->product->make(crew->data, piece, NULL, product_out, fault);
  pawl_status status = fetch_text(crew->data, queue->source, piece, &text, fault);
  release(crew, queue);
  return status ? status : crew->product->make(crew->data, piece, &text, product_out, fault);
}

/* The thread with the lowest piece never waits, so every thread gets its turn. */
static pawl_status hand_over(struct piece_readers *crew, size_t piece, void *product, struct pwi_fault *fault) {
  pawl_status status = PAWL_OK;
  pthread_mutex_lock(&crew->taking);
  while (crew->is_ordered && crew->turn != piece && !has_failed(crew)) pthread_cond_wait(&crew->taken, &crew->taking);
  if (has_failed(crew))
    crew->product->destroy(product);
  else
    status = crew->take(crew->context, piece, product, fault);
  if (status) fail(crew, status, fault); /* before another thread may deliver */
  crew->turn = piece + 1;
  pthread_cond_broadcast(&crew->taken);
  pthread_mutex_unlock(&crew->taking);
  return status;
}

/* Wakes the threads that wait for their turn. */
static void fail_reading(struct piece_readers *crew, pawl_status status, const struct pwi_fault *fault) {
  fail(crew, status, fault);
  pthread_mutex_lock(&crew->taking);
  pthread_cond_broadcast(&crew->taken);
  pthread_mutex_unlock(&crew->taking);
}

static void work(void *context) {
  struct piece_readers *crew = context;
  struct piece_queue *queue;
  size_t piece;
  while (claim(crew, &queue, &piece)) {
    void *product;
    struct pwi_fault fault = {""};
    pawl_status status = read_claimed(crew, queue, piece, &product, &fault);
    if (status)
      fail_reading(crew, status, &fault);
    else
      status = hand_over(crew, piece, product, &fault);
    if (status) return;
  }
}

static void fill_queues(struct piece_readers *crew, size_t begin, size_t end) {
  for (size_t i = 0; i < crew->data->count; i++) {
    struct pwi_source *source = &crew->data->sources[i];
    size_t first = source->first_piece, last = first + source->pieces;
    if (first < begin) first = begin;
    if (last > end) last = end;
    if (first < last) crew->queues[crew->count++] = (struct piece_queue){.source = source, .next = first, .end = last};
  }
}

pawl_status pwi_data_make_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads, bool is_ordered,
                              const struct pwi_data_product *product, pwi_data_take_any *take, void *context,
                              struct pwi_fault *fault) {
  struct piece_readers crew = {.data = data,
                               .product = product,
                               .take = take,
                               .context = context,
                               .is_ordered = is_ordered,
                               .turn = begin,
                               .fault = fault};
  if (begin > end || end > data->pieces)
    return pwi_fault(fault, PAWL_OUT_OF_SPAN, "pieces %zu to %zu do not exist: the data has %zu pieces", begin, end,
                     data->pieces);
  crew.queues = pwi_alloc_zero(data->count, sizeof *crew.queues);
  if (!crew.queues) return pwi_fault(fault, PAWL_NO_MEMORY, "out of memory");
  fill_queues(&crew, begin, end);
  pthread_mutex_init(&crew.lock, NULL);
  pthread_mutex_init(&crew.taking, NULL);
  pthread_cond_init(&crew.changed, NULL);
  pthread_cond_init(&crew.taken, NULL);
  if (threads == 0) threads = pwi_data_processors();
  if (threads > end - begin) threads = (uint32_t)(end - begin);
  pwi_data_crew(threads, work, &crew);
  pthread_cond_destroy(&crew.taken);
  pthread_cond_destroy(&crew.changed);
  pthread_mutex_destroy(&crew.taking);
  pthread_mutex_destroy(&crew.lock);
  pwi_free(crew.queues);
  return crew.status;
}

/* --- batches of many pieces ----------------------------------------------------------------------------- */

struct batch_receiver {
  pwi_data_take *take;
  void *context;
};

static pawl_status take_batch(void *context, size_t piece, void *batch, struct pwi_fault *fault) {
  const struct batch_receiver *taking = context;
  return taking->take(taking->context, piece, batch, fault);
}

static void destroy_batch(void *batch) { pwi_batch_destroy(batch); }

pawl_status pwi_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads, bool is_ordered,
                              pwi_data_take *take, void *context, struct pwi_fault *fault) {
  static const struct pwi_data_product product = {make_batch, destroy_batch};
  struct batch_receiver taking = {take, context};
  return pwi_data_make_all(data, begin, end, threads, is_ordered, &product, take_batch, &taking, fault);
}
