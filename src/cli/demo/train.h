/* The part of `pawl demo` that learns: `pawl train` as anybody would type it, on the words of examples/data, watched by its log,
 * with a server killed in the middle.
 *
 * Single-threaded. */
#ifndef PWI_CLI_DEMO_TRAIN_H
#define PWI_CLI_DEMO_TRAIN_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/linear/model/model.h"
#include "cli/cli.h"

#define PWI_DEMO_ROUNDS_MAX 1000
#define PWI_DEMO_TRAIN "words.train.svm.zst"
#define PWI_DEMO_TEST "words.test.svm.zst"
#define PWI_DEMO_VOCABULARY "words.vocabulary"

/* --- the training ------------------------------------------------------------------------------------------------- */

struct pwi_demo_round {
  double seconds; /* since the job began */
  double objective;
};

/* What happened. */
struct pwi_demo_training {
  struct pwi_demo_round rounds[PWI_DEMO_ROUNDS_MAX]; /* of a longer run the first */
  size_t round_count;
  pid_t killed;        /* the server; 0: none was */
  size_t killed_after; /* so many rounds */
  double objective, seconds;
  uint64_t rows, features, nonzeros;
  char news[512]; /* what the command said of the server; "" if nothing */
};

/* Words of the command line, as people would type them; ends with NULL. The data, the log and the model are added to it. */
extern const char *const pwi_demo_words[];

/* Trains on the data in `data`, with log and model in `folder`, and kills a server on the way if `kills`. PWI_EXIT_OK, or it has
 * said what went wrong. `*stop` is looked at meanwhile: not 0 ends it, and the exit code is then a failure. */
int pwi_demo_train_run(const struct pwi_command *command, const char *data, const char *folder, bool kills,
                       const volatile sig_atomic_t *stop, struct pwi_demo_training *training_out);

/* The model's path. `path_out` has room for PATH_MAX; returns it. */
const char *pwi_demo_model_path(const char *folder, char *path_out);

/* A folder for log and model, and its end. False: it cannot be made, see errno. */
bool pwi_demo_folder_make(char folder_out[PATH_MAX]);
void pwi_demo_folder_remove(const char *folder);

/* --- the picture -------------------------------------------------------------------------------------------------- */

/* How far the objective is above its end, round by round, on a logarithmic scale, and where the server was killed. On standard output. */
void pwi_demo_curve_print(const struct pwi_paint *paint, const struct pwi_demo_training *training);

/* --- the data ----------------------------------------------------------------------------------------------------- */

/* The folder with the data: `named` if that is not NULL; else beside the command's own folder (a build in the source tree, an
 * installation) or below the current one. False: it is in none of them. */
bool pwi_demo_data_find(const char *named, char folder_out[PATH_MAX]);

/* How good the model is on the test data. PWI_EXIT_OK, or it has said why not. */
int pwi_demo_test(const struct pwi_command *command, const char *data, const struct linear_model *model,
                  struct linear_figures *figures_out);

/* The words with the largest weights of each sign, with ", " between them, as many as fit into a line. */
#define PWI_DEMO_TOP 24
struct pwi_demo_top {
  char *words[2][PWI_DEMO_TOP]; /* for the first class, and for the second; the heaviest first, NULL after the last */
};

/* PWI_EXIT_OK, or it has said why not. To be ended with pwi_demo_top_fini either way. */
int pwi_demo_top_init(struct pwi_demo_top *top, const struct pwi_command *command, const char *data,
                      const struct linear_model *model);
void pwi_demo_top_fini(struct pwi_demo_top *top);

#endif
