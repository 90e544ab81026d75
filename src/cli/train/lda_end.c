#include "cli/train/lda_end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/train/log.h"
#include "cli/train/show.h"

#define TOPICS 5
#define WORDS 8

static bool is_interrupted(const struct pwi_train_lda_end *end) {
  return end->result->why && strcmp(end->result->why, "interrupted") == 0;
}

/* Bytes between workers and servers per sampled token of this run, without the sweeps before --resume. NAN:
 * nothing was sampled. */
static double bytes_per_token(const struct pawl_lda_result *result) {
  double sampled = result->tokens_per_s * result->sample_s;
  return sampled > 0 ? (double)(result->bytes_sent + result->bytes_received) / sampled : NAN;
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void set(json_t *object, const char *key, json_t *value) { (void)json_object_set_new(object, key, value); }

static void set_count(json_t *object, const char *key, uint64_t value) {
  set(object, key, json_integer((json_int_t)value));
}

static void set_number(json_t *object, const char *key, double value) {
  set(object, key, pwi_train_json_number(value));
}

static void set_text(json_t *object, const char *key, const char *text) {
  json_t *string = text ? pwi_json_string(text) : NULL;
  set(object, key, string ? string : json_null());
}

static void set_result(json_t *object, const struct pawl_lda_result *result) {
  set_text(object, "why", result->why);
  set_count(object, "sweeps", result->sweeps);
  set_number(object, "seconds", result->seconds);
  set_number(object, "sample_seconds", result->sample_s);
  set_number(object, "tokens_per_s", result->tokens_per_s);
  set_number(object, "log_likelihood", result->log_likelihood);
  set_number(object, "perplexity", result->perplexity);
  set_count(object, "documents", result->documents);
  set_count(object, "empty", result->empty);
  set_count(object, "tokens", result->tokens);
  set_count(object, "words", result->words);
  set_count(object, "skipped", result->skipped);
  set_count(object, "unknown", result->unknown);
  set_count(object, "bytes_sent", result->bytes_sent);
  set_count(object, "bytes_received", result->bytes_received);
  set_number(object, "bytes_per_token", bytes_per_token(result));
  set_count(object, "worker_memory", result->worker_memory);
  set_count(object, "workers_lost", result->workers_lost);
}

int pwi_train_lda_end_json(const struct pwi_train_lda_end *end) {
  const struct pwi_command *command = end->options->base.command;
  const struct pawl_lda_options *lda = &end->options->lda;
  bool stays = !end->files->goes || (is_interrupted(end) && lda->method == PAWL_LDA_GIBBS);
  json_t *object = json_object();
  set_text(object, "model", end->files->output);
  set_text(object, "method", lda->method == PAWL_LDA_SVI ? "svi" : "gibbs");
  set_count(object, "topics", lda->topics);
  set_result(object, end->result);
  set(object, "exact", lda->check ? json_boolean(end->result->is_exact) : json_null());
  set_text(object, "directory", stays ? end->files->directory : NULL);
  set_number(object, "total_seconds", end->seconds);
  return pwi_train_json_write(stdout, object) ? PWI_EXIT_OK : pwi_cli_failure(command, "cannot print the result");
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static void print_corpus(const struct pawl_lda_result *result) {
  printf("  %-12s %" PRIu64 ", with %" PRIu64 " tokens of %" PRIu64 " words\n", "documents", result->documents,
         result->tokens, result->words);
  if (result->empty) printf("  %-12s %" PRIu64 " of them, without a word of the vocabulary\n", "empty", result->empty);
  if (result->unknown)
    printf("  %-12s %" PRIu64 " tokens that are not in the vocabulary, ignored\n", "unknown", result->unknown);
  if (result->skipped)
    printf("  %-12s %" PRIu64 " bad document%s\n", "skipped", result->skipped, result->skipped == 1 ? "" : "s");
}

static void print_quality(const struct pwi_train_lda_end *end) {
  const struct pawl_lda_result *result = end->result;
  if (!isnan(result->log_likelihood))
    printf("  %-12s %.5f per token, of words and topics\n", "likelihood", result->log_likelihood);
  if (!isnan(result->perplexity)) printf("  %-12s %.2f, of held-out documents\n", "perplexity", result->perplexity);
  if (end->options->lda.check && result->is_exact)
    printf("  %-12s exact: the counts of every word equal the corpus\n", "counts");
}

static void print_costs(const struct pwi_train_lda_end *end) {
  const struct pawl_lda_result *result = end->result;
  char whole[32], sampling[32], speed[32], sent[32], received[32], memory[32];
  double bytes = bytes_per_token(result);
  printf("  %-12s %s: %s sampling, %s tokens/s\n", "time", pwi_train_time(end->seconds, whole),
         pwi_train_time(result->sample_s, sampling), pwi_train_short(result->tokens_per_s, speed));
  printf("  %-12s %sB sent, %sB received by workers", "network", pwi_train_short((double)result->bytes_sent, sent),
         pwi_train_short((double)result->bytes_received, received));
  if (!isnan(bytes)) printf(": %.2f bytes per token and sweep", bytes);
  printf("\n"
         "  %-12s at most %sB in a worker, for tokens and rows\n",
         "memory", pwi_train_short((double)result->worker_memory, memory));
  if (result->workers_lost)
    printf("  %-12s %u worker%s during training\n", "lost", result->workers_lost, result->workers_lost == 1 ? "" : "s");
}

/* The next topic by falling size after `before`; ties by rising number. */
static uint32_t next_topic(const double *totals, uint32_t count, uint32_t before, bool is_first) {
  uint32_t best = count;
  for (uint32_t k = 0; k < count; k++) {
    bool is_done = !is_first && (totals[k] > totals[before] || (totals[k] == totals[before] && k <= before));
    if (!is_done && (best == count || totals[k] > totals[best])) best = k;
  }
  return best;
}

static void print_topic(const struct pawl_lda_model *model, uint32_t topic, double share) {
  struct pawl_lda_word words[WORDS];
  const struct pawl_words *names = pawl_lda_model_words(model);
  size_t count = pawl_lda_model_top(model, topic, WORDS, words);
  printf("  %7u %6.1f %%  ", topic, 100 * share);
  for (size_t i = 0; i < count; i++) {
    if (names)
      printf("%s%s", i ? " " : "", pawl_words_at(names, words[i].word));
    else
      printf("%s%" PRIu64, i ? " " : "", words[i].word);
  }
  putchar('\n');
}

/* Prints the largest topics. */
static void print_topics(const struct pawl_lda_model *model) {
  struct pawl_lda_about about;
  const double *totals = pawl_lda_model_totals(model);
  double sum = 0;
  pawl_lda_model_about(model, &about);
  for (uint32_t k = 0; k < about.topics; k++) sum += totals[k];
  if (!(sum > 0)) return;
  printf("\n  %7s %8s  %s\n", "topic", "share", "most probable words");
  uint32_t topic = 0;
  for (uint32_t i = 0; i < TOPICS && i < about.topics; i++) {
    topic = next_topic(totals, about.topics, topic, i == 0);
    print_topic(model, topic, totals[topic] / sum);
  }
}

static void print_next(const struct pwi_train_lda_end *end) {
  printf("\nnext:  pawl lda topics");
  pwi_train_word_print(end->files->output);
  putchar('\n');
  if (!is_interrupted(end)) return;
  if (end->options->lda.method == PAWL_LDA_GIBBS) {
    printf("or:    the same command with --resume, to continue it\n");
  } else {
    printf("or:    pawl train lda --start");
    pwi_train_word_print(end->files->output);
    printf(" …, to continue from this model by Gibbs sampling\n");
  }
}

void pwi_train_lda_end_print(const struct pwi_train_lda_end *end) {
  const struct pwi_train_lda_files *files = end->files;
  const char *pass = end->options->lda.method == PAWL_LDA_SVI ? "pass" : "sweep";
  const char *plural = end->result->sweeps == 1 ? "" : *pass == 'p' ? "es" : "s";
  printf("%s after %" PRIu64 " %s%s\n", is_interrupted(end) ? "interrupted" : "done", end->result->sweeps, pass,
         plural);
  print_corpus(end->result);
  print_quality(end);
  print_costs(end);
  printf("  %-12s %s%s\n", "model", files->output, files->is_named ? "" : " (choose another name with -o)");
  print_topics(end->model);
  print_next(end);
}
