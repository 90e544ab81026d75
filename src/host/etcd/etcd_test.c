/* The etcd client against a fake server: members that are down, hang, have no leader or are not etcd;
 * cancelled calls. tests/etcd uses a real etcd. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "host/clock.h"
#include "host/etcd/etcd.h"

#define OK(expression) assert_int_equal(expression, PAWL_OK)
#define GOOD "{\"header\":{\"revision\":\"5\"},\"succeeded\":true}"
#define NO_LEADER "{\"error\":\"etcdserver: no leader\",\"message\":\"etcdserver: no leader\",\"code\":14}"

/* --- a server ------------------------------------------------------------------------------------------- */

enum manner { ANSWERS, HANGS, HANGS_UP, CUTS_SHORT };

struct fake {
  int listening;
  uint16_t port;
  pthread_t thread;
  _Atomic(enum manner) manner;
  atomic_int code;
  _Atomic(const char *) body;
  atomic_uint requests;
  char last[65536]; /* the last request; read it only while the server is idle */
};

/* Reads one request: the head, and as much of the body as it announces. False if there is none. */
static bool read_request(int handle, char *text, size_t room) {
  size_t size = 0;
  for (;;) {
    ssize_t got = recv(handle, text + size, room - 1 - size, 0);
    if (got <= 0) return false;
    size += (size_t)got;
    text[size] = '\0';
    const char *body = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length:");
    if (body && length && size >= (size_t)(body + 4 - text) + strtoull(length + 15, NULL, 10)) return true;
  }
}

/* One request on each connection. */
static void serve(struct fake *fake, int handle) {
  char head[256];
  struct pollfd watched = {.fd = handle, .events = POLLIN};
  if (!read_request(handle, fake->last, sizeof fake->last)) return;
  atomic_fetch_add(&fake->requests, 1);
  enum manner manner = atomic_load(&fake->manner);
  const char *body = atomic_load(&fake->body);
  if (manner == HANGS) poll(&watched, 1, 5000); /* until the client gives up */
  if (manner == HANGS || manner == HANGS_UP) return;
  size_t size = strlen(body), cut = manner == CUTS_SHORT ? size / 2 : size;
  int length = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        atomic_load(&fake->code), size);
  if (send(handle, head, (size_t)length, MSG_NOSIGNAL) == length) (void)!send(handle, body, cut, MSG_NOSIGNAL);
}

static void *run(void *context) {
  struct fake *fake = context;
  for (int handle; (handle = accept(fake->listening, NULL, NULL)) >= 0; close(handle)) serve(fake, handle);
  return NULL;
}

static void fake_open(struct fake *fake, enum manner manner, int code, const char *body) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  memset(fake, 0, sizeof *fake);
  fake->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fake->listening, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(fake->listening, 16), 0);
  assert_int_equal(getsockname(fake->listening, (struct sockaddr *)&address, &size), 0);
  fake->port = ntohs(address.sin_port);
  atomic_store(&fake->manner, manner);
  atomic_store(&fake->code, code);
  atomic_store(&fake->body, body);
  assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
}

static void fake_close(struct fake *fake) {
  shutdown(fake->listening, SHUT_RDWR);
  pthread_join(fake->thread, NULL);
  close(fake->listening);
}

/* A port on which nothing listens. */
static uint16_t dead_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(handle, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(handle, (struct sockaddr *)&address, &size), 0);
  return ntohs(address.sin_port); /* the socket stays open: nobody else gets the port */
}

#define CALM_NS (200 * PWI_HOST_SECOND) /* nothing takes so long on a busy machine */
#define HANG_S 300                      /* for tests that hang */
#define TRIES 20

/* --- a client ------------------------------------------------------------------------------------------- */

struct client {
  struct pwi_meta *meta;
  sem_t woken;
};

struct asked {
  struct pwi_meta_call call;
  unsigned times;
  pawl_status status;
  uint64_t revision, lease;
};

static void wake(void *context) { sem_post(&((struct client *)context)->woken); }

static void client_open(struct client *client, const uint16_t *ports, size_t count) {
  char text[256] = "etcd://";
  struct pwi_etcd_config config = {.wake = wake, .context = client};
  for (size_t i = 0; i < count; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s127.0.0.1:%u", i ? "," : "", ports[i]);
  OK(pwi_etcd_place_parse(text, &config.place));
  sem_init(&client->woken, 0, 0);
  OK(pwi_etcd_open(&config, &client->meta));
}

static void client_close(struct client *client) {
  client->meta->ops->destroy(client->meta);
  sem_destroy(&client->woken);
}

static void done(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct asked *asked = (struct asked *)call;
  asked->times++;
  asked->status = status;
  asked->revision = answer ? answer->revision : 0;
  asked->lease = answer ? answer->lease : 0;
}

static void begin(struct client *client, struct asked *asked, int64_t patience_ns) {
  static const struct pwi_meta_transaction transaction = {.steps = {{.act = PWI_META_GET, .key = "foo"}},
                                                          .step_count = 1};
  *asked = (struct asked){.call = {.done = done, .patience_ns = patience_ns}};
  OK(client->meta->ops->transact(client->meta, &asked->call, &transaction));
}

static void await(struct client *client, struct asked *asked) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += HANG_S;
  while (asked->times == 0) {
    assert_int_equal(sem_timedwait(&client->woken, &limit), 0);
    client->meta->ops->turn(client->meta);
  }
  assert_int_equal(asked->times, 1);
  assert_null(asked->call.inside);
}

static pawl_status ask(struct client *client, int64_t patience_ns) {
  struct asked asked;
  begin(client, &asked, patience_ns);
  await(client, &asked);
  return asked.status;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_a_call_goes_there_and_its_answer_comes_back(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  struct asked asked;
  fake_open(&fake, ANSWERS, 200, GOOD);
  client_open(&client, &fake.port, 1);
  begin(&client, &asked, CALM_NS);
  await(&client, &asked);
  OK(asked.status);
  assert_int_equal(asked.revision, 5);
  assert_non_null(strstr(fake.last, "POST /v3/kv/txn HTTP/1.1"));
  assert_non_null(strstr(fake.last, "{\"request_range\":{\"key\":\"Zm9v\"}}"));
  atomic_store(&fake.body, "{\"ID\":\"77\",\"TTL\":\"2\"}");
  asked = (struct asked){.call = {.done = done, .patience_ns = CALM_NS}};
  OK(client.meta->ops->grant(client.meta, &asked.call, 2 * PWI_HOST_SECOND));
  await(&client, &asked);
  assert_int_equal(asked.lease, 77);
  assert_non_null(strstr(fake.last, "POST /v3/lease/grant"));
  client_close(&client);
  fake_close(&fake);
}

/* With so little patience that a member that hangs is given up soon. On a busy machine one that does not may be, too; then again. */
static pawl_status ask_briefly(struct client *client) {
  pawl_status status = PAWL_TIMED_OUT;
  for (int tries = 0; status == PAWL_TIMED_OUT && tries < TRIES; tries++) status = ask(client, 3 * PWI_HOST_SECOND);
  return status;
}

static void test_the_next_member_is_asked_if_one_is_down_hangs_or_has_no_leader(void **state) {
  (void)state;
  static const enum manner manners[] = {HANGS, HANGS_UP, CUTS_SHORT, ANSWERS, ANSWERS, ANSWERS};
  static const int codes[] = {200, 200, 200, 503, 404, 200};
  static const char *const bodies[] = {GOOD, GOOD, GOOD, NO_LEADER, "404 page not found", "what?"};
  struct fake good;
  fake_open(&good, ANSWERS, 200, GOOD);
  for (size_t i = 0; i <= sizeof manners / sizeof *manners; i++) {
    struct fake bad;
    struct client client;
    bool is_down = i == sizeof manners / sizeof *manners;
    fake_open(&bad, is_down ? ANSWERS : manners[i], is_down ? 200 : codes[i], is_down ? GOOD : bodies[i]);
    client_open(&client, (uint16_t[]){is_down ? dead_port() : bad.port, good.port}, 2);
    OK(ask_briefly(&client));
    bool is_left_alone = false; /* the working member is asked first now, and the other one if that is too busy */
    for (int tries = 0; !is_left_alone && tries < TRIES; tries++) {
      unsigned asked = atomic_load(&bad.requests);
      OK(ask_briefly(&client));
      is_left_alone = atomic_load(&bad.requests) == asked;
    }
    assert_true(is_left_alone);
    client_close(&client);
    fake_close(&bad);
  }
  fake_close(&good);
}

static void test_patience_ends(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  char trouble[300];
  client_open(&client, (uint16_t[]){dead_port()}, 1);
  int64_t patience = PWI_HOST_SECOND / 5;
  pawl_status status = ask(&client, patience);
  while (status == PAWL_TIMED_OUT && patience < CALM_NS) /* too short for a busy machine to connect */
    status = ask(&client, patience *= 2);
  assert_int_equal(status, PAWL_LINK_REFUSED);
  pwi_etcd_trouble(client.meta, trouble, sizeof trouble);
  assert_non_null(strstr(trouble, "http://127.0.0.1:"));
  client_close(&client);
  fake_open(&fake, HANGS, 200, GOOD);
  client_open(&client, &fake.port, 1);
  assert_int_equal(ask(&client, PWI_HOST_SECOND / 5), PAWL_TIMED_OUT);
  client_close(&client);
  fake_close(&fake);
}

static void test_a_patient_call_waits_until_a_member_answers(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  struct asked asked;
  fake_open(&fake, ANSWERS, 503, NO_LEADER);
  client_open(&client, &fake.port, 1);
  begin(&client, &asked, PWI_META_PATIENT);
  while (atomic_load(&fake.requests) < 3) usleep(1000);
  client.meta->ops->turn(client.meta);
  assert_int_equal(asked.times, 0);
  atomic_store(&fake.code, 200);
  atomic_store(&fake.body, GOOD);
  await(&client, &asked);
  OK(asked.status);
  client_close(&client);
  fake_close(&fake);
}

static void test_an_error_that_will_not_pass_is_told_at_once(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  char trouble[300];
  fake_open(&fake, ANSWERS, 400, "{\"message\":\"etcdserver: request is too large\",\"code\":3}");
  client_open(&client, &fake.port, 1);
  assert_int_equal(ask(&client, PWI_META_PATIENT), PAWL_TOO_LARGE);
  pwi_etcd_trouble(client.meta, trouble, sizeof trouble);
  assert_non_null(strstr(trouble, "request is too large"));
  client_close(&client);
  fake_close(&fake);
}

static void test_many_calls_at_a_time_are_all_answered(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  struct asked asked[40];
  fake_open(&fake, ANSWERS, 200, GOOD);
  client_open(&client, &fake.port, 1);
  for (size_t i = 0; i < 40; i++) begin(&client, &asked[i], CALM_NS);
  for (size_t i = 0; i < 40; i++) {
    atomic_store(&fake.manner, i % 5 ? ANSWERS : HANGS_UP);
    while (asked[i].times == 0) {
      atomic_store(&fake.manner, ANSWERS);
      sem_wait(&client.woken);
      client.meta->ops->turn(client.meta);
    }
  }
  for (size_t i = 0; i < 40; i++) OK(asked[i].status);
  client_close(&client);
  fake_close(&fake);
}

static void test_a_cancelled_call_is_not_answered(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  struct asked asked[8];
  uint64_t before = pwi_memory_counts().live;
  fake_open(&fake, HANGS, 200, GOOD);
  client_open(&client, &fake.port, 1);
  for (size_t i = 0; i < 4; i++) begin(&client, &asked[i], PWI_META_PATIENT);
  while (atomic_load(&fake.requests) == 0) usleep(1000); /* some are under way, others queued */
  for (size_t i = 0; i < 4; i++) client.meta->ops->cancel(client.meta, &asked[i].call);
  client.meta->ops->cancel(client.meta, &asked[0].call); /* ignored */
  atomic_store(&fake.manner, ANSWERS);
  for (size_t i = 4; i < 6; i++) begin(&client, &asked[i], PWI_META_PATIENT);
  for (size_t i = 4; i < 6; i++) await(&client, &asked[i]);
  atomic_store(&fake.manner, HANGS);
  for (size_t i = 6; i < 8; i++) begin(&client, &asked[i], PWI_META_PATIENT);
  client_close(&client);
  for (size_t i = 0; i < 8; i++) assert_int_equal(asked[i].times, i == 4 || i == 5);
  fake_close(&fake);
  assert_int_equal(pwi_memory_counts().live, before);
}

/* The answer is here, and the actor has not turned to it yet. */
static void test_a_call_that_is_cancelled_after_its_answer_is_not_answered(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  struct asked asked;
  fake_open(&fake, ANSWERS, 200, GOOD);
  client_open(&client, &fake.port, 1);
  begin(&client, &asked, PWI_META_PATIENT);
  while (sem_wait(&client.woken) != 0) {
  }
  client.meta->ops->cancel(client.meta, &asked.call);
  client.meta->ops->turn(client.meta);
  assert_int_equal(asked.times, 0);
  client_close(&client);
  fake_close(&fake);
}

static void test_running_out_of_memory_is_told(void **state) {
  (void)state;
  struct fake fake;
  struct client client;
  static const struct pwi_meta_transaction transaction = {.steps = {{.act = PWI_META_GET, .key = "foo"}},
                                                          .step_count = 1};
  fake_open(&fake, ANSWERS, 200, GOOD);
  client_open(&client, &fake.port, 1);
  for (uint64_t n = 0;; n++) {
    struct asked asked = {.call = {.done = done, .patience_ns = CALM_NS}};
    pwi_memory_fail_after(n);
    pawl_status status = client.meta->ops->transact(client.meta, &asked.call, &transaction);
    if (!status) await(&client, &asked);
    bool has_failed = pwi_memory_fail_cancel();
    if (!status) status = asked.status;
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (!has_failed) break;
  }
  client_close(&client);
  fake_close(&fake);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_call_goes_there_and_its_answer_comes_back),
      cmocka_unit_test(test_the_next_member_is_asked_if_one_is_down_hangs_or_has_no_leader),
      cmocka_unit_test(test_patience_ends),
      cmocka_unit_test(test_a_patient_call_waits_until_a_member_answers),
      cmocka_unit_test(test_an_error_that_will_not_pass_is_told_at_once),
      cmocka_unit_test(test_many_calls_at_a_time_are_all_answered),
      cmocka_unit_test(test_a_cancelled_call_is_not_answered),
      cmocka_unit_test(test_a_call_that_is_cancelled_after_its_answer_is_not_answered),
      cmocka_unit_test(test_running_out_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
