/* A topic model, trained by processes of this program, with <pawl/lda.h>.
 *
 *   cat docs/lda*.md > pages.txt
 *   build/examples/topics pages.txt 20
 *
 * The first argument is a corpus: plain text with one document per line, if its name ends with .txt; else
 * LDA-C, or UCI's bag of words. The second is the number of topics, the third the number of workers, the
 * fourth the number of sweeps. The session starts manager and server; workers are this program again, with
 * the address of the cluster. Prints the words of each topic, and the topics of the first document.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/lda.h>
#include <pawl/pawl.h>

enum { TOP = 8, WORKERS_MOST = 16 };

struct crew {
  const char *program, *address;
  pid_t pids[WORKERS_MOST];
  int count;
};

static void must(pawl_status status, const char *error) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "topics: %s: %s\n", pawl_status_text(status), *error ? error : pawl_error_text());
  exit(1);
}

/* Text is never guessed, because any file could be read as text without an error. */
static enum pawl_data_format format_of(const char *path) {
  size_t length = strlen(path);
  return length > 4 && !strcmp(path + length - 4, ".txt") ? PAWL_DATA_TEXT : PAWL_DATA_AUTO;
}

static struct pawl_session *open_session(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0"; /* scheduler and workers call one another */
  /* for a worker: if it is declared dead, others take over its documents */
  options.stays_dead = address != NULL;
  must(pawl_session_open(&options, &session), "");
  return session;
}

static int work(const char *address) {
  char error[PAWL_LDA_TEXT] = "";
  struct pawl_session *session = open_session(address);
  must(pawl_lda_work(session, NULL, 30 * PAWL_SECOND, error), error);
  must(pawl_session_close(session, PAWL_FOREVER), "");
  return 0;
}

static pawl_status start_worker(void *context) {
  struct crew *crew = context;
  if (crew->count == WORKERS_MOST) return PAWL_NODE_LIMIT;
  pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", crew->program, "--work", crew->address, (char *)NULL);
    _exit(127);
  }
  if (pid < 0) return PAWL_NO_MEMORY;
  crew->pids[crew->count++] = pid;
  return PAWL_OK;
}

static void show(void *context, const struct pawl_lda_progress *progress) {
  (void)context;
  if (progress->sweep % 50 == 0 && progress->sweep > 0)
    printf("sweep %3llu: %.3f for each token, %.1f million tokens a second\n", (unsigned long long)progress->sweep,
           progress->log_likelihood, progress->tokens_per_s * 1e-6);
}

static void print_topics(const struct pawl_lda_model *model, uint32_t topics) {
  const struct pawl_words *words = pawl_lda_model_words(model);
  for (uint32_t k = 0; k < topics; k++) {
    struct pawl_lda_word top[TOP];
    size_t count = pawl_lda_model_top(model, k, TOP, top);
    printf("topic %2u:", k);
    for (size_t i = 0; i < count; i++)
      if (words)
        printf(" %s", pawl_words_at(words, top[i].word));
      else
        printf(" %llu", (unsigned long long)top[i].word);
    printf("\n");
  }
}

/* The topics of a document that is given to the model: here the first of the corpus. */
static void print_first_document(const struct pawl_lda_model *model, const char *path, uint32_t topics) {
  struct pawl_data_options reading;
  struct pawl_data *data;
  struct pawl_batch *batch;
  uint64_t unknown;
  pawl_data_options_init(&reading);
  reading.format = format_of(path);
  reading.words = pawl_lda_model_words(model);
  must(pawl_data_open(&path, 1, &reading, &data), "");
  must(pawl_data_read(data, 0, &batch), "");
  float *theta = malloc(batch->rows * topics * sizeof *theta);
  if (!theta) must(PAWL_NO_MEMORY, "");
  must(pawl_lda_infer(model, batch, NULL, theta, &unknown), "");
  printf("the first document:");
  for (uint32_t k = 0; k < topics; k++)
    if (theta[k] > 0.1f) printf(" topic %u %.0f %%", k, 100 * (double)theta[k]);
  printf("\n");
  free(theta);
  pawl_batch_destroy(batch);
  pawl_data_close(data);
}

int main(int count, char **arguments) {
  if (count == 3 && !strcmp(arguments[1], "--work")) return work(arguments[2]);
  if (count < 2) {
    fprintf(stderr, "usage: topics CORPUS [TOPICS [WORKERS [SWEEPS]]]\n");
    return 2;
  }
  char error[PAWL_LDA_TEXT] = "", directory[4096], *path = realpath(arguments[1], NULL);
  if (path) snprintf(directory, sizeof directory, "%s.XXXXXX", path);
  if (!path || !mkdtemp(directory)) {
    perror(arguments[1]);
    return 1;
  }
  /* Workers are separate processes, so they must know the key of the embedded cluster. */
  setenv("PAWL_KEY", "pawl1-4f2d8c0e9b7a61535c3d1e0f8a9b6c7d2e3f405162738495a6b7c8d9eaf0b1c2", 0);
  struct pawl_session *session = open_session(NULL);
  struct crew crew = {.program = arguments[0], .address = pawl_session_address(session)};
  struct pawl_lda_options options;
  struct pawl_lda_result result;
  struct pawl_lda_model *model;
  pawl_lda_options_init(&options);
  options.paths = (const char *const *)&path;
  options.path_count = 1;
  options.reading.format = format_of(path);
  options.topics = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 20;
  options.workers = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 10) : 2;
  options.sweeps = count > 4 ? strtoull(arguments[4], NULL, 10) : 200;
  options.directory = directory;
  options.check = true; /* checks that no token is lost */
  options.start_worker = start_worker;
  options.progress = show;
  options.context = &crew;
  must(pawl_lda_train(session, &options, &model, &result, error), error);
  printf("%llu documents, %llu tokens, %llu words; the counts are %s\n", (unsigned long long)result.documents,
         (unsigned long long)result.tokens, (unsigned long long)result.words, result.is_exact ? "exact" : "not exact");
  print_topics(model, options.topics);
  print_first_document(model, path, options.topics);
  pawl_lda_model_destroy(model);
  for (int i = 0; i < crew.count; i++) waitpid(crew.pids[i], NULL, 0);
  must(pawl_session_close(session, PAWL_FOREVER), "");
  printf("topics of tokens are in %s\n", directory);
  free(path);
  return 0;
}
