#include "scene.h"

#include <arpa/inet.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing.h"
#include "host/etcd/etcd.h"

#define KEYS 3

static const char *const etcd_paths[] = {"/usr/bin/etcd", "/usr/local/bin/etcd"};

static const char *find_etcd(void) {
  for (size_t i = 0; i < sizeof etcd_paths / sizeof *etcd_paths; i++)
    if (access(etcd_paths[i], X_OK) == 0) return etcd_paths[i];
  return NULL;
}

bool scene_is_possible(void) { return find_etcd() != NULL; }

static void nap(void) { usleep(20000); }

/* A port that was free a moment ago. The kernel gives none below 32768 by itself, and tests that run at the same time look at
 * others. */
static uint16_t free_port(void) {
  static unsigned tries;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  bool is_free = false;
  while (!is_free) {
    int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_port = htons((uint16_t)(10000 + ((unsigned)getpid() * 16 + tries++) % 20000));
    is_free = bind(handle, (struct sockaddr *)&address, sizeof address) == 0;
    close(handle);
  }
  return ntohs(address.sin_port);
}

/* --- processes ----------------------------------------------------------------------------------------------------------- */

static struct pwi_child *start(const char *path, const char *const *words, int output) {
  struct pwi_child_config config = {.path = path, .argv = (char *const *)(uintptr_t)words, .output_fd = output};
  struct pwi_child *child;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  return child;
}

static struct pwi_child *start_pawl(const char *const *words) {
  char command[PATH_MAX];
  const char *line;
  assert_int_equal(pwi_child_command(command, sizeof command), PAWL_OK);
  struct pwi_child *child = start(command, words, PWI_CHILD_OUTPUT_KEEP);
  assert_int_equal(pwi_child_ready(child, pwi_host_after(LIMIT), &line), PAWL_OK);
  return child;
}

void scene_kill(struct pwi_child **child) {
  if (!*child) return;
  kill(pwi_child_pid(*child), SIGCONT);
  kill(pwi_child_pid(*child), SIGKILL);
  pwi_child_stop(*child, SECOND);
  *child = NULL;
}

void scene_await_words(struct pwi_child *child, const char *words) {
  char said[8192] = "";
  int64_t deadline = pwi_host_after(LIMIT);
  do {
    if (pwi_host_now() >= deadline) fail_msg("'%s' is not in: %s", words, said);
    nap();
    pwi_child_last_words(child, said, sizeof said);
  } while (!strstr(said, words));
}

void scene_start_etcd(struct scene *scene) {
  char data[96], client[64], peer[64], cluster[80];
  snprintf(data, sizeof data, "%s/etcd", scene->folder);
  snprintf(client, sizeof client, "http://127.0.0.1:%u", scene->client_port);
  snprintf(peer, sizeof peer, "http://127.0.0.1:%u", scene->peer_port);
  snprintf(cluster, sizeof cluster, "default=%s", peer);
  const char *words[] = {"etcd",  "--data-dir",
                         data,    "--listen-client-urls",
                         client,  "--advertise-client-urls",
                         client,  "--listen-peer-urls",
                         peer,    "--initial-advertise-peer-urls",
                         peer,    "--initial-cluster",
                         cluster, "--logger",
                         "zap",   NULL};
  scene->etcd = start(find_etcd(), words, PWI_CHILD_OUTPUT_KEEP);
  (void)etcd_get(scene, PREFIX);
}

void scene_start_manager(struct scene *scene, size_t index) {
  char listen[32], meta[96];
  snprintf(listen, sizeof listen, "127.0.0.1:%u", scene->ports[index]);
  snprintf(meta, sizeof meta, "etcd://127.0.0.1:%u/" PREFIX, scene->client_port);
  const char *words[] = {"pawl",   "manager", "--listen",        listen, "--http",      "none", "--ready-fd", "3",
                         "--meta", meta,      "--first-servers", "2",    "--log-level", "info", NULL};
  scene->managers[index] = start_pawl(words);
}

void scene_start_servers(struct scene *scene) {
  const char *words[] = {"pawl",           "server", "--join", scene->addresses, "--http", "none", "--ready-fd", "3",
                         "--join-timeout", "60",     NULL};
  for (size_t i = 0; i < SERVERS; i++) scene->servers[i] = start_pawl(words);
}

void scene_start_all(struct scene *scene) {
  scene_start_etcd(scene);
  for (size_t i = 0; i < MANAGERS; i++) scene_start_manager(scene, i);
  scene_start_servers(scene);
  worker_start(scene);
}

void scene_open(struct scene *scene) {
  *scene = (struct scene){.client_port = free_port(), .peer_port = free_port()};
  strcpy(scene->folder, "/tmp/pawl-etcd-XXXXXX");
  assert_non_null(mkdtemp(scene->folder));
  for (size_t i = 0; i < MANAGERS; i++) {
    scene->ports[i] = free_port();
    snprintf(scene->addresses + strlen(scene->addresses), sizeof scene->addresses - strlen(scene->addresses),
             "%s127.0.0.1:%u", i ? "," : "", scene->ports[i]);
  }
}

static void worker_stop(struct worker *worker) {
  if (!worker->is_running) return;
  atomic_store(&worker->is_stopping, true);
  pthread_join(worker->thread, NULL);
  worker->is_running = false;
}

void scene_close(struct scene *scene) {
  char command[128];
  worker_stop(&scene->worker);
  if (scene->worker.session) (void)!pawl_session_close(scene->worker.session, SECOND);
  for (size_t i = 0; i < SERVERS; i++) scene_kill(&scene->servers[i]);
  for (size_t i = 0; i < MANAGERS; i++) scene_kill(&scene->managers[i]);
  scene_kill(&scene->etcd);
  snprintf(command, sizeof command, "rm -rf %s", scene->folder);
  assert_int_equal(system(command), 0);
}

/* --- the worker ---------------------------------------------------------------------------------------------------------- */

static const uint64_t keys[KEYS] = {1, 500, 999};

static void *work(void *context) {
  struct worker *worker = context;
  static const int64_t ones[KEYS] = {1, 1, 1};
  int64_t last = pwi_host_now();
  while (!atomic_load(&worker->is_stopping)) {
    struct pawl_task *task;
    pawl_status status = pawl_vector_push(worker->vector, pawl_at_keys(keys, KEYS), ones, &task);
    if (!status) status = pawl_task_finish(task, LIMIT);
    if (status) {
      atomic_store(&worker->status, status);
      return NULL;
    }
    int64_t now = pwi_host_now();
    if (now - last > atomic_load(&worker->gap_ns)) atomic_store(&worker->gap_ns, now - last);
    last = now;
    atomic_fetch_add(&worker->pushed, 1);
    usleep(500);
  }
  return NULL;
}

void worker_start(struct scene *scene) {
  struct worker *worker = &scene->worker;
  struct pawl_session_options options;
  struct pawl_vector_options shape;
  pawl_session_options_init(&options);
  options.address = scene->addresses;
  assert_int_equal(pawl_session_open(&options, &worker->session), PAWL_OK);
  pawl_vector_options_init(&shape);
  shape.type = PAWL_I64;
  shape.size = 1000;
  assert_int_equal(pawl_vector_ensure(worker->session, "work/ones", &shape, LIMIT, &worker->vector), PAWL_OK);
  assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
  worker->is_running = true;
}

void scene_await_whole(struct scene *scene) {
  int64_t deadline = pwi_host_after(LIMIT);
  for (bool is_whole = false; !is_whole; nap()) {
    char *text;
    assert_true(pwi_host_now() < deadline);
    if (pawl_session_status(scene->worker.session, LIMIT, &text)) continue;
    is_whole = strstr(text, "\"whole\":true") != NULL;
    pawl_text_free(text);
  }
}

void worker_await(struct scene *scene, int64_t more) {
  struct worker *worker = &scene->worker;
  int64_t from = atomic_load(&worker->pushed), deadline = pwi_host_after(LIMIT);
  while (atomic_load(&worker->pushed) < from + more) {
    assert_int_equal(atomic_load(&worker->status), PAWL_OK);
    assert_true(pwi_host_now() < deadline);
    nap();
  }
}

void worker_check(struct scene *scene) {
  struct worker *worker = &scene->worker;
  int64_t values[KEYS] = {0};
  struct pawl_task *task;
  worker_stop(worker);
  assert_int_equal(atomic_load(&worker->status), PAWL_OK);
  assert_int_equal(pawl_vector_pull(worker->vector, pawl_at_keys(keys, KEYS), values, &task), PAWL_OK);
  assert_int_equal(pawl_task_finish(task, LIMIT), PAWL_OK);
  printf("%lld pushes, longest gap %lld ms\n", (long long)atomic_load(&worker->pushed),
         (long long)(atomic_load(&worker->gap_ns) / 1000000));
  for (size_t i = 0; i < KEYS; i++) assert_int_equal(values[i], atomic_load(&worker->pushed));
}

void scene_create_vector(struct scene *scene, const char *name) {
  struct pawl_vector_options shape;
  struct pawl_vector *vector;
  pawl_vector_options_init(&shape);
  pawl_status status = pawl_vector_create(scene->worker.session, name, &shape, LIMIT, &vector);
  if (status) fail_msg("%s: %s", pawl_status_name(status), pawl_error_text());
}

/* --- looking into etcd ---------------------------------------------------------------------------------------------------- */

struct look {
  struct pwi_meta_call call;
  sem_t woken;
  bool is_over;
  pawl_status status;
  uint64_t count;
  char value[4096];
};

static void wake(void *context) { sem_post(&((struct look *)context)->woken); }

static void looked(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct look *look = (struct look *)call;
  look->is_over = true;
  look->status = status;
  if (status) return;
  look->count = answer->pair_count;
  if (answer->pair_count == 0 || answer->pairs[0].size >= sizeof look->value) return;
  memcpy(look->value, answer->pairs[0].value, answer->pairs[0].size);
  look->value[answer->pairs[0].size] = '\0';
}

static struct look *deal_with_etcd(struct scene *scene, const struct pwi_meta_step *step) {
  static struct look look;
  char place[64];
  struct pwi_meta *meta;
  struct pwi_etcd_config config = {.wake = wake, .context = &look};
  struct pwi_meta_transaction transaction = {.steps = {*step}, .step_count = 1};
  memset(&look, 0, sizeof look);
  look.call = (struct pwi_meta_call){.done = looked, .patience_ns = LIMIT};
  sem_init(&look.woken, 0, 0);
  snprintf(place, sizeof place, "etcd://127.0.0.1:%u", scene->client_port);
  assert_int_equal(pwi_etcd_place_parse(place, &config.place), PAWL_OK);
  assert_int_equal(pwi_etcd_open(&config, &meta), PAWL_OK);
  assert_int_equal(meta->ops->transact(meta, &look.call, &transaction), PAWL_OK);
  while (!look.is_over) {
    sem_wait(&look.woken);
    meta->ops->turn(meta);
  }
  meta->ops->destroy(meta);
  sem_destroy(&look.woken);
  assert_int_equal(look.status, PAWL_OK);
  return &look;
}

const char *etcd_get(struct scene *scene, const char *key) {
  const struct look *look = deal_with_etcd(scene, &(struct pwi_meta_step){.act = PWI_META_GET, .key = key});
  return look->count ? look->value : NULL;
}

uint64_t etcd_count(struct scene *scene, const char *key, const char *end) {
  return deal_with_etcd(scene, &(struct pwi_meta_step){.act = PWI_META_GET, .key = key, .end = end})->count;
}

void etcd_put(struct scene *scene, const char *key, const void *value, size_t size) {
  deal_with_etcd(scene, &(struct pwi_meta_step){.act = PWI_META_PUT, .key = key, .value = value, .size = size});
}

void etcd_delete(struct scene *scene, const char *key, const char *end) {
  deal_with_etcd(scene, &(struct pwi_meta_step){.act = PWI_META_DELETE, .key = key, .end = end});
}

static bool read_leader(struct scene *scene, size_t *index_out, uint64_t *term_out) {
  char address[PWI_NET_ADDRESS_MAX], own[32];
  const char *value = etcd_get(scene, PREFIX "/leader");
  if (!value) return false;
  assert_int_equal(pwi_leader_decode(value, strlen(value), term_out, address), PAWL_OK);
  for (size_t i = 0; i < MANAGERS; i++) {
    snprintf(own, sizeof own, "tcp://127.0.0.1:%u", scene->ports[i]);
    if (strcmp(own, address) == 0) *index_out = i;
  }
  return true;
}

size_t scene_leader(struct scene *scene, uint64_t *term_out) {
  int64_t deadline = pwi_host_after(LIMIT);
  size_t index = 0;
  while (!read_leader(scene, &index, term_out)) {
    assert_true(pwi_host_now() < deadline);
    nap();
  }
  return index;
}

void scene_await_other_leader(struct scene *scene, uint64_t term, size_t *index_out) {
  int64_t begin = pwi_host_now();
  uint64_t now;
  while (!read_leader(scene, index_out, &now) || now <= term) {
    assert_true(pwi_host_now() - begin < LIMIT);
    nap();
  }
}
