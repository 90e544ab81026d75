/* The training part of `pawl demo`: runs `pawl train` on the words of examples/data, follows its log, and
 * kills a server on the way.
 *
 * Single-threaded.
 */
#ifndef PWI_CLI_DEMO_TRAIN_H
#define PWI_CLI_DEMO_TRAIN_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pawl/linear_model.h>

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

/* The result of a training run. */
struct pwi_demo_training {
  struct pwi_demo_round rounds[PWI_DEMO_ROUNDS_MAX]; /* the first rounds, if there are more */
  size_t round_count;
  pid_t killed;        /* process of the killed server; 0: none was killed */
  size_t killed_after; /* number of rounds before the kill */
  double objective, seconds;
  uint64_t rows, features, nonzeros;
  char news[512]; /* the command's message about the lost server; "" if none */
};

/* The command line, without the data, the log and the model. Ends with NULL. */
extern const char *const pwi_demo_words[];

/* Trains on the data in `data`, with log and model in `folder`, and kills a server on the way if `kills`. A
 * value of `*stop` other than 0 ends the run with a failure. Returns PWI_EXIT_OK, or prints an error. */
int pwi_demo_train_run(const struct pwi_command *command, const char *data, const char *folder, bool kills,
                       const volatile sig_atomic_t *stop, struct pwi_demo_training *training_out);

/* Writes the path of the model to `path_out`, which has room for PATH_MAX, and returns it. */
const char *pwi_demo_model_path(const char *folder, char *path_out);

/* Creates and removes a folder for log and model. Returns false if it cannot be created; see errno. */
bool pwi_demo_folder_make(char folder_out[PATH_MAX]);
void pwi_demo_folder_remove(const char *folder);

/* --- the picture -------------------------------------------------------------------------------------------------- */

/* Prints the objective above its final value, round by round, on a logarithmic scale, and the time of the
 * kill. */
void pwi_demo_curve_print(const struct pwi_paint *paint, const struct pwi_demo_training *training);

/* --- the data ----------------------------------------------------------------------------------------------------- */

/* Finds the folder of the data: `named` if it is not NULL; else beside the command's own folder (a build
 * in the source tree, or an installation), or below the current folder. Returns false if it is in none of
 * them. */
bool pwi_demo_data_find(const char *named, char folder_out[PATH_MAX]);

/* Evaluates the model on the test data. Returns PWI_EXIT_OK, or prints an error. */
int pwi_demo_test(const struct pwi_command *command, const char *data, const struct pawl_linear_model *model,
                  struct pawl_linear_figures *figures_out);

/* The words with the largest weights of each sign. */
#define PWI_DEMO_TOP 24
struct pwi_demo_top {
  char *words[2][PWI_DEMO_TOP]; /* for the first and the second class, by falling weight; NULL after the last */
};

/* Returns PWI_EXIT_OK, or prints an error. Always release with pwi_demo_top_fini. */
int pwi_demo_top_init(struct pwi_demo_top *top, const struct pwi_command *command, const char *data,
                      const struct pawl_linear_model *model);
void pwi_demo_top_fini(struct pwi_demo_top *top);

#endif
