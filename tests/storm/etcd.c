#include "etcd.h"

#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include "base/testing.h"
#include "host/clock.h"
#include "host/etcd/etcd.h"
#include "manager/leader/election.h"
#include "net/net.h"

#define PORT "2379"
#define PREFIX "storm"
#define ANSWER_NS (120 * PWI_HOST_SECOND)

static const char *const etcd_paths[] = {"/usr/bin/etcd", "/usr/local/bin/etcd"};
static const char *const guard_paths[] = {"/usr/bin/setpriv", "/bin/setpriv"};

static const char *find(const char *const *paths, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (access(paths[i], X_OK) == 0) return paths[i];
  return NULL;
}

static const char *find_etcd(void) { return find(etcd_paths, sizeof etcd_paths / sizeof *etcd_paths); }

/* It ends etcd with us, however we end. */
static const char *find_guard(void) { return find(guard_paths, sizeof guard_paths / sizeof *guard_paths); }

const char *storm_etcd_trouble(void) {
  if (!find_etcd()) return "there is no etcd (Debian's etcd-server)";
  return find_guard() ? NULL : "there is no setpriv (of util-linux)";
}

/* --- questions ------------------------------------------------------------------------------------------ */

struct question {
  struct pwi_meta_call call; /* the first member: `answered` gets its address */
  sem_t woken;
  bool is_over;
  pawl_status status;
  bool has_leader;
  uint64_t term;
  char address[PWI_NET_ADDRESS_MAX];
};

static void wake(void *context) { sem_post(&((struct question *)context)->woken); }

static void answered(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct question *question = (struct question *)call;
  question->is_over = true;
  question->status = status;
  if (status || answer->pair_count == 0) return;
  question->has_leader =
      !pwi_leader_decode(answer->pairs[0].value, answer->pairs[0].size, &question->term, question->address);
}

static void ask(const struct storm_etcd *etcd, struct question *question) {
  struct pwi_etcd_config config = {.wake = wake, .context = question};
  struct pwi_meta_transaction transaction = {.steps = {{.act = PWI_META_GET, .key = PREFIX "/leader"}},
                                             .step_count = 1};
  struct pwi_meta *meta;
  *question = (struct question){.call = {.done = answered, .patience_ns = ANSWER_NS}};
  sem_init(&question->woken, 0, 0);
  assert_int_equal(pwi_etcd_place_parse(etcd->meta, &config.place), PAWL_OK);
  assert_int_equal(pwi_etcd_open(&config, &meta), PAWL_OK);
  assert_int_equal(meta->ops->transact(meta, &question->call, &transaction), PAWL_OK);
  while (!question->is_over) {
    sem_wait(&question->woken);
    meta->ops->turn(meta);
  }
  meta->ops->destroy(meta);
  sem_destroy(&question->woken);
}

bool storm_etcd_leader(const struct storm_etcd *etcd, uint64_t *term_out, char *address_out, size_t size) {
  struct question question;
  ask(etcd, &question);
  if (question.status) fail_msg("etcd does not answer: %s", pawl_status_text(question.status));
  if (!question.has_leader) return false;
  const char *at = strstr(question.address, "://");
  snprintf(address_out, size, "%s", at ? at + 3 : question.address);
  *term_out = question.term;
  return true;
}

/* --- the process ---------------------------------------------------------------------------------------- */

void storm_etcd_start(struct storm_etcd *etcd, struct pwi_storm_cells *cells, const char *folder) {
  char data[PATH_MAX + 16], log[PATH_MAX + 16], address[PWI_STORM_CELL_ADDRESS], client[64];
  const char *peer = "http://127.0.0.1:2380"; /* etcd is alone, and so are its ports in its cell */
  assert_true(pwi_storm_cell_add(cells, &etcd->cell));
  pwi_storm_cell_address(etcd->cell, address);
  snprintf(etcd->meta, sizeof etcd->meta, "etcd://%s:" PORT "/" PREFIX, address);
  snprintf(client, sizeof client, "http://%s:" PORT, address);
  snprintf(data, sizeof data, "%s/etcd", folder);
  snprintf(log, sizeof log, "%s/etcd.log", folder);
  const char *words[] = {"setpriv",
                         "--pdeathsig",
                         "KILL",
                         find_etcd(),
                         "--data-dir",
                         data,
                         "--listen-client-urls",
                         client,
                         "--advertise-client-urls",
                         client,
                         "--listen-peer-urls",
                         peer,
                         "--initial-advertise-peer-urls",
                         peer,
                         "--initial-cluster",
                         "default=http://127.0.0.1:2380",
                         "--logger",
                         "zap",
                         NULL};
  int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  assert_true(output >= 0);
  struct pwi_child_config config = {
      .path = find_guard(), .argv = (char *const *)(uintptr_t)words, .output_fd = output, .own_group = true};
  assert_true(pwi_storm_cell_enter(cells, etcd->cell));
  pawl_status status = pwi_child_start(&config, &etcd->child);
  assert_true(pwi_storm_cell_enter(cells, 0));
  close(output);
  assert_int_equal(status, PAWL_OK);
  struct question question;
  ask(etcd, &question);
  if (question.status) fail_msg("etcd does not answer: %s; see %s", pawl_status_text(question.status), log);
}

void storm_etcd_stop(struct storm_etcd *etcd) {
  if (!etcd->child) return;
  kill(pwi_child_pid(etcd->child), SIGKILL);
  pwi_child_stop(etcd->child, PWI_HOST_SECOND);
  etcd->child = NULL;
}
