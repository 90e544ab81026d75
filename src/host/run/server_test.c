/* A manager and servers in one process, over real sockets. */
#include <pthread.h>

#include <pawl/session.h>

#include "base/testing.h"
#include "host/clock.h"
#include "host/run/manager.h"
#include "host/run/server.h"

#define LIMIT_NS (200 * PWI_HOST_SECOND)
#define FULL "pawl1-0000000000000000000000000000000000000000000000000000000000000000"
#define READER "pawl1-1111111111111111111111111111111111111111111111111111111111111111 read-only"

struct manager {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct pwi_run_manager_config config;
  struct pwi_run_manager *running;
  struct pwi_run_problem problem;
  pawl_status status;
  bool is_open, may_close;
};

static void await(struct manager *manager, const bool *what) {
  pthread_mutex_lock(&manager->mutex);
  while (!*what) pthread_cond_wait(&manager->changed, &manager->mutex);
  pthread_mutex_unlock(&manager->mutex);
}

static void announce(struct manager *manager, bool *what) {
  pthread_mutex_lock(&manager->mutex);
  *what = true;
  pthread_cond_signal(&manager->changed);
  pthread_mutex_unlock(&manager->mutex);
}

/* A manager belongs to one thread from opening to close. */
static void *run_manager(void *argument) {
  struct manager *manager = argument;
  manager->status = pwi_run_manager_open(&manager->config, &manager->running, &manager->problem);
  announce(manager, &manager->is_open);
  if (manager->status) return NULL;
  assert_int_equal(pwi_run_manager_loop(manager->running, &manager->problem), PAWL_OK);
  await(manager, &manager->may_close);
  pwi_run_manager_close(manager->running);
  return NULL;
}

static void start_manager(struct manager *manager, const struct pwi_keyring *keys) {
  *manager = (struct manager){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  pwi_tcp_config_init(&manager->config.net);
  manager->config.net.keys = keys;
  manager->config.listen = "127.0.0.1:0";
  manager->config.http = "127.0.0.1:0";
  assert_int_equal(pthread_create(&manager->thread, NULL, run_manager, manager), 0);
  await(manager, &manager->is_open);
  if (manager->status) fail_msg("%s", manager->problem.text);
  assert_int_not_equal(pwi_run_manager_http_port(manager->running), 0);
}

static void stop_manager(struct manager *manager) {
  pwi_run_manager_stop(manager->running);
  announce(manager, &manager->may_close);
  pthread_join(manager->thread, NULL);
}

static struct pwi_run_server_config server_config(const char *manager, uint32_t shards,
                                                  const struct pwi_keyring *keys) {
  struct pwi_run_server_config config = {
      .manager = manager, .shards = shards, .memory_max = UINT64_MAX, .drain_ns = LIMIT_NS, .http = "127.0.0.1:0"};
  pwi_tcp_config_init(&config.net);
  config.net.keys = keys;
  return config;
}

static struct pwi_run_server *start_server(const char *manager, uint32_t shards, const struct pwi_keyring *keys) {
  struct pwi_run_server_config config = server_config(manager, shards, keys);
  struct pwi_run_server *server;
  struct pwi_run_problem problem;
  if (pwi_run_server_open(&config, &server, &problem)) fail_msg("%s", problem.text);
  if (pwi_run_server_join(server, LIMIT_NS, &problem)) fail_msg("%s", problem.text);
  return server;
}

static struct pawl_session *open_session(const char *manager) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.address = manager;
  if (pawl_session_open(&options, &session)) fail_msg("%s", pawl_error_text());
  return session;
}

static void test_a_server_that_is_told_to_stop_hands_its_keys_over(void **state) {
  (void)state;
  enum { KEYS = 3000 };
  struct manager manager;
  start_manager(&manager, NULL);
  const char *address = pwi_run_manager_address(manager.running);
  struct pwi_run_server *stays = start_server(address, 2, NULL), *goes = start_server(address, 1, NULL);
  assert_string_not_equal(pwi_run_server_address(stays, 0), pwi_run_server_address(stays, 1));

  struct pawl_session *session = open_session(address);
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  struct pawl_task *task;
  static double values[KEYS], found[KEYS];
  for (int i = 0; i < KEYS; i++) values[i] = i + 0.5;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = KEYS;
  assert_int_equal(pawl_vector_create(session, "test/w", &options, LIMIT_NS, &vector), PAWL_OK);
  assert_int_equal(pawl_vector_push(vector, pawl_at_range(0, KEYS), values, &task), PAWL_OK);
  assert_int_equal(pawl_task_finish(task, LIMIT_NS), PAWL_OK);

  pwi_run_server_stop(goes, 1);
  pwi_run_server_wait(goes);
  assert_int_equal(pwi_run_server_drain(goes), PAWL_OK);
  pwi_run_server_close(goes);

  assert_int_equal(pawl_vector_pull(vector, pawl_at_range(0, KEYS), found, &task), PAWL_OK);
  assert_int_equal(pawl_task_finish(task, LIMIT_NS), PAWL_OK);
  assert_memory_equal(found, values, sizeof values);
  assert_int_equal(pawl_session_close(session, LIMIT_NS), PAWL_OK);
  pwi_run_server_close(stays);
  stop_manager(&manager);
}

static void test_told_twice_a_server_goes_at_once(void **state) {
  (void)state;
  struct manager manager;
  start_manager(&manager, NULL);
  struct pwi_run_server *server = start_server(pwi_run_manager_address(manager.running), 1, NULL);
  pwi_run_server_stop(server, 1);
  pwi_run_server_stop(server, 2);
  pwi_run_server_wait(server);
  assert_int_equal(pwi_run_server_drain(server),
                   PAWL_TIMED_OUT); /* it is the last server: no other can take its arcs */
  pwi_run_server_close(server);
  stop_manager(&manager);
}

static void test_a_server_says_why_it_is_not_in(void **state) {
  (void)state;
  struct manager manager;
  struct pwi_keyring *own, *other;
  assert_int_equal(pwi_keyring_create(&own), PAWL_OK);
  assert_int_equal(pwi_keyring_create(&other), PAWL_OK);
  assert_int_equal(pwi_keyring_add(own, FULL), PAWL_OK);
  assert_int_equal(pwi_keyring_add(other, "pawl1-2222222222222222222222222222222222222222222222222222222222222222"),
                   PAWL_OK);
  start_manager(&manager, own);
  struct pwi_run_server_config config = server_config(pwi_run_manager_address(manager.running), 1, other);
  struct pwi_run_server *server;
  struct pwi_run_problem problem;
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_OK);
  assert_int_equal(pwi_run_server_join(server, LIMIT_NS, &problem), PAWL_LINK_KEY);
  assert_non_null(strstr(problem.text, "does not accept our key; give this node"));
  pwi_run_server_close(server);

  config.net.keys = own;
  config.manager = "127.0.0.1:1";
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_OK);
  assert_int_equal(pwi_run_server_join(server, 0, &problem) == PAWL_OK, 0);
  pwi_run_server_stop(server, 1);
  assert_int_equal(pwi_run_server_join(server, LIMIT_NS, &problem), PAWL_NODE_STOPPED);
  pwi_run_server_close(server);
  stop_manager(&manager);
  pwi_keyring_destroy(own);
  pwi_keyring_destroy(other);
}

static void test_a_failed_start_is_explained(void **state) {
  (void)state;
  struct pwi_keyring *reader;
  assert_int_equal(pwi_keyring_create(&reader), PAWL_OK);
  assert_int_equal(pwi_keyring_add(reader, READER), PAWL_OK);
  struct pwi_run_server *server = NULL;
  struct pwi_run_problem problem;
  struct pwi_run_server_config config = server_config("127.0.0.1:1", 1, reader);
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_FORBIDDEN);
  assert_non_null(strstr(problem.text, "has limits"));
  config = server_config("127.0.0.1:1", 2, NULL);
  config.net.advertise = "node:99";
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_INVALID);
  assert_non_null(strstr(problem.text, "one port"));
  config = server_config("nonsense", 1, NULL);
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_INVALID);
  config = server_config("127.0.0.1:1", 1, NULL);
  config.listen = "0.0.0.0:0";
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_FORBIDDEN); /* without a key */
  assert_non_null(strstr(problem.text, "pawl key new"));
  config.listen = "127.0.0.1:0";
  config.http = "nonsense";
  assert_int_equal(pwi_run_server_open(&config, &server, &problem), PAWL_INVALID);
  assert_non_null(strstr(problem.text, "HTTP"));
  assert_null(server);

  struct pwi_run_manager *manager = NULL;
  struct pwi_run_manager_config bad = {.listen = "nonsense"};
  pwi_tcp_config_init(&bad.net);
  assert_int_equal(pwi_run_manager_open(&bad, &manager, &problem), PAWL_INVALID);
  assert_non_null(strstr(problem.text, "nonsense"));
  assert_null(manager);
  pwi_keyring_destroy(reader);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_that_is_told_to_stop_hands_its_keys_over),
      cmocka_unit_test(test_told_twice_a_server_goes_at_once),
      cmocka_unit_test(test_a_server_says_why_it_is_not_in),
      cmocka_unit_test(test_a_failed_start_is_explained),
  };
  static const char *const variables[] = {"PAWL_KEY", "PAWL_KEY_FILE", "PAWL_ADDRESS"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
