/* The ratings of `pawl-bench lapser`: of a file, or generated. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/bpmf/random.h"
#include "apps/common/memory.h"
#include "plan.h"

#define HIDDEN 8  /* rank of generated ratings */
#define NOISE 0.8 /* their deviation from it */

/* --- generated ratings ------------------------------------------------------------------------------------ */

static double stars(double value) {
  double rounded = round(2 * value) / 2;
  return rounded < 0.5 ? 0.5 : rounded > 5 ? 5 : rounded;
}

/* The items that many users rate come first; all users rate about equally many. A pair may come twice. */
static void write_ratings(FILE *file, const struct pwi_lapser_shape *shape, const double *u, const double *v,
                          struct apps_random *random) {
  for (uint32_t n = 0; n < shape->ratings; n++) {
    uint32_t user = (uint32_t)((uint64_t)n * shape->users / shape->ratings);
    uint32_t item = (uint32_t)(pow(bpmf_unit(random), 3) * shape->items);
    double value = 3.5 + NOISE * bpmf_normal(random);
    for (size_t k = 0; k < HIDDEN; k++) value += u[user * HIDDEN + k] * v[item * HIDDEN + k];
    fprintf(file, "%u\t%u\t%.1f\n", user, item, stars(value));
  }
}

static bool generate(const struct pwi_lapser_shape *shape, int handle) {
  struct apps_random random = bpmf_random_of(shape->seed, BPMF_FOR_ROWS, 9, 0, 0);
  size_t users = (size_t)shape->users * HIDDEN, items = (size_t)shape->items * HIDDEN;
  double *u = apps_alloc_zero(users, sizeof *u), *v = apps_alloc_zero(items, sizeof *v);
  int copy = dup(handle);
  FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
  bool is_fine = u && v && file;
  for (size_t i = 0; is_fine && i < users; i++) u[i] = 0.5 * bpmf_normal(&random);
  for (size_t i = 0; is_fine && i < items; i++) v[i] = 0.5 * bpmf_normal(&random);
  if (is_fine) write_ratings(file, shape, u, v, &random);
  if (file) is_fine = fclose(file) == 0 && is_fine;
  if (!file && copy >= 0) close(copy);
  apps_free(u);
  apps_free(v);
  return is_fine;
}

/* MPI ranks read the file of this process. */
static bool make_file(struct pwi_lapser_problem *problem, const struct pwi_lapser_shape *shape) {
  problem->handle = memfd_create("ratings", MFD_CLOEXEC);
  if (problem->handle < 0) return false;
  snprintf(problem->path, sizeof problem->path, "/proc/%ld/fd/%d", (long)getpid(), problem->handle);
  return generate(shape, problem->handle);
}

/* --- all of it -------------------------------------------------------------------------------------------- */

int pwi_lapser_problem_open(const struct pwi_command *command, const char *path, const struct pwi_lapser_shape *shape,
                            double test_share, struct pwi_lapser_problem *problem) {
  char error[PAWL_BPMF_TEXT] = "";
  struct pawl_ratings_options reading;
  struct pawl_ratings *ratings = NULL;
  const char *name = problem->path;
  *problem = (struct pwi_lapser_problem){.handle = -1};
  pawl_ratings_options_init(&reading);
  reading.duplicates = PAWL_RATINGS_LAST;
  bpmf_random_prepare();
  if (path && (size_t)snprintf(problem->path, sizeof problem->path, "%s", path) >= sizeof problem->path)
    return pwi_cli_failure(command, "the path of the ratings is too long");
  if (!path && !make_file(problem, shape)) return pwi_cli_failure(command, "cannot generate ratings");
  if (pawl_ratings_read(&name, 1, &reading, &ratings)) return pwi_cli_failure(command, "%s", pawl_error_text());
  pawl_status status = bpmf_data_init(&problem->data, ratings, NULL, test_share, shape->seed, error);
  pawl_ratings_destroy(ratings);
  if (status) return pwi_cli_failure(command, "%s", *error ? error : pawl_status_text(status));
  if (problem->data.test_count == 0) return pwi_cli_failure(command, "'%s' has too few ratings for a test part", name);
  return PWI_EXIT_OK;
}

void pwi_lapser_problem_close(struct pwi_lapser_problem *problem) {
  bpmf_data_fini(&problem->data);
  if (problem->handle >= 0) close(problem->handle);
}
