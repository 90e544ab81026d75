/* Real streams through a sketch, compared with exact counts: checks the bound of CountMin.
 *
 * Files of the folder that are compressed with zstd are counted word by word: kosarak.head.dat.zst
 * contains numbers separated by blanks, imdb.train.text.zst text, whose words are runs of letters.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sketch.h"

#define SKETCH "bench/data"
#define PIECE ((size_t)1 << 20)

struct text {
  char *bytes;
  size_t size, room;
};

/* One of many words; equal ones are adjacent after sorting. */
struct word {
  uint64_t hash;
  const char *at;
  size_t size;
  uint64_t count;
};

struct words {
  struct word *list;
  size_t count, room; /* all words, then distinct ones */
};

/* --- reading -------------------------------------------------------------------------------------------- */

static bool grow(struct text *text) {
  if (text->room - text->size >= PIECE) return true;
  char *more = pwi_resize(text->bytes, 2 * text->room + PIECE);
  if (!more) return false;
  text->bytes = more;
  text->room = 2 * text->room + PIECE;
  return true;
}

static bool unpack(FILE *file, struct text *text) {
  ZSTD_DStream *stream = ZSTD_createDStream();
  char *packed = pwi_alloc(PIECE);
  bool good = stream && packed;
  for (size_t size; good && (size = fread(packed, 1, PIECE, file)) > 0;) {
    ZSTD_inBuffer in = {packed, size, 0};
    while (good && in.pos < in.size) {
      good = grow(text);
      ZSTD_outBuffer out = {text->bytes, text->room, text->size};
      good = good && !ZSTD_isError(ZSTD_decompressStream(stream, &out, &in));
      if (good) text->size = out.pos;
    }
  }
  ZSTD_freeDStream(stream);
  pwi_free(packed);
  return good && !ferror(file);
}

static bool add_word(struct words *words, const char *at, size_t size) {
  if (words->count == words->room) {
    size_t room = 2 * words->room + 65536;
    struct word *more = pwi_resize_array(words->list, room, sizeof *more);
    if (!more) return false;
    words->list = more;
    words->room = room;
  }
  words->list[words->count++] = (struct word){pwi_hash(at, size, 0), at, size, 1};
  return true;
}

static bool split(struct text *text, bool is_prose, struct words *words) {
  size_t at = 0;
  while (at < text->size) {
    size_t begin = at;
    for (; at < text->size; at++) {
      unsigned char c = (unsigned char)text->bytes[at];
      if (is_prose ? !isalpha(c) : isspace(c)) break;
      text->bytes[at] = (char)tolower(c);
    }
    if (at > begin && !add_word(words, text->bytes + begin, at - begin)) return false;
    at += at < text->size;
  }
  return true;
}

/* --- counting ------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
  const struct word *left = a, *right = b;
  return (left->hash > right->hash) - (left->hash < right->hash);
}

static void count_exactly(struct words *words) {
  size_t kept = 0;
  qsort(words->list, words->count, sizeof *words->list, compare);
  for (size_t i = 0; i < words->count; i++)
    if (kept > 0 && words->list[kept - 1].hash == words->list[i].hash)
      words->list[kept - 1].count++;
    else
      words->list[kept++] = words->list[i];
  words->count = kept;
}

struct verdict {
  uint64_t words, different;
  /* number of distinct words that are estimated below the truth, or above the bound */
  uint64_t below, beyond;
  double most, bound; /* the largest excess, and the largest bound */
};

static void judge(const struct words *words, const struct pawl_sketch_count *counts, struct verdict *verdict) {
  for (size_t i = 0; i < words->count; i++) {
    double over = (double)counts[i].count - (double)words->list[i].count;
    verdict->below += over < 0;
    verdict->beyond += over > counts[i].error;
    verdict->most = fmax(verdict->most, over);
    verdict->bound = fmax(verdict->bound, counts[i].error);
  }
}

static pawl_status pour(struct pawl_sketch *sketch, const struct words *words) {
  struct pawl_sketch_writer *writer;
  pawl_status status = pawl_sketch_writer_open(sketch, NULL, &writer);
  if (status) return status;
  for (size_t i = 0; i < words->count && !status; i++)
    status = pawl_sketch_add(writer, words->list[i].at, words->list[i].size, 1);
  if (!status) status = pawl_sketch_flush(writer, PWI_SKETCH_PATIENCE);
  pawl_sketch_writer_close(writer);
  return status;
}

static bool ask(const struct pwi_bench_sketch *bench, struct pawl_sketch *sketch, const struct words *words,
                struct verdict *verdict) {
  struct pawl_sketch_key *keys = pwi_alloc_zero(words->count + 1, sizeof *keys);
  struct pawl_sketch_count *counts = pwi_alloc_zero(words->count + 1, sizeof *counts);
  pawl_status status = keys && counts ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < words->count && !status; i++)
    keys[i] = (struct pawl_sketch_key){.bytes = words->list[i].at, .size = words->list[i].size};
  if (!status) status = pawl_sketch_query(sketch, keys, words->count, NULL, PWI_SKETCH_PATIENCE, counts);
  if (!status) judge(words, counts, verdict);
  pwi_free(keys);
  pwi_free(counts);
  return !status || pwi_bench_sketch_fail(bench, "query", status);
}

static bool count_words(const struct pwi_bench_sketch *bench, struct pawl_session *session, struct words *words,
                        struct verdict *verdict) {
  struct pawl_sketch *sketch;
  pawl_status status = pawl_sketch_create(session, SKETCH, NULL, PWI_SKETCH_PATIENCE, &sketch);
  if (status) return pwi_bench_sketch_fail(bench, "create", status);
  verdict->words = words->count;
  status = pour(sketch, words);
  bool good = !status || pwi_bench_sketch_fail(bench, "insert", status);
  count_exactly(words);
  verdict->different = words->count;
  good = good && ask(bench, sketch, words, verdict);
  pawl_sketch_close(sketch);
  status = pawl_sketch_drop(session, SKETCH, PWI_SKETCH_PATIENCE);
  return good && (!status || pwi_bench_sketch_fail(bench, "drop", status));
}

/* --- the case ------------------------------------------------------------------------------------------- */

static void print(const struct pwi_bench_sketch *bench, const char *name, const struct verdict *is) {
  double beyond = is->different > 0 ? (double)is->beyond / (double)is->different : 0;
  if (bench->json)
    pwi_cli_print_json(bench->command,
                       json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f}", "bench", "sketch", "case", "data",
                                 "stream", name, "things", (json_int_t)is->words, "different",
                                 (json_int_t)is->different, "below_truth", (json_int_t)is->below, "beyond_bound",
                                 beyond, "largest_excess", is->most, "bound", is->bound));
  else
    printf("  %-10s %" PRIu64 " words, %" PRIu64 " distinct: %" PRIu64
           " too low, %.4f %% above the bound; at most %.0f too high (bound %.0f)\n",
           name, is->words, is->different, is->below, 100 * beyond, is->most, is->bound);
}

static bool run_file(const struct pwi_bench_sketch *bench, struct pawl_session *session, const char *name,
                     const char *file_name, bool is_prose) {
  struct text text = {0};
  struct words words = {0};
  struct verdict verdict = {0};
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", bench->data, file_name);
  FILE *file = fopen(path, "re");
  bool good = file && unpack(file, &text) && split(&text, is_prose, &words);
  if (!good) pwi_cli_failure(bench->command, "cannot read %s", path);
  good = good && count_words(bench, session, &words, &verdict);
  if (good) print(bench, name, &verdict);
  if (good && (verdict.below > 0 || (double)verdict.beyond > exp(-4) * (double)verdict.different)) {
    pwi_cli_failure(bench->command, "%s: the bound does not hold", name);
    good = false;
  }
  if (file) fclose(file);
  pwi_free(text.bytes);
  pwi_free(words.list);
  return good;
}

bool pwi_bench_sketch_data(const struct pwi_bench_sketch *bench) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.servers = options.shards = 1;
  pawl_status status = pawl_session_open(&options, &session);
  if (status) return pwi_bench_sketch_fail(bench, "cluster", status);
  bool good = run_file(bench, session, "kosarak", "kosarak.head.dat.zst", false) &&
              run_file(bench, session, "imdb", "imdb.train.text.zst", true);
  pawl_session_close(session, PWI_SKETCH_PATIENCE);
  return good;
}
