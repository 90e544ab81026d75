/* One node sends a model to all members of a group, and reads what they have made of it.
 *
 *   build/examples/destination
 *
 * Each worker keeps a copy of the model (pawl_vector_open_local) and improves it with data of its own, without the
 * servers. The scheduler pushes the model to the group, pulls all copies, and takes their mean (OSDI'14 3.2). Then it
 * pushes the mean to the servers, one after the other.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 3, KEYS = 4 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "destination: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static void finish(struct pawl_task *task) { must(pawl_task_finish(task, 10 * PAWL_SECOND)); }

int main(void) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.servers = 2;
  struct pawl_session *scheduler, *workers[WORKERS];
  must(pawl_session_open(&options, &scheduler));
  struct pawl_vector_options shape;
  pawl_vector_options_init(&shape);
  shape.size = KEYS;
  struct pawl_vector *model, *copies[WORKERS];
  must(pawl_vector_ensure(scheduler, "model/w", &shape, 10 * PAWL_SECOND, &model));

  struct pawl_group *group;
  for (int i = 0; i < WORKERS; i++) {
    pawl_session_options_init(&options);
    options.address = pawl_session_address(scheduler);
    options.listen = "127.0.0.1:0";
    must(pawl_session_open(&options, &workers[i]));
    must(pawl_vector_open_local(workers[i], "model/w", 10 * PAWL_SECOND, &copies[i]));
    must(pawl_group_join(workers[i], "model/workers", WORKERS, 10 * PAWL_SECOND, &group));
  }

  struct pawl_where all = pawl_at_range(0, KEYS);
  struct pawl_task *task;
  float first[KEYS] = {1, 2, 3, 4}, rows[WORKERS][KEYS], mean[KEYS] = {0};
  must(pawl_vector_push_group(model, "model/workers", all, first, &task));
  finish(task);

  /* A worker's step: it changes its own copy. */
  for (int i = 0; i < WORKERS; i++) {
    struct pawl_where own = all;
    float step[KEYS] = {(float)i, 0, 0, 0};
    own.node = pawl_session_node(workers[i]);
    must(pawl_vector_push(model, own, step, &task));
    finish(task);
  }

  struct pawl_node members[WORKERS], servers[8];
  size_t count;
  must(pawl_vector_pull_group(model, "model/workers", all, rows, WORKERS, members, &count, &task));
  finish(task);
  for (size_t i = 0; i < count; i++)
    for (int key = 0; key < KEYS; key++) mean[key] += rows[i][key] / (float)count;
  must(pawl_vector_servers(model, servers, 8, &count));
  for (size_t i = 0; i < count; i++) must(pawl_vector_push_server(model, servers[i], all, mean, NULL));
  must(pawl_vector_pull(model, all, first, &task));
  finish(task);
  printf("the mean of %d copies: %g %g %g %g\n", WORKERS, (double)first[0], (double)first[1], (double)first[2],
         (double)first[3]);
  for (int i = 0; i < WORKERS; i++) must(pawl_session_close(workers[i], 10 * PAWL_SECOND));
  must(pawl_session_close(scheduler, 10 * PAWL_SECOND));
  return 0;
}
