/* A linear model, trained by processes of this program, with <pawl/linear_model.h>.
 *
 *   build/examples/linear_model                    generated rows
 *   build/examples/linear_model ads.svm 2          labelled rows of two classes, two workers
 *
 * The session starts manager and server; workers are this program again, with the address of the cluster.
 * Trains logistic regression, writes the model, reads it again, and predicts the rows that it was trained on.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/linear_model.h>
#include <pawl/pawl.h>

enum { WORKERS_MOST = 16, ROWS = 2000 };

struct crew {
  const char *program, *address;
  pid_t pids[WORKERS_MOST];
  int count;
};

static void must(pawl_status status, const char *error) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "linear_model: %s: %s\n", pawl_status_text(status), *error ? error : pawl_error_text());
  exit(1);
}

static struct pawl_session *open_session(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0"; /* scheduler and workers call one another */
  /* for a worker: if it is declared dead, others take over its rows */
  options.stays_dead = address != NULL;
  must(pawl_session_open(&options, &session), "");
  return session;
}

static int work(const char *address) {
  char error[PAWL_LINEAR_TEXT] = "";
  struct pawl_session *session = open_session(address);
  must(pawl_linear_work(session, NULL, 30 * PAWL_SECOND, error), error);
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

static void show(void *context, const struct pawl_linear_progress *progress) {
  (void)context;
  if (strcmp(progress->stage, "training") == 0)
    printf("round %2llu: objective %.6g\n", (unsigned long long)progress->round, progress->objective);
}

/* Rows with three features of ten. The label is the sign of 2 x1 - x2 + x3. */
static void generate(const char *path) {
  static const double weights[11] = {0, 2, -1, 1};
  FILE *file = fopen(path, "w");
  unsigned random = 7;
  if (!file) must(PAWL_IO, path);
  for (int row = 0; row < ROWS; row++) {
    double values[11] = {0}, score = 0;
    for (int k = 0; k < 3; k++) {
      random = random * 1664525u + 1013904223u;
      values[1 + (random >> 16) % 10] = (double)(random >> 24) / 128 - 1;
    }
    for (int id = 1; id <= 10; id++) score += weights[id] * values[id];
    fprintf(file, "%s", score > 0 ? "+1" : "-1");
    for (int id = 1; id <= 10; id++)
      if (values[id] != 0) fprintf(file, " %d:%g", id, values[id]);
    fprintf(file, "\n");
  }
  if (fclose(file)) must(PAWL_IO, path);
}

static void print_model(const struct pawl_linear_model *model) {
  struct pawl_linear_about about;
  pawl_linear_model_about(model, &about);
  printf("%zu of %llu weights are not zero:", about.nonzeros, (unsigned long long)pawl_linear_width(&about));
  for (size_t i = 0; i < about.nonzeros && i < 8; i++)
    printf(" %llu:%.2f", (unsigned long long)pawl_linear_model_ids(model)[i], pawl_linear_model_weights(model)[i]);
  printf("\n");
}

/* Scores all rows of the file, piece by piece, and compares the scores with the labels. */
static void predict(const struct pawl_linear_model *model, const char *path) {
  struct pawl_linear_scorer *scorer;
  struct pawl_linear_metrics *metrics;
  struct pawl_linear_figures figures;
  struct pawl_data *data;
  struct pawl_data_info info;
  must(pawl_linear_scorer_create(model, &scorer), "");
  must(pawl_linear_metrics_create(model, NULL, &metrics), "");
  must(pawl_data_open(&path, 1, NULL, &data), "");
  pawl_data_info(data, &info);
  for (size_t piece = 0; piece < info.pieces; piece++) {
    struct pawl_batch *batch;
    must(pawl_data_read(data, piece, &batch), "");
    double *scores = malloc((batch->rows + 1) * sizeof *scores);
    if (!scores) must(PAWL_NO_MEMORY, "");
    pawl_linear_scorer_run(scorer, batch, scores);
    must(pawl_linear_metrics_add(metrics, batch, scores), "");
    if (piece == 0) printf("the first row is of the second class at %.3f\n", pawl_linear_probability(scores[0]));
    free(scores);
    pawl_batch_destroy(batch);
  }
  must(pawl_linear_metrics_figures(metrics, &figures), "");
  printf("%llu rows, accuracy %.3f, AUC %.4f\n", (unsigned long long)figures.rows, figures.accuracy, figures.auc);
  pawl_data_close(data);
  pawl_linear_metrics_destroy(metrics);
  pawl_linear_scorer_destroy(scorer);
}

int main(int count, char **arguments) {
  if (count == 3 && !strcmp(arguments[1], "--work")) return work(arguments[2]);
  char error[PAWL_LINEAR_TEXT] = "", folder[] = "/tmp/linear_model-XXXXXX", generated[64], file[64];
  if (!mkdtemp(folder)) must(PAWL_IO, folder);
  snprintf(generated, sizeof generated, "%s/rows.svm", folder);
  snprintf(file, sizeof file, "%s/rows.model", folder);
  if (count < 2) generate(generated);
  char *path = realpath(count < 2 ? generated : arguments[1], NULL);
  if (!path) must(PAWL_NOT_FOUND, arguments[1]);

  /* Workers are separate processes, so they must know the key of the embedded cluster. */
  setenv("PAWL_KEY", "pawl1-4f2d8c0e9b7a61535c3d1e0f8a9b6c7d2e3f405162738495a6b7c8d9eaf0b1c2", 0);
  struct pawl_session *session = open_session(NULL);
  struct crew crew = {.program = arguments[0], .address = pawl_session_address(session)};
  const struct pawl_linear_point point = {.l1 = 1, .l2 = 0};
  struct pawl_linear_options options;
  struct pawl_linear_result result;
  struct pawl_linear_model *model, *read;
  pawl_linear_options_init(&options);
  options.paths = (const char *const *)&path;
  options.path_count = 1;
  options.points = &point;
  options.point_count = 1;
  options.workers = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 2;
  options.start_worker = start_worker;
  options.progress = show;
  options.context = &crew;
  must(pawl_linear_train(session, &options, &model, &result, error), error);
  printf("%s: %s after %llu rounds, objective %.6g\n", result.method, result.why, (unsigned long long)result.rounds,
         result.objective);
  must(pawl_linear_model_write(model, file, PAWL_LINEAR_FORMAT_PAWL, error), error);
  must(pawl_linear_model_read(file, &read, error), error);
  print_model(read);
  predict(read, path);

  pawl_linear_model_destroy(read);
  pawl_linear_model_destroy(model);
  for (int i = 0; i < crew.count; i++) waitpid(crew.pids[i], NULL, 0);
  must(pawl_session_close(session, PAWL_FOREVER), "");
  unlink(file);
  if (count < 2) unlink(generated);
  rmdir(folder);
  free(path);
  return 0;
}
