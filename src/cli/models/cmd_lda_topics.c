/* `pawl lda topics`: the most probable words of each topic, its share of the corpus, and its coherence. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lda/model_inside.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/models/lda_input.h"

enum { LETTER_TOPIC = PWI_LDA_OWN, LETTER_SORT, LETTER_DATA };
enum topic_order { BY_SHARE, BY_NUMBER, BY_COHERENCE };

#define TOP_DEFAULT 10
#define TOP_MAX 1000
#define INDENT 4

struct topic {
  uint32_t number;
  double share, npmi;
};

struct topics {
  struct pwi_lda_input input;
  struct pawl_lda_about about;
  uint64_t top;
  enum topic_order order;
  bool json;
  uint64_t *wanted; /* numbers of topics; none: all */
  size_t wanted_count;
  const char **paths; /* documents for coherence */
  size_t path_count;
  struct pawl_lda_word *words; /* `top` words per topic, of which `found` are set */
  size_t found;
  struct pawl_lda_coherence *coherence; /* NULL: not requested */
  struct topic *list;
  size_t count;
};

static void fini(struct topics *topics) {
  pwi_free(topics->wanted);
  pwi_free(topics->paths);
  pwi_free(topics->words);
  pwi_free(topics->coherence);
  pwi_free(topics->list);
  pwi_lda_input_fini(&topics->input);
}

/* --- what there is ---------------------------------------------------------------------------------------------------------- */

static int compare_by_number(const void *a, const void *b) {
  const struct topic *one = a, *other = b;
  return one->number < other->number ? -1 : one->number > other->number;
}

/* Sorts by falling value; unknown values come last. */
static int compare_values(double a, double b, const struct topic *one, const struct topic *other) {
  if (isnan(a) != isnan(b)) return isnan(a) ? 1 : -1;
  if (isnan(a) || a == b) return compare_by_number(one, other);
  return a > b ? -1 : 1;
}

static int compare_by_share(const void *a, const void *b) {
  const struct topic *one = a, *other = b;
  return compare_values(one->share, other->share, one, other);
}

static int compare_by_coherence(const void *a, const void *b) {
  const struct topic *one = a, *other = b;
  return compare_values(one->npmi, other->npmi, one, other);
}

static void add_topic(struct topics *topics, uint32_t number, double sum) {
  topics->list[topics->count++] = (struct topic){
      .number = number,
      .share = sum > 0 ? pawl_lda_model_totals(topics->input.model)[number] / sum : 0,
      .npmi = topics->coherence ? topics->coherence[number].npmi : (double)NAN,
  };
}

static void list_topics(struct topics *topics) {
  static int (*const by[])(const void *, const void *) = {compare_by_share, compare_by_number, compare_by_coherence};
  double sum = 0;
  for (uint32_t k = 0; k < topics->about.topics; k++) sum += pawl_lda_model_totals(topics->input.model)[k];
  for (uint32_t k = 0; k < topics->about.topics; k++) {
    bool is_wanted = topics->wanted_count == 0;
    for (size_t i = 0; i < topics->wanted_count && !is_wanted; i++) is_wanted = topics->wanted[i] == k;
    if (is_wanted) add_topic(topics, k, sum);
  }
  qsort(topics->list, topics->count, sizeof *topics->list, by[topics->order]);
}

static int find_coherence(struct topics *topics) {
  struct pwi_lda_input *input = &topics->input;
  char error[PAWL_LDA_TEXT];
  if (topics->path_count == 0) return PWI_EXIT_OK;
  int exit_code = pwi_lda_input_data(input, topics->paths, topics->path_count);
  if (exit_code) return exit_code;
  topics->coherence = pwi_alloc_zero(topics->about.topics, sizeof *topics->coherence);
  if (!topics->coherence) return pwi_cli_failure(input->command, "out of memory");
  pawl_status status = pawl_lda_coherence(input->model, input->data, (size_t)topics->top, input->folding.threads,
                                          topics->coherence, error);
  return status ? pwi_cli_failure(input->command, "%s", error) : PWI_EXIT_OK;
}

static int find_words(struct topics *topics) {
  const struct pwi_command *command = topics->input.command;
  topics->list = pwi_alloc_zero(topics->about.topics, sizeof *topics->list);
  topics->words = pwi_alloc_zero((size_t)topics->about.topics * (size_t)topics->top + 1, sizeof *topics->words);
  if (!topics->list || !topics->words) return pwi_cli_failure(command, "out of memory");
  topics->found = lda_model_tops(topics->input.model, (size_t)topics->top, topics->words);
  return PWI_EXIT_OK;
}

/* --- output ----------------------------------------------------------------------------------------------------------------- */

static void print_about(const struct topics *topics) {
  const struct pawl_lda_about *about = &topics->about;
  double alpha = 0;
  for (uint32_t k = 0; k < about->topics; k++) alpha += pawl_lda_model_alpha(topics->input.model)[k];
  printf("%-10s %" PRIu32 " of %" PRIu64 " words%s\n", "topics", about->topics, about->words,
         topics->input.names ? "" : ", which have numbers only");
  printf("%-10s %s, %" PRIu64 " %s over %" PRIu64 " documents with %" PRIu64 " tokens\n", "trained",
         about->method == PAWL_LDA_SVI ? "svi" : "gibbs", about->sweeps,
         about->method == PAWL_LDA_SVI ? "passes" : "sweeps", about->documents, about->tokens);
  printf("%-10s %.6g in total, beta %.6g\n", "alpha", alpha, about->beta);
  if (isfinite(about->log_likelihood) && about->tokens > 0)
    printf("%-10s %.6g per token: log p(w, z)\n", "likelihood", about->log_likelihood / (double)about->tokens);
}

/* The width on a terminal, in UTF-8 characters. */
static int width_of(const char *word) {
  int width = 0;
  for (; *word; word++) width += ((unsigned char)*word & 0xc0) != 0x80;
  return width;
}

static void print_words(const struct topics *topics, const struct pwi_paint *paint, uint32_t topic) {
  int column = 0;
  for (size_t i = 0; i < topics->found; i++) {
    const struct pawl_lda_word *one = &topics->words[topic * topics->top + i];
    char number[PWI_LDA_NUMBER_MAX], phi[32];
    const char *word = pwi_lda_word(&topics->input, one->word, number);
    int width = width_of(word) + 1 + snprintf(phi, sizeof phi, "%.4f", one->phi);
    bool is_first = column == 0 || column + 2 + width > paint->width;
    if (is_first && column > 0) putchar('\n');
    printf("%*s%s %s", is_first ? INDENT : 2, "", word, phi);
    column = is_first ? INDENT + width : column + 2 + width;
  }
  if (column > 0) putchar('\n');
}

static void print_topic(const struct topics *topics, const struct pwi_paint *paint, const struct topic *topic) {
  const struct pawl_lda_coherence *coherence = topics->coherence ? &topics->coherence[topic->number] : NULL;
  printf("\n%stopic %" PRIu32 "%s  %.2f %% of tokens  alpha %.4g", pwi_paint_ink(paint, PWI_INK_BOLD), topic->number,
         pwi_paint_ink(paint, PWI_INK_PLAIN), 100 * topic->share,
         pawl_lda_model_alpha(topics->input.model)[topic->number]);
  if (coherence && !isnan(coherence->umass))
    printf("  coherence npmi %.3f, umass %.3f", coherence->npmi, coherence->umass);
  if (coherence && isnan(coherence->umass)) printf("  coherence unknown");
  putchar('\n');
  print_words(topics, paint, topic->number);
}

static json_t *words_json(const struct topics *topics, uint32_t topic) {
  json_t *list = json_array();
  for (size_t i = 0; i < topics->found; i++) {
    const struct pawl_lda_word *one = &topics->words[topic * topics->top + i];
    json_t *object = json_pack("{s:I, s:f}", "number", (json_int_t)one->word, "phi", one->phi);
    if (topics->input.names)
      json_object_set_new(object, "word", pwi_json_string(pawl_words_at(topics->input.names, one->word)));
    json_array_append_new(list, object);
  }
  return list;
}

static int print_json(const struct topics *topics, const struct topic *topic) {
  const struct pawl_lda_model *model = topics->input.model;
  json_t *object = json_pack("{s:I, s:f, s:f, s:f, s:o}", "topic", (json_int_t)topic->number, "share", topic->share,
                             "tokens", pawl_lda_model_totals(model)[topic->number], "alpha",
                             pawl_lda_model_alpha(model)[topic->number], "words", words_json(topics, topic->number));
  if (object && topics->coherence) {
    json_object_set_new(object, "npmi", pwi_lda_real(topics->coherence[topic->number].npmi));
    json_object_set_new(object, "umass", pwi_lda_real(topics->coherence[topic->number].umass));
  }
  return pwi_cli_print_json(topics->input.command, object);
}

static int print_all(const struct topics *topics) {
  struct pwi_paint paint;
  int exit_code = PWI_EXIT_OK;
  pwi_paint_init(&paint);
  if (!topics->json && topics->wanted_count == 0) print_about(topics);
  for (size_t i = 0; i < topics->count && exit_code == PWI_EXIT_OK; i++) {
    if (topics->json)
      exit_code = print_json(topics, &topics->list[i]);
    else
      print_topic(topics, &paint, &topics->list[i]);
  }
  return exit_code;
}

/* --- options ---------------------------------------------------------------------------------------------------------------- */

static bool read_order(const char *text, enum topic_order *order_out) {
  static const char *const names[] = {"share", "number", "coherence"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *order_out = (enum topic_order)i;
      return true;
    }
  return false;
}

/* Reads an option. The arrays have room for as many values as there are arguments. */
static int take_option(struct topics *topics, int letter, const char *value) {
  const struct pwi_command *command = topics->input.command;
  int exit_code = PWI_EXIT_OK;
  if (pwi_lda_input_option(&topics->input, letter, value, &exit_code)) return exit_code;
  if (letter == PWI_CLI_LETTER_JSON) topics->json = true;
  if (letter == LETTER_DATA) topics->paths[topics->path_count++] = value;
  if (letter == 'n' && (!pwi_cli_number(value, &topics->top) || topics->top > TOP_MAX))
    return pwi_cli_bad_value(command, value, "a number of words from 0 to %d", TOP_MAX);
  if (letter == LETTER_TOPIC && !pwi_cli_number(value, &topics->wanted[topics->wanted_count++]))
    return pwi_cli_bad_value(command, value, "the number of a topic");
  if (letter == LETTER_SORT && !read_order(value, &topics->order))
    return pwi_cli_bad_value(command, value, "share, number or coherence");
  return PWI_EXIT_OK;
}

static bool read_options(struct topics *topics, struct pwi_cli_args *args, int *exit_out) {
  int letter;
  while ((letter = pwi_cli_next(args)) >= 0) {
    *exit_out = take_option(topics, letter, args->value);
    if (*exit_out) return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(args, 1, INT_MAX)) {
    *exit_out = args->exit_code;
    return false;
  }
  if (args->argc - args->rest > 1 && topics->path_count == 0)
    *exit_out = pwi_cli_usage(args->command, "unexpected argument '%s'; name documents with --data",
                              args->argv[args->rest + 1]);
  for (int i = args->rest + 1; i < args->argc; i++) topics->paths[topics->path_count++] = args->argv[i];
  if (topics->order == BY_COHERENCE && topics->path_count == 0)
    *exit_out = pwi_cli_usage(args->command, "--sort coherence needs documents; name them with --data FILE");
  return *exit_out == PWI_EXIT_OK;
}

static int check_wanted(const struct topics *topics) {
  for (size_t i = 0; i < topics->wanted_count; i++)
    if (topics->wanted[i] >= topics->about.topics)
      return pwi_cli_failure(topics->input.command, "unknown topic %" PRIu64 " in %s; expected 0 to %" PRIu32,
                             topics->wanted[i], topics->input.model_path, topics->about.topics - 1);
  return PWI_EXIT_OK;
}

static int show(struct topics *topics, const char *path) {
  int exit_code = pwi_lda_input_model(&topics->input, path);
  if (exit_code) return exit_code;
  pawl_lda_model_about(topics->input.model, &topics->about);
  exit_code = check_wanted(topics);
  if (exit_code == PWI_EXIT_OK) exit_code = find_coherence(topics);
  if (exit_code == PWI_EXIT_OK) exit_code = find_words(topics);
  if (exit_code) return exit_code;
  list_topics(topics);
  return print_all(topics);
}

static int run_topics(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct topics topics = {.top = TOP_DEFAULT};
  int exit_code = PWI_EXIT_OK;
  pwi_lda_input_init(&topics.input, command);
  topics.wanted = pwi_alloc_zero((size_t)argc + 1, sizeof *topics.wanted);
  topics.paths = pwi_alloc_zero((size_t)argc + 1, sizeof *topics.paths);
  pwi_cli_begin(&args, command, argc, argv);
  if (!topics.wanted || !topics.paths)
    exit_code = pwi_cli_failure(command, "out of memory");
  else if (read_options(&topics, &args, &exit_code))
    exit_code = show(&topics, argv[args.rest]);
  fini(&topics);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {'n', "top", "N", "print the N most probable words of each topic (default: 10)"},
    {LETTER_TOPIC, "topic", "K", "print this topic only; may be given several times"},
    {LETTER_SORT, "sort", "BY", "order of topics: share (default), number or coherence"},
    {LETTER_DATA, "data", "FILE...", "measure the coherence of the topics on these documents"},
    PWI_LDA_READING,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_lda_topics = {
    .name = "lda topics",
    .arguments = "MODEL",
    .summary = "print the words of each topic of a model",
    .text = "Prints each topic of a model: its number, its share of the tokens in training,\n"
            "its alpha, and its most probable words with their probabilities. With --data\n"
            "also prints how coherent these words are in documents: npmi, from -1 to 1, and\n"
            "umass, which is at most about 0. Higher is better for both.\n\n"
            "  pawl lda topics news.model --top 20\n"
            "  pawl lda topics news.model --sort coherence --data news.ldac\n",
    .options = options,
    .run = run_topics,
};
