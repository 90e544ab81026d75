/* Measures parsing text to rows, compared with copying it: one line of JSON for each format.
 *
 *   data_bench [FILE]    FILE: also measure this LIBSVM text
 *
 * Rates are bytes of text per second of processor time, from text in memory to rows in memory; the best of
 * several rounds. The ratio is relative to memcpy of the same text in the same run. Then the same rows
 * from files: text, a cache by rows, a cache by columns, and rows transposed to columns; these rates are
 * in entries, so that they can be compared.
 */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/formats/number.h"
#include "data/formats/csv_layout.h"
#include "data/words.h"

#define SIZE ((size_t)16 << 20)
#define ROUNDS 7

static char *text, *copy;
static size_t used;
static uint64_t drawn;

/* Processor time and not wall time, because the machine may be shared. */
static double process_now(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

static uint64_t draw(void) { return pwi_mix64(++drawn * UINT64_C(0x9e3779b97f4a7c15)); }

static void measure(const char *name, const struct pwi_parse_rule *rule) {
  double parsing = 1e9, copying = 1e9;
  size_t rows = 0, entries = 0;
  for (int round = 0; round < ROUNDS; round++) {
    struct pwi_parse parse = {.at = text, .end = text + used};
    struct pwi_batch *batch;
    double start = process_now();
    check(pwi_batch_create(&batch) == PAWL_OK, "out of memory");
    pawl_status status = pwi_parse_rows(rule, &parse, batch);
    check(status == PAWL_OK, parse.what ? parse.what : "does not parse");
    check(pwi_batch_finish(batch, false, false) == PAWL_OK, "out of memory");
    least(&parsing, process_now() - start);
    rows = batch->is.rows;
    entries = batch->is.entries;
    pwi_batch_destroy(batch);
    start = process_now();
    memcpy(copy, text, used);
    __asm__ volatile("" : : "r"(copy) : "memory");
    least(&copying, process_now() - start);
  }
  double megabytes = (double)used / 1e6;
  printf("{\"bench\":\"data\",\"case\":\"%s\",\"rows\":%zu,\"entries\":%zu,\"mb_per_s\":%.0f,\"memcpy_mb_per_s\":%.0f,"
         "\"of_memcpy\":%.4f}\n",
         name, rows, entries, megabytes / parsing, megabytes / copying, copying / parsing);
  fflush(stdout);
}

/* --- from files ----------------------------------------------------------------------------------------- */

enum way { BY_ROWS, BY_COLUMNS, TURNED };

static size_t read_piece(struct pawl_data *data, size_t piece, enum way way) {
  struct pwi_batch *batch = NULL;
  struct pwi_columns *columns = NULL;
  struct pwi_fault fault;
  size_t entries = 0;
  if (way != BY_COLUMNS) check(pwi_data_read(data, piece, &batch, &fault) == PAWL_OK, "cannot read");
  if (way == BY_COLUMNS) check(pwi_data_read_columns(data, piece, &columns, &fault) == PAWL_OK, "cannot read");
  if (way == TURNED) check(pwi_columns_of(&batch->is, &columns) == PAWL_OK, "out of memory");
  entries = columns ? columns->is.entries : batch->is.entries;
  pwi_batch_destroy(batch);
  pwi_columns_destroy(columns);
  return entries;
}

static void measure_file(const char *name, const char *path, enum way way) {
  struct pawl_data_options options = {.hash_bits = PWI_DATA_HASH_BITS};
  struct pwi_fault fault;
  struct pawl_data *data;
  double reading = 1e9;
  size_t entries = 0;
  check(pwi_data_open(&path, 1, &options, &data, &fault) == PAWL_OK, "cannot open");
  for (int round = 0; round < ROUNDS; round++) {
    double start = process_now();
    entries = 0;
    for (size_t piece = 0; piece < data->pieces; piece++) entries += read_piece(data, piece, way);
    least(&reading, process_now() - start);
  }
  printf("{\"bench\":\"data\",\"case\":\"%s\",\"entries\":%zu,\"million_entries_per_s\":%.1f}\n", name, entries,
         (double)entries / 1e6 / reading);
  fflush(stdout);
  pwi_data_close(data);
}

/* Measures `text` as a file and as a cache. */
static void measure_files(void) {
  char folder[] = "/tmp/pawl-bench-XXXXXX", path[64], cache[64];
  struct pawl_data_options options = {.hash_bits = PWI_DATA_HASH_BITS};
  struct pwi_fault fault;
  struct pawl_data *data;
  check(mkdtemp(folder) != NULL, "no folder");
  snprintf(path, sizeof path, "%s/text", folder);
  snprintf(cache, sizeof cache, "%s/cache", folder);
  FILE *file = fopen(path, "wb");
  check(file && fwrite(text, 1, used, file) == used && fclose(file) == 0, "cannot write");
  const char *paths[] = {path};
  check(pwi_data_open(paths, 1, &options, &data, &fault) == PAWL_OK, "cannot open");
  check(pwi_data_convert(data, cache, 1, NULL, NULL, &fault) == PAWL_OK, "cannot convert");
  pwi_data_close(data);
  measure_file("file of text, rows", path, BY_ROWS);
  measure_file("file of text, turned into columns", path, TURNED);
  measure_file("cache, rows", cache, BY_ROWS);
  measure_file("cache, rows turned into columns", cache, TURNED);
  measure_file("cache, columns", cache, BY_COLUMNS);
  unlink(path);
  unlink(cache);
  rmdir(folder);
}

/* --- texts ---------------------------------------------------------------------------------------------- */

static void add(const char *format, ...) PAWL_PRINTF(1, 2);

static void add(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  used += (size_t)vsnprintf(text + used, 256, format, arguments);
  va_end(arguments);
}

static bool is_full(void) { return used > SIZE - 65536; }

/* `digits` per value; 0: the value is 1. */
static void write_libsvm(int digits) {
  for (used = 0; !is_full(); add("\n")) {
    unsigned id = 0;
    add(draw() % 2 ? "+1" : "-1");
    for (int i = 0; i < 75; i++) {
      id += 1 + (unsigned)(draw() % 1300);
      add(" %u:%.*g", id, digits, digits ? (double)(draw() >> 11) * 0x1p-53 : 1);
    }
  }
}

static void write_vw(void) {
  for (used = 0; !is_full(); add("\n")) {
    add("%d |words", draw() % 2 ? 1 : -1);
    for (int i = 0; i < 40; i++) add(" word%u:%.3g", (unsigned)(draw() % 50000), 1 + (double)(draw() % 1000) / 100);
    add(" |place c%u d%u", (unsigned)(draw() % 50), (unsigned)(draw() % 500));
  }
}

static void write_criteo(void) {
  for (used = 0; !is_full(); add("\n")) {
    add("%u", (unsigned)(draw() % 2));
    for (int i = 0; i < PWI_CRITEO_COUNTS; i++) add("\t%u", (unsigned)(draw() % 1000));
    for (int i = 0; i < PWI_CRITEO_CATEGORIES; i++) add("\t%08x", (unsigned)draw());
  }
}

static void write_csv(void) {
  for (used = 0; !is_full(); add("\n")) {
    add("%u", (unsigned)(draw() % 2));
    for (int i = 0; i < 20; i++) add(",%.6g", (double)(draw() % 1000000) / 1000);
    for (int i = 0; i < 5; i++) add(",word%u", (unsigned)(draw() % 1000));
  }
}

/* --- documents ------------------------------------------------------------------------------------------ */

#define VOCABULARY 100000

static char vocabulary[VOCABULARY][16];

/* Words of 3 to 14 letters, frequent ones shorter: the number in letters, then padding. */
static void make_vocabulary(void) {
  for (unsigned i = 0; i < VOCABULARY; i++) {
    unsigned length = 0;
    for (unsigned rest = i; length == 0 || rest > 0; rest /= 14) vocabulary[i][length++] = (char)('a' + rest % 14);
    for (unsigned more = 2 + (unsigned)(draw() % 8); more > 0; more--)
      vocabulary[i][length++] = (char)('o' + draw() % 12);
    vocabulary[i][length] = 0;
  }
}

static struct pwi_word next_word(void *context) {
  unsigned *next = context;
  const char *word = vocabulary[(*next)++];
  return (struct pwi_word){word, strlen(word)};
}

static struct pawl_words *make_words(void) {
  struct pawl_words *words = NULL;
  unsigned next = 0;
  uint64_t total = 0, twice;
  make_vocabulary();
  for (unsigned i = 0; i < VOCABULARY; i++) total += strlen(vocabulary[i]);
  check(pwi_words_make(VOCABULARY, total, next_word, &next, &words, &twice) == PAWL_OK, "no vocabulary");
  return words;
}

/* Word i with a probability of about 1 / i, as in a language. */
static unsigned draw_word(void) {
  double unit = (double)(draw() >> 11) * 0x1p-53;
  return (unsigned)exp(unit * log(VOCABULARY)) - 1;
}

/* Documents of 150 words. With `others` each word begins with a letter outside of ASCII. */
static void write_text(bool others) {
  for (used = 0; !is_full(); add("\n"))
    for (int i = 0; i < 150; i++) {
      if (i > 0) add(" ");
      if (others) add("\xc3\xa4");
      size_t first = used;
      add("%s", vocabulary[draw_word()]);
      if (i % 20 == 0) text[first] = (char)(text[first] - 32);
      if (i % 10 == 9) add(",");
    }
}

static void write_ldac(void) {
  for (used = 0; !is_full(); add("\n")) {
    unsigned id = 0;
    add("100");
    for (int i = 0; i < 100; i++) {
      id += 1 + (unsigned)(draw() % 1000);
      add(" %u:%u", id, draw() % 8 ? 1 : 1 + (unsigned)(draw() % 20));
    }
  }
}

static void write_uci(void) {
  used = 0;
  for (unsigned document = 1; !is_full(); document++) {
    unsigned id = 0;
    for (int i = 0; i < 100; i++) {
      id += 1 + (unsigned)(draw() % 1000);
      add("%u %u %u\n", document, id, draw() % 8 ? 1 : 1 + (unsigned)(draw() % 20));
    }
  }
}

static void measure_documents(struct pwi_parse_rule rule) {
  struct pawl_words *words = make_words();
  rule.format = PAWL_DATA_LDAC;
  rule.bag = (struct pwi_bag){.documents = UINT32_MAX, .words = UINT32_MAX};
  write_ldac();
  measure("ldac", &rule);
  rule.format = PAWL_DATA_UCI;
  write_uci();
  measure("uci", &rule);
  rule.format = PAWL_DATA_TEXT;
  write_text(false);
  measure("text, hashed", &rule);
  rule.words = words;
  measure("text, 100,000 words", &rule);
  rule.words = NULL;
  write_text(true);
  measure("text, not all ASCII, hashed", &rule);
  pwi_words_release(words);
}

static void read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  check(file != NULL, "cannot open the file");
  used = fread(text, 1, SIZE, file);
  fclose(file);
  while (used > 0 && text[used - 1] != '\n') used--;
  memset(text + used, 0, PWI_NUMBER_SLACK);
}

int main(int argc, char **argv) {
  struct pwi_parse_rule rule = {.format = PAWL_DATA_LIBSVM, .hash_bits = PWI_DATA_HASH_BITS};
  text = pwi_alloc_zero(SIZE + 4096, 1);
  copy = pwi_alloc_zero(SIZE + 4096, 1);
  check(text && copy, "out of memory");
  if (argc > 1) {
    read_file(argv[1]);
    measure("libsvm, file", &rule);
    measure_files();
  }
  write_libsvm(6);
  measure("libsvm, 6 digits", &rule);
  if (argc < 2) measure_files();
  write_libsvm(17);
  measure("libsvm, 17 digits", &rule);
  write_libsvm(0);
  measure("libsvm, ones", &rule);
  rule.format = PAWL_DATA_VW;
  write_vw();
  measure("vw", &rule);
  rule.format = PAWL_DATA_CRITEO;
  rule.table = (struct pwi_csv_layout){.separator = '\t', .columns = PWI_CRITEO_COLUMNS};
  write_criteo();
  measure("criteo", &rule);
  rule.format = PAWL_DATA_CSV;
  rule.table = (struct pwi_csv_layout){.separator = ',', .columns = 26};
  write_csv();
  measure("csv", &rule);
  measure_documents(rule);
  pwi_free(copy);
  pwi_free(text);
  return 0;
}
